"""Paired groups: the paper's tables, loops and scipy as witnesses, planted effects, and p-values under the null."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from biassay.stats.intersections import (
    PairedGroups,
    dominance,
    emergence,
    find_dominance,
    order_effects,
    precision_recall,
)
from biassay.stats.multiple_testing import benjamini_hochberg

Floats = NDArray[np.float64]
X = float("nan")
SIZES = (3, 4, 5)

# Cao et al. 2022, Table A9: two domains, and the mean tau of the pairs with their component of each.
TABLE_A9 = """age disability 0.532 0.475, gender disability 0.418 0.356, age gender 0.552 0.320,
age nationality 0.583 0.337, disability nationality 0.543 0.309, gender nationality 0.481 0.225,
politics nationality 0.287 0.179, race nationality 0.594 0.525, religion nationality 0.490 0.525,
socio nationality 0.540 0.338, age politics 0.319 0.177, disability politics 0.019 0.397,
gender politics 0.315 0.375, race politics 0.376 0.348, religion politics 0.380 0.271,
age race 0.520 0.395, disability race 0.538 0.392, gender race 0.478 0.371,
age religion 0.502 0.449, disability religion 0.465 0.463, gender religion 0.439 0.360,
race religion 0.522 0.460, age socio 0.562 0.406, disability socio 0.420 0.419,
gender socio 0.374 0.397, politics socio 0.433 0.290, race socio 0.387 0.488,
religion socio 0.404 0.439"""
# Table A8: who dominates whom.
TABLE_A8 = {
    "age": {"gender", "race", "nationality", "politics", "religion", "socio"},
    "politics": {"nationality", "socio", "disability"},
    "gender": {"race", "nationality"},
    "disability": {"race", "nationality"},
    "socio": {"race", "nationality"},
    "religion": {"politics"},
    "race": set(),
    "nationality": set(),
}


def test_table_a8_follows_from_table_a9_but_for_one_slip() -> None:
    """Table A8 has age dominate religion, Table A9 a difference of 0.053, and religion is dominated by none in A8."""
    names = list(TABLE_A8)
    rows = [row.split() for row in TABLE_A9.replace("\n", " ").split(", ")]
    kinds = [(names.index(a), names.index(b)) for a, b, _, _ in rows]
    table = find_dominance(kinds, [float(a) - float(b) for *_, a, b in rows], len(names))
    assert len(rows) == 28
    found = {name: {other for j, other in enumerate(names) if table[i, j]} for i, name in enumerate(names)}
    assert found == {**TABLE_A8, "age": TABLE_A8["age"] - {"religion"}}


def design(sizes: tuple[int, ...] = SIZES) -> dict[str, NDArray[np.intp]]:
    """All pairs of groups of different domains in both orders; every fifth pair of components in one order only."""
    domains = np.repeat(np.arange(len(sizes)), sizes)
    both = [(a, b) for a, b in itertools.combinations(range(len(domains)), 2) if domains[a] != domains[b]]
    pairs = both + [(b, a) for i, (a, b) in enumerate(both) if i % 5]
    reverse = [pairs.index((b, a)) if (b, a) in pairs else -1 for a, b in pairs]
    first, second = np.array(pairs).T
    return {"first": first, "second": second, "reverse": np.array(reverse), "domains": domains}


def made(scores: Floats, components: Floats, places: dict[str, NDArray[np.intp]]) -> PairedGroups:
    return PairedGroups(scores, components, **places)


def random_paired(rng: np.random.Generator, traits: int = 16, weights: tuple[float, ...] = (1, 1, 1)) -> PairedGroups:
    places = design()
    components = rng.normal(size=(sum(SIZES), traits))
    weight = np.array(weights)[places["domains"]][:, None] * components
    scores = weight[places["first"]] + weight[places["second"]] + rng.normal(size=(len(places["first"]), traits))
    return made(scores, components, places)


def tau(x: Floats, y: Floats) -> float:
    return float(stats.kendalltau(x, y).statistic)


def test_order_effects_are_those_of_scipy_in_a_loop() -> None:
    paired = random_paired(np.random.default_rng(1))
    found = order_effects(paired)
    for i, own in enumerate(paired.scores):
        one, other = (tau(own, paired.components[part[i]]) for part in (paired.first, paired.second))
        assert (found.tau_first[i], found.tau_second[i]) == pytest.approx((one, other))
        assert found.tau_best[i] == pytest.approx(max(one, other))
        j = paired.reverse[i]
        assert found.tau_reverse[i] == pytest.approx(tau(own, paired.scores[j]) if j >= 0 else X, nan_ok=True)
    both = paired.reverse >= 0
    assert found.first.value == pytest.approx(found.tau_first[both].mean())
    assert found.second.value == pytest.approx(found.tau_second[both].mean())
    assert found.difference.value == pytest.approx(found.second.value - found.first.value)
    assert found.reverse.value == pytest.approx(found.tau_reverse[both].mean())
    assert found.reverse.n == np.count_nonzero(both) / 2
    assert found.best.n == 47


def test_the_standard_error_adds_the_products_of_pairs_that_share_a_component() -> None:
    paired = random_paired(np.random.default_rng(2))
    found = order_effects(paired)
    units: dict[frozenset[int], list[float]] = {}
    for i, value in enumerate(found.tau_best):
        units.setdefault(frozenset((int(paired.first[i]), int(paired.second[i]))), []).append(float(value))
    left = {unit: np.mean(values) - found.best.value for unit, values in units.items()}
    # A pair of which one order exists weighs as much as one of which both do.
    shift = np.mean(list(left.values()))
    assert shift == pytest.approx(0.0, abs=1e-12)
    total = sum(a * b for u, a in left.items() for v, b in left.items() if u & v)
    alone = sum(a * a for a in left.values())
    assert found.best.standard_error == pytest.approx(np.sqrt(max(total, alone) / (47 * 46)))


def test_the_standard_error_is_how_the_mean_varies() -> None:
    """Of 150 worlds with other components: independent pairs would claim less than it is."""
    rng = np.random.default_rng(3)
    worlds = [order_effects(random_paired(rng, weights=(2, 1, 0))).best for _ in range(150)]
    spread = np.std([world.value for world in worlds])
    assert 0.7 < np.mean([world.standard_error for world in worlds]) / spread < 1.3


def test_dominance_is_that_of_a_loop() -> None:
    paired = random_paired(np.random.default_rng(4), weights=(3, 1, 1))
    paired.scores[0] = 1.0  # no tau: left out
    found = dominance(paired)
    np.testing.assert_array_equal(found.domains, [[0, 1], [0, 2], [1, 2]])
    for row, (a, b) in enumerate(found.domains):
        taus = []
        for i, own in enumerate(paired.scores[1:], start=1):
            parts = {int(paired.domains[part[i]]): int(part[i]) for part in (paired.first, paired.second)}
            if set(parts) == {a, b}:
                taus.append([tau(own, paired.components[parts[domain]]) for domain in (a, b)])
        np.testing.assert_allclose(found.tau[row], np.mean(taus, axis=0))
        assert found.n[row] == len(taus)
        assert found.interval[row] == pytest.approx(by_loops(paired, paired.domains.tolist(), int(a), int(b)))
    np.testing.assert_allclose(found.difference, found.tau[:, 0] - found.tau[:, 1])
    assert found.reaches_margin[0].tolist() == [False, True, True]


def by_loops(paired: PairedGroups, domains: list[int], a: int, b: int) -> tuple[float, float]:
    """Leave out one component of either domain after the other; the variances of both domains add up."""
    gaps: dict[tuple[int, int], list[float]] = {}
    for i, own in enumerate(paired.scores):
        parts = {domains[int(part[i])]: int(part[i]) for part in (paired.first, paired.second)}
        if set(parts) == {a, b} and len(set(own)) > 1:
            gap = tau(own, paired.components[parts[a]]) - tau(own, paired.components[parts[b]])
            gaps.setdefault((parts[a], parts[b]), []).append(gap)
    every = [gap for own in gaps.values() for gap in own]
    variance, sizes = 0.0, []
    for place in (0, 1):
        names = {key[place] for key in gaps}
        without = [np.mean([g for key, own in gaps.items() if key[place] != name for g in own]) for name in names]
        variance += (len(names) - 1) * float(np.var(without))
        sizes.append(len(names))
    half = np.sqrt(variance) * stats.t.ppf(0.975, min(sizes) - 1)
    return max(-2.0, float(np.mean(every) - half)), min(2.0, float(np.mean(every) + half))


def test_a_domain_dominates_if_the_interval_says_so() -> None:
    """A difference of more than 0.1 in few pairs is no dominance; a smaller one in many pairs may be."""
    claims, margins = [], []
    for seed in range(40):
        found = dominance(random_paired(np.random.default_rng(seed), weights=(1.6, 1, 1)))
        for (a, b), (low, high) in zip(found.domains, found.interval, strict=True):
            assert found.dominates[a, b] == (low > 0.0)
            assert found.dominates[b, a] == (high < 0.0)
            claims.append(bool(found.dominates[a, b] or found.dominates[b, a]))
            margins.append(bool(found.reaches_margin[a, b] or found.reaches_margin[b, a]))
    assert {(False, True), (True, True)} <= set(zip(claims, margins, strict=True))


def test_one_component_of_a_domain_gives_no_interval() -> None:
    rng = np.random.default_rng(0)
    lists = {"first": [0, 0, 0], "second": [1, 2, 3], "reverse": [-1] * 3, "domains": [0, 1, 1, 1]}
    places = {key: np.array(values) for key, values in lists.items()}
    single = rng.normal(size=(4, 8))
    found = dominance(PairedGroups(np.tile(single[:1], (3, 1)), single, **places))
    assert found.tau[0, 0] == pytest.approx(1.0)
    assert np.isnan(found.interval).all()
    assert not found.dominates.any()
    assert found.reaches_margin[0, 1]


@pytest.mark.parametrize(("each", "is_shown"), [(3, False), (8, True)])
def test_pairs_that_are_all_the_same_get_a_bound(each: int, is_shown: bool) -> None:
    """Every pair scores like its first component and against its second: a gap of 2 in all, with a variance of 0."""
    rising = np.arange(8.0)
    single = np.concatenate([np.tile(rising, (each, 1)), np.tile(-rising, (each, 1))])
    first, second = (side.ravel() for side in np.meshgrid(np.arange(each), each + np.arange(each)))
    places = {"reverse": np.full(each**2, -1), "domains": np.repeat([0, 1], each)}
    found = dominance(PairedGroups(np.tile(rising, (each**2, 1)), single, first, second, **places))
    assert found.difference[0] == pytest.approx(2.0)
    assert found.interval[0] == pytest.approx([-2.0 + 4.0 * 0.025 ** (1 / each), 2.0])
    assert found.dominates[0, 1] == is_shown


def test_pairs_within_a_domain_are_counted_and_left_out() -> None:
    rng = np.random.default_rng(0)
    places = {"first": np.array([0, 0]), "second": np.array([1, 2]), "reverse": np.array([-1, -1])}
    paired = PairedGroups(rng.normal(size=(2, 5)), rng.normal(size=(3, 5)), **places, domains=np.array([0, 0, 1]))
    found = dominance(paired)
    assert (found.within, found.n.tolist()) == (1, [1])
    nothing = PairedGroups(rng.normal(size=(2, 5)), rng.normal(size=(3, 5)), **places, domains=np.array([0, 0, 0]))
    empty = dominance(nothing)
    assert empty.interval.shape == (0, 2)
    assert empty.dominates.shape == (1, 1)


@pytest.mark.parametrize("sizes", [(2, 2), (8, 8)])
def test_intervals_hold_the_true_difference(sizes: tuple[int, int]) -> None:
    """Two domains alike: the expected difference is zero. Of 100 intervals at least 90 hold it."""
    rng, held = np.random.default_rng(6), 0
    places = design(sizes)
    for _ in range(100):
        weight = rng.gamma(2.0, 1.0, sum(sizes))  # some groups are strong, whatever their domain
        components = rng.normal(size=(sum(sizes), 16))
        strong = weight[:, None] * components
        scores = strong[places["first"]] + strong[places["second"]] + rng.normal(size=(len(places["first"]), 16))
        low, high = dominance(made(scores, components, places)).interval[0]
        held += bool(low <= 0.0 <= high)
    assert held >= 90


def test_emergence_is_that_of_a_loop() -> None:
    paired = random_paired(np.random.default_rng(7), traits=6)
    paired.scores[3, 2] = X
    paired.components[1, 4] = X
    found = emergence(paired, top=7)
    blocks = list(zip(paired.domains[paired.first], paired.domains[paired.second], strict=True))
    for side, sign in ((found.increase, 1.0), (found.decrease, -1.0)):
        parts = sign * paired.components[paired.first], sign * paired.components[paired.second]
        bound = np.maximum(*parts)
        np.testing.assert_allclose(side.excess, sign * paired.scores - bound)
        np.testing.assert_allclose(side.bound, sign * bound)
        for i, t in itertools.product(range(len(blocks)), range(6)):
            if np.isnan(side.excess[i, t]):
                assert np.isnan([side.p_value[i, t], side.adjusted[i, t]]).all()
                continue
            rows = [j for j, b in enumerate(blocks) if b == blocks[i] and not np.isnan(side.excess[j, t])]
            scores, bounds = sign * paired.scores[rows, t], bound[rows, t]
            reached = [s - m >= side.excess[i, t] - 1e-9 for s in scores for m in bounds]
            assert side.p_value[i, t] == pytest.approx(np.mean(reached))
        flat = np.sort(side.excess[~np.isnan(side.excess)])[::-1][:7]
        np.testing.assert_allclose(side.excess[tuple(side.top.T)], flat[flat > 0])
    every = np.concatenate([found.increase.p_value, found.decrease.p_value]).ravel()
    theirs = stats.false_discovery_control(every[~np.isnan(every)])
    ours = np.concatenate([found.increase.adjusted, found.decrease.adjusted]).ravel()
    np.testing.assert_allclose(ours[~np.isnan(ours)], theirs)


def own_terms(paired: PairedGroups) -> Floats:
    """By least squares, t of a term of its own for every pair and trait, beside a term for each of its components."""
    kinds = np.stack([paired.domains[paired.first], paired.domains[paired.second]], axis=1)
    found = np.full(paired.scores.shape, X)
    for i, t in np.argwhere(~np.isnan(paired.scores)):
        rows = [j for j in np.flatnonzero((kinds == kinds[i]).all(axis=1)) if not np.isnan(paired.scores[j, t])]
        terms = [paired.first[rows] == a for a in set(paired.first[rows])]
        terms += [paired.second[rows] == b for b in sorted(set(paired.second[rows]))[1:]]
        design_matrix = np.column_stack([*terms, np.array(rows) == i]).astype(float)
        freedom = len(rows) - design_matrix.shape[1]
        if freedom < 1 or np.linalg.matrix_rank(design_matrix) < design_matrix.shape[1]:
            continue
        solution = np.linalg.lstsq(design_matrix, paired.scores[rows, t])[0]
        left = paired.scores[rows, t] - design_matrix @ solution
        variance = left @ left / freedom * np.linalg.inv(design_matrix.T @ design_matrix)[-1, -1]
        found[i, t] = solution[-1] / np.sqrt(variance)
    return found


def test_the_additive_p_value_ranks_the_mean_residual_of_both_orders() -> None:
    paired = random_paired(np.random.default_rng(10), traits=5)
    paired.scores[3, 2] = X
    found, terms = emergence(paired), own_terms(paired)
    kinds = [(int(paired.domains[a]), int(paired.domains[b])) for a, b in zip(paired.first, paired.second, strict=True)]
    for side, sign in ((found.increase, 1.0), (found.decrease, -1.0)):
        for i, t in np.ndindex(terms.shape):
            like = [j for j, kind in enumerate(kinds) if kind == kinds[i]]
            own, back = terms[i, t], paired.reverse
            others = [terms[j, u] for j in like if back[j] < 0 for u in range(5)]
            if back[i] >= 0:
                own = (terms[i, t] + terms[back[i], t]) / 2
                others = [(terms[j, u] + terms[back[j], u]) / 2 for j in like if back[j] >= 0 for u in range(5)]
            reached = [sign * value >= sign * own - 1e-7 for value in others if not np.isnan(value)]
            assert side.p_additive[i, t] == pytest.approx(X if np.isnan(own) else np.mean(reached), nan_ok=True)
    assert np.isnan(found.increase.p_additive[3, 2])
    assert np.count_nonzero(np.isnan(found.increase.p_additive)) < 20


def test_p_values_are_uniform_under_their_null_hypothesis() -> None:
    """Scores that have nothing to do with components, one of which makes all its pairs seem emergent."""
    rng, places = np.random.default_rng(8), design((6, 6))
    permuted = []
    for _ in range(60):
        components = rng.normal(size=(12, 8))
        components[0] -= 5.0
        unrelated = emergence(made(rng.normal(size=(len(places["first"]), 8)), components, places)).increase
        permuted.append(unrelated.p_value.ravel())
    for share in (0.05, 0.2, 0.5, 0.8):
        assert share - 0.05 <= np.mean(np.concatenate(permuted) <= share) <= share + 0.01


NOISE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - 1.0,
    "of other sizes": lambda rng, shape: rng.normal(size=shape) * np.geomspace(0.2, 5.0, shape[-1]),
}


@pytest.mark.parametrize("kind", list(NOISE))
def test_of_one_pair_additive_p_values_keep_their_level_whatever_the_noise(kind: str) -> None:
    """Over all pairs ranks do so by definition. Of one pair 5% are expected at 0.05, and its traits are alike."""
    rng, places, found = np.random.default_rng(2), design((6, 6)), []
    for _ in range(200):
        shares = rng.normal(size=(12, 8))
        noise = NOISE[kind](rng, (len(places["first"]), 8))
        sums = shares[places["first"]] + shares[places["second"]] + noise
        found.append(emergence(made(sums, shares, places)).increase.p_additive[1])
    assert 0.03 <= np.mean(np.array(found) <= 0.05) <= 0.065
    assert np.mean(np.array(found) <= 0.01) <= 0.015


@pytest.mark.parametrize(("freedom", "shared"), [(1e6, 0.0), (3.0, 0.0), (1e6, 0.3), (1e6, 0.8), (1.0, 0.8)])
def test_sums_with_noise_are_never_emergent_whatever_the_noise(freedom: float, shared: float) -> None:
    """Normal, t3 and Cauchy: one cell has p <= 0.05 in 5% of worlds, and none has a q below 1.

    ``shared``: which part of its variance the noise of the two orders of a pair has in common.
    """
    rng, places, worlds, cell = np.random.default_rng(8), design((6, 6)), 60, 0
    unordered = np.minimum(np.arange(len(places["first"])), np.where(places["reverse"] < 0, 999, places["reverse"]))
    for _ in range(worlds):
        shares = rng.normal(size=(12, 8))
        own, of_pair = rng.standard_t(freedom, size=(2, len(unordered), 8))
        noise = np.sqrt(1.0 - shared) * own + np.sqrt(shared) * of_pair[unordered]
        found = emergence(made(shares[places["first"]] + shares[places["second"]] + noise, shares, places))
        cell += bool(found.increase.p_additive[1, 0] <= 0.05)
        for side in (found.increase, found.decrease):
            assert benjamini_hochberg(side.p_additive.ravel()).adjusted.min() == pytest.approx(1.0)
    assert places["reverse"][1] >= 0
    assert stats.binom.ppf(0.0005, worlds, 0.05) <= cell <= stats.binom.ppf(0.9995, worlds, 0.05)


def test_a_planted_trait_is_ranked_first_but_not_a_component_that_raises_all_its_pairs() -> None:
    rng, places = np.random.default_rng(9), design((12, 12))
    components = rng.normal(0.0, 0.1, (24, 4))
    scores = rng.normal(0.0, 0.1, (len(places["first"]), 4))
    more, less, once = (6, 2), (8, 1), (12, 3)
    for (row, trait), planted in ((more, 1.5), (less, -1.5)):
        scores[[row, places["reverse"][row]], trait] += planted
    scores[once] += 1.5  # in one of its orders: a chance of one wording, for all that is known
    scores[(places["first"] == 3) | (places["second"] == 3), 0] += 1.0
    found = emergence(made(scores, components, places))
    in_both = np.count_nonzero(places["reverse"] >= 0) / 2
    for side, (row, trait) in ((found.increase, more), (found.decrease, less)):
        pair = sorted([[row, trait], [int(places["reverse"][row]), trait]])
        assert np.argwhere(side.p_additive <= 1.5 / (4 * in_both)).tolist() == pair
    assert {tuple(place) for place in found.increase.top[:3].tolist()} == {more, (places["reverse"][6], 2), once}
    assert 3 in (places["first"][found.increase.top[3, 0]], places["second"][found.increase.top[3, 0]])
    m = np.count_nonzero(places["first"] < places["second"])
    assert 1 / m**2 <= found.increase.p_value[once] <= 2 / m
    assert found.increase.adjusted.min() > 0.05  # as documented: the permutation cannot establish a cell


def test_precision_and_recall_beside_guessing() -> None:
    """Of 25 cells 18 are true, as in the paper's precision of random guessing of 0.72."""
    truth = np.arange(25) < 18
    found = np.zeros(25, dtype=bool)
    found[[*range(12), 20, 21]] = True
    result = precision_recall(found.reshape(5, 5), truth.reshape(5, 5))
    assert (result.precision, result.recall) == pytest.approx((12 / 14, 12 / 18))
    assert (result.tp, result.fp, result.fn, result.tn) == (12, 2, 6, 5)
    assert (result.chance_precision, result.chance_recall) == (0.72, 0.5)
    table = np.array([[result.tp, result.fp], [result.fn, result.tn]])
    assert result.p_value == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue)


def test_without_reverses_or_pairs_means_are_missing() -> None:
    places = {"first": np.array([0]), "second": np.array([1]), "reverse": np.array([-1]), "domains": np.array([0, 1])}
    found = order_effects(made(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), places))
    assert (found.best.value, found.best.n, found.reverse.n) == (1.0, 1, 0)
    assert np.isnan([found.best.standard_error, found.reverse.value, found.first.value]).all()


def test_precision_of_nothing_is_missing() -> None:
    result = precision_recall([False, False], [True, False])
    assert np.isnan(result.precision)
    assert (result.recall, result.p_value) == (0.0, 1.0)
    assert np.isnan(precision_recall([True], [False]).recall)
