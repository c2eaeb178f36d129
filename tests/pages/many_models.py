"""A run of one model as one of many, whose numbers vary."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from tests.results.made_runs import with_rows

from biassay.runs.run import Run
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.records import Result


def with_models(found: Run, count: int) -> Run:
    """The run on ``count`` models, all but the first made by noise from it."""
    rng = np.random.default_rng(0)
    results = list(found.results)
    records = list(found.manifest.models)
    for number in range(1, count):
        records.append(dataclasses.replace(records[0], text=f"noisy {number}", name=f"noisy {number}"))
        results += [noisy(r, f"noisy {number}", rng) for r in found.results]
    return with_rows(found, with_corrections(results, found.manifest.settings), models=tuple(records))


def noisy(result: Result, model: str, rng: np.random.Generator) -> Result:
    p = float(10.0 ** -rng.exponential(3.0))
    numbers: dict[str, Any] = {} if result.effect_size is None else {
        "effect_size_by_word": float(rng.normal()),
        "p_value_crossed": None if result.p_value_crossed is None else p,
        "associations": {
            role: {word: value + float(rng.normal(0.0, 0.02)) for word, value in words.items()}
            for role, words in result.associations.items()
        },
    }  # fmt: skip
    return dataclasses.replace(result, model=model, **numbers)
