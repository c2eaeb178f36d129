"""Whom limits count: the address behind the proxies that were named, and no more people of one address than may be."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from tests.survey.walks import Place, Walker, at_once, log_in

from biassay.survey.app import RateLimits
from biassay.survey.security import get_rate_limit_key
from biassay.survey.server import make_uvicorn_options

pytestmark = pytest.mark.extras


PROXY = "10.0.0.2"


def client_from(place: Place, peer: str, proxies: list[str] | None) -> Any:
    """A client whose requests come to the server from this address."""
    config = uvicorn.Config(place.app, **make_uvicorn_options("127.0.0.1", 0, proxies))
    config.load()
    return TestClient(config.loaded_app, client=(peer, 1))


def tries(place: Place, peer: str, proxies: list[str] | None, hops: str) -> list[int]:
    """What eight tries to log in are answered, each with a header that names other hops."""
    client = client_from(place, peer, proxies)
    headers = [{"x-forwarded-for": hops.format(i=i)} for i in range(8)]
    return [client.post("/researcher/login", headers=header).status_code for header in headers]


@pytest.mark.parametrize(
    ("peer", "proxies", "hops"),
    [
        ("203.0.113.9", None, "192.0.2.{i}"),
        ("127.0.0.1", None, "192.0.2.{i}"),
        (PROXY, [PROXY], "192.0.2.{i}, 203.0.113.9"),
        (PROXY, [PROXY], "192.0.2.{i}, 10.0.0.9"),  # the client is on the proxy's own network
        (PROXY, [PROXY], "192.0.2.{i}, 127.0.0.1"),
        ("10.0.0.9", [PROXY], "192.0.2.{i}"),  # it does not come through the proxy
        ("127.0.0.1", [PROXY], "192.0.2.{i}"),
        ("10.0.0.3", ["10.0.0.2/31"], "192.0.2.{i}, 203.0.113.9, 10.0.0.2"),
        ("10.0.0.4", ["10.0.0.2/31"], "192.0.2.{i}"),
    ],
)
def test_made_up_addresses_do_not_get_around_a_limit(
    study: Callable[..., Place], peer: str, proxies: list[str] | None, hops: str
) -> None:
    assert tries(study(limits=RateLimits(login=5)), peer, proxies, hops) == [415] * 5 + [429] * 3


@pytest.mark.parametrize(
    ("peer", "proxies", "hops"),
    [
        (PROXY, [PROXY], "203.0.113.{i}"),
        (PROXY, [PROXY, "10.0.0.3"], "203.0.113.{i}, 10.0.0.3"),
        ("fd00::2", ["fd00::/64"], "2001:db8:0:{i}::1"),
    ],
)
def test_behind_a_proxy_people_are_told_apart(
    study: Callable[..., Place], peer: str, proxies: list[str], hops: str
) -> None:
    assert tries(study(limits=RateLimits(login=5)), peer, proxies, hops) == [415] * 8


def test_somebody_has_all_addresses_of_a_network_of_ipv6() -> None:
    assert (
        get_rate_limit_key("2001:db8::1")
        == get_rate_limit_key("2001:db8::ffff:1:2:3")
        != get_rate_limit_key("2001:db8:0:1::1")
    )
    assert get_rate_limit_key("::ffff:192.0.2.1") == get_rate_limit_key("192.0.2.1") != get_rate_limit_key("192.0.2.2")
    assert get_rate_limit_key("fe80::1%eth0") == get_rate_limit_key("fe80::2")
    assert get_rate_limit_key("testclient") == "testclient"


# People of one address who have begun and not ended


def someone(place: Place, address: str = "192.0.2.1") -> Walker:
    return Walker(TestClient(place.app, client=(address, 1)), pairs=place.store.study.pairs, clock=place.clock)


def test_one_address_cannot_hold_every_place(study: Callable[..., Place], caplog: pytest.LogCaptureFixture) -> None:
    place = study(limits=RateLimits(0, 0, 0, unfinished=2))
    first, second, third = (someone(place) for _ in range(3))
    assert first.begin().kind == second.begin().kind == "instructions"
    refused = third.begin()
    assert refused.status == 429
    assert place.store.study.texts["crowded"]["body"] in refused.text
    (line,) = [line for line in caplog.messages if "--unfinished-limit 2" in line]
    assert "192.0.2" not in line
    assert len(place.rows("SELECT * FROM participants")) == 2
    assert someone(place, "192.0.2.2").begin().kind == "instructions"
    first.go()
    assert third.begin().kind == "instructions"
    assert someone(place).begin().status == 429


def test_many_at_once_do_not_get_around_the_limit(study: Callable[..., Place]) -> None:
    place = study(limits=RateLimits(0, 0, 0, unfinished=3))
    site = place.app.state.site

    def begin(number: int) -> int:
        try:
            return 200 if site.begin_participant("192.0.2.1", None, f"person{number}") is not None else 0
        except HTTPException as error:
            return error.status_code

    assert sorted(at_once([partial(begin, i) for i in range(10)])) == [200] * 3 + [429] * 7
    assert len(place.rows("SELECT * FROM participants")) == 3


# Limits per minute


def test_trying_tokens_is_stopped_and_goes_on_a_minute_later(
    study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = study(limits=RateLimits(begin=0, page=0, login=5))
    person = place.browser()
    assert [log_in(person.client, "wrong").status for _ in range(5)] == [401] * 5
    assert log_in(person.client).status == 429
    assert log_in(place.browser().client).status == 429
    assert person.begin().kind == "instructions"
    with TestClient(place.app, client=("192.0.2.1", 1)) as elsewhere:
        assert log_in(elsewhere).kind == "researcher"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61.0)
    assert log_in(person.client).kind == "researcher"


def test_beginning_and_sending_are_limited(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    place = study(limits=RateLimits(begin=2, page=3, login=0))
    first, second, third = (place.browser() for _ in range(3))
    assert first.begin().kind == second.begin().kind == "instructions"
    assert third.begin().status == 429
    assert len(place.rows("SELECT * FROM participants")) == 2
    first.go("group")
    page = first.page
    assert [first.post("/page", page.hidden).status for _ in range(3)] == [400, 400, 429]
    assert second.answer().kind == "group"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61.0)
    assert third.begin().kind == "instructions"
    first.page = page
    assert first.answer().kind == "which_group"
