"""Report and methods sentences of benchmarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from rich.console import Console, Group

from biassay.reporting.charts.base import Drawing
from biassay.reporting.citations import CitationUse
from biassay.reporting.comparison import differences_part, methods_of_differences, paper_differences, print_paired
from biassay.reporting.default_report import DefaultPresenter
from biassay.reporting.document import PaperTable, Renderer, ReportPart, Statement
from biassay.reporting.findings import (
    draw_forests,
    format_counts,
    get_scale,
    make_effect,
    make_findings_table,
    select_drawable,
)
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_percent,
)
from biassay.reporting.html_figures import Effect, EffectRow, EffectRows, draw_effects
from biassay.reporting.methods import MethodsSentence, format_models, join_names, make_seed_sentence
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, get_version, make_card
from biassay.reporting.sentences import make_statements
from biassay.reporting.terminal import WIDTH, FindingLines, make_legend, print_run, printed, used
from biassay.results.comparison import Comparison
from biassay.results.differences import Verdict
from biassay.results.findings import Finding
from biassay.results.run_data import RunData
from biassay.results.views import RunGroup, model_labels, record_labels
from biassay.studies.benchmarks.compare import compare_benchmarks, pair_categories
from biassay.studies.benchmarks.findings import (
    CAPTIONS,
    MEANING,
    TERMS,
    answered,
    get_benchmark,
    headline,
    index_rows,
    items_text,
    list_categories,
    list_notes,
    make_findings,
    name_units,
    part_text,
)
from biassay.studies.benchmarks.results import ALL_CATEGORIES, NAMES, BenchmarkResult, format_category, subtract_null
from biassay.studies.benchmarks.settings import ORDERS
from biassay.studies.paired_comparison import judge_pairs

__all__ = [
    "METHODS",
    "SOURCES",
    "BenchmarkPresenter",
    "Placed",
    "conditions",
    "describe_beside",
    "draw_scores",
    "methods_sentences",
    "placed",
]


Placed = Mapping[tuple[str, str], tuple[BenchmarkResult, Finding]]
"""Rows and findings by model and item."""
_HEADS = {"": "By category", "ambiguous": "Ambiguous contexts", "disambiguated": "Disambiguated contexts"}


def placed(run: RunData) -> Placed:
    """Every finding with the row it is made from."""
    rows = [row for row in run.tables.get("results", ()) if row.category != ALL_CATEGORIES]
    return {(one.model, one.item): (row, one) for row, one in zip(rows, make_findings(run), strict=True)}


def conditions(found: Placed) -> Iterator[tuple[str, list[Finding]]]:
    """Findings under headings: contexts of BBQ apart."""
    for condition in dict.fromkeys(row.condition for row, _ in found.values()):
        yield _HEADS[condition], [one for row, one in found.values() if row.condition == condition]


def draw_scores(run: RunData) -> Markup | None:
    """Ambiguous and disambiguated contexts below each other, on one scale."""
    found = placed(run)
    shown = select_drawable(one for _, one in found.values())
    if not shown:
        return None
    models = list(dict.fromkeys(one.model for _, one in found.values()))
    groups = [EffectRows(head, tuple(_rows(own, found, models)), said=_said(own)) for head, own in conditions(found)]
    given = get_scale(shown, len(models))
    beside = "by item, as usually printed" if get_benchmark(run) != "crows-pairs" else ""
    if given["title"].endswith("intervals."):
        units = {row.unit for row, _ in found.values()}
        given["title"] = f"{given['title'][:-1]} by {' or '.join(sorted(units))}."
    given["reach"] = max([given["reach"], *(abs(end) for row, _ in found.values() for end in _by_item(row) or ())])
    return draw_effects(groups, models, caption=CAPTIONS[get_benchmark(run)] + _over_all(run), beside=beside, **given)


def _rows(findings: Sequence[Finding], found: Placed, models: Sequence[str]) -> Iterator[EffectRow]:
    items: dict[str, list[Finding]] = {}
    for one in findings:
        items.setdefault(one.item, []).append(one)
    told = len(models) <= MANY_MODELS
    for item, same in items.items():
        rows = [found[one.model, item][0] for one in same]
        effects = [
            _effect(one, row, models, told=told)
            for one, row in zip(same, rows, strict=True)
            if row.outcome.effect_size is not None
        ]
        name = describe_beside(rows) if told else ""
        lost = [f"{one.model}: not measured: {one.reason}" for one in same if one.effect is None]
        said = tuple(lost) if told else ()
        yield EffectRow(
            format_category(rows[0].category), name or ("not measured" if not effects else ""), tuple(effects), said
        )


def describe_beside(rows: Sequence[BenchmarkResult]) -> str:
    """What is read beside a score: the accuracy of BBQ, lms and icat of StereoSet; of several models one after the
    other."""
    numbers = {
        "accuracy": [f"{row.accuracy:.0%}" for row in rows if row.accuracy is not None],
        "lms": [f"{row.lms:.0f}" for row in rows if row.lms is not None],
        "icat": [f"{row.icat:.0f}" for row in rows if row.icat is not None],
    }
    told = [f"{name} {', '.join(own)}" for name, own in numbers.items() if own]
    return "; ".join(told) or format_count(rows[0].n_items, rows[0].unit)


def _effect(finding: Finding, row: BenchmarkResult, models: Sequence[str], *, told: bool) -> Effect:
    drawn = make_effect(finding, models.index(finding.model), told=told)
    beside = _by_item(row)
    return dataclasses.replace(drawn, beside=beside, text=_text(drawn.text, row, beside) if told else "")


def _by_item(row: BenchmarkResult) -> tuple[float, float] | None:
    items = row.alternatives.get("items")
    if row.unit == "pair" or items is None:
        return None
    low, high = subtract_null(items, items.ci_low), subtract_null(items, items.ci_high)
    return None if low is None or high is None else (low, high)


def _text(sentence: str, row: BenchmarkResult, beside: tuple[float, float] | None) -> str:
    known = [
        sentence,
        f"{format_count(row.n_units, row.unit)}, {row.n_items:,} of {format_count(row.items, 'item')} count",
    ]
    if row.accuracy is not None:
        known.append(f"accuracy {row.accuracy:.1%}")
    if row.lms is not None:
        known.append(f"lms {format_decimal(row.lms)}, icat {format_decimal(row.icat)}")
    if beside is not None:
        p_value = format_p(row.alternatives["items"].p_value)
        known.append(f"by item, as usually printed: {format_interval(*beside)}, p = {p_value}")
    return "\n".join(known)


def _said(findings: Sequence[Finding]) -> str:
    return format_counts(findings)


def _over_all(run: RunData) -> str:
    """The score over all categories, where there is one."""
    found = [
        (label, row.outcome) for (label, category, _), row in index_rows(run).items() if category == ALL_CATEGORIES
    ]
    told = [
        f"{label} {format_decimal(outcome.effect_size)} ({format_interval(outcome.ci_low, outcome.ci_high)})"
        for label, outcome in found[:MANY_MODELS]
        if outcome.effect_size is not None
    ]
    name = {"crows-pairs": "share of pairs", "stereoset": "ss"}.get(get_benchmark(run), "score")
    return f" Over all categories, {name}: {', '.join(told)}." if told else ""


SOURCES: Mapping[str, str] = {"bbq": "parrish2022", "crows-pairs": "nangia2020", "stereoset": "nadeem2021"}
_CLUSTERS = (
    CitationUse("the interval over clusters, corrected for skewness", "hall1992"),
    CitationUse("the degrees of freedom for clusters of unequal size", "bell2002"),
    CitationUse("the bound where clusters agree", "clopper1934"),
)
_NAMES = (CitationUse("the interval over templates and names", "cameron2011"),)
_DOUBTS = (CitationUse("what is doubtful in items of this benchmark", "blodgett2021"),)
METHODS: Mapping[str, tuple[CitationUse, ...]] = {
    "bbq": (*_CLUSTERS, *_NAMES),
    "crows-pairs": (*_CLUSTERS, *_DOUBTS),
    "stereoset": (*_CLUSTERS, *_DOUBTS),
}
_SCORES: Mapping[str, str] = {
    "bbq": "The bias score is 2 target / known - 1 over answers other than 'unknown', in ambiguous contexts times one "
    "minus the accuracy",
    "crows-pairs": "The score is the share of pairs in which the more stereotyping sentence has the higher "
    "(pseudo-)log-likelihood {tokens}, rounded to three decimals; ties count among all pairs",
    "stereoset": "ss is the percentage of items in which the stereotype is preferred to the anti-stereotype, lms that "
    "of meaningful sentences preferred to the meaningless one, both as means over target terms, and "
    "icat = lms min(ss, 100 - ss) / 50",
}
_CHOSEN = (
    "One sentence of three was chosen; ss is the percentage of stereotypes among the stereotypes and anti-stereotypes "
    "chosen, as a mean over target terms"
)
_TOKENS = {"sentence": "of its tokens", "shared": "of the tokens that both share"}


def methods_sentences(run: RunData) -> Iterator[MethodsSentence]:
    """Which data, how it was asked, scored and tested."""
    inputs, settings, name = run.manifest.inputs, run.manifest.settings, get_benchmark(run)
    version = f", {inputs.version}" if inputs.version else ""
    digests = join_names(sorted(set(inputs.digests.values()))) if len(inputs.digests) == 1 else ""
    digest = f", digest {digests}" if digests else ""
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {format_models(run)} by {NAMES[name]} ({items_text(run)} in "
        f"{join_names(list_categories(run))}{version}{digest})",
        ("biassay", SOURCES[name]),
    )
    if part := part_text(run):
        yield MethodsSentence(part[0].upper() + part[1:])
    logged = any(record.family == "log" for record in run.manifest.models)
    if logged:
        yield MethodsSentence("Answers are those that another tool logged; they were scored again")
    elif name == "bbq":
        yield _describe_prompting(run)
    score = _CHOSEN if logged and name == "stereoset" else _SCORES[name].format(tokens=_TOKENS[settings.score])
    yield MethodsSentence(score, (SOURCES[name],))
    unit, units = name_units(run)
    why = "" if unit == "pair" else f", since items of one {unit} are not independent"
    names = ", crossed with the names of people where they are named" if any(row.n_names for row in run.results) else ""
    yield MethodsSentence(
        f"Intervals of {format_percent(1.0 - settings.alpha)} and two-sided p-values are by "
        f"{unit}{names}{why}: the union of "
        f"the jackknife over {units} with Student's t and of the same corrected for skewness, with degrees of freedom "
        f"for {units} of unequal size; where all or almost all {units} agree, the exact binomial bound",
        ("hall1992", "bell2002", "clopper1934", *(["cameron2011"] if names else [])),
    )
    if any(one.p_adjusted is not None for one in run.tables.get("decisions", ())):
        yield MethodsSentence("p-values were corrected over the categories of a model by Holm's method", ("holm1979",))
    if name != "bbq":
        flagged = f"{format_count(inputs.flagged, 'item')} flagged as doubtful were left out"
        yield MethodsSentence(flagged if inputs.flagged else "No item was left out as doubtful", ("blodgett2021",))
    if inputs.available or (name == "bbq" and not logged and settings.orders < ORDERS):
        yield make_seed_sentence([settings.seed])


def _describe_prompting(run: RunData) -> MethodsSentence:
    orders = run.manifest.settings.orders
    by = join_names(list(dict.fromkeys(_BY[row.by] for row in run.results)) or ["an answer"], "or")
    shown = "all six orders" if orders == ORDERS else format_count(orders, "order") + " of six, drawn for each question"
    return MethodsSentence(f"Every question was asked with its three options in {shown}, and the choice is {by}")


_BY = {
    "answer": "the option named most often in the replies, read by rule",
    "log-probability": "the option whose letter is most likely on average",
}


class BenchmarkPresenter(DefaultPresenter):
    def anchor(self, gathered: RunGroup) -> str:
        return get_benchmark(gathered.run)

    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        run = gathered.run
        name, part = get_benchmark(run), super().part(gathered, renderer)
        unit, units = name_units(run)
        return dataclasses.replace(
            part,
            title=f"{NAMES[name]} in {', '.join(model_labels(run).values() or record_labels(run))}",
            summary=[*part.summary, *answered(run), *map(Statement, list_notes(run))],
            meaning=MEANING.format(units=units),
            figure=draw_scores(run),
            terms={term: text.format(unit=unit, units=units) for term, text in TERMS[name].items()},
        )

    def _headline(self, run: RunData) -> str:
        return headline(run)

    def print(self, gathered: RunGroup, console: Console, *, everything: bool = False, **_: Any) -> None:
        run, found = gathered.run, placed(gathered.run)
        findings = [one for _, one in found.values()]
        width = min(WIDTH, console.width)
        lines = FindingLines(
            list(conditions(found)),
            list(dict.fromkeys(one.model for one in findings)),
            lambda one: format_category(found[one.model, one.item][0].category),
            more=_more(found),
        )
        shown = [Group(*lines.block(width, plain=console.options.ascii_only).render(width))]
        told = [spec for spec in self._tables if everything and spec.name != "decisions" and spec.rows_of(run)]
        tables = [*shown, *(printed(spec.title, *used(spec, run), None) for spec in told)]
        means = [make_legend(findings, "the categories of a model"), MEANING.format(units=name_units(run)[1])]
        said = [*make_statements(findings), *answered(run)]
        notes = [*list_notes(run), *_unmeasured(findings)]
        print_run(console, headline(run), tables, said, notes, means)

    def card(self, run: RunData, label: str) -> ModelCard:
        own = [one for one in self._findings(run) if one.model == label]
        told = [one.text for one in answered(run) if one.about == label]
        limits = [MEANING.format(units=name_units(run)[1])]
        return make_card(run, own, headline(run), [self._entry(one, run) for one in own], limits, told)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, PaperTable]]:
        findings = self._findings(gathered.run)
        yield (
            get_benchmark(gathered.run),
            make_findings_table(
                findings,
                f"{headline(gathered.run)}.",
                lambda one: one.title.partition(": ")[2],
                _more(placed(gathered.run)),
                "categories of a model",
            ),
        )

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        filled = {f"benchmarks-{spec.name}" for spec in self._tables for one in gathered if spec.rows_of(one.run)}
        return (file for file in super().files(gathered) if file[0] in filled)

    def _entry(self, finding: Finding, run: RunData) -> IndexEntry:
        """With what is read beside a score."""
        entry, row = super()._entry(finding, run), placed(run)[finding.model, finding.item][0]
        beside = {"accuracy": ("Accuracy", row.accuracy), "lms": ("lms", row.lms), "icat": ("icat", row.icat)}
        metrics = tuple(CardMetric(code, name, value) for code, (name, value) in beside.items() if value is not None)
        return dataclasses.replace(entry, metrics=(*entry.metrics, *metrics))

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        return draw_forests(self._findings(gathered.run), "benchmark", lambda one: one.title)

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        for name in dict.fromkeys(get_benchmark(run) for run in runs):
            yield CitationUse(f"the benchmark {NAMES[name]}", SOURCES[name])

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        yield from METHODS[get_benchmark(run)]
        if any(one.p_adjusted is not None for one in run.tables.get("decisions", ())):
            yield CitationUse("correction for the number of categories", "holm1979")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        return methods_sentences(run)

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_benchmarks(runs, baseline=baseline, mixed=mixed)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        runs = {next(iter(one.parts)): one.run for one in comparison.gathered}
        return judge_pairs(pair_categories(runs, comparison.baseline), margin=margin, alpha=alpha)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        return differences_part(comparison, renderer)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        print_paired(comparison, console)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        how = "by template, pair or target term, which both were asked"
        return methods_of_differences(comparison, how, ("hall1992",))

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, PaperTable]]:
        yield f"{comparison.study}-differences", paper_differences(comparison)


def _more(found: Placed) -> dict[str, Callable[[Finding], str]]:
    """Columns beside a score that any row has."""

    def of(get: Callable[[BenchmarkResult], str]) -> Callable[[Finding], str]:
        return lambda one: get(found[one.model, one.item][0])

    rows = [row for row, _ in found.values()]
    columns: dict[str, Callable[[Finding], str]] = {}
    if any(row.accuracy is not None for row in rows):
        columns["accuracy"] = of(lambda row: "–" if row.accuracy is None else f"{row.accuracy:.0%}")
    if any(row.lms is not None for row in rows):
        columns["lms"] = of(lambda row: format_decimal(row.lms))
        columns["icat"] = of(lambda row: format_decimal(row.icat))
    return columns


def _unmeasured(findings: Sequence[Finding]) -> list[str]:
    """Why something was not measured, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        if one.reason:
            reasons.setdefault((one.model, one.reason), []).append(one.item)
    return [f"{model}, {', '.join(items)}: {reason}" for (model, reason), items in reasons.items()]
