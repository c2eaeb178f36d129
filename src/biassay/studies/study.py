"""Interface of a study: its requests, its measurement, derived seeds and example replies.

Fetching, caching, saving, resuming and rendering are shared by all studies and live in `biassay.runs` and
`biassay.reporting`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UnknownNameError, UsageError
from biassay.models.backend import Capability
from biassay.models.base import Model
from biassay.packages import import_object
from biassay.prompts.requests import LikelihoodRequest, Prompt
from biassay.results.outcomes import DECISIONS, Decision, Finding, ResultRecord, correct_by_model, make_outcome_findings
from biassay.results.run_data import RunData, group_rows_by_model, model_key
from biassay.results.run_folder import MANIFEST_JSON, Fault, StudySchema
from biassay.results.tables import TableSpec, column
from biassay.studies.settings import validate_settings

if TYPE_CHECKING:
    from biassay.corpus.contexts import Contexts
    from biassay.reporting.presenter import Presenter


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


def shorten_reply(text: str, most: int | None = None) -> str:
    """Shorten a reply for a table of examples, and replace characters that cannot be written."""
    most = most or _MAX_CHARACTERS
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return text.encode("utf-8", "replace").decode()


def _join_lines(row: Any) -> str:
    return " ⏎ ".join(row.reply.splitlines())


def declare_reply() -> Any:
    """Declare the field of an example reply, which is shown on one line."""
    return column("reply", "Its beginning; ⏎ ends a line.", get=_join_lines)


Tables = Mapping[str, tuple[Any, ...]]


_SCAN_SETTINGS = ("file_format", "field", "document", "html", "language", "ignore_case", "openings")


@dataclass(frozen=True)
class ContextsRecord:
    """Origin of the contexts of a run.

    ``corpus`` names the files that were read, ``found_with`` says how.
    """

    file: str
    digest: str
    rows: int
    per_stimulus: int
    seed: int
    documents: int
    bytes: int
    corpus: tuple[str, ...] = ()
    found_with: dict[str, str] = dataclasses.field(default_factory=dict)


def make_contexts_record(path: Path, contexts: Contexts) -> ContextsRecord:
    """Make the manifest's record of the contexts file."""
    corpus = contexts.metadata.get("corpus", {})
    return ContextsRecord(
        file=str(path.resolve()),
        digest=contexts.digest,
        rows=len(contexts),
        per_stimulus=contexts.metadata["k"],
        seed=contexts.metadata.get("seed", 0),
        documents=corpus.get("documents", 0),
        bytes=corpus.get("bytes", 0),
        corpus=tuple(corpus.get("files", ())),
        found_with={
            key.removeprefix("file_"): str(contexts.metadata[key])
            for key in _SCAN_SETTINGS
            if contexts.metadata.get(key)
        },
    )


@dataclass(frozen=True, eq=False)
class ContextRequests:
    """Words to encode in contexts, the window of words around each, and the precision of stored vectors."""

    contexts: Contexts
    words: tuple[str, ...]
    window: int | None = None
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class Requests:
    """All requests of a study to one model.

    ``text_blocks`` is read once, instead of ``texts``, by studies with more texts than fit in memory; they get the
    vectors by `ModelOutputs.read_texts`.

    ``representations`` names those to compute besides the default one, chosen from `Capabilities`. If ``accepts_part``
    is True, the study also measures a part of the prompts if the budget does not allow all, see `Part`.
    """

    texts: Sequence[str] = ()
    text_blocks: Iterable[Sequence[str]] = ()
    representations: Sequence[str] = ()
    contexts: ContextRequests | None = None
    blanks: Sequence[Any] = ()
    prompts: Sequence[Prompt] = ()
    likelihoods: Sequence[LikelihoodRequest] = ()
    accepts_part: bool = False


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


@dataclass(frozen=True)
class Part:
    """Say which part of the requests was measured, because the budget did not allow all of them.

    The run is complete, and a resume with a larger budget measures the model again.
    """

    text: str


