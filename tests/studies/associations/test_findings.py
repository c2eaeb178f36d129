"""Findings of association tests: what rows made by hand come to."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from tests.results.made_runs import altered, as_by_text, as_by_word, as_papers, as_refused, decided, result, run_of

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES
from biassay.reporting.formats import format_concept
from biassay.reporting.sentences import make_points, summarize_findings
from biassay.results.findings import EVIDENCE, count_findings
from biassay.stats.crossed import crossed_test
from biassay.studies.associations.findings import margin_as_d
from biassay.studies.associations.signs import SIGNS, describe_sides, format_main_p, get_mark, make_legend
from biassay.studies.associations.tables import other_lead

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


def test_evidence_is_significant_only_after_correction() -> None:
    rows = [crossed("m", f"t{i}", p) for i, p in enumerate((LOW, 0.03, HIGH))]
    assert grades(*rows) == ["significant", "uncorrected", "inconclusive"]


def test_a_family_is_the_tests_about_people_of_a_model() -> None:
    """Another model and a check of the method change nothing; the papers' protocols correct over all rows."""
    rows = [crossed("m", f"t{i}", 0.02) for i in range(2)]
    others = [crossed("n", f"t{i}", HIGH) for i in range(9)]
    checks = [crossed("m", f"c{i}", HIGH, about="method") for i in range(9)]
    assert grades(*rows, *others, *checks)[:2] == ["significant"] * 2
    assert grades(*rows, crossed("m", "t2", HIGH))[:2] == ["uncorrected"] * 2
    assert grades(crossed("m", "c", 0.02, about="method")) == ["uncorrected"]
    told = run_of("one", [*rows, *others, *checks]).results
    assert {"2", "9"} <= set(re.findall(r"\d+", make_legend(told)))


@pytest.mark.parametrize(
    ("given", "evidence"),
    [
        ({"p": LOW}, "significant"),
        ({"p": HIGH}, "inconclusive"),
        ({"p": None}, "not_testable"),
        ({"p": LOW, "effect_size": -0.7}, "significant"),  # two-sided
        ({"p": HIGH, "effect_size": -0.7, "fixed_words_p_opposite": LOW}, "inconclusive"),
    ],
)
def test_the_standing_is_that_of_the_crossed_test(given: dict[str, Any], evidence: str) -> None:
    assert grades(crossed(**given)) == [evidence]


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
    assert [("opposite" in line) for line, _ in make_points(found)[:2]] == [opposite] * 2


def test_a_sanity_check_in_the_wrong_direction_fails() -> None:
    wrong, right = crossed(about="method", effect_size=-0.7), crossed(test="u", about="method")
    found = run_of("one", [wrong, right]).findings()
    assert "Sanity checks passed: 1 of 2." in summarize_findings(found)


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


def test_what_was_not_measured_says_why_and_has_no_numbers() -> None:
    (found,) = run_of("one", [as_refused(result("m", "t"))]).findings()
    assert (found.evidence, found.reason, found.direction) == ("skipped", "too many words", "")
    assert (found.effect, found.low, found.high) == (None, None, None)
    assert set(found.p_values.values()) == {None}


def test_a_finding_holds_the_numbers_of_its_row() -> None:
    associations = {"X": {f"x{i}": 0.3 + i / 100 for i in range(5)}, "Y": {f"y{i}": -0.2 - i / 50 for i in range(5)}}
    associations |= {"A": {"a": 0.1}, "B": {"b": -0.1}}
    given = {"targ1": "Flowers", "targ2": "Insects", "attr1": "Pleasant", "attr2": "Unpleasant"}
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


@pytest.mark.parametrize("by_text", [0.1, -0.1])
@pytest.mark.parametrize(("by_word", "first"), [(0.9, "A"), (-0.9, "B")])
def test_the_direction_is_that_of_the_effect_by_word(by_text: float, by_word: float, first: str) -> None:
    """It is the effect that stands beside it; that by text may have another sign."""
    given = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
    row = crossed(sentences_effect_size=by_text, effect_size=by_word, **given)
    (found,) = run_of("one", [row]).findings()
    assert re.findall(r"\b[XYAB]\b", found.direction) == ["X", first, "Y", "B" if first == "A" else "A"]
    assert found.effect == by_word


def test_of_the_opposite_direction_its_own_p_value_comes_first() -> None:
    row = as_by_word(result("m", "t", 0.99), effect_size=-0.7, fixed_words_p_opposite=0.002)
    (found,) = run_of("one", [row]).findings()
    assert next(iter(found.p_values.values())) == 0.002
    assert found.p_values["by word"] == 0.99


@pytest.mark.parametrize("margin", [0.03, 0.2])
def test_what_could_be_shown_not_to_matter_is_the_margin_at_which_p_is_alpha(margin: float) -> None:
    table = np.random.default_rng(5).normal(0.0, 0.1, (12, 14))
    found = crossed_test(table, 6, 7)
    assert found.interval is not None
    numbers = {"cosine_difference": found.D, "df": found.df}
    numbers |= {"cosine_ci_low": found.interval[0], "cosine_ci_high": found.interval[1]}
    p = found.p_equivalence(margin)
    row = crossed(p=found.p_value, p_equivalence=p, margin=margin, **numbers)
    (one,) = run_of("one", [row], settings={"equivalence": 1.5}).findings()
    assert one.bound is not None
    assert found.p_equivalence(one.bound) == pytest.approx(0.05, rel=1e-9)
    assert (one.margin, one.p_values["equivalence"]) == (margin, p)
    assert (one.bound <= margin) is (p is not None and p <= 0.05) is (margin == 0.2)


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


