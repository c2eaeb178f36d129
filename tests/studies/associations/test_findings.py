"""Findings of association tests, from rows made by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.results.made_runs import altered, as_by_text, as_by_word, as_papers, decided, result, run_of

from biassay.reporting.findings import make_points, summarize_findings
from biassay.studies.associations.findings import get_mark, margin_as_d

LOW, HIGH = 0.001, 0.4


def crossed(model: str = "m", test: str = "t", p: float | None = LOW, **given: Any) -> Any:
    """A row with a crossed test, whose other p-values say the opposite."""
    numbers = {
        "cosine_difference": 0.1,
        "cosine_ci_low": 0.02,
        "cosine_ci_high": 0.18,
        "ci_low": 0.1,
        "ci_high": 1.4,
        "df": 12.0,
    }
    other = HIGH if (p or 0.0) <= 0.05 else LOW
    return result(model, test, other, p_value=p, **numbers | given)


def grades(*rows: Any, **settings: Any) -> list[str]:
    return [finding.evidence for finding in run_of("one", rows, settings=settings).findings()]


@pytest.mark.parametrize(
    ("given", "evidence"),
    [
        ({"p": LOW, "effect_size": -0.7}, "significant"),  # two-sided
        ({"p": 0.99, "effect_size": -0.7, "fixed_words_p_opposite": LOW}, "uncorrected"),
        ({"p": 0.99, "effect_size": -0.7, "fixed_words_p_opposite": HIGH}, "inconclusive"),
        ({"p": HIGH, "fixed_words_p_floor": 0.06}, "not_testable"),
        ({"p": HIGH}, "inconclusive"),
        ({"p": LOW}, "significant"),
    ],
)
def test_without_a_crossed_test_the_standing_is_by_word(given: dict[str, Any], evidence: str) -> None:
    p = given.pop("p")
    assert grades(altered(as_by_word(result("m", "t", p)), **given)) == [evidence]


@pytest.mark.parametrize(("direction", "effect", "opposite"), [
    (1, -0.7, True), (1, 0.7, False), (-1, 0.7, True), (-1, -0.7, False),
    (None, -0.7, False),
])  # fmt: skip
def test_an_opposite_result_keeps_its_evidence_before_and_after_correction(
    direction: int | None, effect: float, opposite: bool
) -> None:
    given = {"direction": direction, "effect_size": effect}
    rows = [crossed("m", f"t{i}", p, **given) for i, p in enumerate((LOW, 0.03, HIGH))]
    run = run_of("one", rows)
    found = run.findings()
    assert [one.evidence for one in found] == ["significant", "uncorrected", "inconclusive"]
    assert [one.opposite for one in found] == [opposite, opposite, False]
    text = summarize_findings(found)
    assert len(re.findall(r"1 of them opposite to the expected direction", text)) == (2 if opposite else 0)
    assert [("opposite" in line) for line, _ in make_points(found) if not line.endswith(":")] == [opposite] * 2


def test_a_one_sided_test_never_finds_the_other_side_significant() -> None:
    row = as_by_word(result("m", "t", 0.999), effect_size=-0.7, fixed_words_p_opposite=1e-9)
    (found,) = run_of("one", [row]).findings()
    assert (found.evidence, found.opposite) == ("uncorrected", True)


@pytest.mark.parametrize("p", [LOW, HIGH])
def test_where_words_are_not_known_nothing_is_claimed(p: float) -> None:
    row = as_by_text(result("m", "t", p))
    assert grades(row) == ["descriptive"]
    assert get_mark(decided(row)) == 0


def test_under_the_papers_protocols_the_standing_is_by_text() -> None:
    rows = [
        as_papers(crossed("m", f"t{i}", HIGH), p_value=p, alpha=0.01, effect_size=0.5)
        for i, p in enumerate((LOW, 0.008, HIGH))
    ]
    found = run_of("one", rows, settings={"protocol": "may2019"}).findings()
    assert [one.evidence for one in found] == ["significant", "uncorrected", "inconclusive"]
    assert [(one.effect, one.low, next(iter(one.p_values))) for one in found] == [(0.5, None, "by text")] * 3


def test_a_finding_holds_the_numbers_of_its_row() -> None:
    associations = {"X": {f"x{i}": 0.3 + i / 100 for i in range(5)}, "Y": {f"y{i}": -0.2 - i / 50 for i in range(5)}}
    associations |= {"A": {"a": 0.1}, "B": {"b": -0.1}}
    given: dict[str, Any] = {"targ1": "Flowers", "targ2": "Insects", "attr1": "Pleasant", "attr2": "Unpleasant"}
    row = crossed(p=LOW, associations=associations, about="method", topic="things", share_random=0.2, **given)
    run = run_of("one", [row, crossed("m", "other", HIGH, power_80=1.3, share_random=0.7)])
    found, other = run.findings()
    assert (found.model, found.item, found.about, found.topic, found.unit) == ("m", "t", "method", "things", "d")
    assert (found.effect, found.low, found.high, found.confidence) == (0.25, 0.1, 1.4, 0.95)
    assert (found.share_random, found.smallest, other.share_random, other.smallest) == (0.2, None, 0.7, 1.3)
    assert list(found.p_values.items()) == [
        ("crossed", LOW),
        ("crossed, corrected", None),
        ("by word", HIGH),
        ("by text", HIGH),
    ]
    assert other.p_values["crossed, corrected"] == HIGH
    assert len(found.words) == 5
    assert found.words[0] == "y4"  # the farthest from the middle of all targets
    first, second = found.direction.lower().split(", ")
    assert [word in first for word in ("flowers", "pleasant", "insects")] == [True, True, False]
    assert "insects" in second
    turned = run_of("one", [crossed(effect_size=-0.5, sentences_effect_size=-0.5, **given)]).findings()[0]
    assert "unpleasant" in turned.direction.lower().split(", ")[0]


def test_a_margin_is_also_told_as_the_d_it_would_be() -> None:
    """The effect size of targets with the same spread, moved so far apart that D is the margin."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.0, 0.05, 7), rng.normal(0.01, 0.05, 9)
    words = {"X": {f"x{i}": v for i, v in enumerate(x)}, "Y": {f"y{i}": v for i, v in enumerate(y)}}
    row = crossed(p=HIGH, cosine_difference=0.0042, margin=0.02, p_equivalence=0.0051, associations=words)
    moved = np.concatenate([x - x.mean() + 0.02, y - y.mean()])
    d = margin_as_d(decided(row))
    assert d == pytest.approx(0.02 / moved.std(ddof=1), rel=1e-12)
    (one,) = run_of("one", [row]).findings()
    assert re.findall(r"\d\.\d+", one.notes[0]) == ["0.004", "0.02", f"{d:.2f}", "0.005"]
    (papers,) = run_of("one", [as_papers(row)]).findings()
    assert (papers.notes, papers.margin, papers.smallest) == ((), None, None)
    assert margin_as_d(decided(altered(row, associations={}))) is None


@pytest.mark.parametrize(("shared", "notes"), [(None, 0), (0.11, 1), (0.5, 0), (1.0, 0)])
def test_sets_that_share_few_sentences_are_noted(shared: float | None, notes: int) -> None:
    (found,) = run_of("one", [crossed(shared_templates=shared, targ1="Here", targ2="There")]).findings()
    assert len(found.notes) == notes
    assert all("Here" in note and "There" in note for note in found.notes)
