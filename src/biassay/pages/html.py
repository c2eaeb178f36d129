"""Runs as one page that opens without a network."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from biassay.pages.presenter import Presenter, Shown
from biassay.pages.section import Part, Renderer, asset, environment
from biassay.results.data import RunData
from biassay.results.labels import record_labels

if TYPE_CHECKING:
    from biassay.results.comparison import Comparison

__all__ = ["REPORT", "render_page"]

REPORT = "report.html"


def render_page(shown: Sequence[Shown], compared: tuple[Presenter, Comparison] | None = None) -> str:
    """The page of one or several runs. Names, words and reasons come from outside and are escaped."""
    level = 2 if len(shown) + (compared is not None) == 1 else 3
    parts = _parts(shown, level)
    if compared is not None:
        first = _comparison_part(*compared, level)
        if first.figure is not None:  # it shows what theirs would
            parts = [dataclasses.replace(part, figure=None) for part in parts]
        parts = [first, *parts]
    script = f'"use strict";\n(() => {{\n{asset("page.js")}\n{asset("tables.js")}}})();\n'
    data = json.dumps({part.anchor: part.data for part in parts if part.data}, ensure_ascii=False, allow_nan=False)
    return (
        environment()
        .get_template("page.html")
        .render(
            parts=parts,
            compared=compared is not None,
            level=level,
            style=Markup(asset("page.css") + asset("effects.css") + asset("panels.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=Markup(_in_script(data)),
        )
    )


def _comparison_part(presenter: Presenter, comparison: Comparison, level: int) -> Part:
    return presenter.comparison_part(comparison, Renderer(environment(presenter.package), "comparison", level))


def _parts(shown: Sequence[Shown], level: int) -> list[Part]:
    number = itertools.count(1)
    parts = []
    for presenter, gathered in shown:
        name = presenter.anchor(gathered)
        anchor = name if presenter.joins_runs else f"{name}-{next(number)}"
        part = presenter.part(gathered, Renderer(environment(presenter.package), anchor, level))
        parts.append(dataclasses.replace(part, notes=(*_not_measured(gathered.run), *part.notes)))
    return parts


def _not_measured(run: RunData) -> list[str]:
    """A note on the models of which there is nothing to show, if there are any."""
    reasons = zip(record_labels(run), run.manifest.models, strict=True)
    missing = [f"{label}: {why}" for label, record in reasons if (why := record.failed or record.refused)]
    return [f"Not measured: {'; '.join(missing)}"] if missing else []


def _in_script(data: str) -> str:
    """JSON that cannot end the script it stands in."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")
