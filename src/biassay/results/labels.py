"""What the models of a run are called where they stand side by side."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

from biassay.results.data import RunData

__all__ = ["ModelKey", "model_key", "model_labels", "numbered"]

ModelKey = tuple[str, str, str | None]


def numbered(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    names = itertools.chain((name,), (f"{name} #{number}" for number in itertools.count(2)))
    return next(free for free in names if free not in taken)


def model_key(row: Any) -> ModelKey:
    """What tells the models of a run apart, in its rows."""
    return row.model, row.options, getattr(row, "model_revision", None)


def model_labels(run: RunData) -> dict[ModelKey, str]:
    """A label for every model that has rows.

    Models of several runs put together, and of older runs, may differ in nothing but their weights: they get a number.
    """
    rows = (row for table in run.tables.values() for row in table)
    plain = {model_key(row): f"{row.model} ({row.options})" if row.options else row.model for row in rows}
    labels: dict[ModelKey, str] = {}
    for key, label in plain.items():
        is_first = label not in labels.values()
        labels[key] = label if is_first else numbered(label, {*plain.values(), *labels.values()})
    return labels
