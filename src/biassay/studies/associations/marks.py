"""Marks of results: one rule for stars, by the p-value that leads, and p-values as text."""

from __future__ import annotations

from biassay.pages.formats import format_p
from biassay.studies.associations.lead import cannot_reach, corrected_p_of, lead_of, p_of
from biassay.studies.associations.records import Result

__all__ = ["NOT_MEASURED", "SIGNS", "UNREACHABLE", "lead_p", "legend", "mark_of", "p_by_text", "p_by_word", "sign"]

UNREACHABLE, NOT_MEASURED = 3, 4
SIGNS = ("", "*", "**", "‡", "")


def mark_of(result: Result) -> int:
    """0 not significant, 1 significant, 2 also after correction, 3 too few words, 4 not measured."""
    if result.status != "measured":
        return NOT_MEASURED
    if cannot_reach(result):
        return UNREACHABLE
    p, corrected = p_of(result), corrected_p_of(result)
    if p is None or p > result.alpha:
        return 0
    return 2 if corrected is not None and corrected <= result.alpha else 1


def sign(result: Result) -> str:
    """The sign of a mark."""
    return SIGNS[mark_of(result)]


def legend(results: list[Result]) -> str:
    """What the signs mean in a table of these results."""
    alphas = sorted({result.alpha for result in results}) or [0.05]
    at_most = " or ".join(f"{alpha:g}" for alpha in alphas)
    return f"* p at most {at_most}   ** also after Holm's correction over its family   ‡ too few words for a p-value"


def lead_p(result: Result) -> str:
    """The p-value that leads, with its sign."""
    logs = {"crossed": None, "word": result.log10_p_value_by_word, "text": result.log10_p_value}
    return format_p(p_of(result), logs[lead_of(result)]) + sign(result)


def p_by_text(result: Result) -> str:
    """The p-value over texts; of the paper's over contexts no more than that it is very small."""
    if result.contextual is not None and result.p_value is not None and result.p_value < 1e-30:
        return "<1e-30"
    return format_p(result.p_value, result.log10_p_value)


def p_by_word(result: Result) -> str:
    """The p-value over target words, for these attribute words."""
    return format_p(result.p_value_by_word, result.log10_p_value_by_word)
