"""Outcomes of measurements: estimates, their uncertainty, and the decisions of a run.

Decisions correct p-values over the questions of a run and grade the evidence of every record. A question is counted
once, whatever its forms: the main form represents it if it was measured, otherwise the first form by name. By default,
the family of a model is all its social-bias questions, corrected by Holm's method with Tarone's refinement; other forms
inherit the level of their question. A declared family is fixed before the run: every declared question counts, measured
or not, and the correction is Bonferroni's, so that a p-value does not depend on what else was run. Sanity checks are
not corrected. Under a paper's protocol all rows of the run are one family.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Literal, get_args

from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.results.run_data import (
    MODEL_COLUMNS,
    BaseRecord,
    ModelKey,
    RevisionRow,
    RunData,
    copy_fields,
    model_key,
    model_labels,
)
from biassay.results.tables import Column, TableSpec, column, keyword_row, make_columns, optional
from biassay.stats.multiple_testing import holm, holm_by_question

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


@keyword_row
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

    effect_size: float | None = optional("effect", "Estimate of the primary outcome, in units of `scale`.")
    standard_error: float | None = optional("SE", "Standard error of the estimate.")
    ci_low: float | None = optional("low", "Lower end of the confidence interval.")
    ci_high: float | None = optional("high", "Upper end of the confidence interval.")
    confidence: float = 0.95
    scale: str = column("scale", "Scale of the estimate.", default="d")
    null: float = column("without bias", "Value of a model without bias.", default=0.0)
    limit: float | None = None
    p_value: float | None = optional("p", "P-value of the primary outcome, before correction.", "p")
    log10_p_value: float | None = optional("log10 p", "Logarithm of the p-value, which may underflow.")
    p_opposite: float | None = optional("p, opposite", "P-value of the opposite direction.", "p")
    p_floor: float | None = optional("smallest p", "Smallest p-value that the design allows.", "p")
    test: str = ""
    df: float | None = optional("df", "Degrees of freedom.")
    n: dict[str, int] = field(default_factory=dict)
    bound_low: float | None = optional("lower bound", "Estimate if all missing responses lowered it.")
    bound_high: float | None = optional("upper bound", "Estimate if all missing responses raised it.")
    power_80: float | None = optional("80% power", "Effect that the design detects with 80% power.")
    reason: str | None = None
    contributions: str | None = None


_OUTCOME_FIELDS = frozenset(field.name for field in dataclasses.fields(Outcome))


@keyword_row
class ResultRecord(RevisionRow):
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
        Permitted use of the p-value. Only tested items are graded by their p-value.
    doubt : str or None
        Why the claim is descriptive or inconclusive whatever the p-value.
    warnings : tuple of str
        Warnings that affect the interpretation of the result.
    """

    outcome_names: ClassVar[tuple[str, ...]] = ()
    """Names of outcomes that a study may compute, primary or not; ``result.NAME_FIELD`` reads them."""

    model_revision: str | None = optional("revision", "Fingerprint of the model's weights.")
    title: str = column("title", "The item in words.", default="")
    topic: str = column("topic", "Gender, race, age, ...; see tests.md.", default="other")
    about: About = column("about", "people, or method for a sanity check.", default="people")
    question: str = column(
        "question", "Question of the item; its forms share it.", default="", get=attrgetter("question_or_item")
    )
    direction: int | None = None
    status: Status = column("status", "measured, skipped or failed.", default="measured")
    reason: str | None = optional("reason", "Why it was not measured.")
    outcome: Outcome = field(default_factory=Outcome)
    alternatives: dict[str, Outcome] = field(default_factory=dict)
    claim: Claim = column("claim", "tested, or descriptive if no p-value becomes evidence.", default="tested")
    doubt: str | None = optional("doubt", "Reason why the evidence differs from that of the p-value.")
    warnings: tuple[str, ...] = column("warnings", "Warnings that affect the interpretation of the result.", default=())

    @property
    def item(self) -> str:
        """Name of the item, unique for one model."""
        raise NotImplementedError(f"{type(self).__name__} does not define item")

    @property
    def question_or_item(self) -> str:
        """The question, which is the item itself if it has no other forms."""
        return self.question or self.item

    @property
    def is_main_form(self) -> bool:
        """Whether the item is the main form of its question."""
        return self.item == self.question_or_item

    def get_outcome(self, name: str) -> Outcome | None:
        """Return the outcome whose test or name is `name`, primary or not; None if it was not computed."""
        return self.outcome if self.outcome.test == name else self.alternatives.get(name)


