"""Rows and arrays of a search, made from what was asked and what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import Identity
from biassay.results.data import Record
from biassay.stimuli.groups import Group, Grouping
from biassay.studies.discovery.records import CurveRow, GroupRow, Scores, Task, ValidatedRow, WordRow
from biassay.studies.discovery.search import RankedWords
from biassay.studies.discovery.validation import Validation, ValidationCurve
from biassay.studies.study import Array, Event, Row

__all__ = ["CURVE_ARRAYS", "Making", "array_name"]

CURVE_ARRAYS = ("thresholds", "tp", "fp", "fn", "tn")
"""Names of the arrays of a detection curve, behind those of its group and task."""


def array_name(group: str, task: Task, name: str) -> str:
    return f"{group}/{task}/{name}"


class Making:
    """Makes what is kept of one group in one model."""

    def __init__(self, identity: Identity, grouping: Grouping, target: Group) -> None:
        self._target = target
        self._others = tuple(other.name for other in grouping.compared_with(target))
        self._pairs = tuple(pair.label for pair in grouping.constituents(target))
        self._of: dict[str, Any] = {"model": identity.name, "options": identity.options, "group": target.name}

    def events(self, validation: Validation, found: RankedWords) -> Iterator[Event]:
        """All rows and arrays of the group."""
        yield Row("groups", self._group(validation, found))
        curves: tuple[tuple[Task, ValidationCurve | None], ...]
        curves = ("ibd", validation.curve), ("eibd", validation.curve_emergent)
        for task, curve in curves:
            if curve is not None:
                yield Row("curves", self._curve(task, curve))
                for name in CURVE_ARRAYS:
                    values = np.asarray(getattr(curve.curve, name), dtype=np.float64)
                    yield Array(array_name(self._target.name, task, name), values)
        yield from (Row("validated", row) for row in self._validated(validation))
        yield from (Row("results", row) for row in self._words(found))

    def _group(self, validation: Validation, found: RankedWords) -> Record:
        own, emergent = validation.threshold, validation.threshold_emergent
        return GroupRow(
            **self._of,
            label=self._target.label,
            belongs=dict(self._target.belongs),
            other_groups=self._others,
            constituents=self._pairs,
            threshold=own.value,
            threshold_source=own.source,
            threshold_emergent=emergent.value,
            threshold_emergent_source=emergent.source,
            num_words=found.num_words,
            num_above=found.num_above,
            num_associated=found.num_associated,
            num_every=found.num_every,
            num_eibd=found.num_eibd,
            num_emergent=found.num_emergent,
        )

    def _curve(self, task: Task, found: ValidationCurve) -> Record:
        curve, at = found.curve, found.chosen
        precision = float(curve.precision[at])
        return CurveRow(
            **self._of,
            task=task,
            area=curve.area,
            chance=curve.chance,
            chosen=float(curve.thresholds[at]),
            accuracy=float(curve.accuracy[at]),
            precision=None if math.isnan(precision) else precision,
            recall=float(curve.tpr[at]),
            false_positive_rate=float(curve.fpr[at]),
        )

    def _validated(self, found: Validation) -> Iterator[Record]:
        for row, word in enumerate(found.words):
            yield ValidatedRow(
                **self._of,
                word=word,
                of_group=word in self._target.biases,
                emergent_of_group=word in self._target.emergent,
                **self._scores(found, row),
                detected=bool(found.detected[row]),
                detected_emergent=bool(found.detected_emergent[row]),
            )

    def _words(self, found: RankedWords) -> Iterator[Record]:
        for row, word in enumerate(found.words):
            yield WordRow(
                **self._of,
                word=word,
                score=_given(found.score[row]),
                **self._scores(found, row),
                p_value=_given(found.p[row]),
                q_value=_given(found.q[row]),
                p_value_excess=_given(found.p_excess[row]),
                q_value_excess=_given(found.q_excess[row]),
                associated=bool(found.associated[row]),
                eibd=bool(found.eibd[row]),
                emergent=bool(found.emergent[row]),
            )

    def _scores(self, found: Validation | RankedWords, row: int) -> dict[str, Any]:
        return {
            "scores": _named(self._others, found.scores[row]),
            "constituents": _named(self._pairs, found.constituents[row]),
        }


def _named(names: Sequence[str], values: NDArray[np.float64]) -> Scores:
    return dict(zip(names, map(_given, values), strict=True))


def _given(value: np.float64) -> float | None:
    """A word that has the same cosine with all names has no score: not computed, and not NaN."""
    return None if np.isnan(value) else float(value)
