"""Many pairs of tables at once: each as `crossed_difference` has it."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.stats.crossed_effect import crossed_difference
from biassay.stats.many_differences import ManyPairs


@pytest.mark.parametrize("confidence", [0.9, 0.9997])
@pytest.mark.parametrize("sizes", [(8, 8, 8, 8), (5, 7, 9, 4), (3, 3, 3, 3), (2, 2, 6, 5)])
def test_every_pair_is_as_by_itself(sizes: tuple[int, int, int, int], confidence: float) -> None:
    rng = np.random.default_rng(3)
    n, m, k, l = sizes  # noqa: E741
    effect = np.outer(np.repeat([0.5, -0.5], [n, m]), np.repeat([0.5, -0.5], [k, l]))
    words = rng.normal(size=(40, n + m, 1)) * np.repeat([0.5, -0.5], [k, l])
    first = words + 0.7 * rng.normal(size=(40, n + m, k + l))
    second = rng.choice([-1.0, 1.0], size=(40, 1, 1)) * (0.8 * first + 0.4 * rng.normal(size=first.shape))
    portions = [(first[:15], second[:15]), (first[15:], second[15:])]
    pairs = ManyPairs(portions, n, k)
    for more in ((0.0, 0.0), (0.4, 1.5), (-1.0, 0.3)):
        difference, low = pairs.stronger(more, confidence=confidence)
        for place in range(40):
            tables = first[place] + more[0] * effect, second[place] + more[1] * effect
            alone = crossed_difference(*tables, n, k, confidence=confidence, absolute=True)
            assert difference[place] == pytest.approx(alone.difference, abs=1e-12)
            expected = np.nan if alone.low is None else alone.low
            assert low[place] == pytest.approx(expected, abs=1e-11, nan_ok=True)
