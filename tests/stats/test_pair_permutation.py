"""p-values against every other group: loops over pairs, all permutations, and their limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from biassay.stats.detection import pair_scores
from biassay.stats.name_permutation import NamePermutations, PairPermutations

Floats = NDArray[np.float64]
Groups = NDArray[np.intp]
CATEGORIES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def groups_of(sizes: tuple[int, ...]) -> Groups:
    return np.repeat(np.arange(len(sizes)), sizes)


def score(values: Floats, own: NDArray[np.bool_]) -> float:
    return float(pair_scores(values[None], [(np.flatnonzero(own), np.flatnonzero(~own))])[0, 0])


def hits_of_pair(values: Floats, groups: Groups, pair: tuple[int, int], seed: int, permutations: int) -> list[bool]:
    """Whether every permutation made from a seed gives the first of two groups as high a score as it has."""
    root = int(np.random.default_rng(seed).integers(2**63))
    both = np.isin(groups, pair)
    given, own = values[both], groups[both] == pair[0]
    orders = np.tile(np.arange(len(given), dtype=np.uint16), (permutations, 1))
    np.random.default_rng([root, *sorted(pair)]).permuted(orders, axis=1, out=orders)
    seen = score(given, own)
    return [score(given, own[order]) >= seen - 1e-9 for order in orders]


def exact_of_pair(values: Floats, groups: Groups, pair: tuple[int, int]) -> float:
    """The share of all ways to choose the first group's names out of both that give it as high a score."""
    both = np.isin(groups, pair)
    given, own = values[both], groups[both] == pair[0]
    chosen = [np.isin(np.arange(len(given)), part) for part in itertools.combinations(range(len(given)), own.sum())]
    return float(np.mean([score(given, part) >= score(given, own) - 1e-9 for part in chosen]))


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), (3, 6, 2, 5)])
def test_p_values_are_the_largest_of_a_loop_over_pairs_and_permutations(sizes: tuple[int, ...]) -> None:
    groups, permutations, targets = groups_of(sizes), 60, (0, 2)
    cosines = np.random.default_rng(5).normal(0.2, 0.1, (8, 16))
    cosines[:3, groups == 0] += 0.2
    cosines[3:5, groups == 2] += 0.2
    found = PairPermutations(groups, 4, targets, permutations, np.random.default_rng(8), stop=None).p_values(cosines)
    assert found.shape == (8, 2)
    for place, target in enumerate(targets):
        for word, values in enumerate(cosines):
            pairs = [(target, other) for other in range(4) if other != target]
            counts = [sum(hits_of_pair(values, groups, pair, 8, permutations)) for pair in pairs]
            assert found[word, place] == (1 + max(counts)) / (1 + permutations)


def test_p_values_of_many_permutations_are_the_exact_ones() -> None:
    groups, permutations = groups_of((3, 4, 3)), 20_000
    cosines = np.random.default_rng(3).normal(0.0, 0.1, (6, 10))
    cosines[:4, groups == 1] += 0.15
    found = PairPermutations(groups, 3, [1], permutations, np.random.default_rng(1), stop=None).p_values(cosines)
    for word, values in enumerate(cosines):
        exact = max(exact_of_pair(values, groups, (1, other)) for other in (0, 2))
        error = 4 * np.sqrt(exact * (1 - exact) / permutations) + 1 / permutations
        assert found[word, 0] == pytest.approx(exact, abs=error)


def test_of_two_groups_p_values_are_uniform_where_there_is_nothing() -> None:
    cosines = np.random.default_rng(11).normal(size=(2000, 14))
    found = PairPermutations(groups_of((7, 7)), 2, [0], 499, np.random.default_rng(0)).p_values(cosines)
    assert stats.kstest(found[:, 0], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_that_another_group_stands_apart_proves_nothing(alpha: float) -> None:
    """Three equal groups and one far from all: each of the three is closer than the fourth, and none than every one."""
    groups, rng = groups_of((6,) * 4), np.random.default_rng(7)
    cosines = rng.normal(size=(1500, 24))
    cosines[:, groups == 3] -= 5.0
    every = PairPermutations(groups, 4, [0, 1], 499, rng).p_values(cosines)
    error = 4 * np.sqrt(alpha * (1 - alpha) / 1500)
    assert (every <= alpha).mean(axis=0).max() <= alpha + error
    columns = [[(np.flatnonzero(groups == 0), np.flatnonzero(groups == other))] for other in (1, 2, 3)]
    largest = np.max([pair_scores(cosines, pair) for pair in columns], axis=0)
    against_any = NamePermutations(groups, CATEGORIES, [0], 499, rng).p_values(cosines, largest).associated
    assert (against_any <= 0.05).mean() > 0.3  # which is why "every" is there


def test_with_one_equal_group_p_values_are_uniform_whatever_the_others_are() -> None:
    """Against groups far below it is never the largest: the test errs as often as it says, and not less."""
    groups, rng = groups_of((7,) * 4), np.random.default_rng(13)
    cosines = rng.normal(size=(2000, 28))
    cosines[:, groups >= 2] -= 20.0
    found = PairPermutations(groups, 4, [0], 499, rng).p_values(cosines)
    assert stats.kstest(found[:, 0], "uniform").pvalue > 1e-3


def test_a_group_closer_than_every_other_is_found() -> None:
    groups, rng = groups_of((8,) * 4), np.random.default_rng(2)
    cosines = rng.normal(size=(300, 32))
    cosines[:, groups == 1] += 4.0
    found = PairPermutations(groups, 4, [1, 0], 999, rng).p_values(cosines)
    assert (found[:, 0] <= 0.002).mean() > 0.99
    assert (found[:, 1] > 0.5).all()


def test_stopping_early_changes_small_p_values_by_nothing_and_large_ones_by_little() -> None:
    groups = groups_of((6,) * 4)
    cosines = np.random.default_rng(4).normal(size=(500, 24))
    cosines[:80, groups == 0] += 2.5
    full, early = (
        PairPermutations(groups, 4, [0], 2999, np.random.default_rng(6), stop=stop).p_values(cosines)
        for stop in (None, 50)
    )
    small = full < 49 / 3000
    assert small.sum() > 20
    np.testing.assert_array_equal(full[small], early[small])
    assert np.abs(np.log(early[~small] / full[~small])).max() < 5 / np.sqrt(50)
