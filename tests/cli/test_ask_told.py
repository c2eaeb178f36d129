"""Other output of ``biassay ask`` and ``benchmark``: example replies, resume hints, destinations of keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bbq_answers import questions
from tests.models import api_server
from tests.models.answer_server import body
from tests.models.api_server import Endpoint, Reply
from tests.studies.word_association.answering import giving, model_of, stereotyped

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.models.base import Identity
from biassay.runs.fetch import _insecure_key_warning

from .conftest import Cli

pytestmark = pytest.mark.extras

no_key = api_server.no_key
TESTS = select_word_associations(("wat-racism", "wat-science"))
SCRIPT = "<script>alert(1)</script>\n\x1b[31mred\ud800" + "x" * 600
ASKED = ("--wordings", "bai2025", "--n-answers", 10, "--quiet")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = giving(stereotyped(*TESTS))
        yield server


def said(text: str) -> Reply:
    return body({"index": 0, "finish_reason": "stop", "message": {"content": text}})


def test_the_first_replies_of_every_kind_can_be_read(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    good, out, told = giving(stereotyped(*TESTS)), tmp_path / "run", iter(range(100))
    endpoint.always = lambda asked: said(SCRIPT) if next(told) % 4 > 1 else good(asked)
    model = model_of(endpoint).replace("concurrency=4", "concurrency=1")
    tests = ("--tests", "wat-racism,wat-science")
    assert cli("ask", model, *tests, *ASKED, "--cache", tmp_path / "cache", "--out", out)[0] == 0
    run = biassay.load(out)
    rows = run.tables["examples"]
    assert Counter((row.test, row.kind) for row in rows) == {
        (test.name, kind): 3 for test in TESTS for kind in ("complete", "unparsed")
    }
    assert {(row.form, row.wording) for row in rows} == {("list", "bai2025")}
    odd = next(row.reply for row in rows if row.kind == "unparsed")
    assert (len(odd), odd[:12], odd[-1]) == (500, SCRIPT[:12], "…")
    page = (out / "report.html").read_text()
    assert ("<script>alert" in page, "&lt;script&gt;alert(1)" in page, "\x1b" in page) == (False, True, False)
    assert cli("report", out, "--publish", tmp_path / "paper")[0] == 0
    lines = (tmp_path / "paper" / "word_association-examples.tsv").read_text().splitlines()
    assert (len(lines), len({line.count("\t") for line in lines})) == (13, 1)
    stored = json.loads((out / "results.json").read_text())
    assert [row["reply"] for row in stored["tables"]["examples"]] == [row.reply for row in rows]


def test_answers_to_bbq_can_be_read(cli: Cli, endpoint: Endpoint, tmp_path: Path) -> None:
    data, told = tmp_path / "Religion.jsonl", iter(range(100))
    data.write_text("".join(json.dumps(row) + "\n" for row in questions("Religion")[:8]), encoding="utf-8")
    endpoint.always = lambda _: said("A" if next(told) % 2 else SCRIPT)
    model = model_of(endpoint).replace("concurrency=4", "concurrency=1")
    given = ("--data", data, "--orders", 1, "--cache", tmp_path / "cache", "--json")
    _, stdout, _ = cli("benchmark", "bbq", model, *given)
    found = json.loads(stdout)
    assert Counter(row["kind"] for row in found["examples"]) == {"chosen": 3, "unparsed": 3}
    assert {row["reply"] for row in found["examples"] if row["kind"] == "chosen"} == {"A"}
    assert all(sorted(row["order"].split(", ")) == ["ans0", "ans1", "ans2"] for row in found["examples"])
    assert [row["agreement"] for row in found["results"]] == [None, None]  # of one order there is none


@pytest.mark.parametrize("by", ["answer", "log-probability"])
def test_filtered_and_failed_questions_of_bbq_are_counted(
    cli: Cli, endpoint: Endpoint, tmp_path: Path, by: str
) -> None:
    data, out = tmp_path / "Religion.jsonl", tmp_path / "run"
    data.write_text("".join(json.dumps(row) + "\n" for row in questions("Religion")[:8]), encoding="utf-8")
    likely = {"content": [{"top_logprobs": [{"token": "A", "logprob": -0.1}]}]}
    chosen = body({"index": 0, "finish_reason": "stop", "message": {"content": "A"}, "logprobs": likely})
    filtered = Reply(400, b'{"error": {"code": "content_filter"}}')
    endpoint.faults, endpoint.always = [chosen, filtered, filtered, Reply(500)], lambda _: chosen
    model = model_of(endpoint).replace("concurrency=4", "concurrency=1")
    given = ("--data", data, "--orders", 1, "--by", by, "--cache", tmp_path / "cache", "--out", out)
    code, stdout, _ = cli("benchmark", "bbq", model, *given)
    told = "8 responses: 2 filtered by the endpoint, 1 failed after retries"
    assert (code, told in " ".join(stdout.split())) == (0, True)
    assert told in " ".join((out / "report.html").read_text(encoding="utf-8").split())
    rows = biassay.load(out).results
    sums = {kind: sum(getattr(row, kind) for row in rows) for kind in ("filtered", "failed", "refused", "empty")}
    assert sums == {"filtered": 2, "failed": 1, "refused": 0, "empty": 0}
    assert sum((row.unanswered or 0.0) * row.replies for row in rows) == pytest.approx(3)


@pytest.mark.parametrize(
    ("destination", "warned"),
    [
        ("http://10.0.0.7:8000/v1, with the key in K", True),
        ("http://10.0.0.7:8000/v1, without a key", False),
        ("https://api.example.org/v1, with the key in K", False),
        ("http://localhost:8000/v1, with the key in K", False),
        ("http://[::1]:8000/v1, with the key in K", False),
        ("http://127.0.0.2/v1, with the key in K", False),
        ("http://localhost.example.org/v1, with the key in K", True),
    ],
)
def test_a_key_over_plain_http_is_warned_of(destination: str, warned: bool) -> None:
    assert bool(_insecure_key_warning(Identity("chat:x", "chat", "", (), destination=destination))) == warned


def test_too_few_pairs_have_a_mark_of_their_own(endpoint: Endpoint, tmp_path: Path) -> None:
    """Of the eight pairs of a test 6 responses ask about three, 50 about all."""
    model, cache = model_of(endpoint), tmp_path / "cache"
    for n_answers, few in ((6, True), (50, False)):
        out = tmp_path / f"run-{n_answers}"
        biassay.ask(model, "wat-science", n_answers=n_answers, wordings="bai2025", cache=cache, out=out)
        page = (out / "report.html").read_text()
        (mark,) = (line for line in page.splitlines() if 'class="mark s' in line and "soft" not in line)
        assert ("few" in mark.split('class="mark')[1].split('"')[0], "1.00 ‡" in page) == (few, few)


def test_nothing_decided_is_said(endpoint: Endpoint, tmp_path: Path) -> None:
    good = giving(stereotyped(*TESTS))
    endpoint.always = lambda asked: said("Hm.") if "wo people" in str(asked) or "task" in str(asked) else good(asked)
    run = biassay.ask(model_of(endpoint), "wat-racism", n_answers=4, wordings="bai2025", decisions=True, cache=tmp_path)
    (row,) = run.tables["relative_decisions"]
    assert (row.decided, row.share) == (0, None)
    assert "no decision was read, so there is no share" in run.report(tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
