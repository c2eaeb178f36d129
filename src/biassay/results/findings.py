"""Findings of a run as records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from biassay.errors import UsageError
from biassay.results.outcomes import EVIDENCE, About, Evidence
from biassay.results.run_data import BaseRecord

__all__ = ["EVIDENCE", "About", "Evidence", "Finding", "count_findings"]


@dataclass(frozen=True)
class Finding(BaseRecord):
    """One thing that a run shows of one model.

    Attributes
    ----------
    model, item : str
        The model's label and what was asked of it: the name of a test, of a group, of a measure.
    title : str
        The item in plain words.
    topic : str
        What it is about: gender, race, age, ...
    about : {"people", "method"}
        Whether it speaks of people, or checks that the method works on the model.
    evidence : Evidence
        Strength of the evidence, see `Evidence`.
    opposite : bool
        If True, the effect is significant, before or after correction, against the direction that the test expects.
    form_of : str or None
        Item whose finding stands for the question, if this one is another form of the same question. Questions are
        counted and corrected, not their forms.
    family : str
        The family over which p-values were corrected, in words; empty if there is none.
    exploratory : bool
        If True, the question is outside the family that was declared before the run, and is never significant.
    direction : str
        What goes with what, in plain words and in the direction that was measured; empty where nothing was.
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
        Words or traits that it rests on, strongest first.
    survives : tuple of str
        Where it was measured in many ways: what becomes of it in them. It is told whatever the evidence.
    notes : tuple of str
        What must be known beside it.
    few : str
        Sampling unit of which there are too few, if the finding is not testable: words, answers, templates.
    no_interval : str
        Why there is no interval, where one was to be expected.
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
    survives: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    few: str = "words"
    no_interval: str = ""
    opposite: bool = False
    form_of: str | None = None
    family: str = ""
    exploratory: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, allowed in (("evidence", self.evidence, EVIDENCE), ("about", self.about, get_args(About))):
            if value not in allowed:
                raise UsageError(f"{name} of a finding is one of {', '.join(allowed)}; got {value!r}")


def count_findings(findings: Iterable[Finding], *evidence: Evidence, about: About | None = None) -> int:
    """Count the findings with one of some evidence."""
    return sum(one.evidence in evidence and about in (None, one.about) for one in findings)
