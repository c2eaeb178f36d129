"""Marks of results: one rule for stars, by the p-value that leads, and p-values as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biassay.pages.formats import ANY, PASSED, format_p
from biassay.results.findings import Standing
from biassay.studies.associations.lead import d_interval, is_opposite, lead_of, p_of, standing_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = [
    "BY_WORD",
    "NOT_MEASURED",
    "SIDES",
    "SIGNS",
    "UNREACHABLE",
    "correction_text",
    "family_text",
    "is_exploratory",
    "lead_p",
    "legend",
    "mark_of",
    "p_by_text",
    "p_by_word",
    "sides",
    "sign",
]

BY_WORD = "p (these words only)"
SIDES = {"greater": "one-sided, in the direction of the test", "two-sided": "two-sided"}
UNREACHABLE, NOT_MEASURED = 3, 4
_MARKS: Mapping[Standing, int] = {
    "inconclusive": 0,
    "descriptive": 0,
    "uncorrected": 1,
    "significant": 2,
    "not_testable": UNREACHABLE,
    "skipped": NOT_MEASURED,
}
SIGNS = ("", "*", "**", "‡", "")


def mark_of(result: Result) -> int:
    """0 inconclusive, 1 before correction only, 2 significant, 3 too few words, 4 not measured."""
    return _MARKS[standing_of(result)]


def sign(result: Result) -> str:
    """Return the sign of a mark; a sanity check that is significant in the wrong direction fails and has none."""
    failed = result.about == "method" and is_opposite(result)
    return "" if failed and mark_of(result) == 1 else SIGNS[mark_of(result)]


def legend(results: Sequence[Result], between: str = "   ") -> str:
    """Explain the signs in a table of these results, and name the family of the correction."""
    alphas = " or ".join(f"{alpha:g}" for alpha in sorted({result.alpha for result in results}) or [0.05])
    marks = set(map(mark_of, results))
    family = correction_text(results)
    said = []
    if family or 2 in marks:
        said.append(f"** significant: p at most {alphas} after correction ({family or 'Holm'})")
    said.append(f"* p at most {alphas} before correction only: a lead, not a finding")
    if any(result.about == "method" and sign(result) == "*" for result in results):
        said[-1] += f"; {PASSED}"
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


def correction_text(results: Sequence[Result]) -> str:
    """Name the correction and its family; empty if nothing was corrected."""
    family = family_text(results)
    return f"{'Bonferroni' if _declared(results) else 'Holm'} over {family}" if family else ""


def family_text(results: Sequence[Result]) -> str:
    """Name the family that p-values are corrected over, and its size."""
    of_papers = [result for result in results if result.protocol in PAPERS]
    others = [result for result in results if result.protocol not in PAPERS and result.about != "method"]
    by_text, by_model = (_sizes_of(rows) for rows in (of_papers, others))
    said = [] if not by_text else [f"{'' if by_text == '1' else 'all '}{by_text} p-value{_s(by_text)} by text"]
    if by_model:
        declared = _declared(others)
        which = f"declared social-bias question{_s(by_model)} ({', '.join(declared)})" if declared else (
            f"social-bias question{_s(by_model)} of this run"
        )  # fmt: skip
        said.append(f"{by_model} {which}, per model")
    return " or ".join(said)


def is_exploratory(result: Result) -> bool:
    """Is it outside the family that was declared before the run?"""
    return result.family is None and result.family_name is not None


def _declared(results: Sequence[Result]) -> list[str]:
    """Names of families that were declared before the run."""
    names = dict.fromkeys(result.family_name for result in results)
    return [name for name in names if name is not None and name not in ("run", "rows")]


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
