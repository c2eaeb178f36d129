"""Records of a discovery, made from what was asked and what was measured."""

from __future__ import annotations

import math

import numpy as np

from biassay.measures.discovery import Found
from biassay.measures.validation import Validation, ValidationCurve
from biassay.results.discovery import CurveRecord, GroupFindings, ValidatedWord, WordFound
from biassay.stimuli.groups import Group, Grouping

__all__ = ["findings_of"]


def findings_of(grouping: Grouping, target: Group, validation: Validation, found: Found) -> GroupFindings:
    """All that was found of one group."""
    own, emergent = validation.threshold, validation.threshold_emergent
    return GroupFindings(
        group=target.name,
        label=target.label,
        belongs=dict(target.belongs),
        other_groups=tuple(other.name for other in grouping.compared_with(target)),
        others=tuple(other.label for other in grouping.compared_with(target)),
        constituents=tuple(pair.label for pair in grouping.constituents(target)),
        threshold=own.value,
        threshold_source=own.source,
        threshold_emergent=emergent.value,
        threshold_emergent_source=emergent.source,
        curve=_curve(validation.curve),
        curve_emergent=_curve(validation.curve_emergent),
        validated=_validated(target, validation),
        words=_words(found),
        num_words=found.num_words,
        num_above=found.num_above,
        num_associated=found.num_associated,
        num_every=found.num_every,
        num_eibd=found.num_eibd,
        num_emergent=found.num_emergent,
    )


def _curve(found: ValidationCurve | None) -> CurveRecord | None:
    if found is None:
        return None
    curve, at = found.curve, found.chosen
    precision = float(curve.precision[at])
    return CurveRecord(
        thresholds=tuple(curve.thresholds.tolist()),
        tp=tuple(curve.tp.tolist()),
        fp=tuple(curve.fp.tolist()),
        fn=tuple(curve.fn.tolist()),
        tn=tuple(curve.tn.tolist()),
        area=curve.area,
        chance=curve.chance,
        chosen=float(curve.thresholds[at]),
        accuracy=float(curve.accuracy[at]),
        precision=None if math.isnan(precision) else precision,
        recall=float(curve.tpr[at]),
        false_positive_rate=float(curve.fpr[at]),
    )


def _validated(target: Group, found: Validation) -> tuple[ValidatedWord, ...]:
    return tuple(
        ValidatedWord(
            word=word,
            of_group=word in target.biases,
            emergent_of_group=word in target.emergent,
            scores=tuple(map(_given, found.scores[row])),
            constituents=tuple(map(_given, found.constituents[row])),
            detected=bool(found.detected[row]),
            detected_emergent=bool(found.detected_emergent[row]),
        )
        for row, word in enumerate(found.words)
    )


def _words(found: Found) -> tuple[WordFound, ...]:
    return tuple(
        WordFound(
            word=word,
            score=_given(found.score[row]),
            scores=tuple(map(_given, found.scores[row])),
            constituents=tuple(map(_given, found.constituents[row])),
            p_value=_given(found.p[row]),
            q_value=_given(found.q[row]),
            p_value_excess=_given(found.p_excess[row]),
            q_value_excess=_given(found.q_excess[row]),
            associated=bool(found.associated[row]),
            eibd=bool(found.eibd[row]),
            emergent=bool(found.emergent[row]),
        )
        for row, word in enumerate(found.words)
    )


def _given(value: np.float64) -> float | None:
    """A word that has the same cosine with all names has no score: not computed, and not NaN."""
    return None if np.isnan(value) else float(value)
