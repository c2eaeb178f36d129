"""How benchmark scores differ between models: by template, pair or target term, which are the same for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TypedDict, cast

import numpy as np

from biassay.pages.formats import counted
from biassay.results.comparison import Comparison, find_unlike
from biassay.results.data import RunData
from biassay.results.differences import EffectDifference
from biassay.results.slices import Slice, by_model, labelled
from biassay.stats.benchmark_scores import bbq_ambiguous, bbq_bias
from biassay.stats.clusters import ClusterEstimate, Floats, cluster_estimate, crossed_cluster_estimate
from biassay.studies.benchmarks.findings import follows_position, from_null, item_of, limit_of, unit_of
from biassay.studies.benchmarks.records import NamedRow, PairRow, Result
from biassay.studies.benchmarks.sentences import ALL
from biassay.studies.benchmarks.settings import ORDERS
from biassay.studies.benchmarks.shown import benchmark_of, category_name
from biassay.studies.paired import MOST_REFUSALS, Estimate, Paired, compared, models_of

__all__ = ["compare_benchmarks", "pairs_of", "sum_scores"]

_ALIKE = {
    "benchmark": "benchmark",
    "data": "data",
    "flagged items": "flagged",
    "drawn part": "drawn",
    "compared": "score",
}
_ASKED = {"asked by": "by", "options": "orders"}
_Score = Callable[[Floats], Floats]
_Totals = dict[object, tuple[float, ...]]


def compare_benchmarks(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Differences of all models from one of them."""
    shared = set[str].intersection(*(set(run.manifest.inputs.digests) for run in runs.values()))
    notes = find_unlike({name: _asked(run, shared) for name, run in runs.items()}, _ALIKE, mixed=mixed)
    asked = labelled({name: {one.label: _how(run, one) for one in by_model(run)} for name, run in runs.items()})
    notes += find_unlike(asked, _ASKED, mixed=mixed)
    return compared("benchmarks", runs, pairs_of, baseline=baseline, notes=notes, what="category")


