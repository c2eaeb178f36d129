"""What people say of groups of race and gender, as cells of a dimension and a side."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.model import Source

__all__ = ["Cell", "RatedPairs", "rated_pairs"]

Cell = tuple[str, Literal["low", "high"]]
"""A dimension and a side of it: the left traits of its pairs are low, the right ones high."""


@dataclass(frozen=True)
class RatedPairs:
    """The cells that hold for the groups that two groups make, whatever their order."""

    source: Source
    cells: tuple[Cell, ...]
    of: dict[frozenset[str], frozenset[Cell]]


@cache
def rated_pairs() -> RatedPairs:
    """The shipped ones."""
    path = Path(str(resources.files("biassay.stimuli") / "data" / "abc" / "ghavami2013.toml"))
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    words: dict[Cell, set[str]] = {
        (dimension, side): set(listed)
        for dimension, sides in content["words"].items()
        for side, listed in sides.items()
    }
    concepts = catalogue().concepts
    of = {
        frozenset(entry["groups"]): frozenset(
            cell for cell, listed in words.items() if listed & set(concepts[entry["words"]].words)
        )
        for entry in content["pairs"]
    }
    return RatedPairs(Source(**content["source"]), tuple(words), of)
