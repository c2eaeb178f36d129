"""A part of items that is balanced over factors."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from biassay.stats.balanced_sample import draw_balanced


@pytest.mark.parametrize("seed", range(5))
def test_levels_of_every_factor_are_drawn_about_equally_often(seed: int) -> None:
    levels = np.array(list(itertools.product(range(25), range(2), range(2), range(3))) * 4)
    drawn = draw_balanced(levels, 100, np.random.default_rng(seed))
    assert len(set(drawn.tolist())) == 100
    for factor, most in ((0, 4), (1, 50), (2, 50)):
        assert set(Counter(levels[drawn, factor].tolist()).values()) == {most}
    assert set(Counter(levels[drawn, 3].tolist()).values()) <= {33, 34}


def test_an_unequal_pool_is_drawn_as_equally_as_it_allows() -> None:
    levels = np.array([[0]] * 100 + [[1]] * 3 + [[2]] * 50)
    counts = Counter(levels[draw_balanced(levels, 21, np.random.default_rng(0)), 0].tolist())
    assert counts == {0: 9, 1: 3, 2: 9}


def test_the_seed_decides_and_all_items_are_the_most() -> None:
    levels = np.arange(40)[:, None] % 4
    draws = [draw_balanced(levels, 8, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert draw_balanced(levels, 99, np.random.default_rng(0)).tolist() == list(range(40))
