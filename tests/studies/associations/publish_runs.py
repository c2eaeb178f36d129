"""Runs to publish: real ones of word vectors and of made-up contexts, and changed ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import biassay
from biassay.encoders.base import Identity
from biassay.studies.associations.over_contexts import ContextSettings, measure_in_contexts
from biassay.results.making import contextual_result_of, finished, identified, new_manifest
from biassay.results.records import ContextsRecord, Result
from biassay.results.run import Run, with_corrections
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES

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


def measured_in_words(cache: Path) -> Run:
    """Words, bleached and unbleached sentences; measured, refused, and with too few words."""
    tests = ["sent-weat6", "weat6", "weat1", "sent-weat1", "weat9", "sent-weat9", "heilman_double_bind_competent_*"]
    tests += ["sent-angry_black_woman_stereotype_b", "angry_black_woman_stereotype_b", "weat3b", "I1"]
    return biassay.run("glove", tests=tests, max_lost=0.05, cache=cache)


def measured_in_contexts(models: tuple[str, ...] = ("one", "two")) -> Run:
    """C6 leans, C9 and C10 do not, C1 has no contexts."""
    tests = select_tests(["C6", "C9", "C10", "C1"])
    record = ContextsRecord(
        file="c.parquet", digest="d" * 32, rows=9876, per_stimulus=8, seed=0, documents=4321, bytes=10**6,
        n_samples=120, mode="random", window=9, dtype="float16", min_contexts=5,
    )  # fmt: skip
    known = [Identity(name, "own", "1", (("layer", "-1"),)) for name in models]
    manifest = new_manifest(models, [(test, "C*") for test in tests], "ceat", "two-sided", 0.01, 0.2, 0, record)
    manifest = dataclasses.replace(manifest, models=tuple(identified(m.name, m) for m in known))
    settings = ContextSettings(n_samples=120)
    results = []
    for place, model in enumerate(known):
        rng = np.random.default_rng(place)
        for test in tests:
            lean = {"X": 0.5, "Y": -0.5, "A": 0.5, "B": -0.5} if test.name == "C6" else dict.fromkeys(ROLES, 0.0)
            words = {w: rng.normal(lean[role], 1.0, (8, 12)) for role in ROLES for w in test.concept(role).words}
            found = measure_in_contexts(test, {} if test.name == "C1" else words, settings, model.name)
            results.append(contextual_result_of(test, model, found, settings))
    corrected = with_corrections(tuple(results), 0.01)
    return Run(finished(manifest, corrected), corrected)


def changed(run: Run, **given: Any) -> Run:
    """With other values in all results."""
    return Run(run.manifest, tuple(dataclasses.replace(r, **given) for r in run.results))


def with_first(run: Run, **given: Any) -> Run:
    """With other values in the first result that was measured."""
    first = next(i for i, r in enumerate(run.results) if r.effect_size is not None)
    results = list(run.results)
    results[first] = dataclasses.replace(results[first], **given)
    return Run(run.manifest, tuple(results))


def on_models(run: Run, names: tuple[str, ...]) -> Run:
    """The same results of models of these names."""
    return Run(run.manifest, tuple(dataclasses.replace(r, model=name) for name in names for r in run.results))


def many_tests(run: Run, count: int) -> Run:
    """A result again and again, under other names and titles."""
    first = run.results[0]
    return Run(run.manifest, tuple(dataclasses.replace(first, test=f"t{i}", title=f"T {i}") for i in range(count)))


def as_refused(result: Result) -> Result:
    numbers = ("effect_size", "statistic", "p_", "log10_p_", "significant")
    nothing: dict[str, Any] = {f.name: None for f in dataclasses.fields(Result) if f.name.startswith(numbers)}
    return dataclasses.replace(
        result, **nothing, status="refused", reason="too many words", leaning={}, contextual=None
    )
