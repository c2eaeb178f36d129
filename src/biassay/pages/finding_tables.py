"""Findings in a paper: a table with models beside each other, and a forest plot a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.forest import ForestRow, forest
from biassay.pages.charts.style import Style
from biassay.pages.formats import clean, decimals, format_p, interval_text, percent, unit_name
from biassay.pages.overview import drawable, sureness
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table
from biassay.pages.sentences import sentence
from biassay.results.findings import Finding

__all__ = ["findings_table", "forest_figures"]

_NO_REACH = 0.01


def findings_table(
    findings: Sequence[Finding],
    caption: str,
    label: Callable[[Finding], str],
    more: Mapping[str, Callable[[Finding], str]],
    corrected: str,
) -> Table:
    """Effect, interval, p-values and ``more`` of every item, models beside each other.

    ``corrected`` says over what the second p-value is corrected.
    """
    unit = " or ".join(dict.fromkeys(unit_name(one.unit) for one in findings)) or "effect"
    heads = (
        "effect",
        " and ".join(dict.fromkeys(percent(one.confidence) for one in findings)) or "95%",
        "p",
        "p, corrected",
        *more,
    )
    models = list(dict.fromkeys(one.model for one in findings))
    found = {(one.item, one.model): one for one in findings}
    none = (Cell("–"),) * len(heads)
    rows = []
    for item in dict.fromkeys(one.item for one in findings):
        first = next(one for one in findings if one.item == item)
        cells = [cell for model in models for cell in _cells(found.get((item, model)), more, none)]
        rows.append(Row((clean(label(first)),), tuple(cells)))
    spans = tuple(Span(clean(model), heads) for model in models)
    lacking = any(one.effect is not None and _corrected(one) is None for one in findings)
    note = " No corrected p: a sanity check, or no p-value." if lacking else ""
    told = clean(f"{caption} Effect: {unit}. p: two-sided; corrected: over the {corrected}.{note}")
    return Table(told, ("item",), spans, (Group("", tuple(rows)),), spare=tuple(more))


def _cells(
    finding: Finding | None, more: Mapping[str, Callable[[Finding], str]], none: tuple[Cell, ...]
) -> tuple[Cell, ...]:
    if finding is None or finding.effect is None:
        return none
    interval = "none" if finding.low is None else interval_text(finding.low, finding.high, finding.limit)
    p, corrected = format_p(next(iter(finding.p_values.values()), None)), format_p(_corrected(finding))
    shown = decimals(finding.effect), interval, p, corrected
    return tuple(map(Cell, (*shown, *(get(finding) for get in more.values()))))


def _corrected(finding: Finding) -> float | None:
    return next((p for name, p in finding.p_values.items() if name.endswith(", corrected")), None)


def forest_figures(findings: Sequence[Finding], name: str, label: Callable[[Finding], str]) -> Iterator[Drawing]:
    """One a model."""
    for place, model in enumerate(dict.fromkeys(one.model for one in findings), start=1):
        own = drawable(one for one in findings if one.model == model)
        if own:
            yield partial(_drawn, f"{name}-{place}", model, own, label)


def _drawn(name: str, model: str, findings: Sequence[Finding], label: Callable[[Finding], str], style: Style) -> Figure:
    rows = [
        ForestRow(label(one), one.effect or 0.0, one.low, one.high, sureness(one), sentence(one)) for one in findings
    ]
    axis = f"{unit_name(findings[0].unit)}, {percent(findings[0].confidence)} intervals"
    return forest(name, model, rows, style, axis=axis, reach=_NO_REACH)
