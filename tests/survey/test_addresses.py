"""What an attacker asks for: strict headers on every answer, and no address that leads elsewhere."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.survey.serving import Served
from tests.survey.walks import FILES, FORM, METHODS, Place, Walker, log_in

pytestmark = pytest.mark.extras


# Headers


def _strict(answer: Any, path: str) -> None:
    headers = answer.headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    for name in ("frame-ancestors", "base-uri"):
        assert policy[name] == "'none'"
    for name in ("script-src", "style-src", "form-action"):
        assert policy[name] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    if not path.startswith("/static/"):
        assert headers["cache-control"] == "no-store"


def test_headers_are_on_every_answer(study: Callable[..., Place]) -> None:
    from biassay.survey.app import RateLimits

    place = study(limits=RateLimits(begin=1, page=0, login=0))
    person = place.browser()
    client = person.client
    seen = set()

    def look(method: str, path: str, **given: Any) -> None:
        answer = client.request(method, path, follow_redirects=False, **given)
        _strict(answer, path)
        seen.add(answer.status_code)

    for path, method in itertools.product([*METHODS, "/nothing", "/static/nothing"], ("GET", "POST", "PUT", "OPTIONS")):
        look(method, path)
    look("POST", "/page", content=b"x" * 70_000, headers={"content-type": FORM})
    look("POST", "/researcher/login", data={**person.get("/researcher").hidden, "password": "wrong"})
    look("POST", "/page", data={"token": "wrong"})
    look("POST", "/begin", data={"agree": "yes"})
    person.get("/")
    look("POST", "/begin", data=person.page.hidden)
    log_in(client)
    for path in ("/researcher", *(f"/researcher/export/{name}" for name in FILES)):
        look("GET", path)
    assert {200, 303, 401, 403, 404, 405, 413, 415, 429} <= seen


def test_headers_are_on_a_page_that_failed(failing: Walker) -> None:
    answer = failing.client.post("/begin", data={**failing.page.hidden, "agree": "yes"})
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "INSERT" not in answer.text
    _strict(answer, "/begin")


# Addresses


@pytest.mark.parametrize("host", ["evil.example", "evil.example:99999", "x@evil.example", "[", ""])
def test_no_answer_leads_elsewhere(study: Callable[..., Place], host: str) -> None:
    person = study().browser()
    paths = [*METHODS, *(f"{path}/" for path in METHODS), "/?next=//evil.example", "/?PROLIFIC_PID=//evil.example"]
    paths += ["/static", "/%2f%2fevil.example", "/%5cevil.example/", "/page?u=https://evil.example", "/.//evil.example"]
    for path, method in itertools.product(paths, ("GET", "POST")):
        answer = person.client.request(method, path, headers={"host": host}, follow_redirects=False)
        assert answer.status_code < 500
        assert re.fullmatch(r"|/|/[^/\\].*", answer.headers.get("location", "")), (method, path)
        assert "evil" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/..%5capp.py"),
        *(
            "/static//etc/passwd",
            "/static/%2fetc/passwd",
            "/static/....//app.py",
            "/static/%00",
            "/static/survey.css%00",
        ),
        *("/static/%ff", "/static/" + "a" * 5000, "/../study.toml", "/%2e%2e/answers.sqlite", "/static/."),
        *("/static/%252e%252e/app.py", "/researcher/export/..%2fstudy.toml", "/researcher/export/../../page"),
        *(
            "//evil.example/",
            "//evil.example/page/",
            "/\\evil.example/",
            "http://evil.example/page/",
            "/page/%0d%0aX:y",
        ),
        *("/%", "/%zz", "/%e0%80", "/?%", "/?PROLIFIC_PID=%ed%a0%80", "/?" + "a&" * 20_000, "*"),
    ],
)
def test_a_strange_address_gets_nothing(served: Served, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1")
    status, answer = served.raw(request)
    assert status in (200, 303, 400, 404)
    assert status != 200 or b'name="agree"' in answer
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert not re.search(rb"location: (?!/(page)?\r?$)", head, re.MULTILINE)
    assert b"import annotations" not in answer
    assert b"root:" not in answer
