"""Intervals by cluster: against scipy, loops, inversion of their own test, and a simulation of released answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from biassay.stats.clusters import (
    LEAST_DF,
    LEAST_NAME_DF,
    cluster_estimate,
    cluster_totals,
    crossed_cluster_estimate,
    share_estimate,
)

from ..bbq_answers import CELLS, template_counts

Floats = NDArray[np.float64]


def ratio(totals: Floats) -> Floats:
    return totals[..., 0] / totals[..., 1]


def test_of_symmetric_clusters_of_one_size_it_is_the_t_test_of_their_means() -> None:
    means = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    found = cluster_estimate(np.stack([20 * means, np.full(5, 20.0)], axis=1), ratio, null=0.2)
    expected = stats.ttest_1samp(means, 0.2)
    assert found.value == pytest.approx(0.5)
    assert found.standard_error == pytest.approx(stats.sem(means), rel=1e-12)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-12)


def test_standard_error_is_the_jackknife_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    totals = np.stack([rng.integers(-5, 9, 12), rng.integers(5, 20, 12)], axis=1).astype(float)
    found = cluster_estimate(totals, ratio)
    value = totals[:, 0].sum() / totals[:, 1].sum()
    without = [(totals[:, 0].sum() - a) / (totals[:, 1].sum() - b) for a, b in totals]
    assert found.standard_error == pytest.approx(math.sqrt(11 / 12 * sum((w - value) ** 2 for w in without)), rel=1e-12)
    shares = np.square(np.array(without) - value)
    assert found.largest_share == pytest.approx(shares.max() / shares.sum())


@pytest.mark.parametrize("seed", range(20))
def test_the_interval_holds_the_null_when_p_is_above_its_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    totals = np.stack([rng.gamma(0.3, 4.0, 9) - rng.uniform(0, 1), np.full(9, 3.0)], axis=1)
    edges = cluster_estimate(totals, ratio, confidence=0.9).interval
    assert edges[0] < edges[1]
    for edge, inside in zip(edges, (1, -1), strict=True):
        step = 1e-7 * (edges[1] - edges[0]) * inside
        assert cluster_estimate(totals, ratio, null=edge + step).p_value > 0.1
        assert cluster_estimate(totals, ratio, null=edge - step).p_value < 0.1


def test_a_difference_is_paired_by_cluster() -> None:
    rng = np.random.default_rng(4)
    own = rng.normal(0.0, 3.0, 10)
    first, second = (np.stack([20 * (own + shift), np.full(10, 20.0)], axis=1) for shift in (1.0, 0.5))
    second[:, 0] += rng.normal(0.0, 4.0, 10)
    both = np.concatenate([first, second], axis=1)
    found = cluster_estimate(both, lambda t: ratio(t[..., :2]) - ratio(t[..., 2:]), weight=(1, 3))
    paired = stats.ttest_rel(first[:, 0] / 20, second[:, 0] / 20)
    assert found.value == pytest.approx((first[:, 0] - second[:, 0]).mean() / 20)
    assert found.value / found.standard_error == pytest.approx(paired.statistic)
    assert found.df == 9.0
    assert found.p_value >= paired.pvalue * (1 - 1e-12)


@pytest.mark.parametrize(
    ("totals", "p_value"), [([[1, 4]], None), ([[1, 4], [1, 4], [2, 8]], 0.25), ([[1, 4], [0, 0]], None)]
)
def test_without_differences_between_clusters_there_is_no_interval(
    totals: list[list[int]], p_value: float | None
) -> None:
    """If several clusters agree, the exact sign test still shows the sign."""
    found = cluster_estimate(totals, ratio)
    assert found.value == 0.25
    assert all(math.isnan(number) for number in found.interval)
    assert found.p_value == p_value or (p_value is None and math.isnan(found.p_value))
    assert p_value is None or found.p_value == stats.binomtest(len(totals), len(totals)).pvalue
    assert p_value is None or cluster_estimate(totals, ratio, null=0.25).p_value == 1.0


@pytest.mark.parametrize("apart", [0, 1, 4])
def test_clusters_that_nearly_agree_have_the_binomial_bound(apart: int) -> None:
    """24 clusters at 1 and none, one or four at -1: Clopper and Pearson's bound of the share of such clusters."""
    totals = np.stack([np.r_[np.ones(24), -np.ones(apart)], np.ones(24 + apart)], axis=1)
    found = cluster_estimate(totals, ratio, within=(-1.0, 1.0), weight=1)
    low = stats.binomtest(24, 24 + apart).proportion_ci(0.95, "exact").low
    assert found.interval == pytest.approx((2.0 * low - 1.0, 1.0))
    assert found.p_value < 0.001


