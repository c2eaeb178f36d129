"""Merge runs of association tests, compare models test by test and judge the differences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import About
from biassay.errors import UsageError
from biassay.results.comparison import CONFIDENCE, Comparison, choose_baseline
from biassay.results.differences import MARGIN, Verdict, VerdictOutcome, check_limits
from biassay.results.outcomes import Result
from biassay.results.run_data import BaseRecord, Manifest, ModelRecord, RunData, belongs_to
from biassay.results.views import ModelKey, RunGroup, model_key, model_labels, select_tests_of_run
from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.model_difference import ModelDifference, compare_tables, explain_inconclusive
from biassay.studies.associations.calibration import CalibratedPair, Calibration, has_scale
from biassay.studies.associations.contributions import find_common_words, get_cosines, measure_crossed
from biassay.studies.associations.corrections import decide_associations
from biassay.studies.associations.diagnostics import list_lost_words
from biassay.studies.associations.results import CROSSED, AssociationRecord
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.weat import label_words

__all__ = [
    "AssociationDifference",
    "compare_associations",
    "group_association_runs",
    "judge_associations",
    "merge_runs",
    "restrict_tests",
]


def restrict_tests(run: RunData, patterns: Sequence[str]) -> RunData:
    """Select tests of a run by name or pattern. What is shown does not change the family: corrections stay."""
    return select_tests_of_run(run, patterns) if patterns else run


def group_association_runs(runs: Mapping[str, RunData], *, mixed: bool = False) -> list[RunGroup]:
    """Those over texts and those over contexts, each put together."""
    over_texts = {name: run for name, run in runs.items() if run.manifest.inputs.contexts is None}
    over_contexts = {name: run for name, run in runs.items() if run.manifest.inputs.contexts is not None}
    return [merge_runs(part, mixed=mixed) for part in (over_texts, over_contexts) if part]


def merge_runs(runs: Mapping[str, RunData], *, mixed: bool = False) -> RunGroup:
    """Runs as one. What differs in protocol or stimuli is refused unless ``mixed``; then it is said.

    A model that several runs have tested with the same tests is shown once for each run, with the run's name.
    """
    differences = _list_differences(runs)
    if differences and not mixed:
        raise UsageError(
            "the runs cannot be put together: " + "; ".join(differences) + " (--mixed shows them together all the same)"
        )
    if len(runs) == 1:
        return RunGroup(next(iter(runs.values())), runs)
    alpha = min(run.manifest.settings.alpha_or_default for run in runs.values())
    named = {name: _recompute_at_level(run, alpha) for name, run in _add_run_names(runs).items()}
    models: list[ModelRecord] = []
    arrays: dict[str, NDArray[np.float64]] = {}
    for run in named.values():
        for place, record in enumerate(run.manifest.models):
            at = next(
                (i for i, known in enumerate(models) if _identify_model(known) == _identify_model(record)), len(models)
            )
            models[at : at + 1] = [_merge_records(models[at], record) if at < len(models) else record]
            arrays |= {f"{at}/{name}": array for name, array in run.arrays_of(place).items()}
    manifest = _merge_manifests(named, models, alpha)
    tables = {name: _merge_rows(named, name) for run in runs.values() for name in run.tables}
    if _changes_families(named, alpha):
        tables["decisions"] = decide_associations(manifest.settings, tables.get("results", ()))
    return RunGroup(RunData(manifest, tables, arrays), runs, tuple(differences))


def _changes_families(runs: Mapping[str, RunData], alpha: float) -> bool:
    """Do runs together correct otherwise than each alone: a model in several, rows of a paper, another level?"""
    models = [key for run in runs.values() for key in {model_key(row) for row in run.results}]
    rows = [row for run in runs.values() for row in run.results]
    levels = {run.manifest.settings.alpha_or_default for run in runs.values()}
    return len(models) > len(set(models)) or any(row.protocol in PAPER_PROTOCOLS for row in rows) or levels != {alpha}


def _recompute_at_level(run: RunData, alpha: float) -> RunData:
    """Recompute the intervals of a run, and what else follows from a level; drop those that need lost cosines."""
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
        fields: dict[str, Any] = dict.fromkeys(_INTERVAL_FIELDS) if new is None else dict(new.fields)
        if old is not None:
            changed = dataclasses.replace(old, ci_low=None, ci_high=None, power_80=None) if new is None else new.outcome
            outcomes[CROSSED] = dataclasses.replace(changed, scale=old.scale, limit=old.limit)
        outcomes = {name: dataclasses.replace(one, confidence=1.0 - alpha) for name, one in outcomes.items()}
        primary = outcomes.pop(record.outcome.test)
        return dataclasses.replace(record, outcome=primary, alternatives=outcomes, alpha=alpha, **fields)

    records = tuple(map(recompute, run.tables.get("results", ())))
    return RunData(run.manifest, {**run.tables, "results": records}, run.arrays)


_INTERVAL_FIELDS = ("cosine_ci_low", "cosine_ci_high", "calibrated_ci_low", "calibrated_ci_high")


def _identify_model(record: ModelRecord) -> tuple[object, ...]:
    return record.name, record.family, record.revision, tuple(record.settings.items())


def _merge_records(one: ModelRecord, other: ModelRecord) -> ModelRecord:
    """One model in two runs: what encoding took is that of both."""
    return dataclasses.replace(
        one,
        texts=one.texts + other.texts,
        encoded=one.encoded + other.encoded,
        seconds=round(one.seconds + other.seconds, 3),
        words_lost=tuple(sorted({*one.words_lost, *other.words_lost})),
    )


def _merge_rows(runs: Mapping[str, RunData], table: str) -> tuple[Any, ...]:
    """All rows of a table; those of one model from several runs beside each other."""
    rows = [row for run in runs.values() for row in run.tables.get(table, ())]
    first: dict[ModelKey, int] = {}
    for row in rows:
        first.setdefault(model_key(row), len(first))
    return tuple(sorted(rows, key=lambda row: first[model_key(row)]))


def _merge_manifests(runs: Mapping[str, RunData], models: Sequence[ModelRecord], alpha: float) -> Manifest:
    made = [run.manifest for run in runs.values()]
    finished = [manifest.finished for manifest in made]
    tests = tuple({(t.name, t.digest): t for manifest in made for t in manifest.inputs.tests}.values())
    return dataclasses.replace(
        made[0],
        run_id="+".join(manifest.run_id for manifest in made),
        status="complete" if all(manifest.status == "complete" for manifest in made) else "running",
        created=min(manifest.created for manifest in made),
        finished=None if None in finished else max(filter(None, finished)),
        models=tuple(models),
        settings=dataclasses.replace(made[0].settings, alpha=alpha),
        inputs=dataclasses.replace(made[0].inputs, tests=tests),
    )


def _add_run_names(runs: Mapping[str, RunData]) -> dict[str, RunData]:
    """The runs, with the name of the run at every model that another run has tested with one of the same tests."""
    seen: dict[tuple[ModelKey, str], set[str]] = {}
    for name, run in runs.items():
        for r in run.results:
            seen.setdefault((model_key(r), r.test), set()).add(name)
    shared = {(key, name) for (key, _), names in seen.items() if len(names) > 1 for name in names}
    return {name: _rename_models(run, name, {key for key, of in shared if of == name}) for name, run in runs.items()}


def _rename_models(run: RunData, name: str, keys: set[ModelKey]) -> RunData:
    def is_shared(record: ModelRecord) -> bool:
        return any(belongs_to(r, record) for r in run.results if model_key(r) in keys)

    def named(row: Any) -> Any:
        return dataclasses.replace(row, model=f"{row.model} [{name}]") if model_key(row) in keys else row

    models = tuple(
        dataclasses.replace(record, name=f"{record.name} [{name}]") if is_shared(record) else record
        for record in run.manifest.models
    )
    tables = {table: tuple(map(named, rows)) for table, rows in run.tables.items()}
    return RunData(dataclasses.replace(run.manifest, models=models), tables, run.arrays)


def _list_differences(runs: Mapping[str, RunData]) -> list[str]:
    """In what the runs differ that changes what their numbers mean."""
    found = []
    settings = {name: run.manifest.settings for name, run in runs.items()}
    for what, field in _COMPARED_SETTINGS.items():
        found += _describe_difference(what, {name: getattr(of, field) for name, of in settings.items()})
    over = {name: run.manifest.inputs.contexts for name, run in runs.items()}
    found += _describe_difference("contexts", {name: of.digest for name, of in over.items() if of is not None})
    digests: dict[str, dict[str, str]] = {}
    for name, run in runs.items():
        for r in run.results:
            digests.setdefault(r.test, {})[name] = r.test_digest
    changed = {test: of for test, of in digests.items() if len(set(of.values())) > 1}
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        where = dict.fromkeys(name for of in changed.values() for name in of)
        named = ", ".join(list(changed)[:5])
        found.append(f"these tests have the same name and other texts: {named}{more} (in {', '.join(where)})")
    return found


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


def _describe_difference(what: str, values: Mapping[str, object]) -> list[str]:
    if len(set(values.values())) < 2:
        return []
    return [f"{what} is " + ", ".join(f"{value} in {name}" for name, value in values.items())]


_LARGE_CHANGE = 0.25  # relative change of the cosine SD that is reported


@dataclass(frozen=True)
class AssociationDifference(BaseRecord):
    """A test on the first model and on another, over the words that both know.

    ``effect_...`` are effect sizes d by word, ``D_...`` cosine differences, ``cosine_sd_...`` standard deviations of
    cosines between frequent words, and ``calibrated_...`` the former divided by the latter. ``difference`` is the
    calibrated difference of the other model minus that of the first, positive if X is closer to A. ``interval_...`` is
    paired and crossed: the same words, of targets and of attributes, are a sample for both. ``simultaneous_...`` is
    wider: with the confidence of the comparison all ``family`` intervals of social-bias tests on all models hold
    together. Sanity checks and identical tables do not count. None: not computed, for the reason given.
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
    D_baseline: float | None = None
    D_model: float | None = None
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
        return self.about == "method"


