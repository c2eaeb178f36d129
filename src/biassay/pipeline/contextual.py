"""CEAT on one page: contexts become word vectors, word vectors become samples, samples become results.

Vectors are stored shard by shard and results model by model, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from biassay.engines.base import Engine
from biassay.engines.local import LocalEngine
from biassay.errors import StimulusError, UsageError
from biassay.measures.contextual import cover, measure_in_contexts
from biassay.pipeline.common import Listener, PathLike, Silent, check_free, taken_back_if_empty
from biassay.pipeline.embedding import embed
from biassay.pipeline.models import asked_models, check_unchanged, models_again, refuse_vectors
from biassay.pipeline.planning import Plan, contexts_record, make_plan
from biassay.results.making import contextual_result_of, finished, is_of, new_manifest
from biassay.results.records import ContextsRecord, Result
from biassay.results.run import Run, with_corrections
from biassay.results.samples import Samples
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.studies.presenters import write_report
from biassay.texts.contexts import UNCHECKED, read_contexts
from biassay.texts.sentences import digest_of

__all__ = ["resume_ceat", "run_ceat"]


def run_ceat(
    models: str | Sequence[str] | Mapping[str, str],
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
    models : str, list of str or dict
        Model strings of families that give a word in its context a vector: ``hf:NAME``, ``elmo:DIR``; the keys of a
        dict name them in all results.
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
    asked = asked_models(models)
    kept = read_contexts(Path(contexts))
    patterns = (tests,) if isinstance(tests, str) else tuple(tests)
    patterns = patterns or tuple(kept.metadata.get("tests", ()))
    if not patterns:
        raise UsageError(f"{contexts} does not say for which tests it was made; name them with --tests")
    chosen = [(test, pattern) for pattern in patterns for test in select_tests([pattern])]
    select_tests(patterns)  # two different tests of one name are an error
    record = contexts_record(Path(contexts), kept, n_samples, mode, window, dtype, min_contexts, vectors)
    manifest = new_manifest(
        tuple(one.text for one in asked), chosen, "ceat", "two-sided", alpha, max_lost, seed, record
    )
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    plan = make_plan(manifest, asked, kept, tuple(dict.fromkeys(test for test, _ in chosen)), cache, vectors)
    if folder is None:
        return _carry_out(plan, Run(plan.manifest), None, engine, listener)
    with taken_back_if_empty(folder):
        return _carry_out(plan, Run(plan.manifest), folder, engine, listener)


def resume_ceat(
    folder: PathLike,
    models: object = None,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Go on with a run over contexts; vectors that were stored and models that were measured are kept.

    See `biassay.resume`, which goes on with runs of either kind.
    """
    folder = Path(folder)
    earlier = Run.load(folder)
    record = earlier.manifest.contexts
    if record is None:
        raise UsageError(f"{folder} is not a run over contexts; go on with it by biassay.resume")
    if earlier.manifest.status == "complete":
        return earlier
    models_asked = models_again(folder, earlier.manifest.models, models)
    if vectors is None and record.vectors is not None:
        refuse_vectors(folder, record.vectors, models_asked)
    kept = read_contexts(Path(record.file))
    if kept.digest != record.digest:
        raise UsageError(f"{folder}: the contexts in {record.file} have changed since the run began; start a new run")
    by_name = {t.name: t for t in select_tests(tuple(dict.fromkeys(t.pattern for t in earlier.manifest.tests)))}
    for asked in earlier.manifest.tests:
        if asked.name not in by_name or digest_of(by_name[asked.name]) != asked.digest:
            raise StimulusError(f"{folder}: the test {asked.name!r} has changed since the run began; start a new run")
    tests = tuple(by_name[asked.name] for asked in earlier.manifest.tests)
    plan = make_plan(earlier.manifest, models_asked, kept, tests, cache, vectors)
    check_unchanged(folder, earlier.manifest.models, plan.identities)
    return _carry_out(dataclasses.replace(plan, manifest=earlier.manifest), earlier, folder, engine, listener)


def _carry_out(plan: Plan, current: Run, folder: Path | None, engine: Engine | None, listener: Listener | None) -> Run:
    listener = listener or Silent()
    if not plan.contexts.checked:
        listener.notice(UNCHECKED)
    if folder is not None:
        current.save(folder)
    unmeasured = [place for place in range(len(plan.stores)) if _waiting(plan, current, place)]
    together = range(len(plan.stores)) if plan.settings.mode == "fixed" and unmeasured else ()
    for place in together:  # all models are embedded before one is measured: a context must be usable for all
        current = _embed(plan, current, place, engine or LocalEngine(), listener)
    for place in unmeasured:
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


def _embed(plan: Plan, current: Run, place: int, engine: Engine, listener: Listener) -> Run:
    record, store = current.manifest.models[place], plan.stores[place]
    began = time.monotonic()
    if store.damaged:
        listener.notice(f"{len(store.damaged)} damaged file(s) of stored vectors were removed and are computed again")
    window = cast("ContextsRecord", plan.manifest.contexts).window
    done = embed(
        plan.models[place],
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


def _waiting(plan: Plan, current: Run, place: int) -> list[Test]:
    """The tests that were not measured on a model yet."""
    have = {result.test for result in current.results if is_of(result, current.manifest.models[place])}
    return [test for test in plan.tests if test.name not in have]


def _measure(plan: Plan, current: Run, place: int, listener: Listener) -> Run:
    record, identity = current.manifest.models[place], plan.identities[place]
    waiting = _waiting(plan, current, place)
    found, samples = [], dict(current.samples)
    for number, test in enumerate(waiting, start=1):
        vectors = _vectors_of(plan, place, test)
        who = f"{identity.content} {identity.options}"
        measured = measure_in_contexts(test, vectors, plan.settings, who, plan.contexts.count)
        found.append(contextual_result_of(test, identity, measured, plan.settings))
        if measured.association is not None:
            kept = measured.association
            samples[place, test.name] = Samples(kept.samples, kept.variances, kept.sample_p_values)
        listener.measuring(record.text, number, len(waiting))
    _tell_unlocated(plan, current, place, found, listener)
    results = with_corrections((*current.results, *found), plan.manifest.alpha)
    return Run(current.manifest, results, samples)


def _tell_unlocated(plan: Plan, current: Run, place: int, found: Sequence[Result], listener: Listener) -> None:
    """Say which words the model could not locate in all of their contexts."""
    counts: dict[str, int] = {}
    for result in found:
        if result.contextual is not None:
            counts |= {word: n for words in result.contextual.num_contexts.values() for word, n in words.items()}
    short = {word: plan.contexts.count(word) - count for word, count in counts.items()}
    words = ", ".join(f"{word} {count}" for word, count in short.items() if count)
    if words:
        total, name = sum(short.values()), current.manifest.models[place].text
        who = "the model" if plan.settings.mode == "random" else "a model of the run"
        listener.notice(f"{name}: {total} contexts were left out, for {who} has no vector of the word there: {words}")


def _vectors_of(plan: Plan, place: int, test: Test) -> dict[str, NDArray[np.floating]]:
    """Vectors of all stimuli of a test; of one that cannot be measured, only how many there would be."""
    words = dict.fromkeys(word for role in ROLES for word in test.concept(role).words)
    if not cover(plan.contexts.count, test, plan.settings).measurable:
        return {word: np.empty((plan.contexts.count(word), 1)) for word in words}
    return {word: _vectors(plan, place, word) for word in words}


def _vectors(plan: Plan, place: int, word: str) -> NDArray[np.floating]:
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
