"""What an attacker would change: nobody reaches others' answers, and whoever sends at once is written once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.survey import attacks
from tests.survey.attacks import at_once, client_of, named, rows_of
from tests.survey.serving import Served
from tests.survey.walks import Place, Walker, cookie_of

pytestmark = pytest.mark.extras

served = attacks.served
study = attacks.study


def test_naming_somebody_else_changes_nobody_else(study: Callable[..., Place]) -> None:
    place = study()
    victim, attacker = place.browser(), place.browser()
    victim.begin("victim")
    victim.go("group")
    number, code = place.rows("SELECT id, code FROM participants")[0]
    before = place.everything()
    attacker.get("/")
    names = dict.fromkeys(
        ("participant", "p", "id", "participant_id", "biassay", "code", "pool_id", "nonce", "n"), number
    )
    for path in ("/page", "/begin"):
        answer = attacker.client.post(path, params=names, data={**victim.page.hidden, **names, "pair-0": "1"})
        assert answer.status_code == 403
    sent = {**attacker.page.hidden, **names, "step": victim.page.step, **victim.answers()}
    assert attacker.post("/page", sent).kind == "consent"
    own, researchers = named(attacker), named(attacker, "biassay_researcher")
    for header in (f"{own}={number}", f"{own}={code}", f"{researchers}={number}", f"participant={number}"):
        attacker.client.cookies.clear()
        assert attacker.client.get("/page", params=names, headers={"cookie": header}).text.count('name="agree"') == 1
    assert place.everything() == before


def test_a_button_pressed_many_times_at_once_begins_once(served: Served) -> None:
    before = rows_of(served, "SELECT count(*) FROM participants")[0][0]
    with client_of(served) as client:
        page = Walker(client).get("/")
        cookie = cookie_of(client)
    assert cookie is not None

    def pressed() -> str:
        with client_of(served) as window:
            window.cookies.set(*cookie)
            return Walker(window).post("/begin", {**page.hidden, "agree": "yes"}).kind

    assert set(at_once([pressed] * 8)) == {"instructions"}
    assert rows_of(served, "SELECT count(*) FROM participants")[0][0] == before + 1
