"""How much stronger an association would have to be to be shown: the interval of it, and a simulation."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as students

from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_difference, crossed_effect
from biassay.stats.stronger import _shifted, smallest_stronger

SIDE = np.repeat([0.5, -0.5], 16)
MARGIN, CONFIDENCE = 0.2, 0.99


def models(rng: np.random.Generator, effect: float, more: float) -> list[NDArray[np.float64]]:
    """Two models of the same 16 words a set that share 70% of the variance."""

    def drawn() -> NDArray[np.float64]:
        words = np.outer(rng.normal(size=32), SIDE) + np.outer(SIDE, rng.normal(size=32))
        return 0.05 * words + 0.08 * rng.normal(size=(32, 32))

    common = math.sqrt(0.7) * drawn()
    effects = (effect, effect + more)
    return [own * np.outer(SIDE, SIDE) + common + math.sqrt(0.3) * drawn() for own in effects]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_shift_gives_the_effect_size_that_was_asked_for(sign: int) -> None:
    _, table = models(np.random.default_rng(1), sign * 0.05, 0.0)
    for d in (0.2, 1.0, 1.8):
        assert crossed_effect(_shifted(table, 16, 16, d), 16, 16).effect_size == pytest.approx(sign * d)


def test_the_interval_of_what_was_found_lies_far_enough_above_zero() -> None:
    """By 80% of the ways that the estimate may vary."""
    one, two = models(np.random.default_rng(2), 0.05, 0.0)
    found = smallest_stronger(one, two, 16, 16, confidence=CONFIDENCE, margin=MARGIN)
    assert found is not None
    shifted = _shifted(two, 16, 16, abs(crossed_effect(one, 16, 16).effect_size) + found)
    of_d = crossed_difference(one, shifted, 16, 16, confidence=CONFIDENCE, absolute=True)
    assert of_d.difference == pytest.approx(found)
    assert of_d.low is not None
    df = min(crossed_test(table, 16, 16).df for table in (one, shifted))
    error = (of_d.difference - of_d.low) / students.ppf(0.995, df)
    assert of_d.low == pytest.approx(error * students.ppf(0.8, df), abs=0.03)


def test_few_words_show_nothing() -> None:
    one, two = (table[12:20, 12:20] for table in models(np.random.default_rng(3), 0.0, 0.0))
    assert smallest_stronger(one, two, 4, 4, confidence=0.9999, margin=MARGIN) is None


@pytest.mark.slow
def test_such_a_difference_is_found_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    printed = [
        smallest_stronger(*models(rng, 0.05, 0.0), 16, 16, confidence=CONFIDENCE, margin=MARGIN) for _ in range(60)
    ]
    typical = statistics.median(2.0 if one is None else one for one in printed)

    def grown(more: float, times: int) -> list[float]:
        pairs = (models(rng, 0.05, more) for _ in range(times))
        return [
            abs(crossed_effect(b, 16, 16).effect_size) - abs(crossed_effect(a, 16, 16).effect_size) for a, b in pairs
        ]

    low, high = 0.0, 0.5
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if statistics.fmean(grown(middle, 150)) < typical else (low, middle)
    shown = 0
    for _ in range(200):
        of_d = crossed_difference(*models(rng, 0.05, high), 16, 16, confidence=CONFIDENCE, absolute=True)
        shown += of_d.low is not None and of_d.low > 0.0 and of_d.difference > MARGIN
    assert 0.65 <= shown / 200 <= 0.95
