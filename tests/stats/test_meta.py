"""The random-effects model against reference values and against sums in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.stats.random_effects import random_effects

numbers = st.floats(-3, 3, allow_nan=False, width=32)
positive = st.floats(0.015625, 4, allow_nan=False, width=32)


def in_fractions(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """The definition, with no rounding before the end."""
    es, vs = [Fraction(float(e)) for e in effects], [Fraction(float(v)) for v in variances]
    w = [1 / v for v in vs]
    mean = sum(a * e for a, e in zip(w, es, strict=True)) / sum(w)
    q = sum((a * (e - mean) ** 2 for a, e in zip(w, es, strict=True)), Fraction(0))
    c = sum(w) - sum(a * a for a in w) / sum(w)
    tau2 = max(Fraction(0), (q - (len(es) - 1)) / c)
    v = [1 / (s + tau2) for s in vs]
    return float(tau2), float(q), float(sum(a * e for a, e in zip(v, es, strict=True)) / sum(v)), float(sum(v)) ** -0.5


@given(st.lists(st.tuples(numbers, positive), min_size=3, max_size=20))
def test_agrees_with_the_definition_in_fractions(pairs: list[tuple[float, float]]) -> None:
    effects, variances = np.array(pairs).T
    found = random_effects(effects, variances)
    tau2, q, mean, error = in_fractions(effects, variances)
    assert found.tau2 == pytest.approx(tau2, rel=1e-10, abs=1e-12)
    assert found.q == pytest.approx(q, rel=1e-10, abs=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-10, abs=1e-12)
    assert found.standard_error == pytest.approx(error, rel=1e-10)


@pytest.mark.extras
def test_p_value_does_not_underflow() -> None:
    mpmath = pytest.importorskip("mpmath")
    effects = 1.0 + 0.01 * np.sin(np.arange(400.0))
    found = random_effects(effects, np.full(400, 0.01))
    with mpmath.workdps(50):
        exact = mpmath.log10(mpmath.erfc(mpmath.mpf(found.z) / mpmath.sqrt(2)))
    assert found.z > 150
    assert found.p_value == 0.0
    assert found.log10_p == pytest.approx(float(exact), rel=1e-12)
    assert random_effects(-effects, np.full(400, 0.01)).p_value_upper == pytest.approx(1.0)


def test_no_effect_at_all_has_p_of_one() -> None:
    found = random_effects(np.array([-1.0, 0.0, 1.0]), np.ones(3))
    assert (found.mean, found.p_value, found.log10_p) == (0.0, 1.0, 0.0)


def test_two_effect_sizes_are_too_few() -> None:
    with pytest.raises(UsageError, match="at least 3 effect sizes, got 2"):
        random_effects(np.zeros(2), np.ones(2))
