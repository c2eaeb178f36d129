"""Draw a balanced part of a benchmark (``--limit``)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from biassay.stats.balanced_part import balanced_part
from biassay.stimuli.benchmarks.bbq import BbqItem
from biassay.stimuli.benchmarks.crows_pairs import CrowsPair
from biassay.stimuli.benchmarks.stereoset import StereoSetItem
from biassay.studies.benchmarks.settings import Settings
from biassay.studies.seeds import seed_of

__all__ = ["balance_text", "drawn_part"]

_BALANCED = {
    "bbq": "templates, polarity, kind of context and positions of the answers",
    "crows-pairs": "writers and directions",
    "stereoset": "target terms",
}


def balance_text(benchmark: str) -> str:
    """Return over what a drawn part is balanced."""
    return _BALANCED[benchmark]


def drawn_part(items: Mapping[str, tuple[Any, ...]], settings: Settings) -> dict[str, tuple[Any, ...]]:
    """Draw at most ``settings.limit`` items of every category; all of them without a limit."""
    if settings.limit is None:
        return dict(items)
    return {name: _drawn(name, own, settings.limit, settings.seed) for name, own in items.items()}


def _drawn(name: str, items: Sequence[Any], limit: int, seed: int) -> tuple[Any, ...]:
    levels = np.array([_codes(column) for column in zip(*map(_factors, items), strict=True)]).T
    rng = np.random.default_rng(seed_of(seed, "limit", name))
    return tuple(items[place] for place in balanced_part(levels, limit, rng).tolist())


def _codes(column: Sequence[Hashable]) -> list[int]:
    known = {level: code for code, level in enumerate(dict.fromkeys(column))}
    return [known[level] for level in column]


def _factors(item: BbqItem | CrowsPair | StereoSetItem) -> tuple[Hashable, ...]:
    if isinstance(item, BbqItem):
        kind = item.negative, item.ambiguous
        return item.template, kind, (item.template, *kind), item.unknown, item.target, (item.target, item.correct)
    if isinstance(item, CrowsPair):
        return item.writer, item.direction
    return (item.target,)
