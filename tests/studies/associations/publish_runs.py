"""Runs to publish: real ones of word vectors and of made-up contexts, and changed ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from tests.results.made_runs import altered, contexts, run_of, with_rows, with_scales

import biassay
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES
from biassay.models.base import Identity
from biassay.prompts.sentences import hash_texts
from biassay.results.run_data import TestRecord
from biassay.runs.models import make_model_record
from biassay.runs.run import Run
from biassay.studies.associations.measure import make_result, measure_over_contexts
from biassay.studies.associations.results import COSINES, SAMPLE_ARRAYS, AssociationInputsRecord
from biassay.studies.associations.settings import AssociationSettings

SCRIPT = "<script>alert(1)</script>"
NASTY = (
    "<script>",
    "a_b&c%$#{}~^\\",
    "[2cm]*",
    "-- ,, '' `` \" |",
    "x" * 200,
    "中文 é ß 😀",
    "a\nb\tc\x1b[0m",
    "\\|`*_",
)


def measured_in_words(cache: Path, **given: Any) -> Run:
    """Words, bleached and unbleached sentences; measured and refused."""
    tests = ["sent-weat6", "weat6", "weat1", "sent-weat1", "weat9", "sent-weat9", "heilman_double_bind_competent_*"]
    tests += ["sent-angry_black_woman_stereotype_b", "angry_black_woman_stereotype_b", "weat3b", "I1"]
    return biassay.run("glove", tests=tests, max_unknown=0.05, cache=cache, **given)


def measured_in_contexts(models: tuple[str, ...] = ("one", "two")) -> Run:
    """C6 has an association, C9 and C10 have none; C9 loses a word, C1 has no contexts."""
    tests = select_tests(["C6", "C9", "C10", "C1"])
    record = contexts(digest="d" * 32, rows=9876, documents=4321, bytes=10**6)
    known = [Identity(name, "own", "1", (("layer", "-1"),)) for name in models]
    chosen: dict[str, Any] = {"n_samples": 120, "window": 9}
    results: list[Any] = []
    arrays: dict[str, Any] = {}
    for place, model in enumerate(known):
        rng = np.random.default_rng(place)
        for test in tests:
            mean = {"X": 0.5, "Y": -0.5, "A": 0.5, "B": -0.5} if test.name == "C6" else dict.fromkeys(ROLES, 0.0)
            words = {w: rng.normal(mean[role], 1.0, (8, 12)) for role in ROLES for w in test.concept(role).words}
            if test.name == "C9":
                words[test.X.words[0]] = words[test.X.words[0]][:2]
            found = measure_over_contexts(
                test, {} if test.name == "C1" else words, AssociationSettings(**chosen), model.name
            )
            results.append(make_result(test, model, found, AssociationSettings(**chosen)))
            names = (*SAMPLE_ARRAYS, COSINES) if found.association is not None else ()
            arrays |= {f"{place}/{test.name}/{name}": getattr(found.association, name) for name in names}
    records = tuple(dataclasses.replace(make_model_record(m.name, m), measured=True) for m in known)
    made = run_of(" ".join(models), results, arrays, settings=chosen, contexts=record, models=records)
    sources = [(t.source.name, t.source.citation, t.source.licence, t.source.version) for t in tests]
    asked = [TestRecord(t.name, "C*", hash_texts(t), *source) for t, source in zip(tests, sources, strict=True)]
    manifest = dataclasses.replace(made.manifest, inputs=AssociationInputsRecord(tuple(asked), record))
    return with_scales(dataclasses.replace(made, manifest=manifest))


def changed(run: Run, **given: Any) -> Run:
    """With other values in all results."""
    return with_rows(run, (altered(r, **given) for r in run.results))


def with_first(run: Run, **given: Any) -> Run:
    """With other values in the first result that was measured."""
    first = next(i for i, r in enumerate(run.results) if r.effect_size is not None)
    results = list(run.results)
    results[first] = altered(results[first], **given)
    return with_rows(run, results)


def on_models(run: Run, names: tuple[str, ...]) -> Run:
    """The same results of models of these names."""
    return with_rows(run, (altered(r, model=name) for name in names for r in run.results))


def many_tests(run: Run, count: int) -> Run:
    """A result again and again, under other names and titles."""
    first = run.results[0]
    return with_rows(run, (altered(first, test=f"t{i}", title=f"T {i}") for i in range(count)))
