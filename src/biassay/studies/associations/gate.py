"""Whether associations about people are stronger on a new model than on the old one: a verdict for every test."""

from __future__ import annotations

import dataclasses

from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.verdicts import Outcome, Verdict, check_limits
from biassay.stats.crossed_effect import Difference, crossed_difference
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.intervals import Pair, cosines_of, pair
from biassay.studies.associations.records import Result

__all__ = ["judged", "verdicts_of"]


def verdicts_of(found: Comparison, *, margin: float, level: float) -> tuple[Verdict, ...]:
    """Of all tests about people that the first model was given, on every other model.

    All intervals hold together with a confidence of 1 - ``level``, each with 1 - ``level`` / family. Where the sign of
    an effect is in doubt, the upper end of an interval of absolute values may err as often as the whole interval
    may, not half as often. So the same interval serves both verdicts: "no worse" is wrong of any test with a
    probability of at most ``level``, and so is "worse". An interval of 1 - 2 ``level``, as is usual where one end is
    asked about, would not do.
    """
    check_limits(margin, level)
    (gathered,) = found.gathered
    labels = model_labels(gathered.run)
    cells = {(labels[model_key(row)], row.test): row for row in gathered.run.results}
    differences = {(row.model, row.test): row for row in found.tables["associations"]}
    asked = [
        (label, row)
        for label in labels.values()
        if label != found.baseline
        for row in gathered.run.results
        if labels[model_key(row)] == found.baseline and row.about != "method"
    ]
    family = sum(_has_interval(differences.get((label, row.test))) for label, row in asked)
    made = []
    for label, old in asked:
        new, difference = cells.get((label, old.test)), differences.get((label, old.test))
        plain = _plain(found.baseline, label, old, new, difference, margin, level)
        if new is None or not _has_interval(difference):
            made.append(plain)
        else:
            paired = _paired(old, new, gathered.run)
            of_d = crossed_difference(
                paired.first,
                paired.second,
                paired.sizes[0],
                paired.sizes[2],
                confidence=1.0 - level / family,
                absolute=True,
            )
            made.append(_judged(plain, of_d, family))
    return tuple(made)


def judged(difference: float, low: float, high: float, margin: float) -> Outcome:
    """The verdict on a difference of absolute effect sizes and its interval."""
    if high <= margin:
        return "no worse"
    return "worse" if low > 0.0 and difference > margin else "cannot tell"


def _has_interval(row: AssociationDifference | None) -> bool:
    return row is not None and row.interval_low is not None


def _paired(old: Result, new: Result, run: RunData) -> Pair:
    tables = cosines_of(old, run), cosines_of(new, run)
    assert tables[0] is not None  # a difference with an interval was made of both
    assert tables[1] is not None
    return pair(old, new, (tables[0], tables[1]))


def _plain(
    baseline: str,
    label: str,
    old: Result,
    new: Result | None,
    difference: AssociationDifference | None,
    margin: float,
    level: float,
) -> Verdict:
    """Without an interval: why there is none."""
    outcome: Outcome = "cannot tell"
    reason = None if difference is None else difference.reason
    if new is None or new.status != "measured":
        outcome = "lost" if old.status == "measured" else "not measured"
        reason = "not asked" if new is None else f"{new.status}: {new.reason}"
    elif old.status != "measured":
        reason = f"{old.status} on {baseline}: {old.reason}"
    effects = (None, None) if difference is None else (difference.effect_baseline, difference.effect_model)
    return Verdict(old.test, old.title, baseline, label, outcome, reason, *effects, margin, level)


def _judged(plain: Verdict, of_d: Difference, family: int) -> Verdict:
    if of_d.low is None or of_d.high is None:
        return dataclasses.replace(plain, difference=of_d.difference, reason="too few words in common for an interval")
    half = (of_d.high - of_d.low) / 2.0
    least = None if of_d.detectable is None else of_d.detectable + max(0.0, plain.margin - half)
    return dataclasses.replace(
        plain,
        outcome=judged(of_d.difference, of_d.low, of_d.high, plain.margin),
        effect_baseline=of_d.first.effect_size,
        effect_model=of_d.second.effect_size,
        difference=of_d.difference,
        low=of_d.low,
        high=of_d.high,
        detectable=least,
        family=family,
    )
