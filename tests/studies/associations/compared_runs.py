"""Runs to compare: of other models, and with other results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from biassay.results.records import Result
from biassay.results.run import Run, with_corrections

TESTS = ("weat6", "weat7", "weat8", "sent-weat6")


def other_model(run: Run, name: str, seed: int, **given: Any) -> Run:
    """The same tests with other associations of the words and other p-values; ``given`` changes the manifest."""
    rng = np.random.default_rng(seed)
    spread = {r.test: float(np.std([*r.leaning["X"].values(), *r.leaning["Y"].values()])) for r in run.results}
    results = tuple(
        dataclasses.replace(
            r,
            model=name,
            leaning={
                role: {w: value + spread[r.test] * rng.normal() for w, value in words.items()}
                for role, words in r.leaning.items()
            },
            p_value=float(rng.random() ** 6),
            p_value_by_word=float(rng.random() ** 6),
        )
        for r in run.results
    )
    models = tuple(dataclasses.replace(record, name=name) for record in run.manifest.models)
    manifest = dataclasses.replace(run.manifest, **{"run_id": name, "models": models} | given)
    return Run(manifest, with_corrections(results, manifest.alpha))


def edited(run: Run, test: str, **given: Any) -> Run:
    """With other values in one result."""
    changed = (dataclasses.replace(r, **given) if r.test == test else r for r in run.results)
    return dataclasses.replace(run, results=tuple(changed))


def without(run: Run, *tests: str) -> Run:
    return dataclasses.replace(run, results=tuple(r for r in run.results if r.test not in tests))


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found
