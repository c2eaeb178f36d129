"""Similarities, matching and random attribute sets against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from biassay.stats.association import (
    REMOVED_COMPONENTS,
    SIMILARITIES,
    compute_directions,
    effect_size,
    random_baseline_share,
    random_effect_sizes,
)
from biassay.stats.specification_curve import match_values

RNG = np.random.default_rng(0)
BACKGROUND, VECTORS = RNG.normal(3.0, 1.0, (50, 8)), RNG.normal(3.0, 1.0, (6, 8))


def cosines(name: str) -> np.ndarray:
    rows = compute_directions(name, VECTORS, BACKGROUND)
    return rows @ rows.T


def test_centred_is_the_cosine_of_differences_from_the_mean() -> None:
    rows = VECTORS - BACKGROUND.mean(axis=0)
    expected = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in rows] for a in rows]
    assert cosines("centred") == pytest.approx(np.array(expected))


def test_rank_is_spearmans_correlation() -> None:
    assert cosines("rank") == pytest.approx(np.array(stats.spearmanr(VECTORS, axis=1).statistic))


def test_components_leave_nothing_in_the_principal_directions() -> None:
    values, axes = np.linalg.eigh(np.cov(BACKGROUND, rowvar=False))
    top = axes[:, np.argsort(-values)[:REMOVED_COMPONENTS]]
    assert np.abs(compute_directions("components", VECTORS, BACKGROUND) @ top).max() < 1e-9


@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarities_do_not_depend_on_the_scale(name: str) -> None:
    rows = compute_directions(name, 5.0 * VECTORS, 5.0 * BACKGROUND)
    assert rows @ rows.T == pytest.approx(cosines(name))


@pytest.mark.parametrize("name", ["centred", "components"])
def test_a_vector_of_which_nothing_is_left_is_no_direction(name: str) -> None:
    rows = compute_directions(name, np.stack([BACKGROUND.mean(axis=0), VECTORS[0]]), BACKGROUND)
    assert np.isnan(rows).all(axis=1).tolist() == [True, False]


def test_matched_values() -> None:
    assert match_values([1, 1, 2, 3], [2, 1, 4]) == ([0, 2], [0, 1])
    assert match_values([10, 100, 1000], [15, 900, 5000], 2.0) == ([0, 2], [0, 1])
    assert match_values([np.nan, 0.0, 5.0], [5.0, np.inf]) == ([2], [0])
    assert match_values([], [1.0]) == ([], [])


def test_random_sets_have_the_effects_that_loops_give() -> None:
    table = RNG.normal(size=(10, 40))
    parts = table[:, :15], table[:, 15:]
    found = random_effect_sizes(parts, 4, 40, (3, 5), 200, 0)
    order = np.argsort(np.random.default_rng(0).random((40, 200)), axis=0)
    for draw in (0, 77, 199):
        a, b = order[:3, draw], order[3:8, draw]
        scores = table[:, a].mean(axis=1) - table[:, b].mean(axis=1)
        assert found[draw] == pytest.approx(effect_size(scores[:4], scores[4:]))
    observed = float(np.sort(np.abs(found))[-10])
    assert random_baseline_share(parts, 4, 40, (3, 5), observed, 200, 0) == pytest.approx(10 / 200)


def test_a_vocabulary_that_is_too_small_says_nothing() -> None:
    assert random_baseline_share([RNG.normal(size=(10, 15))], 4, 15, (4, 4), 1.0, 10, 0) is None
