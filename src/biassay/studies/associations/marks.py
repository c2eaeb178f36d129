"""Marks of results: one rule for stars, by the p-value that leads, and p-values as text."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import ANY, format_p
from biassay.results.labels import model_key
from biassay.studies.associations.lead import cannot_reach, corrected_p_of, d_interval, lead_of, p_of, standing_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = [
    "BY_WORD",
    "NOT_MEASURED",
    "SIDES",
    "SIGNS",
    "UNREACHABLE",
    "family_text",
    "lead_p",
    "legend",
    "mark_of",
    "p_by_text",
    "p_by_word",
    "sides",
    "sign",
]

BY_WORD = "p for these attribute words"
SIDES = {"greater": "one-sided, in the direction of the test", "two-sided": "two-sided"}
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
    marks = set(map(mark_of, results))
    family = family_text(results)
    if family or 2 in marks:
        said.append("** also after Holm's correction" + (f" over {family}" if family else ""))
    if UNREACHABLE in marks:
        said.append("‡ too few words")
    if any(lead_of(result) == "crossed" and d_interval(result) == ANY for result in results):
        said.append(f"{ANY}: with other words d could be anything")
    return between.join(said)


def sides(results: Sequence[Result]) -> str:
    """In which direction the p-values in a table of these results look."""
    measured = [result for result in results if result.status == "measured"]
    leads = set(map(lead_of, measured))
    names = [BY_WORD] * bool(leads - {"text"}) + ["p by text"] * ("text" in leads)
    if not names:
        return ""
    which = " or ".join(dict.fromkeys(SIDES.get(result.alternative, result.alternative) for result in measured))
    crossed = "p is two-sided; " if "crossed" in leads else ""
    return f"{crossed}{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {which}"


def family_text(results: Sequence[Result]) -> str:
    """Which tests are corrected together, and how many they are."""
    of_papers = [result for result in results if result.protocol in PAPERS]
    others = [result for result in results if result.protocol not in PAPERS]
    by_text, by_model = (_sizes_of(rows) for rows in (of_papers, others))
    said = [] if not by_text else [f"{'' if by_text == '1' else 'all '}{by_text} p-value{_s(by_text)} by text"]
    if by_model:
        checks = "; checks of the method stand outside" if any(r.about == "method" for r in others) else ""
        each = " of each model" if len({model_key(result) for result in others}) > 1 else ""
        said.append(f"{by_model} test{_s(by_model)} about people{each}{checks}")
    return " or ".join(said)


def _sizes_of(results: Sequence[Result]) -> str:
    """The sizes of families, from the smallest to the largest."""
    sizes = sorted({result.family for result in results if result.family})
    return " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else ""


def _s(number: str) -> str:
    return "" if number == "1" else "s"


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
