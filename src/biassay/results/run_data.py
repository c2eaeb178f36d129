"""Represent the manifest, tables and arrays of a run, and label its models uniquely."""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.models.base import Identity
from biassay.models.registry import get_publication
from biassay.results.tables import column, make_columns, table_row

FORMAT_VERSION = 1


def none_if_nan(value: float | None) -> float | None:
    """Return a number, or None for NaN."""
    return None if value is None or math.isnan(value) else float(value)


def get_model_fields(identity: Identity) -> dict[str, Any]:
    """Return the fields of a row that name its model."""
    return {"model": identity.name, "options": identity.options, "model_revision": identity.revision}


def copy_fields(source: object, *names: str) -> dict[str, Any]:
    """Return attributes of an object by name, as fields of a record."""
    return {name: getattr(source, name) for name in names}


def _normalize(value: Any) -> Any:
    """Convert NumPy floats and every NaN to Python objects that compare equal."""
    if isinstance(value, dict):
        return {key: _normalize(item) for key, item in value.items()}
    if isinstance(value, float):
        return math.nan if math.isnan(value) else float(value)
    return value


class BaseRecord:
    """Frozen dataclass with normalized floats. None was not computed; NaN is the result of a computation."""

    def __post_init__(self) -> None:
        for name, value in [*vars(self).items()]:
            if isinstance(value, float | dict):
                object.__setattr__(self, name, _normalize(value))


@table_row
class ModelRow(BaseRecord):
    """Base of the rows of a table, each of which names its model."""

    model: str = column("model", "The model's name.")
    options: str = column("options", "Its settings.")


@table_row
class RevisionRow(ModelRow):
    """Base of rows that also say which weights the model had."""

    model_revision: str | None = column("revision", "Fingerprint of the model's weights.")


MODEL_COLUMNS = make_columns(ModelRow)
"""Columns of every table that identify the model of a row."""


@dataclass(frozen=True)
class ModelRecord:
    """A model of a run.

    Attributes
    ----------
    text : str
        The model string as the user typed it.
    name, backend, revision, settings
        As in `Identity`.
    texts, encoded : int
        Requests of the run, and those that the model answered; responses to the others were cached.
    seconds : float
    tokens_in, tokens_out : int
        Input and output tokens of an endpoint, as reported or else estimated.
    measured : bool
        Whether its rows are complete.
    skipped : str or None
        Reason why the model has no rows.
    failed : str or None
        Reason why the model failed; a resumed run retries it.
    oov_words : tuple of str
        Out-of-vocabulary words.
    warnings : tuple of str
        Warnings printed during the measurement.
    part : str or None
        Which part of the requests was measured, because the budget did not allow all of them.
    """

    text: str
    name: str
    backend: str
    revision: str | None
    settings: dict[str, str]
    texts: int = 0
    encoded: int = 0
    seconds: float = 0.0
    measured: bool = False
    skipped: str | None = None
    oov_words: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    failed: str | None = None
    warnings: tuple[str, ...] = ()
    part: str | None = None

    @property
    def options(self) -> str:
        """Settings in the form of the column ``options``."""
        return ";".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class TestRecord:
    """A test of a run: its name, its stimuli, and their source.

    ``assumed`` has, by role, the assumed stimuli of finished texts whose file does not state them.
    """

    __test__ = False

    name: str
    pattern: str
    digest: str
    source: str
    citation: str
    licence: str
    version: str
    assumed: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest(BaseRecord):
    """Settings, inputs, models and versions of a run.

    Attributes
    ----------
    study, package : str
        Settings and models of a run, and the distribution that contains the study.
    settings, inputs : dataclass instances
        Records of the study: settings, and inputs (tests, groups, files) with their digests.
    budget : int or None
        The most tokens that endpoints may use over the whole run; a resumed run keeps it. None: no limit.
    """

    format_version: int
    run_id: str
    study: str
    package: str
    status: Literal["running", "complete"]
    created: str
    finished: str | None
    versions: dict[str, str]
    models: tuple[ModelRecord, ...]
    settings: Any
    inputs: Any
    budget: int | None = None


