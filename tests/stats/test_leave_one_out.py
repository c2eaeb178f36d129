"""Leave-one-out of the effect and of the crossed p-value, against deleting words by hand."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.stats.association import effect_size
from biassay.stats.crossed import crossed_test, effects_without, p_value_without

SIZES = (5, 6, 4, 3)


def deleted(table: np.ndarray, place: int) -> tuple[np.ndarray, int, int]:
    n, m, k, _ = SIZES
    if place < n + m:
        return np.delete(table, place, axis=0), n - (place < n), k
    place -= n + m
    return np.delete(table, place, axis=1), n, k - (place < k)


def test_words_are_left_out_one_by_one() -> None:
    table = np.random.default_rng(0).normal(0.3, 1.0, (11, 7))
    effects = effects_without(table, 5, 4)
    assert len(effects) == sum(SIZES)
    for place, effect in enumerate(effects):
        left, n, k = deleted(table, place)
        scores = left[:, :k].mean(axis=1) - left[:, k:].mean(axis=1)
        assert effect == pytest.approx(effect_size(scores[:n], scores[n:]))
        assert p_value_without(table, 5, 4, place) == crossed_test(left, n, k).p_value


def test_the_only_word_of_a_set_cannot_be_left_out() -> None:
    table = np.random.default_rng(0).normal(size=(4, 3))
    effects = effects_without(table, 1, 1)
    assert np.isnan(effects).tolist() == [True, False, False, False, True, False, False]
    assert p_value_without(table, 1, 1, 0) is None
    assert p_value_without(table, 1, 1, 4) is None


def test_equal_words_leave_no_effect() -> None:
    assert np.isnan(effects_without(np.full((6, 4), 0.2), 3, 2)).all()
