"""The saddle point's stated error against exact counts, where scores have structure far below their range."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from biassay.stats.integrand_bound import FurtherOut
from biassay.stats.saddlepoint import saddlepoint_tail
from biassay.stats.subsets import SubsetTail
from biassay.stats.tails import tail_probability


def exact_share(tail: SubsetTail) -> float:
    """How many of each distinct score a subset takes decides its sum: all such choices, each with its number."""
    values, times = np.unique(tail.levels, return_counts=True)
    reached = 0
    for taken in itertools.product(*(range(n + 1) for n in times.tolist())):
        total = sum(k * v for k, v in zip(taken, values.tolist(), strict=True))
        if sum(taken) == tail.size and total >= tail.level:
            reached += math.prod(map(math.comb, times.tolist(), taken))
    return reached / tail.n_partitions


def check(tail: SubsetTail) -> None:
    expected = exact_share(tail)
    smooth = saddlepoint_tail(tail)
    if smooth is not None:
        assert abs(math.exp(smooth.log_p) / expected - 1.0) <= smooth.relative_error
    found = tail_probability(tail)
    assert abs(found.value / expected - 1.0) <= found.error + 1e-12


@pytest.mark.parametrize("copies", [3, 4, 8, 12])
def test_ties_at_the_border_make_no_bell(copies: int) -> None:
    """All but the ones are decided, and the ones have equal sums."""
    x, y = np.repeat([1.0, 2**0.5], copies), np.repeat([0.0, 1.0], copies)
    check(SubsetTail.of(x, y))


@pytest.mark.parametrize(
    ("n", "coarse", "fine"),
    [
        (5, "2222121010100", "2032201201121"),
        (8, "221111212100000", "133311120013001"),
    ],
)
@pytest.mark.parametrize("step", [1e-7, 1e-9])
def test_a_step_of_a_ten_millionth_is_within_the_stated_error(n: int, coarse: str, fine: str, step: float) -> None:
    scores = np.array([*map(int, coarse)]) + step * np.array([*map(int, fine)])
    check(SubsetTail.of(scores[:n], scores[n:]))


@pytest.mark.slow
@pytest.mark.parametrize("fine", [1e-3, 1e-5, 1e-7, 1e-10])
@pytest.mark.parametrize("kind", ["clusters", "outlier", "nearly integers"])
def test_few_values_with_tiny_differences_are_within_the_stated_error(kind: str, fine: float) -> None:
    rng = np.random.default_rng(0)
    values = {
        "clusters": np.repeat(rng.normal(size=2), 2),
        "outlier": np.array([0.0, 0.0, 0.0, 1.0]),
        "nearly integers": np.arange(4.0),
    }[kind] + fine * rng.normal(size=4)
    times = [9, 9, 9, 1] if kind == "outlier" else [8, 9, 9, 10]
    scores = values.repeat(times)
    high = np.argsort(-(scores + rng.normal(size=len(scores)) * scores.std()))
    check(SubsetTail.of(scores[high[: len(high) // 2]], scores[high[len(high) // 2 :]]))


def test_the_integral_is_given_up_only_where_it_would_not_have_been_precise() -> None:
    given_up = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        tail = SubsetTail.of(rng.normal(1.4, 1.0, 24), rng.normal(0.0, 1.0, 24))
        whole, early = saddlepoint_tail(tail), saddlepoint_tail(tail, 1e-3)
        if early is None:
            given_up += 1
            assert whole is None or whole.relative_error > 1e-3
        else:
            assert early == whole
    assert given_up


def test_what_may_come_beyond_a_place_is_the_sum_from_there_on() -> None:
    rng = np.random.default_rng(0)
    amount, together = rng.random((5, 8)), rng.random((5, 8)) < 0.2
    found = FurtherOut(0.5, amount.copy(), together, 2.0)
    assert found.last == 20.0
    for place in range(40):
        own, alike = amount.ravel()[place:], together.ravel()[place:]
        expected = own[alike].sum() + 3.0 * math.sqrt(2.0 * (own[~alike] ** 2).sum())
        assert found.beyond(0.5 * place + 0.1) == pytest.approx(expected, rel=1e-12)
    assert found.beyond(1e9) == found.beyond(19.6)
