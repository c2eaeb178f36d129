"""Keys of ``api:``: which one is sent to whom, and that it is seen nowhere."""

from __future__ import annotations

import html
import json
import logging
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest

import biassay
from biassay.cli import main
from biassay.errors import MeasurementError, UsageError
from biassay.models.openai.embeddings import ApiEncoder
from biassay.models.registry import open_encoder, parse_model

from . import api_server
from .api_server import KEY, KEYED, Endpoint, Reply, good, opened

pytestmark = pytest.mark.extras

endpoint, key, no_key = api_server.endpoint, api_server.key, api_server.no_key


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("api:toy", "set the environment variable BIASSAY_API_KEY or OPENAI_API_KEY"),
        (
            "api:toy?base_url=https://api.openai.com/v1/",
            "set the environment variable BIASSAY_API_KEY or OPENAI_API_KEY",
        ),
        ("api:toy?base_url=http://api.openai.com/v1", "keys are sent only to https://api.openai.com/v1"),
    ],
)
@pytest.mark.parametrize("blank", [True, False])
def test_a_key_is_needed_for_openai(model: str, names: str, blank: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blank:
        for name in ("BIASSAY_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, " \n")
    with pytest.raises(UsageError, match=f"'api:toy' needs a key: {names}"):
        open_encoder(model)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "[::1]", "toy.localhost", "LOCALHOST"])
def test_no_key_is_needed_for_this_machine(host: str) -> None:
    assert open_encoder(f"api:toy?base_url=http://{host}:1/v1").identity.backend == "api"


def elsewhere(server: Endpoint) -> str:
    """The URL of the server as that of another machine; Linux connects 0.0.0.0 to this one."""
    return server.base.replace("127.0.0.1", "0.0.0.0")


