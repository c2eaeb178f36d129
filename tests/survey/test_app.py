"""The participant's way over HTTP: every step, beginning twice, texts, where it ends, and numbers of a pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.survey.people import check_counts, counters
from tests.survey.walks import Page, Place, cookie_of, opened, record_comparisons

from biassay.errors import UsageError
from biassay.survey.links import make_signed_link, sign_number

pytestmark = pytest.mark.extras


WAY = [
    *("instructions", "group", "which_group", "group", "high_low"),
    *("group", "group", "demographics", "done"),
]
NASTY = '<script>alert("1")</script>&amp;\'{{7*7}}{society}'


# The way


def test_every_page_shows_ones_own_code_and_nobody_elses(study: Callable[..., Place]) -> None:
    place = study()
    other = place.browser()
    other.begin("other")
    theirs = place.rows("SELECT code FROM participants")[0][0]
    person = place.browser()
    person.begin("own")
    own = place.rows("SELECT code FROM participants WHERE pool_id = 'own'")[0][0]
    seen = []
    while person.page.kind != "done":
        at = person.page
        seen.append(at.kind)
        for page in (at, person.send(**{"field-2": "x" * 41})) if at.kind != "instructions" else (at,):
            assert page.kind == at.kind
            assert page.own_code.endswith(f": {own}")
            assert theirs not in page.html
        person.answer()
    assert [*seen, "done"] == WAY
    assert person.page.code == own


# Beginning twice


def test_a_lost_answer_to_begin_does_not_lock_anyone_out(study: Callable[..., Place]) -> None:
    """The button is pressed again, from the same page and with the same cookie."""
    place = study()
    person = place.browser()
    consent = person.get("/?PROLIFIC_PID=abc123")
    cookie = cookie_of(person.client)
    assert cookie is not None
    person.send(agree="yes")
    person.client.cookies.clear()
    person.client.cookies.set(*cookie)
    page = person.post("/begin", {**consent.hidden, "agree": "yes"})
    assert page.kind == "instructions"
    assert len(place.rows("SELECT * FROM participants")) == 1


def test_two_studies_on_one_host_keep_both_sessions_of_a_browser(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as one, opened(tmp_path / "two") as two:
        first, second = one.browser(), two.browser()
        second.client.cookies = first.client.cookies.jar  # shared, as a browser does not tell ports apart
        first.begin("abc123")
        second.begin("abc123")
        for kind in WAY[:-1]:
            assert first.get("/page").kind == second.get("/page").kind == kind
            first.answer()
            second.answer()
        assert first.page.kind == second.page.kind == "done"
        names = {cookie.name for cookie in first.client.cookies.jar}
        assert names == {place.app.state.site.sessions.name("biassay") for place in (one, two)}
        assert len(names) == 2
        for place in (one, two):
            assert place.rows("SELECT status FROM participants") == [("valid",)]


def test_nobody_begins_a_study_that_another_process_changed(
    study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*_: object) -> None:
        raise UsageError("changed by another process")

    place = study()
    person = place.browser()
    monkeypatch.setattr(place.store, "add_participant", changed)
    page = person.begin()
    assert page.status == 503
    assert "changed by" not in page.html
    assert place.rows("SELECT * FROM participants") == []


# Texts


def test_texts_of_a_study_are_escaped_wherever_they_stand(study: Callable[..., Place]) -> None:
    groups = [f"{NASTY}{i}" for i in range(5)]
    pairs = [(f"{NASTY}l{i}", f"{NASTY}r{i}") for i in range(2)]
    quoted = NASTY.replace("\\", "\\\\").replace('"', '\\"')
    place = study(
        groups=groups,
        pairs=pairs,
        society=NASTY,
        more="".join(f'{name} = "{quoted}"\n' for name in ("researcher", "contact", "approval")),
        pool=f'completion_url = "https://pool.example/{quoted.replace("{society}", "")}"\ncompletion_code = "{quoted}"',
        demographics=f'[demographics."{quoted}"]\nchoices = ["{quoted}", "b"]\n[demographics.Other]\nmost = 5',
    )
    person = place.browser()
    pages = [person.get("/")]
    pages.append(person.send())
    pages.append(person.send(agree="yes"))
    while person.page.kind != "done":
        at = person.page
        if at.kind not in ("instructions",):
            pages.append(person.send(**{"field-1": NASTY * 9, "pair-0": NASTY, "group": NASTY + "x", "high": NASTY}))
            assert person.page.status == 400
        person.page = at
        pages.append(person.answer())
    for page in pages:
        _only_own_script(page)
    assert person.groups[0] in groups
    assert place.rows("SELECT status FROM participants") == [("valid",)]


def _only_own_script(page: Page) -> None:
    scripts = [given for tag, given in page.elements if tag == "script"]
    assert scripts == [{"src": "/static/survey.js", "defer": ""}]
    for tag, given in page.elements:
        assert tag not in ("iframe", "object", "base", "style", "img")
        assert not [name for name in given if name.startswith("on") or name == "style"]
    assert all(link.startswith(("#", "/", "https://pool.example/")) for link in page.links)


# Where it ends


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
    assert all(count == (0, 0) for count in counters(place.store).values())
    before = place.everything()
    place.clock.now -= 3601.0
    person.post("/page", {**page.hidden, **given})
    person.post("/begin", {**page.hidden, "agree": "yes"})
    assert place.everything() == before


def test_a_full_study_lets_nobody_begin_until_somebody_stays_away(study: Callable[..., Place]) -> None:
    place = study(annotations=1)
    first, second, third = (place.browser() for _ in range(3))
    for person in (first, second):
        person.begin()
        person.go("group")
    assert third.begin().title == "Nothing to do at the moment"
    assert third.page.status == 200
    assert len(place.rows("SELECT * FROM participants")) == 2
    place.clock.now += 3601.0
    assert third.begin().kind == "instructions"
    check_counts(place.store)


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


def test_the_last_page_leads_back_to_the_pool_with_its_code(study: Callable[..., Place]) -> None:
    url = "https://pool.example/complete?cc={code}"
    place = study(pool=f'completion_url = "{url}"\ncompletion_code = "C1&AB"')
    person = place.browser()
    assert person.walk() == "C1&AB"
    assert "https://pool.example/complete?cc=C1%26AB" in person.page.links


# Links that are signed

KEY = "0123456789abcdef0123456789abcdef"
SIGNED = {"pool": 'parameter = "PROLIFIC_PID"\nsigned = true', "link_key": KEY}


def test_a_signed_link_is_that_of_openssl(study: Callable[..., Place]) -> None:
    """printf 'small\\nabc123' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef"""
    place = study(**SIGNED)
    expected = "f06e0c0c978577ac061621638742fad9e772129e33eb4b3e8dcc75d628338f5d"
    link = make_signed_link("https://site.example/", KEY, place.store.study, "abc123")
    assert link == f"https://site.example/?PROLIFIC_PID=abc123&signature={expected}"
    assert place.browser().begin(f"abc123&signature={expected}").kind == "instructions"
    assert place.rows("SELECT pool_id FROM participants") == [("abc123",)]


def test_a_link_carries_any_number_that_can_be_typed(study: Callable[..., Place]) -> None:
    place = study(**SIGNED)
    for number in ("a&b=c d%", "é😀", "x" * 128):
        link = make_signed_link("", KEY, place.store.study, number)
        person = place.browser()
        person.get(link)
        assert person.send(agree="yes").kind == "instructions"
        assert place.store.delete(number, by="pool_id")
    for number in ("", " a", "a\n", "x" * 129):
        with pytest.raises(UsageError, match="participant number"):
            make_signed_link("", KEY, place.store.study, number)


def test_a_number_without_its_own_signature_is_refused(study: Callable[..., Place]) -> None:
    place = study(**SIGNED)
    own = place.store.study
    right = sign_number(KEY, own, "abc123")
    wrong = [None, "", "x", right[:-1], right + "0", right.upper(), "é" * 64, "\0"]
    wrong += [sign_number(KEY, own, "abc124"), sign_number(KEY[::-1], own, "abc123")]
    wrong += [sign_number(KEY, replace(own, name="other"), "abc123")]
    for given in wrong:
        person = place.browser()
        sent = {"PROLIFIC_PID": "abc123"} | ({} if given is None else {"signature": given})
        answer = person.client.get("/", params=sent, follow_redirects=False)
        assert answer.status_code == 403, given
        assert "set-cookie" not in answer.headers
    assert place.rows("SELECT * FROM participants") == []
    # Nor does it help to leave the number out; and who has begun with one may come back by any link.
    assert place.browser().begin().status == 403
    person = place.browser()
    person.begin(f"abc123&signature={right}")
    assert person.get("/?PROLIFIC_PID=abc123").kind == "instructions"


def test_a_signature_is_compared_in_constant_time(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    place = study(**SIGNED)
    compared = record_comparisons(monkeypatch)
    place.browser().get("/?PROLIFIC_PID=abc123&signature=wrong")
    assert {b"wrong", sign_number(KEY, place.store.study, "abc123").encode()} in compared


def test_a_study_of_signed_links_is_not_served_without_a_key(study: Callable[..., Place]) -> None:
    with pytest.raises(UsageError, match=r"pool\.signed"):
        study(pool=SIGNED["pool"])
