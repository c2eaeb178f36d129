"""A run over contexts, checked before anything is encoded."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from biassay.encoders.base import Identity
from biassay.encoders.registry import open_as, parse_model
from biassay.errors import UsageError
from biassay.files import default_cache
from biassay.measures.contextual import ContextSettings, check_word_tests, cover
from biassay.pipeline.common import PathLike
from biassay.pipeline.embedding import open_store, store_about
from biassay.pipeline.models import Asked, identities_of
from biassay.results.making import identified
from biassay.results.records import ContextsRecord, Manifest
from biassay.stats.permutation import check_choice
from biassay.stimuli.model import ROLES, Test
from biassay.texts.contexts import Contexts
from biassay.vectors.shards import ShardStore, StoredType

__all__ = ["MODES", "Plan", "contexts_record", "make_plan"]

MODES = ("random", "fixed")
_HOW_FOUND = ("file_format", "field", "document", "html", "language", "ignore_case", "openings")


@dataclass(frozen=True)
class Plan:
    """A run that was checked and can be carried out."""

    manifest: Manifest
    settings: ContextSettings
    contexts: Contexts
    tests: tuple[Test, ...]
    models: tuple[str, ...]
    stores: tuple[ShardStore, ...]
    identities: tuple[Identity, ...]

    @property
    def stimuli(self) -> tuple[str, ...]:
        """The words of the tests that have contexts enough; no others are encoded."""
        tests = (test for test in self.tests if cover(self.contexts.count, test, self.settings).measurable)
        words = (word for test in tests for role in ROLES for word in test.concept(role).words)
        return tuple(dict.fromkeys(words))


def contexts_record(
    path: Path,
    contexts: Contexts,
    n_samples: int,
    mode: str,
    window: int | None,
    dtype: str,
    min_contexts: int,
    vectors: PathLike | None,
) -> ContextsRecord:
    """What was asked of the contexts; values out of range are refused."""
    check_choice("mode", mode, MODES)
    check_choice("dtype", dtype, get_args(StoredType))
    least = {
        "n_samples": (n_samples, 3),
        "min_contexts": (min_contexts, 1),
        "window": (1 if window is None else window, 1),
    }
    for name, (value, smallest) in least.items():
        if value < smallest:
            raise UsageError(f"{name} must be at least {smallest}, got {value}")
    if not len(contexts):
        raise UsageError(f"{path} holds no contexts at all; was the corpus in another language or case?")
    corpus = contexts.metadata.get("corpus", {})
    return ContextsRecord(
        file=str(path.resolve()),
        digest=contexts.digest,
        rows=len(contexts),
        per_stimulus=contexts.metadata["k"],
        seed=contexts.metadata.get("seed", 0),
        documents=corpus.get("documents", 0),
        bytes=corpus.get("bytes", 0),
        n_samples=n_samples,
        mode=mode,  # type: ignore[arg-type]
        window=window,
        dtype=dtype,  # type: ignore[arg-type]
        min_contexts=min_contexts,
        corpus=tuple(corpus.get("files", ())),
        found_with={
            key.removeprefix("file_"): str(contexts.metadata[key]) for key in _HOW_FOUND if contexts.metadata.get(key)
        },
        vectors=None if vectors is None else str(Path(vectors).resolve()),
    )


def make_plan(
    manifest: Manifest,
    asked: tuple[Asked, ...],
    contexts: Contexts,
    tests: tuple[Test, ...],
    cache: PathLike | None,
    vectors: PathLike | None,
) -> Plan:
    """Check everything that can be checked before the first context is encoded."""
    check_word_tests(tests)
    _check_sought(tests, contexts)
    record = cast("ContextsRecord", manifest.contexts)
    models = tuple(map(_string, asked))
    parsed = [parse_model(model) for model in models]
    identities = identities_of(asked, [open_as(model, "words").identity for model in parsed])
    abouts = [store_about(contexts, identity, record.window, record.dtype) for identity in identities]
    root = Path(cache) if cache is not None else default_cache()
    stores = tuple(
        open_store(about, contexts, root, None if vectors is None else Path(vectors) / _slug(one.text))
        for about, one in zip(abouts, asked, strict=True)
    )
    records = tuple(identified(one.text, identity) for one, identity in zip(asked, identities, strict=True))
    settings = ContextSettings(
        record.n_samples, record.mode, record.min_contexts, manifest.alpha, manifest.max_lost, manifest.seed
    )
    return Plan(dataclasses.replace(manifest, models=records), settings, contexts, tests, models, stores, identities)


def _string(asked: Asked) -> str:
    """The model string; an object knows nothing of words in their contexts."""
    if not isinstance(asked.model, str):
        raise UsageError(
            f"a model of a run over contexts is a string such as hf:NAME, got {type(asked.model).__name__}"
        )
    return asked.model


def _check_sought(tests: tuple[Test, ...], contexts: Contexts) -> None:
    """Refuse a test for which no scan was made; that is not the same as words that were not found."""
    sought = set(contexts.stimuli)
    for test in tests:
        for role in ROLES:
            if not sought & set(test.concept(role).words):
                raise UsageError(
                    f"the contexts were not collected for test {test.name!r}: no word of {test.concept(role).label} "
                    f"was sought; collect them with biassay contexts ... --tests {test.name}"
                )


def _slug(text: str) -> str:
    return re.sub(r"[^\w.=-]+", "-", text).strip("-")
