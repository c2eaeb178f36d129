"""Runs to compare: of other models, and with other results."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from tests.results.made_runs import with_rows

from biassay.runs.run import Run
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.records import Result

TESTS = ("weat6", "weat7", "weat8", "sent-weat6")


def other_model(run: Run, name: str, seed: int, **given: Any) -> Run:
    """The same tests with other associations of the words and other p-values; ``given`` changes the settings."""
    rng = np.random.default_rng(seed)
    spread = {
        r.test: float(np.std([*r.associations["X"].values(), *r.associations["Y"].values()])) for r in run.results
    }
    results = tuple(
        dataclasses.replace(
            r,
            model=name,
            associations={
                role: {w: value + spread[r.test] * rng.normal() for w, value in words.items()}
                for role, words in r.associations.items()
            },
            p_value=float(rng.random() ** 6),
            p_value_by_word=float(rng.random() ** 6),
        )
        for r in run.results
    )
    models = tuple(dataclasses.replace(record, name=name) for record in run.manifest.models)
    settings = dataclasses.replace(run.manifest.settings, **given)
    rows = with_corrections(results, settings)
    return with_rows(run, rows, run_id=name, models=models, settings=settings)


def edited(run: Run, test: str, **given: Any) -> Run:
    """With other values in one result."""
    changed = (dataclasses.replace(r, **given) if r.test == test else r for r in run.results)
    return with_rows(run, changed)


def without(run: Run, *tests: str) -> Run:
    return with_rows(run, (r for r in run.results if r.test not in tests))


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found
