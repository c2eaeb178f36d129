"""First names: those of the shipped list and of every name list of the catalogue."""

from __future__ import annotations

from functools import cache
from importlib import resources

from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.model import Concept

__all__ = ["first_names"]


@cache
def first_names() -> frozenset[str]:
    """Return first names in lower case. Some are ordinary words too, such as hope and mark."""
    text = (resources.files("biassay.stimuli") / "data" / "first_names.txt").read_text("utf-8")
    listed = [line for line in text.splitlines() if not line.startswith("#")]
    stimuli = [word for concept in catalogue().concepts.values() if _holds_names(concept) for word in concept.words]
    return frozenset(name.casefold() for name in (*listed, *stimuli))


def _holds_names(concept: Concept) -> bool:
    """Is every word of the set a capitalised single word? Only name lists are."""
    return all(word[:1].isupper() and " " not in word for word in concept.words)
