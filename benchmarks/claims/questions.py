"""Question benchmarks: WinoBias, Winogender and discrim-eval."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.stats.specification_curve import joint_sign_test
from biassay.studies.benchmarks.tasks import get_task
from biassay.studies.benchmarks.tasks.discrim_eval import DecisionQuestion
from biassay.studies.benchmarks.tasks.questions import Answer, Question, QuestionTask
from biassay.studies.benchmarks.tasks.winogender import CHANGED, WOMEN, WinogenderQuestion

from .claim import Claim, Coverage, Experiment, Level, Line, up_to

__all__ = ["CLAIMS", "lines"]

_WIDE = (0.93, 1.0)
CLAIMS = (
    Claim(
        "accuracy gap",
        "benchmarks",
        "95% and p of the accuracy gap of WinoBias",
        (),
        "The range of the gap over other sentence templates with these occupations; p tests whether it is 0.",
        "The expected gap.",
        "sentence template",
        "Templates are a sample of their kind.",
        "Does not generalize to other occupations: if occupations differ, the interval for other occupations would be "
        "wider.",
    ),
    Claim(
        "pairs resolved differently",
        "benchmarks",
        "95% of the share of Winogender pairs that are resolved differently",
        (),
        "The range of the share over other occupations.",
        "The expected share.",
        "occupation",
        "Occupations are a sample of their kind.",
    ),
    Claim(
        "correlation with women",
        "benchmarks",
        "95% and p of the correlation of Winogender with the share of women",
        (),
        "The range of the correlation over other occupations; p tests whether it is 0.",
        "The correlation over all occupations.",
        "occupation",
        "Occupations are a sample of their kind.",
        "Few occupations with a pair that is resolved differently: the correlation is often undefined.",
    ),
    Claim(
        "log-odds by question",
        "benchmarks",
        "95% and p of the log-odds of discrim-eval",
        (),
        "The range of the difference in log-odds over other decision questions; p tests whether it is 0.",
        "The expected difference.",
        "decision question",
        "Questions are a sample of their kind.",
        "With answers in words, the log-odds are those of shares with one half added to both counts, which are closer "
        "to 0 if almost all answers are the same.",
    ),
    Claim(
        "joint p by sign",
        "prompt_robustness",
        "p of the median over ways to ask, by signs of sampling units",
        (
            "prompt_robustness.results.joint_p_value",
            "prompt_robustness.results.p_value",
            "prompt_robustness.results.p_adjusted",
            "prompt_robustness.results.ci_low",
            "prompt_robustness.results.ci_high",
            "prompt_robustness.specifications.p_value",
            "prompt_robustness.specifications.ci_low",
            "prompt_robustness.specifications.ci_high",
            "prompt_robustness.decisions.p_adjusted",
        ),
        "The median effect over specifications is not 0. Other numbers are those of `benchmark` and `ask`.",
        "Each sampling unit leans in either direction alike.",
        "sampling unit",
        "Contributions of units are symmetric around 0.",
        "Rejects 7.5% of the time if the contributions of 25 units are skewed.",
    ),
)


def _task(name: str) -> QuestionTask:
    task = get_task(name)
    assert isinstance(task, QuestionTask)
    return task


def _estimate(
    name: str, answers: list[tuple[Any, Answer]], condition: str = "", category: str = ""
) -> dict[str, float]:
    task = _task(name)
    for score in task.add_up(answers):
        if score.condition == condition and score.category == (category or score.category):
            totals = np.array(list(score.totals.values()), dtype=np.float64)
            found = task.get_statistic(condition).estimate(totals, 0.95)
            return {"value": found.value, "low": found.interval[0], "high": found.interval[1], "p": found.p_value}
    raise ValueError(condition)


def _spread(rng: np.random.Generator, n: int, kind: str) -> NDArray[np.float64]:
    """Draw effects of n units with mean 0: normal, skewed, or 0 for all but a few units."""
    if kind == "skewed":
        return rng.exponential(1.0, n) - 1.0
    if kind == "rare":
        return np.where(rng.random(n) < 0.05, rng.choice([-6.0, 6.0], n), 0.0)
    return rng.normal(0.0, 1.0, n)


def _wino_bias(rng: np.random.Generator, *, templates: int, lean: float, kind: str, refused: float) -> dict[str, float]:
    own = _spread(rng, templates, kind)
    level = rng.normal(1.0, 1.0, templates)
    some = rng.random(templates) < refused  # templates in which most questions are refused
    answers = []
    for t in range(templates):
        for line in (0, 1):
            for sign, version in ((0.5, "pro"), (-0.5, "anti")):
                p = 1.0 / (1.0 + np.exp(-(level[t] + sign * (lean + own[t]))))
                right = bool(rng.random() < p)
                missing = bool(some[t] and rng.random() < 0.6)
                item = Question(
                    id=f"{version} {t} {line}",
                    category="type 1",
                    unit=str(t),
                    context="",
                    options=("a", "b"),
                    correct=0,
                )
                answers.append((item, Answer(None if missing else int(not right))))
    return _estimate("winobias", answers)


_WOMEN = np.array([2, 4, 10, 18, 27, 34, 38, 43, 52, 57, 61, 70, 73, 77, 84, 90, 92, 95], dtype=np.float64)


def _gaps(rng: np.random.Generator, n: int, slope: float, kind: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw shares of women, and four pairs each: 1 if only "she" resolves to the occupation, -1 if only "he"."""
    women = rng.choice(_WOMEN, n)
    lean = slope * (women / 100.0 - 0.5)
    if kind == "rare":
        active = rng.random(n) < 0.1
        p = np.clip(0.5 + lean / 2.0, 0.0, 1.0)[:, None]
        signs = np.where(rng.random((n, 1)) < p, 1, -1)
        return women, np.where(active[:, None], signs, 0) * (rng.random((n, 4)) < 0.7)
    if kind == "wider":
        lean = lean + rng.normal(0.0, 1.2, n) * np.abs(women / 100.0 - 0.5)
    else:
        lean = lean + 0.4 * _spread(rng, n, kind)
    p = np.clip(0.5 + lean / 2.0, 0.0, 1.0)[:, None]
    return women, np.where(rng.random((n, 4)) < 0.35, np.where(rng.random((n, 4)) < p, 1, -1), 0)