Event = Row | Array | Progress | StudyWarning | UnknownWords | Part


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
    """Base class of studies, which define the requests to a model and the measurement of its outputs.

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

    presenter_path = "biassay.reporting.presenter:DefaultPresenter"
    """Module and class of its `Presenter`, imported with the first report."""

    @cached_property
    def presenter(self) -> Presenter:
        """Presenter of its runs. The default shows findings and tables."""
        made: Presenter = import_object(self.presenter_path)(self.title, self.schema.tables, self.findings)
        return made

    def packages(self, settings: Any) -> tuple[str, ...]:
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

    accepts_scorers = False
    """Whether models may score texts instead of encoding them, see `Encoder`."""

    def choose_capabilities(self, settings: Any, available: Sequence[Capability]) -> tuple[Capability, ...]:
        """Return the capabilities to open a model for, given those of its backend."""
        return self.required_capabilities(settings)

    def hold_out(self, inputs: Any, erasure: str, words: Collection[str]) -> Any:
        """Return the inputs without words that an erased model was fitted on, or raise UsageError if tests need them.

        Parameters
        ----------
        inputs : Inputs
        erasure : str
            Method and concept, such as leace:gender.
        words : collection of str
            Words that it was fitted on.
        """
        return inputs

    def fit_inputs(self, inputs: Any, models: Sequence[Model]) -> Any:
        """Return the inputs, completed with data of the opened models, such as their tokenizers."""
        return inputs

    def preview(self, inputs: Any) -> Iterable[str]:
        """Yield notices for the user before the measurement, such as the power of the design."""
        return ()

    def needs_all_models(self, settings: Any) -> bool:
        """Return whether measuring one model needs the outputs of all models.

        If True, the outputs of all models are fetched first and passed to `measure` as ``all_outputs``. If False,
        models are fetched and measured one after the other.
        """
        return False

    def cache_key(self, inputs: Any) -> Any:
        """Return everything in the inputs that `measure` depends on, or None to measure every time.

        Measurements are cached under the ``repr`` of this value together with the settings, the outputs and the state
        of biassay's code, so it must not hold sets or arrays. A study of another package adds its own version.
        """
        return None

    @abstractmethod
    def requests(self, inputs: Any, capabilities: Capabilities) -> Requests:
        """Return the requests to a model with these capabilities."""

    def get_judge(self, settings: Any) -> str | None:
        """Return the string of a second model that judges the responses of each model; None without a judge."""
        return None

    def judge_requests(self, inputs: Any, outputs: ModelOutputs) -> Requests:
        """Return the requests to the judge about the outputs of a model. `measure` finds its outputs as ``judge``."""
        return Requests()

    @abstractmethod
    def measure(self, inputs: Any, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
        """Yield the rows, arrays and progress of one model.

        The result must depend on the arguments only.

        Parameters
        ----------
        inputs : Inputs
            Inputs that `load_inputs` returned.
        model : ModelOutputs
            Outputs of the model to measure.
        all_outputs : sequence of ModelOutputs
            Outputs of all models if `needs_all_models` returns True, otherwise of ``model`` only.

        Yields
        ------
        Event
        """

    def finalize_tables(self, settings: Any, tables: Tables) -> Tables:
        """Complete the tables with values that depend on all rows.

        By default, a table of decisions is filled by `decide` if the schema has one.
        """
        if all(table.name != DECISIONS.name for table in self.schema.tables):
            return tables
        return {**tables, DECISIONS.name: self.decide(settings, tables.get("results", ()))}

    def decide(self, settings: Any, records: Sequence[ResultRecord]) -> tuple[Decision, ...]:
        """Correct the p-values of a run and grade the evidence of every record of the main table.

        By default, p-values are corrected over the social-bias questions of each model, at the level `alpha` of the
        settings or 0.05.
        """
        return correct_by_model(records, getattr(settings, "alpha", 0.05))

    def findings(self, run: RunData) -> Sequence[Finding]:
        """Return the findings of a run, at most one per model and item.

        By default, the primary outcome of every `ResultRecord` of the main table is a finding.
        """
        return make_outcome_findings(run)

    fails_with_one = False
    """If True, one failed item makes a run fail; otherwise only a model without any measured item does."""

    def has_failures(self, run: RunData) -> bool:
        """Return whether a model has no measured row. The command then exits with code 1."""
        rows_by_model = group_rows_by_model(run.manifest.models, run.tables.get("results", ()))
        states = [{getattr(row, "status", "") for row in rows} for rows in rows_by_model]
        return any(own <= {"skipped", "failed"} or (self.fails_with_one and "failed" in own) for own in states)

    def check_same(self, before: Any, now: Any) -> None:
        """Raise UsageError if a resumed run has other inputs than it started with."""
        for field in dataclasses.fields(before):
            old, new = getattr(before, field.name), getattr(now, field.name)
            if old != new:
                raise UsageError(f"{field.name} changed since the run began; start a new run")

    def find_own_code(self, settings: Any) -> str:
        """Return the code that the settings name and that a run would execute; empty if there is none."""
        return ""

    def check_reuse(self, settings: Any, given: Collection[object] = ()) -> None:
        """Raise UsageError if settings from a run folder would do what only the user may allow, such as run code.

        Parameters
        ----------
        settings : object
        given : collection
            Models that the user gave again.
        """
        if code := self.find_own_code(settings):
            raise UsageError(
                f"{code} is code of yours, which biassay never takes from a run folder; give the whole command again "
                "with a new --out (cached responses are not paid again)"
            )

    def find_faults(self, run: RunData) -> Iterable[Fault]:
        """Find values that the study cannot have stored, such as arrays that do not reproduce the numbers."""
        return ()

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        """Yield the faults of a stored run. The first one becomes an error that names the file."""
        try:
            validate_settings(run.manifest.settings)
        except UsageError as error:
            yield Fault(MANIFEST_JSON, f"settings: {error}")
        yield from self.find_faults(run)

    def select_item(self, run: RunData, item: str) -> RunData:
        """Restrict a run to one item. Tables that do not name items are returned unchanged.

        Corrected p-values remain those of the whole run.
        """
        keys = {spec.name: spec.key for spec in self.schema.tables}
        names = {table: [_get_names(row, keys[table]) for row in rows] for table, rows in run.tables.items()}
        known = dict.fromkeys(name for rows in names.values() for row_names in rows for name in row_names)
        if item not in known:
            raise UnknownNameError("item", item, known, f"(items of this run: {', '.join(list(known)[:20])})")
        tables = {
            table: tuple(row for row, named in zip(rows, names[table], strict=True) if item in (named or (item,)))
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
            f"study {study.name!r}: its first table must be named 'results', because it is the one in results.tsv"
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
        raise UsageError(
            f"{where}: every record needs fields that identify its model; it lacks {' and '.join(lacking)}"
        )
    if callable(table.columns):
        return
    columns = [column.name for column in table.columns]
    named = [*table.key, *table.default_columns, *([table.value_column] if table.value_column else [])]
    unknown = [name for name in named if name not in columns]
    if table.record is not None and table.rows is None and not issubclass(table.record, ResultRecord):
        unknown += [
            c.name
            for c in table.columns
            if c.get is None and not hasattr(table.record, c.name) and c.name not in fields
        ]
    if unknown:
        raise UsageError(f"{where}: there is no column {', '.join(map(repr, unknown))}; it has {', '.join(columns)}")
