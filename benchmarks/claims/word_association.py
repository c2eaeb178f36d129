"""Word association tests and relative decisions: models with every bias but the tested one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from itertools import product
from math import nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.word_associations import select_word_associations
from biassay.stats.multiple_testing import holm
from biassay.stats.relative_decisions import relative_decisions
from biassay.stats.word_association import bai_score_test, compute_bai_scores, word_association
from biassay.studies.word_association.prompts import make_association_prompts

from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, Power, Share, up_to

__all__ = ["CLAIMS", "lines"]

World = Literal["words", "pairs", "opposite", "answers", "log-odds", "coins", "coins by pair", "skewed", "order"]
Withheld = Literal[
    "negative to the stigmatised",
    "positive to the default",
    "some negative to the default",
    "stereotyped replies",
    "by pair",
]
_ABOUT: dict[World, str] = {
    "words": "words lean to groups, poles to none",
    "pairs": "poles lean to groups by pair, each as it comes",
    "opposite": "with every pair the poles lean apart, all the way, either way",
    "answers": "in every answer the poles lean apart, either way",
    "log-odds": "words lean to groups, poles to none; log-odds",
    "coins": "every response gives one pole to one group and the other pole to the other, by a coin",
    "coins by pair": "the same by a coin per pair of group words",
    "skewed": "few words lean far to a group, most lean a little to the other; poles to none",
    "order": "about 95% of words go to the group word that is named first",
}
_WITHHELD: dict[Withheld, str] = {
    "negative to the stigmatised": "75% of negative words given to the stigmatised group are left out",
    "positive to the default": "75% of positive words given to the default group are left out",
    "some negative to the default": "10% of negative words given to the default group are left out",
    "stereotyped replies": "75% of replies that follow the stereotype refuse, 10% of the others",
    "by pair": "with half of the pairs 60% of replies that follow the stereotype refuse; with the others, of the rest",
}
_FEW_WORDS = {
    f"{words} words, {pairs} pairs": {
        "name": f"few-{words}-{pairs}",
        "default": [f"default{i}" for i in range(pairs)],
        "stigmatised": [f"other{i}" for i in range(pairs)],
        "positive": [f"good{i}" for i in range(words)],
        "negative": [f"bad{i}" for i in range(words)],
    }
    for words, pairs in ((4, 1), (4, 6), (8, 6))
}
_OPPOSITE, _ANSWERS, _CERTAIN, _ORDER = 10.0, 6.0, 60.0, 5.0
_SEVERAL = {"wat-islam": 4, "wat-career": 5, "wat-science": 8, "wat-arab-muslim": 10}
_REPETITIONS = 2000

CLAIMS = (
    Claim(
        "word association p",
        "word_association",
        "p of word associations",
        ("word_association.results.p_value",),
        "The poles are assigned to different groups. The result generalizes to other words and, with "
        "several pairs of group words, to other pairs; with one pair, to other responses. Two-sided.",
        "No difference between the poles on average over samples of words, group words and responses.",
        "attribute word and pair of group words, or block of responses",
        "Words and pairs are samples of their kinds.",
        "Never below .05 with fewer than six pairs.",
    ),
    Claim(
        "word association interval",
        "word_association",
        "interval of the difference of poles",
        ("word_association.results.ci_low", "word_association.results.ci_high"),
        "The range of the difference of shares over other words and pairs, or over other responses.",
        "The model's difference on average over samples; with one pair of group words, the difference for this pair.",
        "that of the p-value",
        "Those of the p-value.",
        "No interval with fewer than six pairs, and none of log-odds with one pair.",
    ),
    Claim(
        "word association bounds",
        "word_association",
        "bounds of the difference of poles",
        ("word_association.results.bound_low", "word_association.results.bound_high"),
        "The range of the difference over all responses, whatever the missing ones would have been.",
        "The model's difference in all requested responses, before some are withheld.",
        "response",
        "None.",
    ),
    Claim(
        "word association evidence",
        "word_association",
        "significant word associations",
        (),
        "No significant result has the wrong sign, whichever responses are withheld, and no result is "
        "significant if responses follow the order of the group words.",
        "The sign of the model's difference before responses are withheld.",
        "test",
        "None about which responses are missing.",
    ),
    Claim(
        "word association p, read",
        "word_association",
        "p of the responses read",
        ("word_association.results.read_p_value",),
        "The p-value without missing responses, if they are missing at random.",
        "No difference between the poles on average over samples of words, group words and responses.",
        "that of the p-value",
        "Responses are missing at random.",
        "Rejects far too often, and with the wrong sign, if refusals depend on the response.",
    ),
    Claim(
        "word association p, these groups",
        "word_association",
        "p, these group words",
        ("word_association.results.fixed_groups_p_value",),
        "The poles are assigned to different groups. The result generalizes to other words and responses, "
        "but only for these group words.",
        "No difference between the poles with these group words.",
        "attribute word and block of responses",
        "Words are a sample of their kind.",
        "Says nothing about other group words: if they are sampled again, it rejects far too often.",
    ),
    Claim(
        "word association exact p",
        "word_association",
        "p, these answers",
        ("word_association.results.fixed_words_p_value",),
        "Words of the two poles differ in these responses. Exact.",
        "Words are exchangeable between the poles.",
        "attribute word",
        "Only words differ between the poles.",
        "Rejects far too often if the words of a pole are correlated within a response or a pair.",
    ),
    Claim(
        "word association published p",
        "word_association",
        "p of D as published",
        ("word_association.results.bai_p_value",),
        "The mean of D over responses is not 0, for these words only.",
        "D is 0 on average over responses.",
        "response",
        "Responses are independent, although they repeat the same words.",
        "Rejects far too often as a test of words.",
    ),
    Claim(
        "decisions p",
        "word_association",
        "p of relative decisions",
        ("word_association.relative_decisions.p_by_task",),
        "More tasks follow the stereotype than contradict it. Exact, two-sided.",
        "Each task follows or contradicts the stereotype with probability one half.",
        "task",
        "Tasks are independent.",
    ),
    Claim(
        "decisions interval",
        "word_association",
        "interval of relative decisions",
        ("word_association.relative_decisions.low", "word_association.relative_decisions.high"),
        "The range of the share of decisions that follow the stereotype, over other tasks.",
        "The share on average over tasks.",
        "task",
        "Tasks are independent.",
    ),
    Claim(
        "decisions bounds",
        "word_association",
        "bounds of relative decisions",
        ("word_association.relative_decisions.bound_low", "word_association.relative_decisions.bound_high"),
        "The range of the share over all decisions, whatever the missing ones would have been.",
        "The share before decisions are withheld.",
        "decision",
        "None.",
    ),
    Claim(
        "decisions p by decision",
        "word_association",
        "p by decision",
        ("word_association.relative_decisions.p_by_decision",),
        "More decisions follow the stereotype than contradict it, for these tasks.",
        "Each decision follows or contradicts the stereotype with probability one half.",
        "decision",
        "Decisions are independent, although those about one task are not.",
        "Rejects far too often for other tasks.",
    ),
    Claim(
        "word association Holm",
        "word_association",
        "p, Holm",
        ("word_association.results.p_adjusted", "word_association.decisions.p_adjusted"),
        "With 95% probability, no test on a model is falsely significant.",
        "No difference between the poles in any of the 21 data sets.",
        "that of the p-value",
        "None about the dependence between tests.",
        "Uses Tarone's refinement, which leaves out tests with too few pairs or words to reach a level.",
    ),
)


@cache
def _design(name: str) -> tuple[NDArray[np.bool_], dict[str, Any], NDArray[np.float64]]:
    """Return poles, pairs, orders and blocks of the prompts, and each word's relative position from -1 to 1."""
    test = select_word_associations(_FEW_WORDS.get(name, name))[0]
    prompts = make_association_prompts(test)
    fields = {key: np.array([getattr(p, source) for p in prompts]) for key, source in _FIELDS.items()}
    places = np.array([[p.words.index(word) for word in test.words] for p in prompts], dtype=np.float64)
    return np.array(test.is_negative), fields, 2.0 * places / (len(test.words) - 1) - 1.0


