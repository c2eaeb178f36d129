"""Comparison of two models by calibrated tables: reference values, the rules, nesting, and power."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from biassay.stats.crossed import VarianceComponents, crossed_test
from biassay.stats.model_difference import (
    ALL_ALIKE,
    REVERSAL_NOT_EXCLUDED,
    SIZE_UNKNOWN,
    Contrast,
    ModelDifference,
    compare_tables,
    explain_inconclusive,
    gate_power,
    judge_contrasts,
)
from biassay.stats.power import CrossedDesign

REFERENCE = Path(__file__).parents[1] / "reference" / "gate"
CASES = json.loads((REFERENCE / "expected.json").read_text())
SIGNS: dict[int, Literal["positive", "negative"] | None] = {1: "positive", -1: "negative", 0: None}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("family", ["1", "13"])
def test_reference(name: str, family: str) -> None:
    case, tables = CASES[name], np.load(REFERENCE / "cases.npz")
    found = compare_tables(
        tables[f"{name}/old"],
        tables[f"{name}/new"],
        case["n"],
        case["k"],
        direction=SIGNS[case["expected_direction"]],
        margin=case["margin"],
        confidence=1.0 - 0.05 / (2 * int(family)),
    )
    expected = case["family"][family]
    for contrast, key in ((found.growth, "G"), (found.reversal, "H")):
        numbers = {field: getattr(contrast, field) for field in ("value", "V", "df", "low", "high")}
        assert numbers == pytest.approx(expected[key], rel=1e-9, abs=1e-9)
    assert found.verdict == expected["verdict"]


def contrast(low: float, high: float) -> Contrast:
    return Contrast((low + high) / 2.0, 1.0, 10.0, low, high)


@pytest.mark.parametrize(
    ("growth", "reversal", "directed", "expected"),
    [
        ((-0.4, 0.1), (-5.0, 5.0), True, REVERSAL_NOT_EXCLUDED),
        ((-2.0, -0.5), (-1.0, -0.1), True, REVERSAL_NOT_EXCLUDED),
        ((0.19, 0.5), (0.0, 3.0), True, None),
        ((0.3, 0.9), (-0.5, 0.5), False, SIZE_UNKNOWN),
        ((-0.9, -0.3), (-0.5, 0.5), False, SIZE_UNKNOWN),
        ((-0.4, 0.4), (-0.5, 0.5), False, None),
    ],
)
def test_an_inconclusive_verdict_is_explained_unless_the_growth_is_undecided(
    growth: tuple[float, float], reversal: tuple[float, float], directed: bool, expected: str | None
) -> None:
    contrasts = contrast(*growth), contrast(*reversal)
    assert judge_contrasts(*contrasts, 0.2, directed=directed) == "inconclusive"
    assert explain_inconclusive(*contrasts, 0.2, directed=directed) == expected


@pytest.mark.parametrize(
    ("growth", "reversal", "expected"),
    [
        ((0.21, 0.5), (0.0, 3.0), "worse"),
        ((0.19, 0.5), (0.0, 3.0), "inconclusive"),
        ((-2.0, -0.5), (-1.0, -0.3), "worse"),  # reversed past the old size
        ((-2.0, -0.5), (-1.0, -0.1), "inconclusive"),  # it may have been reversed past the old size
        ((-2.0, -0.5), (1.0, 5.0), "better"),
        ((-0.1, 0.2), (-5.0, 5.0), "no_worse"),
        ((-0.4, 0.1), (-5.0, 5.0), "inconclusive"),  # it may have fallen past 0
        ((-0.4, 0.1), (-0.1, 5.0), "no_worse"),
        ((-0.1, 0.21), (-0.1, 5.0), "inconclusive"),
    ],
)
def test_rules_with_a_direction(growth: tuple[float, float], reversal: tuple[float, float], expected: str) -> None:
    assert judge_contrasts(contrast(*growth), contrast(*reversal), 0.2, directed=True) == expected


@pytest.mark.parametrize(
    ("growth", "reversal", "expected"),
    [
        ((0.3, 0.5), (0.3, 3.0), "worse"),
        ((0.3, 0.5), (0.1, 3.0), "inconclusive"),
        ((-0.5, -0.3), (-3.0, -0.3), "worse"),
        ((-0.5, -0.3), (0.3, 3.0), "better"),
        ((0.3, 0.5), (-3.0, -0.3), "better"),
        ((-0.1, 0.1), (-3.0, 3.0), "no_worse"),
        ((-0.5, 0.1), (-0.1, 0.5), "no_worse"),
        ((-0.5, 0.5), (-0.1, 0.1), "no_worse"),
        ((-0.5, 0.5), (-0.5, 0.5), "inconclusive"),
    ],
)
def test_rules_without_a_direction(growth: tuple[float, float], reversal: tuple[float, float], expected: str) -> None:
    for sign in (1, -1):  # the mirror image gets the same verdict
        first, second = (contrast(*sorted((sign * low, sign * high))) for low, high in (growth, reversal))
        assert judge_contrasts(first, second, 0.2, directed=False) == expected


tables = arrays(np.float64, (6, 8), elements=st.floats(-20.0, 20.0, allow_subnormal=False))
levels = st.floats(1e-6, 0.5)


@given(old=tables, new=tables, first=levels, second=levels, scale_variance=st.floats(0.0, 0.1))
def test_intervals_nest_around_the_estimate(
    old: np.ndarray, new: np.ndarray, first: float, second: float, scale_variance: float
) -> None:
    wide, narrow = (
        compare_tables(
            old, new, 3, 4, direction="positive", margin=0.2, confidence=1.0 - alpha, scale_variance=scale_variance
        )
        for alpha in sorted((first, second))
    )
    for outer, inner in ((wide.growth, narrow.growth), (wide.reversal, narrow.reversal)):
        assert outer.value == inner.value
        if outer.low is not None and outer.high is not None and inner.low is not None and inner.high is not None:
            assert outer.low <= inner.low <= inner.value <= inner.high <= outer.high
            assert inner.high - inner.value == pytest.approx(inner.value - inner.low, abs=1e-9)


def drawn(rng: np.random.Generator, effect: float = 0.0, n: int = 8) -> np.ndarray:
    signs = np.repeat([0.5, -0.5], n)
    targets, attributes = rng.normal(0, 0.5, (2 * n, 1)) * signs, rng.normal(0, 0.5, 2 * n) * signs[:, None]
    return np.asarray(targets + attributes + rng.normal(size=(2 * n, 2 * n)) + effect * np.outer(signs, signs))


def compare(old: np.ndarray, new: np.ndarray, direction: str | None = "positive", **options: float) -> ModelDifference:
    n = len(old) // 2
    settings = {"margin": 0.2, "confidence": 0.975} | options
    return compare_tables(old, new, n, n, direction=direction, **settings)  # type: ignore[arg-type]


def test_saturated_effect_that_doubles_is_worse() -> None:
    signs = np.repeat([1.0, -1.0], 8)
    old = 0.6 * np.outer(signs, signs) + np.random.default_rng(0).normal(0, 0.02, (16, 16))
    assert compare(old, 2.0 * old).verdict == "worse"
    assert compare(2.0 * old, old).verdict == "better"
    assert compare(old, 0.0 * old).verdict == "better"
    assert compare(-old, 0.0 * old).verdict == "worse"  # from an anti-stereotype to 0: towards the stereotype


def test_variance_of_the_scale() -> None:
    rng = np.random.default_rng(3)
    old, new = drawn(rng, 3.0), drawn(rng, 5.0)
    plain, wider = compare(old, new), compare(old, new, scale_variance=0.01)
    total, difference = plain.new + plain.old, plain.new - plain.old
    added = [wider.growth.V - plain.growth.V, wider.reversal.V - plain.reversal.V]
    assert added == pytest.approx([0.01 * (total / 2.0) ** 2, 0.01 * (difference / 2.0) ** 2])
    assert (plain.old, plain.new) == pytest.approx([crossed_test(table, 8, 8).D for table in (old, new)])


def test_variance_of_the_scale_never_narrows_an_interval() -> None:
    """Satterthwaite's formula raises few degrees of freedom so much that t falls by more than the variance grows."""
    rng = np.random.default_rng(10)
    old, new = rng.normal(size=(2, 6, 6)) + 2.0
    plain, wider = (
        compare_tables(
            old, new, 3, 3, direction="positive", margin=0.2, confidence=0.975, scale_variance=variance
        ).growth
        for variance in (0.0, 0.05)
    )
    assert plain.df < 6.0
    assert wider.low < plain.low < plain.high < wider.high


