"""Records made from what was asked and what was measured."""

from __future__ import annotations

import dataclasses
import platform
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from biassay.encoders.base import Identity
from biassay.encoders.registry import packages_of
from biassay.results.records import (
    FORMAT_VERSION,
    Manifest,
    ModelRecord,
    Result,
)

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


def is_of(result: Result, record: ModelRecord) -> bool:
    """Does a result belong to a model of the run?"""
    options = Identity(record.name, record.family, record.revision, tuple(record.settings.items())).options
    return (result.model, result.options, result.model_revision) == (record.name, options, record.revision)


def _all_lost(results: tuple[Result, ...], record: ModelRecord) -> tuple[str, ...]:
    words = (word for r in results if is_of(r, record) for lost in r.lost.values() for word in lost)
    return tuple(sorted(set(words)))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
