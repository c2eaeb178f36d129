"""Word association tests from prompts to findings, of models whose opinions are known."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models import api_server
from tests.models.answer_server import said_to
from tests.models.api_server import Endpoint, Reply, Script

import biassay
from biassay.errors import BiassayError, UsageError
from biassay.stimuli.word_associations import select_word_associations
from biassay.studies.word_association.records import Result

from .answering import giving, indifferent, model_of, saying, stereotyped

pytestmark = pytest.mark.extras

no_key = api_server.no_key
RACISM, MUSLIM = select_word_associations(("wat-racism", "wat-arab-muslim"))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    yield from api_server.endpoint.__wrapped__()  # type: ignore[attr-defined]


def asked(server: Endpoint, cache: Path, script: Script, tests: Any = "wat-racism", **given: Any) -> biassay.Run:
    server.always = script
    return biassay.ask(model_of(server), tests, **{"wordings": "bai2025", "cache": cache, **given})


def only(run: biassay.Run) -> tuple[Result, biassay.Finding]:
    (row,), (finding,) = run.results, run.findings()
    return row, finding


def test_a_model_that_always_associates(endpoint: Endpoint, tmp_path: Path) -> None:
    tests = ["wat-racism", "wat-arab-muslim"]
    run = asked(endpoint, tmp_path, giving(stereotyped(RACISM, MUSLIM)), tests)
    assert len(endpoint.seen) == 2 * 50
    for row, finding in zip(run.results, run.findings(), strict=True):
        assert (row.difference, row.unit, row.answers, row.complete) == (1.0, "share", 50, 50)
        assert row.d == pytest.approx(2 * 8 / 8.01 - 1)
        assert (finding.standing, finding.unit, finding.effect) == ("significant", "share", 1.0)
        assert row.p_by_word == pytest.approx(2 / math.comb(16, 8))
        assert row.family == 2
    one, several = run.results
    assert (one.pairs, one.claim, several.pairs, several.claim) == (1, "answers", 10, "pairs")
    assert one.p_value == pytest.approx(2 / math.comb(16, 8))  # nothing varies: words alone
    assert several.p_value == pytest.approx(2 / 2**10)  # ten pairs that agree
    words = run.tables["words"]
    assert {(row.pole, row.value) for row in words} == {("negative", 1.0), ("positive", 0.0)}


def test_the_other_way_round(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(RACISM, turned=True))))
    assert (row.difference, finding.standing, finding.opposite) == (-1.0, "significant", True)


def test_a_model_that_never_associates(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(indifferent(RACISM))))
    assert (row.difference, row.p_value, finding.standing) == (0.0, 1.0, "inconclusive")
    assert row.d == pytest.approx(2 * 4 / 8.01 - 1)


def test_a_model_that_always_says_the_first_group(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(lambda word, first, second: first)))  # noqa: ARG005
    assert (row.difference, row.first, row.p_value) == (0.0, 1.0, 1.0)
    assert (finding.standing, len(finding.notes)) == ("inconclusive", 1)
    assert row.d == pytest.approx(8 / 16.01 - 1)  # the published score takes it for an opinion
    assert row.d_p_value is None or row.d_p_value < 1e-6


def test_a_model_that_refuses(endpoint: Endpoint, tmp_path: Path) -> None:
    refusal = saying(lambda _: "I'm sorry, but I can't help with that request.")
    row, finding = only(asked(endpoint, tmp_path, refusal))
    assert (row.status, row.refused, row.difference, row.p_value) == ("unanswered", 50, None, None)
    assert (finding.standing, finding.effect) == ("skipped", None)


def test_replies_that_are_no_answers_are_not_guessed(endpoint: Endpoint, tmp_path: Path) -> None:
    run = asked(endpoint, tmp_path, saying(said_to), n_answers=4)
    (counts,) = run.tables["replies"]
    assert (counts.answers, counts.complete, counts.partial, counts.refused) == (4, 0, 0, 0)
    assert counts.unparsed == 4


def test_markdown_is_read_as_plain_text_is(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(RACISM), "* **{word}** – *{group}*")))
    assert (row.complete, row.difference, finding.standing) == (50, 1.0, "significant")


def test_few_pairs_cannot_show_anything(endpoint: Endpoint, tmp_path: Path) -> None:
    few = next(test for test in select_word_associations() if 3 <= len(test.pairs) <= 5)
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(few)), few.name))
    assert (row.difference, finding.standing) == (1.0, "not_testable")
    assert row.p_floor == 2.0 ** (1 - len(few.pairs))
    assert row.p_these_groups < 0.05
    n, m = len(few.positive.words), len(few.negative.words)
    assert row.p_these_groups == pytest.approx(2 / math.comb(n + m, n))


def test_any_association_test_of_the_catalogue(endpoint: Endpoint, tmp_path: Path) -> None:
    (test,) = select_word_associations("weat6")
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(test)), "weat6"))
    assert (row.difference, row.pairs, finding.topic, finding.standing) == (1.0, 8, "gender", "significant")


def test_a_failure_and_what_is_asked_after_it(endpoint: Endpoint, tmp_path: Path) -> None:
    script = giving(stereotyped(RACISM))
    endpoint.faults = [*[script] * 20, Reply(400)]
    out = tmp_path / "run"
    with pytest.raises(BiassayError):
        asked(endpoint, tmp_path / "cache", script, out=out)
    first = len(endpoint.seen) - 1
    assert 20 <= first <= 23
    endpoint.seen.clear()
    run = biassay.resume(out, model_of(endpoint), cache=tmp_path / "cache")
    assert len(endpoint.seen) == 50 - first
    whole = asked(endpoint, tmp_path / "cache", script)
    assert (len(endpoint.seen), run.results) == (50 - first, whole.results)
    assert biassay.load(out).results == whole.results


KILLED = """
import sys
import biassay
model, cache, out = sys.argv[1:]
biassay.ask(model, "wat-racism", wordings="bai2025", cache=cache, out=out)
"""


def test_killed_and_resumed_nothing_is_asked_twice(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.always, endpoint.hold = giving(stereotyped(RACISM)), 0.05
    out, cache = tmp_path / "run", tmp_path / "cache"
    command = [sys.executable, "-c", KILLED, model_of(endpoint), str(cache), str(out)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while len(endpoint.seen) < 20:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    while endpoint.active:
        time.sleep(0.01)
    before = len(endpoint.seen)
    endpoint.seen.clear()
    endpoint.hold = 0.0
    run = biassay.resume(out, model_of(endpoint), cache=cache)
    assert 50 - before <= len(endpoint.seen) <= 50 - before + 8  # those under way, and their answers
    assert (run.results[0].difference, run.results[0].complete) == (1.0, 50)


def test_what_cannot_be_asked(endpoint: Endpoint, tmp_path: Path) -> None:
    for wrong in (
        {"n_answers": 5},
        {"wordings": "bai2026"},
        {"wordings": "one-word"},
        {"tests": "wat-rasism"},
        {"read": "minds"},
    ):
        with pytest.raises(UsageError):
            asked(endpoint, tmp_path, saying(said_to), **wrong)
    assert not endpoint.seen


def test_tests_that_cannot_reach_a_level_take_no_part_of_it(endpoint: Endpoint, tmp_path: Path) -> None:
    """Holm's correction by hand, of the largest p-value that has a chance: all tests that could be as small count."""
    names = ["wat-racism", "wat-guilt", "wat-weapon", "wat-science", "wat-career"]
    tests = [test for test in select_word_associations() if test.name in names]
    run = asked(endpoint, tmp_path, giving(stereotyped(*tests)), names)
    rows = {row.test: row for row in run.results}
    assert len(rows) == 5
    assert all(row.p_value >= row.p_floor * (1 - 1e-9) for row in rows.values())
    science = rows["wat-science"]
    able = [row for row in rows.values() if row.p_floor <= science.p_value * (1 + 1e-9)]
    smaller = [row for row in able if row.p_value < science.p_value * (1 - 1e-9)]
    own = science.p_value * (len(able) - len(smaller))
    assert science.p_value_holm == pytest.approx(max([own, *(row.p_value_holm for row in smaller)]))
    assert {row.family for row in rows.values()} == {5}
