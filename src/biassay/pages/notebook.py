"""A run in a notebook: what it shows in a few sentences, then its findings in a table, in the notebook's colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from biassay.files import printable
from biassay.pages.formats import counted, decimals, format_p, interval_text, unit_name
from biassay.pages.overview import overview
from biassay.pages.section import asset
from biassay.pages.sentences import standing_text, statements
from biassay.results.data import RunData
from biassay.results.findings import STANDINGS, Finding
from biassay.results.tables import html_table

__all__ = ["run_html"]

_MODELS = 6  # of which each has its own sentences
_ROWS = 20
_HEAD = {
    "": "What was asked, and its name in biassay.",
    "model": "The model.",
    "effect": "Its size and unit.",
    "interval": "Of the effect.",
    "p": "Of the finding, before correction.",
    "found": "What is to be made of it.",
}


def run_html(run: RunData, findings: Sequence[Finding]) -> str:
    """The summary, the figure, then the findings: significant ones first, sanity checks last."""
    unfinished = "" if run.manifest.status == "complete" else "<p>The run is not finished.</p>"
    parts = [unfinished, _summary(findings), _figure(findings), _table(findings)]
    return f'<div class="biassay">{"".join(parts)}</div>'


def _figure(findings: Sequence[Finding]) -> str:
    """That of a page, with what it needs of the page."""
    figure = overview(findings)
    if figure is None:
        return ""
    return f"<style>{asset('effects.css')}{asset('notebook.css')}</style>{asset('shapes.html')}{figure}"


def _summary(findings: Sequence[Finding]) -> str:
    said = statements(findings)
    texts = [(one.about, one.text.removeprefix(one.about)) for one in said[:_MODELS]]
    more = f"<p>and {counted(len(said) - _MODELS, 'more model')}</p>" if len(said) > _MODELS else ""
    return "".join(f"<p><b>{_safe(about)}</b>{_safe(text)}</p>" for about, text in texts) + more


def _table(findings: Sequence[Finding]) -> str:
    """The surest and then the largest first; a column for models only where there are several."""
    if not findings:
        return "<p>There are no findings.</p>"
    several = len({one.model for one in findings}) > 1
    head = {name: about for name, about in _HEAD.items() if several or name != "model"}
    ordered = sorted(findings, key=_place)
    lines = [[cell for name, cell in zip(_HEAD, _cells(one), strict=True) if name in head] for one in ordered[:_ROWS]]
    more = f"<p>and {counted(len(ordered) - _ROWS, 'more finding')}</p>" if len(ordered) > _ROWS else ""
    return html_table("", head, lines) + more


def _place(finding: Finding) -> tuple[bool, int, float]:
    return finding.about != "people", STANDINGS.index(finding.standing), -abs(finding.effect or 0.0)


def _cells(finding: Finding) -> tuple[str, ...]:
    """In the order of the heads."""
    p = next((value for value in finding.p_values.values() if value is not None), None)
    texts = (
        f"{finding.title} ({finding.item})",
        finding.model,
        _effect(finding),
        interval_text(finding.low, finding.high, finding.limit),
        format_p(p),
        standing_text(finding),
    )
    return tuple(map(printable, texts))


def _effect(finding: Finding) -> str:
    if finding.effect is None:
        return "–"
    return (
        f"{finding.effect:,.0f} words"
        if finding.unit == "words"
        else f"{unit_name(finding.unit)} {decimals(finding.effect)}"
    )


def _safe(text: str) -> str:
    return escape(printable(text))