@keyword_row
class Decision(RevisionRow):
    """Decision of the run on one record. It depends on all records of the run and is never cached.

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
        Main form of the question, if this one is another form of it. Questions are counted, not forms.
    family : str or None
        Name of the family: "run", "rows" (a paper's protocol), or what the user declared.
    family_size : int or None
        Number of questions that are corrected together.
    exploratory : bool
        If True, the question is outside the declared family and is never significant.
    reason : str or None
        Reason why the evidence differs from that of the p-value.
    """

    model_revision: str | None = optional("revision", "Fingerprint of the model's weights.")
    item: str = column("item", "Item that is decided.")
    p_adjusted: float | None = optional("p, adjusted", "P-value after correction over the family.", "p")
    significant: bool | None = optional("significant", "Whether the result is significant after correction.")
    evidence: Evidence = column("evidence", f"Strength of the evidence: {', '.join(EVIDENCE)}.", default="skipped")
    opposite: bool = column(
        "opposite", "Whether the effect is significant against the expected direction.", default=False
    )
    form_of: str | None = optional("form of", "Main form of the question; empty if it is this one.")
    family: str | None = optional("family", "run, rows (of a paper's protocol), or the declared family.")
    family_size: int | None = optional("questions", "Number of questions corrected together.")
    exploratory: bool = column("exploratory", "Whether the question is outside the declared family.", default=False)
    reason: str | None = optional("reason", "Reason why the evidence differs from that of the p-value.")

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
        merged = {field.name: getattr(part, field.name) for part in parts for field in dataclasses.fields(part)}
        return {name: value for name, value in merged.items() if name != "outcome"}


def join_decisions(records: Iterable[ResultRecord], decisions: Iterable[Decision]) -> tuple[Result, ...]:
    """Pair every record with its decision; a record without one is skipped or not yet decided."""
    by_record = {(model_key(decision), decision.item): decision for decision in decisions}
    return tuple(
        Result(record, by_record.get((model_key(record), record.item)) or _make_undecided(record)) for record in records
    )


def get_decided(run: RunData, table: str) -> tuple[Result, ...]:
    """Return the records of a table with the decisions of the run."""
    return join_decisions(run.tables.get(table, ()), run.tables.get("decisions", ()))


def _make_undecided(record: ResultRecord) -> Decision:
    return Decision(**copy_fields(record, "model", "options", "model_revision", "item"))


def make_outcome_columns(*names: str, **helps: str) -> tuple[Column, ...]:
    """Return columns of the record, its primary outcome and its decision, the same in every study.

    Parameters
    ----------
    *names : str
        Fields of `ResultRecord`, `Outcome` and `Decision`; by default those of the estimate and its evidence.
    **helps : str
        Help texts that replace the general ones, by column name.
    """
    return tuple(replace(_SHARED[name], help=helps.get(name, _SHARED[name].help)) for name in names or _ESTIMATE)


def make_result_columns(
    record: type[ResultRecord], first: Sequence[str], *others: Column, **helps: str
) -> tuple[Column, ...]:
    """Return the columns of a table of results: key, estimate and evidence, what the study adds, then the question.

    Parameters
    ----------
    record : type
        The record of the study.
    first : sequence of str
        Fields of the record that come first, after the model.
    *others : Column
        Columns of other outcomes, after those of the primary one.
    **helps : str
        Help texts that replace the general ones, by column name.
    """
    shared = {field.name for field in dataclasses.fields(ResultRecord)}
    own = [column for column in make_columns(record) if column.name not in {*shared, *first}]
    return (
        *MODEL_COLUMNS,
        *make_columns(record, *first),
        *make_outcome_columns(**helps),
        *others,
        *own,
        *make_outcome_columns(*_QUESTION, **helps),
    )


def _name_direction(result: Any) -> str | None:
    outcome: Outcome = result.record.outcome
    expected = result.record.direction
    if expected is None or outcome.effect_size is None:
        return None
    return "opposite" if (outcome.effect_size - outcome.null) * expected < 0.0 else "expected"


def make_alternative_columns(name: str, **fields: tuple[str, str]) -> tuple[Column, ...]:
    """Return columns of an alternative outcome; their names have its name as prefix.

    Parameters
    ----------
    name : str
        Name of the outcome, such as sentences. Its columns are filled whether or not it is the primary one.
    **fields : (str, str)
        Label and help of columns, by the attribute of `Outcome`.
    """

    def getter(attribute: str) -> Any:
        return lambda result: getattr(result.record.get_outcome(name), attribute, None)

    return tuple(
        replace(_SHARED[field], name=f"{name}_{field}", label=label, help=help, get=getter(field))
        for field, (label, help) in fields.items()
    )