@dataclass(frozen=True, repr=False)
class RunData:
    """Results of a run, with its manifest.

    Attributes
    ----------
    manifest : Manifest
    tables : name -> rows
        Every row has ``model`` and ``options``, which identify a model of the manifest.
    arrays : "PLACE/NAME" -> array
        PLACE is the index of the model in the manifest.
    """

    manifest: Manifest
    tables: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, compare=False)

    @property
    def results(self) -> tuple[Any, ...]:
        """Rows of the main table; outcomes include the decisions of the run."""
        rows = self.tables.get("results", ())
        return self.decided_results if rows and hasattr(rows[0], "outcome") else rows

    @cached_property
    def decided_results(self) -> tuple[Any, ...]:
        """The records of the main table, each with the decision of the run."""
        from biassay.results.outcomes import get_decided  # it needs the types of this module

        return get_decided(self, "results")

    def get_arrays(self, model_index: int) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of one model by name."""
        return self.arrays_by_model().get(str(model_index), {})

    def arrays_by_model(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """Return the arrays by model index and name."""
        found: dict[str, dict[str, NDArray[np.float64]]] = {}
        for name, array in self.arrays.items():
            index, _, own = name.partition("/")
            found.setdefault(index, {})[own] = array
        return found


def belongs_to(row: Any, record: ModelRecord) -> bool:
    """Return whether a row belongs to a model. Rows of merged runs also differ by weights."""
    revision = getattr(row, "model_revision", record.revision)
    return (row.model, row.options, revision) == (record.name, record.options, record.revision)


def make_model_index_finder(records: Sequence[ModelRecord]) -> Callable[[Any], int | None]:
    """Return a function from a row to the index of its model, or None."""
    indices: dict[tuple[str | None, ...], int] = {}
    for index, record in enumerate(records):
        key = record.name, record.options
        indices.setdefault(key, index)
        indices.setdefault((*key, record.revision), index)
    return lambda row: indices.get(_make_model_key(row))


def group_rows_by_model(records: Sequence[ModelRecord], rows: Iterable[Any]) -> list[list[Any]]:
    """Return the rows of every model, in the order of the records."""
    find_index, found = make_model_index_finder(records), [list[Any]() for _ in records]
    for row in rows:
        index = find_index(row)
        if index is not None:
            found[index].append(row)
    return found


def _make_model_key(row: Any) -> tuple[str | None, ...]:
    return (row.model, row.options, row.model_revision) if hasattr(row, "model_revision") else (row.model, row.options)


ModelKey = tuple[str, str, str | None]
_HUB_BACKENDS = ("hf", "st")
_BUNDLED_LABELS = {"use": "USE"}
_MODEL_NAME = re.compile(r"(?P<backend>\w+):(?P<rest>.*?)(?: #\d+)?(?P<run> \[.*\])?", re.DOTALL)


def make_unique(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number if it is taken."""
    names = itertools.chain((name,), (f"{name} #{number}" for number in itertools.count(2)))
    return next(free for free in names if free not in taken)


def model_key(row: Any) -> ModelKey:
    """Return the key of the model of a row."""
    return row.model, row.options, getattr(row, "model_revision", None)


def model_labels(run: RunData) -> dict[ModelKey, str]:
    """Label every model that has rows: the user's label, or the last part of the model's name.

    Labels are unique over the manifest, whether or not models have rows, so that a part of a run has the same labels.
    Models of combined runs that differ only in their weights get a number.
    """
    rows = {model_key(row): row for table in run.tables.values() for row in table}
    records, find_index = list(run.manifest.models), make_model_index_finder(run.manifest.models)
    indices: dict[ModelKey, int] = {}
    for key, row in rows.items():
        index = find_index(row)
        if index is None:
            index = len(records)
            settings = dict(part.partition("=")[::2] for part in row.options.split(";") if part)
            records.append(ModelRecord(row.model, row.model, "", key[2], settings))
        indices[key] = index
    labels = make_unique_labels(records)
    return {key: labels[index] for key, index in indices.items()}


def record_labels(run: RunData) -> list[str]:
    """Return the labels of the models of the manifest, in its order."""
    return make_unique_labels(run.manifest.models)


def get_published_name(record: ModelRecord) -> tuple[str, str]:
    """Return the published name of a model and the work to cite; empty for any other."""
    return get_publication(record.backend)


def short_name(name: str) -> str:
    """Return the last part of a hub name, path or class path: ``model`` for ``hf:org/model@main``."""
    return _list_names(name, "")[0]


def _list_names(name: str, text: str) -> tuple[str, str, str]:
    """Return three names of a model: the last part, that with the revision, and that with the parent folder or module.

    `text` is the model string as it was typed, whose path may be longer.
    """
    parts = _MODEL_NAME.fullmatch(name)
    if parts is None:  # a bundled model or a label
        return (_BUNDLED_LABELS.get(name, name),) * 3
    rest, run = parts["rest"], parts["run"] or ""
    if parts["backend"] in ("object", "python"):
        last = re.split(r"[:.]", rest)[-1]
        return last + run, last + run, rest + run
    rest, _, revision = rest.partition("@") if parts["backend"] in _HUB_BACKENDS else (rest, "", "")
    path, typed = (re.split(r"[/\\]", one.rstrip("/\\")) for one in (rest, text.partition("?")[0].partition(":")[2]))
    longest = typed if typed[-1] == path[-1] and len(typed) > len(path) else path
    last, tail = path[-1] or rest, (f"@{revision}" if revision else "") + run
    return last + run, last + tail, "/".join(longest[-2:]) + tail