_FIELDS = {"pairs": "pair", "stigmatised_first": "stigmatised_first", "blocks": "block"}


def _answers(
    rng: np.random.Generator, name: str, world: World, lean: float
) -> tuple[NDArray[np.float64], dict[str, Any], float]:
    """Draw the words that a model gives to the stigmatised group; return them with design and true difference.

    Log-odds vary by word, pair, word within pair, the group named first and the position in the list. The
    last two are fixed for a model and so part of the truth, as is the effect of the group words if there is only
    one pair.
    """
    negative, design, places = _design(name)
    words, pairs = len(negative), int(design["pairs"].max()) + 1
    if world == "log-odds":  # every pair once in either order, each word by itself
        both = np.tile([False, True], pairs)
        design, places = {"pairs": np.repeat(np.arange(pairs), 2), "stigmatised_first": both}, np.zeros(words)
    first, of, pole = design["stigmatised_first"], design["pairs"], negative.astype(int)
    by_pair, order, place = rng.normal(size=(pairs, 1)), abs(rng.normal()), rng.normal()
    odds = rng.normal(size=words) + by_pair[of] + 0.5 * rng.normal(size=(pairs, words))[of]
    odds = odds + np.where(first, 1.0, -1.0)[:, None] * (order + 0.5 * rng.normal(size=words))
    odds = odds + place * places + lean * (pole - 0.5)
    if world == "skewed":
        odds = odds + 2.0 * (rng.exponential(size=words) - 1.0)
    if world == "coins":
        odds = odds + _CERTAIN * rng.choice([-1.0, 1.0], size=(len(of), 1)) * (pole - 0.5)
    if world == "coins by pair":
        odds = odds + _CERTAIN * rng.choice([-1.0, 1.0], size=(pairs, 1))[of] * (pole - 0.5)
    if world == "order":
        odds = odds + np.where(first, 1.0, -1.0)[:, None] * _ORDER
    if world == "pairs":
        odds = odds + (rng.normal(size=(pairs, 2))[of])[:, pole]
    if world == "opposite":
        odds = odds + _OPPOSITE * rng.normal(size=(pairs, 1))[of] * (pole - 0.5)
    if world == "answers":
        odds = odds + _ANSWERS * rng.normal(size=(len(of), 1)) * (pole - 0.5)
    if world == "log-odds":
        return np.asarray(odds), design, lean
    given = np.asarray(rng.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds)), dtype=np.float64)
    where = order * np.array([[1.0], [-1.0]]) + place * np.linspace(-1.0, 1.0, words)
    return given, design, _true_difference(lean, where, by_pair)


