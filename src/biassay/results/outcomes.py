"""Outcomes of measurements: how large, how sure, and what a run decides about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from biassay.errors import UsageError
from biassay.results.run_data import BaseRecord
from biassay.results.tables import MODEL_COLUMNS, REVISION_COLUMN, Column, TableSpec
from biassay.results.views import model_key

__all__ = [
    "DECISIONS",
    "EVIDENCE",
    "About",
    "Claim",
    "Decision",
    "Evidence",
    "Outcome",
    "Result",
    "ResultRecord",
    "Status",
    "join_decisions",
    "make_alternative_columns",
    "make_outcome_columns",
]

About = Literal["people", "method"]
Status = Literal["measured", "skipped", "failed"]
Claim = Literal["tested", "descriptive", "inconclusive"]
Evidence = Literal["significant", "uncorrected", "inconclusive", "not_testable", "descriptive", "skipped"]
"""Strength of the evidence for a result.

significant
    Significant after correction for the number of questions.
uncorrected
    Significant before correction only: a lead, not a finding. A sanity check, which is not corrected, passes here.
inconclusive
    Tested and not significant, or in doubt for a stated reason. It does not show that there is no effect.
not_testable
    Too few words, pairs or responses for any test.
descriptive
    Not tested.
skipped
    Not measured.
