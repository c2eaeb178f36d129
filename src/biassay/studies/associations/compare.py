"""How much more of each association the other models have than the first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from biassay.errors import UsageError
from biassay.results.comparison import CONFIDENCE, Comparison, choose_baseline
from biassay.results.data import Record, RunData
from biassay.results.labels import model_key, model_labels
from biassay.stats.crossed_effect import crossed_difference
from biassay.stimuli.model import About
from biassay.studies.associations.gathering import put_together
from biassay.studies.associations.intervals import Pair, cosines_of, pair, words_in_common
from biassay.studies.associations.records import Result
from biassay.studies.associations.words_lost import lost_lines

__all__ = ["AssociationDifference", "compare_associations"]


@dataclass(frozen=True)
class AssociationDifference(Record):
    """A test on the first model and on another: effect sizes by word over the words both know, and their difference.

    ``interval_...`` is paired and crossed: the same words, of targets and of attributes, are a sample for both.
    ``simultaneous_...`` is wider: with the confidence of the comparison all intervals of a family hold together, which
    are those of tests about people on all models compared, ``family`` of them. A check of the method stands outside,
    and so does a test whose cosines are the same on both models. None: not to be said, for the reason given.
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
    num_attr1: int = 0
    num_attr2: int = 0
    about: About | None = None
    family: int | None = None

    @property
    def is_check(self) -> bool:
        return self.about == "method"

    @property
    def is_none(self) -> bool:
        """Whether the cosines are the same: no other words would show a difference."""
        return self.difference == self.interval_low == self.interval_high == 0.0


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
        {"associations": _together([_difference(*asked, gathered.run) for asked in pairs])},
        notes=(*gathered.differences, *_unshared(cells, labels.values())),
        results=gathered.run.results,
        gathered=(gathered,),
        remarks=tuple(f"{line}; compared over the words that both know" for line in lost_lines(gathered.run)),
    )


def _unshared(cells: Mapping[tuple[str, str], Result], labels: Iterable[str]) -> list[str]:
    """Tests that not all models have: they are not compared."""
    tests = dict.fromkeys(test for _, test in cells)
    apart = [test for test in tests if not all((label, test) in cells for label in labels)]
    return [f"tests that not all models have: {', '.join(apart)}"] if apart else []


def _difference(
    first: str, label: str, one: Result, other: Result, run: RunData
) -> tuple[AssociationDifference, Pair | None]:
    """With its own interval, and what that is of."""
    found = AssociationDifference(
        one.test, one.title, first, label, one.effect_size_by_word, other.effect_size_by_word, None, about=one.about
    )
    measured = {first: one, label: other}
    unmeasured = [name for name, result in measured.items() if result.effect_size is None]
    if unmeasured:
        return dataclasses.replace(found, reason=f"not measured on {' and '.join(unmeasured)}"), None
    tables = [cosines_of(result, run) for result in measured.values()]
    if tables[0] is None or tables[1] is None:
        return _without_interval(found, one, other, [n for n, t in zip(measured, tables, strict=True) if t is None])
    both = pair(one, other, (tables[0], tables[1]))
    if not all(both.sizes):
        return dataclasses.replace(found, reason="no words in common"), None
    if not (np.isfinite(both.first).all() and np.isfinite(both.second).all()):
        return dataclasses.replace(found, reason="not all cosines of words are numbers; measure again"), None
    of_d = crossed_difference(both.first, both.second, both.sizes[0], both.sizes[2], confidence=CONFIDENCE)
    found = dataclasses.replace(
        found,
        effect_baseline=_known(of_d.first.effect_size),
        effect_model=_known(of_d.second.effect_size),
        difference=_known(of_d.difference),
        interval_low=of_d.low,
        interval_high=of_d.high,
        **_sizes(both.sizes),
    )
    if found.difference is None:
        return dataclasses.replace(found, reason="all words in common have the same association"), None
    if found.interval_low is None:
        return dataclasses.replace(found, reason="too few words in common for an interval"), None
    return found, both


def _without_interval(
    found: AssociationDifference, one: Result, other: Result, lacking: list[str]
) -> tuple[AssociationDifference, None]:
    """Of results whose cosines of words were not kept: each effect size is over the words that its model knows."""
    effects = one.effect_size_by_word, other.effect_size_by_word
    words = words_in_common(one, other)
    if one.unit != "d":
        reason = f"the metric {one.metric} gives one score of four sets, which has no interval"
    elif None in effects:
        reason = "the words of the texts are not known: there is no interval"
    else:
        reason = f"no cosines of words were kept of {' and '.join(lacking)}: measure again for an interval"
    if any(len(words[role]) < len(r.associations[role]) for r in (one, other) for role in r.associations):
        reason += "; the words are not all the same"
    first, second = effects if None not in effects else (one.effect_size, other.effect_size)
    return dataclasses.replace(
        found,
        effect_baseline=first,
        effect_model=second,
        reason=reason,
        difference=(second or 0.0) - (first or 0.0),
        **_sizes((len(words["X"]), len(words["Y"]), len(words["A"]), len(words["B"]))),
    ), None


def _sizes(sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), sizes, strict=True))


def _together(found: list[tuple[AssociationDifference, Pair | None]]) -> tuple[AssociationDifference, ...]:
    """With simultaneous intervals: the differences of a family share the error that they are allowed."""
    family = sum(_in_family(row) for row, both in found if both is not None)
    return tuple(row if both is None or row.is_check else _wider(row, both, family) for row, both in found)


def _in_family(row: AssociationDifference) -> bool:
    return not row.is_check and not row.is_none


def _wider(row: AssociationDifference, both: Pair, family: int) -> AssociationDifference:
    if row.is_none:
        return dataclasses.replace(row, simultaneous_low=0.0, simultaneous_high=0.0)
    confidence = 1.0 - (1.0 - CONFIDENCE) / family
    found = crossed_difference(both.first, both.second, both.sizes[0], both.sizes[2], confidence=confidence)
    return dataclasses.replace(row, simultaneous_low=found.low, simultaneous_high=found.high, family=family)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