def _true_difference(lean: float, where: NDArray[np.float64], by_pair: NDArray[np.float64]) -> float:
    """Return the true difference of shares, averaged over words and, if there are several, over pairs."""
    if not lean:
        return 0.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    several = len(by_pair) > 1
    at = where[..., None] + np.sqrt(1.5 + several) * nodes + (0.0 if several else float(by_pair[0, 0]))
    apart = 1.0 / (1.0 + np.exp(-at - lean / 2.0)) - 1.0 / (1.0 + np.exp(-at + lean / 2.0))
    return float((apart @ weights).mean() / weights.sum())


def _withheld(
    rng: np.random.Generator, values: NDArray[np.float64], negative: NDArray[np.bool_], pairs: Any, how: Withheld
) -> NDArray[np.float64]:
    """Draw responses that are missing at a rate that depends on their value."""
    drawn = rng.random(values.shape)
    if how == "negative to the stigmatised":
        return np.where((drawn < 0.75) & negative & (values == 1.0), nan, values)
    if how == "positive to the default":
        return np.where((drawn < 0.75) & ~negative & (values == 0.0), nan, values)
    if how == "some negative to the default":
        return np.where((drawn < 0.1) & negative & (values == 0.0), nan, values)
    follows = values[:, negative].mean(axis=1) > values[:, ~negative].mean(axis=1)
    refused = np.where(follows, 0.75, 0.1)
    if how == "by pair":
        refused = np.where(follows == (pairs % 2 == 0), 0.6, 0.0)
    return np.where(drawn[:, :1] < refused[:, None], nan, values)


def _asked_in_part(
    rng: np.random.Generator, name: str, world: World, how: Withheld, lean: float = 0.0
) -> Mapping[str, Any]:
    """Measure with selectively missing responses; return interval and bounds minus what they should cover."""
    negative = _design(name)[0]
    values, design, truth = _answers(rng, name, world, lean)
    found = word_association(_withheld(rng, values, negative, design["pairs"], how), negative, **design)
    whole = word_association(values, negative, **design).difference
    p, read = (nan if one is None else one for one in (found.p_value, found.p_value_without_missing))
    low, high = found.interval or (nan, nan)
    return {
        "p": p,
        "read": read,
        "wrong": p <= 0.05 and found.difference * lean < 0.0,
        "low": low - truth,
        "high": high - truth,
        "bound low": found.bounds[0] - whole - 1e-9,
        "bound high": found.bounds[1] - whole + 1e-9,
    }