_SHARED = {column.name: column for part in (Decision, Outcome, ResultRecord) for column in make_columns(part)} | {
    "direction": Column(
        "direction", "direction", "expected or opposite, if the test expects a direction.", get=_name_direction
    )
}
_ESTIMATE = (
    *("effect_size", "ci_low", "ci_high", "standard_error", "scale", "p_value", "p_adjusted", "significant"),
    *("evidence", "direction", "power_80"),
)
_QUESTION = (
    *("status", "reason", "title", "about", "topic", "question", "form_of", "family", "family_size", "exploratory"),
    *("claim", "doubt", "warnings", "model_revision"),
)
DECISIONS = TableSpec("decisions", "Decisions", Decision, key=("item",), collapsed=True)
"""Table of decisions, the same in every study."""


def correct_by_model(records: Sequence[ResultRecord], alpha: float) -> tuple[Decision, ...]:
    """Correct over the social-bias questions of each model by Holm's method.

    Parameters
    ----------
    records : sequence of ResultRecord
    alpha : float
        Level of significance.

    Returns
    -------
    tuple of Decision
        One per record, in the same order.
    """
    adjusted, forms, families = dict[int, float](), dict[int, str](), dict[int, dict[str, Any]]()
    for indices in _group_by_model(records).values():
        ordered = [i for same in _group_by_question(records, indices).values() for i in same]
        forms |= _find_forms(records, indices)
        tested = [i for i in ordered if records[i].claim != "descriptive"]
        p_values = [_or_nan(records[i].outcome.p_value) for i in tested]
        questions = [records[i].question_or_item for i in tested]
        floors = [records[i].outcome.p_floor or 0.0 for i in tested]
        correction = holm_by_question(p_values, questions, alpha, floors)
        adjusted |= _drop_nan(dict(zip(tested, correction.adjusted.tolist(), strict=True)))
        families |= {i: {"family": "run", "family_size": correction.n} for i in indices}
    return _decide(records, alpha, adjusted, families, forms)


def correct_rows(records: Sequence[ResultRecord], alpha: float) -> tuple[Decision, ...]:
    """Correct over all rows of the run by Holm's method, as the papers do.

    Parameters
    ----------
    records : sequence of ResultRecord
    alpha : float
        Level of significance.
    """
    tested = [i for i, record in enumerate(records) if record.claim != "descriptive"]
    p_values = [_or_nan(records[i].outcome.p_value) for i in tested]
    adjusted = _drop_nan(dict(zip(tested, holm(p_values, alpha).adjusted.tolist(), strict=True)))
    family = {"family": "rows", "family_size": sum(not math.isnan(p) for p in p_values)}
    return _decide(records, alpha, adjusted, dict.fromkeys(tested, family), {})


def correct_declared(
    records: Sequence[ResultRecord], alpha: float, declared: Mapping[str, Sequence[str]], name: str
) -> tuple[Decision, ...]:
    """Correct over a declared family by Bonferroni's method, at the question's level for its other forms.

    Parameters
    ----------
    records : sequence of ResultRecord
    alpha : float
        Level of significance.
    declared : dict of str to sequence of str
        Items by question, all forms that were declared.
    name : str
        Name of the family.
    """
    adjusted, forms, families = dict[int, float](), dict[int, str](), dict[int, dict[str, Any]]()
    size = len(declared)
    for indices in _group_by_model(records).values():
        forms |= _find_forms(records, indices)
        inside = [i for i in indices if records[i].item in declared.get(records[i].question_or_item, ())]
        families |= {i: {"family": name, "exploratory": True} for i in indices}
        families |= {i: {"family": name, "family_size": size} for i in inside}
        for question, (first, *others) in _group_by_question(records, inside).items():
            for i in indices:
                if records[i].question_or_item == question and records[i].status == "measured":
                    forms.pop(i, None)
                    if i != first:
                        forms[i] = records[first].item
            smallest = records[first].outcome.p_value
            if smallest is None:
                continue
            level = min(1.0, smallest * size)
            n_forms = max(len(declared[question]) - 1, 1)
            for i in (first, *others):
                p_value = records[i].outcome.p_value
                if p_value is not None and records[i].claim != "descriptive":
                    adjusted[i] = level if i == first else max(level, min(1.0, p_value * size * n_forms))
    return _decide(records, alpha, adjusted, families, forms)


def _decide(
    records: Sequence[ResultRecord],
    alpha: float,
    adjusted: Mapping[int, float],
    families: Mapping[int, Mapping[str, Any]],
    forms: Mapping[int, str],
) -> tuple[Decision, ...]:
    return tuple(
        make_decision(record, alpha, p_adjusted=adjusted.get(i), form_of=forms.get(i), **families.get(i, {}))
        for i, record in enumerate(records)
    )


