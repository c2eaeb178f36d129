"""IBD and EIBD against words that people validated: how well they are detected, and which threshold fits best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.measures.panel import Panel
from biassay.stats.association import unit_rows
from biassay.stats.detection import DetectionCurve, Rule, detected, detection_curve, strongest
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
    """How well validated words are detected; ``chosen`` is the place on the curve that fits best."""

    curve: DetectionCurve
    chosen: int


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
    own, emergent = (
        _curve(scores, dropping, np.array([word in truth for word in words], dtype=bool), rule, positive_only)
        for dropping, truth in ((None, target.biases), (constituents, target.emergent))
    )
    at, at_emergent = _threshold(own, threshold), _threshold(emergent, threshold)
    return Validation(
        words=words,
        scores=scores,
        constituents=constituents,
        curve=own,
        curve_emergent=emergent,
        threshold=at,
        threshold_emergent=at_emergent,
        detected=detected(*strongest(scores, None, rule), at.value),
        detected_emergent=detected(*strongest(scores, constituents, rule), at_emergent.value),
    )


def _curve(
    scores: NDArray[np.float64],
    constituents: NDArray[np.float64] | None,
    truth: NDArray[np.bool_],
    rule: Rule,
    positive_only: bool,
) -> ValidationCurve | None:
    if truth.all() or not truth.any():
        return None
    curve = detection_curve(scores, truth, constituents=constituents, rule=rule)
    return ValidationCurve(curve, curve.best(positive_only=positive_only))


def _threshold(curve: ValidationCurve | None, given: float | None) -> Threshold:
    if given is not None:
        return Threshold(given, "given")
    if curve is None:
        return Threshold(CONVENTION, "convention")
    return Threshold(float(curve.curve.thresholds[curve.chosen]), "validation")