def compare_associations(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Calibrated differences over the words that both models know; texts and contexts are not compared."""
    if len({run.manifest.inputs.contexts is None for run in runs.values()}) > 1:
        raise UsageError(
            "associations over texts and associations over contexts cannot be compared; "
            "`biassay report` shows them on one page"
        )
    gathered = merge_runs(runs, mixed=mixed)
    labels = model_labels(gathered.run)
    first = choose_baseline(list(labels.values()), baseline)
    cells = {(labels[model_key(r)], r.test): r for r in gathered.run.results}
    pairs = [
        (first, label, cells[first, test], cells[label, test])
        for label in labels.values()
        if label != first
        for test in dict.fromkeys(r.test for r in gathered.run.results)
        if (first, test) in cells and (label, test) in cells
    ]
    if not pairs:
        raise UsageError("the models have no test in common")
    calibration = Calibration(gathered.run)
    rows = _add_simultaneous_intervals([_compare_test(*asked, calibration) for asked in pairs])
    lost = [f"{line}; compared over the words that both know" for line in list_lost_words(gathered.run)]
    return Comparison(
        "associations",
        first,
        {"associations": rows},
        notes=(*gathered.differences, *_list_unshared(cells, labels.values())),
        results=gathered.run.results,
        gathered=(gathered,),
        remarks=(*lost, *_warn_changed_scales(rows, cells)),
    )


def _list_unshared(cells: Mapping[tuple[str, str], Result], labels: Iterable[str]) -> list[str]:
    """Tests that not all models have: they are not compared."""
    tests = dict.fromkeys(test for _, test in cells)
    apart = [test for test in tests if not all((label, test) in cells for label in labels)]
    return [f"tests that not all models have: {', '.join(apart)}"] if apart else []


def _compare_test(
    first: str, label: str, one: Result, other: Result, calibration: Calibration
) -> tuple[AssociationDifference, CalibratedPair | None]:
    """With its own interval, and the tables that it is computed from."""
    found = AssociationDifference(
        one.test, one.title, first, label, one.word_effect, other.word_effect, None, about=one.about
    )
    measured = {first: one, label: other}
    unmeasured = [name for name, result in measured.items() if result.effect_size is None]
    if unmeasured:
        return dataclasses.replace(found, reason=f"not measured on {' and '.join(unmeasured)}"), None
    if one.scale != "d":
        return _compare_scores(found, one, other), None
    both = calibration.calibrate(one, other)
    if isinstance(both, str):
        unknown = None in (one.word_effect, other.word_effect)
        reason = "no interval, because the words of the texts are unknown" if unknown else both
        return dataclasses.replace(found, reason=reason), None
    compared = _compare_calibrated(both, CONFIDENCE)
    D = [crossed_test(table, both.sizes[0], both.sizes[2]).D for table in both.cosines]
    effects = [crossed_effect(table, both.sizes[0], both.sizes[2]).effect_size for table in both.cosines]
    found = dataclasses.replace(
        found,
        effect_baseline=_none_if_nan(effects[0]),
        effect_model=_none_if_nan(effects[1]),
        difference=compared.growth.value,
        interval_low=compared.growth.low,
        interval_high=compared.growth.high,
        calibrated_baseline=compared.old,
        calibrated_model=compared.new,
        D_baseline=D[0],
        D_model=D[1],
        cosine_sd_baseline=None if both.scale is None else both.scale.old,
        cosine_sd_model=None if both.scale is None else both.scale.new,
        identical=compared.identical,
        **_make_size_fields(both.sizes),
    )
    if found.interval_low is None:
        return dataclasses.replace(found, reason="too few words in common for an interval"), None
    return found, both


def _compare_calibrated(both: CalibratedPair, confidence: float) -> ModelDifference:
    """In the direction of the words, whatever the stereotype predicts."""
    return compare_tables(
        both.old, both.new, both.sizes[0], both.sizes[2],
        direction="positive", margin=1.0, confidence=confidence,
        scale_variance=both.scale_variance, tolerance=both.tolerance,
    )  # fmt: skip


def _compare_scores(found: AssociationDifference, one: Result, other: Result) -> AssociationDifference:
    """A metric that gives one score of four sets: the difference is in its own units, over the words of each model."""
    words = find_common_words(one, other)
    reason = f"the metric {one.metric} gives one score of four sets, which has no interval"
    if any(len(words[role]) < len(r.associations[role]) for r in (one, other) for role in r.associations):
        reason += "; the words are not all the same"
    effects = one.word_effect, other.word_effect
    first, second = effects if None not in effects else (one.effect_size, other.effect_size)
    return dataclasses.replace(
        found,
        effect_baseline=first,
        effect_model=second,
        reason=reason,
        difference=(second or 0.0) - (first or 0.0),
        **_make_size_fields((len(words["X"]), len(words["Y"]), len(words["A"]), len(words["B"]))),
    )


def _make_size_fields(sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), sizes, strict=True))


def _add_simultaneous_intervals(
    found: list[tuple[AssociationDifference, CalibratedPair | None]],
) -> tuple[AssociationDifference, ...]:
    """With simultaneous intervals: the differences of a family share the error that they are allowed."""
    family = sum(not row.is_check and not row.identical for row, both in found if both is not None)
    return tuple(row if both is None or row.is_check else _widen_interval(row, both, family) for row, both in found)


def _widen_interval(row: AssociationDifference, both: CalibratedPair, family: int) -> AssociationDifference:
    if row.identical:
        return dataclasses.replace(row, simultaneous_low=0.0, simultaneous_high=0.0)
    growth = _compare_calibrated(both, 1.0 - (1.0 - CONFIDENCE) / family).growth
    return dataclasses.replace(row, simultaneous_low=growth.low, simultaneous_high=growth.high, family=family)


def _warn_changed_scales(
    rows: Iterable[AssociationDifference], cells: Mapping[tuple[str, str], Result]
) -> Iterator[str]:
    """Warn of models on which the spread of cosines has changed much."""
    told = set[tuple[str, str]]()
    for row in rows:
        old, new, level = row.cosine_sd_baseline, row.cosine_sd_model, cells[row.baseline, row.test].level
        if old and new and max(old, new) >= (1.0 + _LARGE_CHANGE) * min(old, new) and (row.model, level) not in told:
            told.add((row.model, level))
            yield (
                f"{row.model}: the SD of cosines between frequent words ({level} tests) is {new:.3f}, on "
                f"{row.baseline} {old:.3f}; differences are divided by it, so read D beside them"
            )


def _none_if_nan(number: float) -> float | None:
    return None if math.isnan(number) else number


def judge_associations(found: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
    """Judge all social-bias tests of the first model on every other model.

    Parameters
    ----------
    found : Comparison
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
    (gathered,) = found.gathered
    labels = model_labels(gathered.run)
    cells = {(labels[model_key(row)], row.test): row for row in gathered.run.results}
    differences = {(row.model, row.test): row for row in found.tables["associations"]}
    old = [row for (label, _), row in cells.items() if label == found.baseline and row.about != "method"]
    deciding = _find_deciding_tests(old)
    asked = [(label, row) for label in labels.values() if label != found.baseline for row in old]
    family = sum(
        row.test in deciding and _has_interval(differences.get((label, row.test)), identical=False)
        for label, row in asked
    )
    calibration, made = Calibration(gathered.run), []
    for label, row in asked:
        new, difference = cells.get((label, row.test)), differences.get((label, row.test))
        plain = _judge_without_interval(
            found.baseline, label, row, new, difference, MARGIN if margin is None else margin, alpha
        )
        plain = dataclasses.replace(plain, decides=row.test in deciding)
        both = None if new is None or not _has_interval(difference) else calibration.calibrate(row, new)
        if margin is None and both is not None and not has_scale(row.metric):
            reason = f"the metric {row.metric} declares no scale; give --margin in its own units"
            made.append(dataclasses.replace(plain, reason=reason))
        else:
            made.append(_judge_interval(plain, both, family) if isinstance(both, CalibratedPair) else plain)
    return tuple(made)


def _find_deciding_tests(rows: Sequence[Result]) -> set[str]:
    """The form of each question that decides: that of words, else the first that was measured."""
    forms: dict[str, list[Result]] = {}
    for row in rows:
        forms.setdefault(row.asked_question, []).append(row)
    return {min(own, key=_rank_form).test for own in forms.values()}


def _rank_form(row: Result) -> tuple[bool, bool, bool]:
    return row.status != "measured", row.level == "sentence", row.test != row.asked_question


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
    """The verdict without an interval, and why there is none."""
    outcome: VerdictOutcome = "inconclusive"
    reason = None if difference is None else difference.reason
    if new is None or new.status != "measured":
        outcome = "missing" if old.status == "measured" else "not_measured"
        reason = "not measured on the new model" if new is None else f"{new.status}: {new.reason}"
    elif old.status != "measured":
        reason = f"{old.status} on {baseline}: {old.reason}"
    effects = old.calibrated_difference, None if new is None else new.calibrated_difference
    return Verdict(
        old.test,
        old.title,
        baseline,
        label,
        outcome,
        reason,
        *effects,
        margin,
        alpha,
        unit="calibrated difference" if has_scale(old.metric) else old.metric,
        question=old.asked_question,
        topic=old.topic,
        direction=_DIRECTIONS.get(old.direction),
        d_baseline=old.word_effect,
        d_model=None if new is None else new.word_effect,
        D_baseline=old.cosine_difference if difference is None else difference.D_baseline,
        D_model=None if difference is None else difference.D_model,
        cosine_sd_baseline=old.cosine_sd if difference is None else difference.cosine_sd_baseline,
        cosine_sd_model=None if difference is None else difference.cosine_sd_model,
    )


def _judge_interval(plain: Verdict, both: CalibratedPair, family: int) -> Verdict:
    direction = plain.direction
    assert direction in ("positive", "negative", None)
    found = compare_tables(
        both.old,
        both.new,
        both.sizes[0],
        both.sizes[2],
        direction=direction,  # type: ignore[arg-type]
        margin=plain.margin,
        confidence=1.0 - plain.alpha / (2 * max(family, 1)),
        scale_variance=both.scale_variance,
        tolerance=both.tolerance,
    )
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


def _explain(found: ModelDifference, margin: float, *, directed: bool) -> str | None:
    """Return why there is no interval, or why the verdict is not that of the interval."""
    if found.growth.low is None:
        return "too few words in common for an interval"
    if found.corrected is not None and found.corrected.low is not None and found.corrected.high is not None:
        return (
            "words change by very unequal amounts: corrected for skewness, the growth lies between "
            f"{found.corrected.low:.2f} and {found.corrected.high:.2f}"
        )
    if found.verdict != "inconclusive":
        return None
    return explain_inconclusive(found.growth, found.reversal, margin, directed=directed)
