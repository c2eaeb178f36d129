"""All claims, and all simulations of them."""

from __future__ import annotations

from . import (
    associations,
    clusters,
    contexts,
    discovery,
    families,
    gate,
    near_synonyms,
    pairs,
    stereotypes,
    survey,
    word_association,
)
from .claim import Claim, Line

__all__ = ["CLAIMS", "UNTESTED", "all_lines"]

_ROOMS = (
    associations,
    near_synonyms,
    contexts,
    families,
    gate,
    discovery,
    stereotypes,
    pairs,
    word_association,
    clusters,
    survey,
)
CLAIMS: dict[str, Claim] = {claim.name: claim for room in _ROOMS for claim in room.CLAIMS}

UNTESTED = {
    "associations.results.p_error": "a bound of the numerical error of a p-value",
    "associations.results.p_error_by_word": "a bound of the numerical error of a p-value",
    "associations.results.p_floor_by_word": "the smallest p-value that is possible",
    "word_association.results.p_floor": "the smallest p-value that is possible",
    "word_association.missing.p_value": "an exact test of these very responses, for a warning",
    "associations.diagnostics.p_without": "a crossed p without the word that was picked for it: it describes",
}
"""Columns that look like a p-value or an interval and promise none."""


def all_lines() -> list[Line]:
    return [line for room in _ROOMS for line in room.lines()]
