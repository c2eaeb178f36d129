"""Rules of quality against their definitions, written out again, and at their edges."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.survey.quality import ParticipantAnswers, judge_quality, score_traits, self_agreement
from biassay.survey.study import QualityRules

RULES = QualityRules(which_group=True, high_low=True, self_agreement=0.8, tolerance=10, seconds_a_group=8.0, spread=1)
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


def test_careful_answers_are_valid() -> None:
    verdict = judge_quality(answers(), RULES)
    assert (verdict.valid, verdict.reasons, verdict.agreement) == (True, (), 1.0)


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


def test_all_faults_are_named() -> None:
    bad = answers(which_group="women", high="poor", ratings=((10, 90), (90, 10), (0, 0), (90, 10)), seconds=(1.0,) * 4)
    verdict = judge_quality(bad, RULES)
    assert verdict.reasons == ("which group", "high and low", "self-agreement", "all alike", "too fast")
    assert verdict.agreement == 0.0


def test_a_rule_that_is_off_rejects_nobody() -> None:
    bad = answers(
        which_group=None, high=None, low=None, ratings=((10, 90), (90, 10), (0, 0), (90, 10)), seconds=(0.0,) * 4
    )
    off = rules(which_group=False, high_low=False, self_agreement=0.0, seconds_a_group=0.0, spread=0)
    assert judge_quality(bad, off).valid


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


@pytest.mark.parametrize("spread", [1, 100])
def test_one_pair_alone_is_never_all_alike(spread: int) -> None:
    only = rules(which_group=False, high_low=False, spread=spread)
    assert judge_quality(answers(pairs=PAIRS[:1], ratings=((90,), (10,), (50,), (90,))), only).valid


def test_a_page_that_is_all_alike_is_refused_unless_a_rule_says_otherwise() -> None:
    assert (
        QualityRules(which_group=False, high_low=False, self_agreement=0.0, tolerance=0, seconds_a_group=0.0).spread
        == 1
    )


def test_the_other_word_of_a_pair_is_marked_the_other_way() -> None:
    """Second page: wealthy 90, warm 10. So wealthy and cold are high, poor and warm low."""
    high, low = {"wealthy", "cold"}, {"poor", "warm"}
    for first in high | low:
        for second in high | low:
            valid = judge_quality(answers(high=first, low=second), RULES).valid
            assert valid == (first in high and second in low), (first, second)


@pytest.mark.parametrize(("marked", "high", "low"), [(50, False, False), (51, True, False), (49, False, True)])
def test_the_middle_is_neither_high_nor_low(marked: int, high: bool, low: bool) -> None:
    ratings = ((10, 90), (marked, 10), (20, 80), (10, 90))
    assert judge_quality(answers(ratings=ratings, high="wealthy", low="warm"), RULES).valid == high
    assert judge_quality(answers(ratings=ratings, high="cold", low="wealthy"), RULES).valid == low


def test_the_second_page_is_asked_about_whichever_is_repeated() -> None:
    ratings = ((90, 91), (10, 90), (90, 91), (10, 90))
    verdict = judge_quality(answers(ratings=ratings, repeated=1, high="warm", low="wealthy"), RULES)
    assert verdict.valid


@pytest.mark.parametrize("repeated", [0, 1, 2])
def test_the_last_page_is_compared_with_the_one_it_repeats(repeated: int) -> None:
    pages = [(90, 10), (90, 10), (90, 10)]
    pages[repeated] = (10, 90) if repeated != 1 else (90, 10)
    last = pages[repeated]
    assert judge_quality(answers(ratings=(*pages, last), repeated=repeated), RULES).agreement == 1.0
    opposite = tuple(100 - r for r in last)
    assert judge_quality(answers(ratings=(*pages, opposite), repeated=repeated), RULES).agreement == 0.0


# The share that is asked for, by hand: 80% of 5 is 4, of 10 is 8, of 15 is 12, of 16 is 12.8, hence 13.
@pytest.mark.parametrize(("pairs", "enough"), [(1, 1), (5, 4), (10, 8), (15, 12), (16, 13)])
def test_exactly_eighty_percent_is_enough(pairs: int, enough: int) -> None:
    names = tuple((f"l{i}", f"r{i}") for i in range(pairs))
    for agreed in range(pairs + 1):
        first, again = agreeing(agreed, pairs)
        given = answers(pairs=names, ratings=(first, [90] * pairs, again), groups=("men", "women"), high="r0", low="l0")
        assert judge_quality(given, rules(spread=0)).valid == (agreed >= enough), agreed


@given(pairs=st.integers(1, 40), asked=st.integers(0, 40), agreed=st.integers(0, 40))
def test_a_share_is_compared_as_if_it_were_exact(pairs: int, asked: int, agreed: int) -> None:
    asked, agreed = min(asked, pairs), min(agreed, pairs)
    names = tuple((f"l{i}", f"r{i}") for i in range(pairs))
    first, again = agreeing(agreed, pairs)
    given_ = answers(pairs=names, ratings=(first, [90] * pairs, again), groups=("men", "women"), high="r0", low="l0")
    exact = Fraction(agreed, pairs) >= Fraction(asked, pairs)
    assert judge_quality(given_, rules(self_agreement=asked / pairs, spread=0)).valid == exact


@pytest.mark.parametrize(
    ("a", "b", "tolerance", "same"),
    [
        (50, 50, 0, True),
        (50, 51, 0, False),
        (50, 49, 0, False),
        (49, 51, 0, False),
        (49, 51, 1, False),
        (49, 51, 2, True),
        (51, 100, 0, True),
        (0, 49, 0, True),
        (50, 60, 10, True),
        (50, 61, 10, False),
        (45, 55, 10, True),
        (45, 56, 10, False),
        (0, 100, 99, False),
        (0, 100, 100, True),
    ],
)
def test_the_edges_of_agreement(a: int, b: int, tolerance: int, same: bool) -> None:
    assert self_agreement([a], [b], tolerance) == self_agreement([b], [a], tolerance) == float(same)


@pytest.mark.parametrize("tolerance", [0, 1, 10, 100])
def test_agreement_of_every_two_ratings_equals_its_definition(tolerance: int) -> None:
    for a in range(101):
        found = [self_agreement([a], [b], tolerance) for b in range(101)]
        assert found == [float(agrees(a, b, tolerance)) for b in range(101)], a


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


@given(st.lists(rating, min_size=2, max_size=2))
def test_fit_is_the_distance_from_the_middle(ratings: list[int]) -> None:
    fit = score_traits(PAIRS, ratings)
    assert fit == {
        "wealthy": ratings[0] - 50,
        "poor": 50 - ratings[0],
        "warm": ratings[1] - 50,
        "cold": 50 - ratings[1],
    }


@pytest.mark.parametrize(("seconds", "valid"), [(8.0, True), (7.9999, False), (0.0, False), (8.0001, True)])
def test_the_edge_of_time(seconds: float, valid: bool) -> None:
    assert judge_quality(answers(seconds=(20.0, 20.0, seconds, 20.0)), RULES).valid == valid


def test_pages_of_different_length_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        self_agreement([1, 2], [1], 10)
