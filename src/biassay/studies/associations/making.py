"""Rows of association tests, made from what was asked and what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from biassay.models.base import Identity
from biassay.stats.permutation import smallest_p
from biassay.stats.tails import TailProbability
from biassay.stimuli.description import description_of
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.ceat import ContextualAssociation
from biassay.studies.associations.crossing import crossed_fields
from biassay.studies.associations.metric_registry import metric_named
from biassay.studies.associations.over_contexts import ContextMeasurement
from biassay.studies.associations.over_texts import Measurement
from biassay.studies.associations.records import Contextual, Result
from biassay.studies.associations.settings import Settings
from biassay.texts.sentences import digest_of

__all__ = ["contextual_result_of", "result_of"]


def result_of(test: Test, identity: Identity, measured: Measurement, settings: Settings) -> Result:
    """One row of the results; what depends on the whole table is filled in later."""
    found = measured.association
    p, by_word = (found.p, found.by_word) if found else (None, None)
    floor = smallest_p(measured.num_words["X"], measured.num_words["Y"], settings.alternative)
    if found is not None and found.floor is not None:
        floor = max(floor, found.floor)
    return Result(
        **_asked(test, identity, settings),
        **_tails(p, by_word, floor),
        effect_size=found.effect_size if found else None,
        num_targ1=measured.num_texts["X"],
        num_targ2=measured.num_texts["Y"],
        num_attr1=measured.num_texts["A"],
        num_attr2=measured.num_texts["B"],
        status=measured.status,
        reason=measured.reason,
        level=test.level,
        statistic=found.statistic if found else None,
        effect_size_by_word=found.effect_size_by_word if found else None,
        p_value_by_word_opposite=found.by_word_opposite.value if found and found.by_word_opposite else None,
        num_words=dict(measured.num_words),
        num_cut=dict(measured.num_cut),
        protocol=settings.protocol,
        alternative=settings.alternative,
        metric=settings.metric,
        unit=metric_named(settings.metric).unit,
        leave_one_out=None if found is None or found.leave_one_out is None else _plain(found.leave_one_out),
        lost=dict(measured.lost),
        associations=_plain(measured.associations),
        shared_templates=measured.shared_templates,
        share_random=measured.share_random,
        random_sets=None if measured.share_random is None else settings.random_sets,
        **(crossed_fields(found.cosines, found.num_words, settings) if found else {}),
    )


def _plain(by_word: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {role: dict(words) for role, words in by_word.items()}


def contextual_result_of(test: Test, identity: Identity, measured: ContextMeasurement, settings: Settings) -> Result:
    """One row of the results of tests over contexts."""
    found = measured.association
    p = None if found is None else TailProbability(found.p_value, found.log10_p_value, "random effects", math.nan)
    words = {role: measured.num_words(role) for role in ROLES}
    return Result(
        **_asked(test, identity, settings),
        **_tails(p, found.by_word if found else None, smallest_p(words["X"], words["Y"], "two-sided")),
        effect_size=found.effect_size if found else None,
        num_targ1=words["X"],
        num_targ2=words["Y"],
        num_attr1=words["A"],
        num_attr2=words["B"],
        status=measured.status,
        reason=measured.reason,
        level="context",
        statistic=found.pooled.z if found else None,
        effect_size_by_word=found.effect_size_by_word if found else None,
        num_words=words,
        num_cut=dict.fromkeys(ROLES, 0),
        protocol="ceat",
        alternative="two-sided",
        lost=dict(measured.lost),
        associations=_plain(measured.associations),
        contextual=_contextual(found, measured, settings.level) if found else None,
        too_rare=dict(measured.too_rare),
        **(crossed_fields(found.cosines, found.sizes, settings) if found else {}),
    )


def _contextual(found: ContextualAssociation, measured: ContextMeasurement, alpha: float) -> Contextual:
    low, high = found.prediction_interval or (None, None)
    return Contextual(
        standard_error=found.standard_error,
        z=found.pooled.z,
        share_significant=float((found.sample_p_values <= alpha).mean()),
        n_samples=found.pooled.n,
        num_contexts={role: dict(counts) for role, counts in measured.num_contexts.items()},
        new_contexts_low=low,
        new_contexts_high=high,
        fewest_documents=int(found.num_documents.min()),
    )


def _asked(test: Test, identity: Identity, settings: Settings) -> dict[str, Any]:
    """What was asked of which model; significance is not known before the whole table is."""
    return {
        "model": identity.name,
        "options": identity.options,
        "model_revision": identity.revision,
        "test": test.name,
        "title": test.title,
        "targ1": test.X.label,
        "targ2": test.Y.label,
        "attr1": test.A.label,
        "attr2": test.B.label,
        "alpha": settings.level,
        "seed": settings.seed,
        "source": test.source.name,
        "test_version": test.source.version,
        "test_digest": digest_of(test),
        **description_of(test),
        "p_value_holm": None,
        "significant": None,
        "significant_holm": None,
        "p_value_by_word_holm": None,
        "significant_by_word": None,
        "significant_by_word_holm": None,
    }


def _tails(p: TailProbability | None, by_word: TailProbability | None, floor: float) -> dict[str, Any]:
    return {
        "p_value": p.value if p else None,
        "log10_p_value": p.log10 if p else None,
        "p_route": p.route if p else None,
        "p_error": p.error if p else None,
        "p_value_by_word": by_word.value if by_word else None,
        "log10_p_value_by_word": by_word.log10 if by_word else None,
        "p_route_by_word": by_word.route if by_word else None,
        "p_error_by_word": by_word.error if by_word else None,
        "p_floor_by_word": floor if by_word else None,
    }
