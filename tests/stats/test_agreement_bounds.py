"""Bounds for scores on which all or almost all units agree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from biassay.stats.agreement_bounds import agreement_bounds, share_bounds


@pytest.mark.parametrize("n", [1, 5, 6, 25])
def test_units_that_all_show_the_bias_give_the_exact_sign_test(n: int) -> None:
    bounds = agreement_bounds(np.ones(n), within=(-1.0, 1.0), null=0.0)
    low = scipy.stats.binomtest(n, n).proportion_ci(0.95, "exact").low
    assert bounds.p_value == pytest.approx(scipy.stats.binomtest(n, n, 0.5).pvalue)
    assert bounds.interval == pytest.approx((2.0 * low - 1.0, 1.0))
    assert (bounds.interval[0] > 0.0) == (bounds.p_value <= 0.05)


def test_a_reversed_score_has_the_mirrored_interval() -> None:
    scores = np.array([1.0] * 20 + [0.8, -0.5])
    one, other = (agreement_bounds(side, within=(-1.0, 1.0), null=0.0) for side in (scores, -scores))
    assert other.interval == pytest.approx((-one.interval[1], -one.interval[0]))
    assert other.p_value == pytest.approx(one.p_value)
    assert (one.n_deviating, one.n_units) == (2, 22.0)


def test_agreement_on_the_null_is_no_evidence_but_bounds_the_mean() -> None:
    bounds = agreement_bounds(np.zeros(25), within=(-1.0, 1.0), null=0.0)
    assert bounds.p_value == 1.0
    assert bounds.interval == pytest.approx((-(1.0 - 0.025 ** (1 / 25)), 1.0 - 0.025 ** (1 / 25)))


def test_unequal_weights_count_as_fewer_units() -> None:
    bounds = agreement_bounds(np.full(10, 100.0), within=(0.0, 100.0), null=50.0, weights=[91.0] + [1.0] * 9)
    assert bounds.n_units == pytest.approx(100.0**2 / (91.0**2 + 9.0))
    assert bounds.p_value == pytest.approx(2.0 * 0.5**bounds.n_units)


def test_counts_of_shares_agree_with_the_exact_interval() -> None:
    exact = scipy.stats.binomtest(7, 9).proportion_ci(0.9, "exact")
    assert share_bounds(7, 9, confidence=0.9) == pytest.approx((exact.low, exact.high))
    assert share_bounds(0, 9)[0] == 0.0
