"""Render reports as an HTML page or in a notebook, with their figures."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from biassay.errors import format_install_command
from biassay.grouping import group_pairs
from biassay.io import make_printable
from biassay.reporting.charts.base import PAGE, can_draw, render_for_page
from biassay.reporting.charts.forest import EVIDENCE_NAMES
from biassay.reporting.document import Block, Drawings, Report, Section, Table
from biassay.reporting.findings import (
    SANITY_CHECKS,
    format_effect,
    format_evidence,
    make_counts_table,
    make_sentence,
    make_statements,
    passes_check,
    rank_evidence,
    select_drawable,
)
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_interval,
    format_percent,
    format_value,
    topic_name,
    unit_name,
)
from biassay.results.outcomes import EVIDENCE, Finding
from biassay.results.run_data import RunData, record_labels
from biassay.results.tables import Column, render_html_table

if TYPE_CHECKING:
    import jinja2

    from biassay.reporting.presenter import Presenter, Shown
    from biassay.results.comparison import Comparison


@dataclass(frozen=True)
class ReportPart:
    """Rendered report of one kind of run, with the HTML of each section."""

    anchor: str
    report: Report
    sections: Sequence[tuple[Section, Markup]]
    figure: Markup | None
    counts: Table | None


def _render_part(report: Report, anchor: str, level: int) -> ReportPart:
    """Render a report as part of a page. `level` is the heading level of its sections."""

    def render(blocks: Sequence[Block], title: str) -> Markup:
        return _render(
            "blocks.html",
            blocks=blocks,
            title=title if level == 2 else f"{title} ({anchor})",
            anchor=anchor,
            level=level,
            kinds=lambda block: type(block).__name__,
            texts=lambda table: [span.text for span in table.models for _ in span.columns],
            can_draw=can_draw(),
            install=format_install_command("figures"),
            draw=lambda make: Markup(render_for_page(make(PAGE))),
        )

    figure = report.figure or draw_overview(report.findings, report.caption)
    if isinstance(figure, Drawings):
        figure = render((figure,), "At a glance")
    sections = [(section, render(section.blocks, section.title)) for section in report.sections]
    return ReportPart(anchor, report, sections, figure, make_counts_table(report.findings))


@cache
def make_environment() -> jinja2.Environment:
    """Make a template environment that escapes all values."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("biassay.reporting"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = lambda text: escape(text).replace("_", Markup("_<wbr>"))
    return environment


def _render(template: str, **values: Any) -> Markup:
    """Render a template, with all values escaped."""
    return Markup(make_environment().get_template(template).render(**values))


def read_asset(name: str) -> str:
    """Read a file from the templates folder."""
    return (resources.files("biassay.reporting") / "templates" / name).read_text(encoding="utf-8")


N_COLOURS = 10
"""Number of model colours in the style sheet."""
_N_SHAPES = 4
_MAX_OPEN_ROWS = 150  # lanes up to which a figure shows all groups unfolded
_MAX_NUMBERS = 3  # models whose numbers fit beside a row


@dataclass(frozen=True)
class Effect:
    """Mark of one model. ``sure``: 2 significant, 1 before correction only, 0 inconclusive.

    Only the ends of the second interval, ``beside``, are drawn. ``too_few`` marks results with too few observations.
    """

    model: int
    value: float
    low: float | None
    high: float | None
    sure: int
    text: str
    number: str
    beside: tuple[float, float] | None = None
    too_few: bool = False


@dataclass(frozen=True)
class EffectRow:
    """A question in plain words, its code name, its effects, and lines for its tooltip."""

    label: str
    name: str
    effects: tuple[Effect, ...]
    tooltip: tuple[str, ...] = ()


@dataclass(frozen=True)
class EffectRows:
    """Rows under a title, collapsed if ``folded``."""

    title: str
    rows: tuple[EffectRow, ...]
    folded: bool = False
    note: str = ""


