"""The figure of effects: where marks stand, what they show, and how results are counted."""

from __future__ import annotations

import re

import pytest

from biassay.reporting.findings import EVIDENCE_LABELS, SANITY_CHECKS, draw_overview, rank_evidence
from biassay.reporting.sentences import make_sentence, summarize_findings
from biassay.results.findings import Finding


def finding(item: str, effect: float, evidence: str = "uncorrected", model: str = "m", **given: object) -> Finding:
    known = {"title": f"Title of {item}", "topic": "gender", "about": "people", "direction": "A goes with b, C with d"}
    return Finding(model=model, item=item, evidence=evidence, effect=effect, **{**known, **given})  # type: ignore[arg-type]


def places(page: str) -> list[float]:
    strips = page[page.index("<details") :]
    return [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)%"', strips)]


def heads(page: str) -> list[tuple[str, str]]:
    return re.findall(r'<summary>(.*?) <span class="soft">(.*?)</span>', page)


def test_marks_stand_where_their_effects_are() -> None:
    page = draw_overview([finding("a", -2.0), finding("b", 0.0), finding("c", 1.0), finding("d", 2.0)])
    assert places(str(page)) == pytest.approx([2.0, 50.0, 74.0, 98.0])


def test_an_interval_beyond_the_usual_scale_is_drawn_whole() -> None:
    page = str(draw_overview([finding("a", 1.5, low=0.5, high=2.5)]))
    (low, high) = re.findall(r'x1="([\d.]+)%" x2="([\d.]+)%" [^>]*class="span', page)[0]
    assert (float(low), float(high)) == pytest.approx((50.0 + 48.0 * 0.2, 98.0))


def test_the_figure_counts_questions_as_the_sentences_do() -> None:
    given = [
        finding("a", 1.0),
        finding("b", -1.5, "significant", opposite=True),
        finding("b2", -1.5, "significant", form_of="b"),
        finding("c", 0.1, "inconclusive"),
    ]
    assert [rank_evidence(one) for one in given] == [1, 2, 2, 0]
    said = "1 of 3 results significant, 1 before correction only, 1 opposite to the expected direction"
    assert heads(str(draw_overview(given))) == [("Gender", said)]
    assert "1 of 3" in summarize_findings(given)


def test_checks_stand_last_and_are_not_said_to_miss_a_correction() -> None:
    check = finding("weat1", 1.2, about="method", topic="things")
    page = str(draw_overview([check, finding("a", 1.0)]))
    assert [title for title, _ in heads(page)] == ["Gender", SANITY_CHECKS]
    assert "correction" not in make_sentence(check)


def test_findings_of_several_units_have_figures_of_their_own() -> None:
    page = str(draw_overview([finding("a", 1.0), finding("b", 12.0, unit="score")]))
    assert page.count('class="effects"') == 2
    assert places(page.split("</figure>")[0] + "</figure>") == pytest.approx([74.0])


def test_of_very_many_models_marks_share_a_lane_and_nothing_is_said_of_intervals() -> None:
    many = [finding("a", value / 10, model=f"m{value}", low=0.0, high=0.1) for value in range(-7, 8)]
    page = str(draw_overview(many))
    assert 'class="span' not in page
    assert "interval" not in page
    assert "significant on 0 of 15 models; median 0.00, from -0.70 to 0.70" in page


def test_numbers_stand_in_the_lane_of_their_model() -> None:
    page = str(
        draw_overview([finding("a", 1.0, model="one"), finding("b", 0.5, model="two"), finding("a", 0.7, model="two")])
    )
    lanes = [re.findall(r"<span class=\"k\d\">(.*?)</span>", row) for row in re.findall(r'"values">(.*?)</div>', page)]
    assert lanes == [["1.00 *", "0.70 *"], ["", "0.50 *"]]


def test_what_is_not_a_number_is_not_drawn() -> None:
    assert draw_overview([finding("a", float("nan")), finding("b", float("inf"))]) is None
    page = str(draw_overview([finding("a", 1.0, low=float("-inf"), high=1.0)]))
    assert 'class="span' not in page
    assert all(name in page for name in EVIDENCE_LABELS)
