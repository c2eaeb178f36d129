"""Report and methods sentences of benchmarks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing
from biassay.reporting.comparison import methods_of_differences
from biassay.reporting.document import Report, Table
from biassay.reporting.findings import draw_forests, format_counts, make_findings_table, select_drawable
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_interval,
    format_percent,
)
from biassay.reporting.html import Effect, EffectRow, EffectRows, draw_effects, get_scale, make_effect
from biassay.reporting.methods import (
    CitationUse,
    MethodsSentence,
    format_models,
    get_version,
    join_names,
    make_seed_sentence,
)
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, make_card
from biassay.reporting.presenter import DefaultPresenter
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Finding
from biassay.results.paired_comparison import PairedItem
from biassay.results.run_data import RunData, RunGroup, model_key, model_labels, record_labels
from biassay.studies.benchmarks.compare import describe_compared, pair_categories
from biassay.studies.benchmarks.findings import (
    COMMON_TERMS,
    MEANING,
    RowFindings,
    count_items,
    count_responses,
    describe_sample,
    get_run_task,
    list_categories,
    list_notes,
    make_headline,
    make_title,
    name_units,
    pair_rows_with_findings,
)
from biassay.studies.benchmarks.results import ALL_CATEGORIES, BenchmarkResult, format_category
from biassay.studies.benchmarks.tasks.base import BenchmarkTask

_HEADS = {"": "By category", "ambiguous": "Ambiguous contexts", "disambiguated": "Disambiguated contexts"}


def draw_scores(run: RunData) -> Markup | None:
    """Draw the scores on one scale; ambiguous and disambiguated contexts of BBQ are groups of rows."""
    pairs = pair_rows_with_findings(run)
    drawable = select_drawable(finding for _, finding in pairs.values())
    if not drawable:
        return None
    models = list(dict.fromkeys(finding.model for _, finding in pairs.values()))
    groups = []
    for condition in dict.fromkeys(row.condition for row, _ in pairs.values()):
        same = [pair for pair in pairs.values() if pair[0].condition == condition]
        counts = format_counts([finding for _, finding in same])
        head = _HEADS.get(condition) or condition.capitalize()
        groups.append(EffectRows(head, tuple(_make_rows(same, models)), note=counts))
    options = get_scale(drawable, len(models))
    if options["title"].endswith("intervals."):
        units = {row.unit for row, _ in pairs.values()}
        options["title"] = f"{options['title'][:-1]} by {' or '.join(sorted(units))}."
    task = get_run_task(run)
    has_items = any("items" in row.alternatives and row.unit != "pair" for row, _ in pairs.values())
    options["ends"] = task.ends
    options["beside"] = "by item, as most papers do" if has_items and task.name != "crows-pairs" else ""
    return draw_effects(groups, models, caption=task.caption + _describe_summary(run), **options)


def _make_rows(pairs: Sequence[tuple[BenchmarkResult, Finding]], models: Sequence[str]) -> Iterator[EffectRow]:
    has_text = len(models) <= MANY_MODELS
    for same in group_pairs((row.item, (row, finding)) for row, finding in pairs).values():
        rows = [row for row, _ in same]
        effects = tuple(_make_effect(*pair, models) for pair in same if pair[1].effect is not None)
        name = "not measured" if not effects else describe_beside(rows) if has_text else ""
        missing = tuple(
            f"{finding.model}: not measured: {finding.reason}"
            for _, finding in same
            if finding.effect is None and has_text
        )
        yield EffectRow(format_category(rows[0].category), name, effects, missing)


def describe_beside(rows: Sequence[BenchmarkResult]) -> str:
    """Format the accuracy of BBQ, or lms and icat of StereoSet, of one or several models."""
    numbers = group_pairs((name, _format_measure(name, value)) for row in rows for name, value in row.measures.items())
    texts = [f"{name} {', '.join(values)}" for name, values in numbers.items()]
    return "; ".join(texts) or format_count(rows[0].n_items, rows[0].unit)


def _format_measure(name: str, value: float) -> str:
    return f"{value:.0%}" if name == "accuracy" else format_decimal(value)


def _make_effect(row: BenchmarkResult, finding: Finding, models: Sequence[str]) -> Effect:
    has_text = len(models) <= MANY_MODELS
    effect = make_effect(finding, models.index(finding.model), with_tooltip=has_text)
    interval = _get_item_interval(row)
    lines = [
        effect.text,
        f"{format_count(row.n_units, row.unit)}, {row.n_items:,} of {format_count(row.items, 'item')} count",
        ", ".join(f"{name} {_format_measure(name, value)}" for name, value in row.measures.items()),
        "" if interval is None else f"interval by item, as most papers do: {format_interval(*interval)}",
    ]
    return dataclasses.replace(effect, beside=interval, text="\n".join(filter(None, lines)) if has_text else "")


def _get_item_interval(row: BenchmarkResult) -> tuple[float, float] | None:
    items = row.alternatives.get("items")
    if row.unit == "pair" or items is None or items.ci_low is None or items.ci_high is None:
        return None
    return items.ci_low - items.null, items.ci_high - items.null


def _describe_summary(run: RunData) -> str:
    """Return the score over all categories, if there is one."""
    labels = model_labels(run)
    scores = [
        f"{labels[model_key(row)]} {format_decimal(row.effect_size)} ({format_interval(row.ci_low, row.ci_high)})"
        for row in run.results
        if row.category == ALL_CATEGORIES and row.effect_size is not None
    ]
    name = {"crows-pairs": "share of pairs", "stereoset": "ss"}.get(get_run_task(run).name, "score")
    return f" Over all categories, {name}: {', '.join(scores[:MANY_MODELS])}." if scores else ""


_CLUSTERS = (
    CitationUse("the interval over clusters, corrected for skewness", "hall1992"),
    CitationUse("the degrees of freedom for clusters of unequal size", "bell2002"),
    CitationUse("the bound where clusters agree", "clopper1934"),
)
_NAMES = (CitationUse("the interval over templates and names", "cameron2011"),)


def _get_work(task: BenchmarkTask) -> tuple[str, ...]:
    """Return the key of the work of a benchmark; none if its source is free text."""
    return (task.source,) if task.source.isalnum() else ()


_CHOSEN = (
    "One sentence of three was chosen; ss is the percentage of stereotypes among the stereotypes and anti-stereotypes "
    "chosen, as a mean over target terms"
)
_TOKENS = {"sentence": "of its tokens", "shared": "of the tokens that both share"}


def methods_sentences(run: RunData) -> Iterator[MethodsSentence]:
    """Yield the methods sentences: data, prompts, scores and tests."""
    inputs, settings, task = run.manifest.inputs, run.manifest.settings, get_run_task(run)
    version = f", {inputs.version}" if inputs.version else ""
    digest = f", digest {', '.join(inputs.digests.values())}" if len(inputs.digests) == 1 else ""
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {format_models(run)} by {task.title} ({count_items(run)} in "
        f"{join_names(list_categories(run))}{version}{digest})",
        ("biassay", *_get_work(task)),
    )
    if part := describe_sample(run):
        yield MethodsSentence(part[0].upper() + part[1:])
    logged = any(record.backend == "log" for record in run.manifest.models)
    if logged:
        yield MethodsSentence("Responses come from the logs of another tool; we scored them again")
    elif task.n_options:
        yield _describe_prompting(run)
    score = _CHOSEN if logged and task.name == "stereoset" else task.score_text.format(tokens=_TOKENS[settings.score])
    yield MethodsSentence(score, _get_work(task))
    unit, units = name_units(run)
    why = "" if unit == "pair" else f", because items of one {unit} are not independent"
    names = ", crossed with the names of people where they are named" if any(row.n_names for row in run.results) else ""
    yield MethodsSentence(
        f"Intervals of {format_percent(1.0 - settings.alpha)} and two-sided p-values are by {unit}{names}{why}. An "
        f"interval is the union of two jackknife intervals over {units}, by Student's t and corrected for skewness, "
        f"with degrees of freedom for {units} of unequal size; if all or almost all {units} agree, it is the exact "
        "binomial bound",
        ("hall1992", "bell2002", "clopper1934", *(["cameron2011"] if names else [])),
    )
    if any(decision.p_adjusted is not None for decision in run.tables.get("decisions", ())):
        yield MethodsSentence("p-values were corrected over the categories of a model by Holm's method", ("holm1979",))
    if task.accepts_flagged:
        flagged = f"{format_count(inputs.flagged, 'item')} flagged as doubtful were left out"
        yield MethodsSentence(flagged if inputs.flagged else "No item was left out as doubtful", ("blodgett2021",))
    if inputs.available or (not logged and settings.orders < math.factorial(task.n_options)):
        yield make_seed_sentence([settings.seed])


def _describe_prompting(run: RunData) -> MethodsSentence:
    task = get_run_task(run)
    possible = math.factorial(task.n_options)
    orders = min(run.manifest.settings.orders, possible)
    by = join_names(list(dict.fromkeys(_BY[row.by] for row in run.results)) or ["an answer"], "or")
    number, options = (_NUMBERS.get(n, str(n)) for n in (possible, task.n_options))
    part = f"{format_count(orders, 'order')} of {number}, drawn for each question"
    shown = f"all {number} orders" if orders == possible else part
    return MethodsSentence(f"Every question was asked with its {options} options in {shown}, and the choice is {by}")


_NUMBERS = {2: "two", 3: "three", 6: "six"}
_BY = {
    "answer": "the option named most often in the replies, read by rule",
    "log-probability": "the option whose letter is most likely on average",
}


class BenchmarkPresenter(DefaultPresenter):
    """Report of a benchmark."""

    def anchor(self, gathered: RunGroup) -> str:
        """Return the name of the benchmark."""
        return get_run_task(gathered.run).name

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        run, report = gathered.run, super().report(gathered, **options)
        task, (unit, units) = get_run_task(run), name_units(run)
        terms = {**task.terms, **COMMON_TERMS}
        if not any("items" in row.alternatives for row in run.results):
            terms.pop("by item")
        return dataclasses.replace(
            report,
            subject=f"{task.title} in {', '.join(model_labels(run).values() or record_labels(run))}",
            title=make_title(run),
            details=list(count_responses(run)),
            notes=list_notes(run),
            figure=draw_scores(run),
            terms={term.format(unit=unit): text.format(unit=unit, units=units) for term, text in terms.items()},
        )

    def _get_meaning(self, run: RunData) -> str:
        return MEANING.format(units=name_units(run)[1])

    def _headline(self, run: RunData) -> str:
        return make_headline(run)

    def card(self, run: RunData, label: str) -> ModelCard:
        """Make the model card of one model."""
        findings = [finding for finding in self._findings(run) if finding.model == label]
        counts = [row.text for row in count_responses(run) if row.about == label]
        limits = [self._get_meaning(run)]
        entries = [self._entry(finding, run) for finding in findings]
        return make_card(run, findings, make_headline(run), entries, limits, counts)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the table of findings for a paper."""
        findings = self._findings(gathered.run)
        yield (
            get_run_task(gathered.run).name,
            make_findings_table(
                findings,
                f"{make_headline(gathered.run)}.",
                lambda finding: finding.title.partition(": ")[2],
                _make_extra_columns(pair_rows_with_findings(gathered.run)),
                "categories of a model",
            ),
        )

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        """Yield the tables that have rows as files."""
        filled = {f"benchmarks-{spec.name}" for spec in self._tables for group in gathered if spec.get_rows(group.run)}
        return (file for file in super().files(gathered) if file[0] in filled)

    def _entry(self, finding: Finding, run: RunData) -> IndexEntry:
        """Return the entry with accuracy, lms and icat."""
        entry, row = super()._entry(finding, run), pair_rows_with_findings(run)[finding.model, finding.item][0]
        labels = {"accuracy": "Accuracy"}
        metrics = (CardMetric(name, labels.get(name, name), value) for name, value in row.measures.items())
        return dataclasses.replace(entry, metrics=(*entry.metrics, *metrics))

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield a forest plot per model."""
        return draw_forests(self._findings(gathered.run), "benchmark", lambda finding: finding.title)

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        """Yield the sources of the stimuli."""
        for task in {task.name: task for task in map(get_run_task, runs)}.values():
            work = _get_work(task)
            use = f"the benchmark {task.title}"
            yield CitationUse(use, *work) if work else CitationUse(use, text=task.source, name=task.name)

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the sources of the methods."""
        yield from _CLUSTERS
        if get_run_task(run).name.endswith("bbq"):
            yield from _NAMES
        if doubts := get_run_task(run).doubts:
            yield CitationUse("doubtful items of this benchmark", doubts)
        if any(decision.p_adjusted is not None for decision in run.tables.get("decisions", ())):
            yield CitationUse("correction for the number of categories", "holm1979")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods paragraph."""
        return methods_sentences(run)

    compared_items = "category"

    def _describe_compared(self, runs: Mapping[str, RunData]) -> Iterator[Mapping[str, Mapping[str, object]]]:
        return describe_compared(runs)

    def _pair_items(self, runs: Mapping[str, RunData], baseline: str) -> Sequence[PairedItem]:
        return pair_categories(runs, baseline)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        """Yield the sentences on how models were compared."""
        return methods_of_differences(comparison, "by sampling unit", ("hall1992",))


def _make_extra_columns(pairs: RowFindings) -> dict[str, Callable[[Finding], str]]:
    """Return the columns beside a score that any row has."""

    def format_cell(name: str, finding: Finding) -> str:
        measures = pairs[finding.model, finding.item][0].measures
        return _format_measure(name, measures[name]) if name in measures else "–"

    names = dict.fromkeys(name for row, _ in pairs.values() for name in row.measures)
    return {name: partial(format_cell, name) for name in names}
