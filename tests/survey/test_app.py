"""The participant's way over HTTP: every step of it, beginning twice, and texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.survey.walks import Page, Place, cookie_of, opened

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
    from biassay.errors import UsageError

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
