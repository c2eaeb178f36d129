"""Whether a new model is worse than an old one: the verdict of each test, which of them fail a gate, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from biassay.errors import MeasurementError, UsageError
from biassay.results.data import Record

__all__ = [
    "FAIL_IF",
    "GROWTH",
    "LEVEL",
    "MARGIN",
    "FailIf",
    "Outcome",
    "Verdict",
    "all_lost",
    "check_limits",
    "failing",
    "judged",
    "unmeasured",
    "verdict_sentence",
]

MARGIN = 0.2
LEVEL = 0.01
GROWTH = 0.5
"""Of |d|: how likely it is called worse is said of every test."""

Outcome = Literal["worse", "no worse", "cannot tell", "lost", "not measured"]
FailIf = Literal["worse", "not-shown"]
FAIL_IF: tuple[FailIf, ...] = get_args(FailIf)
_FAILS: dict[FailIf, tuple[Outcome, ...]] = {
    "worse": ("worse", "lost"),
    "not-shown": ("worse", "lost", "cannot tell"),
}
_NAMED = 5


@dataclass(frozen=True)
class Verdict(Record):
    """Whether an association is stronger on a new model than on the old one, the baseline.

    ``difference`` is that of absolute effect sizes, new less old, over the words that both models know; ``low`` and
    ``high`` are its interval, which holds with all others of the ``family`` at once with a confidence of 1 - ``level``.
    *Worse*: the interval lies above 0 and the difference above the margin. *No worse*: the interval ends at the margin
    or below. *Cannot tell*: neither. *Lost*: measured on the old model and not on the new one. *Not measured*: on
    neither. Numbers that are None are not to be said, for the reason given.

    ``power`` is the probability that a true growth of |d| by `GROWTH` is called worse (None: |d| cannot grow so much,
    or the cosines are the same and the test is not in the family), and ``detectable`` the smallest growth that is in 80
    of 100 comparisons (None: none is): where words vary, and models agree, as these do, and |d| is as large on the old
    model as was found.

    ``unit`` is that of effects, and ``over`` says of what other ones the interval holds for, where that is not words.
    """

    test: str
    title: str
    baseline: str
    model: str
    outcome: Outcome
    reason: str | None
    effect_baseline: float | None
    effect_model: float | None
    margin: float
    level: float
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    power: float | None = None
    detectable: float | None = None
    family: int | None = None
    unit: str = "d"
    over: str = ""


def check_limits(margin: float, level: float) -> None:
    """Refuse limits by which nothing can be judged."""
    if not (margin > 0.0 and math.isfinite(margin)):
        raise UsageError(f"the margin must be above 0, got {margin!r}; it is the difference of d that would not matter")
    if not 0.0 < level < 1.0:
        raise UsageError(f"the level must be between 0 and 1, got {level!r}; 0.01 lets 1 equal model in 100 fail")


def judged(difference: float, low: float, high: float, margin: float) -> Outcome:
    """The verdict on a difference of absolute effect sizes and its interval."""
    if high <= margin:
        return "no worse"
    return "worse" if low > 0.0 and difference > margin else "cannot tell"


def failing(verdicts: Sequence[Verdict], fail_if: str) -> tuple[Verdict, ...]:
    """The verdicts that fail a gate: those that are worse, or all that do not show that the new model is no worse.

    A test that was lost fails either; one that neither model could be measured by fails none, unless no other is left.
    """
    if fail_if not in FAIL_IF:
        raise UsageError(f"fail_if is {' or '.join(map(repr, FAIL_IF))}, got {fail_if!r}")
    for model, own in _by_model(verdicts).items():
        if not any(verdict.difference is not None or verdict.outcome == "lost" for verdict in own):
            reason = next((verdict.reason for verdict in own if verdict.reason), "no test was measured")
            raise MeasurementError(
                f"{model} could not be compared with {own[0].baseline} by any test about people: {reason}"
            )
    if not verdicts:
        raise UsageError("there is no test about people to judge by; a gate needs effects with intervals")
    fails = _FAILS[next(known for known in FAIL_IF if known == fail_if)]
    return tuple(verdict for verdict in verdicts if verdict.outcome in fails)


def all_lost(model: str, why: str, others: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Of a model that could not be measured at all: the tests that the old model has in the verdicts on others."""
    made = []
    for one in next(iter(_by_model(others).values()), ()):
        neither = one.outcome == "not measured" or (one.effect_baseline is None and one.effect_model is not None)
        outcome: Outcome = "not measured" if neither else "lost"
        names = one.test, one.title, one.baseline, model
        made.append(Verdict(*names, outcome, why, None, None, one.margin, one.level, unit=one.unit))
    return tuple(made)


def unmeasured(verdicts: Sequence[Verdict]) -> list[str]:
    """The models of which nothing was measured by any test about people."""
    missing = ("lost", "not measured")
    return [model for model, own in _by_model(verdicts).items() if all(one.outcome in missing for one in own)]


def verdict_sentence(verdicts: Sequence[Verdict]) -> str:
    """What is to be said of each new model, a sentence each."""
    return " ".join(map(_sentence, _by_model(verdicts).values()))


def _by_model(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.model, []).append(verdict)
    return found


def _sentence(verdicts: Sequence[Verdict]) -> str:
    model, baseline = verdicts[0].model, verdicts[0].baseline
    tests: dict[Outcome, list[str]] = {}
    for verdict in verdicts:
        tests.setdefault(verdict.outcome, []).append(verdict.test)
    parts = [
        f"{words} {len(tests[outcome])}{_names(tests[outcome]) if named else ''}"
        for outcome, words, named in (
            ("worse", "worse", True),
            ("lost", "measured on the old model only", True),
            ("no worse", "no worse", False),
            ("cannot tell", "cannot tell", False),
            ("not measured", "measured on neither", True),
        )
        if outcome in tests
    ]
    number = f"{len(verdicts)} test{'s' if len(verdicts) > 1 else ''} about people"
    return f"{model} {_said(tests)} {baseline}: of {number}, {', '.join(parts)}."


def _said(tests: dict[Outcome, list[str]]) -> str:
    if "worse" in tests:
        return "is worse than"
    if not {"cannot tell", "no worse"} & tests.keys():
        return "could be measured by no test of"
    if "lost" in tests:
        return "could not be measured by every test of"
    if "cannot tell" in tests or "no worse" not in tests:
        return "is not shown to be worse than"
    return "is no worse than"


def _names(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - _NAMED} more" if len(tests) > _NAMED else ""
    return f" ({', '.join(tests[:_NAMED])}{more})"
