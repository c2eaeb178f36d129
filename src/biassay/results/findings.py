"""Findings of a run as records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from biassay.errors import UsageError
from biassay.results.outcomes import EVIDENCE, About, Evidence, Result
from biassay.results.run_data import BaseRecord, RunData
from biassay.results.views import model_key, model_labels


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
