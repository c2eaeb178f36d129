"""Rows of association tests, made from what was asked and what was measured."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
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

__all__ = ["contextual_result_of", "is_searched", "result_of"]


def result_of(
    test: Test,
    identity: Identity,
    measured: Measurement,
    settings: Settings,
    cosine_sd: float | None = None,
    related: float | None = None,
) -> Result:
    """One row of the results; what depends on the whole table is filled in later.

    ``related`` is the correlation with the model that was searched for the words, if this one is its relative.
    """
    found = measured.association
    p, by_word = (found.p, found.by_word) if found else (None, None)
    by_word_of = measured.associations or (found.leave_one_out if found else None) or {}
    clusters = _clusters(test, {role: tuple(of) for role, of in by_word_of.items()})
    n, m = (measured.num_words[role] - _repeated(clusters, role) for role in "XY")
    floor = smallest_p(n, m, settings.alternative)
    if found is not None and found.floor is not None:
        floor = max(floor, found.floor)
    result = Result(
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
        clusters=clusters,
        undeclared=dict(measured.undeclared),
        **(crossed_fields(found.cosines, found.num_words, settings, cosine_sd, found.clusters) if found else {}),
    )
    if is_searched(test, identity):
        return _descriptive(result)
    return result if related is None else dataclasses.replace(_descriptive(result), searched_correlation=related)


def is_searched(test: Test, identity: Identity) -> bool:
    """Were the words of the test found by searching this model?"""
    return identity.weights in test.source.searched_models


def _descriptive(result: Result) -> Result:
    """Return the result without p-values and intervals: its words were chosen because they show the effect."""
    without: dict[str, Any] = dict.fromkeys(_INFERENCE)
    return dataclasses.replace(result, searched=True, **without)


_INFERENCE = (
    *("p_value", "log10_p_value", "p_route", "p_error", "p_value_by_word", "log10_p_value_by_word", "p_route_by_word"),
    *("p_error_by_word", "p_floor_by_word", "p_value_by_word_opposite", "p_value_crossed", "df_crossed", "d_low"),
    *("d_high", "D_low", "D_high", "smallest_effect", "p_equivalence", "margin", "share_random", "random_sets"),
    *("calibrated_ci_low", "calibrated_ci_high"),
)


def _clusters(test: Test, words: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return by role the cluster of every measured word that shares it with another measured word."""
    found = {}
    for role, measured in words.items():
        labels = {word: test.concept(role).cluster_labels.get(word, word) for word in measured}
        counts = Counter(labels.values())
        shared = {word: label for word, label in labels.items() if counts[label] > 1}
        if shared:
            found[role] = shared
    return found


def _repeated(clusters: Mapping[str, Mapping[str, str]], role: str) -> int:
    """Return by how much the number of clusters is below the number of words."""
    of_role = clusters.get(role, {})
    return len(of_role) - len(set(of_role.values()))


def _plain(by_word: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {role: dict(words) for role, words in by_word.items()}


def contextual_result_of(
    test: Test, identity: Identity, measured: ContextMeasurement, settings: Settings, cosine_sd: float | None = None
) -> Result:
    """One row of the results of tests over contexts."""
    found = measured.association
    p = None if found is None else TailProbability(found.p_value, found.log10_p_value, "random effects", math.nan)
    words = {role: measured.num_words(role) for role in ROLES}
    clusters = _clusters(test, {role: tuple(of) for role, of in measured.associations.items()})
    n, m = (words[role] - _repeated(clusters, role) for role in "XY")
    result = Result(
        **_asked(test, identity, settings),
        **_tails(p, found.by_word if found else None, smallest_p(n, m, "two-sided")),
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
        clusters=clusters,
        **(crossed_fields(found.cosines, found.sizes, settings, cosine_sd, found.clusters) if found else {}),
    )
    return _descriptive(result) if is_searched(test, identity) else result


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
