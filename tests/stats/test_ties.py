"""Sums that are equal but for rounding are ties, on every route; numbers known without rounding are the witness."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.stats.counting import count_by_halves, count_by_middle
from biassay.stats.enumeration import count_by_enumeration
from biassay.stats.lattice import lattice_step
from biassay.stats.permutation import permutation_test
from biassay.stats.rounded_counting import bounds_by_rounding
from biassay.stats.subsets import SubsetTail

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
    tail = SubsetTail.of(scores[:n], scores[n:], noise)
    assert count_by_enumeration(tail) == count_by_halves(tail, 1 << 20) == count_by_middle(tail) == expected
    low, high = (math.exp(bound) * tail.n_partitions for bound in bounds_by_rounding(tail, 1 << 12))
    assert low * (1.0 - 1e-9) <= expected <= high * (1.0 + 1e-9)


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
    levels = SubsetTail.of(scores[:10], scores[10:], noise).levels
    assert all(len(set(levels[which == value].tolist())) == 1 for value in range(5))


def test_a_tie_of_two_among_five_thousand() -> None:
    """The more scores, the fewer digits each has left in an exact sum."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b, c, d = rng.normal(size=4)
        others = rng.normal(size=4996)
        scores = np.concatenate([[a + c, b + d, a + d, b + c], others])
        for x, y in (([0, 1], [2, 3]), ([2, 3], [0, 1])):
            tail = SubsetTail.of(scores[x], np.concatenate([scores[y], others]))
            assert tail.levels[2:4].sum() >= tail.level


@pytest.mark.parametrize("digits", [2, 3, 4])
@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_scores_of_a_few_digits_lie_on_a_lattice(digits: int, noise: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        steps = np.append(rng.choice(np.arange(2, 10**digits), 20, replace=False), [0, 1])
        scores = 0.37 + steps / 10.0**digits + rng.uniform(-noise, noise, 22)
        step = lattice_step(scores, max(noise, 4e-15))
        assert step == pytest.approx(10.0**-digits, rel=1e-5)


@pytest.mark.parametrize("exponent", [-1040, -700, 400, 900])
def test_scores_of_any_size_have_their_p_value(exponent: int) -> None:
    x, y = np.random.default_rng(1).integers(-(2**20), 2**20, (2, 30)) / 2.0**10
    moved = permutation_test(np.ldexp(x, exponent), np.ldexp(y, exponent), alternative="two-sided")
    assert moved.value == pytest.approx(permutation_test(x, y, alternative="two-sided").value, rel=1e-9)
