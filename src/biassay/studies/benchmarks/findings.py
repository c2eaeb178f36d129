"""Findings of benchmarks, with category names and response counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biassay.grouping import group_pairs
from biassay.reporting.document import Statement
from biassay.reporting.findings import format_title
from biassay.reporting.formats import format_count, format_decimal, format_interval, unit_name
from biassay.results.outcomes import Finding, Result, make_outcome_finding
from biassay.results.run_data import RunData, model_key, model_labels
from biassay.studies.benchmarks.results import (
    ALL_CATEGORIES,
    BenchmarkResult,
    describe_lost,
    format_category,
    pluralize,
)
from biassay.studies.benchmarks.tasks import get_task
from biassay.studies.benchmarks.tasks.base import BenchmarkTask, describe_balance

MEANING = (
    "A score describes the responses to these questions, or the likelihoods of these sentences, and nothing else. "
    "Intervals and p-values generalize to other {units} of the same kind."
)
COMMON_TERMS = {
    "by {unit}": "95% interval that treats {units} as independent. It decides what is significant.",
    "by item": "95% interval that treats items as independent, as most papers do.",
    "p": "Two-sided p-value for other {units}; ** significant after Holm's correction over the categories of a model.",
}


RowFindings = Mapping[tuple[str, str], tuple[BenchmarkResult, Finding]]
"""Rows and findings by model and item."""


def get_run_task(run: RunData) -> BenchmarkTask:
    """Return the benchmark of a run."""
    return get_task(run.manifest.settings.benchmark)


def pair_rows_with_findings(run: RunData) -> RowFindings:
    """Return every finding with the row it is made from, by model and item."""
    rows = [row for row in run.tables.get("results", ()) if row.category != ALL_CATEGORIES]
    return {
        (finding.model, finding.item): (row, finding) for row, finding in zip(rows, make_findings(run), strict=True)
    }


def make_headline(run: RunData) -> str:
    """Return the benchmark, the number of models and the part of the data that was used."""
    inputs, n_categories = run.manifest.inputs, len(list_categories(run))
    models = format_count(len(run.manifest.models), "model")
    categories = f"{n_categories} categor{'y' if n_categories == 1 else 'ies'}"
    flagged = f"; {inputs.flagged:,} flagged left out" if inputs.flagged else ""
    flagged += f"; {describe_sample(run)}" if inputs.available else ""
    version = f" {inputs.version}" if inputs.version else ""
    return f"{get_run_task(run).title}{version}: {models}, {count_items(run)} in {categories}{flagged}"


def make_title(run: RunData) -> str:
    """Return the finding in one sentence per model, also if all scores are descriptive."""
    pairs = [pair for pair in pair_rows_with_findings(run).values() if pair[1].evidence != "skipped"]
    if not pairs or any(finding.evidence != "descriptive" for _, finding in pairs):
        return format_title(make_findings(run))
    by_model = group_pairs((finding.model, (row, finding)) for row, finding in pairs)
    return ". ".join(_describe_untested(label, same) for label, same in by_model.items())


def _describe_untested(label: str, pairs: Sequence[tuple[BenchmarkResult, Finding]]) -> str:
    if all(row.follows_position for row, _ in pairs):
        return f"{label} chooses options by their position, so its scores are not tested"
    largest = max((finding for _, finding in pairs), key=lambda finding: abs(finding.effect or 0.0))
    return f"{label}: largest {unit_name(largest.unit)} {format_decimal(largest.effect)} ({largest.claim}), not tested"


def describe_sample(run: RunData) -> str:
    """Describe the sample of the data; empty if all of it was used."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    if not inputs.available:
        return ""
    drawn, available = sum(inputs.items[name] for name in inputs.available), sum(inputs.available.values())
    return (
        f"a sample of {drawn:,} of {available:,}, at most {settings.limit:,} per category, drawn with seed "
        f"{settings.seed}{describe_balance(get_run_task(run))}"
    )


def count_items(run: RunData) -> str:
    """Count the questions, pairs or items of the data; of several logs, those of the longest."""
    task, inputs = get_run_task(run), run.manifest.inputs
    rows = [row for row in run.results if row.category != ALL_CATEGORIES]
    counts = [sum(items) for items in group_pairs((model_key(row), row.items) for row in rows).values()]
    shared = bool(run.tables.get("units"))  # rows may share items
    return format_count(sum(inputs.items.values()) if shared else max(counts, default=0), task.item_name)


def list_categories(run: RunData) -> list[str]:
    """Return the formatted categories of a run."""
    return list(dict.fromkeys(format_category(row.category) for row in run.results if row.category != ALL_CATEGORIES))


