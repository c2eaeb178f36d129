"""Draw trait profiles of people and model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from biassay.reporting.charts.base import (
    LABELS_ONLY,
    TIP,
    Figure,
    Style,
    encode_groups,
    make_figure,
    make_layer,
    place_names,
)

WHO = ("people", "model")


def draw_profile(
    name: str,
    title: str,
    pairs: Sequence[str],
    dimensions: Mapping[str, str],
    scores: Sequence[float | None],
    human: Sequence[float | None] | None,
    style: Style,
) -> Figure:
    """Draw the trait profiles of a model and of people.

    Each profile is stretched until its largest value reaches the edge: compare only order and side.

    Parameters
    ----------
    name, title : str
        File name and title of the figure.
    pairs : (pairs,) sequence of str
        Names of the trait pairs, from top to bottom.
    dimensions : dict of str to str
        Dimension of every trait pair.
    scores : (pairs,) sequence of float or None
        Scores of the model, negative for the left trait; None where a pair has no score.
    human : (pairs,) sequence of float or None, optional
        Ratings by people, from 0 for the left trait to 100 for the right.
    style : Style
        Colours of charts.

    Returns
    -------
    Figure
    """
    rows = _make_rows(pairs, dimensions, scores, human)
    names = list(dict.fromkeys(dimensions.values()))
    x = {
        "type": "quantitative",
        "scale": {"domain": [-1.1, 1.1]},
        "title": None,
        "axis": {"values": [0], "labels": False, "ticks": False, "domain": False},
    }
    y = place_names("pair", pairs, {**LABELS_ONLY, "labelLimit": 0})
    colours = [style.dimensions[i % len(style.dimensions)] for i in range(len(names))]
    shared = {"y": y, "color": encode_groups("dimension", names, colours)}
    shape = encode_groups("who", WHO, ("circle", "square"))
    points = [
        {**row, "who": who, "at": row[who], "tip": row[f"{who}_tip"]}
        for row in rows
        for who in WHO
        if row[who] is not None
    ]
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [row for row in rows if None not in (row["people"], row["model"])]},
            **make_layer(
                "rule",
                {"x": {"field": "people", **x}, "x2": {"field": "model"}, **shared},
                strokeWidth=2,
                opacity=0.5,
                aria=False,
            ),
        },
        {
            "data": {"values": points},
            **make_layer(
                "point",
                {"x": {"field": "at", **x}, "shape": shape, "description": TIP, **shared},
                filled=True,
                size=55,
                opacity=1,
            ),
        },
    ]
    return make_figure(name, _describe(title, rows), title, style, width=190, height={"step": 14}, layer=layers)


def _make_rows(
    pairs: Sequence[str],
    dimensions: Mapping[str, str],
    scores: Sequence[float | None],
    human: Sequence[float | None] | None,
) -> list[dict[str, Any]]:
    rated = _drop_nan(human or (None,) * len(pairs))
    scores = _drop_nan(scores)
    own = _stretch(scores)
    people = _stretch([None if value is None else value - 50.0 for value in rated])
    return [
        {
            "pair": pair,
            "dimension": dimensions.get(pair, "") or "",
            "people": people[i],
            "model": own[i],
            "people_tip": f"{pair}: people {rated[i]:.0f} of 100" if rated[i] is not None else "",
            "model_tip": f"{pair}: model {scores[i]:+.3g}" if scores[i] is not None else "",
        }
        for i, pair in enumerate(pairs)
    ]


def _drop_nan(values: Sequence[float | None]) -> list[float | None]:
    return [value if value is not None and math.isfinite(value) else None for value in values]


def _stretch(values: Sequence[float | None]) -> list[float | None]:
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    return [None if value is None else value / largest if largest else 0.0 for value in values]


def _describe(title: str, rows: Sequence[dict[str, Any]]) -> str:
    both = [row for row in rows if None not in (row["people"], row["model"])]
    same = sum(row["people"] * row["model"] > 0 for row in both)
    agreement = f"; people and model fall on the same side in {same} of {len(both)} pairs" if both else ""
    return f"{title}: {len(rows)} pairs of traits{agreement}"