def test_a_double_star_is_explained_wherever_it_stands() -> None:
    """Of a metric of four sets, and of one p-value alone."""
    four = run_of("one", [as_by_word(result("m", f"t{i}", LOW)) for i in range(3)]).results
    assert {row.family_size for row in four} == {3}
    assert ("**" in make_legend(four), "3" in make_legend(four)) == (True, True)
    (alone,) = run_of("one", [as_papers(result(p=LOW))], settings={"protocol": "may2019"}).results
    assert "1 sentence-level p-value" in make_legend([alone])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([altered], []),
        ([altered, as_papers], ["protocol"]),
        ([altered, as_by_word], ["crossed"]),
        ([altered, as_papers, as_by_text, as_by_word], ["unknown", "protocol", "crossed"]),
    ],
)
def test_why_other_numbers_lead_is_told(given: list[Any], said: list[str]) -> None:
    text = other_lead([decided(make(result("m", f"t{i}", LOW))) for i, make in enumerate(given)])
    assert bool(text) is bool(said)
    assert {why for why in ("unknown", "protocol", "crossed") if why in text} == set(said)


@pytest.mark.parametrize(("alternative", "one_sided"), [("greater", 1), ("two-sided", 0)])
def test_it_is_told_in_which_direction_p_values_look(alternative: str, one_sided: int) -> None:
    text = describe_sides([decided(crossed(alternative=alternative))])
    assert (text.count("one-sided"), text.count("two-sided")) == (one_sided, 2 - one_sided)
    assert "two-sided" not in describe_sides([decided(as_papers(crossed()))])
    assert describe_sides([decided(as_refused(crossed()))]) == ""


@pytest.mark.parametrize(("shared", "notes"), [(None, 0), (0.11, 1), (0.5, 0), (1.0, 0)])
def test_sets_that_share_few_sentences_are_noted(shared: float | None, notes: int) -> None:
    (found,) = run_of("one", [crossed(shared_templates=shared, targ1="Here", targ2="There")]).findings()
    assert len(found.notes) == notes
    assert all("Here" in note and "There" in note for note in found.notes)


@pytest.mark.parametrize(("p", "questions", "mark"), [(0.01, 4, 2), (0.01, 6, 1), (0.4, 1, 0), (None, 1, 3)])
@pytest.mark.parametrize("lead", [altered, as_by_word, as_papers])
def test_there_is_one_mark_by_the_p_value_that_leads(lead: Any, p: float | None, questions: int, mark: int) -> None:
    row = lead(crossed("m", "t", HIGH), p_value=p, effect_size=0.9)
    others = [lead(crossed("m", f"o{i}", HIGH), p_value=HIGH) for i in range(questions - 1)]
    first, *_ = run_of("one", [row, *others]).results
    assert get_mark(first) == mark
    assert format_main_p(first) == ("–" if p is None else f"{p:.3f}") + SIGNS[mark]
    assert first.effect_size == 0.9
    assert get_mark(decided(as_refused(row))) == 4
    assert get_mark(decided(altered(row, p_value=math.nan))) == 0


def test_findings_are_counted_and_are_json() -> None:
    rows = [crossed("m", "t", LOW), crossed("n", "t", HIGH, about="method")]
    run = run_of("one", rows)
    found = run.findings()
    assert [(one.model, one.item) for one in found] == [("m", "t"), ("n", "t")]
    assert count_findings(found, "significant") == count_findings(found, *EVIDENCE, about="method") == 1
    assert [one["evidence"] for one in json.loads(run.to_json())["findings"]] == [one.evidence for one in found]


@pytest.mark.parametrize(
    ("labels", "effect", "direction"),
    [
        (("MaleNames", "FemaleNames", "Career", "Family"), 1.0, "Male names go with career, female names with family"),
        (("Math", "Arts", "Male", "Female"), -1.0, "Math goes with female words, arts with male words"),
        (("Berlin", "BlackFemaleNames", "a, b", "Rome"), 1.0, "Berlin go with a, b, Black female names with Rome"),
    ],
)
def test_a_direction_follows_the_sign_and_keeps_proper_names(labels: Any, effect: float, direction: str) -> None:
    row = dict(zip(("targ1", "targ2", "attr1", "attr2"), labels, strict=True))
    (finding,) = run_of("one", [crossed(effect_size=effect, **row)]).findings()
    assert finding.direction == direction


def test_the_sets_of_the_catalogue_are_nouns() -> None:
    phrases = {format_concept(test.concept(role).label) for test in load_catalogue().tests.values() for role in ROLES}
    proper = {"African", "American", "Asian", "Black", "European", "Hispanic", "Mexican", "White"}
    assert {word for phrase in phrases for word in phrase.split() if not word.islower()} == proper
    nouns = {"arts", "career", "competence", "family", "flowers", "incompetence", "insects", "instruments", "math"}
    assert {phrase for phrase in phrases if " " not in phrase} == nouns | {"science", "weapons"}
