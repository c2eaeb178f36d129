"""Which of two profiles agrees better with people: scipy's taus, a jackknife in loops, and coverage by simulation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from biassay.stats.kendall import tau_difference

Floats = NDArray[np.float64]
X = float("nan")
Three = tuple[Floats, Floats, Floats]


def ratings(groups: int, pairs: int, seed: int, lost: float = 0.0) -> Three:
    """Two models, the second closer to people, on a coarse scale that makes ties; a share of cells is lost."""
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 11, (groups, pairs)).astype(float)
    first, second = (np.rint(human + rng.normal(0, noise, human.shape)) for noise in (8.0, 4.0))
    for side in (first, second, human):
        side[rng.random(side.shape) < lost] = X
    return first, second, human


def scipys(x: Floats, y: Floats) -> float:
    return float(stats.kendalltau(x.ravel(), y.ravel()).statistic)


def common(sides: Three) -> Three:
    """Flattened to the cells that all three have."""
    kept = ~np.isnan(np.stack(sides)).any(axis=0)
    first, second, human = (side[kept] for side in sides)
    return first, second, human


def by_loops(sides: Three, clusters: list[int], confidence: float) -> tuple[float, float]:
    """Leave out the groups of one cluster after the other, for both models at once."""
    names = sorted({c for c, *own in zip(clusters, *sides, strict=True) if not np.isnan(sum(own)).all()})

    def difference(left_out: int | None) -> float:
        kept = [g for g, cluster in enumerate(clusters) if cluster != left_out]
        a, b, people = common((sides[0][kept], sides[1][kept], sides[2][kept]))
        return scipys(b, people) - scipys(a, people)

    without, n = np.array([difference(name) for name in names]), len(names)
    there = [c for c, *own in zip(clusters, *sides, strict=True) if not np.isnan(sum(own)).all()]
    effective = len(there) ** 2 / sum(there.count(name) ** 2 for name in names)
    half = np.sqrt((n - 1) * without.var()) * stats.t.ppf((1 + confidence) / 2, effective - 1)
    low, high = np.clip([difference(None) - half, difference(None) + half], -2.0, 2.0)
    return float(low), float(high)


@pytest.mark.parametrize("lost", [0.0, 0.15])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_taus_are_scipys_over_the_cells_that_all_have(seed: int, lost: float) -> None:
    sides = ratings(7, 6, seed, lost)
    found = tau_difference(*sides)
    first, second, human = common(sides)
    assert found.first == pytest.approx(scipys(first, human), abs=1e-12)
    assert found.second == pytest.approx(scipys(second, human), abs=1e-12)
    assert found.between == pytest.approx(scipys(first, second), abs=1e-12)
    assert found.difference == pytest.approx(scipys(second, human) - scipys(first, human), abs=1e-12)
    assert (found.num_groups, found.num_cells) == (7, len(human))
    assert (found.num_cells < 42) is (lost > 0)


@pytest.mark.parametrize("domains", [None, [0, 0, 1, 1, 1, 2], [7] * 6])
@pytest.mark.parametrize(("confidence", "lost", "seed"), [(0.95, 0.0, 3), (0.8, 0.1, 4), (0.5, 0.3, 5)])
def test_the_interval_is_that_of_domains_left_out_in_loops(
    confidence: float, lost: float, seed: int, domains: list[int] | None
) -> None:
    """Without domains, or with one only, groups are left out."""
    sides = ratings(6, 5, seed, lost)
    found = tau_difference(*sides, domains=domains, confidence=confidence)
    clusters = domains if domains is not None and len(set(domains)) > 1 else list(range(6))
    assert (found.low, found.high) == pytest.approx(by_loops(sides, clusters, confidence), abs=1e-12)


def test_models_that_differ_by_the_same_in_all_groups_get_a_bound() -> None:
    """The variance is 0: what is known is that 24 clusters agree, compared two by two."""
    human = np.arange(96.0).reshape(24, 4)
    found = tau_difference(-human, human, human)
    assert found.difference == pytest.approx(2.0)
    assert (found.low, found.high) == pytest.approx((-2.0 + 4.0 * 0.025 ** (1 / 12), 2.0))


def test_without_common_cells_nothing_is_defined() -> None:
    first = np.array([[1.0, X], [X, X]])
    second = np.array([[X, 2.0], [1.0, X]])
    human = np.array([[1.0, 2.0], [3.0, 4.0]])
    empty = np.empty((0, 3))
    for sides in ((first, second, human), (human, human, np.full_like(human, X)), (empty, empty, empty)):
        found = tau_difference(*sides)
        assert (found.num_groups, found.num_cells) == (0, 0)
        assert all(math.isnan(value) for value in dataclasses.astuple(found)[:6])


@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_the_same_model_twice_differs_by_nothing(lost: float) -> None:
    first, _, human = ratings(6, 5, 13, lost)
    found = tau_difference(first, first.copy(), human)
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0)
    assert found.between == 1.0


def test_the_interval_holds_the_difference_of_all_groups() -> None:
    """95% intervals of 20 groups in 150 simulations; 95% of these are 142, with a standard deviation of 2.7."""
    rng = np.random.default_rng(16)

    def drawn(groups: int) -> Three:
        centre = rng.normal(size=(groups, 1))  # groups differ as a whole, as they do in people's eyes
        human = centre + rng.normal(size=(groups, 6))
        return human + rng.normal(0, 2.0, human.shape), human + rng.normal(0, 1.0, human.shape), human

    first, second, human = drawn(4000)
    truth = scipys(second, human) - scipys(first, human)
    found = [tau_difference(*drawn(20)) for _ in range(150)]
    held = sum(one.low <= truth <= one.high for one in found)
    assert 134 <= held <= 150
    assert np.mean([one.difference for one in found]) == pytest.approx(truth, abs=0.02)