def _asked(run: RunData, shared: set[str]) -> object:
    """The data of the categories that all runs measured. Logs do not say which version of the data they are of."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    logged = all(record.family == "log" for record in run.manifest.models)
    own = {name: digest for name, digest in sorted(inputs.digests.items()) if name in shared}
    data = "logs" if logged else ", ".join(f"{name} {digest}" for name, digest in (own or inputs.digests).items())
    drawn = "" if settings.limit is None else f"at most {settings.limit} per category, seed {settings.seed}"
    score = settings.score if benchmark_of(run) == "crows-pairs" else ""
    return SimpleNamespace(
        benchmark=benchmark_of(run), data=data, flagged=inputs.flagged_digest, drawn=drawn, score=score
    )


def _how(run: RunData, model: Slice) -> object:
    """By default a model is asked as it can be, so that models of one run may differ. A log has one order."""
    settings = run.manifest.settings
    orders = "1 order" if model.row.family == "log" else counted(settings.orders, "order")
    drawn = f", seed {settings.seed}" if settings.orders < ORDERS else ""
    by = ", ".join(dict.fromkeys(row.by for row in model["results"]))
    return SimpleNamespace(by=by, orders=f"{orders}{drawn}" if benchmark_of(run) == "bbq" else "")


def pairs_of(runs: Mapping[str, RunData], baseline: str) -> list[Paired]:
    """Every category, for BBQ in each kind of context, on the first model and on another."""
    models = models_of(runs)
    old = {_key(row): row for row in models[baseline]["results"] if row.category != ALL}
    return [
        _paired(baseline, label, models[baseline], model, row, new.get(key))
        for label, model in models.items()
        if label != baseline
        for new in [{_key(row): row for row in model["results"]}]
        for key, row in old.items()
    ]


def _key(row: Result) -> tuple[str, str, str]:
    return row.benchmark, row.category, row.condition


def _paired(first: str, label: str, one: Slice, other: Slice, old: Result, new: Result | None) -> Paired:
    title = ", ".join(filter(None, (category_name(old.category), old.condition)))
    scores = _counted_score(old), _counted_score(new)
    missing = [name for name, score in zip((first, label), scores, strict=True) if score is None]
    plain = EffectDifference(
        item_of(old),
        title,
        first,
        label,
        unit_of(old),
        from_null(old, scores[0]),
        None if new is None else from_null(new, scores[1]),
        f"not measured on {' and '.join(missing)}" if missing else None,
        topic=old.topic,
    )
    measured = scores[0] is not None, scores[1] is not None
    if missing:
        return Paired(plain, limit_of(old), measured)
    doubt = "; ".join(text for name, row in ((first, old), (label, new)) if row and (text := _doubt(name, row)))
    named = any(row.n_names for row in (old, new) if row) or any(_named_rows(model, old) for model in (one, other))
    totals = _totals(one, old, named=named), _totals(other, old, named=named)
    return Paired(plain, limit_of(old), measured, partial(sum_scores, old, *totals, named=named), doubt)


def _counted_score(row: Result | None) -> float | None:
    """The score; 0 where all answers decline ("unknown"), which shows no stereotype."""
    if row is None:
        return None
    declined = row.benchmark == "bbq" and row.status == "measured" and row.n > 0
    return 0.0 if row.score is None and declined else row.score


def _doubt(name: str, row: Result) -> str:
    """Say why a score does not show what the model would choose: by position, or too often no option at all."""
    none = sum(count or 0 for count in (row.refused, row.filtered, row.failed, row.several, row.empty, row.unparsed))
    if follows_position(row):
        return f"{name} chooses options by their position"
    if not row.replies or none <= MOST_REFUSALS * row.replies:
        return ""
    return f"{name} chose no option in {none:,} of {row.replies:,} responses, more than {MOST_REFUSALS:.0%}"


def _totals(model: Slice, row: Result, *, named: bool) -> _Totals:
    """Count what every template, pair or term adds to the score of a category; if `named`, by template and names."""
    if named:
        rows = _named_rows(model, row)
        return {(one.template, one.names): (one.target, one.known, one.correct, one.n) for one in rows}
    return dict(_counted(model, row))


def _named_rows(model: Slice, row: Result) -> list[NamedRow]:
    return [one for one in model["names"] if (one.category, one.condition) == (row.category, row.condition)]


def _counted(model: Slice, row: Result) -> Iterator[tuple[object, tuple[float, ...]]]:
    if row.benchmark == "bbq":
        for one in model["templates"]:
            if (one.category, one.condition) == (row.category, row.condition):
                yield one.template, (one.target, one.known, one.correct, one.n)
    elif row.benchmark == "crows-pairs":
        yield from _by_writer(one for one in model["pairs"] if one.category == row.category).items()
    else:
        for one in model["terms"]:
            if one.category == row.category and one.ss is not None:
                yield one.term, (one.ss, 1.0)


def _bias_or_none(totals: Floats) -> Floats:
    """The score in disambiguated contexts; 0 where all answers decline."""
    declined = (totals[..., 1] == 0.0) & (totals[..., 3] > 0.0)
    return np.asarray(np.where(declined, 0.0, bbq_bias(totals)))


def _by_writer(pairs: Iterable[PairRow]) -> dict[object, tuple[float, ...]]:
    """Sum what pairs add to (preferred - dispreferred) / 2 and to n; a pair without a writer is by itself."""
    found: dict[object, tuple[float, ...]] = {}
    for one in pairs:
        if one.apart is not None:
            lean, n = found.get(key := one.writer or ("pair", one.pair), (0.0, 0.0))
            found[key] = lean + ((one.apart > 0.0) - (one.apart < 0.0)) / 2.0, n + 1.0
    return found


def _score(row: Result) -> _Score:
    if row.benchmark == "bbq":
        return bbq_ambiguous if row.condition == "ambiguous" else _bias_or_none
    null = 0.0 if row.benchmark == "crows-pairs" else row.null
    return lambda totals: totals[..., 0] / totals[..., 1] - null


def sum_scores(
    row: Result, old: _Totals, new: _Totals, weight: float, confidence: float, *, named: bool = False
) -> Estimate:
    """Sum or subtract the scores of two models over the clusters that count on both.

    If `named`, totals are by template and names, and both are sampling units. Effects of a template or a name that the
    models share cancel in the difference.
    """
    shared = [name for name in old if name in new and any(old[name]) and any(new[name])]
    units = _units(row, shared, named=named)
    if not shared:
        return Estimate(float("nan"), None, None, None, over=units, lacking=f"the models have {units} in common")
    first, second = (np.array([totals[name] for name in shared], dtype=np.float64) for totals in (new, old))
    m, score = first.shape[1], _score(row)

    def summed(totals: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(score(totals[..., :m]) + weight * score(totals[..., m:]))

    totals = np.concatenate([first, second], axis=1)
    most = (1.0 + abs(weight)) * limit_of(row)
    denominator = _denominator(row)
    options: _Options = {"confidence": confidence, "within": (-most, most), "weight": (denominator, m + denominator)}
    if named:
        keys = cast("list[tuple[int, str]]", shared)
        names = [names.split() for _, names in keys]
        found = crossed_cluster_estimate(totals, [template for template, _ in keys], names, summed, **options)
    else:
        found = cluster_estimate(totals, summed, **options)
    if np.array_equal(first, second):
        return Estimate(found.value, found.value, found.value, 1.0, True, units)
    if np.isnan(found.interval[0]):
        return Estimate(found.value, None, None, None, False, units, _lacking(found, units))
    return Estimate(found.value, *found.interval, found.p_value, False, units)


class _Options(TypedDict):
    confidence: float
    within: tuple[float, float]
    weight: tuple[int, int]


def _denominator(row: Result) -> int:
    """Return the column of the totals that the score divides by."""
    if row.benchmark == "bbq":
        return 3 if row.condition == "ambiguous" else 1
    return 1


def _units(row: Result, shared: Sequence[object], *, named: bool) -> str:
    """Name the sampling units that both models share: 25 templates and 40 names."""
    if not named:
        return counted(len(shared), row.unit)
    keys = cast("list[tuple[int, str]]", shared)
    names = {name for _, names in keys for name in names.split()}
    return f"{counted(len({template for template, _ in keys}), row.unit)} and {counted(len(names), 'name')}"


def _lacking(found: ClusterEstimate, units: str) -> str:
    if found.n_clusters < 2 or math.isnan(found.df):
        return f"{units} are too few" if found.n_clusters < 2 else f"one of {units} alone decides"
    return f"{units} are too few, or a few of them hold most items"
