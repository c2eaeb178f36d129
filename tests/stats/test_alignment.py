"""Agreement of models with people: the paper's tables, scipy and loops as witnesses, and intervals by simulation."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.alignment import (
    alignment_intervals,
    choose_templates,
    human_means,
    kendall_alignment,
    noise_ceiling,
    permute_groups,
    precision_at,
)
from biassay.stats.kendall import block_counts, kendall_by_row, overall_tau, within_tau

Floats = NDArray[np.float64]
X = float("nan")

# Cao et al. 2022, Tables A12 (of the 3 highest pairs) and A13 (of the 3 lowest), in thirds. Columns: CEAT, ILPS, ILPS*,
# SeT, each RoBERTa and BERT. Rows: White, Hispanic, Asian, Black, immigrants, men, women, wealthy, Jewish, Muslim,
# Christian, cis, trans, working class, non-binary, Native American, Buddhist, Mormon, veterans, unemployed, teenagers,
# elderly, blind, autistic, neurodivergent. A row of six has no CEAT. The 0.677 of Buddhists is read as two thirds.
TOP = """33112222 322222 333333 01111021 10201011 20232123 13333333 32112222 22011111 00001110 33333233 33323233
    11302231 22211322 323232 12231222 12333323 23333233 33333333 10020002 01212122 03333333 22332333 323332 10010101"""
BOTTOM = """21001222 313222 102333 11323021 33333333 12132323 01000100 10101210 21323032 22213332 23111012 11011011
    02111111 22112112 001200 11122122 12331232 23111012 12201120 23333333 11313320 13323133 32112111 213211 22232222"""
TABLE_6 = [0.500, 0.587, 0.620, 0.533, 0.653, 0.560, 0.653, 0.613]
AGREEING = [0, 1, 2, 3, 4]


def shares(table: str) -> Floats:
    whole = [f"{row:x>8}" for row in table.split()]
    return np.array([[X if figure == "x" else int(figure) / 3 for figure in row] for row in whole])


def test_tables_a12_and_a13_average_to_table_6_but_for_slips_of_the_appendix() -> None:
    top, bottom = shares(TOP), shares(BOTTOM)
    assert top.shape == bottom.shape == (25, 8)
    found = np.nanmean((top + bottom) / 2, axis=0)
    assert [round(found[i], 3) for i in AGREEING] == [TABLE_6[i] for i in AGREEING]
    others = [i for i in range(8) if i not in AGREEING]
    assert (np.abs(found - TABLE_6)[others] <= 0.014).all()
    assert (np.abs(found - TABLE_6)[others] > 0.0005).all()


def test_precision_makes_such_a_table_from_scores() -> None:
    """Scores whose top and bottom three agree with people as often as Tables A12 and A13 say of SeT on RoBERTa."""
    top, bottom = (np.rint(3 * shares(table)[:, 6]).astype(int) for table in (TOP, BOTTOM))
    model = np.tile(np.arange(16.0), (25, 1))
    human = np.full((25, 16), 50.0)
    for g in range(25):
        human[g, 13:] = [70.0] * top[g] + [30.0] * (3 - top[g])
        human[g, :3] = [30.0] * bottom[g] + [70.0] * (3 - bottom[g])
    found = precision_at(model, human)
    np.testing.assert_allclose(found.top, top / 3)
    np.testing.assert_allclose(found.bottom, bottom / 3)
    assert found.overall == pytest.approx(np.mean((top + bottom) / 6))
    assert found.overall == pytest.approx(0.653, abs=0.014)


CELLS = st.one_of(st.just(X), st.integers(-3, 3).map(float))


@st.composite
def two_matrices(draw: st.DrawFn) -> tuple[Floats, Floats]:
    groups, pairs = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    matrix = st.lists(st.lists(CELLS, min_size=pairs, max_size=pairs), min_size=groups, max_size=groups)
    return np.array(draw(matrix)), np.array(draw(matrix))


def by_loop(x: Floats, y: Floats) -> float:
    """tau-b from its definition."""
    cells = [(a, b) for a, b in zip(x.ravel(), y.ravel(), strict=True) if not (np.isnan(a) or np.isnan(b))]
    signs = [(np.sign(a - c), np.sign(b - d)) for (a, b), (c, d) in itertools.combinations(cells, 2)]
    differ = [sum(s[i] != 0 for s in signs) for i in (0, 1)]
    return float(sum(a * b for a, b in signs) / np.sqrt(differ[0] * differ[1])) if all(differ) else X


@given(two_matrices())
def test_every_way_to_tau_is_that_of_the_definition_and_of_scipy(both: tuple[Floats, Floats]) -> None:
    x, y = both
    found, blocks = kendall_alignment(x, y), block_counts(x, y)
    expected = [by_loop(a, b) for a, b in zip(x, y, strict=True)]
    for taus in (found.group_tau, kendall_by_row(x, y), within_tau(blocks)):
        np.testing.assert_allclose(taus, expected, atol=1e-12)
    overall = by_loop(x, y)
    np.testing.assert_allclose([found.tau, overall_tau(blocks, np.ones((1, len(x))))[0]], overall, atol=1e-12)
    assert found.n == np.count_nonzero(~np.isnan(x + y))
    if not np.isnan(overall):
        theirs = stats.kendalltau(x.ravel(), y.ravel(), nan_policy="omit")
        assert (found.tau, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), nan_ok=True)


@given(two_matrices(), st.integers(0, 10_000))
def test_groups_drawn_several_times_count_as_their_copies(both: tuple[Floats, Floats], seed: int) -> None:
    x, y = both
    times = np.random.default_rng(seed).multinomial(len(x), np.full(len(x), 1 / len(x)), size=3)
    found = overall_tau(block_counts(x, y), times)
    expected = [by_loop(np.repeat(x, t, axis=0), np.repeat(y, t, axis=0)) for t in times]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(two_matrices(), st.integers(1, 4))
def test_precision_is_that_of_a_loop(both: tuple[Floats, Floats], k: int) -> None:
    x, y = both
    if k > x.shape[1]:
        with pytest.raises(UsageError, match="number of pairs"):
            precision_at(x, y, k)
        return
    found = precision_at(x, y, k, threshold=0.0)
    for g in range(len(x)):
        cells = [p for p in range(x.shape[1]) if not np.isnan(x[g, p] + y[g, p])]
        if len(cells) < k:
            assert np.isnan([found.top[g], found.bottom[g], found.mean[g]]).all()
            continue
        high, low = sorted(cells, key=lambda p: -x[g, p])[:k], sorted(cells, key=lambda p: x[g, p])[:k]
        assert found.top[g] == pytest.approx(sum(y[g, p] > 0 for p in high) / k)
        assert found.bottom[g] == pytest.approx(sum(y[g, p] < 0 for p in low) / k)
    defined = found.mean[~np.isnan(found.mean)]
    assert found.overall == pytest.approx(defined.mean() if len(defined) else X, nan_ok=True)


def test_shapes_are_checked() -> None:
    with pytest.raises(UsageError, match=r"same shape \(groups, pairs\), got \(2, 3\) and \(3, 2\)"):
        kendall_alignment(np.zeros((2, 3)), np.zeros((3, 2)))


def raters(truth: Floats, number: int, rng: np.random.Generator) -> Floats:
    return np.clip(np.rint(truth + rng.normal(0.0, 25.0, (number, *truth.shape))), 0.0, 100.0)


def test_draws_of_annotators_are_those_of_a_loop() -> None:
    """The widest interval goes from the lowest to the highest tau, moved; each is computed anew by scipy."""
    rng = np.random.default_rng(3)
    ratings = raters(rng.normal(50, 15, (3, 5)), 4, rng)
    ratings[0, 0] = X
    ratings[1, 1, 2] = X
    model = rng.normal(size=(3, 5))
    found = alignment_intervals(model, ratings, n=40, rng=np.random.default_rng(8), confidence=1 - 1e-12, k=2)
    rng, means = np.random.default_rng(8), np.full((40, 3, 5), X)
    for g in range(3):
        own = ratings[~np.isnan(ratings[:, g]).all(axis=1), g]
        times = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=40)
        for i, t in enumerate(times):
            chosen = np.repeat(own, t, axis=0)
            for p in range(5):
                column = chosen[~np.isnan(chosen[:, p]), p]
                means[i, g, p] = column.mean() if len(column) else X
    here = human_means(ratings)
    tau, precision = kendall_alignment(model, here).tau, precision_at(model, here, 2).overall
    taus = np.array([kendall_alignment(model, m).tau for m in means])
    rates = np.array([precision_at(model, m, 2).overall for m in means])
    part = found.annotators
    assert part.tau == pytest.approx(np.clip([taus.min(), taus.max()] + (tau - taus.mean()), -1, 1))
    assert part.precision == pytest.approx(np.clip([rates.min(), rates.max()] + (precision - rates.mean()), 0, 1))
    assert found.group_tau.shape == (3, 2)
    assert (found.group_tau[:, 0] <= kendall_alignment(model, here).group_tau).all()


@pytest.mark.parametrize("domains", [None, ["a", "a", "b", "c", "c", "c"], ["a"] * 6])
def test_intervals_over_groups_leave_out_one_domain_at_a_time(domains: list[str] | None) -> None:
    """Without domains, or with one only, one group at a time; annotators add to them in quadrature."""
    rng = np.random.default_rng(3)
    ratings = raters(rng.normal(50, 15, (7, 5)), 4, rng)
    model = rng.normal(size=(7, 5))
    model[6] = X  # a group without scores is no cluster
    given = None if domains is None else [*domains, "d"]
    found = alignment_intervals(model, ratings, n=40, rng=8, domains=given, confidence=0.9, k=2)
    clusters = np.array(domains if domains is not None and len(set(domains)) > 1 else range(6))
    here = human_means(ratings)
    measures: dict[str, Callable[[NDArray[np.float64], NDArray[np.float64]], float]] = {
        "tau": lambda x, y: kendall_alignment(x, y).tau,
        "precision": lambda x, y: precision_at(x, y, 2).overall,
    }
    for name, measured in measures.items():
        value, n = measured(model, here), len(set(clusters.tolist()))
        without = np.array(
            [measured(model[:6][clusters != c], here[:6][clusters != c]) for c in set(clusters.tolist())]
        )
        effective = 36 / (np.unique(clusters, return_counts=True)[1] ** 2).sum()
        half = np.sqrt((n - 1) * without.var()) * stats.t.ppf(0.95, effective - 1)
        limits = (-1.0, 1.0) if name == "tau" else (0.0, 1.0)
        assert getattr(found.groups, name) == pytest.approx(np.clip([value - half, value + half], *limits))
        parts = [np.subtract(getattr(part, name), value) for part in (found.groups, found.annotators)]
        ends = value + np.array([-1.0, 1.0]) * np.hypot(*parts)
        assert getattr(found.both, name) == pytest.approx(np.clip(ends, *limits))


def test_perfect_agreement_gets_a_bound_and_no_interval_without_width() -> None:
    """Twelve groups in the order of people, 20 annotators of one mind: nothing varies, and yet others may."""
    human = 8.0 * np.arange(12.0).reshape(3, 4).repeat(4, axis=0) + np.arange(4.0)
    found = alignment_intervals(human, np.tile(human, (20, 1, 1)), n=20, rng=0, k=2)
    assert kendall_alignment(human, human).tau == pytest.approx(1.0)
    low = -1.0 + 2.0 * 0.025 ** (1 / 6)  # twelve groups, compared two by two
    assert found.groups.tau == pytest.approx((low, 1.0))
    assert found.annotators.tau == pytest.approx((-1.0 + 2.0 * 0.025 ** (1 / 20), 1.0))
    assert found.group_tau == pytest.approx(np.tile(found.annotators.tau, (12, 1)))
    domains = alignment_intervals(human, human[None], n=5, rng=0, domains=np.arange(12) % 4, k=2)
    assert domains.groups.tau[0] == pytest.approx(-1.0 + 2.0 * 0.025 ** (1 / 2))
    assert np.isnan(domains.annotators.tau).all()  # one annotator says nothing about others
    assert np.isnan(domains.both.tau).all()
    sides = np.tile([10.0, 90.0, 80.0, 20.0], (12, 1))
    sure = alignment_intervals(sides, np.tile(sides, (20, 1, 1)), n=5, rng=0, k=2)
    assert precision_at(sides, sides, 2).overall == 1.0
    assert sure.groups.precision == pytest.approx((0.025 ** (1 / 12), 1.0))


@pytest.mark.slow
def test_intervals_over_annotators_hold_the_expected_tau() -> None:
    """95% intervals of 120 samples: 20 noisy annotators, ten groups. Unmoved, some 45% of them would."""
    rng = np.random.default_rng(0)
    truth = rng.normal(50.0, 15.0, (10, 16))
    model = 0.8 * (truth - 50.0) / 15.0 + 0.6 * rng.normal(size=truth.shape)
    expected = np.mean([kendall_alignment(model, human_means(raters(truth, 20, rng))).tau for _ in range(200)])
    samples = [alignment_intervals(model, raters(truth, 20, rng), n=150, rng=rng).annotators.tau for _ in range(120)]
    held = sum(low <= expected <= high for low, high in samples)
    assert 104 <= held <= 120  # 95% of 120 is 114, with a standard deviation of 2.4


@pytest.mark.slow
def test_intervals_over_few_groups_hold_the_expected_tau() -> None:
    """95% intervals of eight groups, redrawn with their annotators in 200 worlds. Plain percentiles hold it in 88%."""
    rng, pairs, taus, held = np.random.default_rng(1), np.linspace(-15.0, 15.0, 12), [], []
    for _ in range(200):
        truth = 50.0 + pairs + rng.normal(0.0, 15.0, (8, 12))
        model, ratings = 0.7 * truth + rng.normal(0.0, 10.0, truth.shape), raters(truth, 10, rng)
        taus.append(kendall_alignment(model, human_means(ratings)).tau)
        found = alignment_intervals(model, ratings, n=150, rng=rng)
        held.append((found.groups.tau, found.both.tau))
    ends, expected = np.array(held), np.mean(taus)
    for share in ((ends[:, :, 0] <= expected) & (expected <= ends[:, :, 1])).mean(axis=0):
        assert 0.91 <= share <= 1.0


def test_the_ceiling_is_the_tau_of_random_halves() -> None:
    """With two raters there is one split; with more, the mean is that of all splits."""
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 101, (4, 2, 6)).astype(float)
    ratings[2:, 0] = X
    only = stats.kendalltau(ratings[0, 0], ratings[1, 0]).statistic
    halves = [list(half) for half in itertools.combinations(range(4), 2)]
    every = [
        stats.kendalltau(ratings[a, 1].mean(axis=0), np.delete(ratings, a, axis=0)[:, 1].mean(axis=0)).statistic
        for a in halves
    ]
    found = noise_ceiling(ratings, n=3000, rng=1)
    assert found.group_tau[0] == pytest.approx(only)
    assert found.group_tau[1] == pytest.approx(np.mean(every), abs=4 * np.std(every) / np.sqrt(3000) + 1e-9)
    single = noise_ceiling(ratings[:, 1:], n=3000, rng=1)
    np.testing.assert_allclose(single.interval, [min(every), max(every)], atol=1e-12)


@pytest.mark.slow
@given(st.integers(0, 10_000))
def test_the_chosen_templates_are_those_of_a_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, human = rng.integers(-3, 4, (5, 2, 4)).astype(float), rng.integers(0, 5, (2, 4)).astype(float)
    scores[rng.integers(5)] = X if seed % 3 else 0.0
    options = [places for size in (1, 2) for places in itertools.combinations(range(5), size)]
    taus = {o: kendall_alignment(scores[list(o)].mean(axis=0), human).tau for o in options}
    defined = {o: round(tau, 12) for o, tau in taus.items() if not np.isnan(tau)}
    if not any(len(o) == 1 for o in defined):
        with pytest.raises(UsageError, match="every template lacks"):
            choose_templates(scores, human, "abcde")
        return
    best = max(defined.values())
    found = choose_templates(scores, human, "abcde")
    assert found.indices == next(o for o in options if defined.get(o) == best)
    assert found.names == tuple("abcde"[t] for t in found.indices)
    assert found.tau == pytest.approx(best)
    assert found.skipped == tuple("abcde"[t] for t in range(5) if np.isnan(scores[t]).any())


def test_shuffled_groups_are_a_loop_over_permutations() -> None:
    rng = np.random.default_rng(4)
    common = rng.normal(size=8)
    human = 50 + 10 * common + rng.normal(size=(5, 8))
    model = common + 0.1 * rng.normal(size=(5, 8))
    model[2, 3] = np.nan
    found = permute_groups(model, human, n=40, rng=7)
    draws, taus = np.random.default_rng(7), []
    there = ~np.isnan(model)
    seen = stats.kendalltau(model[there], human[there]).statistic
    for _ in range(40):
        permuted = human[draws.permutation(5)]
        taus.append(stats.kendalltau(model[there], permuted[there]).statistic)
    assert found == pytest.approx((np.mean(taus), (1 + sum(tau >= seen - 1e-12 for tau in taus)) / 41))


def test_domains_are_shuffled_and_groups_within_them() -> None:
    """Of two domains of two groups there are eight arrangements of whole domains and of groups within them."""
    rng = np.random.default_rng(4)
    human, model = 50 + 10 * rng.normal(size=(4, 5)), rng.normal(size=(4, 5))
    mean, p = permute_groups(model, human, n=4000, rng=7, domains=["a", "b", "b", "a"])
    orders = [
        (outer[0], inner[0], inner[1], outer[1])
        for one, other in (((0, 3), (1, 2)), ((1, 2), (0, 3)))
        for outer, inner in itertools.product(itertools.permutations(one), itertools.permutations(other))
    ]
    taus = np.array([stats.kendalltau(model.ravel(), human[list(order)].ravel()).statistic for order in orders])
    seen = stats.kendalltau(model.ravel(), human.ravel()).statistic
    assert len(set(orders)) == 8
    assert mean == pytest.approx(taus.mean(), abs=4 * taus.std() / np.sqrt(4000))
    assert p == pytest.approx((taus >= seen - 1e-12).mean(), abs=4 * 0.5 / np.sqrt(4000))
    of_groups = permute_groups(model, human, n=30, rng=7)
    assert permute_groups(model, human, n=30, rng=7, domains=["a"] * 4) == of_groups


def test_domains_of_different_size_exchange_their_means() -> None:
    """Deviations from the mean of a domain are permuted among domains of its size; means among all."""
    human = np.array([[10.0, 12.0], [20.0, 26.0], [60.0, 61.0]])
    model = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    mean, _ = permute_groups(model, human, n=2000, rng=0, domains=[0, 0, 1])
    small, large = human[2], human[:2].mean(axis=0)
    taus = [
        stats.kendalltau(model.ravel(), np.vstack([of_pair + beyond, [of_one]]).ravel()).statistic
        for of_pair, of_one in ((large, small), (small, large))
        for beyond in (human[:2] - large, human[1::-1] - large)
    ]
    assert mean == pytest.approx(np.mean(taus), abs=4 * np.std(taus) / np.sqrt(2000))


def test_what_all_groups_share_is_no_knowledge_of_groups() -> None:
    """A model that knows pairs and not groups agrees well, and no better than with groups shuffled."""
    rng = np.random.default_rng(1)
    common, own = rng.normal(size=16), rng.normal(size=(20, 16))
    human = 50 + 10 * common + 10 * own
    blind, knowing = (common + noise for noise in (rng.normal(size=(20, 16)), own + 0.3 * rng.normal(size=(20, 16))))
    mean, p = permute_groups(blind, human, n=200, rng=0)
    assert mean > 0.1
    assert p > 0.05
    assert permute_groups(knowing, human, n=200, rng=0)[1] == pytest.approx(1 / 201)


def test_a_group_that_no_template_scores_is_left_out() -> None:
    human = np.array([[10.0, 20.0, 30.0], [1.0, 2.0, 3.0]])
    scores = np.array([[[1.0, 2.0, 3.0], [X, X, X]], [[1.0, X, 3.0], [X, X, X]]])
    found = choose_templates(scores, human, ["whole", "gap"])
    assert (found.names, found.skipped) == (("whole",), ("gap",))
