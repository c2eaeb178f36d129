"""What a run shows, as records: who, what, how large, how sure. Sentences are made from them elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from biassay.errors import UsageError
from biassay.results.data import Record

__all__ = ["STANDINGS", "About", "Finding", "Standing", "count"]

About = Literal["people", "method"]
Standing = Literal["significant", "uncorrected", "inconclusive", "not_testable", "descriptive", "skipped"]
"""How strong the evidence for a finding is.

significant
    Significant after correction for the number of questions asked.
uncorrected
    Significant before correction only: a lead, not a finding. A sanity check, which is not corrected, passes here.
inconclusive
    Tested and not significant, which does not show that there is no effect.
not_testable
    Too few words, pairs or responses for any test.
descriptive
    A figure for which no test exists.
skipped
    Not measured.
"""
STANDINGS: tuple[Standing, ...] = get_args(Standing)


@dataclass(frozen=True)
class Finding(Record):
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
    standing : Standing
        Strength of the evidence, see `Standing`.
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
    evidence : tuple of str
        Words or traits that it rests on, strongest first.
    survives : tuple of str
        Where it was measured in many ways: what becomes of it in them. It is told whatever the standing.
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
    standing: Standing
    direction: str = ""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "d"
    p_values: dict[str, float | None] = field(default_factory=dict)
    smallest: float | None = None
    reason: str | None = None
    confidence: float = 0.95
    evidence: tuple[str, ...] = ()
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
        for name, value, allowed in (("standing", self.standing, STANDINGS), ("about", self.about, get_args(About))):
            if value not in allowed:
                raise UsageError(f"{name} of a finding is one of {', '.join(allowed)}; got {value!r}")


def count(findings: Iterable[Finding], *standings: Standing, about: About | None = None) -> int:
    """Count the findings with one of some standings."""
    return sum(one.standing in standings and about in (None, one.about) for one in findings)
