"""Error rates and power of the gate."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

import biassay
from biassay.datasets.variance_priors import calibrated_components
from biassay.prompts.sentences import load_frequent_words
from biassay.results.comparison import ALPHA, MARGIN
from biassay.runs.compare import spend_alpha
from biassay.stats.association import log_contrast_variance, similarity_sd
from biassay.stats.crossed import VarianceComponents
from biassay.stats.model_difference import compare_tables, gate_power
from biassay.stats.power import CrossedDesign
from biassay.studies.associations.weat import average_texts

from .claim import Claim, Coverage, Experiment, Line, Power, Share
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
        "Probability that a growth of twice the margin is called worse, or a fall better.",
        "The calibrated difference changes as stated; alpha .05.",
        "word, on both sides, the same for both models",
        "Normal components, as stated.",
    ),
    Claim(
        "gate",
        "associations",
        "`compare`: verdicts",
        (),
        "At most a share alpha of comparisons calls a growth within the margin worse or gives another "
        "wrong verdict. Inconclusive is not a wrong verdict.",
        "The calibrated difference changes as stated.",
        "word or cluster, on both sides, the same for both models",
        "Words are a sample of their kind.",
        "One side uses .0125 of alpha. If changes are log-normal (sigma 1), dominate the variance and are "
        "skewed in opposite directions in X and Y, .03 to .05 of verdicts are wrong. Alpha is then kept "
        "for one question and exceeded for many such questions together. A growth that rests on a few of all "
        "words is missed if the sample has none of them. A reversal just past the old size is called better "
        "for at most 5% of questions, not of comparisons.",
    ),
    Claim(
        "gate over looks",
        "associations",
        "`compare --always-valid`: verdicts over many releases",
        (),
        "At most 1% of sequences of comparisons with one baseline ever call a growth within the margin worse.",
        "Every question grows by the margin in each of 100 releases; alpha .05.",
        "word, on both sides, the same for all releases",
        "Words are a sample of their kind.",
        "Power falls with the number of looks: the first look has 40% of alpha.",
    ),
    Claim(
        "scale",
        "associations",
        "`compare`: variance of the ratio of cosine SDs",
        (),
        "A normal 95% interval contains the ratio of the cosine SDs of all such words.",
        "The cosine SDs of 1,500 words, on average over 20 samples.",
        "frequent word",
        "Words are a sample.",
        "With 200 words, 5% of them outliers, coverage is .92.",
    ),
)


def _normal(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.normal(size=shape)


def _heavy(rng: np.random.Generator, *shape: int) -> Floats:
    return np.asarray(rng.standard_t(3, size=shape) / np.sqrt(3.0))


def _skewed(rng: np.random.Generator, *shape: int) -> Floats:
    return np.asarray(rng.exponential(size=shape) - 1.0)


def _log_normal(rng: np.random.Generator, *shape: int) -> Floats:
    return np.asarray((rng.lognormal(size=shape) - np.exp(0.5)) / np.sqrt((np.e - 1.0) * np.e))


def _pareto(rng: np.random.Generator, *shape: int) -> Floats:
    """Draw Pareto numbers with an index of 4: skewness 7, infinite fourth moment."""
    return np.asarray((rng.pareto(4.0, size=shape) - 1.0 / 3.0) / np.sqrt(2.0 / 9.0))


def _outlying(rng: np.random.Generator, *shape: int) -> Floats:
    """Draw changes that are small, except for one word of 20: 8 times as large and in one direction."""
    far = rng.random(shape) < 0.05
    drawn = rng.normal(size=shape) + 8.0 * far - 0.4
    return np.asarray(drawn / np.sqrt(1.0 + 64.0 * 0.05 * 0.95))


def _typical() -> VarianceComponents:
    return calibrated_components(biassay.select_tests("weat6")[0])


def _scaled(parts: VarianceComponents, by: float) -> VarianceComponents:
    return VarianceComponents(by * parts.targets, by * parts.attributes, by * parts.residual)


def _table(rng: np.random.Generator, sizes: Sizes, parts: VarianceComponents, delta: float, draw: Draw) -> Floats:
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
    """Draw two models whose difference has 2 (1 - agreement) times the variance of one model."""
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
    """Return the verdicts of a family of questions, with near-synonyms averaged first."""
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
        "not better": 1.0 - float("better" in verdicts),
        "wrong": float(any(verdict not in (expected, "inconclusive") for verdict in verdicts)),
    }


_LOOKS = 100


def _many_looks(rng: np.random.Generator, sizes: Sizes, questions: int) -> Mapping[str, Any]:
    """Compare 100 releases, each of which grew by the margin, with one baseline: does any comparison call one worse?"""
    old = [_table(rng, sizes, _typical(), 0.0, _normal) for _ in range(questions)]
    parts = _scaled(_typical(), 0.1)
    found = {"worse": 0.0, "worse at alpha": 0.0}
    for look in range(1, _LOOKS + 1):
        for first in old:
            second = first + _table(rng, sizes, parts, MARGIN, _normal)
            for name, alpha in (("worse at alpha", ALPHA), ("worse", spend_alpha(ALPHA, look))):
                confidence = 1.0 - alpha / (2 * questions)
                judged = compare_tables(
                    first, second, sizes[0], sizes[2], direction="positive", margin=MARGIN, confidence=confidence
                ).verdict  # fmt: skip
                if judged != "worse":
                    break  # nor is it with less alpha
                found[name] = 1.0
    return found


def _skewed_change(
    rng: np.random.Generator,
    sizes: Sizes,
    draw: Draw,
    signs: tuple[int, int],
    side: str = "targets",
    spreads: tuple[float, float] = (1.0, 1.0),
    cluster: int = 1,
) -> Mapping[str, Any]:
    """Draw two questions that change by the margin, through skewed words in the direction of their error.

    `signs` are the directions of the skew in the two sets of the side, and `spreads` their standard deviations in units
    of 0.3. With clusters, words come in groups of 1 to `cluster` near-synonyms that are declared.
    """
    n, m, k, l = sizes  # noqa: E741
    rows, columns = np.repeat([1.0, -1.0], [n, m]), np.repeat([1.0, -1.0], [k, l])
    counts = (n, m) if side == "targets" else (k, l)
    scale = 0.3 * np.repeat(np.multiply(signs, spreads), counts)
    leanings = scale * draw(rng, sum(counts))
    moved = np.outer(leanings, columns) if side == "targets" else np.outer(rows, leanings)
    found = {}
    for name, growth, turn in (("worse", MARGIN, -1.0), ("no_worse", MARGIN + 1e-9, 1.0)):
        old = 0.1 * np.outer(rows, columns) + 0.3 * rng.normal(size=(n + m, k + l))
        change = turn * moved / 2.0 + growth / 4.0 * np.outer(rows, columns) + 0.03 * rng.normal(size=old.shape)
        tables = old, old + change
        if cluster > 1:
            tables = _with_unequal_clusters(rng, tables, sizes, cluster)
        judged = compare_tables(
            *tables, n, k, direction="positive", margin=MARGIN, confidence=1.0 - ALPHA / 2.0
        ).verdict  # fmt: skip
        found[name] = float(judged in (("worse",) if name == "worse" else ("no_worse", "better")))
    return found


def _with_unequal_clusters(
    rng: np.random.Generator, tables: tuple[Floats, Floats], sizes: Sizes, most: int
) -> tuple[Floats, Floats]:
    """Replace each word by a cluster of 1 to `most` near-synonyms whose cosines differ a little, and average them."""
    labels = [[f"{i}" for i in range(size) for _ in range(rng.integers(1, most + 1))] for size in sizes]
    wide = tuple(map(len, labels))
    starts = np.cumsum([0, sizes[0]]), np.cumsum([0, sizes[2]])
    rows = [int(i) + start for own, start in zip(labels[:2], starts[0], strict=True) for i in own]
    columns = [int(i) + start for own, start in zip(labels[2:], starts[1], strict=True) for i in own]
    made = []
    for table in tables:
        words = table[np.ix_(rows, columns)]
        made.append(average_texts(words + 0.05 * rng.normal(size=words.shape), wide, tuple(labels))[0])  # type: ignore[arg-type]
    return made[0], made[1]


def _scale_vectors(rng: np.random.Generator, words: int, outliers: float, on_both: bool) -> tuple[Floats, Floats]:
    """Draw similarities on two models; outlying words share a direction, on the new model or more on the old one."""
    old = rng.normal(size=(words, 50))
    new = old + 0.5 * rng.normal(size=old.shape)
    far = rng.random(words) < outliers
    new[far, 0] += 6.0 if on_both else 12.0
    old[far, 0] += 12.0 if on_both else 0.0
    return tuple(cosines_of_rows(table) for table in (old, new))  # type: ignore[return-value]


def cosines_of_rows(vectors: Floats) -> Floats:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


@cache
def _true_ratio(outliers: float, on_both: bool) -> float:
    rng = np.random.default_rng(0)
    draws = (_scale_vectors(rng, 1500, outliers, on_both) for _ in range(20))
    return float(np.mean([np.log(similarity_sd(new) / similarity_sd(old)) for old, new in draws]))


def _scale(rng: np.random.Generator, words: int, outliers: float, on_both: bool) -> Mapping[str, Any]:
    old, new = _scale_vectors(rng, words, outliers, on_both)
    error = np.log(similarity_sd(new) / similarity_sd(old)) - _true_ratio(outliers, on_both)
    reach = 1.96 * np.sqrt(log_contrast_variance((old, new), (-1.0, 1.0)))
    return {"low": error - reach, "high": error + reach}


def _with_synonyms(
    rng: np.random.Generator, tables: tuple[Floats, Floats], sizes: Sizes, synonyms: int
) -> tuple[Floats, Floats]:
    """Replace each word by a cluster of near-synonyms whose cosines differ a little, then average clusters."""
    labels = [[f"{i}" for i in range(size) for _ in range(synonyms)] for size in sizes]
    wide = tuple(size * synonyms for size in sizes)
    made = []
    for table in tables:
        words = np.repeat(np.repeat(table, synonyms, axis=0), synonyms, axis=1)
        words = words + 0.2 * table.std() * rng.normal(size=words.shape)
        made.append(average_texts(words, wide, tuple(labels))[0])  # type: ignore[arg-type]
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
    """Make a model with these calibrated cosines, one table per test, and frequent words with an SD of 0.1."""
    found: dict[str, Floats] = {}
    own = sum(sizes[2:])
    for (_, words), table in zip(_tests(sizes, len(tables)).items(), tables, strict=True):
        cosines = table * _SD
        rest = np.sqrt(np.maximum(1.0 - (cosines**2).sum(axis=1, keepdims=True), 0.0))
        targets, attributes = np.hstack([cosines, rest]), np.eye(own, own + 1)
        names = [word for role in "XYAB" for word in words[role]]
        found |= dict(zip(names, np.vstack([targets, attributes]), strict=True))
    found |= dict(zip(load_frequent_words(), scale_rows, strict=True))
    width = max(map(len, found.values()))
    return Held({word: np.pad(row, (0, width - len(row))) for word, row in found.items()})


def _moved(model: Held, how: str, rng: np.random.Generator) -> Held:
    """Rotate or rescale a model, or add a vector to all words."""
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
    """Compare models with the calibration included."""
    pairs = [_tables(rng, sizes, old, new, agreement) for _ in range(questions)]
    frequent = len(load_frequent_words())
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
        printed = gate_power(parts, sizes, MARGIN, ALPHA / 2.0).at_twice_margin
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
    looks = Experiment(
        "gate 100 looks",
        f"3 questions, {_words(_MANY)}, 100 releases",
        partial(_many_looks, sizes=_MANY, questions=3),
        400,
    )
    found.append(Line("gate over looks", looks, Share("worse", 0.01), "--always-valid"))
    found.append(Line("gate over looks", looks, Share("worse at alpha", 1.0), "the ordinary gate at every look"))
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
        found.append(
            Line(
                "gate",
                world,
                Share("wrong", ALPHA),
                f"{old:g} to {new:g}, a verdict other than {expected} or inconclusive",
            )
        )
        if expected == "better":
            found.append(Line("gate power", world, Power("not better", _power_of_fall(old, new, sizes, 0.98)), "fall"))
    for old, new, sizes, questions in (
        (0.1, -0.6, _MANY, 1),
        (0.0, -1.0, _EIGHT, 1),
        (0.1, -0.31, _MANY, 1),
        (0.1, -0.31, _MANY, _QUESTIONS),
    ):
        each = "" if questions == 1 else f"{questions} questions, "
        world = Experiment(
            f"gate {each}{old:g} to {new:g}",
            f"{each}{_words(sizes)}, models agree by 0.98",
            partial(_judged, sizes=sizes, old=old, new=new, agreement=0.98, questions=questions),
            500 if each else 1000,
        )
        most = 1.0 if each else ALPHA
        found.append(Line("gate", world, Share("better", most), f"reversal, {old:g} to {new:g}, called better"))
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
    return [*found, *_rare_lines(), *_skewed_lines(), *_scale_lines()]


def _power_of_fall(old: float, new: float, sizes: Sizes, agreement: float) -> float:
    """Compute how often a reversal is excluded, which limits how often a fall is called better.

    The one-sided lower bound of new plus old must be at least minus the margin. New plus old varies by the words of
    both models, while their difference hardly varies if they agree closely.
    """
    parts = _scaled(_typical(), 4.0 + 2.0 * (1.0 - agreement))
    return CrossedDesign(parts, sizes).power_above(old + new + MARGIN, 0.1)


def _rare(rng: np.random.Generator, sizes: Sizes, rate: float) -> Mapping[str, Any]:
    """Draw a growth beyond the margin that comes from few of the target words."""
    n, m, k, l = sizes  # noqa: E741
    rows, columns = np.repeat([1.0, -1.0], [n, m]), np.repeat([1.0, -1.0], [k, l])
    moved = np.where(rng.random(n + m) < rate, rows * (1.5 * MARGIN / rate), 0.0)
    old = 0.1 * np.outer(rows, columns) + 0.3 * rng.normal(size=(n + m, k + l))
    change = np.outer(moved, columns) / 4.0 + 0.03 * rng.normal(size=old.shape)
    found = compare_tables(old, old + change, n, k, direction="positive", margin=MARGIN, confidence=1.0 - ALPHA / 2.0)
    return {"no_worse": float(found.verdict in ("no_worse", "better"))}


def _rare_lines() -> list[Line]:
    found = []
    for sizes, rate in ((_EIGHT, 0.1), (_EIGHT, 0.2), (_MANY, 0.05), (_MANY, 0.1)):
        about = f"{_words(sizes)}, a growth of 1.5 margins in {rate:.0%} of all target words, none in the others"
        world = Experiment(f"gate rare {about}", about, partial(_rare, sizes=sizes, rate=rate), 2000)
        found.append(Line("gate", world, Share("no_worse", 1.0), "growth of unseen words called no worse"))
    return found


def _skewed_lines() -> list[Line]:
    """List rows for skewed changes of words that dominate the variance."""
    same, opposite = (1, 1), (1, -1)
    log_normal = partial(_skewed_change, draw=_log_normal)
    designs: tuple[tuple[Sizes, str, Callable[..., Mapping[str, Any]]], ...] = (
        ((5, 40, 8, 8), "log-normal target words, skewed alike", partial(log_normal, signs=same)),
        ((5, 40, 8, 8), "log-normal target words, skewed oppositely", partial(log_normal, signs=opposite)),
        (_EIGHT, "log-normal target words, skewed oppositely", partial(log_normal, signs=opposite)),
        (_MANY, "log-normal target words, skewed oppositely", partial(log_normal, signs=opposite)),
        ((8, 8, 6, 30), "Pareto attribute words", partial(_skewed_change, draw=_pareto, signs=same, side="attributes")),
        (
            (30, 6, 24, 24),
            "exponential target words, skewed oppositely, those of Y vary 3 times as much",
            partial(_skewed_change, draw=_skewed, signs=opposite, spreads=(1.0, 3.0)),
        ),
        (
            _MANY,
            "5% of target words change by 8 times as much as the others",
            partial(_skewed_change, draw=_outlying, signs=same),
        ),
        (
            (8, 20, 8, 8),
            "log-normal target words in declared clusters of 1 to 4",
            partial(log_normal, signs=same, cluster=4),
        ),
    )
    found = []
    for sizes, name, draw in designs:
        about = f"{', '.join(map(str, sizes))} words, {name}"
        world = Experiment(f"gate skew {about}", about, partial(draw, sizes=sizes), 2000)
        found += [
            Line("gate", world, Share("worse", ALPHA), "growth of exactly the margin called worse"),
            Line("gate", world, Share("no_worse", ALPHA), "growth above the margin called no worse or better"),
        ]
    return found


def _scale_lines() -> list[Line]:
    found = []
    for words, outliers, on_both in (
        (373, 0.0, False),
        (373, 0.05, False),
        (373, 0.05, True),
        (200, 0.05, False),
        (200, 0.1, False),
    ):
        where = "less outlying on the new model" if on_both else "on the new model only"
        about = f"{words} words, {f'{outliers:.0%} outliers, {where}' if outliers else 'no outliers'}"
        draw = partial(_scale, words=words, outliers=outliers, on_both=on_both)
        world = Experiment(f"scale {about}", about, draw, 600)
        found.append(Line("scale", world, Coverage("low", "high", 0.0, (0.93, 1.0))))
    return found
