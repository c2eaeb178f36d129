"""CEAT on one page: contexts become word vectors, word vectors become samples, samples become results.

Vectors are stored shard by shard and results model by model, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Identity
from biassay.encoders.registry import open_word_encoder, parse_model
from biassay.engines.base import Engine
from biassay.engines.local import LocalEngine
from biassay.errors import StimulusError, UsageError
from biassay.files import default_cache
from biassay.measures.contextual import ContextSettings, check_word_tests, cover, measure_in_contexts
from biassay.pipeline.common import Listener, PathLike, Silent, check_free, taken_back_if_empty
from biassay.pipeline.embedding import embed, open_store, store_about
from biassay.report.html import write_report
from biassay.results.making import contextual_result_of, finished, identified, is_of, new_manifest
from biassay.results.records import ContextsRecord, Manifest, Result
from biassay.results.run import Run, with_corrections
from biassay.results.samples import Samples
from biassay.stats.permutation import check_choice
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.texts.contexts import Contexts, read_contexts
from biassay.vectors.shards import ShardStore, StoredType

__all__ = ["resume_ceat", "run_ceat"]

MODES = ("random", "fixed")
_HOW_FOUND = ("format", "field", "document", "html", "language", "ignore_case", "openings")


@dataclass(frozen=True)
class _Plan:
    """A run that was checked and can be carried out."""

    manifest: Manifest
    settings: ContextSettings
    contexts: Contexts
    tests: tuple[Test, ...]
    stores: tuple[ShardStore, ...]
    identities: tuple[Identity, ...]

    @property
    def stimuli(self) -> tuple[str, ...]:
        """The words of the tests that have contexts enough; no others are encoded."""
        tests = (test for test in self.tests if cover(self.contexts.count, test, self.settings).measurable)
        words = (word for test in tests for role in ROLES for word in test.concept(role).words)
        return tuple(dict.fromkeys(words))


def run_ceat(
    models: str | Sequence[str],
    contexts: PathLike,
    tests: str | Sequence[str] = (),
    *,
    n_samples: int = 10_000,
    mode: str = "random",
    window: int | None = None,
    dtype: str = "float16",
    min_contexts: int = 5,
    alpha: float = 0.01,
    max_lost: float = 0.2,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run association tests over the contexts in which words occur.

    Parameters
    ----------
    models : str or list of str
        Model strings of families that give a word in its context a vector: ``hf:NAME``, ``elmo:DIR``.
    contexts : path
        A file made by ``biassay contexts``.
    tests : str or list of str
        Names, patterns, collections or files; by default the tests for which the contexts were collected.
    n_samples : int
        Samples of one context per stimulus.
    mode : {"random", "fixed"}
        Whether every model draws contexts of its own, or all models are given the same.
    window : int, optional
        Words kept around the stimulus (the released code of the paper: 9); by default the whole sentence.
    dtype : {"float16", "float32"}
        In which vectors are stored.
    min_contexts, max_lost : int, float
        A stimulus with fewer contexts is lost; a test that loses a larger share of a concept's stimuli is refused.
    alpha, seed, out, cache
        As in `biassay.run`.
    vectors : path, optional
        A folder for the vectors, instead of the cache; one made by another model or with other settings is refused.
    engine : Engine, optional
        Where models run; by default here.
    """
    names = (models,) if isinstance(models, str) else tuple(models)
    kept = read_contexts(Path(contexts))
    patterns = (tests,) if isinstance(tests, str) else tuple(tests)
    patterns = patterns or tuple(kept.metadata.get("tests", ()))
    if not patterns:
        raise UsageError(f"{contexts} does not say for which tests it was made; name them with --tests")
    chosen = [(test, pattern) for pattern in patterns for test in select_tests([pattern])]
    select_tests(patterns)  # two different tests of one name are an error
    record = _record(Path(contexts), kept, n_samples, mode, window, dtype, min_contexts, vectors)
    manifest = new_manifest(names, chosen, "ceat", "two-sided", alpha, max_lost, seed, record)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    plan = _plan(manifest, kept, tuple(dict.fromkeys(test for test, _ in chosen)), cache, vectors)
    if folder is None:
        return _carry_out(plan, Run(plan.manifest), None, engine, listener)
    with taken_back_if_empty(folder):
        return _carry_out(plan, Run(plan.manifest), folder, engine, listener)


