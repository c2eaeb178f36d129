"""Runs as one page that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from biassay.files import write_atomically
from biassay.report.sections.associations import part_of
from biassay.report.sections.comparison import comparison_part
from biassay.report.sections.discovery import discovery_part
from biassay.report.sections.section import Part, Renderer, environment
from biassay.report.sections.stereotypes import stereotypes_part
from biassay.report.view import RunView
from biassay.results.comparison import Comparison
from biassay.results.discovery import Discovery
from biassay.results.gathering import Found, Gathered, gather
from biassay.results.stereotypes import Stereotypes

__all__ = ["REPORT", "render_page", "render_report", "write_report"]

REPORT = "report.html"


def render_report(found: Found) -> str:
    """The page of one run."""
    return render_page(*gather({"": found}))


def render_page(together: Sequence[Gathered], others: Mapping[str, Found], comparison: Comparison | None = None) -> str:
    """The page of one or several runs. Names, words and reasons come from outside and are escaped."""
    level = 2 if len(together) + len(others) + (comparison is not None) == 1 else 3
    parts = _parts(together, others, comparison, level)
    script = _asset("page.js")
    data = json.dumps({part.anchor: part.data for part in parts if part.data}, ensure_ascii=False, allow_nan=False)
    return (
        environment()
        .get_template("page.html")
        .render(
            parts=parts,
            level=level,
            style=Markup(_asset("page.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=Markup(_in_script(data)),
        )
    )


def _parts(
    together: Sequence[Gathered], others: Mapping[str, Found], comparison: Comparison | None, level: int
) -> list[Part]:
    def make(anchor: str) -> Renderer:
        return Renderer(environment(), anchor, level)

    parts = [] if comparison is None else [comparison_part(comparison, make)]
    parts += [part_of(RunView(gathered), make) for gathered in together]
    for place, found in enumerate(others.values(), 1):
        if isinstance(found, Discovery):
            parts.append(discovery_part(f"words-{place}", found, make))
        elif isinstance(found, Stereotypes):
            parts.append(stereotypes_part(f"stereotypes-{place}", found, make))
    return parts


def _asset(name: str) -> str:
    return (resources.files("biassay.report") / "templates" / name).read_text(encoding="utf-8")


def _in_script(data: str) -> str:
    """JSON that cannot end the script it stands in."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def write_report(found: Found, folder: Path) -> Path:
    path = folder / REPORT
    write_atomically(path, render_report(found).encode())
    return path
