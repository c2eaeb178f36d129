"""What the models of a run are called where they stand side by side."""

from __future__ import annotations

from biassay.results.records import Result
from biassay.results.run import Run

__all__ = ["ModelKey", "model_key", "model_labels"]

ModelKey = tuple[str, str, str | None]


def model_key(result: Result) -> ModelKey:
    """What tells the models of a run apart."""
    return result.model, result.options, result.model_revision


def model_labels(run: Run) -> dict[ModelKey, str]:
    """A label for every model of a run; models that differ in nothing but their weights get a number."""
    labels: dict[ModelKey, str] = {}
    for result in run.results:
        if model_key(result) not in labels:
            label = f"{result.model} ({result.options})" if result.options else result.model
            same = sum(known[:2] == (result.model, result.options) for known in labels)
            labels[model_key(result)] = f"{label} #{same + 1}" if same else label
    return labels
