"""The rows of a run about one thing: a model, and of it a group or a measure."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.results.data import RunData, is_of, rows_by_model
from biassay.results.labels import numbered, record_labels

__all__ = ["Slice", "by_model", "labelled", "run_of_model", "run_of_tests"]

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Slice:
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

    def where(self, name: str, value: object) -> Slice:
        """The rows that have a value; tables without that column are left out."""
        missing = object()
        tables = {t: tuple(r for r in rows if getattr(r, name, missing) == value) for t, rows in self.tables.items()}
        return Slice(str(value), self.row, {table: rows for table, rows in tables.items() if rows}, self.arrays)

    def each(self, table: str, name: str) -> list[Slice]:
        """One slice for every row of a table: all rows that have the same value as it in a column."""
        found = ((row, self.where(name, getattr(row, name))) for row in self[table])
        return [Slice(one.label, row, one.tables, one.arrays) for row, one in found]


def by_model(run: RunData) -> list[Slice]:
    """The models that have rows, in the order of the manifest, each with a label of its own."""
    records, arrays, found = run.manifest.models, run.arrays_by_model(), list[Slice]()
    own = {name: rows_by_model(records, rows) for name, rows in run.tables.items()}
    for place, (record, label) in enumerate(zip(records, record_labels(run), strict=True)):
        tables = {name: tuple(rows[place]) for name, rows in own.items()}
        if any(tables.values()):
            found.append(Slice(label, record, tables, arrays.get(str(place), {})))
    return found


def run_of_model(run: RunData, place: int, name: str | None = None) -> RunData:
    """The part of a run about one of its models, which may get another name."""
    record = run.manifest.models[place]
    new = record if name is None else replace(record, name=name)
    tables = {
        table: tuple(replace(row, model=new.name) for row in rows if is_of(row, record))
        for table, rows in run.tables.items()
    }
    arrays = {f"0/{key}": array for key, array in run.arrays_of(place).items()}
    return replace(run, manifest=replace(run.manifest, models=(new,)), tables=tables, arrays=arrays)


def run_of_tests(run: RunData, patterns: Sequence[str]) -> RunData:
    """The part of a run about those of its tests that have a name or pattern given, as the whole was corrected."""

    def is_kept(name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    tests = tuple(test for test in run.manifest.inputs.tests if is_kept(test.name))
    tables = {
        name: tuple(row for row in rows if (is_kept(row.test) if hasattr(row, "test") else tests))
        for name, rows in run.tables.items()
    }
    inputs = replace(run.manifest.inputs, tests=tests)
    return RunData(replace(run.manifest, inputs=inputs), tables, run.arrays)


def labelled(runs: Mapping[str, Mapping[str, _T]]) -> dict[str, _T]:
    """Models of several runs by label; one that several runs have is named with its run."""
    labels = [label for models in runs.values() for label in models]
    named: dict[str, _T] = {}
    for name, models in runs.items():
        for label, one in models.items():
            named[numbered(f"{label} [{name}]" if labels.count(label) > 1 else label, named)] = one
    return named
