"""Effect sizes with intervals over all words: loops as a witness, agreement with the crossed test, and coverage."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import EffectEstimate, crossed_effect
from biassay.stats.model_difference import compare_tables

Sizes = tuple[int, int, int, int]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def ends(found: EffectEstimate) -> tuple[float, float]:
    return found.low, found.high  # type: ignore[return-value]


def simulated(rng: np.random.Generator, sizes: Sizes, effect: float = 0.0, heavy: bool = False) -> np.ndarray:
    """Cosines with components of target words, attribute words and residual."""
    n, m, k, l = sizes  # noqa: E741

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_t(3, shape) if heavy else rng.normal(size=shape)

    in_x, in_a = np.repeat([1.0, 0.0], [n, m]), np.repeat([1.0, 0.0], [k, l])
    residual = draw(n + m, k + l)
    return residual + np.outer(draw(n + m), in_a) + np.outer(in_x, draw(k + l)) + effect * np.outer(in_x, in_a)


def moments(table: np.ndarray, n: int, k: int) -> tuple[float, float, float]:
    """D, the pooled standard deviation within X and Y, and the effect size, by their definitions."""
    s = [float(np.mean(row[:k]) - np.mean(row[k:])) for row in table]
    x, y = s[:n], s[n:]
    within = sum((v - np.mean(x)) ** 2 for v in x) + sum((v - np.mean(y)) ** 2 for v in y)
    D = float(np.mean(x) - np.mean(y))
    return D, math.sqrt(within / (len(s) - 2)), D / float(np.std(s, ddof=1))


def left_out(table: np.ndarray, n: int, k: int) -> dict[tuple[int, int], np.ndarray]:
    """D and s_w without target i and attribute j; -1: with all."""
    at = {}
    for i, j in product(range(-1, len(table)), range(-1, table.shape[1])):
        kept = table if i < 0 else np.delete(table, i, axis=0)
        kept = kept if j < 0 else np.delete(kept, j, axis=1)
        at[i, j] = np.array(moments(kept, n - (0 <= i < n), k - (0 <= j < k))[:2])
    return at


def covariance_parts(at: dict[tuple[int, int], np.ndarray], n: int, k: int) -> list[np.ndarray]:
    """Compute contributions of targets, attributes and the residual to the covariance, in loops over words."""
    N, M = (max(key[axis] for key in at) + 1 for axis in (0, 1))
    rows, columns = (range(n), range(n, N)), (range(k), range(k, M))
    T, A, E = (np.zeros((len(at[-1, -1]),) * 2) for _ in range(3))
    for g in rows:
        T += (len(g) - 1) * np.cov(np.array([at[i, -1] for i in g]).T, ddof=0)
    for h in columns:
        A += (len(h) - 1) * np.cov(np.array([at[-1, j] for j in h]).T, ddof=0)
    for g, h in product(rows, columns):
        cell = np.array([[at[i, j] for j in h] for i in g])
        cell = cell + cell.mean(axis=(0, 1)) - cell.mean(axis=0) - cell.mean(axis=1, keepdims=True)
        E += (len(g) - 1) * (len(h) - 1) * np.einsum("ijp,ijq->pq", cell, cell) / (len(g) * len(h))
    return [T, A, E]


def variance(parts: list[np.ndarray], along: list[float]) -> float:
    """Of a sum with these weights."""
    T, A, E = (float(np.array(along) @ part @ along) for part in parts)
    return max(T + A - E, T, A)


def by_definition(table: np.ndarray, n: int, k: int, confidence: float) -> tuple[float, float]:
    """The interval: values that are not contradicted, searched on a grid; then means over many normal draws."""
    N, m, test = len(table), len(table) - n, crossed_test(table, n, k)
    D, s_w, _ = moments(table, n, k)
    parts = covariance_parts(left_out(table, n, k), n, k)
    assert variance(parts, [1, 0]) == pytest.approx(test.V, rel=1e-9)
    var_s = max(variance(parts, [0, 1]), s_w**2 / (2 * (N - 2)))
    covariance = (parts[0] + parts[1] - parts[2])[0, 1]
    t = stats.t.ppf(0.5 + confidence / 2, test.df)
    grid = np.linspace(-30.0, 30.0, 600_001)
    kept = grid[(D - grid * s_w) ** 2 <= t**2 * (test.V + grid**2 * var_s - 2 * grid * covariance)]
    assert -29.0 < kept[0] < kept[-1] < 29.0
    z = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    found = []
    for end in (kept[0], kept[-1]):
        numerator = end + math.sqrt(test.V) / s_w * z
        delta = np.outer(numerator, np.exp(math.sqrt(var_s) / s_w * z + var_s / s_w**2))
        found.append(float((delta / np.sqrt(((N - 2) + n * m / N * delta**2) / (N - 1))).mean()))
    return found[0], found[1]


@pytest.mark.parametrize(("sizes", "effect"), [((5, 7, 6, 9), 0.0), ((8, 8, 8, 8), 3.0), ((12, 5, 4, 10), -2.0)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_as_defined(rng: np.random.Generator, sizes: Sizes, effect: float, confidence: float) -> None:
    table = simulated(rng, sizes, effect)
    found = crossed_effect(table, sizes[0], sizes[2], confidence=confidence)
    assert found.effect_size == pytest.approx(moments(table, sizes[0], sizes[2])[2], rel=1e-12)
    assert ends(found) == pytest.approx(by_definition(table, sizes[0], sizes[2], confidence), abs=2e-3)
    assert found.confidence == confidence


@pytest.mark.parametrize("sizes", [(2, 2, 9, 9), (3, 2, 3, 4), (4, 4, 4, 4), (5, 9, 3, 6), (8, 8, 8, 8)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_leaves_out_0_where_the_crossed_test_is_significant(
    rng: np.random.Generator, sizes: Sizes, confidence: float
) -> None:
    n, m, k, l = sizes  # noqa: E741
    largest, significant = math.sqrt((n + m) * (n + m - 1) / (n * m)), 0
    for _ in range(200):
        scale = 10.0 ** rng.uniform(-2, 1, 3)
        table = simulated(rng, sizes, heavy=True) * scale[0] + rng.normal(size=(n + m, 1)) * scale[1] * [1] * (k + l)
        table[:n, :k] += rng.normal() * scale[2]
        p, found = crossed_test(table, n, k).p_value, crossed_effect(table, n, k, confidence=confidence)
        if p is None:
            assert (found.low, found.high) == (None, None)
            continue
        low, high = ends(found)
        assert (p <= 1.0 - confidence) == (not low <= 0.0 <= high)
        assert -largest * (1 + 1e-12) <= low <= found.effect_size <= high <= largest * (1 + 1e-12)
        significant += p <= 1.0 - confidence
    assert significant < 200


def test_agrees_with_a_p_value_at_the_boundary(rng: np.random.Generator) -> None:
    for _ in range(50):
        table = simulated(rng, (6, 6, 6, 6), 1.0)
        p = crossed_test(table, 6, 6).p_value
        assert p is not None
        for confidence in (1.0 - p, math.nextafter(1.0 - p, 0.0), math.nextafter(1.0 - p, 1.0)):
            low, high = ends(crossed_effect(table, 6, 6, confidence=confidence))
            assert (p <= 1.0 - confidence) == (not low <= 0.0 <= high)


@pytest.mark.parametrize("effect", [0.0, 1.0, 5.0])
def test_unit_and_order(rng: np.random.Generator, effect: float) -> None:
    table = simulated(rng, (5, 8, 7, 4), effect)
    found = crossed_effect(table, 5, 7)
    here = np.array([found.effect_size, *ends(found)])
    flipped = -here[[0, 2, 1]]
    x_and_y, a_and_b = np.roll(table, 8, axis=0), np.roll(table, 4, axis=1)
    shifted = 3.0 * table + rng.normal(size=(13, 1)) + rng.normal(size=11)  # common to all rows, or to all columns
    for other, n, k, expected in ((shifted, 5, 7, here), (x_and_y, 8, 7, flipped), (a_and_b, 5, 4, flipped)):
        again = crossed_effect(other, n, k)
        assert [again.effect_size, *ends(again)] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("effect", [0.0, 0.4, -6.0])
def test_of_targets_that_are_all_alike_only_the_sign_is_known(rng: np.random.Generator, effect: float) -> None:
    table = np.repeat(rng.normal(size=(2, 10)), [4, 6], axis=0)
    table[:4, :5] += effect
    test, found = crossed_test(table, 4, 5), crossed_effect(table, 4, 5)
    assert test.p_value is not None
    assert (test.p_value <= 0.05) is (effect == -6.0)
    most = math.sqrt(10 * 9 / 24)
    assert found.effect_size == pytest.approx(math.copysign(most, test.D))
    low, high = ends(found)
    assert low == pytest.approx(-most)
    assert high == (pytest.approx(most) if test.p_value > 0.05 else -math.ulp(0.0))
    above = crossed_effect(table, 4, 5, confidence=1.0 - test.p_value - 1e-9)
    assert not above.low <= 0.0 <= above.high


@pytest.mark.parametrize("difference", [0.4, -0.4])
def test_a_maximally_biased_model_has_the_largest_effect_and_a_sign(difference: float) -> None:
    table = np.outer(np.repeat([1.0, -1.0], 8), np.repeat([1.0, -1.0], 8)) * difference / 4.0
    found = crossed_effect(table, 8, 8)
    most = math.sqrt(16 * 15 / 64)
    assert found.effect_size == pytest.approx(math.copysign(most, difference))
    assert not found.low <= 0.0 <= found.high
    assert max(map(abs, ends(found))) == pytest.approx(most)


SPREADS = st.sampled_from([0.0, 1e-300, 1e-13, 1e-12, 3e-12, 1e-11, 1e-9, 1e-6, 1e-3, 1.0, 1e30, 1e48])


@given(
    sizes=st.tuples(*[st.integers(2, 5)] * 4),
    spreads=st.tuples(*[SPREADS] * 6),
    seed=st.integers(0, 2**32),
    signs=st.booleans(),
)
def test_degenerate_tables_give_numbers_without_warnings(
    sizes: Sizes, spreads: tuple[float, ...], seed: int, signs: bool
) -> None:
    n, m, k, l = sizes  # noqa: E741
    rng = np.random.default_rng(seed)
    in_x, in_a = np.repeat([1.0, -1.0], [n, m]), np.repeat([1.0, -1.0], [k, l])
    parts = [
        np.outer(in_x, in_a),
        np.outer(rng.normal(size=n + m), in_a),
        np.outer(in_x, rng.normal(size=k + l)),
        rng.normal(size=(n + m, k + l)),
        np.outer(rng.normal(size=n + m), np.ones(k + l)),
        np.ones((n + m, k + l)),
    ]
    table = sum((spread * part for spread, part in zip(spreads, parts, strict=True)), np.zeros((n + m, k + l)))
    table = np.sign(table) if signs else table
    test, found = crossed_test(table, n, k), crossed_effect(table, n, k)
    other = table + rng.normal(size=table.shape) * table.std()
    compare_tables(table, other, n, k, direction=None, margin=0.2, confidence=0.95)
    for p in (test.p_value, test.p_greater, test.p_skew):
        assert p is None or 0.0 <= p <= 1.0
    assert not any(end is not None and math.isnan(end) for end in (found.low, found.high))
    if test.p_value is not None and found.low is not None:
        assert (test.p_value <= 0.05) is not (found.low <= 0.0 <= found.high)


def test_a_spread_far_below_its_own_error_gives_no_warning(rng: np.random.Generator) -> None:
    """Associations of targets hardly vary with all attributes, and a great deal without any one of them."""
    in_x, by_attribute = np.repeat([1.0, -1.0], 4), np.array([1.0, -0.5, -0.5, 0.0])
    table = np.outer(in_x, np.tile([0.4, 0.1, 0.3, 0.0], 2) * np.repeat([1.0, -1.0], 4))
    table += 0.05 * np.outer([1.0, -1.0] * 4, np.tile(by_attribute, 2))
    table += 1e-9 * rng.normal(size=(8, 8))
    assert crossed_test(table, 4, 4).p_value is not None
    assert np.isfinite(ends(crossed_effect(table, 4, 4))).all()


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize(("sizes", "effect"), [((8, 8, 8, 8), 2.5), ((6, 14, 20, 8), 1.5)])
def test_coverage(rng: np.random.Generator, sizes: Sizes, effect: float, heavy: bool) -> None:
    n, k = sizes[0], sizes[2]
    found = [crossed_effect(simulated(rng, sizes, effect, heavy), n, k) for _ in range(500)]
    expected = np.mean([one.effect_size for one in found])
    assert 0.92 <= np.mean([one.low <= expected <= one.high for one in found]) <= 0.985


@pytest.mark.parametrize("effect", [0.0, 2.0])
def test_the_standard_error_is_the_spread_of_effects_over_new_words(rng: np.random.Generator, effect: float) -> None:
    """Both sides are resampled; the reference is the standard deviation of d over 600 samples of words."""
    found = [crossed_effect(simulated(rng, (16, 16, 16, 16), effect), 16, 16) for _ in range(600)]
    errors = [one.standard_error for one in found if one.standard_error is not None]
    spread = float(np.std([one.effect_size for one in found]))
    assert len(errors) == 600
    assert float(np.sqrt(np.mean(np.square(errors)))) == pytest.approx(spread, rel=0.12)
