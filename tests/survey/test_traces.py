"""What is left behind: no log and no file says more than it must."""

from __future__ import annotations

import logging
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.survey.serving import command_serving
from tests.survey.walks import TOKEN, Place, Walker, log_in, write_study

pytestmark = pytest.mark.extras


def test_what_failed_is_written_down_as_where_and_not_what(failing: Walker, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL repeats in its message what a row held."""
    site = failing.client.app.state.site

    def begin(pool_id: str, *_: object) -> None:
        raise RuntimeError(f"DETAIL: Key (pool_id)=({pool_id}) already exists.")

    site.store.add_participant = begin
    with caplog.at_level(logging.DEBUG):
        failing.send(agree="yes")
    assert "RuntimeError" in caplog.text
    assert "hidden-number" not in caplog.text


def test_a_server_writes_down_no_address_no_number_and_no_secret(tmp_path: Path) -> None:
    with command_serving(write_study(tmp_path, seconds=0), tmp_path) as served, served.client() as client:
        client.headers.update({"user-agent": "Own-Browser/9", "x-forwarded-for": "198.51.100.7"})
        person = Walker(client, about={"field-2": "Ohio"})
        code = person.walk("number-of-the-pool")
        for path in ("/?PROLIFIC_PID=number-of-the-pool", "/nothing/number-of-the-pool", "/page/number-of-the-pool"):
            client.get(path)
        served.raw(b"GET /?PROLIFIC_PID=number-of-the-pool HTTP/9\r\n\r\n")
        client.post("/page", data={"token": "number-of-the-pool"})
        log_in(client, "not-the-token-at-all")
        page = log_in(client)
        assert page.kind == "researcher"
        cookies = list(client.cookies.values())
        secret = served.rows("SELECT secret FROM studies")[0][0]
        # WAL and all, while it runs.
        files = b"".join(path.read_bytes() for path in tmp_path.glob("answers.sqlite*"))
    said = served.said.read_text()
    assert b"Ohio" in files
    for trace in (b"127.0.0.1", b"198.51.100.7", b"Own-Browser", b"testclient", TOKEN.encode()):
        assert trace not in files
    greeting, rest = said.splitlines()[:3], said.splitlines()[3:]
    assert [line.partition(" ")[0] for line in greeting] == ["study", "participants:", "researchers:"]
    for text in ("127.0.0.1", "198.51.100.7", "number-of-the-pool", "Own-Browser", "PROLIFIC", "GET ", "POST "):
        assert text not in "\n".join(rest)
    for text in (TOKEN, "not-the-token-at-all", code, page.token, secret, *cookies):
        assert text not in said


def test_a_password_in_a_wrong_address_of_a_database_is_not_repeated() -> None:
    from biassay.errors import UsageError
    from biassay.survey.database import open_database

    for url in ("postgresql//me:pass-word@host/db", "mysql://me:pass-word@host/db"):
        with pytest.raises(UsageError) as raised:
            open_database(url)
        assert "pass-word" not in str(raised.value)


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_other_users_of_the_machine_cannot_read_the_database(study: Callable[..., Place]) -> None:
    """It holds the key that signs cookies, and numbers of the pool beside answers."""
    place = study()
    place.browser().begin()
    file = Path(place.store.engine.url.database)
    for path in file.parent.glob(f"{file.name}*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name


def test_deleted_words_are_in_no_file_any_more(study: Callable[..., Place]) -> None:
    """A log of writes that is kept beside the database holds them too."""
    place = study()
    person = place.browser()
    person.about = {"field-2": "Words of their own"}
    place.browser().walk("stays")
    person.walk("goes-away")
    assert place.store.delete("goes-away", by="pool_id")
    file = Path(place.store.engine.url.database)
    left = b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
    assert b"stays" in left
    for trace in (b"goes-away", b"Words of their own"):
        assert trace not in left
