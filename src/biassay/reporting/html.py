"""Render runs as an HTML page or in a notebook."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import itertools
import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from markupsafe import Markup

from biassay.io import make_printable
from biassay.reporting.document import Renderer, ReportPart, make_environment, read_asset
from biassay.reporting.findings import draw_overview
from biassay.reporting.formats import format_count, format_decimal, format_interval, format_p, unit_name
from biassay.reporting.presenter import Presenter, Shown
from biassay.reporting.sentences import format_evidence, make_statements
from biassay.results.findings import Finding
from biassay.results.outcomes import EVIDENCE
from biassay.results.run_data import RunData
from biassay.results.tables import render_html_table
from biassay.results.views import record_labels

if TYPE_CHECKING:
    from biassay.results.comparison import Comparison


REPORT_FILE = "report.html"


def render_page(shown: Sequence[Shown], compared: tuple[Presenter, Comparison] | None = None) -> str:
    """Render the page of one or several runs, with all text escaped."""
    level = 2 if len(shown) + (compared is not None) == 1 else 3
    parts = _make_parts(shown, level)
    if compared is not None:
        presenter, comparison = compared
        first = Renderer(make_environment(), "comparison", level).report(presenter.comparison_report(comparison))
        if first.figure is not None:  # its figure already includes the other runs
            parts = [dataclasses.replace(part, figure=None) for part in parts]
        parts = [first, *parts]
    script = f'"use strict";\n(() => {{\n{read_asset("page.js")}\n{read_asset("tables.js")}}})();\n'
    data = json.dumps(
        {part.anchor: part.report.data for part in parts if part.report.data}, ensure_ascii=False, allow_nan=False
    )
    return (
        make_environment()
        .get_template("page.html")
        .render(
            parts=parts,
            compared=compared is not None,
            level=level,
            style=Markup(read_asset("page.css") + read_asset("effects.css") + read_asset("panels.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=Markup(_escape_script(data)),
        )
    )


def _make_parts(shown: Sequence[Shown], level: int) -> list[ReportPart]:
    number = itertools.count(1)
    parts = []
    for presenter, gathered in shown:
        name = presenter.anchor(gathered)
        anchor = name if presenter.joins_runs else f"{name}-{next(number)}"
        report = presenter.report(gathered)
        report = dataclasses.replace(report, notes=(*_note_unmeasured(gathered.run), *report.notes))
        parts.append(Renderer(make_environment(), anchor, level).report(report))
    return parts


def _note_unmeasured(run: RunData) -> list[str]:
    """List models without results and the reasons, as one note."""
    reasons = zip(record_labels(run), run.manifest.models, strict=True)
    missing = [f"{label}: {why}" for label, record in reasons if (why := record.failed or record.skipped)]
    return [f"Not measured: {'; '.join(missing)}"] if missing else []


def _escape_script(data: str) -> str:
    """Escape JSON so that it cannot end its script element."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


_MAX_MODELS = 6  # with sentences of their own
_MAX_ROWS = 20
_HEAD = {
    "": "Question of the test, and its name.",
    "model": "Label of the model.",
    "effect": "Size of the effect with its unit.",
    "interval": "Confidence interval of the effect.",
    "p": "Two-sided p-value before correction.",
    "found": "Evidence after correction.",
}


def render_run(run: RunData, findings: Sequence[Finding]) -> str:
    """Render summary, figure and findings: significant ones first, sanity checks last."""
    unfinished = "" if run.manifest.status == "complete" else "<p>The run is not finished.</p>"
    parts = [unfinished, _render_summary(findings), _render_figure(findings), _render_table(findings)]
    return f'<div class="biassay">{"".join(parts)}</div>'


def _render_figure(findings: Sequence[Finding]) -> str:
    """Render the overview figure with its styles."""
    figure = draw_overview(findings)
    if figure is None:
        return ""
    return f"<style>{read_asset('effects.css')}{read_asset('notebook.css')}</style>{read_asset('shapes.html')}{figure}"


def _render_summary(findings: Sequence[Finding]) -> str:
    said = make_statements(findings)
    texts = [(sentence.about, sentence.text.removeprefix(sentence.about)) for sentence in said[:_MAX_MODELS]]
    more = f"<p>and {format_count(len(said) - _MAX_MODELS, 'more model')}</p>" if len(said) > _MAX_MODELS else ""
    return "".join(f"<p><b>{_escape(about)}</b>{_escape(text)}</p>" for about, text in texts) + more


def _render_table(findings: Sequence[Finding]) -> str:
    """Render findings by evidence and size; a column for models only if there are several."""
    if not findings:
        return "<p>There are no findings.</p>"
    several = len({finding.model for finding in findings}) > 1
    head = {name: about for name, about in _HEAD.items() if several or name != "model"}
    ordered = sorted(findings, key=_sort_key)
    lines = [
        [cell for name, cell in zip(_HEAD, _cells(finding), strict=True) if name in head]
        for finding in ordered[:_MAX_ROWS]
    ]
    more = f"<p>and {format_count(len(ordered) - _MAX_ROWS, 'more finding')}</p>" if len(ordered) > _MAX_ROWS else ""
    return render_html_table("", head, lines) + more


def _sort_key(finding: Finding) -> tuple[bool, int, float]:
    return finding.about != "people", EVIDENCE.index(finding.evidence), -abs(finding.effect or 0.0)


def _cells(finding: Finding) -> tuple[str, ...]:
    """Format the cells of a finding in the order of the heads."""
    p = next((value for value in finding.p_values.values() if value is not None), None)
    texts = (
        f"{finding.title} ({finding.item})",
        finding.model,
        _format_effect(finding),
        format_interval(finding.low, finding.high, finding.limit),
        format_p(p),
        format_evidence(finding),
    )
    return tuple(map(make_printable, texts))


def _format_effect(finding: Finding) -> str:
    if finding.effect is None:
        return "–"
    return (
        f"{finding.effect:,.0f} words"
        if finding.unit == "words"
        else f"{unit_name(finding.unit)} {format_decimal(finding.effect)}"
    )


def _escape(text: str) -> str:
    return escape(make_printable(text))