"""
EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)


@dataclass(frozen=True, kw_only=True)
class Outcome(BaseRecord):
    """An estimate with its uncertainty. It depends on the outputs of one model only and is cached with them.

    Attributes
    ----------
    effect_size : float or None
        The estimate, in units of `scale`. None if it was not computed.
    standard_error, ci_low, ci_high : float or None
        Standard error, and interval with the confidence `confidence`.
    scale : str
        Scale of the estimate: d, share, log-odds, bias score, ratio, tau ...
    null : float
        Value without bias: 0.5 for CrowS-Pairs, 1 for a ratio.
    limit : float or None
        Largest possible distance from the null.
    p_value, log10_p_value : float or None
        P-value, and its logarithm where it may underflow.
    p_opposite : float or None
        One-sided p-value of the opposite direction, if `p_value` is one-sided.
    p_floor : float or None
        Smallest p-value that the design allows.
    test : str
        Name of the test: crossed, permutation, sign test ...
    df : float or None
        Degrees of freedom.
    n : dict of str to int
        Number of sampling units by kind: words, names, documents, templates ...
    bound_low, bound_high : float or None
        Bounds of the estimate with missing responses counted either way.
    power_80 : float or None
        Effect that the design detects with 80% power.
    reason : str or None
        Why the estimate, the interval or the p-value is missing.
    contributions : str or None
        Name of the array with one value per sampling unit, for paired comparisons.
    """

    effect_size: float | None = None
    standard_error: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    confidence: float = 0.95
    scale: str = "d"
    null: float = 0.0
    limit: float | None = None
    p_value: float | None = None
    log10_p_value: float | None = None
    p_opposite: float | None = None
    p_floor: float | None = None
    test: str = ""
    df: float | None = None
    n: dict[str, int] = field(default_factory=dict)
    bound_low: float | None = None
    bound_high: float | None = None
    power_80: float | None = None
    reason: str | None = None
    contributions: str | None = None


_OUTCOME_FIELDS = frozenset(one.name for one in dataclasses.fields(Outcome))


@dataclass(frozen=True, kw_only=True)
class ResultRecord(BaseRecord):
    """Base of the main record of every study: one item measured on one model.

    Attributes
    ----------
    model, options, model_revision
        Name, settings and fingerprint of the model.
    title, topic : str
        The item in words, and its topic (gender, race, age ...).
    about : {"people", "method"}
        Whether the item asks about people or is a sanity check of the method.
    question : str
        Question that the item asks. Forms of one question share it; empty if the item is the only form.
    direction : {1, -1} or None
        Expected sign of the effect, measured from the null.
    status, reason
        Whether the item was measured, and why not.
    outcome : Outcome
        The primary outcome under the run's protocol.
    alternatives : dict of str to Outcome
        Other outcomes by name, such as fixed_words or sentences.
    claim : {"tested", "descriptive", "inconclusive"}
        What a p-value may be used for. Only tested items are graded by their p-value.
    doubt : str or None
        Why the claim is descriptive or inconclusive whatever the p-value.
    warnings : tuple of str
        Warnings that change how the result is read.
    """

    outcome_names: ClassVar[tuple[str, ...]] = ()
    """Names of outcomes that a study may compute, primary or not; ``result.NAME_FIELD`` reads them."""

    model: str
    options: str
    model_revision: str | None = None
    title: str = ""
    topic: str = "other"
    about: About = "people"
    question: str = ""
    direction: int | None = None
    status: Status = "measured"
    reason: str | None = None
    outcome: Outcome = field(default_factory=Outcome)
    alternatives: dict[str, Outcome] = field(default_factory=dict)
    claim: Claim = "tested"
    doubt: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def item(self) -> str:
        """Name of the item, unique for one model."""
        raise NotImplementedError(f"{type(self).__name__} does not define item")

    @property
    def asked_question(self) -> str:
        """The question, which is the item itself if it has no other forms."""
        return self.question or self.item

    @property
    def is_main_form(self) -> bool:
        """Whether the item stands for its question if several forms were measured."""
        return self.item == self.asked_question

    def get_outcome(self, name: str) -> Outcome | None:
        """Return the outcome whose test or name is `name`, primary or not; None if it was not computed."""
        return self.outcome if self.outcome.test == name else self.alternatives.get(name)


@dataclass(frozen=True, kw_only=True)
class Decision(BaseRecord):
    """What the run decides about one record. It depends on all records of the run and is never cached.

    Attributes
    ----------
    model, options, model_revision, item
        The record that is decided.
    p_adjusted : float or None
        P-value after correction over the family. None if it is not corrected.
    evidence : Evidence
        Strength of the evidence.
    significant : bool or None
        Whether the evidence is significant after correction. None if nothing was tested.
    opposite : bool
        If True, the effect is significant, before or after correction, against the expected direction.
    form_of : str or None
        Item that stands for the question, if this one is another form of it. Questions are counted, not forms.
    family : str or None
        Name of the family: "run", "rows" (a paper's protocol), or what the user declared.
    family_size : int or None
        Number of questions that are corrected together.
    exploratory : bool
        If True, the question is outside the declared family and is never significant.
    reason : str or None
        Why the evidence is not what the p-value alone suggests.
    """

    model: str
    options: str
    model_revision: str | None = None
    item: str
    p_adjusted: float | None = None
    evidence: Evidence = "skipped"
    significant: bool | None = None
    opposite: bool = False
    form_of: str | None = None
    family: str | None = None
    family_size: int | None = None
    exploratory: bool = False
    reason: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence not in EVIDENCE:
            raise UsageError(f"evidence must be one of {', '.join(EVIDENCE)}, got {self.evidence!r}")


@dataclass(frozen=True)
class Result:
    """A record with the decision of its run.

    Attributes of the record, of its primary outcome and of the decision are attributes of the result:
    ``result.test``, ``result.effect_size``, ``result.evidence``. Other outcomes have their name as prefix:
    ``result.sentences_p_value``, which is None if it was not computed.
    """

    record: ResultRecord
    decision: Decision

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("record", "decision"):
            raise AttributeError(name)
        for part in (self.record, self.record.outcome, self.decision):
            if hasattr(part, name):
                return getattr(part, name)
        for prefix in self.record.outcome_names:
            field_name = name.removeprefix(f"{prefix}_")
            if field_name != name and field_name in _OUTCOME_FIELDS:
                return getattr(self.record.get_outcome(prefix), field_name, None)
        raise AttributeError(f"a result has no attribute {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the record, of its primary outcome and of the decision by name, as attributes are."""
        parts = (self.decision, self.record.outcome, self.record)
        merged = {one.name: getattr(part, one.name) for part in parts for one in dataclasses.fields(part)}
        return {name: value for name, value in merged.items() if name != "outcome"}


def join_decisions(records: Iterable[ResultRecord], decisions: Iterable[Decision]) -> tuple[Result, ...]:
    """Pair every record with its decision; a record without one is skipped or not yet decided."""
    by_record = {(model_key(decision), decision.item): decision for decision in decisions}
    return tuple(
        Result(record, by_record.get((model_key(record), record.item)) or _make_undecided(record)) for record in records
    )


def _make_undecided(record: ResultRecord) -> Decision:
    return Decision(model=record.model, options=record.options, model_revision=record.model_revision, item=record.item)


def make_outcome_columns(**helps: str) -> tuple[Column, ...]:
    """Return the columns of the primary outcome and of the decision, the same in every study.

    Parameters
    ----------
    **helps : str
        Help texts that replace the general ones, by column name.
    """
    columns = (
        Column("effect_size", "effect", "Estimate of the primary outcome, in units of `scale`.", "number"),
        Column("ci_low", "low", "Lower end of the confidence interval.", "number"),
        Column("ci_high", "high", "Upper end of the confidence interval.", "number"),
        Column("standard_error", "SE", "Standard error of the estimate.", "number"),
        Column("scale", "scale", "Scale of the estimate."),
        Column("p_value", "p", "P-value of the primary outcome, before correction.", "p"),
        Column("p_adjusted", "p, adjusted", "P-value after correction over the family.", "p"),
        Column("significant", "significant", "Whether the result is significant after correction.", "flag"),
        Column("evidence", "evidence", f"Strength of the evidence: {', '.join(EVIDENCE)}."),
        Column("direction", "direction", "expected or opposite, if the test expects a direction.", get=_name_direction),
        Column("power_80", "80% power", "Effect that the design detects with 80% power.", "number"),
    )
    return tuple(dataclasses.replace(column, help=helps.get(column.name, column.help)) for column in columns)


def _name_direction(result: Any) -> str | None:
    outcome: Outcome = result.record.outcome
    expected = result.record.direction
    if expected is None or outcome.effect_size is None:
        return None
    return "opposite" if (outcome.effect_size - outcome.null) * expected < 0.0 else "expected"


def make_alternative_columns(name: str, fields: Mapping[str, tuple[str, str]] | Sequence[str]) -> tuple[Column, ...]:
    """Return columns of an alternative outcome; their names have its name as prefix.

    Parameters
    ----------
    name : str
        Name of the outcome, such as sentences. Its columns are filled whether or not it is the primary one.
    fields : dict of str to (label, help), or sequence of str
        Attributes of `Outcome`.
    """
    labelled = fields if isinstance(fields, Mapping) else {one: (f"{name} {one}", "") for one in fields}

    def getter(attribute: str) -> Any:
        return lambda result: getattr(result.record.get_outcome(name), attribute, None)

    formats = dict.fromkeys(("p_value", "p_opposite", "p_floor"), "p")
    formats |= dict.fromkeys(
        ("effect_size", "standard_error", "ci_low", "ci_high", "log10_p_value", "df", "power_80"), "number"
    )
    return tuple(
        Column(f"{name}_{attribute}", label, help, formats.get(attribute, "text"), getter(attribute))  # type: ignore[arg-type]
        for attribute, (label, help) in labelled.items()
    )


DECISIONS = TableSpec(
    "decisions",
    "Decisions",
    Decision,
    (
        *MODEL_COLUMNS,
        REVISION_COLUMN,
        Column("item", "item", "Item that is decided."),
        Column("p_adjusted", "p, adjusted", "P-value after correction over the family.", "p"),
        Column("significant", "significant", "Whether the result is significant after correction.", "flag"),
        Column("evidence", "evidence", f"Strength of the evidence: {', '.join(EVIDENCE)}."),
        Column("opposite", "opposite", "Whether the effect is significant against the expected direction.", "flag"),
        Column("form_of", "form of", "Item that stands for the question; empty if it is this one."),
        Column("family", "family", "Family of the correction: run, rows, or the declared family."),
        Column("family_size", "questions", "Number of questions corrected together.", "count"),
        Column("exploratory", "exploratory", "Whether the question is outside the declared family.", "flag"),
        Column("reason", "reason", "Why the evidence is not what the p-value alone suggests."),
    ),
    key=("item",),
    detail=True,
)
"""Table of decisions, the same in every study."""