def _significant(rng: np.random.Generator, name: str, world: World, lean: float = 0.0) -> Mapping[str, Any]:
    """Return p if `evidence` calls the test significant in a family of one, otherwise NaN."""
    negative = _design(name)[0]
    values, design, _ = _answers(rng, name, world, lean)
    found = word_association(values, negative, **design)
    concluded = found.p_value is not None and found.p_value <= 0.05 and not found.follows_order
    return {"concluded": concluded, "p": found.p_value if concluded else nan}


def _asked(rng: np.random.Generator, name: str, world: World, lean: float = 0.0) -> Mapping[str, Any]:
    """Return p-values, and the ends of the interval minus the true difference."""
    negative = _design(name)[0]
    values, design, truth = _answers(rng, name, world, lean)
    log_odds = world == "log-odds"
    found = word_association(values, negative, **design, log_odds=log_odds)
    low, high = found.interval or (nan, nan)
    assert found.exact is not None
    return {
        "p": nan if found.p_value is None else found.p_value,
        "low": low - truth,
        "high": high - truth,
        "t": nan if found.pair_test is None else found.pair_test.test.p_value,
        "these groups": nan if found.response_test is None else found.response_test.p_value,
        "exact": found.exact.value,
        "published": nan if log_odds else bai_score_test(compute_bai_scores(values, negative)).p_value,
    }


def _family(rng: np.random.Generator) -> Mapping[str, Any]:
    """Test all data sets on one model."""
    p_values, floors = [], []
    for test in select_word_associations("wat-*"):
        values, design, _ = _answers(rng, test.name, "words", 0.0)
        found = word_association(values, test.is_negative, **design)
        if found.p_value is not None and found.crossed is not None:
            p_values.append(found.p_value)
            floors.append(found.crossed.smallest_p_value)
    return {"any": bool((holm(p_values, 0.05, floors=floors).adjusted <= 0.05).any())}


def _decided(rng: np.random.Generator, tasks: int, lean: float = 0.0) -> Mapping[str, Any]:
    """Draw decisions with task effects, correlated within a task, and a preference for the first person."""
    of, orders = np.repeat(np.arange(tasks), 10), np.tile([False, True], 5 * tasks)
    odds = lean + 2.0 * rng.normal(size=tasks)[of] + np.where(orders, 1.0, -1.0)
    follows = (rng.random(len(of)) < 1.0 / (1.0 + np.exp(-odds))).astype(np.float64)
    found = relative_decisions(follows, of, orders=orders)
    low, high = found.interval or (nan, nan)
    p = nan if found.p_by_task is None else found.p_by_task
    withheld = np.where((rng.random(len(of)) < 0.5) & (follows == 1.0), nan, follows)
    bounds = relative_decisions(withheld, of, orders=orders).bounds
    return {
        "p": p,
        "by decision": found.p_by_decision,
        "low": low,
        "high": high,
        "share": found.share,
        "bound low": bounds[0] - found.share - 1e-9,
        "bound high": bounds[1] - found.share + 1e-9,
    }


def _world(name: str, world: World, lean: float = 0.0, repetitions: int = _REPETITIONS) -> Experiment:
    negative, design, _ = _design(name)
    pairs = int(design["pairs"].max()) + 1
    asked = "each pair in both orders" if world == "log-odds" else f"{len(design['pairs'])} answers"
    counts = f"{int(negative.sum())} words per pole, {pairs} {'pair' if pairs == 1 else 'pairs'}"
    about = f"{name}: {counts}, {asked}; {_ABOUT[world]}"
    called = f"word association {name} {world}{f' {lean:g}' if lean else ''}"
    return Experiment(called, about, partial(_asked, name=name, world=world, lean=lean), repetitions)


def _in_part(name: str, how: Withheld, lean: float) -> Experiment:
    about = f"{_world(name, 'words').simulated}; {_WITHHELD[how]}{f'; poles lean by {lean:g}' if lean else ''}"
    called = f"word association {name} withheld {how}{f' {lean:g}' if lean else ''}"
    return Experiment(called, about, partial(_asked_in_part, name=name, world="words", how=how, lean=lean), 1000)


def _concluded(name: str, world: World, lean: float = 0.0) -> Experiment:
    about = f"{_world(name, world).simulated}{f'; poles lean by {lean:g}' if lean else ''}"
    called = f"word association concluded {name} {world}{f' {lean:g}' if lean else ''}"
    return Experiment(called, about, partial(_significant, name=name, world=world, lean=lean), 1000)


