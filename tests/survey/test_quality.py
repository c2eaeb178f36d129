"""Rules of quality against their definitions, written out again, and at their edges."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.survey.quality import ParticipantAnswers, judge_quality, self_agreement
from biassay.survey.study import QualityRules

RULES = QualityRules(which_group=True, high_low=True, self_agreement=0.8, tolerance=10, seconds_per_group=8.0, spread=1)
PAIRS = (("poor", "wealthy"), ("cold", "warm"))
GROUPS = ("men", "women", "veterans")

rating = st.integers(0, 100)


def rules(**changes: Any) -> QualityRules:
    return QualityRules(**{**vars(RULES), **changes})


def answers(**changes: Any) -> ParticipantAnswers:
    good = {
        "pairs": PAIRS,
        "groups": GROUPS,
        "ratings": ((10, 90), (90, 10), (20, 80), (10, 90)),
        "repeated": 0,
        "seconds": (8.0, 20.0, 20.0, 20.0),
        "which_group": "men",
        "high": "wealthy",
        "low": "warm",
    }
    return ParticipantAnswers(**{**good, **changes})


def agrees(a: int, b: int, tolerance: int) -> bool:
    """On the same side of 50 (50 is on no side), or no more than the tolerance apart."""
    return (a > 50 and b > 50) or (a < 50 and b < 50) or -tolerance <= a - b <= tolerance


def agreeing(agreed: int, pairs: int) -> tuple[list[int], list[int]]:
    """Two pages of ``pairs`` lines that agree on ``agreed``."""
    return [90] * pairs, [90] * agreed + [10] * (pairs - agreed)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"which_group": "women"}, "which group"),
        ({"which_group": None}, "which group"),
        ({"which_group": "MEN"}, "which group"),
        ({"high": "poor"}, "high and low"),
        ({"low": "cold"}, "high and low"),
        ({"high": "warm", "low": "wealthy"}, "high and low"),
        ({"low": "wealthy"}, "high and low"),
        ({"high": None}, "high and low"),
        ({"low": None}, "high and low"),
        ({"high": "no such trait"}, "high and low"),
        ({"ratings": ((10, 90), (90, 10), (20, 80), (10, 11))}, "self-agreement"),
        ({"ratings": ((10, 90), (90, 10), (80, 80), (10, 90))}, "all alike"),
        ({"ratings": ((10, 90), (90, 10), (50, 50), (10, 90))}, "all alike"),
        ({"ratings": ((80, 90), (90, 10), (20, 80), (80, 80))}, "all alike"),
        ({"seconds": (8.0, 7.999, 20.0, 20.0)}, "too fast"),
        ({"seconds": (20.0, 20.0, 20.0, 0.0)}, "too fast"),
    ],
)
def test_each_fault_is_found_and_named(changes: dict[str, Any], reason: str) -> None:
    verdict = judge_quality(answers(**changes), RULES)
    assert (verdict.valid, verdict.reasons) == (False, (reason,))


@pytest.mark.parametrize(
    ("spread", "apart", "valid"),
    [(0, 0, True), (1, 0, False), (1, 1, True), (10, 9, False), (10, 10, True), (100, 99, False), (100, 100, True)],
)
@pytest.mark.parametrize("page", [0, 1, 2, 3])
def test_the_edge_of_the_spread(spread: int, apart: int, valid: bool, page: int) -> None:
    """Every page counts, the repeated one too; whichever of its lines are the farthest apart."""
    pages = [[0, 100, 50]] * 4
    pages[page] = [apart, 0, apart // 2]
    only = rules(which_group=False, high_low=False, self_agreement=0.0, spread=spread)
    verdict = judge_quality(answers(pairs=(*PAIRS, ("old", "new")), ratings=tuple(pages)), only)
    assert verdict.reasons == (() if valid else ("all alike",))


# The share that is asked for, by hand: 80% of 5 is 4, of 10 is 8, of 15 is 12, of 16 is 12.8, hence 13.


@given(pairs=st.integers(1, 40), asked=st.integers(0, 40), agreed=st.integers(0, 40))
def test_a_share_is_compared_as_if_it_were_exact(pairs: int, asked: int, agreed: int) -> None:
    asked, agreed = min(asked, pairs), min(agreed, pairs)
    names = tuple((f"l{i}", f"r{i}") for i in range(pairs))
    first, again = agreeing(agreed, pairs)
    given_ = answers(pairs=names, ratings=(first, [90] * pairs, again), groups=("men", "women"), high="r0", low="l0")
    exact = Fraction(agreed, pairs) >= Fraction(asked, pairs)
    assert judge_quality(given_, rules(self_agreement=asked / pairs, spread=0)).valid == exact


@given(st.lists(st.tuples(rating, rating), min_size=1, max_size=20), st.integers(0, 100))
def test_agreement_is_a_share_symmetric_and_unmoved_by_turning_the_scale(
    pages: list[tuple[int, int]], tolerance: int
) -> None:
    first, second = [a for a, _ in pages], [b for _, b in pages]
    share = self_agreement(first, second, tolerance)
    assert share == sum(agrees(a, b, tolerance) for a, b in pages) / len(pages)
    assert share == self_agreement(second, first, tolerance)
    assert share == self_agreement([100 - a for a in first], [100 - b for b in second], tolerance)
    assert self_agreement(first, first, tolerance) == 1.0
    assert share <= self_agreement(first, second, min(100, tolerance + 1))
