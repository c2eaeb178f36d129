"""``biassay survey`` as a researcher types it, up to a study that is served."""

from __future__ import annotations

import hmac
import io
import json
import socket
from pathlib import Path

import pytest
from tests.survey.people import opened, take_part

from biassay.survey.study import read_bundled_study, read_study

from . import survey_study
from .conftest import Cli
from .survey_study import STUDY, refused

pytestmark = pytest.mark.extras
here, study, store = survey_study.here, survey_study.study, survey_study.store


# new


def test_new_writes_the_shipped_study_to_change(cli: Cli, here: Path) -> None:
    code, stdout, _ = cli("survey", "new", here / "mine.toml")
    assert code == 0
    assert f"biassay survey serve {here / 'mine.toml'}" in stdout
    assert (here / "mine.toml").read_text(encoding="utf-8") == read_bundled_study("cao2022")
    assert read_study(here / "mine.toml") == read_study("cao2022")
    assert "have your review board approve it" in stdout
    assert [path.name for path in here.iterdir()] == ["mine.toml"]


# check


def test_check_says_what_is_in_a_study(cli: Cli, study: Path, here: Path) -> None:
    """Three groups, twice each, two a participant: three people."""
    code, stdout, stderr = cli("survey", "check", study)
    assert (code, stderr) == (0, "")
    for said in (
        f"pets ({read_study(study).digest}): 3 groups, 2 pairs of traits",
        "2 valid annotations of each group; each participant rates 2 groups",
        "at least 3 participants",
        "spread 1",
        "seconds_per_group 0",
        "demographics: Gender (linked to ratings in exports)",
        "language: en; places are reserved for 60 minutes",
        "missing from the consent page: researcher, contact, approval",
    ):
        assert said in stdout
    assert list(here.iterdir()) == [study]


# Studies and databases that cannot be used

WITH_STUDY = [("check",), ("serve",), ("status",), ("export", "--out", "out"), ("delete",)]


def called(command: tuple[str, ...], study: object, *args: object) -> tuple[object, ...]:
    rest = ("CODE",) if command[0] == "delete" else ()
    return (command[0], study, *rest, *command[1:], *args)


@pytest.mark.parametrize("command", WITH_STUDY, ids=lambda command: command[0])
def test_a_bad_study_is_refused_with_its_line(command: tuple[str, ...], cli: Cli, study: Path, here: Path) -> None:
    study.write_text(STUDY.replace("annotations = 2", "annotations = -2"))
    said = refused(cli, *called(command, study))
    assert f"{study}: line 6: field target.annotations: expected a whole number from 1 to 1000000" in said
    assert list(here.iterdir()) == [study]