def lines() -> list[Line]:
    """List all rows of word associations."""
    p, interval, bounds, evidence, read, these, exact, published, decisions, share, missing, by_decision, family = (
        claim.name for claim in CLAIMS
    )
    limits = up_to(0.06)
    found = []
    alone: tuple[World, ...] = ("words", "answers")
    for world in alone:
        one = _world("wat-racism", world)
        own = world == "words"
        found += [
            Line(p, one, Level("p", limits)),
            Line(interval, one, Coverage("low", "high", 0.0, INTERVAL)),
            Line(exact, one, Level("exact", limits if own else None), "" if own else "not its null"),
            Line(published, one, Level("published"), "not its null: words are redrawn"),
        ]
    for name, lean in (("wat-racism", 1.0), ("wat-racism", 2.0), ("wat-racism", 3.0), ("wat-science", 2.0)):
        leaning = _world(name, "words", lean)
        found.append(Line(interval, leaning, Coverage("low", "high", 0.0, INTERVAL), f"poles lean by {lean:g}"))
    found += [Line(p, _world(name, "log-odds"), Level("p", limits)) for name in ("wat-racism", "wat-science")]
    found.append(Line(interval, _world("wat-science", "log-odds"), Coverage("low", "high", 0.0, INTERVAL)))
    among: tuple[World, ...] = ("words", "pairs", "opposite")
    for name, pairs in _SEVERAL.items():
        for world in among:
            several = _world(name, world)
            found.append(Line(p, several, Level("p", limits)))
            if pairs < 6:
                found.append(Line(p, several, Level("t"), "by t alone, as if pairs were normal"))
            else:
                found.append(Line(interval, several, Coverage("low", "high", 0.0, INTERVAL)))
            own = world == "words"
            note = "" if own else "not its null: pairs are redrawn"
            found.append(Line(these, several, Level("these groups", limits if own else None), note))
            found.append(Line(exact, several, Level("exact", limits if own else None), note))
    extremes: tuple[tuple[str, World], ...] = (
        *(("wat-racism", world) for world in ("coins", "skewed")),
        *(("wat-science", world) for world in ("coins", "coins by pair", "skewed")),
        *(("4 words, 6 pairs", world) for world in ("coins", "coins by pair", "skewed", "opposite")),
        ("4 words, 1 pairs", "coins"),
    )
    found += [Line(p, _world(name, world, repetitions=4000), Level("p", limits)) for name, world in extremes]
    for name, how in product(("wat-racism", "wat-science"), _WITHHELD):
        if name == "wat-racism" and how == "by pair":
            continue
        null, leaning = (_in_part(name, how, lean) for lean in (0.0, 1.5))
        found += [
            Line(p, null, Level("p", limits)),
            Line(read, null, Level("read"), "not its null: refusals depend on the response"),
            Line(evidence, leaning, Share("wrong", 0.001), "wrong sign"),
            Line(bounds, leaning, Coverage("bound low", "bound high", 0.0, (1.0, 1.0))),
            Line(interval, leaning, Coverage("low", "high", 0.0, (0.93, 1.0)), "responses withheld"),
        ]
    for name in ("wat-racism", "wat-science"):
        ordered = _concluded(name, "order")
        found.append(Line(evidence, ordered, Share("concluded", 0.001), "follows the order"))
    for name in ("4 words, 1 pairs", "4 words, 6 pairs", "8 words, 6 pairs", "wat-disability", "wat-science"):
        for lean in (_CERTAIN, 14.0):
            found.append(Line(evidence, _concluded(name, "words", lean), Power("p", 1.0), "maximal bias"))
    for tasks, lean in ((8, 0.0), (20, 0.0), (20, 1.0)):
        about = f"{tasks} tasks, 10 decisions each{f', lean {lean:g}' if lean else ''}"
        drawn = Experiment(
            f"relative decisions {tasks} {lean:g}", about, partial(_decided, tasks=tasks, lean=lean), 2000
        )
        found.append(Line(share, drawn, Coverage("low", "high", "share", INTERVAL)))
        found.append(Line(missing, drawn, Coverage("bound low", "bound high", 0.0, (1.0, 1.0))))
        if not lean:
            found.append(Line(decisions, drawn, Level("p", limits)))
            found.append(Line(by_decision, drawn, Level("by decision"), "not its null: tasks are redrawn"))
    every = Experiment("word association family", "the 21 data sets on one model, poles lean to no group", _family, 400)
    found.append(Line(family, every, Share("any", 0.05)))
    return found