@pytest.mark.parametrize("scale_variance", [0.0, 0.001])
@pytest.mark.parametrize("growth", [0.21, 5.0, -0.21])
def test_words_that_all_change_alike_have_no_interval(growth: float, scale_variance: float) -> None:
    """The spread over words is estimated as 0, which would make an interval of no width: .21 would be above .2."""
    old = drawn(np.random.default_rng(11))
    new = old + growth / 4.0 * np.outer(*2 * [np.repeat([1.0, -1.0], 8)])
    found = compare(old, new, scale_variance=scale_variance)
    assert (found.verdict, found.growth.low, found.growth.high, found.power) == ("inconclusive", None, None, None)
    assert (found.growth.value, found.growth.missing_reason) == (pytest.approx(growth), ALL_ALIKE)
    assert found.reversal.low is not None
    varied = compare(old, new + 0.01 * drawn(np.random.default_rng(12)), scale_variance=scale_variance)
    assert varied.growth.missing_reason is None


def test_growth_of_exactly_the_margin_is_not_called_worse() -> None:
    """At a confidence of .975 at most 1.25% are, of 400 at most 12 with a probability of .995."""
    rng = np.random.default_rng(5)
    pairs = [(drawn(rng, 0.5), drawn(rng, 0.7)) for _ in range(400)]
    assert sum(compare(*pair).verdict == "worse" for pair in pairs) <= 12


