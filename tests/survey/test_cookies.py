"""What an attacker tries with cookies: none that is changed, old, or of somebody else opens anything."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.survey.serving import Served
from tests.survey.walks import TOKEN, Place, Walker, at_once, cookie_of, log_in, named, use

pytestmark = pytest.mark.extras


@pytest.mark.parametrize("secure", [False, True])
def test_cookies_are_hidden_from_scripts_and_other_sites(study: Callable[..., Place], secure: bool) -> None:
    person = study(secure=secure).browser()
    first = person.client.get("/").headers["set-cookie"]
    researcher = person.get("/researcher")
    fields = {**researcher.hidden, "password": TOKEN}
    second = person.client.post("/researcher/login", data=fields, follow_redirects=False).headers["set-cookie"]
    for cookie, same_site in ((first, "lax"), (second, "strict")):
        flags = [flag.strip().lower() for flag in cookie.split(";")[1:]]
        assert {"httponly", f"samesite={same_site}", "path=/"} <= set(flags)
        assert ("secure" in flags) is secure
        assert not [flag for flag in flags if flag.startswith("domain")]


def test_a_cookie_that_is_changed_or_signed_by_somebody_else_is_none(study: Callable[..., Place]) -> None:
    from itsdangerous import URLSafeTimedSerializer

    place, other = study(), study(name="other")
    person, foreign = place.browser(), other.browser()
    page = person.begin()
    foreign.begin()
    cookie = person.client.cookies[named(person)]
    content, stamp, signature = cookie.rsplit(".", 2)
    forged = [cookie[:i] + ("A" if cookie[i] != "A" else "B") + cookie[i + 1 :] for i in range(0, len(cookie) - 1, 7)]
    forged += [content, f"{content}.{stamp}.", f".{stamp}.{signature}", f"{cookie}x", "", ".", "x" * 3000]
    forged.append(foreign.client.cookies[named(foreign)])
    mine = {"n": "a", "p": place.rows("SELECT id FROM participants")[0][0], "i": None}
    for secret, kind in (("", "biassay"), (other.store.secret, "biassay"), (place.store.secret, "biassay_researcher")):
        forged.append(URLSafeTimedSerializer(secret, salt=f"biassay.survey.{kind}").dumps(mine))
    before = place.everything()
    for given in forged:
        use(person, given)
        assert person.get("/page").kind == "consent"
        use(person, given)
        assert person.post("/page", page.hidden).status == 403
    assert place.everything() == before
    use(person, cookie)
    assert person.post("/page", page.hidden).kind == "group"


def test_an_old_cookie_is_none(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    place = study()
    person = place.browser()
    person.begin()
    log_in(person.client)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 13 * 3600)
    assert person.get("/page").kind == "instructions"
    assert person.get("/researcher").kind == "login"
    monkeypatch.setattr(time, "time", lambda: now + 8 * 24 * 3600)
    assert person.get("/page").kind == "consent"


def test_a_cookie_planted_before_consent_opens_nothing_of_who_consents(study: Callable[..., Place]) -> None:
    """Somebody else fetched it, with the form that belongs to it, and sends that form once more afterwards."""
    place = study()
    victim, attacker = place.browser(), place.browser()
    form = attacker.get("/?PROLIFIC_PID=victim").hidden
    planted = attacker.client.cookies[named(attacker)]
    use(victim, planted)
    victim.get("/")
    victim.send(agree="yes")
    victim.go("which_group")
    before = place.everything()
    page = attacker.post("/begin", {**form, "agree": "yes"})
    assert (page.status, page.title) == (409, "You have taken part already")
    use(attacker, planted)
    assert attacker.get("/page").kind == "consent"
    assert place.everything() == before
    # Nor does the form that was fetched with it begin for the victim, nor the victim's own with the planted cookie.
    other = place.browser()
    own = other.get("/").hidden
    assert other.post("/begin", {**form, "agree": "yes"}).status == 403
    use(other, planted)
    assert other.post("/begin", {**own, "agree": "yes"}).status == 403
    assert place.everything() == before


def test_a_button_pressed_many_times_at_once_begins_once(served: Served) -> None:
    before = served.rows("SELECT count(*) FROM participants")[0][0]
    with served.client() as client:
        page = Walker(client).get("/")
        cookie = cookie_of(client)
    assert cookie is not None

    def pressed() -> str:
        with served.client() as window:
            window.cookies.set(*cookie)
            return Walker(window).post("/begin", {**page.hidden, "agree": "yes"}).kind

    assert set(at_once([pressed] * 8)) == {"instructions"}
    assert served.rows("SELECT count(*) FROM participants")[0][0] == before + 1
