"""How much more of each association the other models have than the first."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from biassay.errors import UsageError
from biassay.results.comparison import CONFIDENCE, Comparison, choose_baseline
from biassay.results.data import Record, RunData
from biassay.results.labels import model_key, model_labels
from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.model_difference import ModelDifference, compare_tables
from biassay.stimuli.model import About
from biassay.studies.associations.calibration import CalibratedPair, Calibration
from biassay.studies.associations.gathering import put_together
from biassay.studies.associations.intervals import words_in_common
from biassay.studies.associations.records import Result
from biassay.studies.associations.words_lost import lost_lines

__all__ = ["AssociationDifference", "compare_associations"]

_MUCH = 0.25  # relative change of the cosine SD that is reported


@dataclass(frozen=True)
class AssociationDifference(Record):
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
    calibration = Calibration(gathered.run)
    rows = _together([_difference(*asked, calibration) for asked in pairs])
    lost = [f"{line}; compared over the words that both know" for line in lost_lines(gathered.run)]
    return Comparison(
        "associations",
        first,
        {"associations": rows},
        notes=(*gathered.differences, *_unshared(cells, labels.values())),
        results=gathered.run.results,
        gathered=(gathered,),
        remarks=(*lost, *_changed_scales(rows, cells)),
    )


def _unshared(cells: Mapping[tuple[str, str], Result], labels: Iterable[str]) -> list[str]:
    """Tests that not all models have: they are not compared."""
    tests = dict.fromkeys(test for _, test in cells)
    apart = [test for test in tests if not all((label, test) in cells for label in labels)]
    return [f"tests that not all models have: {', '.join(apart)}"] if apart else []


def _difference(
    first: str, label: str, one: Result, other: Result, calibration: Calibration
) -> tuple[AssociationDifference, CalibratedPair | None]:
    """With its own interval, and the tables that it is computed from."""
    found = AssociationDifference(
        one.test, one.title, first, label, one.effect_size_by_word, other.effect_size_by_word, None, about=one.about
    )
    measured = {first: one, label: other}
    unmeasured = [name for name, result in measured.items() if result.effect_size is None]
    if unmeasured:
        return dataclasses.replace(found, reason=f"not measured on {' and '.join(unmeasured)}"), None
    if one.unit != "d":
        return _of_scores(found, one, other), None
    both = calibration.calibrate(one, other)
    if isinstance(both, str):
        unknown = None in (one.effect_size_by_word, other.effect_size_by_word)
        reason = "no interval, because the words of the texts are unknown" if unknown else both
        return dataclasses.replace(found, reason=reason), None
    compared = _compared(both, CONFIDENCE)
    D = [crossed_test(table, both.sizes[0], both.sizes[2]).D for table in both.cosines]
    effects = [crossed_effect(table, both.sizes[0], both.sizes[2]).effect_size for table in both.cosines]
    found = dataclasses.replace(
        found,
        effect_baseline=_known(effects[0]),
        effect_model=_known(effects[1]),
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
        **_sizes(both.sizes),
    )
    if found.interval_low is None:
        return dataclasses.replace(found, reason="too few words in common for an interval"), None
    return found, both


def _compared(both: CalibratedPair, confidence: float) -> ModelDifference:
    """In the direction of the words, whatever the stereotype predicts."""
    return compare_tables(
        both.old, both.new, both.sizes[0], both.sizes[2],
        direction="positive", margin=1.0, confidence=confidence,
        scale_variance=both.scale_variance, tolerance=both.tolerance,
    )  # fmt: skip


def _of_scores(found: AssociationDifference, one: Result, other: Result) -> AssociationDifference:
    """A metric that gives one score of four sets: the difference is in its own units, over the words of each model."""
    words = words_in_common(one, other)
    reason = f"the metric {one.metric} gives one score of four sets, which has no interval"
    if any(len(words[role]) < len(r.associations[role]) for r in (one, other) for role in r.associations):
        reason += "; the words are not all the same"
    effects = one.effect_size_by_word, other.effect_size_by_word
    first, second = effects if None not in effects else (one.effect_size, other.effect_size)
    return dataclasses.replace(
        found,
        effect_baseline=first,
        effect_model=second,
        reason=reason,
        difference=(second or 0.0) - (first or 0.0),
        **_sizes((len(words["X"]), len(words["Y"]), len(words["A"]), len(words["B"]))),
    )


def _sizes(sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), sizes, strict=True))


def _together(found: list[tuple[AssociationDifference, CalibratedPair | None]]) -> tuple[AssociationDifference, ...]:
    """With simultaneous intervals: the differences of a family share the error that they are allowed."""
    family = sum(not row.is_check and not row.identical for row, both in found if both is not None)
    return tuple(row if both is None or row.is_check else _wider(row, both, family) for row, both in found)


def _wider(row: AssociationDifference, both: CalibratedPair, family: int) -> AssociationDifference:
    if row.identical:
        return dataclasses.replace(row, simultaneous_low=0.0, simultaneous_high=0.0)
    growth = _compared(both, 1.0 - (1.0 - CONFIDENCE) / family).growth
    return dataclasses.replace(row, simultaneous_low=growth.low, simultaneous_high=growth.high, family=family)


def _changed_scales(rows: Iterable[AssociationDifference], cells: Mapping[tuple[str, str], Result]) -> Iterator[str]:
    """Warn of models on which the spread of cosines has changed much."""
    told = set[tuple[str, str]]()
    for row in rows:
        old, new, level = row.cosine_sd_baseline, row.cosine_sd_model, cells[row.baseline, row.test].level
        if old and new and max(old, new) >= (1.0 + _MUCH) * min(old, new) and (row.model, level) not in told:
            told.add((row.model, level))
            yield (
                f"{row.model}: the SD of cosines between frequent words ({level} tests) is {new:.3f}, on "
                f"{row.baseline} {old:.3f}; differences are divided by it, so read D beside them"
            )


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
