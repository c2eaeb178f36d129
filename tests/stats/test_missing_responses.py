"""Rates of missing responses, by hand and against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from biassay.stats.word_association import missing_by_level, missing_by_pole


def test_poles_by_hand() -> None:
    rng = np.random.default_rng(0)
    negative = np.repeat([False, True], 4)
    missing = rng.random((12, 8)) < np.where(negative, 0.5, 0.1)
    found = missing_by_pole(missing, negative)
    rates = missing.mean(axis=0)
    assert found.rates == pytest.approx([rates[:4].mean(), rates[4:].mean()])
    observed = abs(rates[4:].sum() - rates[:4].sum())
    splits = [abs(2 * sum(part) - rates.sum()) for part in itertools.combinations(rates, 4)]
    assert found.p_value == pytest.approx(np.mean([split >= observed - 1e-9 for split in splits]))


@pytest.mark.parametrize("seed", range(10))
def test_two_levels_are_fishers_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    totals = rng.integers(2, 15, size=2)
    counts = rng.integers(0, totals + 1)
    missing = np.concatenate([np.arange(total) < count for count, total in zip(counts, totals, strict=True)])
    found = missing_by_level(missing, np.repeat([0, 1], totals))
    assert found.p_value == pytest.approx(stats.fisher_exact(np.stack([counts, totals - counts])).pvalue)


def test_several_levels_are_compared_one_with_the_others() -> None:
    missing, levels = np.zeros(50, dtype=bool), np.arange(50) % 5
    missing[levels == 2] = True
    found = missing_by_level(missing, levels)
    assert found.rates.tolist() == [0, 0, 1, 0, 0]
    assert found.p_value == pytest.approx(5 * stats.fisher_exact(np.array([[10, 0], [0, 40]])).pvalue)
    assert missing_by_level(missing, np.zeros(50)).p_value is None
    assert missing_by_level(np.zeros(50, dtype=bool), levels).p_value == 1.0
