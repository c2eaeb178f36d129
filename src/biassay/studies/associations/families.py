"""Significance of results, before and after correction for the number of tests in a family.

A family are the tests about people on one model: another model changes nothing in it, and checks of the method stand
outside. Rows of the papers' protocols are one family, all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from biassay.results.labels import ModelKey, model_key
from biassay.stats.multiple import Correction, holm
from biassay.studies.associations.lead import lead_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS, Settings

__all__ = ["with_corrections"]

_NAMES = {
    "p_value": ("p_value_holm", "significant", "significant_holm"),
    "p_value_by_word": ("p_value_by_word_holm", "significant_by_word", "significant_by_word_holm"),
    "p_value_crossed": ("p_value_crossed_holm", "significant_crossed", "significant_crossed_holm"),
}
_LEADING = {"crossed": "p_value_crossed", "word": "p_value_by_word", "text": "p_value"}


def with_corrections(results: Sequence[Result], settings: Settings) -> tuple[Result, ...]:
    """Fill in what depends on the other results: significance before and after Holm's correction, and its family."""
    alpha = settings.level
    changes: list[dict[str, Any]] = [_alone(row, alpha) for row in results]
    for family in _families(results):
        rows = [results[i] for i in family]
        for name, (adjusted, _, rejected) in _NAMES.items():
            found = _corrected(rows, name, alpha)
            for place, i in enumerate(family):
                if getattr(results[i], name) is not None:
                    changes[i] |= {adjusted: _given(found.adjusted[place]), rejected: bool(found.rejected[place])}
        for i, size in zip(family, _sizes(rows), strict=True):
            changes[i]["family"] = size
    return tuple(dataclasses.replace(row, **own) for row, own in zip(results, changes, strict=True))


def _alone(row: Result, alpha: float) -> dict[str, Any]:
    """Significance before correction; what is corrected is filled in by the family, if the result has one."""
    found: dict[str, Any] = {"family": None}
    for name, (adjusted, significant, rejected) in _NAMES.items():
        p = getattr(row, name)
        found |= {adjusted: None, rejected: None, significant: None if p is None else bool(p <= alpha)}
    return found


def _families(results: Sequence[Result]) -> list[list[int]]:
    families: dict[ModelKey | None, list[int]] = {}
    for i, row in enumerate(results):
        if row.searched:
            continue
        if row.protocol in PAPERS:
            families.setdefault(None, []).append(i)
        elif row.about != "method":
            families.setdefault(model_key(row), []).append(i)
    return list(families.values())


def _corrected(rows: Sequence[Result], name: str, alpha: float) -> Correction:
    """Holm's correction; by word with Tarone's refinement, for the smallest p-value of so many words is known."""
    p_values = [_or_nan(getattr(row, name)) for row in rows]
    if name != "p_value_by_word" or any(row.protocol in PAPERS for row in rows):
        return holm(p_values, alpha)
    return holm(p_values, alpha, floors=[row.p_floor_by_word or 0.0 for row in rows])


def _sizes(rows: Sequence[Result]) -> list[int]:
    """For each row how many p-values of the kind that leads there are corrected together."""
    claimed = {lead_of(row) for row in rows if lead_of(row) != "text" or row.protocol in PAPERS}
    sizes = {lead: sum(getattr(row, _LEADING[lead]) is not None for row in rows) for lead in claimed}
    return [sizes.get(lead_of(row), max(sizes.values(), default=0)) for row in rows]


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _given(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
