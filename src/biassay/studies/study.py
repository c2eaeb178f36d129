"""Interface of a study: its requests, its measurement, derived seeds and example replies.

Fetching, caching, saving, resuming and rendering are shared by all studies and live in `biassay.runs` and
`biassay.reporting`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.corpus.contexts import Contexts
from biassay.errors import UnknownNameError, UsageError
from biassay.models.backend import Capability
from biassay.prompts.requests import LikelihoodRequest, Prompt
from biassay.results.decisions import correct_by_model
from biassay.results.findings import Finding
from biassay.results.outcomes import Decision, ResultRecord
from biassay.results.run_data import RunData
from biassay.results.run_folder import MANIFEST_JSON, Fault, StudySchema
from biassay.results.tables import Column, TableSpec
from biassay.results.views import model_key
from biassay.studies.settings import validate_settings

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter


__all__ = [
    "REPLY_COLUMN",
    "Array",
    "Capability",
    "ContextRequests",
    "Event",
    "Inputs",
    "Progress",
    "Requests",
    "Row",
    "Study",
    "StudyWarning",
    "Tables",
    "UnknownWords",
    "derive_seed",
    "shorten_reply",
    "take_examples",
    "validate_study",
]


def derive_seed(seed: int, *parts: str) -> list[int]:
    """Derive the seed of one random step from the run's seed, the name of the test and the purpose."""
    digest = hashlib.blake2b(" ".join(parts).encode(), digest_size=8).digest()
    return [seed, int.from_bytes(digest)]


_PER_KIND = 3
_MAX_CHARACTERS = 500
_Reply = TypeVar("_Reply")


def take_examples(replies: Iterable[tuple[str, _Reply]], taken: Counter[str] | None = None) -> Iterator[_Reply]:
    """Yield the first three replies of every kind, counting those in ``taken``."""
    seen = Counter[str]() if taken is None else taken
    for kind, reply in replies:
        seen[kind] += 1
        if seen[kind] <= _PER_KIND:
            yield reply


def shorten_reply(text: str) -> str:
    """Shorten a reply for a table of examples, and replace characters that cannot be written."""
    text = text[:_MAX_CHARACTERS] if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
    return text.encode("utf-8", "replace").decode()


REPLY_COLUMN = Column(
    "reply",
    "reply",
    f"Its first {_MAX_CHARACTERS} characters; ⏎ ends a line.",
    get=lambda row: " ⏎ ".join(row.reply.splitlines()),
)
"""Column of a table of example replies."""


Tables = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class ContextRequests:
    """Words in contexts of a file: the window of words around each, and the precision of stored vectors."""

    contexts: Contexts
    words: tuple[str, ...]
    window: int | None = None
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class Requests:
    """All requests of a study to one model.

    ``readings`` names further representations of the texts, out of those that `Capabilities` lists.
    """

    texts: Sequence[str] = ()
    readings: Sequence[str] = ()
    contexts: ContextRequests | None = None
    blanks: Sequence[Any] = ()
    prompts: Sequence[Prompt] = ()
    likelihoods: Sequence[LikelihoodRequest] = ()


@dataclass(frozen=True)
class Row:
    """A row of a table of the study."""

    table: str
    record: Any


@dataclass(frozen=True, eq=False)
class Array:
    """An array of the measured model. float32 is stored as float32, anything else as float64."""

    name: str
    values: NDArray[np.float64] | NDArray[np.float32]


@dataclass(frozen=True)
class Progress:
    """Progress of a measurement: ``done`` out of ``total`` items of kind ``unit``."""

    unit: str
    done: int
    total: int


@dataclass(frozen=True)
class StudyWarning:
    """A message shown to the user during the run and stored in the manifest."""

    text: str


@dataclass(frozen=True)
class UnknownWords:
    """Words that are out of the model's vocabulary."""

    words: tuple[str, ...]


Event = Row | Array | Progress | StudyWarning | UnknownWords


class Inputs(Protocol):
    """Loaded and checked inputs of a study: its settings and the tests, groups or files they name.

    ``record`` is stored in the manifest. It holds digests, so that a run resumes only with the same inputs.
    """

    @property
    def settings(self) -> Any:
        """Settings of the run."""

    @property
    def record(self) -> Any:
        """Description of the inputs, with digests."""


