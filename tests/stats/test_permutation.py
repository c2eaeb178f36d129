"""The three protocols, one-sided and two-sided."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biassay.errors import UnknownNameError, UsageError
from biassay.stats.permutation import permutation_test, sign_flip_p_value


def samples(n: int, m: int, shift: float, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) + shift, rng.normal(size=m)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 7), (7, 4)])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_exact_agrees_with_scipy(n: int, m: int, alternative: str) -> None:
    """SciPy doubles the smaller tail for two-sided tests, so it is asked about the absolute difference instead."""
    x, y = samples(n, m, 0.7, seed=n)

    def statistic(a: NDArray[np.float64], b: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        difference = a.mean(axis=axis) - b.mean(axis=axis)
        return np.asarray(np.abs(difference) if alternative == "two-sided" else difference)

    expected = stats.permutation_test(
        (x, y), statistic, vectorized=True, alternative="greater", n_resamples=10_000, permutation_type="independent"
    )
    found = permutation_test(x, y, alternative=alternative)  # type: ignore[arg-type]
    assert found.value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.route == "enumeration"


@given(x=st.lists(st.integers(-9, 9), min_size=2, max_size=5), y=st.lists(st.integers(-9, 9), min_size=2, max_size=5))
def test_two_sided_counts_both_tails_ties_included(x: list[int], y: list[int]) -> None:
    pooled, n = [*x, *y], len(x)
    mean = sum(pooled) * n
    observed = abs(sum(x) * len(pooled) - mean)
    splits = list(itertools.combinations(pooled, n))
    expected = sum(abs(sum(chosen) * len(pooled) - mean) >= observed for chosen in splits) / len(splits)
    if len(set(pooled)) > 1:
        found = permutation_test(np.array(x, float), np.array(y, float), alternative="two-sided")
        assert found.value == pytest.approx(expected, rel=1e-12)


def test_may2019_enumerates_up_to_100_000_partitions_and_samples_beyond() -> None:
    x, y = samples(9, 9, 0.5)
    assert permutation_test(x, y, protocol="may2019").route == "enumeration"  # 48,620
    x, y = samples(10, 10, 0.5)
    assert permutation_test(x, y, protocol="may2019", rng=0).route == "sampling"  # 184,756


@pytest.mark.parametrize("seed", range(3))
def test_sampled_p_is_within_five_standard_errors_of_the_exact_one(seed: int) -> None:
    x, y = samples(12, 12, 0.4, seed)
    exact = permutation_test(x, y)
    drawn = permutation_test(x, y, protocol="may2019", rng=seed)
    assert abs(drawn.value - exact.value) < 5.0 * math.sqrt(exact.value * (1 - exact.value) / 99_999) + 1e-5


def test_sampled_p_has_the_published_floor_and_the_exact_one_has_not() -> None:
    x, y = samples(25, 25, 6.0)
    assert permutation_test(x, y, protocol="may2019", rng=0).value == 1e-5
    assert permutation_test(x, y).value < 1e-13


def test_sampling_draws_every_subset_alike() -> None:
    """Ten million p-values would be needed to see a small bias; frequencies of single scores show a large one."""
    x, y = np.arange(10.0), np.arange(10.0, 20.0)
    low = permutation_test(y, x, protocol="may2019", rng=1)
    high = permutation_test(x, y, protocol="may2019", rng=1)
    assert low.value < 5e-5  # one partition in 184,756
    assert high.value == 1.0


def test_normal_fit_agrees_with_its_closed_form() -> None:
    """With true moments the fit is a normal tail of mean 0 and variance n m S^2 / (n + m) for the sum over X."""
    x, y = samples(20, 20, 0.6)
    pooled = np.concatenate([x, y])
    z = (x.sum() - 20 * pooled.mean()) / math.sqrt(20 * 20 * pooled.var(ddof=1) / 40)
    found = permutation_test(x, y, protocol="caliskan2017", rng=0)
    assert found.value == pytest.approx(stats.norm.sf(z), rel=0.05)
    assert permutation_test(x, y, protocol="caliskan2017", alternative="two-sided", rng=0).value == pytest.approx(
        2.0 * found.value, rel=1e-2
    )


def test_may2019_refuses_unequal_sizes() -> None:
    with pytest.raises(UsageError, match="got 3 and 4"):
        permutation_test(np.arange(3.0), np.arange(4.0), protocol="may2019")


def test_wrong_choices_name_the_right_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'may2019'"):
        permutation_test(np.arange(3.0), np.arange(3.0), protocol="may2018")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="greater, two-sided"):
        permutation_test(np.arange(3.0), np.arange(3.0), alternative="less")  # type: ignore[arg-type]


def test_negative_effect_has_a_large_one_sided_and_an_honest_two_sided_p() -> None:
    x, y = samples(8, 8, -2.0)
    assert permutation_test(x, y).value > 0.95
    assert permutation_test(x, y, alternative="two-sided").value < 0.05


@pytest.mark.parametrize("n", [2, 4, 9])
def test_sign_flips_agree_with_scipy(n: int) -> None:
    """SciPy's paired permutation of (x, 0) flips signs; zeros change nothing."""
    x = np.random.default_rng(n).normal(0.4, 1.0, n)
    expected = stats.permutation_test(
        (x, np.zeros(n)), lambda a, b: abs((a - b).sum()), permutation_type="samples", alternative="greater"
    )
    assert sign_flip_p_value(x) == pytest.approx(expected.pvalue, abs=1e-12)
    assert sign_flip_p_value(np.r_[x, np.zeros(100)]) == pytest.approx(expected.pvalue, abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.8])
def test_sign_flips_of_many_values_are_close_to_sampled_ones(shift: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(shift, 1.0, 40)
    sums = np.abs(rng.choice([-1.0, 1.0], size=(200_000, 40)) @ x)
    assert sign_flip_p_value(x) == pytest.approx((sums >= abs(x.sum())).mean(), abs=0.005)