@pytest.mark.parametrize("spread", [0.05, 0.15, 0.25])
def test_printed_power_is_that_of_simulations(spread: float) -> None:
    rng = np.random.default_rng(6)
    parts = VarianceComponents(spread**2 / 4.0, spread**2 / 4.0, spread**2)
    expected = gate_power(parts, (8, 8, 8, 8), 0.2, 0.025).at_twice_margin
    worse = 0
    for _ in range(600):
        old = drawn(rng)
        worse += (
            compare(old, old + spread * drawn(rng) + 0.1 * np.outer(*2 * [np.repeat([1.0, -1.0], 8)])).verdict
            == "worse"
        )
    assert worse / 600 == pytest.approx(expected, abs=0.05)


def change_unevenly(rng: np.random.Generator, n: int, m: int, sign: float, growth: float) -> ModelDifference:
    """Compare models whose target words change by log-normal amounts, by this growth on average."""
    rows, columns = np.repeat([1.0, -1.0], [n, m]), np.repeat([1.0, -1.0], 8)
    leanings = rng.lognormal(size=n + m) - np.exp(0.5)
    old = rng.normal(0, 0.3, (n + m, 16))
    new = old + np.outer(sign * 0.07 * leanings + growth / 4.0 * rows, columns) + rng.normal(0, 0.01, old.shape)
    return compare_tables(old, new, n, 8, direction="positive", margin=0.2, confidence=0.975)


@pytest.mark.parametrize(("sign", "growth", "wrong"), [(-1.0, 0.2, "worse"), (1.0, 0.201, "no_worse")])
def test_few_skewed_words_give_few_wrong_verdicts(sign: float, growth: float, wrong: str) -> None:
    """With 5 and 40 words, 10% of verdicts by t are wrong; of 300, at most 15 are at .05."""
    rng = np.random.default_rng(7)
    made = [change_unevenly(rng, 5, 40, sign, growth) for _ in range(300)]
    assert sum(found.verdict == wrong for found in made) <= 15
    by_t = [judge_contrasts(found.growth, replace(found.reversal, skewness=()), 0.2, directed=True) for found in made]
    assert sum(verdict == wrong for verdict in by_t) > 15


def test_correction_for_skewness_contains_the_interval_and_nests() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        growth = change_unevenly(rng, 8, 30, 1.0, 0.5).growth
        assert growth.low is not None
        assert growth.high is not None
        narrow, wide = growth.correct(0.975), growth.correct(0.99)
        assert wide.low <= narrow.low <= growth.low <= growth.value <= growth.high <= narrow.high <= wide.high
        assert (narrow.low, narrow.high) != (growth.low, growth.high)


def test_large_skewed_growth_is_still_worse() -> None:
    found = change_unevenly(np.random.default_rng(9), 24, 24, 1.0, 2.0)
    assert (found.verdict, found.corrected) == ("worse", None)


def test_detectable_growth() -> None:
    parts = VarianceComponents(0.02, 0.02, 0.1)
    found = gate_power(parts, (8, 8, 8, 8), 0.2, 0.002)
    assert found.detectable is not None
    assert found.detectable > 0.2
    assert 0.0 < found.at_twice_margin < 0.8
    design = CrossedDesign(parts, (8, 8, 8, 8))
    assert design.power_above(found.detectable - 0.2, 0.002) == pytest.approx(0.8, abs=1e-6)
    assert gate_power(parts, (24, 24, 24, 24), 0.2, 0.002).at_twice_margin > found.at_twice_margin
    wider = gate_power(parts, (8, 8, 8, 8), 0.2, 0.002, scale_variance=0.01).detectable
    assert wider is not None
    assert wider > found.detectable
    assert gate_power(parts, (2, 2, 2, 2), 0.2, 0.002).detectable is None
    assert gate_power(VarianceComponents(1e-6, 1e-6, 1e-6), (8, 8, 8, 8), 0.2, 0.002).at_twice_margin == 1.0
