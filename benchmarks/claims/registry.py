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
    "associations.results.fixed_words_p_floor": "the smallest p-value that is possible",
    "word_association.results.p_floor": "the smallest p-value that is possible",
    "word_association.missing.p_value": "an exact test of these very responses, for a warning",
    "associations.diagnostics.p_without": "a crossed p without the word that was picked for it: it describes",
    "discovery.groups.ci_low": "empty: a number of words has no interval",
    "discovery.groups.ci_high": "empty: a number of words has no interval",
    "stereotypes.groups.ci_low": "empty: traits of groups are described, not tested",
    "stereotypes.groups.ci_high": "empty: traits of groups are described, not tested",
    "stereotypes.groups.p_value": "empty: traits of groups are described, not tested",
    "stereotypes.groups.p_adjusted": "empty: traits of groups are described, not tested",
}
"""Columns that look like a p-value or an interval and promise none."""


def all_lines() -> list[Line]:
    return [line for room in _ROOMS for line in room.lines()]
