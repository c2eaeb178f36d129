"""A run of one model as one of many, whose numbers vary."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from tests.results.made_runs import altered, stored, with_rows

from biassay.runs.run import Run
from biassay.studies.associations.results import AssociationRecord


def with_models(found: Run, count: int) -> Run:
    """The run on ``count`` models, all but the first made by noise from it."""
    rng = np.random.default_rng(0)
    results = list(map(stored, found.results))
    records = list(found.manifest.models)
    for number in range(1, count):
        records.append(dataclasses.replace(records[0], text=f"noisy {number}", name=f"noisy {number}"))
        results += [noisy(stored(r), f"noisy {number}", rng) for r in found.results]
    return with_rows(found, results, models=tuple(records))


def noisy(result: AssociationRecord, model: str, rng: np.random.Generator) -> AssociationRecord:
    p = float(10.0 ** -rng.exponential(3.0))
    numbers: dict[str, Any] = {} if result.outcome.effect_size is None else {
        "effect_size": float(rng.normal()),
        "p_value": None if result.outcome.p_value is None else p,
        "associations": {
            role: {word: value + float(rng.normal(0.0, 0.02)) for word, value in words.items()}
            for role, words in result.associations.items()
        },
    }  # fmt: skip
    return altered(result, model=model, **numbers)
