"""What a study is: what it asks of a model, and how it measures the answers.

Steps that all studies share (asking, keeping, saving, resuming, showing) are in `biassay.runs` and `biassay.pages`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.errors import RunFolderError, UnknownNameError, UsageError
from biassay.models.family import Ability
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.storage import MANIFEST, Fault, Older, Types
from biassay.results.tables import TableSpec
from biassay.studies.settings import checked_settings
from biassay.texts.contexts import Contexts
from biassay.texts.requests import Likelihood, Prompt

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = [
    "Ability",
    "Array",
    "ContextRequests",
    "Event",
    "Inputs",
    "Lost",
    "Notice",
    "Progress",
    "Requests",
    "Row",
    "Study",
    "Tables",
    "checked",
]

Tables = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class ContextRequests:
    """Words in contexts: those of a file, cut to a window of words, and how their vectors are kept."""

    contexts: Contexts
    words: tuple[str, ...]
    window: int | None = None
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class Requests:
    """Everything that a study asks of one model.

    ``readings`` are names of readings of the texts that are wanted besides the model's own: some of `Abilities`.
    """

    texts: Sequence[str] = ()
    readings: Sequence[str] = ()
    contexts: ContextRequests | None = None
    blanks: Sequence[Any] = ()
    prompts: Sequence[Prompt] = ()
    likelihoods: Sequence[Likelihood] = ()


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    table: str
    record: Any


@dataclass(frozen=True, eq=False)
class Array:
    """An array of the model that is measured; float32 is stored as it is."""

    name: str
    values: NDArray[np.float64] | NDArray[np.float32]


@dataclass(frozen=True)
class Progress:
    """How far measuring is: so many of all ``unit``."""

    unit: str
    done: int
    total: int


@dataclass(frozen=True)
class Notice:
    """Something the user should read while it goes on."""

    text: str


@dataclass(frozen=True)
class Lost:
    """Words that the model does not know."""

    words: tuple[str, ...]


Event = Row | Array | Progress | Notice | Lost


class Inputs(Protocol):
    """Settings, and what they name: tests, groups, files, read and checked.

    ``record`` is stored in the manifest. It holds digests, so that a run goes on only with the same inputs.
    """

    @property
    def settings(self) -> Any: ...

    @property
    def record(self) -> Any: ...


class Study(ABC):
    """A study. What it does not define is what every study gets.

    Attributes
    ----------
    name : str
        In manifests and on the command line.
    package : str
        The distribution that holds it.
    types : Types
        Its settings, inputs and tables; the first table is named "results" and is the one in results.tsv.
    """

    name: str
    title: str
    package: str = "biassay"
    types: Types

    @cached_property
    def presenter(self) -> Presenter:
        """How its runs are shown: by default their findings and tables."""
        from biassay.pages.plain import Plain  # rich and jinja2 are for showing, not for measuring

        return Plain(self.title, self.types.tables, self.findings)

    def packages(self, settings: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Distributions whose versions are recorded, for they can change a number."""
        return (self.package,)

    @abstractmethod
    def open(self, settings: Any) -> Inputs:
        """Read what the settings name, and refuse what cannot be measured."""

    @abstractmethod
    def asks(self, settings: Any) -> tuple[Ability, ...]:
        """The abilities that a model needs, one or several.

        A model that is opened for several may have other settings for each; rows show those of the first.
        """

    def together(self, settings: Any) -> bool:  # noqa: ARG002
        """Is a model compared with the others while it is measured?

        False: each model is asked and then measured, one after the other. True: all are asked first, and ``measure``
        gets the answers of all of them as ``everyone``.
        """
        return False

    def decides(self, inputs: Any) -> Any:  # noqa: ARG002
        """All of the inputs that `measure` goes by, as records whose ``repr`` tells everything: no sets, no arrays.

        With settings, answers and biassay's code it decides every number, so what was measured is kept under it. None:
        models are measured every time. A study of another package adds what identifies its own code.
        """
        return None

    @abstractmethod
    def requests(self, inputs: Any, abilities: Abilities) -> Requests:
        """What is asked of a model."""

    @abstractmethod
    def measure(self, inputs: Any, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:
        """Rows, arrays and progress of one model: a pure function of answers.

        ``everyone`` holds the answers of all models if `together` is true, and otherwise those of ``model`` alone.
        """

    def complete(self, settings: Any, tables: Tables) -> Tables:  # noqa: ARG002
        """The tables with what depends on all their rows, such as corrections for the number of tests."""
        return tables

    def findings(self, run: RunData) -> Sequence[Finding]:  # noqa: ARG002
        """What the run shows, at most one finding per model and item."""
        return ()

    def failed(self, run: RunData) -> bool:  # noqa: ARG002
        """Was nothing measured of a model, or did something fail? The command line then ends with exit code 1."""
        return False

    def check_same(self, before: Any, now: Any) -> None:
        """Refuse to go on with other inputs than a run began with."""
        for field in dataclasses.fields(before):
            was, is_now = getattr(before, field.name), getattr(now, field.name)
            if was != is_now:
                raise UsageError(f"{field.name} changed since the run began; start a new run")

    def upgrade(self, folder: Path, manifest: dict[str, Any], results: dict[str, Any]) -> Older:  # noqa: ARG002
        """A folder of an older format, as parsed, in the present one; what it does not hold stays missing."""
        raise RunFolderError(f"{folder}: runs of {self.name} in format {manifest['format_version']} cannot be read")

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        """Yield what is wrong with a run that was read: by default, settings that nobody could have chosen.

        A study whose tables or findings are computed from arrays also yields arrays that give other numbers than the
        stored ones. What is yielded first becomes an error that names the file.
        """
        try:
            checked_settings(run.manifest.settings)
        except UsageError as error:
            yield Fault(MANIFEST, f"settings: {error}")

    def only(self, run: RunData, item: str) -> RunData:
        """The part of a run that is about one item: rows that name it, and tables that name no items as they are.

        Corrections stay those over the whole run: to look at one test does not make it the only one.
        """
        keys = {spec.name: spec.key for spec in self.types.tables}
        names = {table: [_names(row, keys[table]) for row in rows] for table, rows in run.tables.items()}
        known = dict.fromkeys(name for rows in names.values() for own in rows for name in own)
        if item not in known:
            raise UnknownNameError("item", item, known, f"(items of this run: {', '.join(list(known)[:20])})")
        tables = {
            table: tuple(row for row, own in zip(rows, names[table], strict=True) if item in (own or (item,)))
            for table, rows in run.tables.items()
        }
        return dataclasses.replace(run, tables=tables)


def _names(row: Any, key: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(row, name)) for name in (*key, "test", "group", "measure", "item") if hasattr(row, name))


