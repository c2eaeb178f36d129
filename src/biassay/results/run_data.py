"""Manifest, tables and arrays of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import Identity
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
