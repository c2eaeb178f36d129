"""WEAT and SEAT on one page: tests become texts, texts become vectors, vectors become results.

Everything is checked before anything is written; vectors are stored batch by batch and results model by model, so that
an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from biassay.encoders.base import Encoded, Encoder, Identity
from biassay.errors import StimulusError, UsageError
from biassay.files import default_cache
from biassay.measures.seat import Settings, check_tests, measure
from biassay.pipeline.common import Listener, PathLike, Silent, check_free, taken_back_if_empty, tell_where_texts_go
from biassay.pipeline.models import (
    Asked,
    asked_models,
    check_unchanged,
    identities_of,
    models_again,
    open_models,
    telling_how_to_resume,
)
from biassay.results.making import finished, identified, is_of, new_manifest, result_of
from biassay.results.records import Manifest, Result
from biassay.results.run import Run, with_corrections
from biassay.stats.permutation import Alternative, Protocol
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.studies.presenters import write_report
from biassay.texts.sentences import TestTexts, digest_of, texts_of
from biassay.vectors.codecs import TEXTS
from biassay.vectors.fill import AskedTexts, ask_missing
from biassay.vectors.store import ModelStore, VectorStore

__all__ = ["resume", "run"]


@dataclass(frozen=True)
class _Plan:
    """A run that was checked and can be carried out."""

    manifest: Manifest
    encoders: tuple[Encoder, ...]
    identities: tuple[Identity, ...]
    tests: tuple[tuple[Test, TestTexts], ...]
    settings: Settings


def run(
    models: object = ("use",),
    tests: str | Sequence[str] = (),
    *,
    protocol: str = "exact",
    alternative: str = "greater",
    alpha: float = 0.01,
    max_lost: float = 0.2,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run association tests on models.

    Parameters
    ----------
    models : str, object, list of them, or dict
        Model strings (``use``, ``glove``, ``vectors:PATH``, ...) or objects with ``encode(texts) -> array``; the keys
        of a dict name them in all results.
    tests : str or list of str
        Names, patterns, collections or files; the tests of the main collections by default.
    protocol, alternative : str
        How p-values are found, see `biassay.weat`.
    alpha : float
        Level of significance, before and after Holm's correction over all rows.
    max_lost : float
        The largest share of a concept's texts that a model may not know before the test is refused.
    seed : int
        For the protocols that draw.
    out : path, optional
        A new folder to write the run to, as it goes.
    cache : path, optional
        Where vectors are kept; by default the user's cache folder.
    """
    asked = asked_models(models)
    patterns = (tests,) if isinstance(tests, str) else tuple(tests)
    chosen = [(test, pattern) for pattern in (patterns or ("",)) for test in select_tests([pattern] if pattern else [])]
    select_tests(patterns)  # two different tests of one name are an error
    manifest = new_manifest(tuple(one.text for one in asked), chosen, protocol, alternative, alpha, max_lost, seed)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    plan = _plan(manifest, tuple(dict.fromkeys(test for test, _ in chosen)), asked)
    if folder is None:
        return _carry_out(plan, (), None, cache, listener or Silent())
    with telling_how_to_resume(folder, asked, plan.manifest.models), taken_back_if_empty(folder):
        return _carry_out(plan, (), folder, cache, listener or Silent())


def resume(
    folder: PathLike, models: object = None, *, cache: PathLike | None = None, listener: Listener | None = None
) -> Run:
    """Go on with a run of tests on texts; see `biassay.resume`."""
    folder = Path(folder)
    earlier = Run.load(folder)
    if earlier.manifest.contexts is not None:
        raise UsageError(f"{folder} is a run over contexts; go on with it by biassay.resume")
    if earlier.manifest.status == "complete":
        return earlier
    asked = models_again(folder, earlier.manifest.models, models)
    patterns = tuple(dict.fromkeys(test.pattern for test in earlier.manifest.tests))
    by_name = {t.name: t for t in select_tests([] if patterns == ("",) else patterns)}
    for test in earlier.manifest.tests:
        if test.name not in by_name or digest_of(by_name[test.name]) != test.digest:
            raise StimulusError(f"{folder}: the test {test.name!r} has changed since the run began; start a new run")
    plan = _plan(earlier.manifest, tuple(by_name[test.name] for test in earlier.manifest.tests), asked)
    check_unchanged(folder, earlier.manifest.models, plan.identities)
    plan = dataclasses.replace(plan, manifest=earlier.manifest)  # which says what finished models took
    return _carry_out(plan, earlier.results, folder, cache, listener or Silent())