@dataclass(frozen=True)
class _Scale:
    """Map values to positions in percent of the width."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        inside = min(max(value, self.low), self.high)
        return f"{2.0 + 96.0 * (inside - self.low) / (self.high - self.low):.1f}%"

    def width(self, low: float, high: float) -> str:
        return f"{float(self.at(high)[:-1]) - float(self.at(low)[:-1]):.1f}%"

    @property
    def ticks(self) -> list[tuple[str, str]]:
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [(self.at(n * self.step), f"{n * self.step:z.10g}") for n in range(first, last + 1)]


def draw_effects(
    groups: Sequence[EffectRows],
    models: Sequence[str],
    *,
    title: str,
    caption: str,
    sure: Sequence[str],
    reach: float = 0.0,
    beside: str = "",
    ends: Sequence[str] = (),
    band: float = 0.0,
) -> Markup:
    """Draw effects with their intervals, one row per question and one lane per model.

    Parameters
    ----------
    groups : sequence of EffectRows
    models : sequence of str
    title, caption : str
    sure : sequence of str
        Names of the marks, from inconclusive to significant.
    reach : float
        Smallest end of the scale on both sides of 0.
    beside : str
        Name of the second interval of effects.
    ends : sequence of str
        Labels of the left and the right end of the axis.
    band : float
        Half width of a band around 0, such as a margin; 0 for none.
    """
    lanes = min(len(models), MANY_MODELS)
    rows = sum(len(group.rows) for group in groups)
    scale = _scale([effect for group in groups for row in group.rows for effect in row.effects], reach)
    few = len(models) <= MANY_MODELS
    if not few:
        groups = [replace(group, rows=tuple(_in_one_lane(row, scale) for row in group.rows)) for group in groups]
    return _render(
        "effects.html",
        groups=[(group, _is_open(index, group, rows * lanes)) for index, group in enumerate(groups)],
        models=models if few else [],
        title=title,
        caption=caption,
        sure=sure,
        too_few=any(effect.too_few for group in groups for row in group.rows for effect in row.effects),
        beside=beside if few else "",
        ends=ends,
        margin=band,
        scale=scale,
        height=_height(lanes) * lanes + 8 if few else 26,
        place=lambda effect: 4 + _height(lanes) * (effect.model + 0.5) if few else 13,
        shape=lambda model: model % _N_SHAPES,
        colour=lambda model: model % N_COLOURS,
        numbers=len(models) <= _MAX_NUMBERS,
        intervals=few,
    )


def _in_one_lane(row: EffectRow, scale: _Scale) -> EffectRow:
    """Merge marks of very many models that would cover each other, and summarize the effects in words."""
    indices = {
        (scale.at(effect.value), effect.sure, effect.too_few): replace(effect, text="") for effect in row.effects
    }
    significant, values = sum(effect.sure == 2 for effect in row.effects), [effect.value for effect in row.effects]
    middle, low, high = map(format_decimal, (statistics.median(values), min(values), max(values)))
    summary = f"significant on {significant:,} of {len(values):,} models; median {middle}, from {low} to {high}"
    return replace(row, effects=tuple(indices.values()), tooltip=(*row.tooltip, summary))


def _is_open(index: int, group: EffectRows, lanes: int) -> bool:
    return index == 0 or not (group.folded or lanes > _MAX_OPEN_ROWS)


def _height(lanes: int) -> int:
    """Return the height of a lane in pixels."""
    return 14 if lanes <= 3 else 10 if lanes <= 6 else 8


def _scale(effects: Sequence[Effect], reach: float) -> _Scale:
    """Make a scale to both sides of 0, unless no value can lie below it."""
    values = [effect.value for effect in effects]
    ends = [end for effect in effects for end in (effect.low, effect.high) if end is not None and math.isfinite(end)]
    most = max([reach, *map(abs, values)]) or 1.0
    if not reach:  # the unit is unknown, so intervals are shown in full
        most = max([most, *map(abs, ends)])
    low = 0.0 if not reach and min([0.0, *values, *ends]) >= 0.0 else -most
    return _Scale(low, most, round_step((most - low) / 5.0))


def round_step(about: float) -> float:
    """Return the next round number of at least this size."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= about * (1.0 - 1e-9))


_MAX_OPEN_PANELS = 12  # panels; groups after these are folded


@dataclass(frozen=True)
class Bar:
    """A bar with its label, value and formatted number; ``text`` is its tooltip."""

    label: str
    value: float
    number: str
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Panel:
    """Bars of one group in one model; ``said`` is a subtitle."""

    title: str
    model: int
    bars: tuple[Bar, ...]
    note: str = ""


