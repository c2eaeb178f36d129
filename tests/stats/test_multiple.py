"""Corrections against the papers' wording and SciPy."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.multiple_testing import benjamini_hochberg, holm, holm_by_question

p_values = st.lists(st.floats(0.0, 1.0, allow_nan=False), min_size=1, max_size=40)


@given(p=p_values)
def test_holm_rejects_the_ranks_before_the_first_that_fails(p: list[float]) -> None:
    """The supplement's wording, as a loop."""
    alpha, n = 0.01, len(p)
    order = sorted(range(n), key=lambda i: p[i])
    expected = np.zeros(n, dtype=bool)
    for k, i in enumerate(order, start=1):
        if p[i] > alpha / (1 + n - k):
            break
        expected[i] = True
    on_the_edge = any(abs(p[i] * (n - k) - alpha) < 1e-15 for k, i in enumerate(order))
    if not on_the_edge:
        assert holm(p, alpha).rejected.tolist() == expected.tolist()


@given(p=p_values)
def test_benjamini_hochberg_agrees_with_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p).adjusted == pytest.approx(stats.false_discovery_control(p), abs=1e-15)


def test_holm_on_a_worked_example() -> None:
    found = holm([0.01, 0.04, 0.03, 0.005], alpha=0.05)
    assert found.adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert found.rejected.tolist() == [True, False, False, True]


@pytest.mark.parametrize("p", [[-0.1], [1.1], [[0.1]]])
def test_what_is_not_a_p_value_is_refused(p: list[float]) -> None:
    with pytest.raises(UsageError):
        holm(p)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0])
