"""Marks of results: one rule for stars, by the p-value that leads, and p-values as text."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import format_p
from biassay.results.labels import model_key
from biassay.studies.associations.lead import cannot_reach, corrected_p_of, lead_of, p_of, standing_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

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
    if p is None or not p <= result.alpha or standing_of(result) == "described":  # NaN is not significant
        return 0
    return 2 if corrected is not None and corrected <= result.alpha else 1


def sign(result: Result) -> str:
    """The sign of a mark."""
    return SIGNS[mark_of(result)]


def legend(results: Sequence[Result], between: str = "   ") -> str:
    """What the signs mean in a table of these results, and over which family is corrected."""
    alphas = sorted({result.alpha for result in results}) or [0.05]
    said = [f"* p at most {' or '.join(f'{alpha:g}' for alpha in alphas)}"]
    if family := _family(results):
        said.append(f"** also after Holm's correction over {family}")
    if UNREACHABLE in map(mark_of, results):
        said.append("‡ too few words")
    return between.join(said)


def _family(results: Sequence[Result]) -> str:
    """Which tests are corrected together, and how many they are."""
    sizes = sorted({result.family for result in results if result.family})
    if not sizes:
        return ""
    number = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    if any(result.protocol in PAPERS for result in results):
        return f"all {number} p-values of the run"
    checks = "; checks of the method stand outside" if any(result.about == "method" for result in results) else ""
    each = " of each model" if len({model_key(result) for result in results}) > 1 else ""
    return f"{number} test{'' if sizes[-1] == 1 else 's'} about people{each}{checks}"


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
