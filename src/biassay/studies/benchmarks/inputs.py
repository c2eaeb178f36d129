"""What is measured with: a benchmark, read and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from biassay.errors import UnknownNameError, UsageError
from biassay.stimuli.benchmarks.bbq import read_bbq
from biassay.stimuli.benchmarks.crows_pairs import read_crows_pairs
from biassay.stimuli.benchmarks.flagged import read_flagged
from biassay.stimuli.benchmarks.stereoset import read_stereoset
from biassay.studies.benchmarks.drawing import drawn_part
from biassay.studies.benchmarks.settings import Settings

__all__ = ["BenchmarkInputs", "InputsRecord", "open_inputs"]

_RELEASED = "as released"


@dataclass(frozen=True)
class InputsRecord:
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

    settings: Settings
    record: InputsRecord
    items: Mapping[str, tuple[Any, ...]]
    differs: str = ""

    @property
    def all_items(self) -> list[Any]:
        return [item for items in self.items.values() for item in items]


def open_inputs(settings: Settings) -> BenchmarkInputs:
    """Read the benchmark from where the user has it."""
    if settings.data is None:
        raise UsageError(f"say where the data of {settings.benchmark} is: --data (data=) FILE, FOLDER or PACKAGE")
    place = os.path.abspath(settings.data) if Path(settings.data).exists() else settings.data
    if settings.benchmark == "bbq":
        return _bbq(replace(settings, data=place), place)
    flagged = None if settings.flagged is None else read_flagged(os.path.abspath(settings.flagged))
    settings = replace(settings, data=place, flagged=None if flagged is None else str(flagged.path))
    read = {"crows-pairs": read_crows_pairs, "stereoset": read_stereoset}[settings.benchmark]
    found: Any = read(place, flagged)
    every = _by_category([(item.bias_type, item) for item in found.items], settings)
    items = drawn_part(every, settings)
    record = InputsRecord(
        settings.benchmark,
        {"all": found.digest},
        found.version,
        {name: len(of) for name, of in items.items()},
        found.flagged,
        "" if flagged is None else flagged.digest,
        0,
        versions={"all": found.version},
        available=_available(every, items),
    )
    return BenchmarkInputs(settings, record, items, "" if found.version else _differs(record.digests))


def _bbq(settings: Settings, place: str) -> BenchmarkInputs:
    if settings.flagged is not None:
        raise UsageError("flagged items are left out of crows-pairs and stereoset; there is no such list for bbq")
    found = read_bbq(place)
    every = _by_category([(item.category, item) for item in found.items], settings)
    items = drawn_part(every, settings)
    measured = {name.removesuffix(" (names)") for name in items}
    digests = {name: digest for name, digest in found.digests.items() if name in measured}
    other = {name: digest for name, digest in digests.items() if name not in found.released}
    record = InputsRecord(
        "bbq",
        digests,
        "" if other else _RELEASED,
        {name: len(of) for name, of in items.items()},
        0,
        "",
        sum(n for name, n in found.without_target.items() if name in (settings.categories or (name,))),
        versions={name: "" if name in other else _RELEASED for name in digests},
        available=_available(every, items),
    )
    return BenchmarkInputs(settings, record, items, _differs(other) if other else "")


def _available(every: Mapping[str, tuple[Any, ...]], items: Mapping[str, tuple[Any, ...]]) -> dict[str, int]:
    return {name: len(of) for name, of in every.items() if len(items[name]) < len(of)}


def _differs(digests: Mapping[str, str]) -> str:
    named = ", ".join(f"{name} (digest {digest})" for name, digest in digests.items())
    return f"the data is not as its authors released it, but another version or a part of one: {named}"


def _by_category(items: Sequence[tuple[str, Any]], settings: Settings) -> dict[str, tuple[Any, ...]]:
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
