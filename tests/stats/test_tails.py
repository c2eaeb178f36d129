"""Routes to the tail are each other's witnesses; brute force and integer counts are everybody's."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from biassay.errors import MeasurementError, UnknownNameError
from biassay.stats.counting import count_by_halves, count_by_middle
from biassay.stats.enumeration import count_by_enumeration
from biassay.stats.lattice import lattice_step
from biassay.stats.rounded_counting import bounds_by_rounding
from biassay.stats.saddlepoint import saddlepoint_tail
from biassay.stats.subsets import SubsetTail, log_binomial
from biassay.stats.tails import tail_probability

pytestmark = pytest.mark.slow

Scores = NDArray[np.float64]


def brute_force(tail: SubsetTail) -> int:
    """Every subset, summed without rounding."""
    return sum(sum(chosen) >= tail.level for chosen in itertools.combinations(tail.levels.tolist(), tail.size))


def separated(n: int, shift: float, seed: int = 0) -> tuple[Scores, Scores]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) + shift, rng.normal(size=n)


def integer_counts(levels: list[int], size: int) -> list[int]:
    """Number of size-``size`` subsets of small integers with each sum.

    Dynamic programming in Python's integers, all sums of a size packed into one of them: adding a level to every sum
    is a shift.
    """
    bits = len(levels) + 1
    packed = [1] + [0] * size
    for level in levels:
        for chosen in range(size, 0, -1):
            packed[chosen] += packed[chosen - 1] << (level * bits)
    mask = (1 << bits) - 1
    width = sum(sorted(levels)[-size:]) + 1
    raw = packed[size].to_bytes((width * bits + 7) // 8, "little")
    as_bits = int.from_bytes(raw, "little")
    return [(as_bits >> (total * bits)) & mask for total in range(width)]


def integer_tail(counts: list[int], at: int, total: int) -> float:
    """Natural logarithm of the share of subsets with a sum of at least ``at``."""
    return math.log(sum(counts[at:])) - math.log(total)


# On a grid much coarser than the tolerance for ties, so that a tie is a tie.
scores = st.integers(-(10**6), 10**6).map(lambda i: i / 1e6)


@given(x=st.lists(scores, min_size=1, max_size=6), y=st.lists(scores, min_size=1, max_size=6))
def test_enumeration_and_counting_agree_with_brute_force(x: list[float], y: list[float]) -> None:
    tail = SubsetTail.of(np.array(x), np.array(y))
    expected = brute_force(tail)
    assert count_by_enumeration(tail) == expected
    assert count_by_halves(tail, 1 << 20) == expected


@given(
    x=st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7]), min_size=2, max_size=6),
    y=st.lists(scores, min_size=2, max_size=6),
)
def test_equal_scores_are_ties_in_any_order(x: list[float], y: list[float]) -> None:
    """0.1 + 0.2 + 0.3 summed in another order differs in the last bit; the count must not."""
    tail = SubsetTail.of(np.array(x), np.array(y))
    shuffled = SubsetTail.of(np.array(x)[::-1], np.array(y)[::-1])
    assert count_by_enumeration(tail) == count_by_enumeration(shuffled) == count_by_halves(shuffled, 1 << 20)


@given(
    x=st.lists(st.integers(-50, 50), min_size=2, max_size=5), y=st.lists(st.integers(-50, 50), min_size=2, max_size=5)
)
def test_a_common_shift_or_scale_changes_nothing(x: list[int], y: list[int]) -> None:
    still = SubsetTail.of(np.array(x, float), np.array(y, float))
    moved = SubsetTail.of(0.001 * np.array(x) + 3.0, 0.001 * np.array(y) + 3.0)
    assert count_by_enumeration(still) == count_by_halves(still, 1 << 12)
    if len({*x, *y}) > 1:
        assert count_by_enumeration(moved) == count_by_enumeration(still)


@pytest.mark.parametrize(("n", "m"), [(3, 11), (11, 3), (2, 8), (9, 4)])
def test_unequal_sizes_keep_their_sizes(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    tail = SubsetTail.of(rng.normal(size=n) + 0.5, rng.normal(size=m))
    assert tail.n_partitions == math.comb(n + m, n)
    assert count_by_enumeration(tail) == count_by_halves(tail, 1 << 20) == brute_force(tail)


@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.3, 1.0])
def test_saddle_point_is_near_the_integer_count_for_16_v_16(shift: float) -> None:
    tail = SubsetTail.of(*separated(16, shift, seed=3))
    exact = tail_probability(tail, "counting")
    smooth = tail_probability(tail, "saddle-point")
    assert smooth.value == pytest.approx(exact.value, rel=1e-4)
    assert abs(smooth.value / exact.value - 1.0) <= smooth.error


@pytest.mark.parametrize("shift", [1.6, 1.9, 2.2, 2.6])
def test_stated_error_bounds_the_true_one_in_far_tails(shift: float) -> None:
    for seed in range(6):
        tail = SubsetTail.of(*separated(25, shift, seed))
        smooth = saddlepoint_tail(tail)
        count = count_by_halves(tail, 1 << 22)
        if smooth is None or count is None:
            continue
        true = abs(math.exp(smooth.log_p) * tail.n_partitions / count - 1.0)
        assert true <= smooth.relative_error


@pytest.mark.parametrize("n", [25, 32, 60])
def test_automatic_route_is_exact_or_states_less_than_one_in_a_thousand(n: int) -> None:
    for shift in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0):
        found = tail_probability(SubsetTail.of(*separated(n, shift, seed=n)))
        assert found.error < 1e-3
        assert found.route in ("counting", "saddle-point")


def test_perfect_separation_is_one_partition_however_large_the_sets() -> None:
    for n in (12, 25, 60, 350):
        x, y = separated(n, 0.0)
        tail = SubsetTail.of(np.abs(x) + 1.0, -np.abs(y) - 1.0)
        found = tail_probability(tail)
        assert found.log10 == pytest.approx(-log_binomial(2 * n, n) / math.log(10.0), rel=1e-12)
        assert found.error == 0.0


@pytest.mark.parametrize(("n", "top", "shift", "below"), [(40, 30, 14, 1e-10), (130, 12, 8, 1e-60), (60, 9, 0, 1.0)])
def test_lattices_equal_integers_down_to_1e_60(n: int, top: int, shift: int, below: float) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.integers(shift, top + 1, n), rng.integers(0, top + 1 - shift, n)
    counts, total = integer_counts([*map(int, x), *map(int, y)], n), math.comb(2 * n, n)
    for first, second in ((x, y), (y, x)):
        expected = integer_tail(counts, int(first.sum()), total)
        tail = SubsetTail.of(first * 0.37, second * 0.37)
        assert tail.lattice
        assert tail.unit == pytest.approx(0.37)
        found = tail_probability(tail)
        assert found.error <= 1e-6
        assert found.log10 * math.log(10.0) == pytest.approx(expected, abs=1e-7)
    assert integer_tail(counts, int(x.sum()), total) < math.log(below)


def test_saddle_point_is_sound_down_to_1e_60() -> None:
    """Integers of many values are the witness, at thresholds from the middle to the far tail."""
    rng = np.random.default_rng(5)
    n = 160
    levels = np.concatenate([rng.integers(15, 61, n), rng.integers(0, 46, n)])
    counts, total = integer_counts([int(v) for v in levels], n), math.comb(2 * n, n)
    for log10 in (-1.0, -5.0, -20.0, -40.0, -60.0):
        low, high = int(n * levels.mean()), len(counts)
        while high - low > 1:
            middle = (low + high) // 2
            above = integer_tail(counts, middle, total) > log10 * math.log(10.0)
            low, high = (middle, high) if above else (low, middle)
        smooth = saddlepoint_tail(SubsetTail(levels, n, low))
        assert smooth is not None
        assert smooth.log_p == pytest.approx(integer_tail(counts, low, total), abs=1e-6)


def test_scores_without_a_common_step_have_no_lattice() -> None:
    assert lattice_step(np.random.default_rng(0).normal(size=50), 1e-15) is None
    assert lattice_step(np.ones(4), 1e-15) is None
    assert lattice_step(np.array([0.1, 0.4, 1.0, 0.7]), 1e-15) == pytest.approx(0.3)
    assert lattice_step(np.array([0.0, 1.0, 2.0, 3.0 + 1e-9]), 1e-15) is None


def _integers(rng: np.random.Generator, n: int, jitter: float) -> Scores:
    return rng.integers(0, 5, n) + rng.normal(0.0, jitter, n)


ODD_SCORES = {
    "nearly integers": lambda rng, n: (_integers(rng, n, 1e-3), _integers(rng, n, 1e-3)),
    "very nearly integers": lambda rng, n: (_integers(rng, n, 1e-10), _integers(rng, n, 1e-10)),
    "two clusters": lambda rng, n: (rng.integers(0, 2, n) + rng.normal(0, 0.01, n), rng.integers(0, 2, n) * 1.0),
    "three values": lambda rng, n: (rng.choice([0.0, 1.0, 2**0.5], n), rng.choice([0.0, 1.0, 2**0.5], n)),
    "equal sentences": lambda rng, n: (rng.normal(size=n // 4 + 1).repeat(4)[:n], rng.normal(size=n).round(1)),
    "outlier": lambda rng, n: (np.append(rng.normal(size=n - 1), -1e5), rng.normal(size=n)),
    "heavy tails": lambda rng, n: (rng.lognormal(0.0, 1.5, n), rng.lognormal(0.0, 1.5, n)),
    "log-uniform": lambda rng, n: (10.0 ** rng.uniform(-6, 6, n), 10.0 ** rng.uniform(-6, 6, n)),
    "very heavy tails": lambda rng, n: (rng.standard_cauchy(n), rng.standard_cauchy(n)),
}


@pytest.mark.parametrize("kind", ODD_SCORES)
def test_odd_scores_are_right_within_the_stated_error(kind: str) -> None:
    """22 v 22 is too large for the quick count and small enough for a patient one."""
    tail = SubsetTail.of(*ODD_SCORES[kind](np.random.default_rng(0), 22))
    found = tail_probability(tail)
    count = count_by_halves(tail, 1 << 23)
    assert count is not None
    assert found.value == pytest.approx(count / tail.n_partitions, rel=found.error + 1e-12)
    assert found.error <= 1e-3


@pytest.mark.parametrize("kind", ODD_SCORES)
def test_the_integral_alone_owns_up_to_what_it_cannot_do(kind: str) -> None:
    for seed in range(2):
        tail = SubsetTail.of(*ODD_SCORES[kind](np.random.default_rng(seed), 18))
        smooth = saddlepoint_tail(tail)
        count = count_by_halves(tail, 1 << 22)
        assert count is not None
        if smooth is not None:
            assert abs(math.exp(smooth.log_p) * tail.n_partitions / count - 1.0) <= smooth.relative_error


def test_a_binary_score_is_hypergeometric() -> None:
    from scipy import stats

    x, y = np.repeat([1.0, 0.0], [1020, 980]), np.repeat([1.0, 0.0], [980, 1020])
    found = tail_probability(SubsetTail.of(x, y))
    assert found.value == pytest.approx(stats.hypergeom.sf(1019, 4000, 2000, 2000), rel=1e-8)


def test_ties_at_the_border_are_counted_however_many() -> None:
    """Only equal scores are undecided: which of 300 ones join the subset is a binomial."""
    tail = SubsetTail.of(np.repeat([1.0, 2**0.5], [100, 200]), np.repeat([0.0, 1.0], [200, 100]))
    found = tail_probability(tail)
    expected = math.log10(math.comb(200, 100)) - math.log10(math.comb(600, 300))
    assert found.log10 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["one step in another", "the fourth of four digits", "three values and a step"])
@pytest.mark.parametrize("fine", [0.03, 8e-5, 1e-5 * 2**0.5, 1e-7, 3e-11])
def test_structure_at_any_scale_is_within_the_stated_error(kind: str, fine: float) -> None:
    """Scores are whole multiples of one and of a fine step: counting both numbers apart is exact."""
    n, rng = 40, np.random.default_rng(0)
    coarse, steps = {
        "one step in another": (rng.integers(0, 2, 2 * n), rng.integers(0, 6, 2 * n)),
        "the fourth of four digits": (np.repeat([1, 0, 1, 0], [25, 15, 15, 25]), np.arange(2 * n) * 7 % 4),
        "three values and a step": (rng.integers(0, 3, 2 * n), np.arange(2 * n) * 7 % 4),
    }[kind]
    counts = np.zeros((n + 1, coarse.sum() + 1, steps.sum() + 1))
    counts[0, 0, 0] = 1.0
    for a, b in zip(coarse, steps, strict=True):
        counts[1:, a:, b:] += counts[:-1, : counts.shape[1] - a, : counts.shape[2] - b].copy()
    sums = np.add.outer(np.arange(counts.shape[1]), fine * np.arange(counts.shape[2]))
    observed = coarse[:n].sum() + fine * steps[:n].sum()
    expected = counts[n][sums >= observed - 1e-13].sum() / counts[n].sum()
    scores = 0.9 / 1.01 * (coarse + fine * steps)
    found = tail_probability(SubsetTail.of(scores[:n], scores[n:]))
    assert abs(found.value / expected - 1.0) <= found.error + 1e-9
    if fine > 5e-5:
        assert found.error < 1e-3


@pytest.mark.parametrize(("n", "m"), [(5, 200), (200, 5), (3, 900), (4, 250), (6, 90)])
def test_a_few_against_very_many_are_counted(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    drawn = rng.choice(2 * (n + m), n + m, replace=False)
    x, y = drawn[:n], drawn[n:]
    counts = np.zeros((min(n, m) + 1, 2 * (n + m) * min(n, m)))
    counts[0, 0] = 1.0
    for level in drawn:
        counts[1:, level:] += counts[:-1, : counts.shape[1] - level].copy()
    small = int(min(x, y, key=len).sum())
    tail = counts[-1][small:] if n < m else counts[-1][: small + 1]
    found = tail_probability(SubsetTail.of(x * 0.1, y * 0.1))
    assert found.value == pytest.approx(tail.sum() / math.comb(n + m, n), rel=1e-12)
    assert tail_probability(SubsetTail.of(rng.normal(size=n), rng.normal(size=m))).error == 0.0


@given(x=st.lists(scores, min_size=3, max_size=6), y=st.lists(scores, min_size=6, max_size=8))
def test_counting_around_the_middle_agrees_with_brute_force(x: list[float], y: list[float]) -> None:
    tail = SubsetTail.of(np.array(x), np.array(y))
    assert count_by_middle(tail) == brute_force(tail)


@pytest.mark.parametrize("decades", [6, 12, 30])
def test_scores_over_many_decades_have_a_finite_error(decades: int) -> None:
    rng = np.random.default_rng(1)
    found = tail_probability(SubsetTail.of(*(10.0 ** rng.uniform(0, decades, (2, 60)))))
    assert found.error < 0.01
    assert found.route in ("saddle-point", "rounded counting", "counting", "counting and saddle-point")


@pytest.mark.parametrize("seed", [2, 3, 11])
def test_near_sums_are_no_ties_where_sums_lie_close(seed: int) -> None:
    """Scores known to 1e-5 only, and some of the 48,620 sums nearer than that: the scores given are counted."""
    x, y = separated(9, 0.0, seed)
    exact = [Fraction(score) for score in (*x, *y)]
    expected = sum(sum(chosen) >= sum(exact[:9]) for chosen in itertools.combinations(exact, 9))
    tail = SubsetTail.of(x, y, noise=1e-5)
    assert count_by_enumeration(tail) == count_by_halves(tail, 1 << 20) == expected


@pytest.mark.parametrize(("n", "m"), [(300, 2), (2, 300), (60, 2), (2, 5000), (150, 4)])
def test_very_unequal_sizes_are_exact_and_quick(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n), rng.normal(size=m)
    found = tail_probability(SubsetTail.of(x, y))
    assert found.error == 0.0
    if min(n, m) == 2:
        pooled, small = np.concatenate([x, y]), min((x, y), key=len)
        sums = np.add.outer(pooled, pooled)[np.triu_indices(len(pooled), 1)]
        share = np.mean(sums >= small.sum() - 1e-12) if n == 2 else np.mean(sums <= small.sum() + 1e-12)
        assert found.value == pytest.approx(share, rel=1e-9)


def test_scores_that_are_all_equal_have_p_one() -> None:
    assert tail_probability(SubsetTail.of(np.full(40, 0.1), np.full(40, 0.1))).value == 1.0


def test_ties_survive_a_large_offset() -> None:
    """Around 0.9 numbers are known to 1e-16, and sums of a few of them to little more."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, y = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
        moved = SubsetTail.of(0.9 + 1e-6 * x, 0.9 + 1e-6 * y)
        assert count_by_enumeration(moved) == count_by_enumeration(SubsetTail.of(x * 1.0, y * 1.0))


