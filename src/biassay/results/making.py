"""Records made from what was asked and what was measured."""

from __future__ import annotations

import dataclasses
import math
import platform
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, get_args

from biassay.encoders.base import Identity
from biassay.encoders.registry import packages_of
from biassay.errors import UsageError
from biassay.measures.ceat import ContextualAssociation
from biassay.measures.contextual import ContextMeasurement, ContextSettings
from biassay.measures.seat import Measurement, Settings
from biassay.results.records import (
    FORMAT_VERSION,
    ContextsRecord,
    Contextual,
    Manifest,
    ModelRecord,
    Result,
    TestRecord,
)
from biassay.stats.permutation import PROTOCOLS, Alternative, check_choice, smallest_p
from biassay.stats.tails import TailProbability
from biassay.stimuli.description import description_of
from biassay.stimuli.model import ROLES, Test
from biassay.texts.sentences import assumed_words, digest_of

__all__ = [
    "beginning",
    "contextual_result_of",
    "finished",
    "identified",
    "is_of",
    "libraries",
    "new_manifest",
    "now",
    "result_of",
]


def new_manifest(
    models: tuple[str, ...],
    tests: list[tuple[Test, str]],
    protocol: str,
    alternative: str,
    alpha: float,
    max_lost: float,
    seed: int,
    contexts: ContextsRecord | None = None,
) -> Manifest:
    """The manifest of a run that is about to begin; settings out of range are refused."""
    if contexts is None:
        check_choice("protocol", protocol, PROTOCOLS)
    check_choice("alternative", alternative, get_args(Alternative))
    for name, value, low, high in (("alpha", alpha, 0.0, 1.0), ("max_lost", max_lost, 0.0, 1.0)):
        if not low <= value <= high or (name == "alpha" and value in (low, high)):
            raise UsageError(f"{name} must lie between 0 and 1, got {value}")
    if seed < 0:
        raise UsageError(f"the seed must not be negative, got {seed}")
    if not models:
        raise UsageError("no model was named")
    records = {test.name: _test_record(test, pattern) for test, pattern in tests}
    return Manifest(
        **beginning(),
        models=tuple(ModelRecord(text, text, "", None, {}) for text in models),
        tests=tuple(records.values()),
        protocol=protocol,
        alternative=alternative,
        alpha=alpha,
        max_lost=max_lost,
        seed=seed,
        words_lost={},
        contexts=contexts,
    )


def _test_record(test: Test, pattern: str) -> TestRecord:
    source = (test.source.name, test.source.citation, test.source.licence, test.source.version)
    return TestRecord(test.name, pattern, digest_of(test), *source, assumed_words(test))


def beginning() -> dict[str, Any]:
    """What the manifest of every run says when it begins."""
    return {
        "format_version": FORMAT_VERSION,
        "run_id": uuid.uuid4().hex,
        "status": "running",
        "created": now(),
        "finished": None,
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("biassay", "numpy", "scipy")},
        },
    }


def libraries(models: Iterable[ModelRecord]) -> dict[str, str]:
    """Versions of the libraries that can change the vectors of some models."""
    return {name: metadata.version(name) for record in models for name in packages_of(record.family)}


def identified(text: str, identity: Identity) -> ModelRecord:
    """A model as the user named it and as it was found."""
    return ModelRecord(text, identity.name, identity.family, identity.revision, dict(identity.settings))


def finished(manifest: Manifest, results: tuple[Result, ...]) -> Manifest:
    """The manifest of a run that has ended."""
    lost = {record.text: _all_lost(results, record) for record in manifest.models}
    versions = manifest.versions | libraries(manifest.models)
    return dataclasses.replace(manifest, status="complete", finished=now(), versions=versions, words_lost=lost)


def result_of(test: Test, identity: Identity, measured: Measurement, settings: Settings) -> Result:
    """One row of the results; what depends on the whole table is filled in later."""
    found = measured.association
    p, by_word = (found.p, found.by_word) if found else (None, None)
    floor = smallest_p(measured.num_words["X"], measured.num_words["Y"], settings.alternative)
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
        lost=dict(measured.lost),
        leaning={role: dict(words) for role, words in measured.leaning.items()},
    )


def contextual_result_of(
    test: Test, identity: Identity, measured: ContextMeasurement, settings: ContextSettings
) -> Result:
    """One row of the results of tests over contexts."""
    found = measured.association
    p = None if found is None else TailProbability(found.p_value, found.log10_p, "random effects", math.nan)
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
        leaning={role: dict(of) for role, of in measured.leaning.items()},
        contextual=_contextual(found, measured, settings.alpha) if found else None,
        too_rare=dict(measured.too_rare),
    )


def _contextual(found: ContextualAssociation, measured: ContextMeasurement, alpha: float) -> Contextual:
    low, high = found.interval or (None, None)
    return Contextual(
        standard_error=found.standard_error,
        z=found.pooled.z,
        tau2=found.tau2,
        q=found.Q,
        i2=found.I2,
        prediction_low=found.prediction_interval[0],
        prediction_high=found.prediction_interval[1],
        interval_low=low,
        interval_high=high,
        confidence=found.confidence,
        share_significant=float((found.sample_p_values <= alpha).mean()),
        n_samples=found.pooled.n,
        num_contexts={role: dict(counts) for role, counts in measured.num_contexts.items()},
    )


def _asked(test: Test, identity: Identity, settings: Settings | ContextSettings) -> dict[str, Any]:
    """What was asked of which model; significance is not known before the whole table is."""
    return {
        "model": identity.name,
        "options": identity.options,
        "model_revision": identity.revision,
        "test": test.name,
        "title": test.title,
        **description_of(test),
        "targ1": test.X.label,
        "targ2": test.Y.label,
        "attr1": test.A.label,
        "attr2": test.B.label,
        "alpha": settings.alpha,
        "seed": settings.seed,
        "source": test.source.name,
        "test_version": test.source.version,
        "test_digest": digest_of(test),
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


def is_of(result: Result, record: ModelRecord) -> bool:
    """Does a result belong to a model of the run?"""
    options = Identity(record.name, record.family, record.revision, tuple(record.settings.items())).options
    return (result.model, result.options, result.model_revision) == (record.name, options, record.revision)


def _all_lost(results: tuple[Result, ...], record: ModelRecord) -> tuple[str, ...]:
    words = (word for r in results if is_of(r, record) for lost in r.lost.values() for word in lost)
    return tuple(sorted(set(words)))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