def resume_ceat(
    folder: PathLike,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Go on with a run that was interrupted; vectors that were stored and models that were measured are kept."""
    folder = Path(folder)
    earlier = Run.load(folder)
    record = earlier.manifest.contexts
    if record is None:
        raise UsageError(f"{folder} is not a run over contexts; go on with it by biassay run --resume {folder}")
    if earlier.manifest.status == "complete":
        return earlier
    kept = read_contexts(Path(record.file))
    if kept.digest != record.digest:
        raise UsageError(f"{folder}: the contexts in {record.file} have changed since the run began; start a new run")
    by_name = {t.name: t for t in select_tests(tuple(dict.fromkeys(t.pattern for t in earlier.manifest.tests)))}
    for asked in earlier.manifest.tests:
        if asked.name not in by_name or by_name[asked.name].digest != asked.digest:
            raise StimulusError(f"{folder}: the test {asked.name!r} has changed since the run began; start a new run")
    tests = tuple(by_name[asked.name] for asked in earlier.manifest.tests)
    plan = _plan(earlier.manifest, kept, tests, cache, vectors if vectors is not None else record.vectors)
    for before, now in zip(earlier.manifest.models, plan.manifest.models, strict=True):
        if before.revision != now.revision:
            raise UsageError(f"{folder}: the model {before.text!r} has changed since the run began; start a new run")
    return _carry_out(dataclasses.replace(plan, manifest=earlier.manifest), earlier, folder, engine, listener)


def _record(
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
        found_with={key: str(contexts.metadata[key]) for key in _HOW_FOUND if contexts.metadata.get(key)},
        vectors=None if vectors is None else str(Path(vectors).resolve()),
    )


def _plan(
    manifest: Manifest, contexts: Contexts, tests: tuple[Test, ...], cache: PathLike | None, vectors: PathLike | None
) -> _Plan:
    """Check everything that can be checked before the first context is encoded."""
    check_word_tests(tests)
    _check_sought(tests, contexts)
    record = cast("ContextsRecord", manifest.contexts)
    parsed = [parse_model(model.text) for model in manifest.models]
    identities = tuple(open_word_encoder(model).identity for model in parsed)
    abouts = [store_about(contexts, identity, record.window, record.dtype) for identity in identities]
    root = Path(cache) if cache is not None else default_cache()
    stores = tuple(
        open_store(about, contexts, root, None if vectors is None else Path(vectors) / _slug(model.text))
        for about, model in zip(abouts, parsed, strict=True)
    )
    records = tuple(identified(model.text, identity) for model, identity in zip(parsed, identities, strict=True))
    settings = ContextSettings(
        record.n_samples, record.mode, record.min_contexts, manifest.alpha, manifest.max_lost, manifest.seed
    )
    return _Plan(dataclasses.replace(manifest, models=records), settings, contexts, tests, stores, identities)


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


def _carry_out(plan: _Plan, current: Run, folder: Path | None, engine: Engine | None, listener: Listener | None) -> Run:
    listener = listener or Silent()
    if folder is not None:
        current.save(folder)
    together = range(len(plan.stores)) if plan.settings.mode == "fixed" else ()
    for place in together:  # all models are embedded before one is measured: a context must be usable for all
        current = _embed(plan, current, place, engine or LocalEngine(), listener)
    for place in range(len(plan.stores)):
        if place not in together:
            current = _embed(plan, current, place, engine or LocalEngine(), listener)
        current = _measure(plan, current, place, listener)
        if folder is not None:
            current.save(folder)
    current = dataclasses.replace(current, manifest=finished(current.manifest, current.results))
    if folder is not None:
        write_report(current, folder)
        current.save(folder)
    return current


def _embed(plan: _Plan, current: Run, place: int, engine: Engine, listener: Listener) -> Run:
    record, store = current.manifest.models[place], plan.stores[place]
    began = time.monotonic()
    if store.damaged:
        listener.notice(f"{len(store.damaged)} damaged file(s) of stored vectors were removed and are computed again")
    window = cast("ContextsRecord", plan.manifest.contexts).window
    done = embed(
        record.text,
        plan.contexts,
        plan.stimuli,
        store,
        window,
        engine,
        lambda d, t: listener.encoding(record.text, d, t),
    )
    for reason, count in done.missing.most_common():
        listener.notice(f"{record.text}: of the contexts just encoded, {count} have no vector: {reason}")
    rows = sum(rows.stop - rows.start for rows in map(plan.contexts.of, plan.stimuli))
    models = list(current.manifest.models)
    seconds = round(record.seconds + time.monotonic() - began, 3)
    models[place] = dataclasses.replace(record, texts=rows, encoded=record.encoded + done.encoded, seconds=seconds)
    return dataclasses.replace(current, manifest=dataclasses.replace(current.manifest, models=tuple(models)))


def _measure(plan: _Plan, current: Run, place: int, listener: Listener) -> Run:
    record, identity = current.manifest.models[place], plan.identities[place]
    have = {result.test for result in current.results if is_of(result, record)}
    waiting = [test for test in plan.tests if test.name not in have]
    found, samples = [], dict(current.samples)
    for number, test in enumerate(waiting, start=1):
        vectors = _vectors_of(plan, place, test)
        measured = measure_in_contexts(test, vectors, plan.settings, f"{identity.name} {identity.options}")
        found.append(contextual_result_of(test, identity, measured, plan.settings))
        if measured.association is not None:
            kept = measured.association
            samples[place, test.name] = Samples(kept.samples, kept.variances, kept.sample_p_values)
        listener.measuring(record.text, number, len(waiting))
    _tell_unlocated(plan, current, place, found, listener)
    results = with_corrections((*current.results, *found), plan.manifest.alpha)
    return Run(current.manifest, results, samples)


def _tell_unlocated(plan: _Plan, current: Run, place: int, found: Sequence[Result], listener: Listener) -> None:
    """Say which words the model could not locate in all of their contexts."""
    counts: dict[str, int] = {}
    for result in found:
        if result.contextual is not None:
            counts |= {word: n for words in result.contextual.num_contexts.values() for word, n in words.items()}
    short = {word: plan.contexts.count(word) - count for word, count in counts.items()}
    words = ", ".join(f"{word} {count}" for word, count in short.items() if count)
    if words:
        total, name = sum(short.values()), current.manifest.models[place].text
        listener.notice(
            f"{name}: {total} contexts were left out, for the model has no vector of the word there: {words}"
        )


def _vectors_of(plan: _Plan, place: int, test: Test) -> dict[str, NDArray[np.floating]]:
    """Vectors of all stimuli of a test; of one that cannot be measured, only how many there would be."""
    words = dict.fromkeys(word for role in ROLES for word in test.concept(role).words)
    if not cover(plan.contexts.count, test, plan.settings).measurable:
        return {word: np.empty((plan.contexts.count(word), 1)) for word in words}
    return {word: _vectors(plan, place, word) for word in words}


def _vectors(plan: _Plan, place: int, word: str) -> NDArray[np.floating]:
    """Vectors of the contexts of a stimulus that the model could locate; in fixed mode, that all models could."""
    rows = plan.contexts.of(word)
    if rows.start == rows.stop:
        return np.empty((0, 1))
    own = plan.stores[place].read(rows)
    usable = ~np.isnan(own[:, 0])
    if plan.settings.mode == "fixed":
        for other in plan.stores:
            usable &= ~np.isnan(other.read(rows)[:, 0])
    return own if usable.all() else own[usable]