def test_the_database_may_come_from_the_environment(
    cli: Cli, study: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASSAY_SURVEY_DATABASE", f"sqlite:///{here / 'elsewhere.sqlite'}")
    assert "elsewhere.sqlite does not exist" in refused(cli, "status", study)
    assert list(here.iterdir()) == [study]
    with opened(f"sqlite:///{here / 'elsewhere.sqlite'}", read_study(study)) as store:
        take_part(store)
    code, stdout, _ = cli("survey", "status", study)
    assert code == 0
    assert "participants: 1 valid" in stdout
    assert not (here / "pets.sqlite").exists()


@pytest.mark.parametrize("name", ["what?", "50%25", "a#b", "ünï cödé", "../up", "a/b", "x?mode=ro"])
def test_any_name_of_a_study_makes_a_database_in_this_folder_or_is_refused(
    name: str, cli: Cli, study: Path, here: Path, unserved: list[dict[str, object]]
) -> None:
    study.write_text(STUDY.replace('"pets"', json.dumps(name, ensure_ascii=False)), encoding="utf-8")
    code, _, stderr = cli("survey", "serve", study)
    assert code == (2 if "/" in name else 0), stderr
    made = [path.name for path in here.iterdir() if path != study and not path.name.endswith(("-wal", "-shm"))]
    assert made == ([f"{name}.sqlite"] if code == 0 else [])
    assert not (here.parent / "up.sqlite").exists()
    assert len(unserved) == (code == 0)
    # Who asks afterwards finds the same file.
    assert cli("survey", "status", study)[0] == code


# serve


@pytest.fixture
def unserved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Replace the server by one that stops at once, and return its arguments."""
    served: list[dict[str, object]] = []
    monkeypatch.setattr("uvicorn.run", lambda _, **options: served.append(options))
    monkeypatch.setattr("biassay.survey.server._check_port", lambda *_: None)
    return served


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_in_use_is_said_and_nothing_is_served(
    host: str, cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: pytest.fail("it was served"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, stderr = cli("survey", "serve", study, "--host", host, "--port", port)
    said = " ".join(stderr.split())
    assert code == 2
    assert f"cannot use port {port} of {host} (Address already in use)" in said
    assert "Choose another port with --port" in said
    assert "Traceback" not in stderr


def test_a_port_that_is_free_is_still_free_for_the_server(
    cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    served = []

    def run(_: object, *, host: str, port: int, **__: object) -> None:
        with socket.socket() as own:
            own.bind((host, port))
            own.listen()
        served.append(port)

    monkeypatch.setattr("uvicorn.run", run)
    assert cli("survey", "serve", study, "--port", port)[0] == 0
    assert served == [port]


def test_a_short_token_is_refused_before_anything_is_made(
    cli: Cli, study: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASSAY_SURVEY_TOKEN", "geheim")
    said = refused(cli, "serve", study)
    assert "$BIASSAY_SURVEY_TOKEN has 6 characters; a token needs at least 12" in said
    assert "geheim" not in said
    assert list(here.iterdir()) == [study]


@pytest.mark.parametrize(
    ("options", "trusted"),
    [
        ((), (False, [])),
        (("--behind-proxy", "127.0.0.1"), (True, ["127.0.0.1"])),
        (("--behind-proxy", "10.1.2.3, fd00::/64"), (True, ["10.1.2.3", "fd00::/64"])),
    ],
)
def test_only_proxies_that_are_named_are_trusted(
    options: tuple[str, ...], trusted: tuple[bool, list[str]], cli: Cli, study: Path, unserved: list[dict[str, object]]
) -> None:
    assert cli("survey", "serve", study, *options)[0] == 0
    assert (unserved[0]["proxy_headers"], unserved[0]["forwarded_allow_ips"]) == trusted


@pytest.mark.parametrize("given", ["", "*", "localhost", "10.0.0.1/8", "127.0.0.1,", "0.0.0.0/0", "::/0", "10.0.0.256"])
def test_what_is_no_address_of_a_proxy_is_refused_before_anything_is_made(
    given: str, cli: Cli, study: Path, here: Path
) -> None:
    assert "--behind-proxy" in refused(cli, "serve", study, "--behind-proxy", given)
    assert list(here.iterdir()) == [study]


# links

KEY = "0123456789abcdef0123456789abcdef"
SIGNED = STUDY + '[pool]\nparameter = "PID"\nsigned = true\n'


def test_links_are_signed_for_numbers_named_or_read(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study.write_text(SIGNED)
    monkeypatch.setenv("BIASSAY_SURVEY_LINK_KEY", KEY)
    code, stdout, _ = cli("survey", "links", study, "a1", "b2", "--site", "https://site.example")
    expected = [hmac.new(KEY.encode(), f"pets\n{number}".encode(), "sha256").hexdigest() for number in ("a1", "b2")]
    assert code == 0
    assert stdout.splitlines() == [
        f"https://site.example/?PID={number}&signature={sign}"
        for number, sign in zip(("a1", "b2"), expected, strict=True)
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("a1\n\nb2\n"))
    assert cli("survey", "links", study, "--site", "https://site.example/")[1] == stdout


def test_signed_links_need_a_key_that_cannot_be_guessed(
    cli: Cli, study: Path, here: Path, monkeypatch: pytest.MonkeyPatch, unserved: list[dict[str, object]]
) -> None:
    study.write_text(SIGNED)
    for command in (("serve", study), ("links", study, "a1", "--site", "https://site.example")):
        monkeypatch.delenv("BIASSAY_SURVEY_LINK_KEY", raising=False)
        assert "set $BIASSAY_SURVEY_LINK_KEY to the key" in refused(cli, *command)
        monkeypatch.setenv("BIASSAY_SURVEY_LINK_KEY", KEY[:31])
        assert "a key needs at least 32" in refused(cli, *command)
    assert list(here.iterdir()) == [study]
    monkeypatch.setenv("BIASSAY_SURVEY_LINK_KEY", KEY)
    assert "https://" in refused(cli, "links", study, "a1", "--site", "site.example")
    assert cli("survey", "serve", study)[0] == 0
    assert len(unserved) == 1
    study.write_text(STUDY)
    assert "pool.signed = true" in refused(cli, "links", study, "a1", "--site", "https://site.example")


def test_what_serve_says_holds_no_secret(
    cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch, unserved: list[dict[str, object]]
) -> None:
    code, stdout, _ = cli("survey", "serve", study)
    assert code == 0
    assert "researchers:  off; set $BIASSAY_SURVEY_TOKEN" in stdout
    monkeypatch.setenv("BIASSAY_SURVEY_TOKEN", "a-long-secret-token")
    code, stdout, stderr = cli("survey", "serve", study, "--port", 8123)
    assert code == 0
    assert "http://127.0.0.1:8123/researcher" in stdout
    assert "a-long-secret-token" not in stdout + stderr
    assert [(options["host"], options["port"], options["access_log"]) for options in unserved] == [
        ("127.0.0.1", 8000, False),
        ("127.0.0.1", 8123, False),
    ]


def test_commands_are_named_in_the_help(cli: Cli) -> None:
    code, stdout, _ = cli("survey", "--help")
    assert code == 0
    assert all(
        f"  {name} " in stdout for name in ("new", "check", "serve", "links", "status", "export", "means", "delete")
    )