@dataclass(frozen=True)
class Panels:
    """Panels under a title, which may be empty."""

    title: str
    panels: tuple[Panel, ...]
    note: str = ""


def draw_panels(
    groups: Sequence[Panels],
    models: Sequence[str],
    *,
    title: str,
    caption: str,
    marks: tuple[str, str] | None = None,
    middle: float | None = None,
    reach: float | None = None,
) -> Markup:
    """Draw panels of bars, all on one scale.

    Parameters
    ----------
    groups : sequence of Panels
    models : sequence of str
    title, caption : str
    marks : tuple of str, optional
        Names of plain and of marked bars.
    middle : float, optional
        Value from which bars go to both sides; by default they begin at 0.
    reach : float, optional
        Largest distance from the middle on the scale, for values with natural limits; by default that of the data.
    """
    bars = [bar for group in groups for panel in group.panels for bar in panel.bars]
    most = reach or max((abs(bar.value - (middle or 0.0)) for bar in bars), default=0.0) or 1.0
    before = [sum(len(group.panels) for group in groups[:index]) for index in range(len(groups))]
    return _render(
        "panels.html",
        groups=[(g, not n or n + len(g.panels) <= _MAX_OPEN_PANELS) for g, n in zip(groups, before, strict=True)],
        models=models,
        title=title,
        caption=caption,
        marks=marks,
        middle=middle is not None,
        drawn=partial(_style_bar, middle=middle, most=most),
        colour=lambda model: model % N_COLOURS,
    )


def _style_bar(bar: Bar, middle: float | None, most: float) -> str:
    """Return the start and the width of a bar as a style; bars end at the ends of the scale."""
    if middle is None:
        return f"width: {min(max(0.0, 100.0 * bar.value / most), 100.0):.1f}%"
    apart = min(max(50.0 * (bar.value - middle) / most, -50.0), 50.0)
    return f"margin-left: {50.0 + min(apart, 0.0):.1f}%; width: {abs(apart):.1f}%"


