"""Verdicts on association tests: did an association move towards the stereotype from the old model to the new one?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from biassay.results.comparison import Comparison
from biassay.results.labels import model_key, model_labels
from biassay.results.verdicts import MARGIN, Outcome, Verdict, check_limits
from biassay.stats.model_difference import ModelDifference, compare_tables, explain_inconclusive
from biassay.studies.associations.calibration import CalibratedPair, Calibration
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.records import Result
from biassay.studies.associations.scales import has_scale

__all__ = ["verdicts_of"]


def verdicts_of(found: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
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
    deciding = _deciding_tests(old)
    asked = [(label, row) for label in labels.values() if label != found.baseline for row in old]
    family = sum(
        row.test in deciding and _has_interval(differences.get((label, row.test)), identical=False)
        for label, row in asked
    )
    calibration, made = Calibration(gathered.run), []
    for label, row in asked:
        new, difference = cells.get((label, row.test)), differences.get((label, row.test))
        plain = _plain(found.baseline, label, row, new, difference, MARGIN if margin is None else margin, alpha)
        plain = dataclasses.replace(plain, decides=row.test in deciding)
        both = None if new is None or not _has_interval(difference) else calibration.calibrate(row, new)
        if margin is None and both is not None and not has_scale(row.metric):
            reason = f"the metric {row.metric} declares no scale; give --margin in its own units"
            made.append(dataclasses.replace(plain, reason=reason))
        else:
            made.append(_judged(plain, both, family) if isinstance(both, CalibratedPair) else plain)
    return tuple(made)


def _deciding_tests(rows: Sequence[Result]) -> set[str]:
    """The form of each question that decides: that of words, else the first that was measured."""
    forms: dict[str, list[Result]] = {}
    for row in rows:
        forms.setdefault(row.question, []).append(row)
    return {min(own, key=_rank).test for own in forms.values()}


def _rank(row: Result) -> tuple[bool, bool, bool]:
    return row.status != "measured", row.level == "sentence", row.test != row.question


def _has_interval(row: AssociationDifference | None, *, identical: bool = True) -> bool:
    return row is not None and row.interval_low is not None and (identical or not row.identical)


def _plain(
    baseline: str,
    label: str,
    old: Result,
    new: Result | None,
    difference: AssociationDifference | None,
    margin: float,
    alpha: float,
) -> Verdict:
    """The verdict without an interval, and why there is none."""
    outcome: Outcome = "inconclusive"
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
        question=old.question,
        topic=old.topic or "",
        direction=old.direction,
        d_baseline=old.effect_size_by_word,
        d_model=None if new is None else new.effect_size_by_word,
        D_baseline=old.D if difference is None else difference.D_baseline,
        D_model=None if difference is None else difference.D_model,
        cosine_sd_baseline=old.cosine_sd if difference is None else difference.cosine_sd_baseline,
        cosine_sd_model=None if difference is None else difference.cosine_sd_model,
    )


def _judged(plain: Verdict, both: CalibratedPair, family: int) -> Verdict:
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
        power=None if found.power is None else found.power.of_twice_margin,
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