def _winogender(
    rng: np.random.Generator, *, occupations: int, slope: float, kind: str, condition: str
) -> dict[str, float]:
    women, gaps = _gaps(rng, occupations, slope, kind)
    answers = []
    for unit, (share, of) in enumerate(zip(women, gaps.tolist(), strict=True)):
        for pair, gap in enumerate(of):
            for female in (True, False):
                item = WinogenderQuestion(
                    id=f"{unit} {pair} {female}",
                    category="she or he",
                    unit=str(unit),
                    context="",
                    options=("occupation", "participant"),
                    pair=f"{unit} {pair}",
                    female=female,
                    occupation=0,
                    share_of_women=float(share),
                )
                answers.append((item, Answer(0 if gap == (1 if female else -1) else 1)))
    return _estimate("winogender", answers, condition)


def _true_correlation(slope: float, kind: str) -> float:
    women, gaps = _gaps(np.random.default_rng(0), 400_000, slope, kind)
    return float(np.corrcoef(women, gaps.mean(axis=1))[0, 1]) if slope else 0.0


_PEOPLE = [(60, gender, race) for gender in ("male", "female") for race in ("white", "Asian", "Black", "Hispanic")]


def _discrim_eval(
    rng: np.random.Generator, *, questions: int, lean: float, kind: str, words: bool, base: float
) -> dict[str, float]:
    own = 0.5 * _spread(rng, questions, kind) * (2.0 if kind == "rare" else 1.0)
    level = base + rng.normal(0.0, 1.0, questions)
    answers = []
    for q in range(questions):
        for profile in _PEOPLE:
            x = level[q] + (lean + own[q]) * (profile[1] == "female") + rng.normal(0.0, 0.3)
            yes = rng.random() < 1.0 / (1.0 + np.exp(-x)) if words else x > 0.0
            log_p = () if words else (float(-np.log1p(np.exp(-x))), float(-np.log1p(np.exp(x))))
            item = DecisionQuestion(
                id=f"{q} {profile}",
                category="explicit",
                unit=str(q),
                context="",
                options=("Yes", "No"),
                profile=profile,
            )
            answers.append((item, Answer(int(not yes), log_p)))
    return _estimate("discrim-eval", answers, category="female")


def _joint(rng: np.random.Generator, *, units: int, kind: str, shared: float) -> dict[str, float]:
    common = _spread(rng, units, kind)
    own = np.array([_spread(rng, units, kind) for _ in range(8)])
    return {"p": joint_sign_test(np.sqrt(shared) * common + np.sqrt(1.0 - shared) * own, rng=rng).p_value}


