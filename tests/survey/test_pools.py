"""The participant's way over HTTP: where it ends, and the numbers and codes of a pool."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("starlette")

from tests.survey import walks
from tests.survey.walks import Place, cookie_of

pytestmark = pytest.mark.extras

study = walks.study


# Where it ends


def test_the_code_is_everybodys_own(study: Callable[..., Place]) -> None:
    place = study()
    codes = {place.browser().walk() for _ in range(3)}
    assert len(codes) == 3
    assert all(len(code) == 10 and code.isalnum() for code in codes)


def test_a_code_of_the_pool_is_shown_and_the_own_one_beside_it(study: Callable[..., Place]) -> None:
    place = study(pool='completion_url = "https://pool.example/done?cc={code}"\ncompletion_code = "C1&x=<2>/#?"')
    person = place.browser()
    person.walk()
    own = place.rows("SELECT code FROM participants")[0][0]
    assert person.page.code == "C1&x=<2>/#?"
    assert own in person.page.text
    assert "https://pool.example/done?cc=C1%26x%3D%3C2%3E/%23%3F" in person.page.links


def test_the_own_code_goes_back_to_the_pool(study: Callable[..., Place]) -> None:
    person = study(pool='completion_url = "https://pool.example/done?a=1&cc={code}"').browser()
    code = person.walk()
    assert f"https://pool.example/done?a=1&cc={code}" in person.page.links


def test_without_a_pool_there_is_nowhere_to_go_back(study: Callable[..., Place]) -> None:
    person = study().browser()
    person.walk()
    assert person.page.links == ["#main"]


def test_who_stays_away_too_long_has_ended(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    page = person.go("group")
    given = person.answers()
    place.clock.now += 3601.0
    assert "60 minutes" in person.post("/page", {**page.hidden, **given}).text
    assert person.page.kind == "message"
    assert place.rows("SELECT status FROM participants") == [("abandoned",)]
    assert place.rows("SELECT * FROM annotations") == []
    assert all(count == (0, 0) for count in place.kept().values())
    before = place.everything()
    place.clock.now -= 3601.0
    person.post("/page", {**page.hidden, **given})
    person.post("/begin", {**page.hidden, "agree": "yes"})
    assert place.everything() == before


def test_just_within_the_time_is_in_time(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    person.go("group")
    place.clock.now += 3580.0
    assert person.answer().kind == "which_group"


def test_deleted_answers_are_said_to_be_so_and_nothing_more_is_written(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    page = person.go("group", times=2)
    given = person.answers()
    assert place.store.delete(place.rows("SELECT code FROM participants")[0][0])
    before = place.everything()
    assert person.post("/page", {**page.hidden, **given}).title == "These answers were deleted"
    assert person.get("/").title == "These answers were deleted"
    assert place.everything() == before


def test_a_full_study_lets_nobody_begin_until_somebody_stays_away(study: Callable[..., Place]) -> None:
    place = study(annotations=1)
    first, second, third = (place.browser() for _ in range(3))
    first.begin()
    second.begin()
    assert third.begin().title == "Nothing to do at the moment"
    assert third.page.status == 200
    assert len(place.rows("SELECT * FROM participants")) == 2
    place.clock.now += 3601.0
    assert third.begin().kind == "instructions"
    assert place.kept() == place.recount()


# Numbers of a pool


def test_the_number_leaves_the_address_and_is_written_with_the_person(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    answer = person.client.get("/?PROLIFIC_PID=abc123&STUDY_ID=9", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    person.get("/")
    assert "abc123" not in person.page.html
    person.send(agree="yes")
    assert place.rows("SELECT pool_id FROM participants") == [("abc123",)]


def test_a_number_takes_part_once(study: Callable[..., Place]) -> None:
    place = study()
    place.browser().walk("abc123")
    again = place.browser()
    assert again.begin("abc123").status == 409
    assert again.page.title == "You have taken part already"
    assert len(place.rows("SELECT * FROM participants")) == 1
    assert place.browser().begin("abc124").kind == "instructions"


def test_a_study_without_a_pool_keeps_no_number(study: Callable[..., Place]) -> None:
    place = study(pool="")
    place.browser().begin("abc123")
    assert place.rows("SELECT pool_id FROM participants") == [(None,)]


@pytest.mark.parametrize("number", ["", "%20", "%09", "%00", "%00%00"])
def test_an_empty_number_is_none(study: Callable[..., Place], number: str) -> None:
    place = study()
    assert place.browser().begin(number).kind == "instructions"
    assert place.rows("SELECT pool_id FROM participants") == [(None,)]


def test_who_must_bring_a_number_does_not_begin_without_one(study: Callable[..., Place]) -> None:
    place = study(pool='parameter = "PROLIFIC_PID"\nrequired = true')
    for number in (None, "", "%20", "%00"):
        page = place.browser().begin(number)
        assert (page.status, page.title) == (403, "Please come through the link you were given")
    assert place.rows("SELECT * FROM participants") == []
    person = place.browser()
    assert person.begin().status == 403
    assert person.begin("abc123").kind == "instructions"
    assert place.rows("SELECT pool_id FROM participants") == [("abc123",)]


def test_a_cookie_holds_the_longest_number(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    assert person.begin("%F0%9F%98%80" * 5000).kind == "instructions"
    assert place.rows("SELECT pool_id FROM participants") == [("😀" * 128,)]
    name, cookie = cookie_of(person.client)
    assert len(f"{name}={cookie}") < 4000  # browsers drop what is longer than 4096
