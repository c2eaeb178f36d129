"""How much more of each association the other models have than the first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.results.comparison import CONFIDENCE, Comparison, choose_baseline
from biassay.results.data import Record, RunData
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.gathering import put_together
from biassay.studies.associations.intervals import paired_difference
from biassay.studies.associations.records import Result

__all__ = ["AssociationDifference", "compare_associations"]


@dataclass(frozen=True)
class AssociationDifference(Record):
    """A test on the first model and on another: effect sizes by word over the words both know, and their difference.

    ``interval_...`` is paired: the same words are drawn for both. ``simultaneous_...`` is wider: with the confidence of
    the comparison all of its intervals hold together. None: not to be said, for the reason given.
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
    num_targ1: int = 0
    num_targ2: int = 0


def compare_associations(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Effect sizes by word, over the words that both models know; texts and contexts are not compared."""
    if len({run.manifest.inputs.contexts is None for run in runs.values()}) > 1:
        raise UsageError(
            "associations over texts and associations over contexts cannot be compared; "
            "`biassay report` shows them on one page"
        )
    gathered = put_together(runs, mixed=mixed)
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
    return Comparison(
        "associations",
        first,
        {"associations": tuple(_difference(*pair, of=len(pairs)) for pair in pairs)},
        notes=(*gathered.differences, *_unshared(cells, labels.values())),
        results=gathered.run.results,
        gathered=(gathered,),
    )


def _unshared(cells: Mapping[tuple[str, str], Result], labels: Iterable[str]) -> list[str]:
    """Tests that not all models have: they are not compared."""
    tests = dict.fromkeys(test for _, test in cells)
    apart = [test for test in tests if not all((label, test) in cells for label in labels)]
    return [f"tests that not all models have: {', '.join(apart)}"] if apart else []


def _difference(first: str, label: str, one: Result, other: Result, *, of: int) -> AssociationDifference:
    """``of`` differences in all share the error that simultaneous intervals are allowed."""
    asked = (one.test, one.title, first, label)
    unmeasured = [name for name, result in ((first, one), (label, other)) if result.effect_size is None]
    if one.unit != "d" and not unmeasured:
        return AssociationDifference(
            *asked,
            one.effect_size,
            other.effect_size,
            f"the metric {one.metric} has no interval",
            difference=(other.effect_size or 0.0) - (one.effect_size or 0.0),
        )
    paired = paired_difference(one, other)
    if unmeasured or paired is None:
        reason = f"not measured on {' and '.join(unmeasured)}" if unmeasured else "no words in common that have numbers"
        return AssociationDifference(*asked, one.effect_size_by_word, other.effect_size_by_word, reason)
    found, num_x, num_y = paired
    if math.isnan(found.difference):
        return AssociationDifference(
            *asked,
            _known(found.first.effect_size),
            _known(found.second.effect_size),
            "all words in common have the same association",
        )
    wider = paired_difference(one, other, confidence=1.0 - (1.0 - CONFIDENCE) / of)
    return AssociationDifference(
        *asked,
        found.first.effect_size,
        found.second.effect_size,
        None if found.low is not None else "too few words in common for an interval",
        difference=found.difference,
        interval_low=found.low,
        interval_high=found.high,
        simultaneous_low=wider[0].low if wider else None,
        simultaneous_high=wider[0].high if wider else None,
        num_targ1=num_x,
        num_targ2=num_y,
    )


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