class Study(ABC):
    """A study: what it requests from a model, and how it measures the outputs.

    Attributes
    ----------
    name : str
        Name in manifests and on the command line.
    title : str
        Title of its reports.
    package : str
        Distribution that holds the study.
    schema : StudySchema
        Types of its settings, inputs and tables. The first table is named "results" and is written to results.tsv.
    """

    name: str
    title: str
    package: str = "biassay"
    schema: StudySchema

    @cached_property
    def presenter(self) -> Presenter:
        """Presenter of its runs. The default shows findings and tables."""
        from biassay.reporting.default_report import (
            DefaultPresenter,  # rich and jinja2 are for showing, not for measuring
        )

        return DefaultPresenter(self.title, self.schema.tables, self.findings)

    def packages(self, settings: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Return the distributions whose versions are recorded because they can change a number."""
        return (self.package,)

    @abstractmethod
    def load_inputs(self, settings: Any) -> Inputs:
        """Load the inputs that the settings name. Raise UsageError if they cannot be measured."""

    @abstractmethod
    def required_capabilities(self, settings: Any) -> tuple[Capability, ...]:
        """Return the capabilities that a model needs.

        A model opened for several capabilities may have different settings for each; rows show those of the first.
        """

    def needs_all_models(self, settings: Any) -> bool:  # noqa: ARG002
        """Return whether measuring one model needs the outputs of all models.

        If True, the outputs of all models are fetched first and passed to `measure` as ``all_outputs``. If False,
        models are fetched and measured one after the other.
        """
        return False

    def cache_key(self, inputs: Any) -> Any:  # noqa: ARG002
        """Return everything in the inputs that `measure` depends on, or None to measure every time.

        Measurements are cached under the ``repr`` of this value together with the settings, the outputs and the state
        of biassay's code, so it must not hold sets or arrays. A study of another package adds its own version.
        """
        return None

    @abstractmethod
    def requests(self, inputs: Any, capabilities: Capabilities) -> Requests:
        """Return the requests to a model with these capabilities."""

    @abstractmethod
    def measure(self, inputs: Any, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
        """Yield the rows, arrays and progress of one model: a pure function of its outputs.

        ``all_outputs`` holds the outputs of all models if `needs_all_models` returns True, otherwise only ``model``.
        """

    def finalize_tables(self, settings: Any, tables: Tables) -> Tables:  # noqa: ARG002
        """Return the tables with what depends on all rows, such as corrections for multiple testing."""
        return tables

    def decide(self, settings: Any, records: Sequence[ResultRecord]) -> tuple[Decision, ...]:
        """Correct the p-values of a run and grade the evidence of every record of the main table.

        By default, p-values are corrected over the social-bias questions of each model.
        """
        return correct_by_model(records, settings.alpha)

    def findings(self, run: RunData) -> Sequence[Finding]:  # noqa: ARG002
        """Return the findings of a run, at most one per model and item."""
        return ()

    def has_failures(self, run: RunData) -> bool:  # noqa: ARG002
        """Return whether a model has no measured row or a row failed. The command then exits with code 1."""
        return False

    def check_same(self, before: Any, now: Any) -> None:
        """Raise UsageError if a resumed run has other inputs than it started with."""
        for field in dataclasses.fields(before):
            was, is_now = getattr(before, field.name), getattr(now, field.name)
            if was != is_now:
                raise UsageError(f"{field.name} changed since the run began; start a new run")

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        """Yield the faults of a stored run. The first one becomes an error that names the file.

        By default, settings are validated. A study that computes results from arrays also yields arrays that do not
        reproduce the stored numbers.
        """
        try:
            validate_settings(run.manifest.settings)
        except UsageError as error:
            yield Fault(MANIFEST_JSON, f"settings: {error}")

    def select_item(self, run: RunData, item: str) -> RunData:
        """Return the part of a run about one item: its rows, and tables that do not name items unchanged.

        Corrections stay those of the whole run.
        """
        keys = {spec.name: spec.key for spec in self.schema.tables}
        names = {table: [_get_names(row, keys[table]) for row in rows] for table, rows in run.tables.items()}
        known = dict.fromkeys(name for rows in names.values() for own in rows for name in own)
        if item not in known:
            raise UnknownNameError("item", item, known, f"(items of this run: {', '.join(list(known)[:20])})")
        tables = {
            table: tuple(row for row, own in zip(rows, names[table], strict=True) if item in (own or (item,)))
            for table, rows in run.tables.items()
        }
        if "decisions" in tables:
            records = (row for rows in tables.values() for row in rows if isinstance(row, ResultRecord))
            kept = {(model_key(record), record.item) for record in records}
            tables["decisions"] = tuple(row for row in run.tables["decisions"] if (model_key(row), row.item) in kept)
        return dataclasses.replace(run, tables=tables)


def _get_names(row: Any, key: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(row, name)) for name in (*key, "test", "group", "measure", "item") if hasattr(row, name))


def validate_study(study: Study) -> Study:
    """Return the study if its tables and settings are well formed; otherwise raise UsageError."""
    tables = study.schema.tables
    if not tables or tables[0].name != "results":
        raise UsageError(
            f"study {study.name!r}: its first table must be named 'results', for it is the one in results.tsv"
        )
    reserved = {"manifest", "findings"} & {table.name for table in tables}
    if reserved:
        raise UsageError(f"study {study.name!r}: a table cannot be named {' or '.join(reserved)}")
    for table in tables:
        _check_table(study, table)
    bare = [field.name for field in dataclasses.fields(study.schema.settings) if "spec" not in field.metadata]
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
