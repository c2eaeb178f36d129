"""What a run shows, as records: who, what, how large, how sure. Sentences are made from them elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from biassay.errors import UsageError
from biassay.results.data import Record

__all__ = ["STANDINGS", "About", "Finding", "Standing", "count"]

About = Literal["people", "method"]
Standing = Literal[
    "corrected",  # holds after correction for the number of tests
    "uncorrected",  # holds before correction only
    "opposite",  # holds the other way round
    "not shown",  # could have been shown, and was not
    "too few",  # cannot be shown with so few words, pairs or answers, whatever they say
    "described",  # no test exists
    "not measured",
]
STANDINGS: tuple[Standing, ...] = (
    "corrected",
    "uncorrected",
    "opposite",
    "not shown",
    "too few",
    "described",
    "not measured",
)


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
    direction : str
        What goes with what, in plain words and in the direction that was measured; empty where nothing was.
    effect, low, high : float or None
        The effect and its interval, which has the ``confidence``.
    unit : str
        Of the effect: "d", "tau", "words", "share", "log-odds", "bias score", ...
    p_values : name -> float or None
        None: not computed.
    smallest : float or None
        Where it is not shown: a true effect of this size would be found in 80 of 100 such tests.
    margin, bound : float or None
        A size that was said not to matter, in the unit in which it was said; and the size that the true difference is
        shown to stay below. It is shown not to matter where ``bound`` is at most ``margin``.
    limit : float or None
        How far from 0 the effect can be at all.
    share_random, random_sets : float or None, int or None
        How often words drawn at random give an effect as large, and how many sets of them were drawn.
    reason : str or None
        Why it was not measured.
    evidence : tuple of str
        Words or traits that it rests on, strongest first.
    survives : tuple of str
        Where it was measured in many ways: what becomes of it in them. It is told whatever the standing.
    notes : tuple of str
        What must be known beside it.
    few : str
        Of what there is too little, where that is the standing: words, answers, templates.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, allowed in (("standing", self.standing, STANDINGS), ("about", self.about, get_args(About))):
            if value not in allowed:
                raise UsageError(f"{name} of a finding is one of {', '.join(allowed)}; got {value!r}")


def count(findings: Iterable[Finding], *standings: Standing, about: About | None = None) -> int:
    """How many findings have one of some standings."""
    return sum(one.standing in standings and about in (None, one.about) for one in findings)
