"""IBD and EIBD against words that people validated: how well they are detected, and which threshold fits best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.stats.detection import THRESHOLDS, DetectionCurve, detected, detection_curve, strongest
from biassay.stimuli.groups import Group
from biassay.studies.discovery.panel import Panel
from biassay.studies.discovery.records import Source
from biassay.studies.discovery.settings import Settings

__all__ = ["CONVENTION", "Threshold", "Validation", "ValidationCurve", "validate"]

CONVENTION = 0.8  # the effect that is customarily called large, where no validated words can choose a threshold


@dataclass(frozen=True)
class Threshold:
    """A threshold, and where it comes from."""

    value: float
    source: Source


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
    panel: Panel, target: Group, words: Sequence[str], vectors: NDArray[np.floating], settings: Settings
) -> Validation:
    """Score validated words for a group, and choose its thresholds unless one is given."""
    if len(words):
        cosines = panel.average(panel.cosines(vectors, "validation words", words))
    else:
        cosines = np.empty((0, len(panel.groups)))
    scores, constituents = panel.scores(target, cosines)
    found = [
        _task(scores, dropping, np.array([word in of for word in words], dtype=bool), settings)
        for dropping, of in ((None, target.biases), (constituents, target.emergent))
    ]
    (curve, at, own), (curve_emergent, at_emergent, emergent) = found
    return Validation(words, scores, constituents, curve, curve_emergent, at, at_emergent, own, emergent)


def _task(
    scores: NDArray[np.float64], dropping: NDArray[np.float64] | None, truth: NDArray[np.bool_], settings: Settings
) -> tuple[ValidationCurve | None, Threshold, NDArray[np.bool_]]:
    """The curve, the threshold and the words detected at it: of IBD, or, with scores that drop words, of EIBD."""
    given, rule, compare = settings.threshold, settings.rule, settings.compare
    curve = None
    if truth.any() and not truth.all():
        grid = THRESHOLDS if given is None else np.unique([*THRESHOLDS, given])
        points = detection_curve(scores, truth, constituents=dropping, rule=rule, compare=compare, thresholds=grid)
        best = points.best(positive_only=settings.positive_only)
        informative = bool(points.tp[best])
        place = best if given is None and informative else _place(points, given)
        curve = ValidationCurve(points, place, informative)
    at = _threshold(curve, given)
    return curve, at, detected(*strongest(scores, dropping, rule, compare), at.value)


def _place(points: DetectionCurve, given: float | None) -> int:
    """Of the threshold that was given, or of the one by convention."""
    return int(np.argmin(np.abs(points.thresholds - (CONVENTION if given is None else given))))


def _threshold(curve: ValidationCurve | None, given: float | None) -> Threshold:
    if given is not None:
        return Threshold(given, "given")
    if curve is None or not curve.informative:
        return Threshold(CONVENTION, "convention")
    return Threshold(float(curve.curve.thresholds[curve.chosen]), "validation")
