"""What an attacker tries on the researcher's side: tokens, limits, files, deletion, and what people write."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
from tests.survey.people import check_counts
from tests.survey.walks import FILES, GROUPS, METHODS, TOKEN, Place, cookie_of, log_in, named, record_comparisons, use

pytestmark = pytest.mark.extras


XSS = '"><script>alert(1)</script>'


def test_without_a_token_there_is_no_researchers_side(study: Callable[..., Place]) -> None:
    client = study(token=None).browser().client
    for path in [path for path in METHODS if path.startswith("/researcher")]:
        assert client.request(min(METHODS[path]), path, data={"password": ""}).status_code == 404


def test_a_wrong_token_opens_nothing(study: Callable[..., Place]) -> None:
    person = study().browser()
    for given in ("", " ", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN + " ", TOKEN.upper(), "\0", "é", "x" * 60_000):
        page = log_in(person.client, given)
        assert (page.status, page.kind) == (401, "login")
        assert TOKEN not in page.html
        assert cookie_of(person.client, "biassay_researcher") is None
        assert person.get("/researcher").kind == "login"


def test_the_token_is_compared_in_constant_time(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    compared = record_comparisons(monkeypatch)
    person = study().browser()
    log_in(person.client, "a-wrong-token")
    assert {b"a-wrong-token", TOKEN.encode()} in compared


def test_the_researcher_sees_how_far_the_study_is(study: Callable[..., Place]) -> None:
    place = study()
    careful, careless = place.browser(), place.browser()
    careful.walk()
    careless.begin()
    careless.go("which_group")
    careless.send(group=next(group for group in careless.page.offered["group"] if group != careless.groups[0]))
    careless.go()
    page = log_in(place.browser().client)
    for said in ("active 0", "valid 1", "rejected 1", "pass rate 50%", "rejected for: which group 1"):
        assert said in page.text
    means = {group: f"{careful.rate(group, 0)}.0" for group in careful.groups}
    for group in GROUPS:
        assert f"{group} {int(group in means)} 0 20" in page.text
        assert f"{group} {means.get(group, '–')} " in page.text


@pytest.mark.parametrize("name", FILES)
def test_answers_are_for_those_who_logged_in(study: Callable[..., Place], name: str) -> None:
    place = study()
    person = place.browser()
    person.walk("abc123")
    path = f"/researcher/export/{name}"
    assert person.client.get(path).status_code == 404
    participant = person.client.cookies[named(person)]
    for given in (participant, TOKEN, "", "x.y.z"):
        person.client.cookies.set(named(person, "biassay_researcher"), given)
        assert person.client.get(path).status_code == 404
        assert person.get("/researcher").kind == "login"
    use(person, participant)
    for headers in ({"authorization": f"Bearer {TOKEN}"}, {"x-token": TOKEN}):
        assert person.client.get(path, params={"token": TOKEN}, headers=headers).status_code == 404
    log_in(person.client)
    answer = person.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    for secret in ("abc123", place.store.secret, TOKEN, *place.rows("SELECT id, code FROM participants")[0]):
        assert secret.encode() not in answer.content


def test_there_are_no_other_files(study: Callable[..., Place]) -> None:
    person = study().browser()
    log_in(person.client)
    for name in ("secret", "ratings.xml", "..%2fstudy.toml", "%00", "answers.sqlite", "ratings.json%0a"):
        assert person.client.get(f"/researcher/export/{name}").status_code == 404


def test_a_file_whose_library_is_absent_is_no_failure(
    study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    person = study().browser()
    log_in(person.client)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 400 <= person.client.get("/researcher/export/ratings.parquet").status_code < 500


def test_logging_out_ends_it_for_a_copied_cookie_too(study: Callable[..., Place]) -> None:
    place = study()
    person, other = place.browser(), place.browser()
    page = log_in(person.client)
    log_in(other.client)
    cookie = person.client.cookies[named(person, "biassay_researcher")]
    assert person.post("/researcher/logout", {"token": page.token}).kind == "login"
    assert cookie_of(person.client, "biassay_researcher") is None
    assert other.get("/researcher").kind == "researcher"
    use(person, cookie, "biassay_researcher")
    assert person.get("/researcher").kind == "login"
    assert person.client.get("/researcher/export/ratings.json").status_code == 404


def test_a_new_token_ends_what_the_old_one_opened(study: Callable[..., Place]) -> None:
    from starlette.testclient import TestClient

    from biassay.survey.app import make_app

    place = study()
    person = place.browser()
    log_in(person.client)
    restarted = make_app(place.store, token="another-token-for-tests")
    try:
        with TestClient(restarted, cookies=dict(person.client.cookies)) as client:
            assert client.get("/researcher/export/ratings.json").status_code == 404
            assert log_in(client, "another-token-for-tests").kind == "researcher"
    finally:
        restarted.state.site.workers.shutdown()


@pytest.mark.parametrize(
    ("by", "when"), [("code", "active"), ("pool_id", "valid"), ("code", "rejected"), ("pool_id", "abandoned")]
)
def test_one_persons_answers_are_deleted(study: Callable[..., Place], by: str, when: str) -> None:
    place = study()
    other, person = place.browser(), place.browser()
    other.walk("stays")
    person.about = {"field-2": "Words of their own"}
    if when == "rejected":
        person.rate = lambda *_: 50
    person.begin("goes-away")
    person.go("done" if when in ("valid", "rejected") else "demographics")
    place.clock.now += 3700.0 if when == "abandoned" else 0.0
    person.get("/page")
    identifier, status = place.rows(f"SELECT {by}, status FROM participants WHERE pool_id = 'goes-away'")[0]
    assert status == when
    log_in(other.client)
    token = other.get("/researcher").token
    form = {"token": token, "identifier": identifier, "by": by}
    assert "data were deleted." in other.post("/researcher/delete", form).text
    assert "No participant has" in other.post("/researcher/delete", form).text
    check_counts(place.store)
    assert sorted(place.rows("SELECT status FROM participants")) == [("deleted",), ("valid",)]
    assert len(place.rows("SELECT * FROM annotations")) == 4


def test_nobody_is_deleted_by_a_guess(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.walk()
    before = place.everything()
    log_in(person.client)
    token = person.get("/researcher").token
    for identifier in ("", " ", "%", "_", "' OR 1=1 --", "*", "NULL", "None", "x" * 60_000, "\0", "é"):
        for by in ("code", "pool_id", "id", "status"):
            form = {"token": token, "identifier": identifier, "by": by}
            assert "No participant has" in person.post("/researcher/delete", form).text
    assert place.everything() == before


def test_what_people_write_runs_nowhere(study: Callable[..., Place]) -> None:
    place = study(link=True, groups=[XSS, "=1+1", "@x", *GROUPS[:3]], name=XSS)
    for i in range(6):
        person = place.browser()
        person.about = {
            "field-2": (XSS, "=cmd|' /C calc'!A0", "\x1b]0;x\x07", "\u202e", "{{7*7}}", "'; DROP TABLE x--")[i]
        }
        person.walk(XSS.replace('"', "%22") + str(i))
    page = log_in(person.client)
    assert [given for tag, given in page.elements if tag == "script"] == [{"src": "/static/survey.js", "defer": ""}]
    assert page.title == XSS
    refused = person.client.get("/researcher", params={"deleted": XSS})
    assert XSS not in refused.text
    for name in FILES:
        answer = person.client.get(f"/researcher/export/{name}")
        assert answer.headers["content-type"].partition(";")[0] != "text/html"
        assert answer.headers["x-content-type-options"] == "nosniff"
        if name.endswith(".csv"):
            assert not re.search(r"(^|,)\"?[=@+]", answer.text, re.MULTILINE)
    facts = person.client.get("/researcher/export/demographics.json").json()
    assert XSS in {own["State"] for own in facts.values()}
