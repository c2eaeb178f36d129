"""Coverage of intervals in repeated comparisons of models with new words."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studies.associations.compared_runs import rows_of, simulated

import biassay


@pytest.mark.slow
@pytest.mark.parametrize("true", [0.0, 0.08])
def test_models_that_differ_by_noise_alone_are_rarely_told_apart(true: float) -> None:
    """Other words each time, targets and attributes: about one interval in twenty may leave out zero."""
    found = rows_of(biassay.compare(*simulated(np.random.default_rng(5), 8, 600, true)))
    leaving = sum(r.interval_low > 0.0 or r.interval_high < 0.0 for r in found)
    assert 0.02 * 600 <= leaving <= 0.07 * 600
    assert sum(r.simultaneous_low > 0.0 or r.simultaneous_high < 0.0 for r in found) <= 1