def make_unique_labels(records: Sequence[ModelRecord]) -> list[str]:
    """Return short labels; add revision, folder, differing settings or a number where they clash."""
    forms = [_list_names(record.name, record.text) if _is_default(record) else (record.name,) * 3 for record in records]
    labels = [form[0] for form in forms]
    for length in (1, 2):
        for indices in _find_clashes(labels):
            longer = {i: forms[i][length] for i in indices}
            if len({*longer.values()}) > 1:
                for i, label in longer.items():
                    labels[i] = label
    for indices in _find_clashes(labels):
        names = dict.fromkeys(name for i in indices for name in records[i].settings)
        differing = [name for name in names if len({records[i].settings.get(name) for i in indices}) > 1]
        for i in indices:
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
    """Yield the indices of every label that several models have."""
    indices = group_pairs((label, index) for index, label in enumerate(labels))
    return [several for several in indices.values() if len(several) > 1]


def _is_default(record: ModelRecord) -> bool:
    """Return whether the name is the string that the user typed, not a chosen label."""
    parts = _MODEL_NAME.fullmatch(record.name)
    if parts is None:
        return record.name == record.backend in _BUNDLED_LABELS
    return parts["backend"] in (record.backend.partition(":")[0], "object")


@dataclass(frozen=True)
class RunGroup:
    """One run, or several combined into one: ``run`` is the combined run, ``parts`` are the runs.

    ``differences`` lists settings that differ although they should be alike; empty unless requested.
    """

    run: RunData
    parts: Mapping[str, RunData]
    differences: tuple[str, ...] = ()


def group_each(runs: Mapping[str, RunData]) -> tuple[RunGroup, ...]:
    """Return one group per run."""
    return tuple(RunGroup(run, {name: run}) for name, run in runs.items())


def check_distinct_runs(runs: Mapping[str, RunData]) -> None:
    """Raise an error if two runs are copies of one run."""
    by_id: dict[str, str] = {}
    for name, run in runs.items():
        if run.manifest.run_id in by_id:
            raise UsageError(f"{by_id[run.manifest.run_id]} and {name} are copies of one run; leave one of them out")
        by_id[run.manifest.run_id] = name


_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class RunSlice:
    """``row`` is the record of a model, or a row of one of its tables."""

    label: str
    row: Any
    tables: Mapping[str, tuple[Any, ...]]
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    def __getitem__(self, table: str) -> tuple[Any, ...]:
        """Return the rows of a table; none if there is no such table."""
        return self.tables.get(table, ())

    def first(self, table: str) -> Any | None:
        """Return the first row of a table, or None."""
        return next(iter(self[table]), None)

    def where(self, name: str, value: object) -> RunSlice:
        """Select the rows with a value; leave out tables without that column."""
        missing = object()
        tables = {t: tuple(r for r in rows if getattr(r, name, missing) == value) for t, rows in self.tables.items()}
        return RunSlice(str(value), self.row, {table: rows for table, rows in tables.items() if rows}, self.arrays)

    def each(self, table: str, name: str) -> list[RunSlice]:
        """Return one slice per row of a table: all rows with the same value in a column."""
        found = ((row, self.where(name, getattr(row, name))) for row in self[table])
        return [RunSlice(view.label, row, view.tables, view.arrays) for row, view in found]


def split_by_model(run: RunData) -> list[RunSlice]:
    """Return the models that have rows, in the order of the manifest, with unique labels."""
    records, arrays, found = run.manifest.models, run.arrays_by_model(), list[RunSlice]()
    own = {name: group_rows_by_model(records, rows) for name, rows in run.tables.items()}
    for index, (record, label) in enumerate(zip(records, record_labels(run), strict=True)):
        tables = {name: tuple(rows[index]) for name, rows in own.items()}
        if any(tables.values()):
            found.append(RunSlice(label, record, tables, arrays.get(str(index), {})))
    return found


def select_model(run: RunData, model_index: int, name: str | None = None) -> RunData:
    """Select the part of a run about one of its models.

    Parameters
    ----------
    run : RunData
        Run of one or more models.
    model_index : int
        Index of the model in the manifest.
    name : str, optional
        New name of the model.

    Returns
    -------
    RunData
        Run of one model.
    """
    record = run.manifest.models[model_index]
    new = record if name is None else replace(record, name=name)
    tables = {
        table: tuple(replace(row, model=new.name) for row in rows if belongs_to(row, record))
        for table, rows in run.tables.items()
    }
    arrays = {f"0/{key}": array for key, array in run.get_arrays(model_index).items()}
    return replace(run, manifest=replace(run.manifest, models=(new,)), tables=tables, arrays=arrays)


def select_tests_of_run(run: RunData, patterns: Sequence[str]) -> RunData:
    """Select the part of a run about tests by name or pattern; corrections are those of the whole run."""

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
    """Label models of several runs; a label that several runs have gets the name of its run."""
    labels = [label for models in runs.values() for label in models]
    named: dict[str, _T] = {}
    for name, models in runs.items():
        for label, model in models.items():
            named[make_unique(f"{label} [{name}]" if labels.count(label) > 1 else label, named)] = model
    return named
