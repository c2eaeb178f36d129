"""Compare benchmark scores of models by template, pair or target term."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from biassay.reporting.formats import format_count
from biassay.results.comparison import EffectDifference
from biassay.results.paired_comparison import (
    MAX_REFUSAL_SHARE,
    CombinedEffect,
    PairedItem,
    measure_slack,
    models_by_label,
    pair_records,
)
from biassay.results.run_data import RunData, RunSlice, label_models, none_if_nan, split_by_model
from biassay.stats.clusters import Floats, cluster_estimate, crossed_cluster_estimate
from biassay.studies.benchmarks.findings import get_run_task, get_scale_name
from biassay.studies.benchmarks.results import (
    ALL_CATEGORIES,
    BenchmarkResult,
    NamedRow,
    explain_no_interval,
    format_category,
    subtract_null,
)
from biassay.studies.benchmarks.tasks import get_task
from biassay.studies.benchmarks.tasks.base import Totals


def describe_compared(runs: Mapping[str, RunData]) -> Iterator[dict[str, dict[str, object]]]:
    """Yield the data and settings that compared runs must share, and how their models must be prompted."""
    shared = set[str].intersection(*(set(run.manifest.inputs.digests) for run in runs.values()))
    yield {name: _describe_data(run, shared) for name, run in runs.items()}
    yield label_models(
        {
            name: {model.label: _describe_prompting(run, model) for model in split_by_model(run)}
            for name, run in runs.items()
        }
    )


def _describe_data(run: RunData, shared: set[str]) -> dict[str, object]:
    """Describe the data of the categories that all runs measured. Logs do not state the version of their data."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    digests = {name: digest for name, digest in sorted(inputs.digests.items()) if name in shared} or inputs.digests
    logged = all(record.backend == "log" for record in run.manifest.models)
    return {
        "benchmark": get_run_task(run).name,
        "data": "logs" if logged else ", ".join(f"{name} {digest}" for name, digest in digests.items()),
        "flagged items": inputs.flagged_digest,
        "drawn part": f"at most {settings.limit} per category, seed {settings.seed}" if settings.limit else "",
        "compared": settings.score if get_run_task(run).name == "crows-pairs" else "",
    }


def _describe_prompting(run: RunData, model: RunSlice) -> dict[str, object]:
    """Describe how a model was prompted. By default this depends on the model, so models of one run may differ."""
    settings, n_options = run.manifest.settings, get_run_task(run).n_options
    shown = min(settings.orders, math.factorial(n_options))
    orders = "1 order" if model.row.backend == "log" else format_count(shown, "order")
    drawn = f", seed {settings.seed}" if shown < math.factorial(n_options) else ""
    by = ", ".join(dict.fromkeys(row.by for row in model["results"]))
    return {"asked by": by, "options": f"{orders}{drawn}" if n_options else ""}


def pair_categories(runs: Mapping[str, RunData], baseline: str) -> list[PairedItem]:
    """Pair every category, for BBQ in each kind of context, on the baseline and on every other model."""
    models = models_by_label(runs)
    return [
        _pair_category(models, (baseline, label), old, new)
        for label, old, new in pair_records(models, baseline)
        if old.category != ALL_CATEGORIES
    ]


def _pair_category(
    models: Mapping[str, RunSlice], labels: tuple[str, str], old: BenchmarkResult, new: BenchmarkResult | None
) -> PairedItem:
    title = ", ".join(filter(None, (format_category(old.category), old.condition)))
    scores = _get_score(old), _get_score(new)
    missing = [name for name, score in zip(labels, scores, strict=True) if score is None]
    plain = EffectDifference(
        old.item,
        title,
        *labels,
        get_scale_name(old),
        subtract_null(old.outcome, scores[0]),
        None if new is None else subtract_null(new.outcome, scores[1]),
        f"not measured on {' and '.join(missing)}" if missing else None,
        topic=old.topic,
    )
    measured, is_directed = (scores[0] is not None, scores[1] is not None), old.direction is not None
    if missing:
        return PairedItem(plain, old.outcome.limit, measured, is_directed=is_directed)
    rows = zip(labels, (old, new), strict=True)
    doubt = "; ".join(text for name, row in rows if row and (text := _explain_doubt(name, row)))
    both = models[labels[0]], models[labels[1]]
    named = any(row.n_names for row in (old, new) if row) or any(_select_named_rows(model, old) for model in both)
    totals = [_sum_by_unit(model, old, named=named) for model in both]
    combine = partial(combine_scores, old, totals[0], totals[1], named=named)
    slack = 0.0 if new is None else measure_slack(old.outcome, new.outcome, _share_missing_alone(both, old, new))
    return PairedItem(plain, old.outcome.limit, measured, combine, doubt, is_directed=is_directed, slack=slack)


