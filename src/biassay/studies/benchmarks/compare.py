"""Compare benchmark scores of models by template, pair or target term."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TypedDict, cast

import numpy as np

from biassay.reporting.formats import format_count
from biassay.results.comparison import Comparison, find_setting_differences
from biassay.results.differences import EffectDifference
from biassay.results.run_data import RunData
from biassay.results.views import RunSlice, label_models, split_by_model
from biassay.stats.benchmark_scores import bbq_ambiguous_bias, bbq_bias
from biassay.stats.clusters import ClusterEstimate, Floats, cluster_estimate, crossed_cluster_estimate
from biassay.studies.benchmarks.findings import (
    get_benchmark,
    get_scale_name,
)
from biassay.studies.benchmarks.results import (
    ALL_CATEGORIES,
    BenchmarkResult,
    NamedRow,
    PairRow,
    format_category,
    subtract_null,
)
from biassay.studies.benchmarks.settings import ORDERS
from biassay.studies.paired_comparison import (
    MAX_REFUSAL_SHARE,
    CombinedEffect,
    PairedItem,
    compare_paired_items,
    models_by_label,
)

__all__ = ["combine_scores", "compare_benchmarks", "pair_categories"]

_COMPARED_DATA = {
    "benchmark": "benchmark",
    "data": "data",
    "flagged items": "flagged",
    "drawn part": "drawn",
    "compared": "score",
}
_COMPARED_PROMPTING = {"asked by": "by", "options": "orders"}
_Score = Callable[[Floats], Floats]
_Totals = dict[object, tuple[float, ...]]


def compare_benchmarks(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Compare all models with the baseline."""
    shared = set[str].intersection(*(set(run.manifest.inputs.digests) for run in runs.values()))
    notes = find_setting_differences(
        {name: _get_comparable_data(run, shared) for name, run in runs.items()}, _COMPARED_DATA, mixed=mixed
    )
    asked = label_models(
        {name: {one.label: _get_response_mode(run, one) for one in split_by_model(run)} for name, run in runs.items()}
    )
    notes += find_setting_differences(asked, _COMPARED_PROMPTING, mixed=mixed)
    return compare_paired_items("benchmarks", runs, pair_categories, baseline=baseline, notes=notes, what="category")


