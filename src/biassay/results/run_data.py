"""Manifest, tables and arrays of a run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FORMAT_VERSION",
    "BaseRecord",
    "Manifest",
    "ModelRecord",
    "RunData",
    "TestRecord",
    "belongs_to",
    "group_rows_by_model",
    "make_model_index_finder",
]

FORMAT_VERSION = 1


def _normalize(value: Any) -> Any:
    """Python's own float, and one NaN for all, so that equal records are equal; what is so already is not copied."""
    if type(value) is dict:
        return (
            {key: _normalize(item) for key, item in value.items()}
            if any(map(_needs_normalizing, value.values()))
            else value
        )
    if isinstance(value, float):
        return math.nan if math.isnan(value) else float(value)
    return value


def _needs_normalizing(value: Any) -> bool:
    kind = type(value)
    if kind is float:
        return bool(value != value)
    if kind is dict:
        return any(map(_needs_normalizing, value.values()))
    return isinstance(value, float)


_FIELD_NAMES: dict[Any, tuple[str, ...]] = {}


def _get_field_names(kind: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass, looked up once: there may be thousands of records."""
    if kind not in _FIELD_NAMES:
        _FIELD_NAMES[kind] = tuple(own.name for own in dataclasses.fields(kind))
    return _FIELD_NAMES[kind]


class BaseRecord:
    """Normalises the floats of a frozen dataclass. A number that was not computed is None; NaN is one that was."""

    def __post_init__(self) -> None:
        for name in _get_field_names(type(self)):
            value = getattr(self, name)
            if (plain := _normalize(value)) is not value:
                object.__setattr__(self, name, plain)


@dataclass(frozen=True)
class ModelRecord:
    """A model of a run.

    Attributes
    ----------
    text : str
        As it was asked for.
    name, family, revision, settings
        As in `Identity`: what results call it, and what tells its weights and settings apart.
    texts, encoded : int
        Requests of the run, and those that the model had to answer for it; the others were kept from before.
    seconds : float
    tokens_in, tokens_out : int
        Tokens that an endpoint read and wrote for the run, as it says or else as estimated.
    measured : bool
        Whether its rows are complete.
    refused : str or None
        Why it has no rows.
    failed : str or None
        Why it could not be opened or asked; if the run goes on, that is tried again.
    words_lost : tuple of str
        Words that it does not know.
    notices : tuple of str
        What the user was told while it was measured.
    """

    text: str
    name: str
    family: str
    revision: str | None
    settings: dict[str, str]
    texts: int = 0
    encoded: int = 0
    seconds: float = 0.0
    measured: bool = False
    refused: str | None = None
    words_lost: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    failed: str | None = None
    notices: tuple[str, ...] = ()

    @property
    def options(self) -> str:
        """The settings as the column ``options`` writes them."""
        return ";".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class TestRecord:
    """A test of a run: its name, what it was asked with, and where that came from.

    ``assumed`` holds, by role, what finished texts were taken to be about where their file does not say it.
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
    """How a run was made.

    Attributes
    ----------
    study, package : str
        What was measured, and the distribution that holds the study.
    settings, inputs : dataclass instances
        Of the study: what was asked for, and what it was measured with (tests, groups, files) with their digests.
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
    """Everything a run measured and how.

    Attributes
    ----------
    manifest : Manifest
    tables : name -> rows
        Every row has ``model`` and ``options``, which say of which model of the manifest it is.
    arrays : "PLACE/NAME" -> array
        PLACE is that of the model in the manifest.
    """

    manifest: Manifest
    tables: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, compare=False)

    @property
    def results(self) -> tuple[Any, ...]:
        """The rows of the main table; outcomes come with the decisions of the run."""
        rows = self.tables.get("results", ())
        return self.decided_results if rows and hasattr(rows[0], "outcome") else rows

    @cached_property
    def decided_results(self) -> tuple[Any, ...]:
        """The records of the main table, each with the decision of the run."""
        from biassay.results.outcomes import join_decisions  # it needs the types of this module

        return join_decisions(self.tables.get("results", ()), self.tables.get("decisions", ()))

    def arrays_of(self, place: int) -> dict[str, NDArray[np.float64]]:
        """The arrays of one model, by name."""
        return self.arrays_by_model().get(str(place), {})

    def arrays_by_model(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """The arrays of every model that has some: by its place, as their names begin with it, and the rest of them."""
        found: dict[str, dict[str, NDArray[np.float64]]] = {}
        for name, array in self.arrays.items():
            place, _, own = name.partition("/")
            found.setdefault(place, {})[own] = array
        return found


def belongs_to(row: Any, record: ModelRecord) -> bool:
    """Does a row belong to a model? Rows of several runs put together also tell the weights apart."""
    revision = getattr(row, "model_revision", record.revision)
    return (row.model, row.options, revision) == (record.name, record.options, record.revision)


def make_model_index_finder(records: Sequence[ModelRecord]) -> Callable[[Any], int | None]:
    """Says of a row at which place its model stands, as `is_of` has it; None: it has none."""
    places: dict[tuple[str | None, ...], int] = {}
    for place, record in enumerate(records):
        key = record.name, record.options
        places.setdefault(key, place)
        places.setdefault((*key, record.revision), place)
    return lambda row: places.get(_make_model_key(row))


def group_rows_by_model(records: Sequence[ModelRecord], rows: Iterable[Any]) -> list[list[Any]]:
    """The rows of every model, in the order of the records."""
    place_of, found = make_model_index_finder(records), [list[Any]() for _ in records]
    for row in rows:
        place = place_of(row)
        if place is not None:
            found[place].append(row)
    return found


def _make_model_key(row: Any) -> tuple[str | None, ...]:
    return (row.model, row.options, row.model_revision) if hasattr(row, "model_revision") else (row.model, row.options)