def _plan(manifest: Manifest, tests: tuple[Test, ...], models: tuple[Asked, ...]) -> _Plan:
    """Check everything that can be checked before the first text is encoded."""
    settings = Settings(
        protocol=cast("Protocol", manifest.protocol),
        alternative=cast("Alternative", manifest.alternative),
        alpha=manifest.alpha,
        max_lost=manifest.max_lost,
        seed=manifest.seed,
    )
    check_tests(tests, settings)
    encoders = open_models(models)
    identities = identities_of(models, [encoder.identity for encoder in encoders])
    records = tuple(identified(one.text, identity) for one, identity in zip(models, identities, strict=True))
    asked = tuple((test, texts_of(test)) for test in tests)
    return _Plan(dataclasses.replace(manifest, models=records), encoders, identities, asked, settings)


def _carry_out(
    plan: _Plan, results: tuple[Result, ...], folder: Path | None, cache: PathLike | None, listener: Listener
) -> Run:
    store = VectorStore(Path(cache) if cache is not None else default_cache())
    current = Run(plan.manifest, results)
    if folder is not None:
        current.save(folder)
    for place in range(len(plan.encoders)):
        current = _one_model(plan, current, place, store, listener)
        if folder is not None:
            current.save(folder)
    current = Run(finished(current.manifest, current.results), current.results)
    if folder is not None:
        write_report(current, folder)
        current.save(folder)
    return current


def _one_model(plan: _Plan, current: Run, place: int, store: VectorStore, listener: Listener) -> Run:
    record, encoder, identity = current.manifest.models[place], plan.encoders[place], plan.identities[place]
    have = {result.test for result in current.results if is_of(result, record)}
    waiting = [(test, asked) for test, asked in plan.tests if test.name not in have]
    if not waiting:
        return current
    began = time.monotonic()
    texts = list(dict.fromkeys(text.text for _, asked in waiting for text in asked))
    tell_where_texts_go(identity, listener)
    kept = store.of(identity, TEXTS)
    asker = AskedTexts(encoder)
    encoded = ask_missing(asker, texts, kept, lambda done, total: listener.encoding(record.text, done, total))
    if kept.damaged:
        listener.notice(
            f"{len(kept.damaged)} damaged file(s) of stored vectors were removed; their texts were encoded again"
        )
    vectors = _Vectors(texts, kept)
    found = []
    for number, (test, asked) in enumerate(waiting, start=1):
        measured = measure(
            test, asked, {role: vectors.of(asked, role) for role in ROLES}, plan.settings, identity.lost_hint
        )
        found.append(result_of(test, identity, measured, plan.settings))
        listener.measuring(record.text, number, len(waiting))
    results = with_corrections((*current.results, *found), plan.manifest.alpha)
    models = list(current.manifest.models)
    models[place] = dataclasses.replace(
        record, texts=len(texts), encoded=encoded, seconds=round(time.monotonic() - began, 3)
    )
    return Run(dataclasses.replace(current.manifest, models=tuple(models)), results)


class _Vectors:
    """The vectors of one model, by text."""

    def __init__(self, texts: list[str], store: ModelStore[str, Encoded]) -> None:
        self._all = store.get(texts)
        self._rows = {text: row for row, text in enumerate(texts)}

    def of(self, texts: TestTexts, role: str) -> Encoded:
        return self._all.rows([self._rows[text.text] for text in texts.role(role)])