def checked(study: Study) -> Study:
    """The study, if its tables and settings are well formed; an error names what is not."""
    tables = study.types.tables
    if not tables or tables[0].name != "results":
        raise UsageError(
            f"study {study.name!r}: its first table must be named 'results', for it is the one in results.tsv"
        )
    reserved = {"manifest", "findings"} & {table.name for table in tables}
    if reserved:
        raise UsageError(f"study {study.name!r}: a table cannot be named {' or '.join(reserved)}")
    for table in tables:
        _check_table(study, table)
    bare = [field.name for field in dataclasses.fields(study.types.settings) if "rule" not in field.metadata]
    if bare:
        raise UsageError(f"study {study.name!r}: settings are fields made by setting(...); {', '.join(bare)} is not")
    return study


def _check_table(study: Study, table: TableSpec) -> None:
    where = f"study {study.name!r}, table {table.name!r}"
    fields = [] if table.record is None else [field.name for field in dataclasses.fields(table.record)]
    lacking = [name for name in ("model", "options") if table.record is not None and name not in fields]
    if lacking:
        raise UsageError(f"{where}: every record says of which model it is; it lacks {' and '.join(lacking)}")
    if callable(table.columns):
        return
    columns = [column.name for column in table.columns]
    named = [*table.key, *table.shown, *([table.number] if table.number else [])]
    unknown = [name for name in named if name not in columns]
    if table.record is not None and table.rows is None:
        unknown += [
            c.name
            for c in table.columns
            if c.get is None and not hasattr(table.record, c.name) and c.name not in fields
        ]
    if unknown:
        raise UsageError(f"{where}: there is no column {', '.join(map(repr, unknown))}; it has {', '.join(columns)}")