def test_alpha_out_of_range_is_refused(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        holm([0.5], alpha)


def tarone(p: dict[int, Fraction], floors: list[Fraction], alpha: Fraction) -> set[int]:
    """Return the rejections of Tarone's rule: K is the least k for which at most k tests can reach alpha / k."""
    k = next(k for k in range(1, len(p) + 2) if sum(floors[i] <= alpha / k for i in p) <= k)
    return {i for i in p if p[i] <= alpha / k}


def step_down(p: list[Fraction], floors: list[Fraction], alpha: Fraction) -> set[int]:
    """Tarone's rule at alpha or at any level below it, on the tests that are left, until it rejects no more."""
    left = dict(enumerate(p))
    while left:
        levels = {alpha, *(q * k for q in p for k in range(1, len(p) + 1) if q * k <= alpha)}
        gone = set().union(*(tarone(left, floors, level) for level in levels))
        if not gone:
            break
        left = {i: q for i, q in left.items() if i not in gone}
    return set(range(len(p))) - set(left)


@st.composite
def discrete_tests(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    """p-values that are whole numbers of partitions, and the p-value of one partition each."""
    partitions = draw(st.lists(st.sampled_from([2, 3, 6, 20, 70, 252, 1000]), min_size=1, max_size=5))
    counts = [draw(st.integers(1, min(n, draw(st.sampled_from([2, 20, 1000]))))) for n in partitions]
    return [Fraction(c, n) for c, n in zip(counts, partitions, strict=True)], [Fraction(1, n) for n in partitions]


@given(tests=discrete_tests())
def test_adjusted_is_the_smallest_alpha_at_which_the_steps_reject(
    tests: tuple[list[Fraction], list[Fraction]],
) -> None:
    p, floors = tests
    found = holm([float(q) for q in p], 0.05, [float(f) for f in floors]).adjusted
    levels = sorted({q * k for q in p for k in range(1, len(p) + 1)})
    between = [(a + b) / 2 for a, b in itertools.pairwise(levels)]
    for alpha in (*levels, *between):
        rejected = step_down(p, floors, alpha)
        if alpha < 1:
            assert set(np.flatnonzero(found <= float(alpha) * (1.0 + 1e-12)).tolist()) == rejected


@given(p=p_values)
def test_without_floors_it_is_holm(p: list[float]) -> None:
    expected = holm(p)
    for floors in (np.zeros(len(p)), np.full(len(p), np.nan)):
        found = holm(p, floors=floors)
        assert found.adjusted.tolist() == expected.adjusted.tolist()
        assert found.rejected.tolist() == expected.rejected.tolist()


@given(tests=discrete_tests(), order=st.randoms())
def test_floors_never_raise_a_p_value_and_order_does_not_matter(
    tests: tuple[list[Fraction], list[Fraction]], order: random.Random
) -> None:
    p, floors = (np.array([float(q) for q in part]) for part in tests)
    found = holm(p, floors=floors).adjusted
    assert (found <= holm(p).adjusted).all()
    assert (found >= p).all()
    other = order.sample(range(len(p)), len(p))
    assert holm(p[other], floors=floors[other]).adjusted.tolist() == found[other].tolist()


@pytest.mark.parametrize("true", [0, 2])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
def test_with_floors_false_rejections_stay_below_alpha(alpha: float, true: int) -> None:
    """Exact one-sided p-values of sets of 2 to 5 words under the null; the first ``true`` are as low as can be."""
    rng = np.random.default_rng(0)
    partitions = np.array([math.comb(2 * n, n) for n in (2, 2, 3, 3, 3, 3, 4, 5)])
    p = (1 + rng.integers(0, partitions, (4000, 8))) / partitions
    p[:, :true] = 1e-4
    floors = 1.0 / partitions
    floors[:true] = 1e-4
    wrong = np.mean([holm(row, alpha, floors).rejected[true:].any() for row in p])
    assert wrong <= alpha + 3.0 * math.sqrt(alpha * (1.0 - alpha) / len(p))
    assert wrong > np.mean([holm(row, alpha).rejected[true:].any() for row in p])


def test_a_test_that_cannot_be_significant_costs_the_others_nothing() -> None:
    found = holm([0.01, 0.04, 0.1, np.nan], alpha=0.05, floors=[0.001, 0.001, 0.06, 0.001])
    assert found.adjusted[:3] == pytest.approx([0.02, 0.04, 0.1])
    assert found.rejected.tolist() == [True, True, False, False]
    assert found.n == 3
    assert holm([0.01], floors=[0.001]).adjusted.tolist() == [0.01]
    none = holm([0.05, 0.1], alpha=0.01, floors=[0.05, 0.1])
    assert none.adjusted.tolist() == [0.05, 0.1]
    assert not none.rejected.any()


@pytest.mark.parametrize("floors", [[0.1], [-0.1, 0.0], [0.0, 1.5], [0.3, 0.3], [[0.0, 0.0]]])
def test_what_cannot_be_a_floor_is_refused(floors: list[float]) -> None:
    with pytest.raises(UsageError):
        holm([0.2, 0.4], floors=floors)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_one_form_per_question_is_holm(p: list[float]) -> None:
    found = holm_by_question(p, list(range(len(p))), 0.05)
    assert found.adjusted.tolist() == pytest.approx(holm(p, 0.05).adjusted.tolist())
    assert found.n == len(p)


@given(
    st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 3)), min_size=1, max_size=10),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_forms_are_rejected_as_by_the_procedure_run_at_the_level(rows: list[tuple[float, int]], alpha: float) -> None:
    """The definition: levels of questions and of the forms of rejected ones, until nothing more is rejected."""
    p, questions = [one for one, _ in rows], [question for _, question in rows]
    rejected: set[int] = set()
    while True:
        pending = {q: [i for i, own in enumerate(questions) if own == q and i not in rejected] for q in set(questions)}
        pending = {q: forms for q, forms in pending.items() if forms}
        new = set()
        for question, forms in pending.items():
            first = questions.index(question)
            able = [first] if first in forms else forms
            level = alpha / len(pending) / len(able)
            new |= {i for i in able if p[i] <= level * (1 - 1e-12)}
        if not new:
            break
        rejected |= new
    adjusted = holm_by_question(p, questions, alpha).adjusted
    near = np.isclose(adjusted, alpha, rtol=1e-6)
    assert {i for i in range(len(p)) if adjusted[i] <= alpha and not near[i]} == rejected - set(np.flatnonzero(near))
