"""Word association tests from prompts to findings, of models whose opinions are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models import api_server
from tests.models.answer_server import said_to
from tests.models.api_server import Endpoint, Script

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.errors import UsageError
from biassay.reporting.formats import format_decimal

from .answering import giving, hash_of, model_of, saying, stereotyped, words_of

pytestmark = pytest.mark.extras

no_key = api_server.no_key
RACISM, MUSLIM = select_word_associations(("wat-racism", "wat-arab-muslim"))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    yield from api_server.endpoint.__wrapped__()  # type: ignore[attr-defined]


def asked(server: Endpoint, cache: Path, script: Script, tests: Any = "wat-racism", **given: Any) -> biassay.Run:
    server.always = script
    return biassay.ask(model_of(server), tests, **{"wordings": "bai2025", "cache": cache, **given})


def only(run: biassay.Run) -> tuple[Any, Any]:
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
    bounds = f"[{format_decimal(row.bound_low)}, {format_decimal(row.bound_high)}]"
    assert any(bounds in note for note in finding.notes)
    rates = {(one.factor, one.level): one for one in run.tables["missing"]}
    pleasant, unpleasant = (rates["pole", label] for label in (RACISM.positive.label, RACISM.negative.label))
    assert (pleasant.missing, unpleasant.asked) == (0, 200 * 8)
    assert unpleasant.rate == pytest.approx(0.45, abs=0.06)
    assert unpleasant.p_value == pytest.approx(2 / math.comb(16, 8))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for shown in (bounds, "could reverse the difference", "depend on the pole"):
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


def test_few_pairs_are_descriptive(endpoint: Endpoint, tmp_path: Path) -> None:
    few = next(test for test in select_word_associations() if 3 <= len(test.pairs) <= 5)
    row, finding = only(asked(endpoint, tmp_path, giving(stereotyped(few)), few.name))
    assert (row.effect_size, row.evidence, finding.evidence) == (1.0, "descriptive", "descriptive")
    assert (row.p_floor, row.p_adjusted) == (2.0 ** (1 - len(few.pairs)), None)
    assert f"{len(few.pairs)} pairs of group words are too few" in finding.notes[0]
    assert row.alternatives["fixed_groups"].p_value < 0.05
    n, m = len(few.positive.words), len(few.negative.words)
    assert row.alternatives["fixed_groups"].p_value == pytest.approx(2 / math.comb(n + m, n))


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
