"""IBD and EIBD against words that people validated: how well they are detected, and which threshold fits best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.measures.panel import Panel
from biassay.stats.association import unit_rows
from biassay.stats.detection import THRESHOLDS, Compare, DetectionCurve, Rule, detected, detection_curve, strongest
from biassay.stimuli.groups import Group

__all__ = ["CONVENTION", "Threshold", "Validation", "ValidationCurve", "validate"]

CONVENTION = 0.8  # the effect that is customarily called large, where no validated words can choose a threshold


@dataclass(frozen=True)
class Threshold:
    """A threshold, and where it comes from."""

    value: float
    source: Literal["validation", "given", "convention"]


@dataclass(frozen=True, eq=False)
class ValidationCurve:
    """How well validated words are detected; ``chosen`` is the place of the threshold that is used.

    ``informative``: whether the best threshold detects any word of the group.
    """

    curve: DetectionCurve
    chosen: int
    informative: bool


@dataclass(frozen=True, eq=False)
class Validation:
    """One group and the words that were validated, as far as the model knows them.

    Attributes
    ----------
    words : list of str
    scores, constituents : (n, k), (n, c) float64
    curve, curve_emergent : ValidationCurve or None
        Of the words of the group, and of its emergent words. None where the words that the model knows are all of the
        group, or none of them is.
    threshold, threshold_emergent : Threshold
    detected, detected_emergent : (n,) bool
        At these thresholds.
    """

    words: Sequence[str]
    scores: NDArray[np.float64]
    constituents: NDArray[np.float64]
    curve: ValidationCurve | None
    curve_emergent: ValidationCurve | None
    threshold: Threshold
    threshold_emergent: Threshold
    detected: NDArray[np.bool_]
    detected_emergent: NDArray[np.bool_]


def validate(
    panel: Panel,
    target: Group,
    words: Sequence[str],
    vectors: NDArray[np.floating],
    rule: Rule,
    compare: Compare,
    *,
    threshold: float | None,
    positive_only: bool,
) -> Validation:
    """Score validated words for a group, and choose its thresholds unless one is given."""
    if len(words):
        cosines = unit_rows(vectors, "validation words", words) @ panel.names.T
    else:
        cosines = np.empty((0, len(panel.names)))
    scores, constituents = panel.scores(target, cosines)
    truths = (np.array([word in of for word in words], dtype=bool) for of in (target.biases, target.emergent))
    found = []
    for dropping, truth in zip((None, constituents), truths, strict=True):
        curve = None
        if truth.any() and not truth.all():
            at_these = THRESHOLDS if threshold is None else np.unique([*THRESHOLDS, threshold])
            points = detection_curve(
                scores, truth, constituents=dropping, rule=rule, compare=compare, thresholds=at_these
            )
            best = points.best(positive_only=positive_only)
            informative = bool(points.tp[best])
            at_place = best if threshold is None and informative else _place(points, threshold)
            curve = ValidationCurve(points, at_place, informative)
        at = _threshold(curve, threshold)
        found.append((curve, at, detected(*strongest(scores, dropping, rule, compare), at.value)))
    (curve, at, own), (curve_emergent, at_emergent, emergent) = found
    return Validation(words, scores, constituents, curve, curve_emergent, at, at_emergent, own, emergent)


def _place(points: DetectionCurve, given: float | None) -> int:
    """Of the threshold that was given, or of the one by convention."""
    return int(np.argmin(np.abs(points.thresholds - (CONVENTION if given is None else given))))


def _threshold(curve: ValidationCurve | None, given: float | None) -> Threshold:
    if given is not None:
        return Threshold(given, "given")
    if curve is None or not curve.informative:
        return Threshold(CONVENTION, "convention")
    return Threshold(float(curve.curve.thresholds[curve.chosen]), "validation")
