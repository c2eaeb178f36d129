"""Test that sums which are equal except for rounding are ties, whatever the algorithm."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.stats.permutation import permutation_test
from biassay.stats.subset_sums import SubsetTail, count_by_enumeration, count_by_halves, count_by_middle

ROOT = math.sqrt(2.0)


def sums_of(whole: NDArray[np.int64], roots: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], ...]:
    """All subsets' sums of whole + roots sqrt(2), both parts as integers, the first ``size`` of all first."""
    chosen = np.array(list(itertools.combinations(range(len(whole)), size)))
    return whole[chosen].sum(axis=1), roots[chosen].sum(axis=1)


def rounded_scores(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int, NDArray[np.float64], float]:
    """Small multiples of one and of sqrt(2), each known to seven digits; some are equal, and many of their sums."""
    rng = np.random.default_rng(seed)
    n, m = (int(size) for size in rng.integers(1, 8, 2))
    whole, roots = rng.integers(0, 4, (2, n + m))
    whole[0], roots[0], whole[-1], roots[-1] = 0, 3, 3, 0
    scores = 10.0 ** float(rng.choice([-17, 0, 6])) * (whole + roots * ROOT)
    noise = 6e-8 * float(scores.max())
    return whole, roots, n, scores + rng.uniform(-noise, noise, n + m), noise


@pytest.mark.parametrize("seed", range(60))
def test_every_count_takes_equal_sums_for_equal(seed: int) -> None:
    whole, roots, n, scores, noise = rounded_scores(seed)
    a, b = sums_of(whole, roots, n)
    expected = int(np.count_nonzero(((a == a[0]) & (b == b[0])) | (a + b * ROOT > a[0] + b[0] * ROOT + 1e-9)))
    tail = SubsetTail.from_scores(scores[:n], scores[n:], noise)
    assert count_by_enumeration(tail) == count_by_halves(tail, 1 << 20) == count_by_middle(tail) == expected


@pytest.mark.parametrize("seed", range(60))
def test_sums_equally_far_on_the_other_side_are_ties(seed: int) -> None:
    whole, roots, n, scores, noise = rounded_scores(seed)
    a, b = sums_of(whole, roots, n)
    # From the mean sum, times the number of scores: integers again.
    a, b = (len(whole) * part - n * of.sum() for part, of in ((a, whole), (b, roots)))
    far = np.abs(a + b * ROOT)
    tied = ((a == a[0]) & (b == b[0])) | ((a == -a[0]) & (b == -b[0]))
    expected = np.mean(tied | (far > far[0] + 1e-9))
    found = permutation_test(scores[:n], scores[n:], noise=noise, alternative="two-sided")
    assert found.value == pytest.approx(expected, rel=1e-12)


def test_a_tie_of_four_scores_survives_their_largest_rounding() -> None:
    """1 + 0.3 and 0.9 + 0.4 are one sum, beside two sums of six that are higher."""
    noise = 1e-7
    x, y = np.array([0.9, 0.4]) + noise, np.array([1.0, 0.3]) - noise
    assert permutation_test(x, y, noise=noise).value == pytest.approx(4 / 6)


@pytest.mark.parametrize("seed", range(40))
def test_scores_of_one_value_stay_together_beside_a_near_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = 1e-7
    values = np.array([0.1, 0.1 + rng.uniform(14.0, 18.0) * noise, 0.33, 0.5, 0.9])
    which = rng.permutation(np.repeat(np.arange(5), 4))
    scores = values[which] + rng.uniform(-noise, noise, 20)
    levels = SubsetTail.from_scores(scores[:10], scores[10:], noise).levels
    assert all(len(set(levels[which == value].tolist())) == 1 for value in range(5))


def test_a_tie_of_two_among_five_thousand() -> None:
    """The more scores, the fewer digits each has left in an exact sum."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b, c, d = rng.normal(size=4)
        others = rng.normal(size=4996)
        scores = np.concatenate([[a + c, b + d, a + d, b + c], others])
        for x, y in (([0, 1], [2, 3]), ([2, 3], [0, 1])):
            tail = SubsetTail.from_scores(scores[x], np.concatenate([scores[y], others]))
            assert tail.levels[2:4].sum() >= tail.lowest_tie


@pytest.mark.parametrize("digits", [2, 3, 4])
@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_scores_of_a_few_digits_lie_on_a_lattice(digits: int, noise: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        steps = np.append(rng.choice(np.arange(2, 10**digits), 20, replace=False), [0, 1])
        scores = 0.37 + steps / 10.0**digits + rng.uniform(-noise, noise, 22)
        tail = SubsetTail.from_scores(scores[:11], scores[11:], noise)
        assert tail.lattice
        assert tail.unit == pytest.approx(10.0**-digits, rel=1e-5)


@pytest.mark.parametrize("exponent", [-1040, -700, 400, 900])
def test_scores_of_any_size_have_their_p_value(exponent: int) -> None:
    x, y = np.random.default_rng(1).integers(-(2**20), 2**20, (2, 30)) / 2.0**10
    moved = permutation_test(np.ldexp(x, exponent), np.ldexp(y, exponent), alternative="two-sided")
    assert moved.value == pytest.approx(permutation_test(x, y, alternative="two-sided").value, rel=1e-9)


@pytest.mark.parametrize("seed", [2, 3, 11])
def test_close_sums_are_not_ties_where_sums_are_dense(seed: int) -> None:
    """Scores are known to 1e-5 only, and some of the 48,620 sums are closer than that."""
    x, y = np.random.default_rng(seed).normal(size=(2, 9))
    exact = [Fraction(score) for score in (*x, *y)]
    expected = sum(sum(chosen) >= sum(exact[:9]) for chosen in itertools.combinations(exact, 9))
    tail = SubsetTail.from_scores(x, y, noise=1e-5)
    assert count_by_enumeration(tail) == count_by_halves(tail, 1 << 20) == expected
