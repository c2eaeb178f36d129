"""``biassay ask`` with faulty servers: retries, error messages, and cached responses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from tests.models import api_server
from tests.models.answer_server import body, echo, model_string
from tests.models.api_server import Asked, Endpoint, Reply, Script
from tests.studies.word_association.answering import giving, model_of, stereotyped, text_of

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.models.openai import client

from .conftest import Cli

pytestmark = pytest.mark.extras

no_key = api_server.no_key
(RACISM,) = select_word_associations("wat-racism")
GOOD = giving(stereotyped(RACISM))
N = 20
ASKED = ("--tests", "wat-racism", "--wordings", "bai2025", "--n-answers", N, "--quiet")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(client, "_FIRST_BACKOFF", 0.001)
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = GOOD
        yield server


def rows(stdout: str, table: str = "results") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stdout)[table]
    return found


def said(content: object, ended: str = "stop", **more: object) -> Reply:
    return body({"index": 0, "message": {"content": content, **more}, "finish_reason": ended})


PASSING = {
    "429, seconds": Reply(429, headers={"Retry-After": "0.01"}),
    "429, a date": Reply(429, headers={"Retry-After": formatdate(0, usegmt=True)}),
    "500": Reply(500),
    "503": Reply(503, b"<html>try later</html>"),
    "no answer in time": Reply(hang=True),
    "connection closed": Reply(drop=True),
    "closed in the middle": Reply(body=b'{"choices": [{"mess', cut=1000),
    "HTML": Reply(body=b"<!DOCTYPE html><html><body>Sign in</body></html>"),
    "an error with status 200": Reply(body=b'{"error": {"message": "overloaded"}}'),
    "no choices": Reply(body=b'{"choices": []}'),
    "no message": Reply(body=b'{"choices": [{"delta": {"content": "x"}}]}'),
    "content of another kind": Reply(body=b'{"choices": [{"message": {"content": {"text": "x"}}}]}'),
    "null": Reply(body=b"null"),
}


def test_what_passes_changes_nothing(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    model = model_of(endpoint).replace("retries=0", f"retries={len(PASSING)}&timeout=0.5")
    expected = rows(cli("ask", model, *ASKED, "--json", "--cache", tmp_path / "one")[1])
    endpoint.seen.clear()
    endpoint.faults = list(PASSING.values())
    code, stdout, _ = cli("ask", model, *ASKED, "--json", "--cache", tmp_path / "other")
    assert (code, rows(stdout)) == (0, expected)
    assert len(endpoint.seen) == N + len(PASSING)


@pytest.mark.parametrize("fault", PASSING)
def test_what_stays_is_named_and_only_the_rest_is_asked_later(
    cli: Cli, endpoint: Endpoint, tmp_path: Path, fault: str
) -> None:
    seconds = "0.3" if fault.startswith("no answer in") else "60"
    model, cache = f"{model_of(endpoint)}&timeout={seconds}&seed=1", ("--cache", tmp_path / "cache")
    endpoint.faults = [GOOD] * 7
    endpoint.always = lambda _: PASSING[fault]
    code, stdout, stderr = cli("ask", model, *ASKED, "--out", tmp_path / "run", *cache)
    assert (code, stdout, "Traceback" in stderr) == (1, "", False)
    assert "biassay resume" in stderr
    assert f"{endpoint.base}/chat/completions" in stderr
    advice = {"429": "rate=", "no answer in": "timeout=", "5": "are cached"}
    assert next((words for name, words in advice.items() if fault.startswith(name)), "base_url=") in stderr
    endpoint.release.set()
    endpoint.release.clear()
    endpoint.always, first = GOOD, Counter(json.dumps(one) for _, _, one in endpoint.seen)
    endpoint.seen.clear()
    # A busy machine takes its time for good answers too, and may find a connection closed.
    patient = model.replace("timeout=0.3", "timeout=60").replace("retries=0", "retries=3")
    assert cli("resume", tmp_path / "run", "--model", patient, *cache, "--quiet")[0] == 0
    again = {json.dumps(one) for _, _, one in endpoint.seen}
    assert len(again) == N - 7
    assert len({*first, *again}) == N
    (row,) = biassay.load(tmp_path / "run").results
    assert (row.complete, row.effect_size) == (N, 1.0)


UNANSWERED = {
    "filtered": (Reply(400, b'{"error": {"code": "content_filter", "message": "blocked"}}'), "filtered"),
    "filtered by Azure": (
        Reply(400, b'{"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}'),
        "filtered",
    ),
    "500": (Reply(500), "failed"),
    "closed": (Reply(drop=True), "failed"),
    "HTML": (Reply(body=b"<html>"), "failed"),
}


@pytest.mark.parametrize("fault", UNANSWERED)
def test_a_prompt_that_is_never_answered_does_not_end_the_run(
    cli: Cli, endpoint: Endpoint, tmp_path: Path, fault: str
) -> None:
    """Not on a resume either: the prompt that failed is asked again, and the run ends all the same."""
    reply, kind = UNANSWERED[fault]
    prompts = [json.dumps(asked) for asked in asked_prompts(cli, endpoint, tmp_path)]
    endpoint.always = lambda asked: reply if json.dumps(asked) == prompts[3] else GOOD(asked)
    cache = ("--cache", tmp_path / "cache")
    for _ in range(2):
        code, stdout, stderr = cli("ask", f"{model_of(endpoint)}&seed=1", *ASKED, "--json", *cache)
        assert (code, stderr) == (0, "")
        (row,) = rows(stdout)
        assert (row["complete"], row[kind], row["outcome"]["effect_size"]) == (N - 1, 1, 1.0)
    again = [json.dumps(asked) for _, _, asked in endpoint.seen[N:]]
    assert again == ([prompts[3]] if kind == "failed" else [])


def asked_prompts(cli: Cli, endpoint: Endpoint, folder: Path) -> list[Asked]:
    """Return the requests of a run without faults."""
    assert cli("ask", f"{model_of(endpoint)}&seed=1", *ASKED, "--cache", folder / "other")[0] == 0
    prompts = [asked for _, _, asked in endpoint.seen]
    endpoint.seen.clear()
    return prompts


def test_filtered_and_failed_prompts_are_counted_and_only_failed_ones_asked_again(
    cli: Cli, endpoint: Endpoint, tmp_path: Path
) -> None:
    """In the terminal, the tables and the report; missing responses widen the bounds as refusals do."""
    filtered = Reply(400, b'{"error": {"code": "content_filter", "message": "blocked"}}')
    endpoint.faults = [GOOD, *[filtered] * 3, *[Reply(500)] * 2]
    model, out = f"{model_of(endpoint)}&seed=1".replace("concurrency=4", "concurrency=1"), tmp_path / "run"
    asked = (*ASKED[:-1], "--cache", tmp_path / "cache")
    code, stdout, stderr = cli("ask", model, *asked, "--out", out)
    told = "3 filtered by the endpoint, 2 failed after retries"
    assert (code, f"of 20 prompts {told}" in " ".join(stderr.split())) == (0, True)
    assert f"20 replies: 15 complete, {told}" in " ".join(stdout.split())
    assert told in " ".join((out / "report.html").read_text(encoding="utf-8").split())
    run = biassay.load(out)
    (row,), (counts,) = run.results, run.tables["replies"]
    assert (row.filtered, row.failed, row.refused, row.unparsed) == (3, 2, 0, 0)
    assert (counts.filtered, counts.failed) == (3, 2)
    header, values = (line.split("\t") for line in (out / "results.tsv").read_text(encoding="utf-8").splitlines())
    found = dict(zip(header, values, strict=True))
    assert (found["filtered"], found["failed"]) == ("3", "2")
    assert row.missing_rate == 5 / N
    assert row.bound_low < row.effect_size == row.bound_high == 1.0
    endpoint.seen.clear()
    assert cli("ask", model, *asked)[0] == 0
    assert len(endpoint.seen) == 2  # those that failed


@pytest.mark.parametrize("good", [0, 7])
def test_a_server_that_stops_answering_ends_the_run(cli: Cli, endpoint: Endpoint, tmp_path: Path, good: int) -> None:
    endpoint.faults, endpoint.always = [GOOD] * good, lambda _: Reply(500)
    code, _, stderr = cli(
        "ask", model_of(endpoint).replace("concurrency=4", "concurrency=1"), *ASKED, "--cache", tmp_path
    )
    assert (code, "answered 500" in stderr) == (1, True)
    assert len(endpoint.seen) == good + 5  # with one connection, failures are in a row


# What is said


REPLIES: dict[str, tuple[Reply | str, str]] = {
    "refusal field": (said(None, refusal="I can't help with that."), "refused"),
    "filter": (said(None, "content_filter"), "filtered"),
    "refusal in words": (said("I'm sorry, but I can't help with that."), "refused"),
    "null": (said(None, "length"), "unparsed"),
    "empty": (said(""), "unparsed"),
    "German": (said("Gerne! Hier ist meine Zuordnung:\n- schlecht – Schwarz\n- freudig – Weiß"), "unparsed"),
    "Chinese": (said("好的，以下是我的选择：\n1. 快乐 - 白人\n2. 痛苦 - 黑人"), "unparsed"),
    "a lone surrogate": (said("\ud800\x00"), "unparsed"),
    "not UTF-8": (Reply(body=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'), "unparsed"),
    "parts": ("parts", "complete"),
    "cut off": ("cut off", "partial"),
    "bold": ("**{word}** - *{group}*", "complete"),
    "table": ("| {word} | {group} |", "complete"),
    "numbered": ("1. {word}: {group}", "complete"),
    "fence": ("fence", "complete"),
}


def replying(form: Reply | str) -> Script:
    """The good answer in another form."""

    def answer(asked: Asked) -> Reply:
        if isinstance(form, Reply):
            return form
        line = form if "{word}" in form else "{word} - {group}"
        text = json.loads(giving(stereotyped(RACISM), line)(asked).body)["choices"][0]["message"]["content"]
        first, *others = text.splitlines()
        made: dict[str, Reply] = {
            "parts": said([{"type": "text", "text": f"{first}\n"}, {"type": "text", "text": "\n".join(others)}]),
            "cut off": said(first + "\n" + others[0][:-2], "length"),
            "fence": said(f"Sure:\n```text\n{text}\n```"),
        }
        return made.get(form) or said(text)

    return answer


def test_answers_are_counted_by_kind_and_never_guessed(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.faults = [replying(form) for form, _ in REPLIES.values()]
    code, stdout, _ = cli("ask", model_of(endpoint), *ASKED, "--json", "--cache", tmp_path)
    (row,), (finding,) = rows(stdout), json.loads(stdout)["findings"]
    expected = Counter(kind for _, kind in REPLIES.values()) + Counter(complete=N - len(REPLIES))
    assert {kind: row[kind] for kind in expected} == expected
    assert (code, row["outcome"]["effect_size"], row["cut_off"]) == (0, 1.0, 2)
    assert any("2 refused, 1 filtered by the endpoint" in note and "6 unparsed" in note for note in finding["notes"])
    assert any("max_tokens" in note for note in finding["notes"])


# Log-probabilities


@pytest.mark.parametrize("name", ["tokens", "token_logprobs"])
def test_log_probabilities_that_do_not_belong_to_the_text(
    cli: Cli, endpoint: Endpoint, tmp_path: Path, name: str
) -> None:
    def shorter(asked: Asked) -> Reply:
        found = json.loads(echo(asked).body)
        for choice in found["choices"]:
            choice["logprobs"][name].pop()
        return Reply(body=json.dumps(found).encode())

    endpoint.always = shorter
    model = model_string(endpoint, "completions", "concurrency=1&retries=0")
    code, stdout, stderr = cli("ask", model, "--tests", "wat-racism", "--cache", tmp_path)
    assert (code, stdout, "tokens" in stderr) == (1, "", True)


# What is wrong before anything is asked


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [
        ("chat:gpt-9", 2, "OPENAI_API_KEY"),
        ("chat:x?base_url=https://example.org/v1&key_env=NOT_SET", 2, "NOT_SET"),
        ("chat:x?base_url=ftp://example.org", 2, "http://host:port/v1"),
        ("chat:x?base_url=http://127.0.0.1:9/v1&retries=0", 1, "check base_url="),
    ],
)
def test_no_key_or_a_wrong_address(cli: Cli, tmp_path: Path, model: str, code: int, words: str) -> None:
    found, stdout, stderr = cli("ask", model, *ASKED, "--cache", tmp_path / "cache", "--out", tmp_path / "run")
    assert (found, stdout, words in stderr, "Traceback" in stderr) == (code, "", True, False)
    assert not (tmp_path / "run").exists()  # nothing was answered: there is nothing to go on with


# What it costs


def test_tokens_are_in_the_manifest_and_on_the_page(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    """Every response takes 10 input and 5 output tokens; a resumed run counts earlier use."""
    model, run, cache = model_of(endpoint), tmp_path / "run", ("--cache", tmp_path / "cache")
    code, _, stderr = cli("ask", model, *ASKED[:-1], "--budget", 500, "--out", run, *cache)
    before = len(endpoint.seen)
    (record,) = biassay.load(run).manifest.models
    assert (code, record.tokens_in, record.tokens_out) == (1, 10 * before, 5 * before)
    assert "20 prompts to ask, about" in stderr
    code, _, stderr = cli("resume", run, "--model", model, *cache)
    assert (code, len(endpoint.seen)) == (1, before)  # a budget covers the whole run, whether it is given again or not
    assert "this run keeps its budget of 500 tokens; change it with --budget" in " ".join(stderr.split())
    assert f"{15 * before} tokens are used" in " ".join(stderr.split())
    assert f"{N - before} requests remain" in " ".join(stderr.split())
    code, _, stderr = cli("resume", run, "--model", model, "--budget", 10_000, *cache)
    assert "keeps its budget" not in stderr
    assert biassay.load(run).manifest.budget == 10_000
    assert f"used {10 * (N - before)} tokens in and {5 * (N - before)} out" in " ".join(stderr.split())
    (record,) = biassay.load(run).manifest.models
    assert (record.tokens_in, record.tokens_out, record.texts) == (10 * N, 5 * N, N)
    assert "200 tokens read and 100 written" in (run / "report.html").read_text(encoding="utf-8")


def test_more_answers_ask_only_for_those_that_are_new(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    cli("ask", model_of(endpoint), *ASKED, "--cache", tmp_path)
    first = Counter(text_of(asked) for _, _, asked in endpoint.seen)
    stdout = cli("ask", model_of(endpoint), *ASKED, "--n-answers", 2 * N, "--json", "--cache", tmp_path)[1]
    both = Counter(text_of(asked) for _, _, asked in endpoint.seen)
    assert (both.total(), first <= both) == (2 * N, True)
    assert json.loads(stdout)["manifest"]["settings"]["n_answers"] == 2 * N