def _share_missing_alone(
    models: tuple[RunSlice, RunSlice], old: BenchmarkResult, new: BenchmarkResult
) -> tuple[float, float]:
    """Return, of each model's questions without a choice, at most the share for which the other model has one."""
    first, second = (np.isnan(model.arrays.get("choices", np.zeros(0))) for model in models)
    if not first.size or first.shape != second.shape:  # logs do not hold them
        return 1.0, 1.0

    def divide(alone: int, row: BenchmarkResult) -> float:
        # Questions whose orders disagree are undecided, but have a choice.
        missing = min(row.undecided, row.n_unanswered * row.items / max(row.replies or 0, 1))
        return min(1.0, alone / max(missing, 1.0))

    return divide(int((first & ~second).sum()), old), divide(int((second & ~first).sum()), new)


def _get_score(row: BenchmarkResult | None) -> float | None:
    """Return the score; 0 if all answers decline ("unknown"), which shows no stereotype."""
    if row is None:
        return None
    declined = row.benchmark.endswith("bbq") and row.n_items > 0
    score = row.outcome.effect_size
    return 0.0 if score is None and declined else score


def _explain_doubt(name: str, row: BenchmarkResult) -> str:
    """Explain why a score cannot be judged: choices by position, or too many responses without a choice."""
    none = row.n_unanswered
    if row.follows_position:
        return f"{name} chooses options by their position"
    if not row.replies or none <= MAX_REFUSAL_SHARE * row.replies:
        return ""
    return f"{name} chose no option in {none:,} of {row.replies:,} responses, more than {MAX_REFUSAL_SHARE:.0%}"


def _sum_by_unit(model: RunSlice, row: BenchmarkResult, *, named: bool) -> Totals:
    """Sum contributions of every template, pair or term to a score; if `named`, by template and names."""
    if named:
        rows = _select_named_rows(model, row)
        return {(cell.template, cell.names): (cell.target, cell.known, cell.correct, cell.n) for cell in rows}
    return get_task(row.benchmark).sum_by_unit(model, row)


def _select_named_rows(model: RunSlice, row: BenchmarkResult) -> list[NamedRow]:
    return [cell for cell in model["names"] if (cell.category, cell.condition) == (row.category, row.condition)]


def combine_scores(
    row: BenchmarkResult, old: Totals, new: Totals, weight: float, confidence: float, *, named: bool = False
) -> CombinedEffect:
    """Sum or subtract the scores of two models over the sampling units that count on both.

    Parameters
    ----------
    row : BenchmarkResult
        Result of the baseline, which names the benchmark and its score.
    old, new : dict of object to tuple of float
        Numerator and denominator terms of the baseline's and the model's score, by sampling unit.
    weight : float
        Factor of the baseline's score: -1 for the difference, 1 for the sum.
    confidence : float
        Confidence level of the interval.
    named : bool
        If True, totals are by template and names, and both are sampling units. Effects of a template or a name that the
        models share cancel in the difference.

    Returns
    -------
    CombinedEffect
    """
    shared: list[Any] = [name for name in old if name in new and any(old[name]) and any(new[name])]
    units = _describe_units(row, shared, named=named)
    if not shared:
        return CombinedEffect(
            float("nan"), None, None, None, over=units, missing_reason=f"the models have {units} in common"
        )
    first, second = (np.array([totals[name] for name in shared], dtype=np.float64) for totals in (new, old))
    statistic = get_task(row.benchmark).get_statistic(row.condition)
    m, score = first.shape[1], statistic.compute

    def summed(totals: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(score(totals[..., :m]) + weight * score(totals[..., m:]))

    totals = np.concatenate([first, second], axis=1)
    most = math.inf if row.outcome.limit is None else (1.0 + abs(weight)) * row.outcome.limit
    columns = [statistic.weight] if isinstance(statistic.weight, int) else list(statistic.weight or ())
    both = [*columns, *(m + column for column in columns)]
    options: Any = {"confidence": confidence, "within": (-most, most), "weight": both or None}
    if named:
        templates, names = zip(*shared, strict=True)
        people = [name.split() for name in names]
        estimate = crossed_cluster_estimate(totals, templates, people, summed, **options)
    else:
        estimate = cluster_estimate(totals, summed, heavy_tails=statistic.heavy_tails, **options)
    if np.array_equal(first, second):
        return CombinedEffect(estimate.value, estimate.value, estimate.value, 1.0, True, units)
    if np.isnan(estimate.interval[0]):
        error, df = none_if_nan(estimate.standard_error), none_if_nan(estimate.df)
        reason = explain_no_interval(estimate.n_clusters, units, error, df)
        return CombinedEffect(estimate.value, None, None, None, False, units, reason)
    return CombinedEffect(estimate.value, *estimate.interval, estimate.p_value, False, units)


def _describe_units(row: BenchmarkResult, shared: Sequence[Any], *, named: bool) -> str:
    """Name the sampling units that both models share: 25 templates and 40 names."""
    if not named:
        return format_count(len(shared), row.unit)
    templates = {template for template, _ in shared}
    people = {name for _, names in shared for name in names.split()}
    return f"{format_count(len(templates), row.unit)} and {format_count(len(people), 'name')}"
