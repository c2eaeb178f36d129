"""List of all claims and their simulations."""

from __future__ import annotations

from . import (
    associations,
    audits,
    clusters,
    contexts,
    discovery,
    families,
    gate,
    judges,
    near_synonyms,
    pairs,
    probes,
    questions,
    relations,
    responses,
    stereotypes,
    survey,
    topics,
    word_association,
)
from .claim import Claim, Line

__all__ = ["CLAIMS", "UNTESTED", "all_lines"]

_ROOMS = (
    associations,
    near_synonyms,
    contexts,
    families,
    topics,
    relations,
    gate,
    discovery,
    stereotypes,
    pairs,
    word_association,
    clusters,
    questions,
    audits,
    judges,
    responses,
    probes,
    survey,
)
CLAIMS: dict[str, Claim] = {claim.name: claim for room in _ROOMS for claim in room.CLAIMS}

UNTESTED = {
    "associations.results.fixed_words_p_floor": "the smallest p-value that is possible",
    "associations.measures.score_p_value": "an exact share of splits, or of 9,999 draws; tests enumerate it",
    "word_association.results.p_floor": "the smallest p-value that is possible",
    "word_association.missing.p_value": "an exact test of these responses, used for a warning",
    "associations.diagnostics.p_without": "p without one selected word; descriptive",
    "discovery.groups.ci_low": "empty: a number of words has no interval",
    "discovery.groups.ci_high": "empty: a number of words has no interval",
    "stereotypes.results.ci_low": "empty: scores of traits are described, not tested",
    "stereotypes.results.ci_high": "empty: scores of traits are described, not tested",
    "stereotypes.results.p_value": "empty: scores of traits are described, not tested",
    "stereotypes.results.p_adjusted": "empty: scores of traits are described, not tested",
    "audit.positions.p_value": "a test of these responses, used for a warning; conservative",
    "audit.results.placebo_low": "how much names of one group differ among themselves",
    "audit.results.placebo_high": "how much names of one group differ among themselves",
    "audit.results.uncorrected_ci_low": "scores of a judge without correction by human labels",
    "audit.results.uncorrected_ci_high": "scores of a judge without correction by human labels",
    "audit.summary.placebo_low": "how much names of one group differ among themselves",
    "audit.summary.placebo_high": "how much names of one group differ among themselves",
    "audit.summary.edit_low": "how much a meaningless edit changes scores",
    "audit.summary.edit_high": "how much a meaningless edit changes scores",
    "stereotypes.groups.ci_low": "empty: traits of groups are described, not tested",
    "stereotypes.groups.ci_high": "empty: traits of groups are described, not tested",
    "stereotypes.groups.p_value": "empty: traits of groups are described, not tested",
    "stereotypes.groups.p_adjusted": "empty: traits of groups are described, not tested",
    "debiasing.results.p_adjusted": "empty: changes are described",
    "debiasing.decisions.p_adjusted": "empty: changes are described",
}
"""Columns that look like a p-value or an interval and promise none."""


def all_lines() -> list[Line]:
    return [line for room in _ROOMS for line in room.lines()]
