"""Marks of results, by word and by text: how sure they are, their signs, and p-values that carry them."""

from __future__ import annotations

from typing import Literal

from biassay.pages.formats import format_p
from biassay.studies.associations.findings import cannot_reach
from biassay.studies.associations.records import Result

__all__ = [
    "LEGEND",
    "NOT_MEASURED",
    "SIGNS",
    "UNREACHABLE",
    "By",
    "mark_of",
    "p_by_text",
    "p_by_word",
    "p_text",
    "sign",
]

By = Literal["word", "text"]
UNREACHABLE, NOT_MEASURED = 3, 4
SIGNS = ("", "*", "**", "‡", "")
LEGEND = (
    "* p at or below alpha   ** also after Holm's correction over all rows of its column   "
    "‡ too few words: no split of them could bring p by word down to alpha"
)


def mark_of(result: Result, by: By) -> int:
    """0 not significant, 1 significant, 2 also after correction, 3 too few words, 4 not measured."""
    if by == "word":
        significant, corrected = result.significant_by_word, result.significant_by_word_holm
    else:
        significant, corrected = result.significant, result.significant_holm
    if significant is None:
        return NOT_MEASURED
    if by == "word" and cannot_reach(result):
        return UNREACHABLE
    return 2 if corrected else 1 if significant else 0


def sign(result: Result, by: By) -> str:
    """The sign of a mark."""
    return SIGNS[mark_of(result, by)]


def p_text(result: Result) -> str:
    """The p-value over texts; of the paper's over contexts no more than that it is very small."""
    if result.contextual is not None and result.p_value is not None and result.p_value < 1e-30:
        return "<1e-30"
    return format_p(result.p_value, result.log10_p_value)


def p_by_text(result: Result) -> str:
    """The p-value over texts with its sign."""
    return p_text(result) + sign(result, "text")


def p_by_word(result: Result) -> str:
    """The p-value over words with its sign."""
    return format_p(result.p_value_by_word, result.log10_p_value_by_word) + sign(result, "word")