def make_decision(record: ResultRecord, alpha: float, *, p_adjusted: float | None = None, **fields: Any) -> Decision:
    """Decide on one record with a corrected p-value.

    Parameters
    ----------
    record : ResultRecord
    alpha : float
        Level of significance.
    p_adjusted : float, optional
        P-value after correction.
    **fields
        Fields of `Decision` that do not follow from the record: form_of, family, family_size and exploratory.
    """
    evidence = grade_evidence(record, p_adjusted, alpha)
    tested = evidence in ("significant", "uncorrected", "inconclusive")
    return Decision(
        **copy_fields(record, "model", "options", "model_revision", "item"),
        p_adjusted=p_adjusted,
        evidence=evidence,
        significant=evidence == "significant" if tested else None,
        opposite=evidence in ("significant", "uncorrected") and _is_opposite(record, alpha),
        reason=record.reason if evidence == "skipped" else record.doubt,
        **fields,
    )


def grade_evidence(record: ResultRecord, p_adjusted: float | None, alpha: float) -> Evidence:
    """Grade the evidence of a record by its claim and its p-values.

    Parameters
    ----------
    record : ResultRecord
    p_adjusted : float or None
        P-value after correction.
    alpha : float
        Level of significance.
    """
    outcome = record.outcome
    if record.status != "measured" or outcome.effect_size is None:
        return "skipped"
    if record.claim != "tested":
        return record.claim
    if outcome.p_value is not None and outcome.p_value <= alpha:
        return "significant" if p_adjusted is not None and p_adjusted <= alpha else "uncorrected"
    if _is_significant_opposite(record, alpha):
        return "uncorrected"
    if outcome.p_value is None or (outcome.p_floor or 0.0) > alpha:
        return "not_testable"
    return "inconclusive"


def _is_significant_opposite(record: ResultRecord, alpha: float) -> bool:
    """Return whether a one-sided test would be significant in the other direction, which is never corrected."""
    return record.outcome.p_opposite is not None and record.outcome.p_opposite <= alpha


def _is_opposite(record: ResultRecord, alpha: float) -> bool:
    outcome, expected = record.outcome, record.direction
    if expected is None and record.about == "method":
        expected = 1
    if expected is None:
        return _is_significant_opposite(record, alpha)
    return ((outcome.effect_size or 0.0) - outcome.null) * expected < 0.0


def _group_by_model(records: Sequence[ResultRecord]) -> dict[ModelKey, list[int]]:
    """Return the indices of social-bias records by model."""
    return group_pairs((model_key(record), i) for i, record in enumerate(records) if record.about != "method")


def _group_by_question(records: Sequence[ResultRecord], indices: Sequence[int]) -> dict[str, list[int]]:
    """Return the indices of measured records by question, the main form first."""

    def rank(i: int) -> tuple[bool, bool, str]:
        record = records[i]
        is_tested = record.claim != "descriptive" and record.outcome.p_value is not None
        return not is_tested, not record.is_main_form, record.item

    measured = [i for i in sorted(indices, key=rank) if records[i].status == "measured"]
    return group_pairs((records[i].question_or_item, i) for i in measured)


def _find_forms(records: Sequence[ResultRecord], indices: Sequence[int]) -> dict[int, str]:
    groups = _group_by_question(records, indices).values()
    return {i: records[first].item for first, *others in groups for i in others}


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _drop_nan(values: dict[int, float]) -> dict[int, float]:
    return {i: value for i, value in values.items() if not math.isnan(value)}


