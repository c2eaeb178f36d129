"""Significance of results, before and after correction for the number of tests in a family.

A family are the tests about people on one model: another model changes nothing in it, and checks of the method stand
outside. The papers' protocols correct over all rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from biassay.results.labels import model_key
from biassay.stats.multiple import Correction, holm
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import Settings

__all__ = ["with_corrections"]

_NAMES = {
    "p_value": ("p_value_holm", "significant", "significant_holm"),
    "p_value_by_word": ("p_value_by_word_holm", "significant_by_word", "significant_by_word_holm"),
    "p_value_crossed": ("p_value_crossed_holm", "significant_crossed", "significant_crossed_holm"),
}


def with_corrections(results: Sequence[Result], settings: Settings) -> tuple[Result, ...]:
    """Fill in what depends on the other results: significance before and after Holm's correction, and its family."""
    alpha = settings.level
    changes: list[dict[str, Any]] = [_alone(row, alpha) for row in results]
    for family in _families(results, settings):
        rows = [results[i] for i in family]
        for name, (adjusted, _, rejected) in _NAMES.items():
            found = _corrected(rows, name, settings)
            for place, i in enumerate(family):
                if getattr(results[i], name) is not None:
                    changes[i] |= {adjusted: _given(found.adjusted[place]), rejected: bool(found.rejected[place])}
        size = _size(rows, settings)
        for i in family:
            changes[i]["family"] = size
    return tuple(dataclasses.replace(row, **own) for row, own in zip(results, changes, strict=True))


def _alone(row: Result, alpha: float) -> dict[str, Any]:
    """Significance before correction; what is corrected is filled in by the family, if the result has one."""
    found: dict[str, Any] = {"family": None}
    for name, (adjusted, significant, rejected) in _NAMES.items():
        p = getattr(row, name)
        found |= {adjusted: None, rejected: None, significant: None if p is None else bool(p <= alpha)}
    return found


def _families(results: Sequence[Result], settings: Settings) -> list[list[int]]:
    if settings.of_papers:
        return [list(range(len(results)))]
    families: dict[tuple[str, str, str | None], list[int]] = {}
    for i, row in enumerate(results):
        if row.about != "method":
            families.setdefault(model_key(row), []).append(i)
    return list(families.values())


def _corrected(rows: Sequence[Result], name: str, settings: Settings) -> Correction:
    """Holm's correction; by word with Tarone's refinement, for the smallest p-value of so many words is known."""
    p_values = [_or_nan(getattr(row, name)) for row in rows]
    if name != "p_value_by_word" or settings.of_papers:
        return holm(p_values, settings.level)
    return holm(p_values, settings.level, floors=[row.p_floor_by_word or 0.0 for row in rows])


def _size(rows: Sequence[Result], settings: Settings) -> int:
    """How many p-values of those that lead are corrected together."""
    lead = "p_value" if settings.of_papers else "p_value_crossed"
    return sum(getattr(row, lead) is not None for row in rows)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _given(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