@pytest.mark.parametrize("by_environment", [True, False])
def test_another_machine_may_need_no_key(
    endpoint: Endpoint, by_environment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    if by_environment:
        monkeypatch.setenv("OPENAI_BASE_URL", elsewhere(endpoint))
    encoder = open_encoder("api:toy" if by_environment else f"api:toy?base_url={elsewhere(endpoint)}")
    assert len(encoder.encode(["one"]).vectors) == 1
    assert encoder.identity.destination.endswith("without a key")
    assert "Authorization" not in endpoint.seen[-1][1]


@pytest.mark.parametrize(
    ("by_environment", "advice"),
    [(True, "set the environment variable BIASSAY_API_KEY or OPENAI_API_KEY"), (False, "add key_env=MY_KEY")],
)
@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_asks_for_a_key_names_the_variable(
    endpoint: Endpoint, status: int, by_environment: bool, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    endpoint.always = lambda _: Reply(status)
    if by_environment:
        monkeypatch.setenv("OPENAI_BASE_URL", elsewhere(endpoint))
    model = "api:toy" if by_environment else f"api:toy?base_url={elsewhere(endpoint)}"
    with pytest.raises(MeasurementError, match=f"answered {status}.*the server requires a key: .*{advice}"):
        open_encoder(model).encode(["one"])


def sent_key(server: Endpoint, model: str) -> str | None:
    """The key that the server is given, if any."""
    open_encoder(model).encode(["one"])
    header = server.seen[-1][1].get("Authorization")
    return None if header is None else header.removeprefix("Bearer ")


@pytest.mark.parametrize(
    ("environment", "setting", "sent"),
    [
        ({"OPENAI_API_KEY": "o"}, "", "o"),
        ({"OPENAI_API_KEY": "o"}, "?key_env=OPENAI_API_KEY", "o"),
        ({"OPENAI_API_KEY": "o", "BIASSAY_API_KEY": "b"}, "", "b"),
        ({"OPENAI_API_KEY": "o", "BIASSAY_API_KEY": " "}, "", "o"),
        ({"OPENAI_API_KEY": "o", "BIASSAY_API_KEY": "b", "OUR_KEY": "k\n"}, "?key_env=OUR_KEY", "k"),
    ],
)
def test_which_variable_gives_the_key_where_the_environment_gives_the_address(
    endpoint: Endpoint, environment: dict[str, str], setting: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**environment, "OPENAI_BASE_URL": endpoint.base}.items():
        monkeypatch.setenv(name, value)
    assert sent_key(endpoint, f"api:toy{setting}") == sent


@pytest.mark.parametrize(
    ("environment", "setting", "sent"),
    [
        ({}, "", None),
        ({"BIASSAY_API_KEY": " "}, "", None),
        ({"BIASSAY_API_KEY": "b"}, "", None),
        ({"BIASSAY_API_KEY": "b"}, "&key_env=BIASSAY_API_KEY", "b"),
        ({"BIASSAY_API_KEY": "b", "OUR_KEY": "k"}, "&key_env=OUR_KEY", "k"),
    ],
)
def test_no_key_is_sent_unasked_where_a_model_string_gives_the_address(
    endpoint: Endpoint, environment: dict[str, str], setting: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to this machine either: on a shared one the port may be someone else's."""
    for name, value in {**environment, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://elsewhere/v1"}.items():
        monkeypatch.setenv(name, value)
    assert sent_key(endpoint, f"api:toy?base_url={endpoint.base}{setting}") == sent


STRANGERS = [
    "https://example.com/v1",
    "http://api.openai.com/v1",  # in the open
    "https://api.openai.com:8443/v1",
    "https://api.openai.com.example.com/v1",
    "https://api.openai.com/v1/other",
]


@pytest.mark.parametrize("address", STRANGERS)
def test_a_key_is_no_key_for_an_address_of_a_stranger(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "BIASSAY_API_KEY"):
        monkeypatch.setenv(name, KEY)
    if "api.openai.com/" in address or ":8443" in address:
        with pytest.raises(UsageError, match=r"keys are sent only to https://api\.openai\.com/v1"):
            open_encoder(f"api:toy?base_url={address}")
    else:
        encoder = ApiEncoder(parse_model(f"api:toy?base_url={address}"))
        assert "Authorization" not in encoder._client.http.headers
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY is not sent .* set OPENAI_BASE_URL") as caught:
        open_encoder(f"api:toy?base_url={address}&key_env=OPENAI_API_KEY")
    assert_hidden("".join(traceback.format_exception(caught.value)))


@pytest.mark.parametrize("setting", ["", "?key_env=OPENAI_API_KEY", "?base_url=https://API.openai.com:443/v1/"])
def test_openais_key_is_for_openai(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    encoder = ApiEncoder(parse_model(f"api:toy{setting}"))
    assert encoder._client.http.headers["Authorization"] == f"Bearer {KEY}"
    assert encoder.identity.revision == "https://api.openai.com/v1 toy"


def test_a_strangers_run_folder_cannot_collect_texts_or_keys(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.always = lambda _: Reply(401)
    with pytest.raises(MeasurementError):
        biassay.run(
            f"api:toy?base_url={endpoint.base}&concurrency=1",  # no request is still on its way after one was refused
            tests="weat6",
            out=tmp_path / "run",
            cache=tmp_path / "cache",
        )
    endpoint.always = good
    endpoint.seen.clear()
    for name in ("OPENAI_API_KEY", "BIASSAY_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with pytest.raises(UsageError, match=f"would send texts to {endpoint.base}"):
        biassay.resume(tmp_path / "run", cache=tmp_path / "cache")
    assert endpoint.seen == []
    biassay.resume(tmp_path / "run", f"api:toy?base_url={endpoint.base}", cache=tmp_path / "cache")
    assert endpoint.seen
    assert not any("Authorization" in headers for _, headers, _ in endpoint.seen)


@pytest.mark.parametrize("value", ["sk-se cret", "sk-se\ncret", "sk-secrét", "sk-se\x7fcret"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(
    endpoint: Endpoint, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASSAY_API_KEY", value)
    with pytest.raises(UsageError, match="BIASSAY_API_KEY has characters") as caught:
        opened(endpoint)
    assert "sk-se" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("pasted", ["sk-proj-abc123", "gsk_abc123", "", "1KEY"])
def test_a_key_given_for_the_name_of_a_variable_is_refused_and_not_shown(endpoint: Endpoint, pasted: str) -> None:
    with pytest.raises(UsageError, match="key_env must be the name of an environment variable") as caught:
        opened(endpoint, f"key_env={pasted}")
    assert "abc123" not in "".join(traceback.format_exception(caught.value))


# The key is seen nowhere


def forms(key: str) -> list[str]:
    return [key, json.dumps(key)[1:-1], html.escape(key), quote(key), quote(key, safe="")]


def assert_hidden(*places: str) -> None:
    for place in places:
        assert not [form for form in forms(KEY) if form in place]


def everything_of(error: BaseException) -> str:
    """All that a log or a debugger would show of an error and of those behind it."""
    shown, following = [], [error]
    while following:
        link = following.pop()
        shown += [str(link), repr(link), repr(link.args), repr(vars(link))]
        shown += traceback.TracebackException.from_exception(link, capture_locals=True).format()
        following += [other for other in (link.__cause__, link.__context__) if other is not None]
    return "\n".join(shown)


ECHOES: dict[str, Reply] = {
    "in a message": Reply(401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()),
    "in plain text": Reply(403, KEY.encode()),
    "in a page": Reply(400, f"<p>{html.escape(KEY)}</p>".encode()),
    "in broken JSON": Reply(400, ('{"error": "' + json.dumps(KEY)[1:-1]).encode()),
    "with slashes escaped": Reply(400, ('{"x": ' + json.dumps(KEY).replace("/", "\\/")).encode()),
    "in a query": Reply(404, f"/v1?key={quote(KEY, safe='')}".encode()),
    "where the message is cut": Reply(400, b"x" * 290 + KEY.encode()),
    "in a header": Reply(302, headers={"Location": f"http://127.0.0.1:1/{KEY}"}),
    "in the status line": Reply(401, reason=KEY),
    "after all attempts": Reply(500, KEY.encode()),
    "in an answer": Reply(200, json.dumps({"error": KEY}).encode()),
    "in no answer": Reply(200, KEY.encode()),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.usefixtures("key")
def test_a_key_that_the_server_repeats_is_not_shown(endpoint: Endpoint, echo: Reply) -> None:
    endpoint.always = lambda _: echo
    encoder = opened(endpoint, "retries=1")
    with pytest.raises(MeasurementError) as caught:
        encoder.encode(["one"])
    # The shown locals include this test's own `echo`; only the frames of the package count.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert_hidden(str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value)))
    assert "sk-never" not in str(caught.value)
    assert_hidden(repr(encoder), repr(vars(encoder)), str(encoder.identity))


@pytest.mark.parametrize("fault", [Reply(drop=True), Reply(hang=True), Reply(500), Reply(401), Reply(body=b"?")])
@pytest.mark.usefixtures("key")
def test_the_key_is_in_no_error_however_closely_it_is_looked_at(endpoint: Endpoint, fault: Reply) -> None:
    endpoint.always = lambda _: fault
    encoder = opened(endpoint, "retries=1&timeout=0.05")
    with pytest.raises(MeasurementError) as caught:
        encoder.encode(["one"])
    assert endpoint.seen[0][1]["Authorization"] == f"Bearer {KEY}"
    assert_hidden(everything_of(caught.value))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.usefixtures("key")
def test_a_run_leaves_the_key_nowhere(
    endpoint: Endpoint,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    fails: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    refusal = Reply(401, json.dumps({"error": {"message": f"bad key {KEY}"}}).encode())
    endpoint.faults = [good, refusal] if fails else [Reply(500, KEY.encode())]
    out, cache = tmp_path / "run", tmp_path / "cache"
    model = f"api:toy?base_url={endpoint.base}&batch=10&concurrency=1&{KEYED}"
    with pytest.raises(SystemExit) as stopped:
        main(["run", model, "--tests", "weat6", "--out", str(out), "--cache", str(cache)])
    assert bool(stopped.value.code) == fails
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, headers, _ in endpoint.seen)
    shown = capsys.readouterr()
    assert "bad key [key]" in shown.err if fails else "weat6" in shown.out
    logged = "\n".join([caplog.text, *(repr(vars(record)) for record in caplog.records)])
    assert "httpx" in logged
    assert_hidden(shown.out, shown.err, logged)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"manifest.json", "model.json"} <= {file.name for file in files}
    assert any(file.suffix == ".npz" for file in files)
    for file in files:
        assert not [form for form in forms(KEY) if form.encode() in file.read_bytes()]
