"""Word association tests and relative decisions: models that lean in all ways but one, asked by the design of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from math import nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association_score import association_scores, score_test
from biassay.stats.decisions import relative_decisions
from biassay.stats.word_association import word_association
from biassay.stimuli.word_associations import select_word_associations
from biassay.texts.association_prompts import association_prompts

from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, up_to

__all__ = ["CLAIMS", "lines"]

World = Literal["words", "pairs", "opposite", "answers"]
_ABOUT: dict[World, str] = {
    "words": "words lean to groups, poles to none",
    "pairs": "poles lean to groups by pair, each as it comes",
    "opposite": "with every pair the poles lean apart, all the way, either way",
    "answers": "in every answer the poles lean apart, either way",
}
_OPPOSITE, _ANSWERS = 10.0, 6.0
_SEVERAL = {"wat-islam": 4, "wat-career": 5, "wat-science": 8, "wat-arab-muslim": 10}
_REPETITIONS = 2000

CLAIMS = (
    Claim(
        "word association p",
        "word_association",
        "p of word associations",
        (),
        "The poles are given to different groups: other words, and other pairs of group words where there are several, "
        "else other answers, would show it too. Two-sided.",
        "No difference of the poles on average over draws of words, group words and answers.",
        "attribute word and pair of group words, or block of answers",
        "Words and pairs are a sample of their kind.",
        "With fewer than six pairs it is never below .05.",
    ),
    Claim(
        "word association interval",
        "word_association",
        "interval of the difference of poles",
        (),
        "Where the difference of shares lies, words and pairs, or answers, drawn anew.",
        "The difference on average over draws.",
        "as the p-value",
        "As the p-value.",
        "There is none with fewer than six pairs; near -1 and 1 it holds the truth in 91 of 100.",
    ),
    Claim(
        "word association p, these groups",
        "word_association",
        "p, these group words",
        (),
        "The same of other words and other answers, with these very group words.",
        "No difference of the poles with these group words.",
        "attribute word and block of answers",
        "Words are a sample of their kind.",
        "Says nothing about other group words: with those drawn anew it rejects far too often.",
    ),
    Claim(
        "word association exact p",
        "word_association",
        "p, these answers",
        (),
        "Words of the two poles differ in these very answers. Exact.",
        "Words are exchangeable between the poles.",
        "attribute word",
        "Nothing but words differs between the poles.",
        "Rejects far too often where the words of a pole go together in an answer or with a pair.",
    ),
    Claim(
        "word association published p",
        "word_association",
        "p of D as published",
        (),
        "The mean of D over answers is not 0: nothing beyond these very words.",
        "D is 0 on average over answers.",
        "answer",
        "Answers are independent; they repeat the same words.",
        "Rejects far too often for words.",
    ),
    Claim(
        "decisions p",
        "word_association",
        "p of relative decisions",
        (),
        "More tasks follow the stereotype than run against it. Exact, two-sided.",
        "A task follows or runs against it by the toss of a coin.",
        "task",
        "Tasks are independent.",
    ),
)


@cache
def _design(name: str) -> tuple[NDArray[np.bool_], dict[str, Any], NDArray[np.float64]]:
    """Poles, pairs, orders and blocks of the prompts of a test, and where each word stands, from -1 to 1."""
    test = select_word_associations(name)[0]
    prompts = association_prompts(test)
    fields = {key: np.array([getattr(p, source) for p in prompts]) for key, source in _FIELDS.items()}
    places = np.array([[p.words.index(word) for word in test.words] for p in prompts], dtype=np.float64)
    return np.array(test.is_negative), fields, 2.0 * places / (len(test.words) - 1) - 1.0


_FIELDS = {"pairs": "pair", "stigmatised_first": "stigmatised_first", "blocks": "block"}


def _answers(rng: np.random.Generator, name: str, world: World, lean: float) -> NDArray[np.float64]:
    """What a model gives to the stigmatised group, in log-odds and then by chance.

    It leans by word, by pair, by word with a pair, to the group that is named first and by the place in the list.
    """
    negative, design, places = _design(name)
    words, pairs, first = len(negative), int(design["pairs"].max()) + 1, design["stigmatised_first"]
    of, pole = design["pairs"], negative.astype(int)
    odds = rng.normal(size=words) + rng.normal(size=(pairs, 1))[of] + 0.5 * rng.normal(size=(pairs, words))[of]
    odds = odds + np.where(first, 1.0, -1.0)[:, None] * (abs(rng.normal()) + 0.5 * rng.normal(size=words))
    odds = odds + rng.normal() * places + lean * (pole - 0.5)
    if world == "pairs":
        odds = odds + (rng.normal(size=(pairs, 2))[of])[:, pole]
    if world == "opposite":
        odds = odds + _OPPOSITE * rng.normal(size=(pairs, 1))[of] * (pole - 0.5)
    if world == "answers":
        odds = odds + _ANSWERS * rng.normal(size=(len(of), 1)) * (pole - 0.5)
    return np.asarray(rng.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds)), dtype=np.float64)


def _asked(rng: np.random.Generator, name: str, world: World, lean: float = 0.0) -> Mapping[str, Any]:
    negative, design, _ = _design(name)
    values = _answers(rng, name, world, lean)
    found = word_association(values, negative, **design)
    low, high = found.interval or (nan, nan)
    assert found.exact is not None
    return {
        "p": nan if found.p_value is None else found.p_value,
        "difference": found.difference,
        "low": low,
        "high": high,
        "t": nan if found.with_pairs is None else found.with_pairs.test.p_value,
        "these groups": nan if found.with_answers is None else found.with_answers.p_value,
        "exact": found.exact.value,
        "published": score_test(association_scores(values, negative)).p_value,
    }


def _decided(rng: np.random.Generator, tasks: int) -> Mapping[str, Any]:
    """Tasks lean either way, and answers to one go together; the first of two people is preferred."""
    of, orders = np.repeat(np.arange(tasks), 10), np.tile([False, True], 5 * tasks)
    odds = 2.0 * rng.normal(size=tasks)[of] + np.where(orders, 1.0, -1.0)
    follows = (rng.random(len(of)) < 1.0 / (1.0 + np.exp(-odds))).astype(np.float64)
    found = relative_decisions(follows, of, orders=orders)
    return {"p": nan if found.p_by_task is None else found.p_by_task, "by decision": found.p_by_decision}


def _world(name: str, world: World, lean: float = 0.0, repetitions: int = _REPETITIONS) -> Experiment:
    negative, design, _ = _design(name)
    pairs = int(design["pairs"].max()) + 1
    about = (
        f"{name}: {int(negative.sum())} words a pole, {pairs} pairs, {len(design['pairs'])} answers; {_ABOUT[world]}"
    )
    called = f"asked {name} {world}{f' {lean:g}' if lean else ''}"
    return Experiment(called, about, partial(_asked, name=name, world=world, lean=lean), repetitions)


def lines() -> list[Line]:
    """All rows of word associations."""
    p, interval, these, exact, published, decisions = (claim.name for claim in CLAIMS)
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
            Line(published, one, Level("published"), "not its null: words are drawn anew"),
        ]
    for lean, least in ((1.0, 0.93), (2.0, 0.9)):  # near 0 and 1 shares are skew
        leaning = _world("wat-racism", "words", lean, 1000)
        covers = Coverage("low", "high", "difference", (least, 0.97))
        found.append(Line(interval, leaning, covers, f"poles lean by {lean:g}"))
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
            note = "" if own else "not its null: pairs are drawn anew"
            found.append(Line(these, several, Level("these groups", limits if own else None), note))
            found.append(Line(exact, several, Level("exact", limits if own else None), note))
    for tasks in (8, 20):
        drawn = Experiment(
            f"decisions {tasks}", f"{tasks} tasks, 10 decisions each", partial(_decided, tasks=tasks), 2000
        )
        found.append(Line(decisions, drawn, Level("p", limits)))
    return found
