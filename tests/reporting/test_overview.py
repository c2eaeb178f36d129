"""The figure of effects: positions of marks, their text, and counts of results."""

from __future__ import annotations

import re

import pytest

from biassay.reporting.html import draw_overview
from biassay.results.outcomes import Finding


def finding(item: str, effect: float, evidence: str = "uncorrected", model: str = "m", **given: object) -> Finding:
    known = {"title": f"Title of {item}", "topic": "gender", "about": "people", "direction": "A goes with b, C with d"}
    return Finding(model=model, item=item, evidence=evidence, effect=effect, **{**known, **given})  # type: ignore[arg-type]


def places(page: str) -> list[float]:
    strips = page[page.index("<details") :]
    return [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)%"', strips)]


def heads(page: str) -> list[tuple[str, str]]:
    return re.findall(r'<summary>(.*?) <span class="soft">([^<]*)<', page)


def test_an_interval_beyond_the_usual_scale_is_drawn_whole() -> None:
    page = str(draw_overview([finding("a", 1.5, low=0.5, high=2.5)]))
    (low, high) = re.findall(r'x1="([\d.]+)%" x2="([\d.]+)%" [^>]*class="span', page)[0]
    assert (float(low), float(high)) == pytest.approx((50.0 + 48.0 * 0.2, 98.0))


def test_findings_of_several_units_have_figures_of_their_own() -> None:
    page = str(draw_overview([finding("a", 1.0), finding("b", 12.0, unit="score")]))
    assert page.count('class="effects numbered"') == 2
    assert places(page.split("</figure>")[0] + "</figure>") == pytest.approx([74.0])


def test_of_very_many_models_marks_share_a_lane_and_nothing_is_said_of_intervals() -> None:
    many = [finding("a", value / 10, model=f"m{value}", low=0.0, high=0.1) for value in range(-7, 8)]
    page = str(draw_overview(many))
    assert 'class="span' not in page
    assert "interval" not in page
    assert "significant on 0 of 15 models; median 0.00, from -0.70 to 0.70" in page
