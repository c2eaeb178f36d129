"""Figures contain the recorded numbers; these tests draw nothing and need no plotting library."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pytest
from tests.reporting.figures import (
    CURVE,
    HOSTILE,
    ROWS,
    every_figure,
    named_forest,
    parts,
    samples,
)

from biassay.errors import MissingExtraError
from biassay.reporting.charts.base import PAGE, PRINT, SCHEMA, Figure, Style, can_draw, render_figure
from biassay.reporting.charts.distribution import compute_bins, draw_distribution
from biassay.reporting.charts.forest import EVIDENCE_NAMES, draw_forest
from biassay.reporting.charts.matrix import MatrixCell, draw_matrix
from biassay.reporting.charts.profiles import draw_profile
from biassay.reporting.charts.roc import draw_roc
from biassay.reporting.charts.specification_curve import CurvePoint, draw_specification_curve


def layers(figure: Figure, kind: str) -> list[dict[str, Any]]:
    return [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == kind]


def test_long_labels_of_a_forest_are_wrapped_and_have_room() -> None:
    label = "male words and names–being competent and achievement-oriented / female words–being incompetent (own_test)"
    assert len(label) > 100
    figure = draw_forest("f", "t", [dataclasses.replace(ROWS[0], label=label), *ROWS[1:]], PRINT)
    (row, *others) = [held["row"] for held in figure.spec["data"]["values"]]
    assert (" ".join(row.split("\n")), row.count("\n")) == (label, 1)
    assert others == [one.label for one in ROWS[1:]]
    assert figure.spec["height"]["step"] > draw_forest("f", "t", ROWS, PRINT).spec["height"]["step"]
    assert "labelExpr" in json.dumps(figure.spec)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_forest_leaves_out_what_is_no_number(value: float) -> None:
    row = dataclasses.replace(ROWS[0], effect_size=value)
    figure = draw_forest("f", "t", (ROWS[1], row, ROWS[2]), PRINT)
    assert [held["tip"] for held in figure.spec["data"]["values"]] == ["second", "third"]
    assert figure.description.startswith("t: 2 rows")
    bounded = draw_forest("f", "t", [dataclasses.replace(ROWS[0], low=value, high=value)], PRINT)
    (held,) = bounded.spec["data"]["values"]
    assert (held["effect"], held["low"], held["high"]) == (0.5, None, None)
    assert json.loads(render_figure(bounded, "vl.json"))


def test_the_cells_of_a_matrix_are_those_given() -> None:
    cells = [MatrixCell(m, t, found, str(found), f"{t} on {m}") for m in "ab" for t, found in (("u", 2), ("v", None))]
    figure = draw_matrix("m", "t", cells, ["v", "u"], ["b", "a"], PRINT)
    assert figure.spec["data"]["values"] == [
        {
            "model": c.model,
            "test": c.test,
            "found": said,
            "text": "–" if c.found is None else c.text,
            "tip": c.tip,
            "column": x,
            "line": y,
        }
        for c, said, x, y in zip(
            cells, [EVIDENCE_NAMES[2], "not measured"] * 2, [1, 1, 0, 0], [1, 0, 1, 0], strict=True
        )
    ]
    sorts = {part["field"]: part["sort"]["field"] for part in parts(figure.spec) if "sort" in part}
    assert sorts == {"model": "column", "test": "line"}
    assert figure.description == "t: 2 tests on 2 models; significant: 2"
    (colour,) = [part for part in parts(figure.spec) if part.get("field") == "found"]
    assert colour["scale"]["domain"] == [EVIDENCE_NAMES[2], "not measured"]  # what does not occur is not in the legend


@pytest.mark.parametrize("spread", [0.05, 0.6, 4.0])
def test_a_distribution_is_a_histogram(spread: float) -> None:
    """Count in a loop; values beyond the axis belong to the outermost bars."""
    given = samples(spread)
    figure = draw_distribution("d", "t", given, 0.3, PRINT)
    bins: dict[int, list[float]] = {}
    for size, value in zip(given.effect_sizes.tolist(), given.p_values.tolist(), strict=True):
        bins.setdefault(min(79, max(0, math.floor((size + 2.0) / 0.05))), []).append(value)
    bars = figure.spec["data"]["values"]
    assert bars == compute_bins(given)
    assert sum(bar["count"] for bar in bars) == 500
    for number, bar in zip(sorted(bins), bars, strict=True):
        inside, low = bins[number], 0.05 * number - 2.0
        told = f"{low:.2f} to {low + 0.05:.2f}: {len(inside)} samples, mean p {sum(inside) / len(inside):.2g}"
        assert bar["tip"].replace("-0.00", "0.00") == told.replace("-0.00", "0.00")
        assert (bar["left"], bar["right"]) == pytest.approx((low, low + 0.05))
        assert bar["count"] == len(inside)
    ordered = np.sort(given.effect_sizes)
    for share in (0.05, 0.5, 0.95):  # linear between order statistics
        at = share * 499
        value = ordered[int(at)] + (at % 1) * (ordered[int(at) + 1] - ordered[int(at)])
        assert f" {value:.2f}" in figure.description
    assert figure.description.startswith("t: 500 effect sizes, pooled 0.30;")


def test_the_points_of_a_curve_are_the_rates_of_its_counts() -> None:
    other = dataclasses.replace(CURVE, tp=(2, 2, 1), fn=(0, 0, 1), chosen=1.0, area=0.25)
    figure = draw_roc("r", "group", {"a": CURVE, "b": other}, PRINT)
    points = figure.spec["data"]["values"]
    assert [(p["task"], p["x"], p["y"]) for p in points] == [
        *(("a", 1.0, 1.0), ("a", 0.0, 0.5), ("a", 0.0, 0.0)),  # all, then none
        *(("b", 1.0, 1.0), ("b", 0.0, 1.0), ("b", 0.0, 0.5)),
    ]
    assert [p["order"] for p in points] == [0, 1, 2] * 2
    assert points[1]["tip"] == "a, threshold 0: true positive rate 0.50, false positive rate 0.00"
    (chosen,) = [layer["data"]["values"] for layer in layers(figure, "point") if "data" in layer]
    assert [(c["task"], c["x"], c["y"], c["tip"]) for c in chosen] == [
        ("a", 0.0, 0.5, "a: the threshold in use, 0"),
        ("b", 0.0, 0.5, "b: the threshold in use, 1"),
    ]
    assert figure.description == ("group: a has an area under the curve of 0.83; b has an area under the curve of 0.25")


def test_a_specification_curve_goes_up_and_its_choices_stand_by_kind() -> None:
    chosen = [(("layer", "2"), ("by", "cosine")), (("layer", "1"), ("by", "rank")), (("layer", "2"), ("by", "rank"))]
    effects = [0.5, -0.2, math.nan]
    given = [CurvePoint(d, -1.0, 1.0, d > 0, of, "tip") for d, of in zip(effects, chosen, strict=True)]
    upper, lower = draw_specification_curve("c", "title", given, PRINT).spec["vconcat"]
    assert [(v["place"], v["effect"], v["found"]) for v in upper["data"]["values"]] == [
        *((0, -0.2, "not significant"), (1, 0.5, "significant")),
    ]
    assert {(v["place"], v["choice"], v["row"]) for v in lower["data"]["values"]} == {
        *((0, "layer: 1", 1), (0, "by: rank", 3), (1, "layer: 2", 0), (1, "by: cosine", 2)),
    }


def test_a_profile_is_stretched_to_its_largest_value() -> None:
    pairs = ["a-b", "c-d", "e-f", "g-h"]
    dimensions = {"a-b": "x", "c-d": "y", "e-f": "x", "g-h": "x"}
    figure = draw_profile("p", "group", pairs, dimensions, [0.5, -2.0, None, 1.0], [75.0, 60.0, 10.0, None], PRINT)
    (points,) = [layer["data"]["values"] for layer in layers(figure, "point")]
    told = {(p["pair"], p["who"]): (p["at"], p["tip"], p["dimension"]) for p in points}
    assert told == {
        ("a-b", "people"): (25 / 40, "a-b: people 75 of 100", "x"),
        ("a-b", "model"): (0.25, "a-b: model +0.5", "x"),
        ("c-d", "people"): (10 / 40, "c-d: people 60 of 100", "y"),
        ("c-d", "model"): (-1.0, "c-d: model -2", "y"),
        ("e-f", "people"): (-1.0, "e-f: people 10 of 100", "x"),
        ("g-h", "model"): (0.5, "g-h: model +1", "x"),
    }
    (bars,) = [layer["data"]["values"] for layer in layers(figure, "rule")]
    assert [bar["pair"] for bar in bars] == ["a-b", "c-d"]
    assert figure.description == ("group: 4 pairs of traits; people and model fall on the same side in 1 of 2 pairs")


@every_figure
@pytest.mark.parametrize("style", [PAGE, PRINT], ids=["page", "print"])
def test_a_figure_is_json(make: Callable[[str, Style], Figure], style: Style) -> None:
    figure = make(HOSTILE, style)
    held = json.loads(render_figure(figure, "vl.json"))
    assert held.pop("$schema") == SCHEMA
    assert held == json.loads(json.dumps(figure.spec))
    assert figure.description.startswith(f"{HOSTILE}: ")


def test_colours_are_the_variables_of_the_page_or_fixed() -> None:
    def colours(style: Style) -> list[str]:
        given = [getattr(style, f.name) for f in dataclasses.fields(style)]
        return [one for value in given for one in ([value] if isinstance(value, str) else value or ())]

    css = (resources.files("biassay.reporting") / "templates" / "page.css").read_text(encoding="utf-8")
    for colour in colours(PAGE):
        found = re.fullmatch(r"var\((--[a-z0-9]+)\)", colour)
        assert found is not None
        assert f"{found[1]}:" in css
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in colours(PRINT))
    assert (PAGE.background, PRINT.background) == (None, "#ffffff")


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    figure = named_forest("t", PRINT)
    assert not can_draw()
    assert render_figure(figure, "vl.json")
    with pytest.raises(MissingExtraError, match=r"biassay\[figures\]"):
        render_figure(figure, "svg")