def _get_comparable_data(run: RunData, shared: set[str]) -> object:
    """Return the data of the categories that all runs measured. Logs do not state the version of their data."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    logged = all(record.family == "log" for record in run.manifest.models)
    own = {name: digest for name, digest in sorted(inputs.digests.items()) if name in shared}
    data = "logs" if logged else ", ".join(f"{name} {digest}" for name, digest in (own or inputs.digests).items())
    drawn = "" if settings.limit is None else f"at most {settings.limit} per category, seed {settings.seed}"
    score = settings.score if get_benchmark(run) == "crows-pairs" else ""
    return SimpleNamespace(
        benchmark=get_benchmark(run), data=data, flagged=inputs.flagged_digest, drawn=drawn, score=score
    )


def _get_response_mode(run: RunData, model: RunSlice) -> object:
    """By default a model is asked as it can be, so that models of one run may differ. A log has one order."""
    settings = run.manifest.settings
    orders = "1 order" if model.row.family == "log" else format_count(settings.orders, "order")
    drawn = f", seed {settings.seed}" if settings.orders < ORDERS else ""
    by = ", ".join(dict.fromkeys(row.by for row in model["results"]))
    return SimpleNamespace(by=by, orders=f"{orders}{drawn}" if get_benchmark(run) == "bbq" else "")


def pair_categories(runs: Mapping[str, RunData], baseline: str) -> list[PairedItem]:
    """Every category, for BBQ in each kind of context, on the first model and on another."""
    models = models_by_label(runs)
    old = {_row_key(row): row for row in models[baseline]["results"] if row.category != ALL_CATEGORIES}
    return [
        _pair_category(baseline, label, models[baseline], model, row, new.get(key))
        for label, model in models.items()
        if label != baseline
        for new in [{_row_key(row): row for row in model["results"]}]
        for key, row in old.items()
    ]


def _row_key(row: BenchmarkResult) -> tuple[str, str, str]:
    return row.benchmark, row.category, row.condition


def _pair_category(
    first: str, label: str, one: RunSlice, other: RunSlice, old: BenchmarkResult, new: BenchmarkResult | None
) -> PairedItem:
    title = ", ".join(filter(None, (format_category(old.category), old.condition)))
    scores = _get_score(old), _get_score(new)
    missing = [name for name, score in zip((first, label), scores, strict=True) if score is None]
    plain = EffectDifference(
        old.item,
        title,
        first,
        label,
        get_scale_name(old),
        subtract_null(old.outcome, scores[0]),
        None if new is None else subtract_null(new.outcome, scores[1]),
        f"not measured on {' and '.join(missing)}" if missing else None,
        topic=old.topic,
    )
    measured = scores[0] is not None, scores[1] is not None
    if missing:
        return PairedItem(plain, old.outcome.limit, measured)
    doubt = "; ".join(text for name, row in ((first, old), (label, new)) if row and (text := _explain_doubt(name, row)))
    named = any(row.n_names for row in (old, new) if row) or any(
        _select_named_rows(model, old) for model in (one, other)
    )
    totals = _sum_by_unit(one, old, named=named), _sum_by_unit(other, old, named=named)
    return PairedItem(plain, old.outcome.limit, measured, partial(combine_scores, old, *totals, named=named), doubt)


def _get_score(row: BenchmarkResult | None) -> float | None:
    """Return the score; 0 if all answers decline ("unknown"), which shows no stereotype."""
    if row is None:
        return None
    declined = row.benchmark == "bbq" and row.status == "measured" and row.n_items > 0
    score = row.outcome.effect_size
    return 0.0 if score is None and declined else score


def _explain_doubt(name: str, row: BenchmarkResult) -> str:
    """Say why a score does not show what the model would choose: by position, or too often no option at all."""
    none = sum(count or 0 for count in (row.refused, row.filtered, row.failed, row.several, row.empty, row.unparsed))
    if row.follows_position:
        return f"{name} chooses options by their position"
    if not row.replies or none <= MAX_REFUSAL_SHARE * row.replies:
        return ""
    return f"{name} chose no option in {none:,} of {row.replies:,} responses, more than {MAX_REFUSAL_SHARE:.0%}"


def _sum_by_unit(model: RunSlice, row: BenchmarkResult, *, named: bool) -> _Totals:
    """Count what every template, pair or term adds to the score of a category; if `named`, by template and names."""
    if named:
        rows = _select_named_rows(model, row)
        return {(one.template, one.names): (one.target, one.known, one.correct, one.n) for one in rows}
    return dict(_iter_counts(model, row))


def _select_named_rows(model: RunSlice, row: BenchmarkResult) -> list[NamedRow]:
    return [one for one in model["names"] if (one.category, one.condition) == (row.category, row.condition)]


def _iter_counts(model: RunSlice, row: BenchmarkResult) -> Iterator[tuple[object, tuple[float, ...]]]:
    if row.benchmark == "bbq":
        for one in model["templates"]:
            if (one.category, one.condition) == (row.category, row.condition):
                yield one.template, (one.target, one.known, one.correct, one.n)
    elif row.benchmark == "crows-pairs":
        yield from _sum_by_writer(one for one in model["pairs"] if one.category == row.category).items()
    else:
        for one in model["terms"]:
            if one.category == row.category and one.ss is not None:
                yield one.term, (one.ss, 1.0)


def _bias_or_none(totals: Floats) -> Floats:
    """Return the score in disambiguated contexts; 0 if all answers decline."""
    declined = (totals[..., 1] == 0.0) & (totals[..., 3] > 0.0)
    return np.asarray(np.where(declined, 0.0, bbq_bias(totals)))


def _sum_by_writer(pairs: Iterable[PairRow]) -> dict[object, tuple[float, ...]]:
    """Sum what pairs add to (preferred - dispreferred) / 2 and to n; a pair without a writer is by itself."""
    found: dict[object, tuple[float, ...]] = {}
    for one in pairs:
        if one.apart is not None:
            lean, n = found.get(key := one.writer or ("pair", one.pair), (0.0, 0.0))
            found[key] = lean + ((one.apart > 0.0) - (one.apart < 0.0)) / 2.0, n + 1.0
    return found


def _get_score_function(row: BenchmarkResult) -> _Score:
    if row.benchmark == "bbq":
        return bbq_ambiguous_bias if row.condition == "ambiguous" else _bias_or_none
    null = 0.0 if row.benchmark == "crows-pairs" else row.outcome.null
    return lambda totals: totals[..., 0] / totals[..., 1] - null


def combine_scores(
    row: BenchmarkResult, old: _Totals, new: _Totals, weight: float, confidence: float, *, named: bool = False
) -> CombinedEffect:
    """Sum or subtract the scores of two models over the clusters that count on both.

    If `named`, totals are by template and names, and both are sampling units. Effects of a template or a name that the
    models share cancel in the difference.
    """
    shared = [name for name in old if name in new and any(old[name]) and any(new[name])]
    units = _describe_units(row, shared, named=named)
    if not shared:
        return CombinedEffect(float("nan"), None, None, None, over=units, lacking=f"the models have {units} in common")
    first, second = (np.array([totals[name] for name in shared], dtype=np.float64) for totals in (new, old))
    m, score = first.shape[1], _get_score_function(row)

    def summed(totals: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(score(totals[..., :m]) + weight * score(totals[..., m:]))

    totals = np.concatenate([first, second], axis=1)
    most = (1.0 + abs(weight)) * (row.outcome.limit or 1.0)
    denominator = _denominator(row)
    options: _Options = {"confidence": confidence, "within": (-most, most), "weight": (denominator, m + denominator)}
    if named:
        keys = cast("list[tuple[int, str]]", shared)
        names = [names.split() for _, names in keys]
        found = crossed_cluster_estimate(totals, [template for template, _ in keys], names, summed, **options)
    else:
        found = cluster_estimate(totals, summed, **options)
    if np.array_equal(first, second):
        return CombinedEffect(found.value, found.value, found.value, 1.0, True, units)
    if np.isnan(found.interval[0]):
        return CombinedEffect(found.value, None, None, None, False, units, _explain_no_interval(found, units))
    return CombinedEffect(found.value, *found.interval, found.p_value, False, units)


class _Options(TypedDict):
    confidence: float
    within: tuple[float, float]
    weight: tuple[int, int]


def _denominator(row: BenchmarkResult) -> int:
    """Return the column of the totals that the score divides by."""
    if row.benchmark == "bbq":
        return 3 if row.condition == "ambiguous" else 1
    return 1


def _describe_units(row: BenchmarkResult, shared: Sequence[object], *, named: bool) -> str:
    """Name the sampling units that both models share: 25 templates and 40 names."""
    if not named:
        return format_count(len(shared), row.unit)
    keys = cast("list[tuple[int, str]]", shared)
    names = {name for _, names in keys for name in names.split()}
    return f"{format_count(len({template for template, _ in keys}), row.unit)} and {format_count(len(names), 'name')}"


def _explain_no_interval(found: ClusterEstimate, units: str) -> str:
    if found.n_clusters < 2 or math.isnan(found.df):
        return f"{units} are too few" if found.n_clusters < 2 else f"one of {units} alone decides"
    return f"{units} are too few, or a few of them hold most items"