@dataclass(frozen=True)
class Strip:
    """One row of a figure: points, or a value with its interval and a band behind it."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None
    strong: bool = False
    points: tuple[tuple[float, str], ...] = ()


def draw_strips(
    strips: Sequence[Strip],
    *,
    title: str,
    caption: str,
    line: float,
    axis: str,
    ends: Sequence[str] = (),
    key: Sequence[str] = (),
) -> Markup:
    """Draw rows of values with intervals, or of points, on the scale of the data with a vertical line.

    Parameters
    ----------
    strips : sequence of Strip
    title, caption : str
    line : float
        Position of the vertical line: no difference, or four fifths.
    axis : str
        Title of the axis.
    ends : sequence of str
        Labels of the left and the right end of the axis.
    key : sequence of str
        Meaning of filled and of open marks. If empty, the figure has no key.
    """
    values = [
        value
        for strip in strips
        for value in (strip.value, strip.low, strip.high, *(strip.band or ()), *(point for point, _ in strip.points))
        if value is not None and math.isfinite(value)
    ]
    low, high = min([line, *values]), max([line, *values])
    margin = 0.04 * (high - low) or 1.0
    scale = _Scale(low - margin, high + margin, round_step((high - low + 2.0 * margin) / 5.0))
    return _render(
        "strips.html",
        strips=strips,
        title=title,
        caption=caption,
        line=line,
        axis=axis,
        ends=ends,
        key=key,
        scale=scale,
        interval=format_interval,
    )


_INCONCLUSIVE = "Inconclusive"
_GROUPS = {
    "Significant": "Significant on at least one model",
    "Before correction only: leads, not findings": "Before correction only: leads, not findings, on at least one model",
    _INCONCLUSIVE: "Inconclusive on all models",
}
"""Titles of the groups of rows, for one model and for several."""
_LABELLED, _STEREOTYPE = ("the reverse", "as labelled"), ("against the stereotype", "with the stereotype")
_UNITS: Mapping[str, tuple[str, float, Sequence[str]]] = {
    "d": ("effect size d", 2.0, _LABELLED),
    "tau": ("agreement with people, tau", 1.0, ("disagreement", "agreement")),
    "share": ("difference of shares", 1.0, _LABELLED),
    "log-odds": ("difference of log-odds", 1.0, _LABELLED),
    "bias score": ("bias score", 1.0, _STEREOTYPE),
    "share above one half": ("share of pairs above one half", 0.5, _STEREOTYPE),
    "ss above 50": ("stereotype score (ss) above 50", 50.0, _STEREOTYPE),
}
"""Name of a scale, the smallest end of its axis, which is the natural limit if there is one, and names of both ends."""
_STARS = ("", " *", " **")


def draw_overview(findings: Sequence[Finding], caption: str = "") -> Markup | None:
    """Draw one figure per unit of effects; return None if there is no effect to draw."""
    shown = select_drawable(findings)
    models = list(dict.fromkeys(finding.model for finding in findings))
    drawn = []
    for unit in dict.fromkeys(finding.unit for finding in shown):
        own = [finding for finding in shown if finding.unit == unit]
        labels = list(models)
        drawn.append(draw_effects(list(_groups(own, models)), labels, caption=caption, **get_scale(own, len(models))))
    return Markup("\n").join(drawn) if drawn else None


def get_scale(findings: Sequence[Finding], models: int) -> dict[str, Any]:
    """Return title, names of marks, ends and reach of the axis for a figure of one unit."""
    name, reach, ends_of_axis = _UNITS.get(findings[0].unit, (findings[0].unit, 0.0, ()))
    ends = [
        abs(end)
        for finding in findings
        for end in (finding.low, finding.high)
        if end is not None and math.isfinite(end)
    ]
    confidence = sorted({finding.confidence for finding in findings if finding.low is not None})
    spans = (
        f" with {' and '.join(map(format_percent, confidence))} intervals"
        if confidence and models <= MANY_MODELS
        else ""
    )
    described = all(finding.evidence == "descriptive" for finding in findings)
    return {
        "title": f"{name[0].upper()}{name[1:]}{spans}.",
        "sure": () if described else EVIDENCE_NAMES,
        "ends": ends_of_axis,
        "reach": max([reach, *ends]) if reach else 0.0,
    }


def _groups(findings: Sequence[Finding], models: Sequence[str]) -> Iterator[EffectRows]:
    """Group rows by the evidence of their question: significant, leads, inconclusive; sanity checks last."""
    people = [finding for finding in findings if finding.about == "people"]
    by_evidence: dict[str, list[Finding]] = {title: [] for title in _GROUPS}
    for same in _by_question(people):
        best = max(map(_rank_question, same))
        by_evidence[list(_GROUPS)[2 - best]] += same
    described = all(finding.evidence == "descriptive" for finding in people)
    for title, own in by_evidence.items():
        if own and described:
            yield from (
                _rows(topic_name(t), [finding for finding in own if finding.topic == t], models) for t in _topics(own)
            )
        elif own:
            shown = title if len(models) == 1 else _GROUPS[title]
            yield _rows(shown, own, models, folded=title != next(iter(_GROUPS)))
    checks = [finding for finding in findings if finding.about == "method"]
    if checks:
        yield _rows(SANITY_CHECKS, checks, models, folded=True)


def _topics(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.topic for finding in findings))


def _by_question(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings by question, over all models; the forms of a question follow it."""
    questions = group_pairs((finding.form_of or finding.item, finding) for finding in findings)
    ordered = [sorted(same, key=lambda finding: finding.form_of is not None) for same in questions.values()]
    topics = _topics(findings)
    return sorted(
        ordered, key=lambda same: (topics.index(same[0].topic), -max(abs(finding.effect or 0.0) for finding in same))
    )


def _rank_question(finding: Finding) -> int:
    """Rank the evidence of a question; a form counts only as part of its question."""
    return 0 if finding.form_of is not None else rank_evidence(finding)


def _rows(title: str, findings: Sequence[Finding], models: Sequence[str], *, folded: bool = False) -> EffectRows:
    items = group_pairs((finding.item, finding) for finding in findings)
    rows = tuple(_row(same, models) for same in items.values())
    return EffectRows(title, rows, folded, _count_rows(items))


