"""Read a benchmark and draw a balanced sample of its items."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from biassay.datasets.bbq import BbqItem, read_bbq
from biassay.datasets.benchmark_files import read_flagged
from biassay.datasets.crows_pairs import CrowsPair, read_crows_pairs
from biassay.datasets.stereoset import StereoSetItem, read_stereoset
from biassay.errors import UnknownNameError, UsageError
from biassay.stats.balanced_sample import draw_balanced
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.study import derive_seed

__all__ = ["BenchmarkInputs", "BenchmarkInputsRecord", "describe_balance", "draw_sample", "load_inputs"]


_BALANCED = {
    "bbq": "templates, polarity, kind of context and positions of the answers",
    "crows-pairs": "writers and directions",
    "stereoset": "target terms",
}


def describe_balance(benchmark: str) -> str:
    """Return over what a drawn part is balanced."""
    return _BALANCED[benchmark]


def draw_sample(items: Mapping[str, tuple[Any, ...]], settings: BenchmarkSettings) -> dict[str, tuple[Any, ...]]:
    """Draw at most ``settings.limit`` items of every category; all of them without a limit."""
    if settings.limit is None:
        return dict(items)
    return {name: _draw_category(name, own, settings.limit, settings.seed) for name, own in items.items()}


def _draw_category(name: str, items: Sequence[Any], limit: int, seed: int) -> tuple[Any, ...]:
    levels = np.array([_encode_levels(column) for column in zip(*map(_get_factors, items), strict=True)]).T
    rng = np.random.default_rng(derive_seed(seed, "limit", name))
    return tuple(items[place] for place in draw_balanced(levels, limit, rng).tolist())


def _encode_levels(column: Sequence[Hashable]) -> list[int]:
    known = {level: code for code, level in enumerate(dict.fromkeys(column))}
    return [known[level] for level in column]


def _get_factors(item: BbqItem | CrowsPair | StereoSetItem) -> tuple[Hashable, ...]:
    if isinstance(item, BbqItem):
        kind = item.negative, item.ambiguous
        return item.template, kind, (item.template, *kind), item.unknown, item.target, (item.target, item.correct)
    if isinstance(item, CrowsPair):
        return item.writer, item.direction
    return (item.target,)


_RELEASED = "as released"


@dataclass(frozen=True)
class BenchmarkInputsRecord:
    """Stored in the manifest: a run goes on only with the same items.

    ``digests`` are of all items of the files, by category for BBQ, and of the categories that are measured.
    ``versions`` says by the same keys what was released under this content; empty: nothing that is known; ``version``
    is that of all of them. ``without_target`` are questions of BBQ that cannot be scored, ``unmapped`` samples of logs
    that cannot be used, and ``unmapped_samples`` which ones and why. ``available`` is the number of items by category
    of which a part was drawn (``--limit``); empty: all were used.
    """

    benchmark: str
    digests: dict[str, str]
    version: str
    items: dict[str, int]
    flagged: int
    flagged_digest: str
    without_target: int
    unmapped: int = 0
    unmapped_samples: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    available: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BenchmarkInputs:
    """Settings, and the items by category; ``differs`` says what is not as it was released."""

    settings: BenchmarkSettings
    record: BenchmarkInputsRecord
    items: Mapping[str, tuple[Any, ...]]
    differs: str = ""

    @property
    def all_items(self) -> list[Any]:
        """Items of all categories, in order."""
        return [item for items in self.items.values() for item in items]


def load_inputs(settings: BenchmarkSettings) -> BenchmarkInputs:
    """Read the benchmark from where the user has it."""
    if settings.data is None:
        raise UsageError(f"say where the data of {settings.benchmark} is: --data (data=) FILE, FOLDER or PACKAGE")
    place = os.path.abspath(settings.data) if Path(settings.data).exists() else settings.data
    if settings.benchmark == "bbq":
        return _load_bbq(replace(settings, data=place), place)
    flagged = None if settings.flagged is None else read_flagged(os.path.abspath(settings.flagged))
    settings = replace(settings, data=place, flagged=None if flagged is None else str(flagged.path))
    read = {"crows-pairs": read_crows_pairs, "stereoset": read_stereoset}[settings.benchmark]
    found: Any = read(place, flagged)
    every = _group_by_category([(item.bias_type, item) for item in found.items], settings)
    items = draw_sample(every, settings)
    record = BenchmarkInputsRecord(
        settings.benchmark,
        {"all": found.digest},
        found.version,
        {name: len(of) for name, of in items.items()},
        found.flagged,
        "" if flagged is None else flagged.digest,
        0,
        versions={"all": found.version},
        available=_count_available(every, items),
    )
    return BenchmarkInputs(settings, record, items, "" if found.version else _describe_differences(record.digests))


def _load_bbq(settings: BenchmarkSettings, place: str) -> BenchmarkInputs:
    if settings.flagged is not None:
        raise UsageError("flagged items are left out of crows-pairs and stereoset; there is no such list for bbq")
    found = read_bbq(place)
    every = _group_by_category([(item.category, item) for item in found.items], settings)
    items = draw_sample(every, settings)
    measured = {name.removesuffix(" (names)") for name in items}
    digests = {name: digest for name, digest in found.digests.items() if name in measured}
    other = {name: digest for name, digest in digests.items() if name not in found.released}
    record = BenchmarkInputsRecord(
        "bbq",
        digests,
        "" if other else _RELEASED,
        {name: len(of) for name, of in items.items()},
        0,
        "",
        sum(n for name, n in found.without_target.items() if name in (settings.categories or (name,))),
        versions={name: "" if name in other else _RELEASED for name in digests},
        available=_count_available(every, items),
    )
    return BenchmarkInputs(settings, record, items, _describe_differences(other) if other else "")


def _count_available(every: Mapping[str, tuple[Any, ...]], items: Mapping[str, tuple[Any, ...]]) -> dict[str, int]:
    return {name: len(of) for name, of in every.items() if len(items[name]) < len(of)}


def _describe_differences(digests: Mapping[str, str]) -> str:
    named = ", ".join(f"{name} (digest {digest})" for name, digest in digests.items())
    return f"the data is not as its authors released it, but another version or a part of one: {named}"


def _group_by_category(items: Sequence[tuple[str, Any]], settings: BenchmarkSettings) -> dict[str, tuple[Any, ...]]:
    found: dict[str, list[Any]] = {}
    for category, item in items:
        found.setdefault(category, []).append(item)
    for name in settings.categories:
        if name not in found:
            raise UnknownNameError("category", name, found, f"(in the data: {', '.join(found)})")
    if not found:
        raise UsageError(f"{settings.data}: no item of {settings.benchmark} is left to measure")
    chosen = settings.categories or tuple(found)
    return {name: tuple(of) for name, of in found.items() if name in chosen}
