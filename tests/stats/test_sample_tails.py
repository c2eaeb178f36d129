"""p-values of many samples at once against the exact routes, one sample at a time."""

import itertools
import math

import numpy as np
import pytest

from biassay.stats.permutation import permutation_test, sample_p_values


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (6, 4)])
def test_few_partitions_are_all_counted(n: int, m: int) -> None:
    scores = np.random.default_rng(n).normal(size=(30, n + m))
    for row, p in zip(scores, sample_p_values(scores, n), strict=True):
        sums = [row[list(chosen)].sum() for chosen in itertools.combinations(range(n + m), n)]
        assert p == pytest.approx(np.mean(np.array(sums) >= row[:n].sum() - 1e-12), abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "shift"), [(12, 12, 0.0), (12, 12, 1.0), (25, 25, 0.5), (25, 25, 1.5), (10, 14, 1.0)]
)
def test_many_partitions_come_within_some_per_cent_of_the_exact_tail(n: int, m: int, shift: float) -> None:
    scores = np.random.default_rng(n + m).normal(size=(40, n + m))
    scores[:, :n] += shift
    exact = np.array([permutation_test(row[:n], row[n:]).value for row in scores])
    found = sample_p_values(scores, n)
    common = exact > 100 / math.comb(n + m, n)  # in the last hundred splits the sum is no longer smooth
    assert common.sum() > 30
    assert np.abs(found / exact - 1.0)[common].max() < 0.1
    assert np.abs(np.log10(found / exact)).max() < 0.7


def test_the_highest_split_has_the_smallest_p_and_the_lowest_one() -> None:
    scores = np.arange(24.0)[None, ::-1]
    assert sample_p_values(scores, 12)[0] == pytest.approx(1 / math.comb(24, 12), rel=1e-9)
    assert sample_p_values(-scores, 12)[0] == pytest.approx(1.0, abs=1e-6)
