"""Corrections against the papers' wording and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.multiple import benjamini_hochberg, holm

p_values = st.lists(st.floats(0.0, 1.0, allow_nan=False), min_size=1, max_size=40)


@given(p=p_values)
def test_holm_rejects_the_ranks_before_the_first_that_fails(p: list[float]) -> None:
    """The supplement's wording, as a loop."""
    alpha, n = 0.01, len(p)
    order = sorted(range(n), key=lambda i: p[i])
    expected = np.zeros(n, dtype=bool)
    for k, i in enumerate(order, start=1):
        if p[i] > alpha / (1 + n - k):
            break
        expected[i] = True
    on_the_edge = any(abs(p[i] * (n - k) - alpha) < 1e-15 for k, i in enumerate(order))
    if not on_the_edge:
        assert holm(p, alpha).rejected.tolist() == expected.tolist()


@given(p=p_values)
def test_benjamini_hochberg_agrees_with_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p).adjusted == pytest.approx(stats.false_discovery_control(p), abs=1e-15)


def test_holm_on_a_worked_example() -> None:
    found = holm([0.01, 0.04, 0.03, 0.005], alpha=0.05)
    assert found.adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert found.rejected.tolist() == [True, False, False, True]


def test_missing_p_values_are_not_counted() -> None:
    found = holm([0.004, np.nan, 0.9], alpha=0.01)
    assert found.n == 2
    assert found.rejected.tolist() == [True, False, False]
    assert np.isnan(found.adjusted[1])
    assert holm([], alpha=0.01).n == 0


@pytest.mark.parametrize("p", [[-0.1], [1.1], [[0.1]]])
def test_what_is_not_a_p_value_is_refused(p: list[float]) -> None:
    with pytest.raises(UsageError):
        holm(p)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_alpha_out_of_range_is_refused(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        holm([0.5], alpha)
