"""Many tests at once, two models at once, many specifications of one test."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

import biassay
from biassay.stats.crossed import Components
from biassay.stats.power import Design
from biassay.texts.vocabulary import random_texts

from .associations import components
from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, Share, up_to
from .worlds import Floats, Held, crossed_table, drawn, glove, glove_rows, vectors

__all__ = ["CLAIMS", "lines"]

_SIZES = (8, 8, 8, 8)
_TESTS = 10

CLAIMS = (
    Claim(
        "Holm",
        "associations",
        "p, Holm",
        (
            "associations.results.p_value_crossed_holm",
            "associations.results.p_value_by_word_holm",
            "associations.results.p_value_holm",
            "robustness.results.p_value_crossed_holm",
            "benchmarks.results.p_value_holm",
        ),
        "Of all tests about people on a model, none is falsely significant, with 95% probability.",
        "No association in any of the tests.",
        "as the p-value that is corrected",
        "None about how tests depend on each other.",
        "No better than the p-value that is corrected: by text and by word it holds for these texts and attributes.",
    ),
    Claim(
        "Benjamini-Hochberg",
        "discovery",
        "`biassay.benjamini_hochberg`",
        (),
        "At most 5% of what is found is false, on average.",
        "80 of 100 hypotheses are true.",
        "as the p-value that is corrected",
        "Tests are independent or positively dependent.",
    ),
    Claim(
        "difference",
        "associations",
        "`compare`: interval",
        ("associations.compare.interval_low", "associations.compare.interval_high"),
        "Where the difference of the effect sizes of two models lies, all words drawn anew for both.",
        "The difference of expected effect sizes: 0 for models that differ by noise alone.",
        "word, on both sides, the same for both models",
        "Words are a sample of their kind.",
    ),
    Claim(
        "simultaneous difference",
        "associations",
        "`compare`: simultaneous interval",
        ("associations.compare.simultaneous_low", "associations.compare.simultaneous_high"),
        "All intervals of a comparison hold together.",
        "As above, of ten tests at once.",
        "word, on both sides, the same for both models",
        "Words are a sample of their kind.",
    ),
    Claim(
        "joint p",
        "robustness",
        "joint p",
        ("robustness.results.p_joint",),
        "The median effect over all specifications is not chance, for these attribute words. Two-sided.",
        "Target words are exchangeable between X and Y, in all specifications at once.",
        "target word",
        "None about how specifications depend on each other.",
        "Like p by word it says nothing about other attribute words.",
    ),
)


@cache
def _cache() -> str:
    return tempfile.mkdtemp(prefix="biassay-validity-")


def _tests(number: int) -> dict[str, dict[str, list[str]]]:
    """Tests of words that all have attributes in common."""
    attributes = {role: [f"{role}{i}" for i in range(8)] for role in "AB"}
    return {f"test{t}": {r: [f"{r}{t}-{i}" for i in range(8)] for r in "XY"} | attributes for t in range(number)}


def _model(tables: Floats) -> Held:
    """A model with cosines (tests, targets, attributes)."""
    found: dict[str, Floats] = {}
    for t, table in enumerate(tables):
        for role, rows in zip("XYAB", vectors(table, 8, 8), strict=True):
            names = [f"{role}{t}-{i}" if role in "XY" else f"{role}{i}" for i in range(8)]
            found |= dict(zip(names, rows, strict=True))
    return Held(found)


def _tables(rng: np.random.Generator, parts: Components, D: float = 0.0) -> Floats:
    """Cosines of ten tests whose attributes are the same words: targets are of one kind, and X of another than Y."""
    k = 16
    together = crossed_table(rng, (8 * _TESTS, 8 * _TESTS, 8, 8), parts, D)
    x, y = (side.reshape(_TESTS, 8, k) for side in (together[: 8 * _TESTS], together[8 * _TESTS :]))
    return np.concatenate([x, y], axis=1)


def _family(rng: np.random.Generator, parts: Components) -> Mapping[str, Any]:
    rows = biassay.run({"made": _model(_tables(rng, parts))}, _tests(_TESTS), random_sets=0, cache=_cache()).results
    return {
        name: any((getattr(row, column) or 1.0) <= 0.05 for row in rows)
        for name, column in (("crossed", "p_value_crossed_holm"), ("by word", "p_value_by_word_holm"))
    }


def _found(rng: np.random.Generator) -> Mapping[str, Any]:
    from scipy.special import ndtr

    true = np.arange(100) < 80
    z = 0.5 * rng.normal() + np.sqrt(0.75) * rng.normal(size=100) + np.where(true, 0.0, 3.0)
    rejected = biassay.benjamini_hochberg(ndtr(-z), 0.05).rejected
    return {"false": (rejected & true).sum() / max(1, rejected.sum())}


def _compared(rng: np.random.Generator, D: float) -> Mapping[str, Any]:
    """Half of what varies is common to both models, half is their own."""
    parts = components(_SIZES)
    half = Components(parts.targets / 2.0, parts.attributes / 2.0, parts.residual / 2.0)
    common = _tables(rng, half, D)
    models = {name: _model(common + _tables(rng, half)) for name in ("first", "second")}
    run = biassay.run(models, _tests(_TESTS), random_sets=0, cache=_cache())
    rows = biassay.compare(run).tables["associations"]
    names = ("interval_low", "interval_high", "simultaneous_low", "simultaneous_high")
    return {name: [getattr(row, name) for row in rows] for name in names}


@cache
def _background() -> dict[str, Floats]:
    """Vectors of the words that a test of words is set against."""
    (test,) = biassay.select_tests({"one": _tests(1)["test0"]})
    words = list(random_texts(test))
    return dict(zip(words, biassay.open_encoder("glove").encode(words).vectors, strict=True))


def _specified(rng: np.random.Generator, attributes: bool) -> Mapping[str, Any]:
    """weat6 with targets drawn at random, or with attributes drawn at random."""
    X, Y, A, B = (glove_rows(f"weat6/{role}") for role in "XYAB")
    (A, B), (X, Y) = (drawn(rng, 8, 8), (X, Y)) if attributes else ((A, B), drawn(rng, 8, 8))
    table = dict(_background())
    for role, rows in zip("XYAB", (X, Y, A, B), strict=True):
        table |= {f"{role}0-{i}" if role in "XY" else f"{role}{i}": row for i, row in enumerate(rows)}
    run = biassay.robustness({"made": Held(table)}, _tests(1), n_subsets=1, cache=_cache())
    return {"p": run.results[0].p_joint}


def lines() -> list[Line]:
    parts = components(_SIZES)
    alike = Components(parts.targets, 0.0, parts.residual)
    glove()
    family = Experiment(
        "family", f"{_TESTS} tests with common attributes, all words drawn anew", partial(_family, parts=parts), 500
    )
    fixed = Experiment(
        "family, attributes fixed", f"{_TESTS} tests with common attributes, fixed", partial(_family, parts=alike), 400
    )
    found = Experiment("hypotheses", "100 hypotheses, correlation 0.25, 20 false ones at z = 3", _found, 4000)
    D = Design(parts, _SIZES).D_of(1.0)
    names = ("joint, targets", "joint, attributes")
    joint = [
        Experiment(
            name, f"GloVe, weat6, four similarities, {name[7:]} drawn at random", partial(_specified, attributes=a), n
        )
        for name, a, n in zip(names, (False, True), (1000, 400), strict=True)
    ]
    compared = {
        note: Experiment(
            f"models, {note}", f"two models that differ by noise, {_TESTS} tests of 8 words a set", draw, 300
        )
        for note, draw in (("no effect", partial(_compared, D=0.0)), ("d about 1 in both", partial(_compared, D=D)))
    }
    return [
        Line("Holm", family, Share("crossed", 0.06), "crossed p: a false star in the family"),
        Line("Holm", fixed, Share("by word", 0.06), "p by word: a false star in the family"),
        Line("Benjamini-Hochberg", found, Share("false", 0.05), "false among found"),
        *(
            Line("difference", w, Coverage("interval_low", "interval_high", 0.0, INTERVAL), n)
            for n, w in compared.items()
        ),
        *(
            Line(
                "simultaneous difference",
                w,
                Coverage("simultaneous_low", "simultaneous_high", 0.0, (0.93, 1.0), True),
                n,
            )
            for n, w in compared.items()
        ),
        Line("joint p", joint[0], Level("p", up_to(0.06))),
        Line("joint p", joint[1], Level("p"), "not its null: attributes are drawn anew"),
    ]