def list_notes(run: RunData) -> list[str]:
    """Return notes on unused data and on how the score is defined."""
    inputs = run.manifest.inputs
    counts = {
        get_run_task(run).unusable: inputs.without_target,
        "samples of the logs cannot be used": inputs.unmapped,
    }
    notes = [f"{count:,} {text}." for text, count in counts.items() if count]
    notes += get_run_task(run).notes
    if get_run_task(run).name == "crows-pairs":
        notes.append(_pairs_note(run))
    if any(row.unrelated is not None for row in run.results):
        notes.append(
            "Logs have no lms and no icat. They record a choice of one sentence out of three, of which two are "
            "meaningful, whereas lms compares two sentences."
        )
    return notes


def _pairs_note(run: RunData) -> str:
    """Define the score of CrowS-Pairs."""
    what = "all tokens" if run.manifest.settings.score == "sentence" else "the tokens that both sentences share"
    by = "writer" if any(row.unit == "writer" for row in run.results) else "pair (the data names no writers)"
    ties = sum(row.undecided for row in run.results if row.category != ALL_CATEGORIES)
    return (
        f"Score: share of all pairs in which the more stereotyping sentence has the higher log-likelihood of {what}, "
        f"rounded to three decimals. Ties ({ties:,}) count among all pairs and never as stereotyping, as in the "
        f"authors' code; without bias the score is half of the other pairs. Intervals are by {by}."
    )


def name_units(run: RunData) -> tuple[str, str]:
    """Return the name of the sampling unit, singular and plural."""
    if get_run_task(run).name == "crows-pairs":
        return ("writer", "writers") if any(row.unit == "writer" for row in run.results) else ("pair", "pairs")
    unit = get_run_task(run).unit
    return pluralize(unit).removesuffix("s"), pluralize(unit)


def count_responses(run: RunData) -> Iterator[Statement]:
    """Yield one statement per model that counts its responses by kind, and one on scores that refusals put in doubt."""
    is_logged = any(record.backend == "log" for record in run.manifest.models)
    for key, label in model_labels(run).items():
        rows = [row for row in run.results if model_key(row) == key and row.category != ALL_CATEGORIES]
        rows = [row for row in run.tables.get("replies", ()) if model_key(row) == key] or rows
        yield Statement(f"{label}: {_count_kinds(rows, 'a response' if is_logged else 'a likelihood')}", (), label)
        doubtful = [
            f"{row.item} ({format_interval(row.bound_low, row.bound_high)})"
            for row in run.results
            if model_key(row) == key and row.claim == "inconclusive" and row.doubt in row.warnings
        ]
        if doubtful:
            counted = "these scores may not be significant, depending on how questions without a choice are counted"
            yield Statement(f"{label}: {counted}: {', '.join(doubtful)}.", (), label)


def _count_kinds(rows: Sequence[Any], what: str) -> str:
    items, undecided = sum(row.items for row in rows), sum(row.undecided for row in rows)
    unrelated = sum(getattr(row, "unrelated", None) or 0 for row in rows)
    if rows and rows[0].replies is not None:
        replies = sum(row.replies or 0 for row in rows)
        counts = f"{format_count(replies, 'response')}: {describe_lost(rows) or 'all choose an option'}"
        other = f", {unrelated:,} with the unrelated sentence" if unrelated else ""
        return f"{counts}; {undecided:,} of {format_count(items, 'question')} undecided{other}."
    left_out = sum(row.left_out for row in rows)
    kinds = [f"{left_out:,} without {what} do not count"] if left_out else []
    kinds += [f"{undecided:,} are ties"] if undecided else []
    return f"{format_count(items, 'item')}: {' and '.join(kinds) or 'all count'}."


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and category, for BBQ in each kind of context; none over all categories."""
    labels = model_labels(run)
    results = [result for result in run.results if result.category != ALL_CATEGORIES]
    return [_make_finding(result, labels[model_key(result.record)]) for result in results]


def _make_finding(result: Result, label: str) -> Finding:
    row: BenchmarkResult = result.record  # type: ignore[assignment]
    outcome, decision = row.outcome, result.decision
    statistic = get_task(row.benchmark).get_statistic(row.condition)
    is_below, category = (row.distance or 0.0) < 0.0, format_category(row.category)
    about = ", ".join(filter(None, (category, row.condition)))
    direction = statistic.sentences[is_below].format(category=category, condition=row.condition)
    return make_outcome_finding(
        result,
        label,
        direction="" if outcome.effect_size is None else direction,
        claim=": ".join(filter(None, (about, statistic.claims[is_below]))),
        unit=get_scale_name(row),
        p_values={}
        if decision.evidence == "descriptive"
        else {f"by {row.unit}": outcome.p_value, f"by {row.unit}, corrected": decision.p_adjusted},
        notes=row.warnings,
        too_few_of=pluralize(row.unit),
    )


def get_scale_name(row: BenchmarkResult) -> str:
    """Return the name of the scale on which a score without bias is 0."""
    statistic = get_task(row.benchmark).get_statistic(row.condition)
    return statistic.distance or statistic.scale