def test_p_near_one_is_the_complement() -> None:
    for n in (16, 40):
        x, y = separated(n, 1.0, seed=1)
        upper, lower = tail_probability(SubsetTail.of(x, y)), tail_probability(SubsetTail.of(y, x))
        assert upper.value + lower.value == pytest.approx(1.0, abs=1e-6)


def test_probability_too_small_for_a_float_keeps_its_logarithm() -> None:
    x, y = separated(600, 0.0)
    found = tail_probability(SubsetTail.of(np.abs(x) + 1.0, -np.abs(y) - 1.0))
    assert found.value == 0.0
    assert found.log10 == pytest.approx(-log_binomial(1200, 600) / math.log(10.0))


def test_counting_declines_what_memory_cannot_hold() -> None:
    tail = SubsetTail.of(*separated(40, 0.0))
    assert count_by_halves(tail, 1 << 12) is None


def test_forced_routes_say_why_they_cannot() -> None:
    x, y = separated(20, 30.0)
    with pytest.raises(MeasurementError, match="saddle point"):
        tail_probability(SubsetTail.of(x, y), "saddle-point")
    with pytest.raises(UnknownNameError, match="did you mean 'counting'"):
        tail_probability(SubsetTail.of(x, y), "countng")  # type: ignore[arg-type]


