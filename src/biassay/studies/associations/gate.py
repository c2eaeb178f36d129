"""Whether associations about people are stronger on a new model than on the old one: a verdict for every test."""

from __future__ import annotations

import dataclasses

from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.verdicts import GROWTH, Outcome, Verdict, check_limits, judged
from biassay.stats.crossed_effect import crossed_difference
from biassay.stats.stronger import TwoModels
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.intervals import Pair, cosines_of, pair
from biassay.studies.associations.records import Result

__all__ = ["verdicts_of"]

_PAIRS = 150
"""As many as do: what the words at hand say about others varies more."""


def verdicts_of(found: Comparison, *, margin: float, level: float) -> tuple[Verdict, ...]:
    """Of all tests about people that the first model was given, on every other model.

    All intervals hold together with a confidence of 1 - ``level``, each with 1 - ``level`` / family. Where the sign of
    an effect is in doubt, the upper end of an interval of absolute values may err as often as the whole interval
    may, not half as often. So the same interval serves both verdicts: "no worse" is wrong of any test with a
    probability of at most ``level``, and so is "worse". An interval of 1 - 2 ``level``, as is usual where one end is
    asked about, would not do. A test whose cosines are the same cannot err, and is not in the family.
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
    intervals = [differences[label, row.test] for label, row in asked if (label, row.test) in differences]
    family = sum(_has_interval(row) and not row.is_none for row in intervals)
    made = []
    for label, old in asked:
        new, difference = cells.get((label, old.test)), differences.get((label, old.test))
        plain = _plain(found.baseline, label, old, new, difference, margin, level)
        if new is None or not _has_interval(difference):
            made.append(plain)
        else:
            made.append(_judged(plain, _paired(old, new, gathered.run), family))
    return tuple(made)


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
    effects = old.effect_size_by_word, None if new is None else new.effect_size_by_word
    return Verdict(old.test, old.title, baseline, label, outcome, reason, *effects, margin, level)


def _judged(plain: Verdict, both: Pair, family: int) -> Verdict:
    words, confidence = (both.sizes[0], both.sizes[2]), 1.0 - plain.level / max(family, 1)
    found = crossed_difference(both.first, both.second, *words, confidence=confidence, absolute=True)
    if found.low is None or found.high is None:
        return dataclasses.replace(plain, difference=found.difference, reason="too few words in common for an interval")
    plain = dataclasses.replace(
        plain,
        outcome=judged(found.difference, found.low, found.high, plain.margin),
        effect_baseline=found.first.effect_size,
        effect_model=found.second.effect_size,
        difference=found.difference,
        low=found.low,
        high=found.high,
    )
    if not family or found.difference == found.low == found.high == 0.0:
        return plain
    plain = dataclasses.replace(plain, family=family)
    seen = TwoModels.of(both.first, both.second, *words, confidence=confidence, margin=plain.margin, pairs=_PAIRS)
    return plain if seen is None else dataclasses.replace(plain, power=seen.power(GROWTH), detectable=seen.smallest())
