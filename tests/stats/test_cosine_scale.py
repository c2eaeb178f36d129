"""The scale of similarities: by definition, and its variance against deletion by hand and new draws of words."""

from __future__ import annotations

import numpy as np
import pytest

from biassay.errors import UsageError
from biassay.stats.association import log_contrast_variance, similarity_sd


def similarities(rng: np.random.Generator, n: int, common: float = 0.0) -> np.ndarray:
    vectors = rng.normal(size=(n, 20)) + common
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors @ vectors.T)


def test_standard_deviation_of_pairs() -> None:
    table = similarities(np.random.default_rng(0), 30)
    pairs = [table[i, j] for i in range(30) for j in range(i)]
    assert similarity_sd(table) == pytest.approx(np.std(pairs))


def test_jackknife_deletes_one_word() -> None:
    rng = np.random.default_rng(1)
    old, new = similarities(rng, 12), similarities(rng, 12, 0.3)
    logs = []
    for i in range(12):
        kept = np.ix_(np.arange(12) != i, np.arange(12) != i)
        logs.append(np.log(similarity_sd(new[kept]) / similarity_sd(old[kept])))
    jackknife = 11 / 12 * np.sum((np.array(logs) - np.mean(logs)) ** 2)
    assert jackknife < log_contrast_variance((old, new), (-1.0, 1.0)) < 4.0 * jackknife
    assert log_contrast_variance((old, 3.0 * old), (-1.0, 1.0)) == pytest.approx(0.0, abs=1e-20)


def test_a_weighted_sum_of_logs_is_jackknifed_together() -> None:
    rng = np.random.default_rng(3)
    tables = [similarities(rng, 12, noise) for noise in (1.0, 0.5, 0.3)]
    assert log_contrast_variance(tables, (-1, 0, 1)) == pytest.approx(
        log_contrast_variance((tables[0], tables[2]), (-1.0, 1.0))
    )
    assert log_contrast_variance(tables, (-2, 0, 2)) == pytest.approx(4 * log_contrast_variance(tables, (-1, 0, 1)))
    kept = [np.ix_(np.arange(12) != i, np.arange(12) != i) for i in range(12)]
    logs = np.log([[similarity_sd(table[one]) for table in tables] for one in kept]) @ (-0.5, -0.25, 0.75)
    jackknife = 11 / 12 * np.sum((logs - logs.mean()) ** 2)
    assert jackknife < log_contrast_variance(tables, (-0.5, -0.25, 0.75)) < 4.0 * jackknife


def test_variance_covers_new_words() -> None:
    """The jackknife counts the part that belongs to pairs twice, so it errs on the safe side; outliers add more."""
    rng = np.random.default_rng(2)
    shape = rng.normal(size=20)
    ratios, variances = [], []
    for _ in range(300):
        one, other = (rng.normal(size=(60, 20)) for _ in range(2))
        first, second = one + 0.2 * shape, 0.8 * one + 0.6 * other + 0.5 * shape
        tables = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (first, second)]
        old, new = (rows @ rows.T for rows in tables)
        ratios.append(np.log(similarity_sd(new) / similarity_sd(old)))
        variances.append(log_contrast_variance((old, new), (-1.0, 1.0)))
    assert 0.9 < np.median(variances) / np.var(ratios) < 2.2


def test_outlying_words_are_covered() -> None:
    """5% of 200 words share a direction on the new model: the jackknife alone covered .88, of 200 at most 184."""
    rng = np.random.default_rng(4)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        one = rng.normal(size=(n, 50))
        other = one + 0.5 * rng.normal(size=one.shape)
        other[rng.random(n) < 0.05, 0] += 12.0
        tables = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (one, other))
        old, new = (rows @ rows.T for rows in tables)
        return old, new

    truth = np.mean([np.log(similarity_sd(new) / similarity_sd(old)) for old, new in (draw(1000) for _ in range(10))])
    covered = 0
    for _ in range(200):
        old, new = draw(200)
        error = np.log(similarity_sd(new) / similarity_sd(old)) - truth
        covered += abs(error) <= 1.96 * np.sqrt(log_contrast_variance((old, new), (-1.0, 1.0)))
    assert covered >= 182


def test_bad_input() -> None:
    table = similarities(np.random.default_rng(3), 5)
    with pytest.raises(UsageError, match="at least 4 words"):
        log_contrast_variance((table[:3, :3], table[:3, :3]), (-1.0, 1.0))