@dataclass(frozen=True)
class Finding(BaseRecord):
    """One result of a run about one model.

    Attributes
    ----------
    model, item : str
        The model's label and the item: the name of a test, of a group, of a measure.
    title : str
        The item in plain words.
    topic : str
        Topic: gender, race, age, ...
    about : {"people", "method"}
        Social-bias question, or sanity check.
    evidence : Evidence
        Strength of the evidence, see `Evidence`.
    opposite : bool
        If True, the effect is significant, before or after correction, against the direction that the test expects.
    form_of : str or None
        Main form of the question, if this one is another form of it. Questions are
        counted and corrected, not their forms.
    family : str
        The family over which p-values were corrected, in words; empty if there is none.
    exploratory : bool
        If True, the question is outside the family that was declared before the run, and is never significant.
    direction : str
        The association in the measured direction; empty if nothing was measured.
    label : str
        The tested direction in a few words, as a label of rows. If empty, the title.
    claim : str
        The association in a few words, for lists: "male names–career, female names–family". A negative effect has the
        label. If empty, the title.
    effect, low, high : float or None
        The effect and its interval, which has the ``confidence``.
    unit : str
        Of the effect: "d", "tau", "words", "share", "log-odds", "bias score", ...
    p_values : name -> float or None
        None: not computed.
    smallest : float or None
        Effect detected with 80% power, where the finding is inconclusive.
    margin, bound : float or None
        A size that was said not to matter, in the unit in which it was said; and the size that the true difference is
        shown to stay below. It is shown not to matter where ``bound`` is at most ``margin``.
    limit : float or None
        How far from 0 the effect can be at all.
    share_random, random_sets : float or None, int or None
        Share of random word sets whose effect is at least as large, and the number of sets drawn.
    reason : str or None
        Why it was not measured.
    words : tuple of str
        Words or traits with the largest contributions, strongest first.
    robustness : tuple of str
        With many specifications: how the finding changes over them. It is reported whatever the evidence.
    notes : tuple of str
        Remarks needed to read the finding.
    too_few_of : str
        Sampling unit of which there are too few, if the finding is not testable: words, answers, templates.
    no_interval : str
        Reason why an expected interval is missing.
    """

    model: str
    item: str
    title: str
    topic: str
    about: About
    evidence: Evidence
    direction: str = ""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "d"
    p_values: dict[str, float | None] = field(default_factory=dict)
    smallest: float | None = None
    reason: str | None = None
    confidence: float = 0.95
    words: tuple[str, ...] = ()
    margin: float | None = None
    bound: float | None = None
    share_random: float | None = None
    random_sets: int | None = None
    limit: float | None = None
    robustness: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    too_few_of: str = "words"
    no_interval: str = ""
    opposite: bool = False
    form_of: str | None = None
    family: str = ""
    exploratory: bool = False
    claim: str = ""
    label: str = ""

    @property
    def p_value(self) -> float | None:
        """The first p-value that was computed."""
        return next((p for p in self.p_values.values() if p is not None), None)

    @property
    def p_corrected(self) -> float | None:
        """The p-value after correction."""
        return next((p for name, p in self.p_values.items() if name.endswith(", corrected")), None)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, allowed in (("evidence", self.evidence, EVIDENCE), ("about", self.about, get_args(About))):
            if value not in allowed:
                raise UsageError(f"{name} of a finding is one of {', '.join(allowed)}; got {value!r}")


def sort_by_topic(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by topic, in the order in which topics first occur, and then by size, largest first."""
    topics = list(dict.fromkeys(finding.topic for finding in findings))
    return sorted(findings, key=lambda finding: (topics.index(finding.topic), -abs(finding.effect or 0.0)))


def count_findings(findings: Iterable[Finding], *evidence: Evidence) -> int:
    """Count the findings with any of these grades of evidence."""
    return sum(finding.evidence in evidence for finding in findings)


def make_outcome_findings(run: RunData) -> tuple[Finding, ...]:
    """Return one finding per record of the main table, from its primary outcome and its decision."""
    labels = model_labels(run)
    return tuple(
        make_outcome_finding(result, labels[model_key(result.record)])
        for result in run.results
        if isinstance(result, Result)
    )


def make_outcome_finding(result: Result, model: str, /, **fields: Any) -> Finding:
    """Return the finding of a result, from its primary outcome and its decision.

    Parameters
    ----------
    result : Result
    model : str
        Label of the model.
    **fields
        Fields of `Finding` that replace those of the outcome and decision.
    """
    record, outcome, decision = result.record, result.record.outcome, result.decision
    effect, low, high = (
        None if value is None else value - outcome.null
        for value in (outcome.effect_size, outcome.ci_low, outcome.ci_high)
    )
    test = f"by {outcome.test}" if outcome.test else "uncorrected"
    p_value = outcome.p_opposite if decision.opposite and outcome.p_opposite is not None else outcome.p_value
    finding = Finding(
        model=model,
        item=record.item,
        title=record.title or record.item,
        topic=record.topic,
        about=record.about,
        evidence=decision.evidence,
        effect=effect,
        low=low,
        high=high,
        unit=outcome.scale,
        limit=outcome.limit,
        confidence=outcome.confidence,
        p_values={test: p_value, f"{test}, corrected": decision.p_adjusted},
        reason=record.reason,
        notes=(*filter(None, [record.doubt]), *record.warnings),
        too_few_of=" or ".join(outcome.n) or "sampling units",
        no_interval=outcome.reason or "",
        opposite=decision.opposite,
        form_of=decision.form_of,
    )
    return replace(finding, **fields)
