"""Signs of evidence, legends of tables, and p-values as tables show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biassay.reporting.formats import FULL_RANGE, SANITY_CHECK_PASSED, format_interval, format_p
from biassay.results.outcomes import Evidence, Result
from biassay.studies.associations.results import CROSSED, FIXED_WORDS, SENTENCES
from biassay.studies.associations.settings import PAPER_PROTOCOLS

__all__ = [
    "FIXED_WORDS_P",
    "NOT_MEASURED",
    "SENTENCES_P",
    "SIDES",
    "SIGNS",
    "UNREACHABLE",
    "choose_test",
    "describe_correction",
    "describe_family",
    "describe_sides",
    "format_d_interval",
    "format_fixed_words_p",
    "format_main_p",
    "format_published_p",
    "get_mark",
    "get_sign",
    "make_legend",
]

FIXED_WORDS_P, SENTENCES_P = "p (these words only)", "sentence-level p"
SIDES = {"greater": "one-sided, in the direction of the test", "two-sided": "two-sided"}
UNREACHABLE, NOT_MEASURED = 3, 4
_MARKS: Mapping[Evidence, int] = {
    "inconclusive": 0,
    "descriptive": 0,
    "uncorrected": 1,
    "significant": 2,
    "not_testable": UNREACHABLE,
    "skipped": NOT_MEASURED,
}
SIGNS = ("", "*", "**", "‡", "")


def choose_test(rows: Sequence[Result]) -> str:
    """Return the test that leads in a table of results: the crossed test if any of them has it."""
    tests = {row.outcome.test for row in rows}
    if any(row.protocol in PAPER_PROTOCOLS for row in rows):
        tests.add(SENTENCES)
    return next((test for test in (CROSSED, FIXED_WORDS, SENTENCES) if test in tests), CROSSED)


def get_mark(row: Result) -> int:
    """Return 0 inconclusive, 1 before correction only, 2 significant, 3 too few words, 4 not measured."""
    return _MARKS[row.evidence]


def get_sign(row: Result) -> str:
    """Return the sign of the evidence; a sanity check that is significant in the wrong direction fails and has none."""
    failed = row.about == "method" and row.opposite
    return "" if failed and get_mark(row) == 1 else SIGNS[get_mark(row)]


def make_legend(rows: Sequence[Result], between: str = "   ") -> str:
    """Explain the signs in a table of these results, and name the family of the correction."""
    alphas = " or ".join(f"{alpha:g}" for alpha in sorted({row.alpha for row in rows}) or [0.05])
    marks = set(map(get_mark, rows))
    family = describe_correction(rows)
    parts = []
    if family or 2 in marks:
        parts.append(f"** significant: p at most {alphas} after correction ({family or 'Holm'})")
    parts.append(f"* p at most {alphas} before correction only: a lead, not a finding")
    if any(row.about == "method" and get_sign(row) == "*" for row in rows):
        parts[-1] += f"; {SANITY_CHECK_PASSED}"
    if UNREACHABLE in marks:
        parts.append("‡ too few words")
    if any(row.outcome.test == CROSSED and format_d_interval(row) == FULL_RANGE for row in rows):
        parts.append(f"{FULL_RANGE}: with other words d could be anything")
    return between.join(parts)


def describe_sides(rows: Sequence[Result]) -> str:
    """Describe whether the p-values in a table of these results are one-sided or two-sided."""
    measured = [row for row in rows if row.status == "measured"]
    tests = {row.outcome.test for row in measured}
    names = [FIXED_WORDS_P] * bool(tests - {SENTENCES}) + [SENTENCES_P] * (SENTENCES in tests)
    if not names:
        return ""
    which = " or ".join(dict.fromkeys(SIDES.get(row.alternative, row.alternative) for row in measured))
    crossed = "p is two-sided; " if CROSSED in tests else ""
    return f"{crossed}{' and '.join(names)} {'is' if len(names) == 1 else 'are'} {which}"


def describe_correction(rows: Sequence[Result]) -> str:
    """Name the correction and its family; empty if nothing was corrected."""
    family = describe_family(rows)
    return f"{'Bonferroni' if _list_declared(rows) else 'Holm'} over {family}" if family else ""


def describe_family(rows: Sequence[Result]) -> str:
    """Name the family that p-values are corrected over, and its size."""
    of_papers = _format_sizes([row for row in rows if row.family == "rows"])
    others = [row for row in rows if row.family != "rows"]
    by_model = _format_sizes(others)
    parts = []
    if of_papers:
        parts.append("1 sentence-level p-value" if of_papers == "1" else f"all {of_papers} sentence-level p-values")
    if by_model:
        plural = "" if by_model == "1" else "s"
        declared = _list_declared(others)
        which = (
            f"declared social-bias question{plural} ({', '.join(declared)})"
            if declared
            else f"social-bias question{plural} of this run"
        )
        parts.append(f"{by_model} {which}, per model")
    return " or ".join(parts)


def _list_declared(rows: Sequence[Result]) -> list[str]:
    """Return the names of families that were declared before the run."""
    return list(dict.fromkeys(row.family for row in rows if row.family not in (None, "run", "rows")))


def _format_sizes(rows: Sequence[Result]) -> str:
    """Return the sizes of families, from the smallest to the largest."""
    sizes = sorted({row.family_size for row in rows if row.family_size})
    return " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else ""


def format_d_interval(row: Result) -> str:
    """Format the interval of d over words, whether or not it is the primary outcome."""
    return format_interval(row.crossed_ci_low, row.crossed_ci_high, row.crossed_limit)


def format_main_p(row: Result) -> str:
    """Format the main p-value with its sign."""
    return format_p(row.p_value, row.log10_p_value) + get_sign(row)


def format_published_p(row: Result) -> str:
    """Format the p-value of the papers; over contexts none below 1e-30."""
    outcome = row.published
    if row.level == "context" and outcome.p_value is not None and outcome.p_value < 1e-30:
        return "<1e-30"
    return format_p(outcome.p_value, outcome.log10_p_value)


def format_fixed_words_p(row: Result) -> str:
    """Format the p-value over target words, for these attribute words."""
    return format_p(row.fixed_words_p_value, row.fixed_words_log10_p_value)
