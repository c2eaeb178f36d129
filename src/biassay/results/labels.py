"""What the models of a run are called where they stand side by side."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from biassay.results.records import Result
from biassay.results.run import Run

__all__ = ["ModelKey", "model_key", "model_labels", "numbered"]

ModelKey = tuple[str, str, str | None]


def numbered(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    names = itertools.chain((name,), (f"{name} #{number}" for number in itertools.count(2)))
    return next(free for free in names if free not in taken)


def model_key(result: Result) -> ModelKey:
    """What tells the models of a run apart."""
    return result.model, result.options, result.model_revision


def model_labels(run: Run) -> dict[ModelKey, str]:
    """A label for every model of a run.

    Models of several runs put together, and of older runs, may differ in nothing but their weights: they get a number.
    """
    plain = {model_key(r): f"{r.model} ({r.options})" if r.options else r.model for r in run.results}
    labels: dict[ModelKey, str] = {}
    for key, label in plain.items():
        is_first = label not in labels.values()
        labels[key] = label if is_first else numbered(label, {*plain.values(), *labels.values()})
    return labels
