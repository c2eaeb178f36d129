"""Word association tests from prompts to findings, of models whose opinions are known."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models import api_server
from tests.models.answer_server import said_to
from tests.models.api_server import Endpoint, Reply, Script

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.errors import BiassayError, UsageError
from biassay.reporting.formats import format_decimal
from biassay.reporting.sentences import summarize_findings
from biassay.studies.word_association.results import WordAssociationResult

from .answering import giving, hash_of, indifferent, model_of, saying, stereotyped, words_of

pytestmark = pytest.mark.extras

no_key = api_server.no_key
RACISM, MUSLIM = select_word_associations(("wat-racism", "wat-arab-muslim"))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    yield from api_server.endpoint.__wrapped__()  # type: ignore[attr-defined]


def asked(server: Endpoint, cache: Path, script: Script, tests: Any = "wat-racism", **given: Any) -> biassay.Run:
    server.always = script
    return biassay.ask(model_of(server), tests, **{"wordings": "bai2025", "cache": cache, **given})


def only(run: biassay.Run) -> tuple[WordAssociationResult, biassay.Finding]:
    (row,), (finding,) = run.results, run.findings()
    return row, finding


def test_a_model_that_always_associates(endpoint: Endpoint, tmp_path: Path) -> None:
    tests = ["wat-racism", "wat-arab-muslim"]
    run = asked(endpoint, tmp_path, giving(stereotyped(RACISM, MUSLIM)), tests)
    assert len(endpoint.seen) == 2 * 50
    for row, finding in zip(run.results, run.findings(), strict=True):
        assert (row.effect_size, row.scale, row.answers, row.complete) == (1.0, "share", 50, 50)
        assert row.bai_score == pytest.approx(2 * 8 / 8.01 - 1)
        assert (finding.evidence, finding.unit, finding.effect) == ("significant", "share", 1.0)
        assert row.alternatives["fixed_words"].p_value == pytest.approx(2 / math.comb(16, 8))
        assert row.family_size == 2
    one, several = run.results
    assert (one.pairs, one.generalizes_to, several.pairs, several.generalizes_to) == (1, "answers", 10, "pairs")
    assert one.p_value == pytest.approx(2 / math.comb(16, 8))  # nothing varies: words alone
    assert several.p_value == pytest.approx(2 / 2**10)  # ten pairs that agree
    words = run.tables["words"]
    assert {(row.pole, row.value) for row in words} == {("negative", 1.0), ("positive", 0.0)}


def test_forms_of_one_question_count_once(endpoint: Endpoint, tmp_path: Path) -> None:
    """C6 is another name of weat6, and one's own test may state which question it is a form of."""
    words = {role: list(getattr(RACISM, role).words) for role in ("default", "stigmatised", "positive", "negative")}
    again = {**words, "name": "again", "variant_of": "wat-racism"}
    given = [again, "C6", "wat-racism", "weat6", "wat-arab-muslim"]
    tests = select_word_associations(given)
    run = asked(endpoint, tmp_path, giving(stereotyped(*tests)), given)
    assert [row.family_size for row in run.results] == [3] * 5
    findings = {one.item: one for one in run.findings()}
    assert {name: one.form_of for name, one in findings.items()} == {
        "again": "wat-racism",
        "C6": "weat6",
        "wat-racism": None,
        "weat6": None,
        "wat-arab-muslim": None,
    }
    assert {row.evidence for row in run.results} == {"significant"}
    assert "3 of 3 social-bias questions are significant after correction" in summarize_findings(run.findings())


def test_the_other_way_round(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(RACISM, turned=True))))
    assert (row.effect_size, finding.evidence, finding.opposite) == (-1.0, "significant", True)


def test_a_model_that_never_associates(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(indifferent(RACISM))))
    assert (row.effect_size, row.p_value, finding.evidence) == (0.0, 1.0, "inconclusive")
    assert row.bai_score == pytest.approx(2 * 4 / 8.01 - 1)


def test_a_model_that_always_says_the_first_group(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(lambda word, first, second: first)))  # noqa: ARG005
    assert (row.effect_size, row.first, row.p_value, row.follows_order) == (0.0, 1.0, 1.0, True)
    assert (row.evidence, finding.evidence, len(finding.notes)) == ("inconclusive", "inconclusive", 1)
    assert "follow the order of the group words" in finding.notes[0]
    assert row.bai_score == pytest.approx(8 / 16.01 - 1)  # the published score takes it for an opinion
    assert (row.alternatives["bai"].p_value or 0.0) < 1e-6


def test_an_association_that_shows_through_the_order_is_no_finding(endpoint: Endpoint, tmp_path: Path) -> None:
    """The second group word always, but for one negative word: p is small and the responses follow the order."""
    stigmatised = {word.lower() for word in MUSLIM.stigmatised.words}
    chosen = {word.lower() for word in MUSLIM.negative.words[:7]}

    def give(word: str, first: str, second: str) -> str:
        return first if word in chosen and first in stigmatised and hash_of(word, first) < 96 else second

    row, finding = only(asked(endpoint, tmp_path, giving(give), "wat-arab-muslim"))
    assert row.p_value <= 0.05
    assert row.p_adjusted <= 0.05
    assert (row.follows_order, row.evidence, finding.evidence) == (True, "inconclusive", "inconclusive")


