"""Merge runs of association tests, compare models test by test, judge the differences and report them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import About
from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing
from biassay.reporting.charts.forest import ForestRow, draw_forest
from biassay.reporting.charts.series import draw_series
from biassay.reporting.comparison import make_comparison_report, make_verdict_report, sort_by_urgency
from biassay.reporting.document import (
    Block,
    Cell,
    Drawings,
    Report,
    Section,
    Statement,
    Table,
    Text,
    make_table,
    side_by_side,
)
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_examples,
    format_interval,
    format_percent,
)
from biassay.results.comparison import (
    CONFIDENCE,
    FEWEST_CHECKPOINTS,
    MARGIN,
    Comparison,
    SeriesPoint,
    Verdict,
    VerdictOutcome,
    check_limits,
    choose_baseline,
    find_setting_differences,
    format_outcome,
)
from biassay.results.outcomes import Result
from biassay.results.run_data import (
    BaseRecord,
    ModelKey,
    ModelRecord,
    RunData,
    RunGroup,
    belongs_to,
    copy_fields,
    model_key,
    model_labels,
    none_if_nan,
)
from biassay.results.tables import Column
from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.model_difference import Direction, ModelDifference, compare_tables, explain_inconclusive
from biassay.studies.associations.calibration import CalibratedTables, Calibration, find_common_words, get_cosines
from biassay.studies.associations.findings import SIGNS, format_label, list_lost_words
from biassay.studies.associations.measure import has_scale, measure_crossed
from biassay.studies.associations.results import CROSSED, AssociationRecord, decide_associations
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.weat import label_words


def group_association_runs(runs: Mapping[str, RunData], *, mixed: bool = False) -> list[RunGroup]:
    """Merge the runs over texts, and those over contexts."""
    kinds = group_pairs((run.manifest.inputs.contexts is not None, (name, run)) for name, run in runs.items())
    return [merge_runs(dict(kinds[kind]), mixed=mixed) for kind in sorted(kinds)]


def merge_runs(runs: Mapping[str, RunData], *, mixed: bool = False) -> RunGroup:
    """Merge runs into one group. Raise UsageError if they differ in protocol or stimuli, unless `mixed`.

    A model that several runs tested with the same tests is listed once per run, with the name of the run.
    """
    differences = _list_differences(runs)
    if differences and not mixed:
        raise UsageError("the runs cannot be merged: " + "; ".join(differences) + " (--mixed merges them anyway)")
    if len(runs) == 1:
        return RunGroup(next(iter(runs.values())), runs)
    alpha = min(run.manifest.settings.alpha_or_default for run in runs.values())
    named = {name: _recompute_at_level(run, alpha) for name, run in _add_run_names(runs).items()}
    models: dict[tuple[object, ...], ModelRecord] = {}
    arrays: dict[str, NDArray[np.float64]] = {}
    for run in named.values():
        for index, record in enumerate(run.manifest.models):
            key = (record.name, record.backend, record.revision, tuple(record.settings.items()))
            models[key] = _merge_records(models[key], record) if key in models else record
            at = list(models).index(key)
            arrays |= {f"{at}/{name}": array for name, array in run.get_arrays(index).items()}
    made = [run.manifest for run in named.values()]
    finished = [manifest.finished for manifest in made]
    tests = {(test.name, test.digest): test for manifest in made for test in manifest.inputs.tests}
    manifest = dataclasses.replace(
        made[0],
        run_id="+".join(manifest.run_id for manifest in made),
        status="complete" if all(manifest.status == "complete" for manifest in made) else "running",
        created=min(manifest.created for manifest in made),
        finished=None if None in finished else max(filter(None, finished)),
        models=tuple(models.values()),
        settings=dataclasses.replace(made[0].settings, alpha=alpha),
        inputs=dataclasses.replace(made[0].inputs, tests=tuple(tests.values())),
    )
    tables: dict[str, tuple[Any, ...]] = {}
    for table in dict.fromkeys(table for run in named.values() for table in run.tables):
        rows = group_pairs((model_key(row), row) for run in named.values() for row in run.tables.get(table, ()))
        tables[table] = tuple(itertools.chain(*rows.values()))
    if _changes_families(named, alpha):
        tables["decisions"] = decide_associations(manifest.settings, tables.get("results", ()))
    return RunGroup(RunData(manifest, tables, arrays), runs, tuple(differences))


def _changes_families(runs: Mapping[str, RunData], alpha: float) -> bool:
    """Return whether merged runs have other families or another level than each run alone."""
    models = [key for run in runs.values() for key in {model_key(row) for row in run.results}]
    rows = [row for run in runs.values() for row in run.results]
    levels = {run.manifest.settings.alpha_or_default for run in runs.values()}
    return len(models) > len(set(models)) or any(row.protocol in PAPER_PROTOCOLS for row in rows) or levels != {alpha}


def _recompute_at_level(run: RunData, alpha: float) -> RunData:
    """Recompute intervals and decisions of a run at another level; drop intervals that need missing cosines."""
    settings = dataclasses.replace(run.manifest.settings, alpha=alpha)

    def recompute(record: AssociationRecord) -> AssociationRecord:
        old = record.get_outcome(CROSSED)
        if record.alpha == alpha:
            return record
        x, y, a, b = (len(record.associations.get(role, {})) for role in ("X", "Y", "A", "B"))
        labels = label_words({role: tuple(record.associations.get(role, {})) for role in "XYAB"}, record.clusters)
        new = measure_crossed(
            get_cosines(record, run),
            (x, y, a, b),
            settings,
            record.word_effect,
            cosine_sd=record.cosine_sd,
            clusters=labels,
        )
        outcomes = {record.outcome.test: record.outcome, **record.alternatives}
        fields: dict[str, Any] = dict.fromkeys(_INTERVAL_FIELDS) if new is None else new[1]
        if old is not None:
            changed = dataclasses.replace(old, ci_low=None, ci_high=None, power_80=None) if new is None else new[0]
            outcomes[CROSSED] = dataclasses.replace(changed, scale=old.scale, limit=old.limit)
        outcomes = {name: dataclasses.replace(outcome, confidence=1.0 - alpha) for name, outcome in outcomes.items()}
        primary = outcomes.pop(record.outcome.test)
        return dataclasses.replace(record, outcome=primary, alternatives=outcomes, alpha=alpha, **fields)

    records = tuple(map(recompute, run.tables.get("results", ())))
    return RunData(run.manifest, {**run.tables, "results": records}, run.arrays)


_INTERVAL_FIELDS = ("cosine_ci_low", "cosine_ci_high", "calibrated_ci_low", "calibrated_ci_high")


def _merge_records(one: ModelRecord, other: ModelRecord) -> ModelRecord:
    """Merge the records of one model in two runs; their costs add up."""
    return dataclasses.replace(
        one,
        texts=one.texts + other.texts,
        encoded=one.encoded + other.encoded,
        seconds=round(one.seconds + other.seconds, 3),
        oov_words=tuple(sorted({*one.oov_words, *other.oov_words})),
    )


def _add_run_names(runs: Mapping[str, RunData]) -> dict[str, RunData]:
    """Add the name of the run to every model that another run tested with one of the same tests."""
    seen: dict[tuple[ModelKey, str], set[str]] = {}
    for name, run in runs.items():
        for r in run.results:
            seen.setdefault((model_key(r), r.test), set()).add(name)
    shared = {(key, name) for (key, _), names in seen.items() if len(names) > 1 for name in names}
    return {name: _rename_models(run, name, {key for key, of in shared if of == name}) for name, run in runs.items()}


def _rename_models(run: RunData, name: str, keys: set[ModelKey]) -> RunData:
    shared = [row for row in run.results if model_key(row) in keys]
    models = tuple(
        dataclasses.replace(record, name=f"{record.name} [{name}]")
        if any(belongs_to(row, record) for row in shared)
        else record
        for record in run.manifest.models
    )
    tables = {
        table: tuple(
            dataclasses.replace(row, model=f"{row.model} [{name}]") if model_key(row) in keys else row for row in rows
        )
        for table, rows in run.tables.items()
    }
    return RunData(dataclasses.replace(run.manifest, models=models), tables, run.arrays)


_COMPARED_SETTINGS = {
    "metric": "metric",
    "protocol": "protocol",
    "alternative": "alternative",
    "alpha": "alpha_or_default",
    "family": "family",
    "number of samples": "n_samples",
    "draw of contexts": "mode",
    "window": "window",
    "fewest contexts": "min_contexts",
}


def _list_differences(runs: Mapping[str, RunData]) -> list[str]:
    """List the differences between runs that change the meaning of their numbers."""
    described = {}
    for name, run in runs.items():
        contexts = run.manifest.inputs.contexts
        described[name] = {what: getattr(run.manifest.settings, field) for what, field in _COMPARED_SETTINGS.items()}
        described[name]["contexts"] = None if contexts is None else contexts.digest
    found = list(find_setting_differences(described, mixed=True))
    digests: dict[str, dict[str, str]] = {}
    for name, run in runs.items():
        for row in run.results:
            digests.setdefault(row.test, {})[name] = row.test_digest
    changed = {test: own for test, own in digests.items() if len(set(own.values())) > 1}
    if changed:
        names = dict.fromkeys(name for own in changed.values() for name in own)
        found.append(
            f"tests of one name have different texts: {format_examples(list(changed))} (in {', '.join(names)})"
        )
    return found


_LARGE_CHANGE = 0.25  # relative change of the cosine SD that is reported


@dataclass(frozen=True)
class AssociationDifference(BaseRecord):
    """Difference between a test on the first model and on another, over the words that both know.

    Attributes
    ----------
    effect_baseline, effect_model : float or None
        Effect sizes d over words.
    reason : str or None
        Why a number is missing.
    difference : float or None
        Calibrated difference of the other model minus that of the first, positive if X is closer to A.
    interval_low, interval_high : float or None
        Paired crossed interval: the same target words and attribute words are a sample for both models.
    simultaneous_low, simultaneous_high : float or None
        Wider interval: with the confidence of the comparison, all `family` intervals of social-bias tests on all
        models are correct together. Sanity checks and identical tables do not count.
    calibrated_baseline, calibrated_model : float or None
        Cosine differences divided by the standard deviation of cosines between frequent words.
    cosine_difference_baseline, cosine_difference_model, cosine_sd_baseline, cosine_sd_model : float or None
        Both parts of the calibrated differences.
    num_targ1, num_targ2, num_attr1, num_attr2 : int
        Common words of each set.
    """

    test: str
    title: str
    baseline: str
    model: str
    effect_baseline: float | None
    effect_model: float | None
    reason: str | None
    difference: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None
    calibrated_baseline: float | None = None
    calibrated_model: float | None = None
    cosine_difference_baseline: float | None = None
    cosine_difference_model: float | None = None
    cosine_sd_baseline: float | None = None
    cosine_sd_model: float | None = None
    num_targ1: int = 0
    num_targ2: int = 0
    num_attr1: int = 0
    num_attr2: int = 0
    about: About | None = None
    family: int | None = None
    identical: bool = False

    @property
    def is_check(self) -> bool:
        """If True, the test is a sanity check."""
        return self.about == "method"


def compare_associations(
    runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool, series: bool = False
) -> Comparison:
    """Compare all models with the baseline by calibrated differences over the words that both know.

    Parameters
    ----------
    runs : dict of str to RunData
        Runs by name.
    baseline : str or None
        Label of the baseline. If None, the first model.
    mixed : bool
        If True, compare runs with different settings.
    series : bool
        If True, the models are checkpoints in order. The comparison is then of the two ends of the least-squares line
        through all of them, over the words that all know.

    Returns
    -------
    Comparison
    """
    if len({run.manifest.inputs.contexts is None for run in runs.values()}) > 1:
        raise UsageError(
            "associations over texts and associations over contexts cannot be compared; "
            "`biassay report` shows them on one page"
        )
    gathered = merge_runs(runs, mixed=mixed)
    labels = model_labels(gathered.run)
    first = choose_baseline(list(labels.values()), baseline)
    cells = _index_results(gathered.run)
    measured = {label for label, _ in cells}
    checkpoints = tuple(label for label in labels.values() if series and label in measured)
    if series and len(checkpoints) < FEWEST_CHECKPOINTS:
        raise UsageError(
            f"a series needs at least {FEWEST_CHECKPOINTS} checkpoints, got {len(checkpoints)} "
            f"({', '.join(checkpoints)}); compare two models without --series"
        )
    pairs = [
        (name, {label: cells[label, test] for label in own})
        for name, own in _list_chains(first, list(labels.values()), checkpoints)
        for test in dict.fromkeys(r.test for r in gathered.run.results)
        if all((label, test) in cells for label in own)
    ]
    if not pairs:
        raise UsageError("the models have no test in common")
    calibration = Calibration(gathered.run)
    found = [_compare_test(*asked, calibration) for asked in pairs]
    family = sum(not row.is_check and not row.identical for row, both in found if both is not None)
    rows = tuple(row if both is None or row.is_check else _widen_interval(row, both, family) for row, both in found)
    line = f"The trend is the least-squares line through {len(checkpoints)} checkpoints at equal steps. "
    line += "Old and new are its ends."
    lost = [f"{line}; compared over the words that both know" for line in list_lost_words(gathered.run)]
    return Comparison(
        "associations",
        first,
        {"associations": rows},
        notes=(*gathered.differences, *_list_unshared(cells, labels.values())),
        results=gathered.run.results,
        gathered=(gathered,),
        remarks=(*([line] if checkpoints else []), *lost, *_warn_changed_scales(rows, cells)),
        checkpoints=checkpoints,
    )


def _index_results(run: RunData) -> dict[tuple[str, str], Result]:
    """Return results by label of the model and test."""
    labels = model_labels(run)
    return {(labels[model_key(row)], row.test): row for row in run.results}


def _list_chains(first: str, labels: Sequence[str], checkpoints: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """List what is compared: each model with the first, or a series; a name for it, then the labels of its models."""
    if checkpoints:
        return [(f"{checkpoints[-1]} (trend over {len(checkpoints)} checkpoints)", tuple(checkpoints))]
    return [(label, (first, label)) for label in labels if label != first]


def _list_unshared(cells: Mapping[tuple[str, str], Result], labels: Iterable[str]) -> list[str]:
    """Name the tests that not all models have; they are not compared."""
    tests = dict.fromkeys(test for _, test in cells)
    apart = [test for test in tests if not all((label, test) in cells for label in labels)]
    return [f"tests that not all models have: {', '.join(apart)}"] if apart else []


def _compare_test(
    name: str, measured: Mapping[str, Result], calibration: Calibration
) -> tuple[AssociationDifference, CalibratedTables | None]:
    """Compare one test on two models or over a series. Return also the calibrated tables if there is an interval."""
    first, (one, *_, other) = next(iter(measured)), tuple(measured.values())
    found = AssociationDifference(
        one.test, format_label(one), first, name, one.word_effect, other.word_effect, None, about=one.about
    )
    unmeasured = [label for label, result in measured.items() if result.effect_size is None]
    if unmeasured:
        return dataclasses.replace(found, reason=f"not measured on {' and '.join(unmeasured)}"), None
    if one.scale != "d":
        return _compare_scores(found, one, other), None
    both = calibration.calibrate(*measured.values())
    if isinstance(both, str):
        unknown = None in (one.word_effect, other.word_effect)
        reason = "no interval, because the words of the texts are unknown" if unknown else both
        return dataclasses.replace(found, reason=reason), None
    compared = _compare_calibrated(both, CONFIDENCE)
    ends = both.cosines[0], both.cosines[-1]
    D: list[float | None] = [crossed_test(table, both.sizes[0], both.sizes[2]).D for table in ends]
    if len(measured) > 2:  # the calibrated differences are those of the line
        D = [None, None]
    effects = [crossed_effect(table, both.sizes[0], both.sizes[2]).effect_size for table in ends]
    found = dataclasses.replace(
        found,
        effect_baseline=none_if_nan(effects[0]),
        effect_model=none_if_nan(effects[1]),
        difference=compared.growth.value,
        interval_low=compared.growth.low,
        interval_high=compared.growth.high,
        calibrated_baseline=compared.old,
        calibrated_model=compared.new,
        cosine_difference_baseline=D[0],
        cosine_difference_model=D[1],
        cosine_sd_baseline=both.scale.sds[0] if has_scale(one.metric) else None,
        cosine_sd_model=both.scale.sds[-1] if has_scale(one.metric) else None,
        identical=compared.identical,
        **_make_size_fields(both.sizes),
    )
    if found.interval_low is None:
        return dataclasses.replace(found, reason=compared.growth.missing_reason), None
    return found, both


def _compare_calibrated(
    both: CalibratedTables, confidence: float, direction: Direction | None = "positive", margin: float = 1.0
) -> ModelDifference:
    """Compare tables; by default in the direction of the words, not of the stereotype."""
    old, new = both.ends
    return compare_tables(
        old, new, both.sizes[0], both.sizes[2],
        direction=direction, margin=margin, confidence=confidence,
        scale_variance=both.scale.variance, tolerance=both.tolerance,
    )  # fmt: skip


def _compare_scores(difference: AssociationDifference, one: Result, other: Result) -> AssociationDifference:
    """Compare the scores of a metric for all sets, in its own units, over the words of each model."""
    words = find_common_words(one, other)
    reason = f"the metric {one.metric} gives one score of four sets, which has no interval"
    if any(len(words[role]) < len(r.associations[role]) for r in (one, other) for role in r.associations):
        reason += "; the words are not all the same"
    effects = one.word_effect, other.word_effect
    first, second = effects if None not in effects else (one.effect_size, other.effect_size)
    return dataclasses.replace(
        difference,
        effect_baseline=first,
        effect_model=second,
        reason=reason,
        difference=(second or 0.0) - (first or 0.0),
        **_make_size_fields((len(words["X"]), len(words["Y"]), len(words["A"]), len(words["B"]))),
    )


def _make_size_fields(sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), sizes, strict=True))


def _widen_interval(row: AssociationDifference, both: CalibratedTables, family: int) -> AssociationDifference:
    """Add the simultaneous interval: the differences of a family share the error rate."""
    if row.identical:
        return dataclasses.replace(row, simultaneous_low=0.0, simultaneous_high=0.0)
    growth = _compare_calibrated(both, 1.0 - (1.0 - CONFIDENCE) / family).growth
    return dataclasses.replace(row, simultaneous_low=growth.low, simultaneous_high=growth.high, family=family)


def _warn_changed_scales(
    rows: Iterable[AssociationDifference], cells: Mapping[tuple[str, str], Result]
) -> Iterator[str]:
    """Warn of models whose spread of cosines has changed much."""
    warned = set[tuple[str, str]]()
    for row in rows:
        old, new, level = row.cosine_sd_baseline, row.cosine_sd_model, cells[row.baseline, row.test].level
        if old and new and max(old, new) >= (1.0 + _LARGE_CHANGE) * min(old, new) and (row.model, level) not in warned:
            warned.add((row.model, level))
            yield (
                f"{row.model} spreads cosines differently: the SD of cosines between frequent words ({level} tests) is "
                f"{new:.3f}, against {old:.3f} on {row.baseline}. Calibrated differences are divided by it, so compare "
                "the cosine differences D as well."
            )


def judge_associations(comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
    """Judge all social-bias tests of the first model on every other model.

    Parameters
    ----------
    comparison : Comparison
    margin : float or None
        Growth of the calibrated difference that does not matter, by default 0.2. For a metric that declares no scale
        it is in the metric's own units and must be given.
    alpha : float
        Probability that any interval misses. Growth and reversal of each question share it (Bonferroni).

    Returns
    -------
    tuple of Verdict
        Forms of one question are one member of the family: the word form decides. Identical tables need no share.
    """
    check_limits(MARGIN if margin is None else margin, alpha)
    (gathered,) = comparison.gathered
    labels, cells = model_labels(gathered.run), _index_results(gathered.run)
    differences = {(row.model, row.test): row for row in comparison.tables["associations"]}
    old = [row for (label, _), row in cells.items() if label == comparison.baseline and row.about != "method"]
    deciding = _find_deciding_tests(old)
    chains = _list_chains(comparison.baseline, list(labels.values()), comparison.checkpoints)
    asked = [(label, chain, row) for label, chain in chains for row in old]
    family = sum(
        row.test in deciding and _has_interval(differences.get((label, row.test)), identical=False)
        for label, _, row in asked
    )
    calibration, made = Calibration(gathered.run), []
    for label, chain, row in asked:
        results = [result for checkpoint in chain if (result := cells.get((checkpoint, row.test))) is not None]
        new, difference = _get_unmeasured(results, chain), differences.get((label, row.test))
        plain = _judge_without_interval(
            comparison.baseline, label, row, new, difference, MARGIN if margin is None else margin, alpha
        )
        plain = dataclasses.replace(plain, decides=row.test in deciding)
        both = None if new is None or not _has_interval(difference) else calibration.calibrate(*results)
        if margin is None and both is not None and not has_scale(row.metric):
            reason = f"the metric {row.metric} declares no scale; give --margin in its own units"
            made.append(dataclasses.replace(plain, reason=reason))
        else:
            made.append(_judge_interval(plain, both, family) if isinstance(both, CalibratedTables) else plain)
    return tuple(made)


def _get_unmeasured(results: Sequence[Result], chain: Sequence[str]) -> Result | None:
    """Return the first result after the baseline that was not measured, else the last; None if one is missing."""
    if len(results) < len(chain):
        return None
    return next((result for result in results[1:] if result.status != "measured"), results[-1])


def measure_points(comparison: Comparison, alpha: float) -> tuple[SeriesPoint, ...]:
    """Measure the growth at each checkpoint of a series since the first, with simultaneous intervals.

    Parameters
    ----------
    comparison : Comparison
        Series with verdicts.
    alpha : float
        Probability that any interval of a deciding test misses, over all later checkpoints (Bonferroni).

    Returns
    -------
    tuple of SeriesPoint
        Growth is over the words that the checkpoint shares with the first.
    """
    (gathered,) = comparison.gathered
    cells, calibration = _index_results(gathered.run), Calibration(gathered.run)
    family = max(sum(verdict.decides and verdict.growth is not None for verdict in comparison.verdicts), 1)
    confidence = 1.0 - alpha / (family * (len(comparison.checkpoints) - 1))
    points = []
    for verdict in comparison.verdicts:
        if verdict.growth is None or verdict.effect_baseline is None or verdict.effect_model is None:
            continue
        sign = -1.0 if verdict.direction == "negative" else 1.0
        line = sign * np.linspace(verdict.effect_baseline, verdict.effect_model, len(comparison.checkpoints))
        first = cells[comparison.baseline, verdict.test]
        for step, label in enumerate(comparison.checkpoints):
            both = calibration.calibrate(first, cells[label, verdict.test])
            if isinstance(both, CalibratedTables):
                one = _compare_calibrated(both, confidence, verdict.direction)  # type: ignore[arg-type]
                old, new, growth = sign * one.old, sign * one.new, one.growth
                points.append(
                    SeriesPoint(
                        verdict.test, verdict.title, label, step, new, growth.value, growth.low, growth.high,
                        float(line[step]) - old, verdict.decides,
                    )
                )  # fmt: skip
    return tuple(points)


def _find_deciding_tests(rows: Sequence[Result]) -> set[str]:
    """Find the form of each question that decides: the word test, else the first that was measured."""
    forms = group_pairs((row.question_or_item, row) for row in rows)
    return {min(own, key=_rank_form).test for own in forms.values()}


def _rank_form(row: Result) -> tuple[bool, bool, bool]:
    return row.status != "measured", row.level == "sentence", row.test != row.question_or_item


def _has_interval(row: AssociationDifference | None, *, identical: bool = True) -> bool:
    return row is not None and row.interval_low is not None and (identical or not row.identical)


_DIRECTIONS = {1: "positive", -1: "negative"}


def _judge_without_interval(
    baseline: str,
    label: str,
    old: Result,
    new: Result | None,
    difference: AssociationDifference | None,
    margin: float,
    alpha: float,
) -> Verdict:
    """Make a verdict without an interval, with the reason."""
    outcome: VerdictOutcome = "inconclusive"
    reason = None if difference is None else difference.reason
    if new is None or new.status != "measured":
        outcome = "missing" if old.status == "measured" else "not_measured"
        reason = "not measured on the new model" if new is None else f"{new.status}: {new.reason}"
    elif old.status != "measured":
        reason = f"{old.status} on {baseline}: {old.reason}"
    effects = old.calibrated_difference, None if new is None else new.calibrated_difference
    cosines = {"cosine_difference_baseline": old.cosine_difference, "cosine_sd_baseline": old.cosine_sd}
    if difference is not None:
        cosines = copy_fields(difference, *cosines, "cosine_difference_model", "cosine_sd_model")
    return Verdict(
        old.test,
        format_label(old),
        baseline,
        label,
        outcome,
        reason,
        *effects,
        margin,
        alpha,
        unit="calibrated difference" if has_scale(old.metric) else old.metric,
        question=old.question_or_item,
        topic=old.topic,
        direction=_DIRECTIONS.get(old.direction),
        d_baseline=old.word_effect,
        d_model=None if new is None else new.word_effect,
        **cosines,
    )


def _judge_interval(plain: Verdict, both: CalibratedTables, family: int) -> Verdict:
    direction = plain.direction
    assert direction in ("positive", "negative", None)
    confidence = 1.0 - plain.alpha / (2 * max(family, 1))
    found = _compare_calibrated(both, confidence, direction, plain.margin)  # type: ignore[arg-type]
    return dataclasses.replace(
        plain,
        outcome=found.verdict,
        reason=_explain(found, plain.margin, directed=direction is not None),
        effect_baseline=found.old,
        effect_model=found.new,
        growth=found.growth.value,
        low=found.growth.low,
        high=found.growth.high,
        reversal=found.reversal.value,
        reversal_low=found.reversal.low,
        reversal_high=found.reversal.high,
        power=None if found.power is None else found.power.at_twice_margin,
        detectable=None if found.power is None else found.power.detectable,
        family=None if found.identical or not plain.decides else family,
        identical=found.identical,
    )


def _explain(difference: ModelDifference, margin: float, *, directed: bool) -> str | None:
    """Return why there is no interval, or why the verdict is not that of the interval."""
    missing_reason = difference.growth.missing_reason or difference.reversal.missing_reason
    if missing_reason:
        return missing_reason
    if (
        difference.corrected is not None
        and difference.corrected.low is not None
        and difference.corrected.high is not None
    ):
        return (
            "a few words change far more than the others; corrected for this skewness, the interval of the growth is "
            f"[{difference.corrected.low:.2f}, {difference.corrected.high:.2f}]"
        )
    if difference.verdict != "inconclusive":
        return None
    return explain_inconclusive(difference.growth, difference.reversal, margin, directed=directed)


INTERVAL_LABELS = ("interval contains zero", "interval excludes zero", "so does the simultaneous interval")
MEANING_OF_DIFFERENCES = (
    "A difference is the calibrated difference on the other model minus that on the first, over the words that both "
    "know. The calibrated difference is the cosine difference D divided by the SD of cosines between frequent words. "
    "The 95% interval is paired and generalizes to other target and attribute words of the same kinds. One interval in "
    "twenty excludes zero by chance. The simultaneous intervals are wider: with 95% confidence, all those of "
    "social-bias tests are correct. An interval that contains zero does not show that two models are equal."
)


def get_evidence(row: AssociationDifference) -> int:
    """Return the index in `INTERVAL_LABELS`."""
    if not _excludes_zero(row.interval_low, row.interval_high):
        return 0
    return 2 if _excludes_zero(row.simultaneous_low, row.simultaneous_high) else 1


def _excludes_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def _list_rows(comparison: Comparison) -> list[AssociationDifference]:
    """List the differences; sanity checks come last."""
    return sorted(comparison.tables["associations"], key=lambda row: row.is_check)


def _label_test(row: AssociationDifference, name: str = "") -> str:
    """Label a test, and mark a sanity check, which the simultaneous intervals do not cover."""
    label = name or f"{row.title} ({row.test})"
    return f"{label}, sanity check" if row.is_check else label


def make_difference_report(comparison: Comparison) -> Report:
    """Make the report of a comparison: verdicts, and signed differences on demand."""
    table, drawings = _make_table(comparison), Drawings(tuple(difference_figures(comparison)[:MANY_MODELS]))
    section = Section(
        "differences", "Signed differences", (Text(MEANING_OF_DIFFERENCES), table, drawings), printed=True
    )
    if comparison.points:
        trends = Section("series", "Growth at each checkpoint", tuple(_list_series_blocks(comparison)), collapsed=False)
        return make_verdict_report(comparison, [trends, section])
    if comparison.verdicts:
        return make_verdict_report(comparison, [section])
    statement = "The runs share no social-bias test, so there is nothing to judge. Differences are in the table."
    return make_comparison_report(comparison, [Statement(statement)], [section], MEANING_OF_DIFFERENCES, tables=[table])


_MOST_PANELS = 24


def _list_series_blocks(comparison: Comparison) -> Iterator[Block]:
    level = format_percent(1.0 - comparison.verdicts[0].alpha)
    yield Text(
        f"Growth since {comparison.baseline} towards the stereotype, over the words of both models. With "
        f"{level} confidence, all intervals of deciding tests are correct, over tests and checkpoints, for other words "
        "of the same kinds; they do not generalize to other training runs. The dashed line is the trend. Cosines do "
        "not depend on the number of dimensions, so checkpoints may differ in it."
    )
    yield Drawings(tuple(draw_trends(comparison)))
    columns = [
        Column(
            "title", "test", "Question of the test, and its name.", get=lambda point: f"{point.title} ({point.test})"
        ),
        Column("checkpoint", "checkpoint", "Model."),
        Column("effect", "effect", "Calibrated difference, positive towards the stereotype.", "number"),
        Column("growth", "growth", "Change since the first checkpoint.", "number"),
        Column("low", "interval", "Simultaneous interval.", "interval", lambda point: (point.low, point.high)),
        Column("trend", "trend", "Change on the least-squares line.", "number"),
    ]
    yield make_table("", columns, comparison.points)


def draw_trends(comparison: Comparison) -> list[tuple[str, Drawing]]:
    """Draw a series: one panel per deciding test, the most urgent first; empty if the runs are not a series."""
    ordered = sort_by_urgency([verdict for verdict in comparison.verdicts if verdict.decides])[:_MOST_PANELS]
    points = group_pairs((point.test, point) for point in comparison.points)
    panels = {
        f"{verdict.test}: {format_outcome(verdict.outcome)}": points[verdict.test]
        for verdict in ordered
        if verdict.test in points
    }
    if not panels:
        return []
    title = f"Growth since {comparison.baseline}, its band and trend"
    return [(title, partial(draw_series, "series", title, panels, margin=comparison.verdicts[0].margin))]


def _make_table(comparison: Comparison) -> Table:
    """Make the table of all differences; sanity checks last."""

    def format_change(row: AssociationDifference) -> str:
        return f"{format_decimal(row.difference)}{SIGNS[get_evidence(row)]}"

    columns = [
        Column("test", "Test", "Question of the test, and its name.", get=_label_test),
        Column("model", "Model", "Model that is compared with the first."),
        Column("effect_baseline", "d, old", "Effect size d on the first model.", "number"),
        Column("effect_model", "d, new", "Effect size d on the other model.", "number"),
        Column("calibrated_baseline", "calibrated, old", "Calibrated difference on the first model.", "number"),
        Column("calibrated_model", "calibrated, new", "Calibrated difference on the other model.", "number"),
        Column("difference", "difference", "Change of the calibrated difference.", get=format_change),
        Column(
            "paired",
            "95% CI, paired",
            "Interval of this difference.",
            "interval",
            attrgetter("interval_low", "interval_high"),
        ),
        Column(
            "simultaneous",
            "95% CI, simultaneous",
            "Simultaneous interval over all social-bias tests.",
            "interval",
            attrgetter("simultaneous_low", "simultaneous_high"),
        ),
        Column("words", "common words: X, Y, A, B", "Words that both models know.", get=format_word_counts),
        Column("reason", "note", "Why a number is missing.", get=lambda row: row.reason or ""),
    ]
    signs = ("* the interval excludes zero; ** so does the simultaneous one.", describe_family(comparison))
    return dataclasses.replace(make_table("", columns, _list_rows(comparison)), signs=tuple(filter(None, signs)))


def describe_family(comparison: Comparison) -> str:
    """Describe the simultaneous intervals; empty if there are none."""
    family = next((row.family for row in _list_rows(comparison) if row.family), 0)
    if not family:
        return ""
    return (
        f"The simultaneous intervals cover {format_count(family, 'difference')} in social-bias tests; tests without an "
        "interval or with identical cosines do not count."
    )


def difference_figures(comparison: Comparison) -> list[tuple[str, Drawing]]:
    """Make one figure per model: social-bias tests, then sanity checks."""
    made: list[tuple[str, Drawing]] = []
    axis = "change of the calibrated difference (95% CI)"
    for number, model in enumerate(comparison.models, start=1):
        rows = [_make_forest_row(r) for r in _list_rows(comparison) if r.model == model and r.difference is not None]
        if rows:
            title = f"{model} minus {comparison.baseline}"
            drawing = partial(draw_forest, f"difference-{number}", title, rows, axis=axis, names=INTERVAL_LABELS)
            made.append((model, drawing))
    return made


def _make_forest_row(r: AssociationDifference) -> ForestRow:
    effects = (
        f"{format_decimal(r.effect_baseline or 0.0)} on {r.baseline}, "
        f"{format_decimal(r.effect_model or 0.0)} on {r.model}"
    )
    tip = (
        f"{r.test}: {effects}; difference {format_decimal(r.difference or 0.0)}, 95% "
        f"{format_interval(r.interval_low, r.interval_high)}; words: {format_word_counts(r)}"
    )
    return ForestRow(_label_test(r), r.difference or 0.0, r.interval_low, r.interval_high, get_evidence(r), tip)


def format_word_counts(row: AssociationDifference) -> str:
    """Format the numbers of common words of X, Y, A and B."""
    return ", ".join(map(str, (row.num_targ1, row.num_targ2, row.num_attr1, row.num_attr2)))


def difference_table(comparison: Comparison) -> Table:
    """Make the table of a paper: differences from the first model with their intervals; models across."""
    caption = (
        f"Differences of calibrated differences from {comparison.baseline}, over the words that both models know, with "
        "paired 95% intervals over target and attribute words. * the interval excludes zero; ** so does the "
        f"simultaneous one. {describe_family(comparison)} An interval that contains zero does not show that two models "
        "are equal."
    )
    cells = {
        (_label_test(row, row.test), row.model): (
            Cell(format_decimal(row.difference), SIGNS[get_evidence(row)]),
            Cell(format_interval(row.interval_low, row.interval_high).replace("-", "−")),
        )
        for row in _list_rows(comparison)
    }
    return side_by_side(caption, "Test", cells, ("difference", "95%"))
