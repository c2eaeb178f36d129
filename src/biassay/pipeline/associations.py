"""WEAT and SEAT on one page: tests become texts, texts become vectors, vectors become results.

Everything is checked before anything is written; vectors are stored batch by batch and results model by model, so that
an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from biassay.encoders.base import Encoded, Encoder
from biassay.encoders.python import wrap
from biassay.encoders.registry import open_encoder, parse_model
from biassay.errors import StimulusError, UsageError
from biassay.files import default_cache
from biassay.measures.seat import Settings, check_tests, measure
from biassay.pipeline.common import Listener, PathLike, Silent, check_free, taken_back_if_empty
from biassay.report.html import write_report
from biassay.results.making import finished, identified, is_of, new_manifest, result_of
from biassay.results.records import Manifest, Result
from biassay.results.run import Run, with_corrections
from biassay.stats.permutation import Alternative, Protocol
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.texts.sentences import TestTexts, texts_of
from biassay.vectors.fill import encode_missing
from biassay.vectors.store import ModelStore, VectorStore

__all__ = ["resume", "run"]


@dataclass(frozen=True)
class _Plan:
    """A run that was checked and can be carried out."""

    manifest: Manifest
    encoders: tuple[Encoder, ...]
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
    models : str, object or list of them
        Model strings (``use``, ``glove``, ``vectors:PATH``, ...) or objects with ``encode(texts) -> array``.
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
    asked = tuple(models) if isinstance(models, list | tuple) else (models,)
    opened = [m if isinstance(m, str) else wrap(m) for m in asked]
    given = {m.identity.name: m for m in opened if not isinstance(m, str)}
    names = tuple(m if isinstance(m, str) else m.identity.name for m in opened)
    patterns = (tests,) if isinstance(tests, str) else tuple(tests)
    chosen = [(test, pattern) for pattern in (patterns or ("",)) for test in select_tests([pattern] if pattern else [])]
    select_tests(patterns)  # two different tests of one name are an error
    manifest = new_manifest(names, chosen, protocol, alternative, alpha, max_lost, seed)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    plan = _plan(manifest, tuple(dict.fromkeys(test for test, _ in chosen)), given)
    if folder is None:
        return _carry_out(plan, (), None, cache, listener or Silent())
    with taken_back_if_empty(folder):
        return _carry_out(plan, (), folder, cache, listener or Silent())


def resume(folder: PathLike, *, cache: PathLike | None = None, listener: Listener | None = None) -> Run:
    """Go on with a run that was interrupted; what it has measured is kept."""
    folder = Path(folder)
    earlier = Run.load(folder)
    if earlier.manifest.status == "complete":
        return earlier
    patterns = tuple(dict.fromkeys(test.pattern for test in earlier.manifest.tests))
    by_name = {t.name: t for t in select_tests([] if patterns == ("",) else patterns)}
    for asked in earlier.manifest.tests:
        if asked.name not in by_name or by_name[asked.name].digest != asked.digest:
            raise StimulusError(f"{folder}: the test {asked.name!r} has changed since the run began; start a new run")
    plan = _plan(earlier.manifest, tuple(by_name[asked.name] for asked in earlier.manifest.tests))
    for record, encoder in zip(earlier.manifest.models, plan.encoders, strict=True):
        if record.revision != encoder.identity.revision:
            raise UsageError(f"{folder}: the model {record.text!r} has changed since the run began; start a new run")
    plan = dataclasses.replace(plan, manifest=earlier.manifest)  # which says what finished models took
    return _carry_out(plan, earlier.results, folder, cache, listener or Silent())


def _plan(manifest: Manifest, tests: tuple[Test, ...], given: Mapping[str, Encoder] | None = None) -> _Plan:
    """Check everything that can be checked before the first text is encoded."""
    settings = Settings(
        protocol=cast("Protocol", manifest.protocol),
        alternative=cast("Alternative", manifest.alternative),
        alpha=manifest.alpha,
        max_lost=manifest.max_lost,
        seed=manifest.seed,
    )
    check_tests(tests, settings)
    given = given or {}
    parsed = {r.text: parse_model(r.text) for r in manifest.models if r.text not in given}
    encoders = tuple(given.get(r.text) or open_encoder(parsed[r.text]) for r in manifest.models)
    records = tuple(
        identified(record.text, encoder.identity) for record, encoder in zip(manifest.models, encoders, strict=True)
    )
    asked = tuple((test, texts_of(test)) for test in tests)
    return _Plan(dataclasses.replace(manifest, models=records), encoders, asked, settings)


def _carry_out(
    plan: _Plan, results: tuple[Result, ...], folder: Path | None, cache: PathLike | None, listener: Listener
) -> Run:
    store = VectorStore(Path(cache) if cache is not None else default_cache())
    current = Run(plan.manifest, results)
    if folder is not None:
        current.save(folder)
    for place, encoder in enumerate(plan.encoders):
        current = _one_model(plan, current, place, encoder, store, listener)
        if folder is not None:
            current.save(folder)
    current = Run(finished(current.manifest, current.results), current.results)
    if folder is not None:
        write_report(current, folder)
        current.save(folder)
    return current


def _one_model(plan: _Plan, current: Run, place: int, encoder: Encoder, store: VectorStore, listener: Listener) -> Run:
    record = current.manifest.models[place]
    have = {result.test for result in current.results if is_of(result, record)}
    waiting = [(test, asked) for test, asked in plan.tests if test.name not in have]
    if not waiting:
        return current
    began = time.monotonic()
    texts = list(dict.fromkeys(text.text for _, asked in waiting for text in asked))
    kept = store.of(encoder.identity)
    if kept.damaged:
        listener.notice(
            f"{len(kept.damaged)} damaged file(s) of stored vectors were removed; their texts are encoded again"
        )
    encoded = encode_missing(encoder, texts, kept, lambda done, total: listener.encoding(record.text, done, total))
    vectors = _Vectors(texts, kept)
    hint, found = encoder.identity.lost_hint, []
    for number, (test, asked) in enumerate(waiting, start=1):
        measured = measure(test, asked, {role: vectors.of(asked, role) for role in ROLES}, plan.settings, hint)
        found.append(result_of(test, encoder.identity, measured, plan.settings))
        listener.measuring(record.text, number, len(waiting))
    results = with_corrections((*current.results, *found), plan.manifest.alpha)
    models = list(current.manifest.models)
    models[place] = dataclasses.replace(
        record, texts=len(texts), encoded=encoded, seconds=round(time.monotonic() - began, 3)
    )
    return Run(dataclasses.replace(current.manifest, models=tuple(models)), results)


class _Vectors:
    """The vectors of one model, by text."""

    def __init__(self, texts: list[str], store: ModelStore) -> None:
        self._all = store.get(texts)
        self._rows = {text: row for row, text in enumerate(texts)}

    def of(self, texts: TestTexts, role: str) -> Encoded:
        return self._all.rows([self._rows[text.text] for text in texts.role(role)])
