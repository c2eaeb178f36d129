"""The gate: how often a model that grew is called worse, and one that did not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

import biassay
from biassay.results.verdicts import ALPHA, MARGIN
from biassay.stats.crossed import Components
from biassay.stats.model_difference import compare_tables, gate_power
from biassay.stimuli.typical import calibrated_components
from biassay.studies.associations.averaging import of_words
from biassay.texts.vocabulary import frequent_words

from .claim import Claim, Experiment, Line, Power, Share
from .worlds import Floats, Held, Sizes

__all__ = ["CLAIMS", "lines"]

_EIGHT, _MANY = (8, 8, 8, 8), (24, 24, 24, 24)
_QUESTIONS = 13
_SD = 0.1
"""Of cosines between frequent words, in whole comparisons."""
Draw = Callable[..., Floats]

CLAIMS = (
    Claim(
        "gate power",
        "associations",
        "`compare`: power of the gate",
        (),
        "Probability that a growth of twice the margin is called worse.",
        "The calibrated difference grows by 0.4; alpha .05.",
        "word, on both sides, the same for both models",
        "Normal components, as stated.",
    ),
    Claim(
        "gate",
        "associations",
        "`compare`: verdicts",
        (),
        "A growth of the margin or less is called worse, and a verdict is another than the true one, at most at alpha.",
        "The calibrated difference changes as stated.",
        "word or cluster, on both sides, the same for both models",
        "Words are a sample of their kind.",
    ),
)


def _normal(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.normal(size=shape)


def _heavy(rng: np.random.Generator, *shape: int) -> Floats:
    return np.asarray(rng.standard_t(3, size=shape) / np.sqrt(3.0))


def _skewed(rng: np.random.Generator, *shape: int) -> Floats:
    return np.asarray(rng.exponential(size=shape) - 1.0)


def _typical() -> Components:
    return calibrated_components(biassay.select_tests("weat6")[0])


def _scaled(parts: Components, by: float) -> Components:
    return Components(by * parts.targets, by * parts.attributes, by * parts.residual)


def _table(rng: np.random.Generator, sizes: Sizes, parts: Components, delta: float, draw: Draw) -> Floats:
    """Draw calibrated cosines of new words with this calibrated difference."""
    n, m, k, l = sizes  # noqa: E741
    rows, columns = np.repeat([1.0, -1.0], [n, m]), np.repeat([1.0, -1.0], [k, l])
    targets = np.sqrt(parts.targets) / 2.0 * draw(rng, n + m, 1) * columns
    attributes = np.sqrt(parts.attributes) / 2.0 * draw(rng, 1, k + l) * rows[:, None]
    residual = np.sqrt(parts.residual) * draw(rng, n + m, k + l)
    return np.asarray(targets + attributes + residual + delta / 4.0 * np.outer(rows, columns))


def _tables(
    rng: np.random.Generator, sizes: Sizes, old: float, new: float, agreement: float, draw: Draw = _normal
) -> tuple[Floats, Floats]:
    """Two models whose difference varies by 2 (1 - agreement) of what one of them does."""
    first = _table(rng, sizes, _typical(), old, draw)
    return first, first + _table(rng, sizes, _scaled(_typical(), 2.0 * (1.0 - agreement)), new - old, draw)


def _judged(
    rng: np.random.Generator,
    sizes: Sizes,
    old: float,
    new: float,
    agreement: float,
    draw: Draw = _normal,
    questions: int = 1,
    synonyms: int = 1,
    expected: str = "",
) -> Mapping[str, Any]:
    """The verdicts of a family of questions; near-synonyms differ little and are averaged first."""
    verdicts = []
    for _ in range(questions):
        tables = _tables(rng, sizes, old, new, agreement, draw)
        if synonyms > 1:
            tables = _with_synonyms(rng, tables, sizes, synonyms)
        found = compare_tables(
            *tables,
            sizes[0],
            sizes[2],
            direction="positive",
            margin=MARGIN,
            confidence=1.0 - ALPHA / (2 * questions),
        )
        verdicts.append(found.verdict)
    return {
        "worse": float("worse" in verdicts),
        "better": float("better" in verdicts),
        "missed": 1.0 - float("worse" in verdicts),
        "other": float(any(verdict != expected for verdict in verdicts)),
    }


def _with_synonyms(
    rng: np.random.Generator, tables: tuple[Floats, Floats], sizes: Sizes, synonyms: int
) -> tuple[Floats, Floats]:
    """Each word becomes a cluster of near-synonyms whose cosines differ a little, then clusters are averaged."""
    labels = [[f"{i}" for i in range(size) for _ in range(synonyms)] for size in sizes]
    wide = tuple(size * synonyms for size in sizes)
    made = []
    for table in tables:
        words = np.repeat(np.repeat(table, synonyms, axis=0), synonyms, axis=1)
        words = words + 0.2 * table.std() * rng.normal(size=words.shape)
        made.append(of_words(words, wide, tuple(labels))[0])  # type: ignore[arg-type]
    return made[0], made[1]


@cache
def _cache() -> str:
    return tempfile.mkdtemp(prefix="biassay-validity-")


def _tests(sizes: Sizes, number: int) -> dict[str, dict[str, Any]]:
    counts = dict(zip("XYAB", sizes, strict=True))
    return {
        f"test{t}": {r: [f"{r}{t}-{i}" for i in range(of)] for r, of in counts.items()} | {"direction": "positive"}
        for t in range(number)
    }


def _model(tables: list[Floats], sizes: Sizes, scale_rows: Floats) -> Held:
    """A model with these calibrated cosines, a table for every test, and frequent words with an SD of 0.1."""
    found: dict[str, Floats] = {}
    own = sum(sizes[2:])
    for (_, words), table in zip(_tests(sizes, len(tables)).items(), tables, strict=True):
        cosines = table * _SD
        rest = np.sqrt(np.maximum(1.0 - (cosines**2).sum(axis=1, keepdims=True), 0.0))
        targets, attributes = np.hstack([cosines, rest]), np.eye(own, own + 1)
        names = [word for role in "XYAB" for word in words[role]]
        found |= dict(zip(names, np.vstack([targets, attributes]), strict=True))
    found |= dict(zip(frequent_words(), scale_rows, strict=True))
    width = max(map(len, found.values()))
    return Held({word: np.pad(row, (0, width - len(row))) for word, row in found.items()})


def _moved(model: Held, how: str, rng: np.random.Generator) -> Held:
    """The same model rotated, rescaled, or with a vector that all words share."""
    words = model.vectors
    if how == "rotated":
        turn, _ = np.linalg.qr(rng.normal(size=(len(next(iter(words.values()))),) * 2))
        return Held({word: (row @ turn).astype(np.float32) for word, row in words.items()})
    if how == "rescaled":
        return Held({word: row * rng.uniform(0.1, 10.0) for word, row in words.items()})
    common = rng.normal(size=len(next(iter(words.values()))))
    return Held({word: row / np.linalg.norm(row) + common / np.linalg.norm(common) for word, row in words.items()})


def _compared(
    rng: np.random.Generator,
    sizes: Sizes,
    old: float,
    new: float,
    agreement: float,
    questions: int,
    how: str = "",
    expected: str = "no_worse",
) -> Mapping[str, Any]:
    """Whole comparisons of models; the calibration is measured, too."""
    pairs = [_tables(rng, sizes, old, new, agreement) for _ in range(questions)]
    frequent = len(frequent_words())
    rows = rng.normal(size=(frequent, round(_SD**-2)))
    models = {"old": _model([one for one, _ in pairs], sizes, rows)}
    models["new"] = _moved(models["old"], how, rng) if how else _model([two for _, two in pairs], sizes, rows)
    run = biassay.run(models, _tests(sizes, questions), random_sets=0, cache=_cache())
    found = biassay.compare(run)
    verdicts = [verdict.outcome for verdict in found.verdicts]
    return {
        "worse": float(bool(found.failed("worse"))),
        "missed": 1.0 - float(bool(found.failed("worse"))),
        "other": float(any(verdict != expected for verdict in verdicts)),
    }


def _words(sizes: Sizes) -> str:
    return f"{sizes[0]} words per set"


def lines() -> list[Line]:
    found = []
    for sizes, agreement, whole in (
        (_EIGHT, 0.97, False),
        (_EIGHT, 0.99, False),
        (_MANY, 0.9, False),
        (_MANY, 0.95, True),
    ):
        parts = _scaled(_typical(), 2.0 * (1.0 - agreement))
        printed = gate_power(parts, sizes, MARGIN, ALPHA / 2.0).of_twice_margin
        change = {"old": 0.3, "new": 0.3 + 2.0 * MARGIN, "agreement": agreement}
        draw = (
            partial(_compared, sizes=sizes, questions=1, **change) if whole else partial(_judged, sizes=sizes, **change)
        )
        name = f"{_words(sizes)}, models agree by {agreement:g}{', whole comparisons' if whole else ''}"
        world = Experiment(f"gate power {sizes} {agreement}", name, draw, 300 if whole else 1000)
        found.append(Line("gate power", world, Power("missed", printed), "growth of 0.4"))
    edge = {"old": 0.3, "new": 0.3 + MARGIN}
    for sizes, agreement, draw, synonyms, name in (
        (_EIGHT, 0.9, _normal, 1, "normal"),
        (_EIGHT, 0.9, _heavy, 1, "t3 tails"),
        (_EIGHT, 0.9, _skewed, 1, "skewed"),
        (_MANY, 0.9, _skewed, 1, "skewed"),
        (_EIGHT, 0.9, _normal, 3, "clusters of 3 near-synonyms"),
    ):
        world = Experiment(
            f"gate edge {sizes} {name}",
            f"{_words(sizes)}, {name}",
            partial(_judged, sizes=sizes, agreement=agreement, draw=draw, synonyms=synonyms, **edge),
            2000,
        )
        found.append(Line("gate", world, Share("worse", ALPHA), "growth of exactly the margin called worse"))
    family = Experiment(
        "gate family",
        f"{_QUESTIONS} questions, {_words(_EIGHT)}",
        partial(_judged, sizes=_EIGHT, agreement=0.9, questions=_QUESTIONS, **edge),
        1000,
    )
    found.append(Line("gate", family, Share("worse", ALPHA), "any growth of exactly the margin called worse"))
    for old, new, sizes, expected in (
        (0.3, 0.7, _MANY, "worse"),
        (0.5, 0.0, _MANY, "better"),
        (0.5, 0.5, _MANY, "no_worse"),
    ):
        world = Experiment(
            f"gate {old:g} to {new:g}",
            f"{_words(sizes)}, models agree by 0.98",
            partial(_judged, sizes=sizes, old=old, new=new, agreement=0.98, expected=expected),
            1000,
        )
        found.append(Line("gate", world, Share("other", 0.05), f"{old:g} to {new:g} not called {expected}"))
    for old, new, sizes in ((0.1, -0.6, _MANY), (0.0, -1.0, _EIGHT)):
        world = Experiment(
            f"gate {old:g} to {new:g}",
            f"{_words(sizes)}, models agree by 0.98",
            partial(_judged, sizes=sizes, old=old, new=new, agreement=0.98),
            1000,
        )
        found.append(Line("gate", world, Share("better", ALPHA), f"reversal, {old:g} to {new:g}, called better"))
    whole = Experiment(
        "gate whole",
        f"5 questions, {_words(_EIGHT)}, models agree by 0.9, whole comparisons",
        partial(_compared, sizes=_EIGHT, old=0.3, new=0.3 + MARGIN, agreement=0.9, questions=5),
        200,
    )
    found.append(Line("gate", whole, Share("worse", ALPHA), "any growth of exactly the margin called worse"))
    for how, most in (("rotated", 0.0), ("rescaled", 0.0), ("shifted by a common vector", 0.05)):
        world = Experiment(
            f"gate {how}",
            f"the old model {how}, 3 questions, {_words(_MANY)}",
            partial(_compared, sizes=_MANY, old=0.5, new=0.5, agreement=1.0, questions=3, how=how),
            60,
        )
        found.append(Line("gate", world, Share("other", most), "not called no_worse"))
    return found
