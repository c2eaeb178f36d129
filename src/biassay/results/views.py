"""Parts and groups of runs, and unique labels for their models."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.models.registry import get_publication
from biassay.results.run_data import ModelRecord, RunData, belongs_to, group_rows_by_model, make_model_index_finder

__all__ = [
    "ModelKey",
    "RunGroup",
    "RunSlice",
    "check_distinct_runs",
    "get_published_name",
    "label_models",
    "make_unique",
    "make_unique_labels",
    "model_key",
    "model_labels",
    "record_labels",
    "select_model",
    "select_tests_of_run",
    "short_name",
    "split_by_model",
]


ModelKey = tuple[str, str, str | None]
_OBJECT_BACKEND = "object"  # what stands before the colon in the name of an object
_HUB_BACKENDS = ("hf", "st")
_MODEL_NAME = re.compile(r"(?P<family>\w+):(?P<rest>.*?)(?: #\d+)?(?P<run> \[.*\])?", re.DOTALL)


def make_unique(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    names = itertools.chain((name,), (f"{name} #{number}" for number in itertools.count(2)))
    return next(free for free in names if free not in taken)


def model_key(row: Any) -> ModelKey:
    """What tells the models of a run apart, in its rows."""
    return row.model, row.options, getattr(row, "model_revision", None)


def model_labels(run: RunData) -> dict[ModelKey, str]:
    """A label for every model that has rows: the name that the user gave, or the last part of its own.

    The models of the manifest are told apart whether or not they have rows, so that a part of a run has the same
    labels. Models of several runs put together may differ in nothing but their weights: they get a
    number.
    """
    rows = {model_key(row): row for table in run.tables.values() for row in table}
    records, place_of = list(run.manifest.models), make_model_index_finder(run.manifest.models)
    places: dict[ModelKey, int] = {}
    for key, row in rows.items():
        place = place_of(row)
        if place is None:
            place = len(records)
            records.append(ModelRecord(row.model, row.model, "", key[2], _parse_options(row.options)))
        places[key] = place
    labels = make_unique_labels(records)
    return {key: labels[place] for key, place in places.items()}


def record_labels(run: RunData) -> list[str]:
    """The labels of the models of the manifest, in its order."""
    return make_unique_labels(run.manifest.models)


def get_published_name(record: ModelRecord) -> tuple[str, str]:
    """What papers call a model that is the one of its family, and the work to cite for it; empty for any other."""
    return get_publication(record.family)


def short_name(name: str) -> str:
    """The last part of a name on a hub, of a path or of a class path: of ``hf:org/model@main``, ``model``."""
    parts = _MODEL_NAME.fullmatch(name)
    return name if parts is None else _get_last_part(parts["family"], parts["rest"]) + (parts["run"] or "")


def _parse_options(options: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in options.split(";") if part)


def make_unique_labels(records: Sequence[ModelRecord]) -> list[str]:
    """Short names; of those that are the same with revision, folder, and the settings that differ, or else a number."""
    labels = [short_name(record.name) if _is_default(record) else record.name for record in records]
    forms: tuple[Callable[[ModelRecord], str], ...] = (_add_revision, _add_parent)
    for form in forms:
        for places in _find_clashes(labels):
            longer = {i: form(records[i]) for i in places if _is_default(records[i])}
            if len({*longer.values()}) > 1 or len(longer) < len(places):
                for i, label in longer.items():
                    labels[i] = label
    for places in _find_clashes(labels):
        names = dict.fromkeys(name for i in places for name in records[i].settings)
        differing = [name for name in names if len({records[i].settings.get(name) for i in places}) > 1]
        for i in places:
            own = ";".join(f"{name}={records[i].settings[name]}" for name in differing if name in records[i].settings)
            labels[i] += f" ({own})" if own else ""
    unique: dict[str, None] = {}
    taken = {*labels}
    for label in labels:
        own = label if label not in unique else make_unique(label, taken)
        unique[own] = None
        taken.add(own)
    return list(unique)


def _find_clashes(labels: Sequence[str]) -> Iterable[list[int]]:
    """The places of every label that several models have."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    return [several for several in places.values() if len(several) > 1]


def _is_default(record: ModelRecord) -> bool:
    """Is its name what the user typed for the model, not a name of the user's own?"""
    parts = _MODEL_NAME.fullmatch(record.name)
    return parts is not None and parts["family"] in (record.family.partition(":")[0], _OBJECT_BACKEND)


def _get_last_part(family: str, rest: str) -> str:
    if family in (_OBJECT_BACKEND, "python"):
        return re.split(r"[:.]", rest)[-1]
    return re.split(r"[/\\]", _strip_revision(family, rest))[-1] or rest


def _strip_revision(family: str, rest: str) -> str:
    """Without the revision of a hub and a slash at the end."""
    return (rest.partition("@")[0] if family in _HUB_BACKENDS else rest).rstrip("/\\")


