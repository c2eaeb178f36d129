"""Association tests: WEAT and SEAT, on simulated components and on GloVe with sets drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import nan
from typing import Any

import numpy as np

import biassay
from biassay.stats.crossed import crossed_test
from biassay.stats.permutation import Protocol
from biassay.stats.power import CrossedDesign

from .claim import HEADLINE, INTERVAL, Claim, Coverage, Experiment, Level, Line, Power, up_to
from .worlds import SMALL, Sizes, Tails, crossed_table, drawn, glove_rows, text_sets, vectors

__all__ = ["CLAIMS", "lines"]

DESIGNS: dict[Sizes, tuple[int, int]] = {  # repetitions without and with an effect
    (5, 5, 5, 5): (4000, 1500),
    (8, 8, 8, 8): (4000, 1500),
    (16, 16, 25, 25): (2000, 1000),
    (25, 25, 25, 25): (1200, 800),
}
EFFECTS = (0.5, 1.0, 1.5)
TAILS: tuple[Tails, ...] = ("normal", "t3")
TEXTS = 7

CLAIMS = (
    Claim(
        "crossed p",
        "associations",
        "p",
        (
            "associations.results.p_value",
            "associations.results.crossed_p_value",
            "robustness.results.p_value",
            "robustness.specifications.p_value",
        ),
        "The targets are associated with the attributes: other words of the same kinds would show it too. Two-sided.",
        "No association: D is 0 on average over samples of all words.",
        "word, on both sides",
        "Words are an independent sample of their kind; words of a declared cluster count as one. D is "
        "approximately normal.",
        "Conservative with five words per set. It rejects too often if strongly skewed target words "
        "dominate the variance and X and Y are skewed in opposite directions (up to .14) or differ in "
        "size (.07).",
    ),
    Claim(
        "skew-corrected p",
        "associations",
        "p, skew (p at most alpha without a warning)",
        ("associations.diagnostics.p_skew",),
        "A significant p is not due to skewed associations: the report warns if this p is above alpha.",
        "No association; associations of target words are strongly skewed.",
        "word, on both sides",
        "The sampled words are as skewed as their kind.",
        "Sampled words show only part of a strong skew.",
    ),
    Claim(
        "D interval",
        "associations",
        "interval of D",
        (
            "associations.results.cosine_ci_low",
            "associations.results.cosine_ci_high",
            "associations.results.calibrated_ci_low",
            "associations.results.calibrated_ci_high",
        ),
        "The range of D (cosine units) over other words.",
        "D on average over samples of all words.",
        "word, on both sides",
        "Those of p; interval and p never disagree about 0.",
    ),
    Claim(
        "d interval",
        "associations",
        "interval of d",
        (
            "associations.results.ci_low",
            "associations.results.ci_high",
            "associations.results.crossed_ci_low",
            "associations.results.crossed_ci_high",
            "robustness.results.ci_low",
            "robustness.results.ci_high",
            "robustness.specifications.ci_low",
            "robustness.specifications.ci_high",
        ),
        "The range of the effect size d over other words.",
        "The expected d of a test of these sizes.",
        "word, on both sides",
        "Those of p.",
    ),
    Claim(
        "p by word",
        "associations",
        "p (these words only)",
        ("associations.results.fixed_words_p_value", "associations.results.fixed_words_p_opposite"),
        "These targets differ in their association with these attribute words. Exact.",
        "Target words are exchangeable between X and Y; the attribute words are fixed.",
        "target word",
        "Targets are exchangeable; if sizes are unequal, spreads must be equal too.",
        "Says nothing about other attribute words: if attributes are sampled again, it rejects far too often.",
    ),
    Claim(
        "p by text",
        "associations",
        "sentence-level p",
        ("associations.results.sentences_p_value",),
        "The papers' p-value: these texts differ. It does not generalize.",
        "Texts are exchangeable between X and Y.",
        "text",
        "Texts are independent, although those of one word are not.",
        "Rejects far too often as a test of words, so it is primary only under the papers' protocols.",
    ),
    Claim(
        "equivalence p",
        "associations",
        "p, equivalence",
        ("associations.results.p_equivalence",),
        "D is smaller than the given margin.",
        "D is as large as the margin.",
        "word, on both sides",
        "Those of p.",
    ),
    Claim(
        "power",
        "associations",
        "power (`biassay.power`, `power_80`)",
        (),
        "The share of tests that detect a given d at .05.",
        "Effects of d = 0.5, 1 and 1.5.",
        "word, on both sides",
        "Normal components of the given size.",
    ),
)


def components(sizes: Sizes) -> Any:
    """Load typical variance components of word tests."""
    return biassay.power(sizes).components


def _numbers(found: biassay.Association, margin: float = 0.0) -> Mapping[str, Any]:
    crossed, size = found.crossed, found.estimate
    assert crossed is not None
    assert size is not None
    low, high = crossed.interval or (nan, nan)
    return {
        "p": crossed.p_value,
        "D_low": low,
        "D_high": high,
        "d": size.effect_size,
        "d_low": size.low,
        "d_high": size.high,
        "by word": found.p_value if found.by_word is None else found.by_word.value,
        "by text": found.p_value,
        "equivalence": crossed.p_equivalence(margin) if margin else nan,
    }


def _simulated(rng: np.random.Generator, sizes: Sizes, tails: Tails, D: float) -> Mapping[str, Any]:
    table = crossed_table(rng, sizes, components(sizes), D, tails)
    return _numbers(biassay.weat(*vectors(table, sizes[0], sizes[2]), alternative="two-sided"), D * SMALL)


def _fixed_attributes(rng: np.random.Generator, sizes: Sizes) -> Mapping[str, Any]:
    table = rng.normal(size=(sizes[0] + sizes[1], sizes[2] + sizes[3]))
    return _numbers(biassay.weat(*vectors(table, sizes[0], sizes[2]), alternative="two-sided"))


def _random_attributes(rng: np.random.Generator, test: str) -> Mapping[str, Any]:
    X, Y, A, B = (glove_rows(f"{test}/{role}") for role in "XYAB")
    return _numbers(biassay.weat(X, Y, *drawn(rng, len(A), len(B)), alternative="two-sided"))


def _random_targets(rng: np.random.Generator, test: str) -> Mapping[str, Any]:
    X, Y, A, B = (glove_rows(f"{test}/{role}") for role in "XYAB")
    X, Y = drawn(rng, len(X), len(Y))
    return _numbers(biassay.weat(X, Y, A, B, alternative="two-sided"))


def _unequal(rng: np.random.Generator, sizes: Sizes) -> Mapping[str, Any]:
    """Draw tables in which the smaller set has three times the standard deviation."""
    table = crossed_table(rng, sizes, components(sizes))
    table[: sizes[0]] *= 3.0
    return _numbers(biassay.weat(*vectors(table, sizes[0], sizes[2]), alternative="two-sided"))


def _skewed(rng: np.random.Generator, sizes: Sizes, log_sd: float, opposite: bool) -> Mapping[str, Any]:
    """Draw log-normal associations of target words; Y may be skewed opposite to X."""
    drawn_ones = rng.lognormal(0.0, log_sd, size=sizes[0] + sizes[1]) - np.exp(log_sd**2 / 2.0)
    drawn_ones[sizes[0] :] *= -1.0 if opposite else 1.0
    table = np.outer(drawn_ones, np.repeat([0.5, -0.5], sizes[2:]))
    table += 0.1 * drawn_ones.std() * rng.normal(size=table.shape)
    found = crossed_test(table, sizes[0], sizes[2])
    assert found.p_value is not None
    assert found.p_skew is not None
    return {"p": found.p_value, "unquestioned p": max(found.p_value, found.p_skew)}


def _two_valued(
    rng: np.random.Generator, sizes: Sizes, share: float = 0.5, values: int = 2, noise: float = 0.0
) -> Mapping[str, Any]:
    """Draw two-valued associations: a target word is associated with A with this probability, otherwise with B."""
    n, m, k, l = sizes  # noqa: E741
    leanings = rng.binomial(values - 1, share, size=n + m) * 2.0 / (values - 1) - 1.0
    table = np.outer(leanings + noise * rng.normal(size=n + m), np.repeat([1.0, -1.0], [k, l]))
    found = crossed_test(table, n, k)
    return {"p": 1.0 if found.p_value is None else found.p_value}


def _maximal(rng: np.random.Generator, words: int) -> Mapping[str, Any]:
    """Associate X with A and Y with B, every word by the same amount."""
    sides = np.repeat([1.0, -1.0], words)
    return _numbers(biassay.weat(*vectors(np.outer(sides, sides) * rng.uniform(0.1, 10.0), words, words)))


def _protocols(rng: np.random.Generator) -> Mapping[str, Any]:
    """Draw texts as independent words, with fixed attributes."""
    sets = vectors(rng.normal(size=(16, 16)), 8, 8)
    protocols: tuple[Protocol, ...] = ("exact", "may2019", "caliskan2017")
    return {protocol: biassay.weat(*sets, protocol=protocol, rng=rng).p_value for protocol in protocols}


def _sentences(rng: np.random.Generator) -> Mapping[str, Any]:
    sizes = (8, 8, 8, 8)
    parts = components(sizes)
    table = text_sets(rng, crossed_table(rng, sizes, parts), TEXTS, np.sqrt(parts.residual))
    words = tuple([f"{role}{i}" for i in range(8) for _ in range(TEXTS)] for role in "XYAB")
    X, Y, A, B = vectors(table, 8 * TEXTS, 8 * TEXTS)
    return _numbers(biassay.weat(X, Y, A, B, words=words, alternative="two-sided"))  # type: ignore[arg-type]


def _sizes(sizes: Sizes) -> str:
    return f"{sizes[0]}, {sizes[1]} targets, {sizes[2]}, {sizes[3]} attributes"


def lines() -> list[Line]:
    """List all rows of association tests."""
    found = []
    for sizes, (many, few) in DESIGNS.items():
        few_words = sizes[0] <= 5  # few words may make a test conservative, never anticonservative
        wanted = up_to(0.065) if few_words else HEADLINE
        covers = (0.93, 1.0) if few_words else INTERVAL
        for tails in TAILS:
            about = f"{_sizes(sizes)}, all words redrawn, {tails} components"
            name = f"crossed {sizes} {tails}"
            null = Experiment(name, about, partial(_simulated, sizes=sizes, tails=tails, D=0.0), many)
            found += [
                Line("crossed p", null, Level("p", wanted)),
                Line("D interval", null, Coverage("D_low", "D_high", 0.0, covers)),
                Line("d interval", null, Coverage("d_low", "d_high", 0.0, covers), "no effect"),
                Line("p by word", null, Level("by word"), "not its null: attributes are redrawn"),
            ]
            for d in EFFECTS:
                D = CrossedDesign(components(sizes), sizes).D_from_d(d)
                draw = partial(_simulated, sizes=sizes, tails=tails, D=D)
                world = Experiment(f"{name} {d}", about, draw, few)
                note = f"d about {d:g}"
                found += [
                    Line("D interval", world, Coverage("D_low", "D_high", D * SMALL, covers), note),
                    Line("d interval", world, Coverage("d_low", "d_high", "d", covers), note),
                    Line("equivalence p", world, Level("equivalence", up_to(0.065)), f"margin {note}"),
                ]
                if tails == "normal":
                    predicted = biassay.power(sizes, effect=d).power
                    assert predicted is not None
                    found.append(Line("power", world, Power("p", predicted), f"d = {d:g}"))
    return found + _glove_lines() + _other_lines()


def _glove_lines() -> list[Line]:
    found = []
    for test, repetitions in {"weat6": 2000, "weat4": 1000, "weat1": 600}.items():
        sizes = tuple(len(glove_rows(f"{test}/{role}")) for role in "XYAB")
        about = f"GloVe, {test}, {_sizes(sizes)}"  # type: ignore[arg-type]
        draws = {"attributes": _random_attributes, "targets": _random_targets}
        for side, draw in draws.items():
            world = Experiment(
                f"{side} {test}", f"{about}, {side} drawn at random", partial(draw, test=test), repetitions
            )
            own = side == "targets"
            found += [
                Line("crossed p", world, Level("p", HEADLINE)),
                Line("D interval", world, Coverage("D_low", "D_high", 0.0, INTERVAL)),
                Line("d interval", world, Coverage("d_low", "d_high", "d", INTERVAL), "no effect"),
                Line("p by word", world, Level("by word", up_to(0.06) if own else None), "" if own else "not its null"),
            ]
    return found


def _other_lines() -> list[Line]:
    sizes = (8, 8, 8, 8)
    fixed = Experiment(
        "fixed attributes", f"{_sizes(sizes)}, attributes fixed", partial(_fixed_attributes, sizes=sizes), 4000
    )
    texts = Experiment("sentences", f"{_sizes(sizes)}, {TEXTS} texts of each, all words redrawn", _sentences, 400)
    alike = Experiment("texts alike", "8, 8 targets, attributes fixed, every text a word of its own", _protocols, 1000)
    odd = (6, 24, 8, 8)
    unequal = Experiment(
        "unequal", f"{_sizes(odd)}, those of X vary three times as much", partial(_unequal, sizes=odd), 2000
    )
    return [
        *_skewed_lines(),
        *_agreeing_lines(),
        *(Line("p by text", alike, Level(name, up_to(0.06)), name) for name in ("exact", "may2019", "caliskan2017")),
        Line("crossed p", unequal, Level("p", HEADLINE)),
        Line("p by word", unequal, Level("by word"), "not its null: targets are not exchangeable"),
        Line("p by word", fixed, Level("by word", up_to(0.06))),
        Line("p by text", texts, Level("by text"), "not its null: texts of a word go together"),
        Line("p by word", texts, Level("by word"), "not its null: attributes are redrawn"),
        Line("crossed p", texts, Level("p", HEADLINE)),
        Line("d interval", texts, Coverage("d_low", "d_high", 0.0, INTERVAL), "no effect"),
    ]


def _skewed_lines() -> list[Line]:
    """List rows for skewed target words that dominate the variance: the stated level, and cases without a warning."""
    found = []
    for sizes in ((8, 8, 8, 8), (8, 25, 8, 8), (25, 25, 8, 8)):
        for log_sd, opposite in ((0.5, True), (1.0, True), (1.0, False)):
            way = "opposite in X and Y" if opposite else "the same in X and Y"
            about = f"{_sizes(sizes)}, log-normal target words (sigma {log_sd:g}) dominate, skew {way}"
            draw = partial(_skewed, sizes=sizes, log_sd=log_sd, opposite=opposite)
            world = Experiment(f"skewed {sizes} {log_sd} {opposite}", about, draw, 2000)
            found += [
                Line("crossed p", world, Level("p", up_to(0.15, 0.08)), "strong skew"),
                Line("skew-corrected p", world, Level("unquestioned p", up_to(0.08, 0.04))),
            ]
    return found


def _agreeing_lines() -> list[Line]:
    """List rows for saturated cosines: two-valued associations, and a maximally biased model."""
    found = []
    for words in (5, 8):
        coins = Experiment(
            f"two-valued {words}",
            f"{words} words per set, every target word goes with A or with B, by a coin",
            partial(_two_valued, sizes=(words,) * 4),
            4000,
        )
        biased = Experiment(
            f"maximal {words}", f"{words} words per set, all of them agree", partial(_maximal, words=words), 200
        )
        found += [
            Line("crossed p", coins, Level("p", up_to(0.065, 0.015)), "two-valued cosines"),
            Line("power", biased, Power("p", 1.0), "all words agree"),
        ]
    few: tuple[tuple[Sizes, str, dict[str, Any]], ...] = (
        ((6, 24, 8, 8), "a fifth of target words go with A, the others with B", {"share": 0.2}),
        ((5, 40, 8, 8), "a tenth of target words go with A, the others with B", {"share": 0.1}),
        ((8, 8, 8, 8), "target words have one of three associations", {"values": 3}),
        ((8, 8, 8, 8), "target words go with A or with B, by a coin, with a noise of 5%", {"noise": 0.05}),
    )
    for sizes, name, options in few:
        world = Experiment(
            f"two-valued {sizes} {name}", f"{_sizes(sizes)}, {name}", partial(_two_valued, sizes=sizes, **options), 4000
        )
        found.append(Line("crossed p", world, Level("p", up_to(0.065, 0.015)), "few different cosines"))
    return found
