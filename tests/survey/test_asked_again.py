"""The participant's way over HTTP: what is asked for again, and what of it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.survey import walks
from tests.survey.walks import GROUPS, Place

pytestmark = pytest.mark.extras

study = walks.study


def test_who_does_not_agree_does_not_begin(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.get("/")
    assert person.send().status == 400
    assert "tick the box" in person.page.alert
    assert person.send(agree="no").status == 400
    assert place.rows("SELECT * FROM participants") == []
    assert person.send(agree="yes").kind == "instructions"


def test_missing_sliders_are_named_and_the_others_kept(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("group")
    before = place.everything()
    page = person.send(**{"pair-0": "0", "pair-1": "", "pair-2": "100", "pair-3": "101"})
    assert page.status == 400
    assert page.kind == "group"
    assert page.filled == {"pair-0": ["0"], "pair-2": ["100"]}
    assert "poor – wealthy, traditional – modern." in page.alert
    assert "cold" not in page.alert
    assert place.everything() == before
    assert person.answer().kind == "which_group"


@pytest.mark.parametrize(
    "rating",
    [
        *("", " ", "-1", "101", "1e1", "50.0", "0x10", "+5", "NaN", "inf", "٥٠", "⁵", "5 0", "9" * 400, "\0", "50\0"),
        *("none", "[50]", "50,", "½"),
    ],
)
def test_what_is_no_whole_number_up_to_100_is_no_rating(study: Callable[..., Place], rating: str) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("group")
    page = person.send(**{**person.answers(), "pair-2": rating})
    assert page.status == 400
    assert "cold – warm" in page.alert
    assert place.rows("SELECT * FROM annotations") == []


def test_the_group_must_be_one_of_those_offered(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    offered = person.go("which_group").offered["group"]
    not_offered = next(group for group in GROUPS if group not in offered)
    for sent in ({}, {"group": ""}, {"group": not_offered}, {"group": offered[0] + "\0"}, {"group": "x" * 9000}):
        page = person.send(**sent)
        assert (page.status, page.kind) == (400, "which_group")
        assert "choose a group" in page.alert
    assert place.rows("SELECT which_group FROM participants") == [(None,)]


def test_one_word_of_two_is_kept(study: Callable[..., Place]) -> None:
    person = study().browser()
    person.begin()
    person.go("high_low")
    page = person.send(high="warm", low="nothing of the kind")
    assert page.status == 400
    assert page.filled == {"high": ["warm"]}
    page = person.send(high="", low="cold")
    assert page.filled == {"low": ["cold"]}
    assert person.answer().kind == "group"


def test_the_same_word_twice_is_asked_for_again(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("high_low")
    before = place.everything()
    page = person.send(high="warm", low="warm")
    assert (page.status, page.kind) == (400, "high_low")
    assert "not the same one" in page.alert
    assert place.everything() == before
    assert person.answer().kind == "group"


def test_all_questions_about_the_person_can_be_left_out(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.walk()
    assert place.rows("SELECT answers FROM demographics") == [("{}",)]


def test_a_long_answer_is_asked_for_again_with_all_others_kept(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("demographics")
    given = {"field-0": ["Man"], "field-1": ["White", "Asian"], "field-2": ["x" * 41]}
    page = person.send(**given)
    assert page.status == 400
    assert "State: Please use at most 40" in page.alert
    assert page.filled == given
    assert place.rows("SELECT * FROM demographics") == []
    assert person.send(**{**given, "field-2": "x" * 40}).kind == "done"


def test_a_choice_that_was_not_offered_is_none(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("demographics")
    person.send(**{"field-0": ["Robot", "Man", "Woman"], "field-1": ["Asian", "Martian", "Asian"], "field-9": "more"})
    assert json.loads(place.rows("SELECT answers FROM demographics")[0][0]) == {"Gender": "Woman", "Race": "Asian"}
