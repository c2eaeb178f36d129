"""Test exact counts against brute force, and the approximation against integer counts."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biassay.errors import MeasurementError, UnknownNameError
from biassay.stats.permutation import permutation_test
from biassay.stats.saddlepoint import approximate_tail
from biassay.stats.subset_sums import SubsetTail, count_by_enumeration, count_by_halves, count_by_middle, log_binomial

Scores = NDArray[np.float64]
ACCURACY = 1e-3


def brute_force(tail: SubsetTail) -> int:
    return sum(sum(chosen) >= tail.lowest_tie for chosen in itertools.combinations(tail.levels.tolist(), tail.size))


def log_tails(levels: NDArray[np.int64], size: int) -> Scores:
    """Return log P[sum >= s] for s from 0 on, by counting subsets of non-negative integers."""
    highest = int(np.sort(levels)[-size:].sum())
    counts = np.zeros((size + 1, highest + 1))
    counts[0, 0] = 1.0
    for level in np.sort(levels).tolist():
        counts[1:, level:] += counts[:-1, : highest + 1 - level].copy()
    return np.asarray(np.log(np.cumsum(counts[size][::-1])[::-1]) - math.log(math.comb(len(levels), size)))


def shuffle_towards(scores: Scores, separation: float, rng: np.random.Generator) -> tuple[Scores, Scores]:
    """Split scores into halves; the larger the separation, the more high scores are in the first."""
    ranks = np.argsort(np.argsort(scores)) / len(scores)
    order = np.argsort(-(separation * ranks + rng.random(len(scores))))
    return scores[order[: len(order) // 2]], scores[order[len(order) // 2 :]]


scores = st.integers(-(10**6), 10**6).map(lambda i: i / 1e6)


@given(x=st.lists(scores, min_size=1, max_size=6), y=st.lists(scores, min_size=1, max_size=8))
def test_counts_agree_with_brute_force(x: list[float], y: list[float]) -> None:
    tail = SubsetTail.from_scores(np.array(x), np.array(y))
    expected = brute_force(tail)
    assert count_by_enumeration(tail) == count_by_halves(tail, 1 << 20) == count_by_middle(tail) == expected


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 10])
@pytest.mark.parametrize("kind", ["normal", "tied"])
def test_p_values_up_to_10_v_10_agree_with_brute_force(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    pooled: Scores = rng.normal(size=2 * n) if kind == "normal" else np.asarray(rng.integers(0, 4, 2 * n) * 0.1)
    sums = pooled[np.array(list(itertools.combinations(range(2 * n), n)))].sum(axis=1)
    found = permutation_test(pooled[:n], pooled[n:])
    assert found.value == pytest.approx(np.mean(sums >= sums[0] - 1e-9), rel=1e-12)


@given(
    x=st.lists(st.integers(-50, 50), min_size=2, max_size=5), y=st.lists(st.integers(-50, 50), min_size=2, max_size=5)
)
def test_order_shift_and_scale_change_nothing(x: list[int], y: list[int]) -> None:
    expected = permutation_test(np.array(x, float), np.array(y, float)).value
    moved = permutation_test(0.001 * np.array(x[::-1]) + 3.0, 0.001 * np.array(y[::-1]) + 3.0).value
    assert moved == expected


KINDS: dict[str, Callable[[np.random.Generator, int], NDArray[np.floating]]] = {
    "uniform": lambda rng, n: rng.integers(0, 61, n) * 1.0,
    "skewed": lambda rng, n: np.minimum(rng.exponential(10.0, n), 90.0),
    "tied": lambda rng, n: rng.integers(0, 5, n) * 1.0,
    "heavy-tailed": lambda rng, n: np.clip(8.0 * rng.standard_cauchy(n) + 60.0, 0.0, 150.0),
    "two-valued": lambda rng, n: rng.integers(0, 2, n) * 1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [16, 40, 80, 160])
@pytest.mark.parametrize("kind", KINDS)
def test_approximation_agrees_with_integer_counts_down_to_1e_30(n: int, kind: str) -> None:
    levels = np.rint(KINDS[kind](np.random.default_rng(n), 2 * n)).astype(np.int64)
    expected = log_tails(levels, n)
    tested = 0
    for log10 in (-1, -2, -3, -5, -8, -12, -20, -30):
        observed = int(np.searchsorted(-expected, -log10 * math.log(10.0)))
        if observed == len(expected) or (found := approximate_tail(SubsetTail(levels, n, observed))) is None:
            continue
        assert found == pytest.approx(expected[observed], abs=ACCURACY), (log10, n)
        tested += 1
    assert tested >= (3 if n == 16 else 6)


CONTINUOUS: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "some tied": lambda rng, n: np.append(rng.normal(size=n - n // 4), rng.normal(size=n // 4).round(1)),
    "pairs": lambda rng, n: np.repeat(rng.normal(size=n // 2), 2),
    "heavy-tailed": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.5, n),
    "outlier": lambda rng, n: np.append(rng.normal(size=n - 1), -1e5),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [19, 22])
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_approximation_agrees_with_counts_of_scores_without_a_lattice(n: int, kind: str) -> None:
    for separation in (0.0, 0.5, 1.0):
        rng = np.random.default_rng(n)
        tail = SubsetTail.from_scores(*shuffle_towards(CONTINUOUS[kind](rng, 2 * n), separation, rng))
        count, found = count_by_halves(tail, 1 << 23), approximate_tail(tail)
        assert count is not None
        assert found is not None
        assert math.exp(found) == pytest.approx(count / tail.n_subsets, rel=ACCURACY)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [1.6, 1.8, 2.0])
def test_approximation_agrees_with_counts_in_far_tails_of_large_sets(shift: float) -> None:
    tested = 0
    for n in (28, 32, 40):
        rng = np.random.default_rng(n)
        tail = SubsetTail.from_scores(rng.normal(shift, 1.0, n), rng.normal(size=n))
        count, found = count_by_halves(tail, 1 << 23), approximate_tail(tail)
        if count is not None and found is not None and count > 100_000:
            assert found == pytest.approx(math.log(count) - math.log(tail.n_subsets), abs=ACCURACY)
            tested += 1
    assert tested


@pytest.mark.parametrize("fine", [2**0.5, 0.03, 8e-5, 1e-5 * 2**0.5, 1e-7, 3e-11])
def test_structure_at_any_scale_is_exact(fine: float) -> None:
    """Scores are multiples of one and of a fine step; counting both multiples separately is exact."""
    n, rng = 40, np.random.default_rng(0)
    coarse, steps = rng.integers(0, 2, 2 * n), rng.integers(0, 6, 2 * n)
    counts = np.zeros((n + 1, coarse.sum() + 1, steps.sum() + 1))
    counts[0, 0, 0] = 1.0
    for a, b in zip(coarse, steps, strict=True):
        counts[1:, a:, b:] += counts[:-1, : counts.shape[1] - a, : counts.shape[2] - b].copy()
    sums = np.add.outer(np.arange(counts.shape[1]), fine * np.arange(counts.shape[2]))
    observed = coarse[:n].sum() + fine * steps[:n].sum()
    expected = counts[n][sums >= observed - 1e-13].sum() / counts[n].sum()
    pooled = 0.9 / 1.01 * (coarse + fine * steps)
    assert permutation_test(pooled[:n], pooled[n:]).value == pytest.approx(expected, rel=1e-12)


def test_two_values_are_hypergeometric() -> None:
    x, y = np.repeat([1.0, 0.0], [1020, 980]), np.repeat([1.0, 0.0], [980, 1020])
    assert permutation_test(x, y).value == pytest.approx(stats.hypergeom.sf(1019, 4000, 2000, 2000), rel=1e-5)


@pytest.mark.parametrize(("n", "m"), [(300, 2), (2, 300), (5, 200), (3, 900), (4, 250), (6, 90)])
def test_a_few_against_many_are_counted(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    drawn = rng.choice(2 * (n + m), n + m, replace=False)
    x, y = drawn[:n], drawn[n:]
    small, tails = min(x, y, key=len), log_tails(drawn, min(n, m))
    upper = np.append(np.exp(tails), 0.0)
    expected = upper[small.sum()] if n < m else 1.0 - upper[small.sum() + 1]
    tenths = drawn.astype(np.float64) * 0.1
    found = permutation_test(tenths[:n], tenths[n:])
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert permutation_test(rng.normal(size=n), rng.normal(size=m)).route in ("enumeration", "counting")


def test_perfect_separation_is_one_partition_and_may_underflow() -> None:
    for n in (12, 25, 60, 350, 600):
        x, y = np.abs(np.random.default_rng(n).normal(size=(2, n)))
        found = permutation_test(x + 1.0, -y - 1.0)
        assert found.log10 == pytest.approx(-log_binomial(2 * n, n) / math.log(10.0), rel=1e-12)
    assert found.value == 0.0


def test_equal_scores_have_p_one_and_opposite_tails_add_up() -> None:
    assert permutation_test(np.full(40, 0.1), np.full(40, 0.1)).value == 1.0
    for n in (16, 40):
        rng = np.random.default_rng(1)
        x, y = rng.normal(1.0, 1.0, n), rng.normal(size=n)
        assert permutation_test(x, y).value + permutation_test(y, x).value == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("n", [60, 500])
def test_scores_over_many_decades_have_a_p_value(n: int) -> None:
    rng = np.random.default_rng(0)
    x, y = shuffle_towards(10.0 ** rng.uniform(-12, 0, 2 * n), 2.0, rng)
    assert 0.0 < permutation_test(x, y).value < 0.01


def test_the_tail_falls_as_the_threshold_rises() -> None:
    rng = np.random.default_rng(3)
    tail = SubsetTail.from_scores(rng.normal(0.5, 1.0, 40), rng.normal(size=50))
    higher = [approximate_tail(replace(tail, observed=tail.observed + round(k / tail.unit))) for k in range(-4, 5)]
    assert None not in higher
    assert higher == sorted(higher, reverse=True)


@pytest.mark.slow
def test_forced_routes() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.5, 1.0, 16), rng.normal(size=16)
    exact = permutation_test(x, y, route="counting")
    assert permutation_test(x, y, route="saddle-point").value == pytest.approx(exact.value, rel=ACCURACY)
    with pytest.raises(UnknownNameError, match="did you mean 'counting'"):
        permutation_test(x, y, route="countng")  # type: ignore[arg-type]
    with pytest.raises(MeasurementError, match="150 v 150 scores"):
        permutation_test(*rng.normal(size=(2, 150)), route="counting")


@pytest.mark.slow
def test_reference_counts(reference: Path) -> None:
    for name, expected in json.loads((reference / "weat" / "expected.json").read_text()).items():
        with np.load(reference / "weat" / f"{name}.npz") as case:
            tail = SubsetTail.from_scores(case["s_X"], case["s_Y"])
            p = permutation_test(case["s_X"], case["s_Y"])
        if len(tail.levels) <= 32 or name == "t25_a25_d050":
            assert count_by_halves(tail, 1 << 26) == expected["exact"]["count_ge"], name
        assert p.value == pytest.approx(expected["exact"]["p_ge"], rel=ACCURACY), name
