"""p-values by permuting names: loops and least squares in the test, uniformity, and early stopping."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.detection import pair_scores
from biassay.stats.name_permutation import NamePermutations

Floats = NDArray[np.float64]
CATEGORIES = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])


def groups_of(sizes: tuple[int, ...]) -> NDArray[np.intp]:
    return np.repeat(np.arange(len(sizes)), sizes)


def largest_of(cosines: Floats, groups: NDArray[np.intp], target: int) -> Floats:
    own = np.flatnonzero(groups == target)
    pairs = [(own, np.flatnonzero(groups == g)) for g in range(groups.max() + 1) if g != target]
    return np.asarray(pair_scores(cosines, pairs).max(axis=1))


def excess_of(values: Floats, groups: NDArray[np.intp], categories: NDArray[np.intp], target: int) -> float:
    """t of the target's own term in a model that has a term for every category, by least squares."""
    codes = categories[groups]
    columns = [np.ones(len(groups))]
    columns += [codes[:, c] == v for c in range(codes.shape[1]) for v in range(1, codes[:, c].max() + 1)]
    design = np.column_stack([*columns, groups == target]).astype(float)
    solution, _, _, _ = np.linalg.lstsq(design, values, rcond=None)
    left = values - design @ solution
    variance = left @ left / (len(values) - design.shape[1])
    return float(solution[-1] / np.sqrt(variance * np.linalg.inv(design.T @ design)[-1, -1]))


def orders_of(seed: int, names: int, permutations: int) -> NDArray[np.int64]:
    """The permutations that the class makes from a seed."""
    orders = np.tile(np.arange(names), (permutations, 1))
    return np.asarray(np.random.default_rng(seed).permuted(orders.astype(np.uint16), axis=1), dtype=np.int64)


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4, 4, 4), (3, 5, 4, 2, 6, 4)])
def test_both_p_values_are_those_of_a_loop_over_words_and_permutations(sizes: tuple[int, ...]) -> None:
    groups, permutations, targets = groups_of(sizes), 60, (0, 3)
    cosines = np.random.default_rng(5).normal(0.2, 0.1, (9, 24))
    cosines[:3, groups == 0] += 0.15
    largest = np.stack([largest_of(cosines, groups, t) for t in targets], axis=1)
    found = NamePermutations(groups, CATEGORIES, targets, permutations, np.random.default_rng(8), stop=None).p_values(
        cosines, largest
    )
    orders = orders_of(8, 24, permutations)
    basis = np.column_stack(
        [np.ones(24), *(CATEGORIES[groups, 0] == v for v in (1, 2)), CATEGORIES[groups, 1] == 1]
    ).astype(float)
    for place, target in enumerate(targets):
        for word, values in enumerate(cosines):
            permuted = [largest_of(values[None], groups[order], target)[0] for order in orders]
            count = sum(value >= largest[word, place] for value in permuted)
            assert found.associated[word, place] == (1 + count) / (1 + permutations)
            fitted = basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
            seen = excess_of(values, groups, CATEGORIES, target)
            # Freedman and Lane: residuals of the sum of categories, permuted anew. The class moves the model instead.
            moved = [excess_of(_put(values - fitted, order), groups, CATEGORIES, target) for order in orders]
            assert found.excess[word, place] == (1 + sum(value >= seen for value in moved)) / (1 + permutations)


def _put(values: Floats, order: NDArray[np.int64]) -> Floats:
    """Value i goes to the name whose place in the model it takes."""
    moved = np.empty_like(values)
    moved[order] = values
    return moved


def test_p_values_of_all_permutations_are_the_exact_ones() -> None:
    """Two by two groups of two names: 40,320 orders, more than are enumerated; a sample must agree with all."""
    groups, categories = groups_of((2, 2, 2, 2)), np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    cosines = np.random.default_rng(3).normal(0.0, 0.1, (4, 8))
    largest = largest_of(cosines, groups, 0)
    found = NamePermutations(groups, categories, [0], 40_000, np.random.default_rng(1), stop=None).p_values(
        cosines, largest[:, None]
    )
    orders = np.array(list(itertools.permutations(range(8))))
    for word, values in enumerate(cosines):
        permuted = values[orders]
        exact = np.mean(largest_of(permuted, groups, 0) >= largest[word] - 1e-9)
        error = 4 * np.sqrt(exact * (1 - exact) / 40_000) + 1 / 40_000
        assert found.associated[word, 0] == pytest.approx(exact, abs=error)


def test_p_values_are_uniform_where_there_is_nothing() -> None:
    """Every word its own names: so words are independent, and their p-values are draws of a uniform variable."""
    groups = groups_of((5,) * 6)
    rng = np.random.default_rng(11)
    cosines = rng.normal(size=(1500, 30))
    largest = largest_of(cosines, groups, 2)[:, None]
    found = NamePermutations(groups, CATEGORIES, [2], 499, rng).p_values(cosines, largest)
    assert stats.kstest(found.associated[:, 0], "uniform").pvalue > 1e-3
    assert stats.kstest(found.excess[:, 0], "uniform").pvalue > 1e-3