def reference_cases(reference: Path) -> dict[str, dict[str, object]]:
    return dict(json.loads((reference / "weat" / "expected.json").read_text()))


def test_reference_counts_are_met_to_the_last_partition(reference: Path) -> None:
    for name, expected in reference_cases(reference).items():
        with np.load(reference / "weat" / f"{name}.npz") as case:
            tail = SubsetTail.of(case["s_X"], case["s_Y"])
        count = expected["exact"]["count_ge"]  # type: ignore[index]
        if tail.n_partitions <= 10_000_000:
            assert count_by_enumeration(tail) == count, name
        if len(tail.scores) <= 32:
            assert count_by_halves(tail, 1 << 20) == count, name
        assert tail_probability(tail).value == pytest.approx(expected["exact"]["p_ge"], rel=1e-3), name  # type: ignore[index]


def test_integer_count_of_25_v_25_on_request(reference: Path) -> None:
    with np.load(reference / "weat" / "t25_a25_d050.npz") as case:
        tail = SubsetTail.of(case["s_X"], case["s_Y"])
    expected = reference_cases(reference)["t25_a25_d050"]["exact"]["count_ge"]  # type: ignore[index]
    assert count_by_halves(tail, 1 << 26) == expected


@settings(max_examples=25, deadline=None)
@given(n=st.integers(37, 60), m=st.integers(20, 60), shift=st.floats(-1.0, 2.5), seed=st.integers(0, 2**32 - 1))
def test_smooth_tail_falls_as_the_threshold_rises(n: int, m: int, shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tail = SubsetTail.of(rng.normal(size=n) + shift, rng.normal(size=m))
    higher = replace(tail, least=tail.least + round(0.5 / tail.unit))
    low, high = saddlepoint_tail(tail), saddlepoint_tail(higher)
    if low is not None and high is not None:
        assert high.log_p < low.log_p <= 0.0


def _log_uniform(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores over twelve decades; the highest quarter of all is in X."""
    rng = np.random.default_rng(seed)
    scores = np.sort(10.0 ** rng.uniform(-12, 0, 2 * n))[::-1]
    rest = rng.permutation(scores[n // 2 :])
    return np.concatenate([scores[: n // 2], rest[: n - n // 2]]), rest[n - n // 2 :]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("work", [1 << 9, 1 << 12, 1 << 20])
def test_rounded_counts_lie_around_the_exact_one(seed: int, work: int) -> None:
    clusters = np.random.default_rng(seed).choice([0.0, 1.0, np.pi], 28) + 1e-5 * np.arange(28)
    for x, y in (_log_uniform(14, seed), separated(14, 0.3, seed), (clusters[:12], clusters[12:])):
        tail = SubsetTail.of(x, y)
        low, high = (math.exp(bound) * tail.n_partitions for bound in bounds_by_rounding(tail, work))
        count = count_by_halves(tail, 1 << 20)
        assert count is not None
        assert low * (1.0 - 1e-9) <= count <= high * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_scores_over_decades_whose_highest_are_in_one_set_have_a_p_value(seed: int) -> None:
    """A quarter of the scores is decided and the rest are too small to make a bell."""
    found = tail_probability(SubsetTail.of(*_log_uniform(60, seed)))
    assert found.error < 0.01
    wider = tail_probability(SubsetTail.of(*_log_uniform(500, seed)))
    assert wider.error < math.inf