def test_selective_refusal_is_inconclusive_and_its_bounds_are_told(endpoint: Endpoint, tmp_path: Path) -> None:
    """Negative words that would go to the stigmatised group are left out three times in four."""
    negative = {word.lower() for word in RACISM.negative.words}
    said: Counter[str] = Counter()

    def say(text: str) -> str:
        _, _, words = words_of(text)
        said[text] += 1
        lines = []
        for word in words:
            drawn = hash_of(text, word, str(said[text]))
            to_black = drawn < (154 if word in negative else 102)
            withheld = word in negative and to_black and hash_of(word, text, str(said[text])) < 192
            lines += [] if withheld else [f"{word} - {'black' if to_black else 'white'}"]
        return "\n".join(lines)

    run = asked(endpoint, tmp_path / "cache", saying(say), n_answers=200, out=tmp_path / "run")
    row, finding = only(run)
    assert row.effect_size < -0.05  # the model leans to the stereotype by .2
    assert row.alternatives["read"].p_value <= 0.05
    assert row.bound_low < 0.0 < row.bound_high
    assert (row.p_value, row.evidence, finding.evidence) == (1.0, "inconclusive", "inconclusive")
    assert row.ci_low <= row.bound_low < row.bound_high <= row.ci_high
    assert row.refusal_rate == 0.0
    bounds = f"{format_decimal(row.bound_low)} to {format_decimal(row.bound_high)}"
    assert any(bounds in note for note in finding.notes)
    rates = {(one.factor, one.level): one for one in run.tables["missing"]}
    pleasant, unpleasant = (rates["pole", label] for label in (RACISM.positive.label, RACISM.negative.label))
    assert (pleasant.missing, unpleasant.asked) == (0, 200 * 8)
    assert unpleasant.rate == pytest.approx(0.45, abs=0.06)
    assert unpleasant.p_value == pytest.approx(2 / math.comb(16, 8))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for shown in (bounds, "could turn the sign of the difference", "depend on the pole"):
        assert shown in page


def test_what_runs_by_default(endpoint: Endpoint, tmp_path: Path) -> None:
    script = giving(stereotyped(*select_word_associations()))
    able = [test.name for test in select_word_associations() if len(test.pairs) in (1, 8, 10)]
    run = asked(endpoint, tmp_path, script, (), n_answers=2)
    assert [row.test for row in run.results] == able
    assert (len(able), {row.claim for row in run.results} & {"descriptive"}) == (10, set())
    every = asked(endpoint, tmp_path, script, "all", n_answers=2)
    evidence = {row.test: row.evidence for row in every.results}
    assert (len(evidence), Counter(evidence.values())["descriptive"]) == (21, 10)
    assert evidence["wat-eating"] == "not_testable"  # a sanity check with too few pairs neither passes nor fails
    tenth = asked(endpoint, tmp_path, script, (), n_answers=2, alpha=0.1)
    assert [row.test for row in tenth.results if row.test not in able] == ["wat-career"]


def test_a_model_that_refuses(endpoint: Endpoint, tmp_path: Path) -> None:
    refusal = saying(lambda _: "I'm sorry, but I can't help with that request.")
    row, finding = only(asked(endpoint, tmp_path, refusal))
    assert (row.status, row.refused, row.effect_size, row.p_value) == ("failed", 50, None, None)
    assert (finding.evidence, finding.effect) == ("skipped", None)


def test_replies_that_are_no_answers_are_not_guessed(endpoint: Endpoint, tmp_path: Path) -> None:
    run = asked(endpoint, tmp_path, saying(said_to), n_answers=4)
    (counts,) = run.tables["replies"]
    assert (counts.answers, counts.complete, counts.partial, counts.refused) == (4, 0, 0, 0)
    assert counts.unparsed == 4


def test_markdown_is_read_as_plain_text_is(endpoint: Endpoint, tmp_path: Path) -> None:
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(RACISM), "* **{word}** – *{group}*")))
    assert (row.complete, row.effect_size, finding.evidence) == (50, 1.0, "significant")


def test_few_pairs_are_descriptive(endpoint: Endpoint, tmp_path: Path) -> None:
    few = next(test for test in select_word_associations() if 3 <= len(test.pairs) <= 5)
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(few)), few.name))
    assert (row.effect_size, row.evidence, finding.evidence) == (1.0, "descriptive", "descriptive")
    assert (row.p_floor, row.p_adjusted) == (2.0 ** (1 - len(few.pairs)), None)
    assert f"{len(few.pairs)} pairs of group words cannot show" in finding.notes[0]
    assert row.alternatives["fixed_groups"].p_value < 0.05
    n, m = len(few.positive.words), len(few.negative.words)
    assert row.alternatives["fixed_groups"].p_value == pytest.approx(2 / math.comb(n + m, n))


def test_any_association_test_of_the_catalogue(endpoint: Endpoint, tmp_path: Path) -> None:
    (test,) = select_word_associations("weat6")
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(test)), "weat6"))
    assert (row.effect_size, row.pairs, finding.topic, finding.evidence) == (1.0, 8, "gender", "significant")


def test_a_failure_and_what_is_asked_after_it(endpoint: Endpoint, tmp_path: Path) -> None:
    script = giving(stereotyped(RACISM))
    endpoint.faults = [*[script] * 20, Reply(400)]
    out = tmp_path / "run"
    with pytest.raises(BiassayError):
        asked(endpoint, tmp_path / "cache", script, out=out)
    first = len(endpoint.seen) - 1
    assert 20 <= first < 50
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
    assert (run.results[0].effect_size, run.results[0].complete) == (1.0, 50)


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


def test_descriptive_tests_are_not_in_the_family(endpoint: Endpoint, tmp_path: Path) -> None:
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
    assert science.p_adjusted == pytest.approx(max([own, *(row.p_adjusted for row in smaller)]))
    assert science.family_size == 4
    assert (rows["wat-career"].p_adjusted, rows["wat-career"].evidence) == (None, "descriptive")