def lines() -> list[Line]:
    found = []
    for units, kind, shared in (
        (8, "normal", 0.5),
        (25, "normal", 0.9),
        (25, "rare", 0.5),
        (198, "normal", 0.5),
        (25, "skewed", 0.9),
    ):
        world = Experiment(
            f"joint signs {units} {kind} {shared:g}",
            f"8 specifications of {units} units, {kind} effects, share {shared:g} of their variance common to all",
            partial(_joint, units=units, kind=kind, shared=shared),
            1000,
        )
        found.append(Line("joint p by sign", world, Level("p", None if kind == "skewed" else up_to(0.065))))
    for templates, lean, kind, refused in (
        (198, 0.0, "normal", 0.0),
        (198, 0.0, "skewed", 0.2),
        (198, 0.0, "rare", 0.0),
        (198, 1.0, "skewed", 0.0),
        (20, 0.0, "normal", 0.3),
        (20, 0.0, "rare", 0.0),
        (20, 1.0, "skewed", 0.3),
        (6, 0.0, "skewed", 0.0),
        (6, 1.0, "normal", 0.3),
    ):
        world = Experiment(
            f"winobias {templates} {lean:g} {kind} {refused:g}",
            f"{templates} templates of four sentences, {kind} effects of SD 1 logit around {lean:g}"
            + (f"; 60% refused in {refused:.0%} of templates" if refused else ""),
            partial(_wino_bias, templates=templates, lean=lean, kind=kind, refused=refused),
            1000,
        )
        found.append(Line("accuracy gap", world, Coverage("low", "high", "value", _WIDE)))
        if not lean and kind != "skewed":
            found.append(Line("accuracy gap", world, Level("p", up_to(0.065)), "p"))
    for n, slope, kind in (
        (60, 0.0, "normal"),
        (60, 1.0, "skewed"),
        (60, 0.0, "wider"),
        (60, 0.0, "rare"),
        (20, 0.0, "skewed"),
        (20, 1.0, "normal"),
        (20, 0.0, "rare"),
        (8, 0.0, "wider"),
        (8, 1.0, "skewed"),
    ):
        about = f"{n} occupations of four pairs, slope {slope:g}, {kind}"
        draw = partial(_winogender, occupations=n, slope=slope, kind=kind)
        share = Experiment(f"winogender share {n} {slope:g} {kind}", about, partial(draw, condition=CHANGED), 1000)
        women = Experiment(f"winogender women {n} {slope:g} {kind}", about, partial(draw, condition=WOMEN), 1000)
        truth = _true_correlation(slope, kind)
        found.append(Line("pairs resolved differently", share, Coverage("low", "high", "value", _WIDE)))
        found.append(Line("correlation with women", women, Coverage("low", "high", truth, _WIDE)))
        if not slope:
            found.append(Line("correlation with women", women, Level("p", up_to(0.065)), "p"))
    for questions, lean, kind, words, base in (
        (70, 0.0, "normal", False, 0.0),
        (70, 0.0, "skewed", False, 0.0),
        (70, 0.0, "rare", False, 0.0),
        (70, 0.5, "normal", False, 2.0),
        (70, 0.0, "normal", True, 2.0),
        (70, 0.5, "normal", True, 0.0),
        (70, 0.0, "rare", True, 3.0),
        (20, 0.0, "skewed", False, 0.0),
        (20, 0.0, "rare", True, 0.0),
        (6, 0.0, "normal", True, 0.0),
        (6, 0.5, "skewed", False, 0.0),
    ):
        world = Experiment(
            f"discrim-eval {questions} {lean:g} {kind} {'words' if words else 'log-odds'} {base:g}",
            f"{questions} questions about 8 people, {kind} effects of SD 0.5 around {lean:g}, read from "
            f"{'answers' if words else 'log-probabilities'}, mean log-odds of yes {base:g}",
            partial(_discrim_eval, questions=questions, lean=lean, kind=kind, words=words, base=base),
            1000,
        )
        found.append(Line("log-odds by question", world, Coverage("low", "high", "value", _WIDE)))
        if not lean and not (words and kind != "normal" and base):  # near a limit, the mean of such effects is not 0
            found.append(Line("log-odds by question", world, Level("p", up_to(0.065)), "p"))
    return found
