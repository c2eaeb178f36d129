"""Many tests at once, two models at once, many specifications of one test."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import scipy

import biassay
from biassay.prompts.sentences import make_random_texts, make_texts
from biassay.reporting.findings import make_sentence
from biassay.stats.crossed import VarianceComponents
from biassay.stats.multiple_testing import holm_by_question
from biassay.stats.power import CrossedDesign

from .associations import components
from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, Share, up_to
from .worlds import Floats, Held, crossed_table, drawn, glove, glove_rows, vectors

__all__ = ["CLAIMS", "lines"]

_SIZES = (8, 8, 8, 8)
_TESTS = 10
_WORD = re.compile(r"[\w'-]+")

CLAIMS = (
    Claim(
        "Holm",
        "associations",
        "p, Holm",
        (
            "associations.results.p_adjusted",
            "associations.decisions.p_adjusted",
            "robustness.results.p_adjusted",
            "robustness.decisions.p_adjusted",
            "stereotypes.alignments.p_adjusted",
            "stereotypes.decisions.p_adjusted",
            "benchmarks.results.p_adjusted",
            "benchmarks.decisions.p_adjusted",
        ),
        "With 95% probability, no social-bias question on a model and none of its forms is falsely significant.",
        "No association in any of the tests, or in some of them.",
        "as the p-value that is corrected",
        "None about the dependence between questions or forms.",
        "No better than the p-value that is corrected: sentence-level p and p (these words only) apply to "
        "these texts and attributes only.",
    ),
    Claim(
        "before correction",
        "associations",
        "before correction only",
        (),
        "The number of questions with p at most .05 that is expected by chance: .05 × questions.",
        "No association in any of the tests.",
        "word, on both sides",
        "Those of p.",
    ),
    Claim(
        "large",
        "associations",
        "large",
        (),
        "An effect called large is significant, and random English word sets reach it at most 5% of the time.",
        "No association in any of the tests.",
        "attribute word",
        "The test is in English.",
    ),
    Claim(
        "Benjamini-Hochberg",
        "discovery",
        "`biassay.benjamini_hochberg`",
        (),
        "On average, at most 5% of the discoveries are false.",
        "80 of 100 null hypotheses are true.",
        "as the p-value that is corrected",
        "Tests are independent or positively dependent.",
    ),
    Claim(
        "difference",
        "associations",
        "`compare`: interval",
        ("associations.compare.interval_low", "associations.compare.interval_high"),
        "The range of the difference of two models' effect sizes over other words, the same for both.",
        "The difference of expected effect sizes: 0 for models that differ only by noise.",
        "word, on both sides, the same for both models",
        "Words are a sample of their kind.",
    ),
    Claim(
        "simultaneous difference",
        "associations",
        "`compare`: simultaneous interval",
        ("associations.compare.simultaneous_low", "associations.compare.simultaneous_high"),
        "All intervals of a comparison contain their true values, with 95% probability.",
        "The differences of expected effect sizes, for ten tests at once.",
        "word, on both sides, the same for both models",
        "Words are a sample of their kind.",
    ),
    Claim(
        "joint p",
        "robustness",
        "joint p",
        ("robustness.results.joint_p_value",),
        "The median effect over all specifications is more than chance, for these attribute words. Two- sided.",
        "Target words are exchangeable between X and Y, in all specifications at once.",
        "target word",
        "None about the dependence between specifications.",
        "Like p (these words only), it says nothing about other attribute words.",
    ),
)


@cache
def _cache() -> str:
    return tempfile.mkdtemp(prefix="biassay-validity-")


def _tests(number: int) -> dict[str, dict[str, list[str]]]:
    """Make word tests that share attributes."""
    attributes = {role: [f"{role}{i}" for i in range(8)] for role in "AB"}
    return {f"test{t}": {r: [f"{r}{t}-{i}" for i in range(8)] for r in "XY"} | attributes for t in range(number)}


def _model(tables: Floats) -> Held:
    """Make a model with these cosines (tests, targets, attributes)."""
    found: dict[str, Floats] = {}
    for t, table in enumerate(tables):
        for role, rows in zip("XYAB", vectors(table, 8, 8), strict=True):
            names = [f"{role}{t}-{i}" if role in "XY" else f"{role}{i}" for i in range(8)]
            found |= dict(zip(names, rows, strict=True))
    return Held(found)


def _tables(rng: np.random.Generator, parts: VarianceComponents, D: float = 0.0) -> Floats:
    """Draw cosines of ten tests with the same attribute words and random differences between X and Y."""
    k = 16
    together = crossed_table(rng, (8 * _TESTS, 8 * _TESTS, 8, 8), parts, D)
    x, y = (side.reshape(_TESTS, 8, k) for side in (together[: 8 * _TESTS], together[8 * _TESTS :]))
    return np.concatenate([x, y], axis=1)


def _family(rng: np.random.Generator, parts: VarianceComponents) -> Mapping[str, Any]:
    rows = biassay.run({"made": _model(_tables(rng, parts))}, _tests(_TESTS), random_sets=0, cache=_cache()).results
    by_word = biassay.holm([row.fixed_words_p_value for row in rows])
    return {"crossed": any(row.significant for row in rows), "by word": bool(by_word.rejected.any())}


@cache
def _catalogue_words() -> tuple[tuple[str, ...], Floats]:
    """Return the in-vocabulary words of the default tests and the random baseline, with their GloVe vectors."""
    texts = [
        text
        for test in biassay.select_tests()
        for text in (*(one.text for one in make_texts(test)), *make_random_texts(test))
    ]
    words = sorted({word for text in texts for word in _WORD.findall(text.lower())})
    encoded = biassay.open_encoder("glove").encode(words)
    known = [i for i, unknown in enumerate(encoded.unknown) if not unknown]
    return tuple(words[i] for i in known), np.asarray(encoded.vectors[known], dtype=np.float64)


class _Shuffled:
    """A model without associations: a text is the mean of vectors assigned to its words at random."""

    def __init__(self, rng: np.random.Generator, vectors: Floats) -> None:
        words, _ = _catalogue_words()
        self._rows = dict(zip(words, rng.permutation(vectors), strict=True))
        self._other = vectors.mean(axis=0)

    def encode(self, texts: Sequence[str]) -> Floats:
        return np.stack([self._text(text) for text in texts])

    def _text(self, text: str) -> Floats:
        rows = [self._rows[word] for word in _WORD.findall(text.lower()) if word in self._rows]
        return np.asarray(np.mean(rows, axis=0) if rows else self._other)


def _null_model(rng: np.random.Generator, gaussian: bool) -> Mapping[str, Any]:
    """Run all default tests on a model without associations."""
    words, vectors = _catalogue_words()
    made = rng.normal(size=(len(words), 100)) if gaussian else vectors
    with tempfile.TemporaryDirectory() as cache:
        run = biassay.run({"null": _Shuffled(rng, made)}, seed=int(rng.integers(1 << 31)), cache=cache)
    people = [one for one in run.findings() if one.about == "people" and one.effect is not None]
    questions = [one for one in people if one.form_of is None]
    tested = [one for one in questions if one.evidence in ("significant", "uncorrected", "inconclusive")]
    return {
        "significant": any(one.evidence == "significant" for one in people),
        "p at most .05": [one.evidence != "inconclusive" for one in tested],
        "large": [", large," in make_sentence(one) for one in people],
        "d of 0.8": [abs(one.effect or 0.0) >= 0.8 for one in people],
    }


def _forms(rng: np.random.Generator, correlation: float, false: int, declared: bool) -> Mapping[str, Any]:
    """Draw 20 questions of four forms; ``false`` of them have an effect in words and none in sentences."""
    questions, forms = 20, 4
    shared = rng.normal(size=(questions, 1)) * np.sqrt(correlation)
    z = shared + rng.normal(size=(questions, forms)) * np.sqrt(1.0 - correlation)
    z[:false, 0] = 9.0
    p = 2.0 * scipy.special.ndtr(-np.abs(z))
    null = np.ones_like(p, dtype=bool)
    null[:false, 0] = False
    if declared:
        gate = questions * p[:, :1]
        adjusted = np.concatenate([gate, np.maximum(gate, questions * (forms - 1) * p[:, 1:])], axis=1)
    else:
        names = np.repeat(np.arange(questions), forms).tolist()
        adjusted = holm_by_question(p.ravel(), names, 0.05).adjusted.reshape(p.shape)
    return {"false": bool((null & (adjusted <= 0.05)).any())}


def _found(rng: np.random.Generator) -> Mapping[str, Any]:
    true = np.arange(100) < 80
    z = 0.5 * rng.normal() + np.sqrt(0.75) * rng.normal(size=100) + np.where(true, 0.0, 3.0)
    rejected = biassay.benjamini_hochberg(scipy.special.ndtr(-z), 0.05).rejected
    return {"false": (rejected & true).sum() / max(1, rejected.sum())}


def _compared(rng: np.random.Generator, D: float) -> Mapping[str, Any]:
    """Compare two models that share half of their variance."""
    parts = components(_SIZES)
    half = VarianceComponents(parts.targets / 2.0, parts.attributes / 2.0, parts.residual / 2.0)
    common = _tables(rng, half, D)
    models = {name: _model(common + _tables(rng, half)) for name in ("first", "second")}
    run = biassay.run(models, _tests(_TESTS), random_sets=0, cache=_cache())
    rows = biassay.compare(run).tables["associations"]
    names = ("interval_low", "interval_high", "simultaneous_low", "simultaneous_high")
    return {name: [getattr(row, name) for row in rows] for name in names}


@cache
def _background() -> dict[str, Floats]:
    """Return vectors of the words for the random baseline."""
    (test,) = biassay.select_tests({"one": _tests(1)["test0"]})
    words = list(make_random_texts(test))
    return dict(zip(words, biassay.open_encoder("glove").encode(words).vectors, strict=True))


def _specified(rng: np.random.Generator, attributes: bool) -> Mapping[str, Any]:
    """Run weat6 with random targets or random attributes under all specifications."""
    X, Y, A, B = (glove_rows(f"weat6/{role}") for role in "XYAB")
    (A, B), (X, Y) = (drawn(rng, 8, 8), (X, Y)) if attributes else ((A, B), drawn(rng, 8, 8))
    table = dict(_background())
    for role, rows in zip("XYAB", (X, Y, A, B), strict=True):
        table |= {f"{role}0-{i}" if role in "XY" else f"{role}{i}": row for i, row in enumerate(rows)}
    run = biassay.robustness({"made": Held(table)}, _tests(1), n_subsets=1, cache=_cache())
    return {"p": run.results[0].alternatives["joint"].p_value}


def lines() -> list[Line]:
    parts = components(_SIZES)
    alike = VarianceComponents(parts.targets, 0.0, parts.residual)
    glove()
    family = Experiment(
        "family", f"{_TESTS} tests with common attributes, all words redrawn", partial(_family, parts=parts), 500
    )
    fixed = Experiment(
        "family, attributes fixed", f"{_TESTS} tests with common attributes, fixed", partial(_family, parts=alike), 400
    )
    found = Experiment("hypotheses", "100 hypotheses, correlation 0.25, 20 false ones at z = 3", _found, 4000)
    D = CrossedDesign(parts, _SIZES).D_from_d(1.0)
    names = ("joint, targets", "joint, attributes")
    joint = [
        Experiment(
            name, f"GloVe, weat6, four similarities, {name[7:]} drawn at random", partial(_specified, attributes=a), n
        )
        for name, a, n in zip(names, (False, True), (1000, 400), strict=True)
    ]
    compared = {
        note: Experiment(
            f"models, {note}", f"two models that differ by noise, {_TESTS} tests of 8 words per set", draw, 300
        )
        for note, draw in (("no effect", partial(_compared, D=0.0)), ("d about 1 in both", partial(_compared, D=D)))
    }
    nulls = {
        name: Experiment(
            name, f"the default tests, {what} dealt to words at random", partial(_null_model, gaussian=g), n
        )
        for name, what, g, n in (
            ("null models, GloVe", "GloVe vectors", False, 200),
            ("null models, Gaussian", "Gaussian vectors", True, 100),
        )
    }
    forms = {
        note: Experiment(
            f"forms, {note}",
            f"20 questions of 4 forms, {note}",
            partial(_forms, correlation=c, false=f, declared=d),
            20_000,
        )
        for note, c, f, d in (
            ("none has an effect, forms correlate .9", 0.9, 0, False),
            ("10 have an effect in words only", 0.0, 10, False),
            ("all have an effect in words only", 0.0, 20, False),
            ("10 have an effect in words only, declared family", 0.0, 10, True),
        )
    }
    return [
        *(Line("Holm", one, Share("significant", 0.05), "a model with a false finding") for one in nulls.values()),
        *(
            Line("Holm", one, Share("false", 0.05), "a false rejection, of questions or of forms")
            for one in forms.values()
        ),
        *(Line("before correction", one, Share("p at most .05", 0.065), "of questions") for one in nulls.values()),
        *(Line("large", one, Share("large", 0.01), "of tests") for one in nulls.values()),
        Line("large", nulls["null models, GloVe"], Share("d of 0.8", 1.0), "of tests: d beyond 0.8, the convention"),
        Line("Holm", family, Share("crossed", 0.06), "p: a false rejection in the family"),
        Line("Holm", fixed, Share("by word", 0.06), "p (these words only): a false rejection in the family"),
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
        Line("joint p", joint[1], Level("p"), "not its null: attributes are redrawn"),
    ]