@pytest.mark.parametrize("sizes", [(10,) * 8, (30, 30, 20, 20, 10, 5, 5), (9,) * 11 + (1, 1, 1)])
def test_few_clusters_have_at_least_the_p_value_of_flipped_signs(sizes: tuple[int, ...]) -> None:
    """The heaviest 11 clusters are flipped one by one, all others together."""
    rng = np.random.default_rng(8)
    weights = np.array(sizes, dtype=float)
    scores = rng.normal(0.7, 0.02, len(sizes))
    totals = np.stack([weights * scores, weights], axis=1)
    found = cluster_estimate(totals, ratio, null=0.1, within=(-1.0, 1.0), weight=1)
    parts = weights * (scores - 0.1)
    blocks = [*parts[:11], parts[11:].sum()] if len(parts) > 11 else list(parts)
    flipped = np.array([np.dot(blocks, signs) for signs in itertools.product((1.0, -1.0), repeat=len(blocks))])
    assert found.p_value == pytest.approx((np.abs(flipped) >= abs(parts.sum()) - 1e-9).mean(), rel=1e-12)
    assert cluster_estimate(totals, ratio, null=0.1, weight=1).p_value < found.p_value


@pytest.mark.parametrize("n", [4, 5, 7])
def test_clusters_with_nearly_equal_scores_are_no_more_evidence_than_with_equal_ones(n: int) -> None:
    scores = 0.7 + 0.001 * np.arange(n)
    nearly, exactly = (
        cluster_estimate(np.stack([of, np.ones(n)], axis=1), ratio, within=(-1.0, 1.0), weight=1)
        for of in (scores, np.ones(n))
    )
    assert exactly.p_value == pytest.approx(2.0 ** (1 - n))
    assert nearly.p_value >= exactly.p_value * (1.0 - 1e-9)
    assert (nearly.interval[0] <= 0.0) is (n < 6)