def _add_revision(record: ModelRecord) -> str:
    parts = _MODEL_NAME.fullmatch(record.name)
    assert parts is not None  # it begins with its family
    family, rest = parts["family"], parts["rest"]
    revision = rest.partition("@")[2] if family in _HUB_BACKENDS else ""
    return _get_last_part(family, rest) + (f"@{revision}" if revision else "") + (parts["run"] or "")


def _add_parent(record: ModelRecord) -> str:
    """The folder before the name, as it was asked for where the name has none; of an object the module."""
    parts = _MODEL_NAME.fullmatch(record.name)
    assert parts is not None
    family, rest = parts["family"], parts["rest"]
    if family in (_OBJECT_BACKEND, "python"):
        return rest + (parts["run"] or "")
    asked = record.text.partition("?")[0].partition(":")[2]
    found = [re.split(r"[/\\]", _strip_revision(family, path)) for path in (rest, asked)]
    longest = max(found, key=lambda path: len(path) if path[-1] == found[0][-1] else 0)
    revision = _add_revision(record).removeprefix(_get_last_part(family, rest))
    return "/".join(longest[-2:]) + revision


@dataclass(frozen=True)
class RunGroup:
    """One run or several as one: ``run`` is what is shown, ``parts`` are the runs that it came from.

    ``differences`` says in what the runs differ that should be alike; it is empty unless that was asked for.
    """

    run: RunData
    parts: Mapping[str, RunData]
    differences: tuple[str, ...] = ()


def check_distinct_runs(runs: Mapping[str, RunData]) -> None:
    """Copies of one run are refused."""
    by_id: dict[str, str] = {}
    for name, run in runs.items():
        if run.manifest.run_id in by_id:
            raise UsageError(f"{by_id[run.manifest.run_id]} and {name} are copies of one run; leave one of them out")
        by_id[run.manifest.run_id] = name


_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class RunSlice:
    """``row`` is what it is about: the record of a model, or a row of one of its tables."""

    label: str
    row: Any
    tables: Mapping[str, tuple[Any, ...]]
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __getitem__(self, table: str) -> tuple[Any, ...]:
        """The rows of a table; none where there is no such table."""
        return self.tables.get(table, ())

    def first(self, table: str) -> Any | None:
        return next(iter(self[table]), None)

    def where(self, name: str, value: object) -> RunSlice:
        """The rows that have a value; tables without that column are left out."""
        missing = object()
        tables = {t: tuple(r for r in rows if getattr(r, name, missing) == value) for t, rows in self.tables.items()}
        return RunSlice(str(value), self.row, {table: rows for table, rows in tables.items() if rows}, self.arrays)

    def each(self, table: str, name: str) -> list[RunSlice]:
        """One slice for every row of a table: all rows that have the same value as it in a column."""
        found = ((row, self.where(name, getattr(row, name))) for row in self[table])
        return [RunSlice(one.label, row, one.tables, one.arrays) for row, one in found]


def split_by_model(run: RunData) -> list[RunSlice]:
    """The models that have rows, in the order of the manifest, each with a label of its own."""
    records, arrays, found = run.manifest.models, run.arrays_by_model(), list[RunSlice]()
    own = {name: group_rows_by_model(records, rows) for name, rows in run.tables.items()}
    for place, (record, label) in enumerate(zip(records, record_labels(run), strict=True)):
        tables = {name: tuple(rows[place]) for name, rows in own.items()}
        if any(tables.values()):
            found.append(RunSlice(label, record, tables, arrays.get(str(place), {})))
    return found


def select_model(run: RunData, place: int, name: str | None = None) -> RunData:
    """The part of a run about one of its models, which may get another name."""
    record = run.manifest.models[place]
    new = record if name is None else replace(record, name=name)
    tables = {
        table: tuple(replace(row, model=new.name) for row in rows if belongs_to(row, record))
        for table, rows in run.tables.items()
    }
    arrays = {f"0/{key}": array for key, array in run.arrays_of(place).items()}
    return replace(run, manifest=replace(run.manifest, models=(new,)), tables=tables, arrays=arrays)


def select_tests_of_run(run: RunData, patterns: Sequence[str]) -> RunData:
    """The part of a run about those of its tests that have a name or pattern given, as the whole was corrected."""

    def is_kept(name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    tests = tuple(test for test in run.manifest.inputs.tests if is_kept(test.name))

    def is_row_kept(row: Any) -> bool:
        name = getattr(row, "test", None) or getattr(row, "item", None)  # a decision names its test as item
        return bool(tests) if name is None else is_kept(name)

    tables = {name: tuple(filter(is_row_kept, rows)) for name, rows in run.tables.items()}
    inputs = replace(run.manifest.inputs, tests=tests)
    return RunData(replace(run.manifest, inputs=inputs), tables, run.arrays)


def label_models(runs: Mapping[str, Mapping[str, _T]]) -> dict[str, _T]:
    """Models of several runs by label; one that several runs have is named with its run."""
    labels = [label for models in runs.values() for label in models]
    named: dict[str, _T] = {}
    for name, models in runs.items():
        for label, one in models.items():
            named[make_unique(f"{label} [{name}]" if labels.count(label) > 1 else label, named)] = one
    return named
