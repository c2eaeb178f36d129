"""Findings in words: which are named, in which order, and with which numbers."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from biassay.reporting.findings import make_points, make_statements, summarize_findings
from biassay.reporting.formats import format_interval, format_p, format_share_of_time
from biassay.results.outcomes import Finding


def finding(item: str, evidence: Any = "significant", effect: float | None = 0.5, **given: Any) -> Finding:
    fields = {"model": "m", "title": f"title {item}", "topic": "gender", "about": "people", "direction": f"way {item}"}
    return Finding(**fields | {"item": item, "evidence": evidence, "effect": effect} | given)  # type: ignore[arg-type]


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", text)]


def names(findings: list[Finding]) -> list[str]:
    return [name.strip(" ()") for _, name in make_points(findings)]


def test_the_corrected_count_comes_first_and_chance_is_named() -> None:
    people = [finding(s[0], s) for s in ("significant", "uncorrected", "inconclusive", "not_testable")]
    checks = [finding("c", about="method"), finding("d", "uncorrected", about="method")]
    text = summarize_findings([*people, *checks])
    assert text.startswith(
        "1 of 3 social-bias questions is significant after correction. 1 more is significant before correction "
        "only (at most about 0.2 expected by chance). 1 is inconclusive."
    )
    assert "Sanity checks passed: 2 of 2." in text
    assert numbers(summarize_findings([finding("t", "descriptive")])) == [1]
    assert summarize_findings([finding("refused", "skipped", None)]).endswith("refused.")
    assert names(checks) == []
    assert "(Holm over 9 questions)" in summarize_findings([finding("t", family="Holm over 9 questions")])


def test_forms_of_a_question_are_counted_once_and_named_beside_it() -> None:
    forms = [finding("weat6", effect=1.2), *(finding(f"sent{i}", s, 1.9, form_of="weat6") for i, s in
             enumerate(("significant", "uncorrected", "significant")))]  # fmt: skip
    assert summarize_findings(forms).startswith("1 of 1 social-bias question ")
    assert names(forms) == ["weat6, sent0, sent2"]


def test_what_a_finding_survives_is_said_whatever_its_standing_and_never_put_together() -> None:
    evidence = ("significant", "inconclusive", "not_testable")
    given = [finding(f"{s}{i}", s, direction="way", robustness=(f"{i} of 4",)) for s in evidence for i in (1, 2)]
    told = make_points(given)
    assert [name.strip(" ()") for _, name in told] == [one.item for one in given]
    assert all(one.robustness[0] in text for one, (text, _) in zip(given, told, strict=True))


def test_a_point_holds_the_numbers_of_its_finding() -> None:
    p_values = {"crossed": None, "by text": 0.0123, "by text, corrected": 0.5}
    one = finding("t", effect=-0.91, low=-1.5, high=-0.25, p_values=p_values, words=("u", "v", "w", "x"))
    ((text, _),) = make_points([one])
    assert re.findall(r"-?\d?\.\d+", text) == ["-0.91", "-1.50", "-0.25", ".012"]
    assert one.direction in text
    assert "u, v, w" not in text  # on the page
    ((words, _),) = make_points([finding("t", "significant", 5.0, unit="words", words=("u", "v", "w", "x"))])
    assert "u, v, w" in words
    assert "by text" in text
    assert "95%" in text


def test_what_was_not_shown_says_what_would_be_found() -> None:
    """One by one where they are few, and the smallest of them beside the counts."""
    few = [finding(f"t{i}", "inconclusive", smallest=size) for i, size in enumerate((1.1, 0.5, 1.6))]
    assert [float(re.findall(r"[\d.]+\d", text)[2]) for text, _ in make_points(few)] == [1.1, 0.5, 1.6]
    many = [*few, finding("t3", "inconclusive", smallest=1.2)]
    assert make_points(many) == []
    assert re.findall(r"\d\.\d+", summarize_findings(many)) == ["0.50"]
    assert re.findall(r"\d\.\d+", summarize_findings([finding("t", "inconclusive")])) == []


def test_what_is_shown_not_to_matter_is_told_where_it_was_asked() -> None:
    bounds = {"a": 0.04, "b": 0.2, "c": 0.05, "d": 0.123, "few": None}
    text = summarize_findings(
        [finding(item, "inconclusive", margin=0.05, bound=bound) for item, bound in bounds.items()]
    )
    assert re.findall(r"\d[\d.]*\d|\d", text) == ["0", "5", "5", "0.05", "2", "4", "0.123", "0.200"]
    assert "(a, c)" in text
    assert "cosine" in text
    assert "0.05" not in summarize_findings([finding("a", "inconclusive", bound=0.05)])
    unlike = [finding("a", "inconclusive", margin=0.3, bound=0.2), finding("b", "inconclusive", margin=0.01, bound=0.2)]
    assert re.findall(r"\d\.\d+", summarize_findings(unlike)) == ["0.01", "0.3", "0.200"]  # each by its own margin
    assert "(a)" in summarize_findings(unlike)
    assert names(unlike) == ["a"]  # what is shown to be small is told, although no association is


def test_every_model_has_a_statement_and_very_many_models_have_one() -> None:
    def of(models: int) -> list[Finding]:
        rare = [finding("rare", model="m0"), finding("gone", "skipped", None, model="m1")]
        return [finding("often", effect=0.1 * i, model=f"m{i}") for i in range(models)] + rare

    assert [one.about for one in make_statements(of(12))] == [f"m{i}" for i in range(12)]
    assert all(one.text.startswith(one.about) for one in make_statements(of(12)))
    (found,) = make_statements(of(13))
    assert numbers(found.text) == [13, 14, 14, 1]
    assert found.names == (" (often)", " (rare)")
    assert numbers(found.points[0])[:2] == [13, 13]
    assert "0.60" in found.points[0]  # the median
    assert all(point.endswith(name) for point, name in zip(found.points, found.names, strict=True))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (math.nan, "NaN"),
        (1.0, "1.000"),
        (0.0123, "0.012"),
        (0.001, "0.001"),
        (0.00099, "9.9e-4"),
        (9.97e-5, "1.0e-4"),
        (1.4536675772573553e-09, "1.5e-9"),
        (0.0, "0"),
    ],
)
def test_p_values_are_written_to_two_digits(value: float | None, shown: str) -> None:
    assert format_p(value) == shown


@pytest.mark.parametrize(
    ("share", "drawn", "shown"),
    [
        *((0.0, 1000, "less than 0.1%"), (0.0, 50, "less than 2%"), (0.0, None, "less than 1%")),
        *((0.0002, 10_000, "0.02%"), (0.004, 1000, "0.4%"), (0.012, 1000, "1%"), (0.366, None, "37%")),
        (1.0, 1000, "100%"),
    ],
)
def test_shares_are_told_as_a_share_of_the_time(share: float, drawn: int | None, shown: str) -> None:
    assert format_share_of_time(share, drawn) == f"{shown} of the time"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((-1.912, 1.908), "full range"),
        ((-1.91, 1.89), "[-1.91, 1.89]"),
        ((0.0, 1.91), "[0.00, 1.91]"),
        ((None, 1.91), "–"),
    ],
)
def test_an_interval_of_all_that_can_be_says_so(ends: tuple[float, float], said: str) -> None:
    assert format_interval(*ends, 1.91) == said
    assert format_interval(*ends) == said.replace("full range", "[-1.91, 1.91]")
    ((text, _),) = make_points([finding("t", low=ends[0], high=ends[1], limit=1.91)])
    assert (said in text) is (ends[0] is not None)


def test_questions_outside_a_declared_family_are_counted_as_exploratory() -> None:
    text = summarize_findings([finding("a"), finding("b", "uncorrected", exploratory=True)])
    assert "1 is exploratory, not in the declared family" in text
    assert "exploratory" not in summarize_findings([finding("a")])
