"""Relative decisions: shares by hand, exact tests against SciPy, orders, and missing responses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from biassay.stats.relative_decisions import binomial_p, relative_decisions

NAN = math.nan


def test_shares_by_hand() -> None:
    found = relative_decisions([1, 1, 0, 1, NAN, 0, 1], ["a", "a", "a", "b", "b", "c", "c"])
    assert found.by_task == pytest.approx([2 / 3, 1.0, 0.5])
    assert found.counts.tolist() == [3, 1, 2]
    assert found.share == pytest.approx(13 / 18)
    assert found.p_by_task == pytest.approx(0.5)  # two tasks of two; that of one half says nothing
    assert found.p_by_decision == pytest.approx(stats.binomtest(4, 6).pvalue)


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 8), (3, 8), (4, 8), (9, 10), (60, 100)])
def test_binomial_p(hits: int, n: int) -> None:
    assert binomial_p(hits, n) == pytest.approx(stats.binomtest(hits, n).pvalue)


def test_interval_over_tasks() -> None:
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(12), 10)
    follows = (rng.random(120) < 0.6).astype(float)
    found = relative_decisions(follows, tasks)
    shares = follows.reshape(12, 10).mean(axis=1)
    wanted = stats.t.interval(0.95, 11, loc=shares.mean(), scale=stats.sem(shares))
    assert found.interval == pytest.approx(wanted)


def test_the_first_person_alone_gives_one_half() -> None:
    """A model that always decides for the first of two, with more answers in one order."""
    orders = np.array([False, False, False, True] * 6)
    found = relative_decisions(orders.astype(float), np.repeat(np.arange(3), 8), orders=orders)
    assert found.by_task.tolist() == [0.5] * 3
    assert found.p_by_task is None


@pytest.mark.parametrize("n", [3, 8, 20])
def test_tasks_that_all_agree_have_the_bound_of_clopper_and_pearson(n: int) -> None:
    alike = relative_decisions([1] * n, range(n))
    assert (alike.share, alike.p_by_task) == (1.0, pytest.approx(2.0 ** (1 - n)))
    assert alike.interval == pytest.approx(stats.binomtest(n, n).proportion_ci(0.95, method="exact"))
    assert alike.interval is not None
    assert relative_decisions([0] * n, range(n)).interval == pytest.approx((0.0, 1.0 - alike.interval[0]))


def test_bounds_count_missing_decisions_either_way() -> None:
    found = relative_decisions([1, NAN, 0, 1], ["a", "a", "b", "b"])
    assert (found.share, found.bounds) == (0.75, (0.5, 0.75))
