"""The joint test of many specifications: brute force, its level, and bad input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from biassay.stats.association import effect_size
from biassay.stats.specification_curve import joint_test


def by_loops(scores: np.ndarray, n: int) -> tuple[float, float]:
    words = scores.shape[1]

    def median(x: tuple[int, ...]) -> float:
        y = [i for i in range(words) if i not in x]
        return float(np.median([effect_size(row[list(x)], row[y]) for row in scores]))

    observed = median(tuple(range(n)))
    found = [abs(median(x)) >= abs(observed) - 1e-9 for x in combinations(range(words), n)]
    return observed, float(np.mean(found))


@pytest.mark.parametrize(("n", "m", "specifications"), [(4, 4, 5), (3, 5, 2), (2, 2, 1)])
def test_all_relabellings_are_tried(n: int, m: int, specifications: int) -> None:
    scores = np.random.default_rng(n).normal(size=(specifications, n + m)) + np.array([1.0] * n + [0.0] * m)
    found = joint_test(scores, n)
    assert (found.median, found.p_value) == pytest.approx(by_loops(scores, n))
    assert found.exact


def test_large_sets_are_sampled_and_the_observed_split_counts() -> None:
    scores = np.random.default_rng(0).normal(size=(3, 50)) + np.array([9.0] * 25 + [0.0] * 25)
    found = joint_test(scores, 25, rng=1)
    assert (found.splits, found.exact, found.p_value) == (10_000, False, 1e-4)
    assert joint_test(scores, 25, rng=1).p_value == found.p_value


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_level_with_correlated_specifications(correlation: float) -> None:
    rng = np.random.default_rng(0)
    p = []
    for _ in range(400):
        shared, own = rng.normal(size=(1, 12)), rng.normal(size=(24, 12))
        p.append(joint_test(correlation**0.5 * shared + (1 - correlation) ** 0.5 * own, 6).p_value)
    assert np.mean(np.array(p) <= 0.05) <= 0.075