@pytest.mark.parametrize("seed", range(10))
def test_the_interval_of_few_clusters_inverts_the_flips(seed: int) -> None:
    """Two-valued clusters of unequal weight."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(5.0, 15.0, 9)
    totals = np.stack([weights * (np.where(rng.random(9) < 0.5, 0.6, -0.6) + rng.normal(0, 0.01, 9)), weights], axis=1)
    options = {"within": (-1.0, 1.0), "confidence": 0.9, "weight": 1}
    low, high = cluster_estimate(totals, ratio, **options).interval  # type: ignore[arg-type]
    for edge, inside in ((low, 1e-5), (high, -1e-5)):
        assert cluster_estimate(totals, ratio, null=edge + inside, **options).p_value > 0.1  # type: ignore[arg-type]
        assert cluster_estimate(totals, ratio, null=edge - inside, **options).p_value < 0.1 + 1e-9  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(40,) * 4, (40,) * 6, (50,) * 4 + (2,) * 20])
def test_level_where_few_clusters_lean_to_either_side(sizes: tuple[int, ...]) -> None:
    """A t test rejects 11%, 4% and 12% of these true nulls."""
    rng = np.random.default_rng(9)
    weights, rejected = np.array(sizes, dtype=float), 0
    for _ in range(1000):
        shares = np.where(rng.random(len(sizes)) < 0.5, 0.9, 0.1)
        scores = 2.0 * rng.binomial(sizes, shares) / weights - 1.0
        found = cluster_estimate(np.stack([weights * scores, weights], axis=1), ratio, within=(-1.0, 1.0), weight=1)
        rejected += found.p_value <= 0.05
    assert rejected <= 60


def bell_mccaffrey(weights: Floats, variances: Floats) -> float:
    """Degrees of freedom of the jackknife by matrices, for clusters with these weights and variances."""
    w = weights / weights.sum()
    residuals = np.eye(len(w)) - w
    form = residuals.T @ np.diag((w / (1.0 - w)) ** 2) @ residuals @ np.diag(variances)
    return float(np.trace(form) ** 2 / np.trace(form @ form))


@pytest.mark.parametrize(("spread", "between"), [(0.0, 0.0), (0.4, 1.0)])
def test_clusters_of_unequal_weight_have_the_degrees_of_freedom_of_bell_and_mccaffrey(
    spread: float, between: float
) -> None:
    """Scores vary as 1 / n, or equally for all sizes: with 60 clusters the data show which."""
    rng = np.random.default_rng(2)
    weights = np.repeat([200.0, 60.0, 5.0], [6, 14, 40])
    noise = spread * rng.normal(size=60) + (0.0 if spread else 1.0) * rng.normal(size=60) / np.sqrt(weights)
    found = cluster_estimate(np.stack([weights * noise, weights], axis=1), ratio, weight=1)
    at = [bell_mccaffrey(weights, rho + (1.0 - rho) * weights.mean() / weights) for rho in (0.0, 1.0)]
    assert at[1] < found.df < at[0] if not between else found.df == pytest.approx(at[1], rel=1e-9)
    assert found.df < 1.0 / ((weights / weights.sum()) ** 2).sum()


@pytest.mark.parametrize(
    ("sizes", "tested"), [((50, 50, 50, 50, *[2] * 20), True), ((100, 100, *[4] * 20), False), ((10,) * 3, False)]
)
def test_a_few_clusters_that_hold_most_items_prove_nothing(sizes: tuple[int, ...], tested: bool) -> None:
    rng = np.random.default_rng(3)
    weights = np.array(sizes, dtype=float)
    found = cluster_estimate(np.stack([weights * rng.normal(2.0, 0.1, len(sizes)), weights], axis=1), ratio, weight=1)
    assert math.isnan(found.p_value) is not tested
    assert math.isnan(found.interval[0]) is not tested
    assert (found.df > LEAST_DF) is tested


def test_crossed_variance_is_that_of_loops_over_names_and_clusters() -> None:
    rng = np.random.default_rng(6)
    clusters = rng.integers(0, 7, 150).tolist()
    names = [(f"a{rng.integers(9)}", f"b{rng.integers(8)}") for _ in range(150)]
    effect = {name: rng.normal() for own in names for name in own}
    y = np.array([effect[a] - effect[b] for a, b in names]) + rng.normal(size=150)
    y += 2.0 * rng.normal(size=7)[clusters]
    found = crossed_cluster_estimate(np.stack([y, np.ones(150)], axis=1), clusters, names, ratio)
    u = (y - y.mean()) / 150
    shared = both = 0.0
    for i in range(150):
        for j in range(150):
            common = len(set(names[i]) & set(names[j]))
            shared += common * u[i] * u[j]
            both += common * u[i] * u[j] * (clusters[i] == clusters[j])
    known = sorted(effect)
    member = np.array([[name in own for name in known] for own in names], dtype=float)
    centred = (member - member.mean(axis=0)) / 150
    expected = np.trace(centred.T @ member @ member.T @ centred)
    factor = (member.mean(axis=0) ** 2).sum() / expected  # V_names is unbiased for names with effects of one variance
    totals = cluster_totals(np.stack([y, np.ones(150)], axis=1), clusters)
    own = cluster_estimate(totals, ratio).standard_error ** 2
    assert found.standard_error**2 == pytest.approx(own + factor * (shared - both), rel=1e-5)
    assert found.n_names == len(known)


def named_items(
    groups: tuple[int, int], templates: int = 25, pairs: int = 25
) -> tuple[Floats, list[int], list[tuple[str, str]]]:
    rng = np.random.default_rng(9)
    at = np.repeat(np.arange(templates), pairs)
    one, other = (rng.integers(0, size, len(at)) for size in groups)
    first, second = (rng.normal(size=size) for size in groups)
    y = 1.5 + first[one] - second[other] + rng.normal(size=len(at)) + rng.normal(size=templates)[at]
    names = [(f"a{i}", f"b{j}") for i, j in zip(one, other, strict=True)]
    return np.stack([y, np.ones(len(at))], axis=1), at.tolist(), names


@pytest.mark.parametrize("groups", [(2, 20), (3, 20), (3, 3), (1, 1)])
def test_fewer_than_four_names_in_a_group_prove_nothing(groups: tuple[int, int]) -> None:
    """Templates alone would give an interval, but it would not hold for other names."""
    items, at, names = named_items(groups)
    assert not math.isnan(cluster_estimate(cluster_totals(items, at), ratio).p_value)
    found = crossed_cluster_estimate(items, at, names, ratio)
    assert found.value == pytest.approx(items[:, 0].mean())
    assert all(math.isnan(number) for number in (*found.interval, found.p_value))
    assert found.df <= LEAST_NAME_DF
    assert found.n_names == sum(groups)


def test_agreement_of_all_templates_counts_no_more_units_than_names() -> None:
    """All answers show the bias; with eight names in each of two groups the bound is that of eight units."""
    items = [(template, i, (i + template) % 8) for template in range(25) for i in range(8)]
    found = crossed_cluster_estimate(
        np.ones((200, 2)),
        [template for template, _, _ in items],
        [(f"a{i}", f"b{j}") for _, i, j in items],
        ratio,
        within=(-1.0, 1.0),
    )
    assert found.p_value == pytest.approx(2.0**-7)
    assert found.interval == pytest.approx((2.0 * 0.025 ** (1 / 8) - 1.0, 1.0))


def test_no_cluster_at_all() -> None:
    found = cluster_estimate(np.zeros((3, 2)), ratio)
    assert math.isnan(found.value)
    assert found.n_clusters == 0


def test_share_against_sums_and_the_roots_of_the_score_test() -> None:
    found = share_estimate(41, 60)
    tail = sum(math.comb(60, k) for k in range(41, 61)) / 2**60
    assert found.p_value == pytest.approx(2 * tail, rel=1e-12)
    z = stats.norm.ppf(0.975)
    for edge in found.interval:
        assert abs(41 / 60 - edge) == pytest.approx(z * math.sqrt(edge * (1 - edge) / 60), rel=1e-9)


@pytest.mark.slow
def test_coverage_with_templates_like_those_of_released_answers() -> None:
    """Resample 25 released templates, and a fifth of the responses within each template."""
    covered, by_item = {}, {}
    for cell in CELLS:
        rng = np.random.default_rng(7)
        counts = template_counts(cell)
        ambiguous = "|ambig|" in cell
        of = _score(ambiguous)
        truth = float(of(counts.sum(axis=0)[None].astype(float))[0])
        held = []
        for _ in range(250):
            drawn = redrawn(counts[rng.integers(25, size=25)], 0.2, rng)
            items = np.repeat(np.eye(3), drawn.sum(axis=0), axis=0)
            intervals = [cluster_estimate(totals, of).interval for totals in (drawn, items)]
            held.append([low <= truth <= high for low, high in intervals])
        covered[cell], by_item[cell] = np.mean(held, axis=0)
    assert 0.93 <= np.mean(list(covered.values())) <= 0.97
    assert all(0.91 <= share <= 0.985 for share in covered.values())
    assert all(by_item[cell] < 0.9 for cell in CELLS if "|ambig|" in cell)


def _score(ambiguous: bool) -> Callable[[Floats], Floats]:
    def of(totals: Floats) -> Floats:
        target, other, unknown = totals[..., 0], totals[..., 1], totals[..., 2]
        return (target - other) / (target + other + (unknown if ambiguous else 0.0))

    return of


def redrawn(counts: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Resample some responses within their template, (templates, 3)."""
    found = []
    for row in counts:
        new = rng.binomial(row, share)
        found.append(row - new + rng.multinomial(new.sum(), row / row.sum()))
    return np.array(found)


def test_names_count_where_all_templates_agree() -> None:
    """Every template has the same seven names, of which four always show the bias and three the opposite."""
    items = [(template, name) for template in range(25) for name in "abcdefg"]
    values = np.array([[1.0 if name in "abcd" else -1.0, 1.0] for _, name in items])
    found = crossed_cluster_estimate(
        values,
        [template for template, _ in items],
        [[name] for _, name in items],
        lambda totals: totals[..., 0] / totals[..., 1],
        within=(-1.0, 1.0),
    )
    assert (found.value, found.n_names) == (pytest.approx(1 / 7), 7)
    assert found.p_value > 0.5
    assert found.interval[0] < 0.0 < found.interval[1]