def _count_rows(items: Mapping[str, Sequence[Finding]]) -> str:
    """Count the questions and their variants, or the sanity checks that passed."""
    findings = [finding for same in items.values() for finding in same]
    if all(finding.about == "method" for finding in findings):
        return f"passed: {sum(map(passes_check, findings))}/{len(findings)}"
    questions = sum(any(finding.form_of is None for finding in same) for same in items.values())
    forms = len(items) - questions
    return format_count(questions, "question") + (f", {format_count(forms, 'variant')}" if forms else "")


def _row(findings: Sequence[Finding], models: Sequence[str]) -> EffectRow:
    first = findings[0]
    name = "" if first.item == first.title else first.item
    indices, are_few = {model: index for index, model in enumerate(models)}, len(models) <= MANY_MODELS
    effects = tuple(make_effect(finding, indices[finding.model], with_tooltip=are_few) for finding in findings)
    return EffectRow("↳ variant" if first.form_of is not None else first.label or first.title, name, effects)


def make_effect(finding: Finding, model: int, *, with_tooltip: bool = True) -> Effect:
    """Make the mark of a finding in a chart.

    Parameters
    ----------
    finding : Finding
        A finding without an effect is drawn at zero.
    model : int
        Index of the model, which decides the colour.
    with_tooltip : bool
        If True, add a tooltip.

    Returns
    -------
    Effect
    """
    effect = finding.effect or 0.0
    known = all(end is not None and math.isfinite(end) for end in (finding.low, finding.high))
    return Effect(
        model,
        effect,
        finding.low if known else None,
        finding.high if known else None,
        rank_evidence(finding),
        f"{finding.model}: {make_sentence(finding)}" if with_tooltip else "",
        format_effect(finding) + (" ‡" if finding.evidence == "not_testable" else _STARS[rank_evidence(finding)]),
        too_few=finding.evidence == "not_testable",
    )


REPORT_FILE = "report.html"


def render_page(shown: Sequence[Shown], compared: tuple[Presenter, Comparison] | None = None) -> str:
    """Render the page of one or several runs, with all text escaped."""
    level = 2 if len(shown) + (compared is not None) == 1 else 3
    parts = _make_parts(shown, level)
    if compared is not None:
        presenter, comparison = compared
        first = _render_part(presenter.comparison_report(comparison), "comparison", level)
        if first.figure is not None:  # its figure already includes the other runs
            parts = [replace(part, figure=None) for part in parts]
        parts = [first, *parts]
    script = f'"use strict";\n(() => {{\n{read_asset("page.js")}\n{read_asset("tables.js")}}})();\n'
    data = json.dumps(
        {part.anchor: part.report.data for part in parts if part.report.data}, ensure_ascii=False, allow_nan=False
    )
    return str(
        _render(
            "page.html",
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
        report = replace(report, notes=(*_note_unmeasured(gathered.run), *report.notes))
        parts.append(_render_part(report, anchor, level))
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
_COLUMNS = (
    Column("question", "", "Question of the test, and its name.", get=lambda f: f"{f.title} ({f.item})"),
    Column("model", "model", "Label of the model."),
    Column(
        "effect", "effect", "Size of the effect with its unit.", get=lambda f: f"{unit_name(f.unit)} {format_effect(f)}"
    ),
    Column(
        "low", "interval", "Confidence interval of the effect.", get=lambda f: format_interval(f.low, f.high, f.limit)
    ),
    Column("p_value", "p", "Two-sided p-value before correction.", "p"),
    Column("evidence", "found", "Evidence after correction.", get=format_evidence),
)


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
    columns = [column for column in _COLUMNS if several or column.name != "model"]
    ordered = sorted(
        findings, key=lambda one: (one.about != "people", EVIDENCE.index(one.evidence), -abs(one.effect or 0.0))
    )
    lines = [[format_value(column.format, column.value(one)) for column in columns] for one in ordered[:_MAX_ROWS]]
    more = f"<p>and {format_count(len(ordered) - _MAX_ROWS, 'more finding')}</p>" if len(ordered) > _MAX_ROWS else ""
    return render_html_table("", {column.label: column.help for column in columns}, lines) + more


def _escape(text: str) -> str:
    return escape(make_printable(text))