def test_categories_alone_are_no_excess_and_an_own_share_is() -> None:
    groups = groups_of((6,) * 6)
    rng = np.random.default_rng(2)
    noise = rng.normal(0.0, 0.05, (600, 36))
    race, gender = CATEGORIES[groups].T
    sums = noise + 0.2 * (race == 0) + 0.2 * (gender == 1)
    own = noise + 0.2 * (groups == 1)
    tests = NamePermutations(groups, CATEGORIES, [1], 999, rng)
    plain, excess = (tests.p_values(c, largest_of(c, groups, 1)[:, None]) for c in (sums, own))
    assert np.median(plain.associated) < 0.01  # the sum does tell this group from the one that shares nothing with it
    assert np.mean(plain.excess <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(excess.excess <= 0.05) > 0.95


NOISE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape),
    "skewed": lambda rng, shape: rng.lognormal(size=shape),
    # Medians over the words of GloVe for the six groups of names.
    "of other spreads": lambda rng, shape: (
        rng.normal(size=shape) * np.repeat([1.02, 1.03, 0.74, 0.75, 1.32, 0.85], shape[1] // 6)
    ),
}


@pytest.mark.parametrize("target", [1, 4])
@pytest.mark.parametrize("kind", list(NOISE))
def test_the_excess_keeps_its_level_where_categories_add_up(kind: str, target: int) -> None:
    groups, rng = groups_of((12,) * 6), np.random.default_rng(13)
    race, gender = CATEGORIES[groups].T
    cosines = NOISE[kind](rng, (4000, 72)) + 2.0 * rng.normal(size=(4000, 3))[:, race]
    cosines += 2.0 * rng.normal(size=(4000, 2))[:, gender]
    largest = largest_of(cosines, groups, target)[:, None]
    p = NamePermutations(groups, CATEGORIES, [target], 999, rng).p_values(cosines, largest).excess
    assert 0.03 <= np.mean(p <= 0.05) <= 0.065
    assert np.mean(p <= 0.01) <= (0.02 if kind == "of other spreads" else 0.015)


@pytest.mark.slow
def test_early_stopping_is_the_share_at_the_last_success_waited_for() -> None:
    """Besag and Clifford: permutations are looked at in order until the h-th that does as well."""
    groups, h = groups_of((4,) * 6), 5
    cosines = np.random.default_rng(9).normal(size=(6, 24))
    largest = largest_of(cosines, groups, 1)[:, None]
    found = NamePermutations(groups, CATEGORIES, [1], 700, np.random.default_rng(12), stop=h).p_values(cosines, largest)
    for word, values in enumerate(cosines):
        hits = [
            number
            for number, order in enumerate(orders_of(12, 24, 700), start=1)
            if largest_of(values[None], groups[order], 1)[0] >= largest[word, 0]
        ]
        expected = h / hits[h - 1] if len(hits) >= h else (1 + len(hits)) / 701
        assert found.associated[word, 0] == pytest.approx(expected, rel=1e-12)


def test_a_word_without_a_score_has_no_p_value() -> None:
    groups = groups_of((3,) * 6)
    cosines = np.random.default_rng(1).normal(size=(3, 18))
    cosines[1] = 0.25
    largest = np.where(np.arange(3) == 1, np.nan, largest_of(cosines, groups, 0))[:, None]
    found = NamePermutations(groups, CATEGORIES, [0], 50, np.random.default_rng(0)).p_values(cosines, largest)
    assert np.isnan(found.associated[:, 0]).tolist() == [False, True, False]
    assert np.isnan(found.excess[:, 0]).tolist() == [False, True, False]


@pytest.mark.extras
@pytest.mark.parametrize("stop", [None, 20])
def test_tensors_give_the_p_values_of_arrays(stop: int | None) -> None:
    torch = pytest.importorskip("torch")
    groups, targets = groups_of((4, 5, 6, 4, 3, 4)), (0, 3)
    cosines = np.random.default_rng(2).normal(0.2, 0.1, (700, len(groups)))
    cosines[:100, groups == 0] += 0.1
    cosines[5] = 0.25  # the same with every name
    largest = np.stack([largest_of(cosines, groups, t) for t in targets], axis=1)
    largest[5] = np.nan
    found = [
        NamePermutations(
            groups, CATEGORIES, targets, 600, np.random.default_rng(8), stop=stop, to_device=to_device
        ).p_values(cosines, largest)
        for to_device in (None, torch.asarray)
    ]
    for name in ("associated", "excess"):
        one, other = (getattr(tails, name) for tails in found)
        assert np.isnan(one[5]).all()
        np.testing.assert_array_equal(one, other)


def test_no_permutation_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="number of permutations must be at least 1"):
        NamePermutations(groups_of((2,) * 6), CATEGORIES, [0], 0, np.random.default_rng(0))
