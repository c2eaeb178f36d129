"""Relate two measures over models, and account for the measurement error of both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from biassay.errors import UsageError
from biassay.results.outcomes import Result
from biassay.results.paired_comparison import get_standard_error
from biassay.results.run_data import model_key, model_labels
from biassay.runs.run import Run
from biassay.stats.errors_in_variables import FEWEST_MODELS, CorrectedCorrelation, correlate_with_errors
from biassay.stats.multiple_testing import holm

_MOST_PAIRS = 200


@dataclass(frozen=True)
class Relation:
    """Correlation of one item of the first runs with one item of the others, over models.

    Attributes
    ----------
    item, other_item : str
        Tests, groups or categories.
    models : tuple of str
        Labels of the models that have both.
    found : CorrectedCorrelation
    p_adjusted : float
        P-value after Holm's correction over all pairs of items.
    """

    item: str
    other_item: str
    models: tuple[str, ...]
    found: CorrectedCorrelation
    p_adjusted: float

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        own = {"item": self.item, "other_item": self.other_item, "models": list(self.models)}
        return own | asdict(self.found) | {"p_adjusted": self.p_adjusted}


def relate(
    runs: Sequence[Run],
    others: Sequence[Run],
    items: Iterable[str] = (),
    other_items: Iterable[str] = (),
) -> tuple[Relation, ...]:
    """Correlate a measure with another one over models.

    Parameters
    ----------
    runs, others : sequence of Run
        Runs with the first measure, and with the one that it may predict. Models are matched by label.
    items, other_items : iterable of str
        Tests, groups or categories to relate; by default all that were measured on at least five common models.

    Returns
    -------
    tuple of Relation
        Strongest first.

    Raises
    ------
    UsageError
        If fewer than five models have both measures.
    """
    first, second = (_collect_values(group) for group in (runs, others))
    common = sorted(set().union(*first.values()) & set().union(*second.values()))
    if len(common) < FEWEST_MODELS:
        listed = f" ({', '.join(common)})" if common else ""
        raise UsageError(
            f"relate needs at least {FEWEST_MODELS} models in both groups of runs, got {len(common)}{listed}; "
            "models are matched by label (LABEL=MODEL)"
        )
    pairs = [
        (item, other, models)
        for item in _choose(items, first)
        for other in _choose(other_items, second)
        if len(models := sorted(first[item].keys() & second[other].keys())) >= FEWEST_MODELS
        and any(first[item][model] != second[other][model] for model in models)  # not the same measurement
    ]
    if not pairs:
        raise UsageError(f"no pair of items was measured with a standard error on {FEWEST_MODELS} common models")
    if len(pairs) > _MOST_PAIRS:
        raise UsageError(f"{len(pairs):,} pairs of items; choose at most {_MOST_PAIRS} with --items and --with-items")
    found = []
    for item, other, models in pairs:
        x, x_errors = zip(*(first[item][model] for model in models), strict=True)
        y, y_errors = zip(*(second[other][model] for model in models), strict=True)
        found.append(correlate_with_errors(x, y, x_errors, y_errors))
    adjusted = holm([correlation.p_value for correlation in found]).adjusted
    relations = [
        Relation(item, other, tuple(models), correlation, float(p))
        for (item, other, models), correlation, p in zip(pairs, found, adjusted, strict=True)
    ]
    return tuple(sorted(relations, key=lambda relation: (relation.found.p_value, relation.item)))


def _collect_values(runs: Sequence[Run]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return value and standard error by item and label of the model; those without a standard error are left out."""
    values: dict[str, dict[str, tuple[float, float]]] = {}
    for run in runs:
        labels = model_labels(run)
        for result in run.results:
            if not isinstance(result, Result):
                study = run.manifest.study
                raise UsageError(f"runs of {study} cannot be related, because their results have no standard errors")
            error = get_standard_error(result.record.outcome)
            if result.effect_size is None or math.isnan(error):
                continue
            label = labels[model_key(result)]
            own = values.setdefault(result.item, {})
            if label in own:
                raise UsageError(f"two runs measured {result.item!r} on {label!r}; give each model once, or labels")
            own[label] = (result.effect_size, error)
    return values


def _choose(items: Iterable[str], known: dict[str, dict[str, tuple[float, float]]]) -> list[str]:
    chosen = list(items)
    for item in chosen:
        if item not in known:
            raise UsageError(f"no run measured {item!r} with a standard error; measured: {', '.join(list(known)[:20])}")
    return chosen or list(known)
