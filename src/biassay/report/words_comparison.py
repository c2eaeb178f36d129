"""Differences between models in words, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.report.words import Finding, decimals
from biassay.report.words_stereotypes import measure_name
from biassay.results.comparison import AssociationDifference, Comparison

__all__ = ["APART", "MEANING_OF_DIFFERENCES", "apart", "comparison_headline", "comparison_summary", "span"]

APART = ("interval holds zero", "interval leaves out zero", "so does the simultaneous interval")
MEANING_OF_DIFFERENCES = (
    "A difference is the effect size by word on the other model less that on the first, over the target words that "
    "both know. Its interval is paired, for the words are the same: with 95% confidence it encloses the difference to "
    "be expected of other target words of the same kinds. One interval in twenty leaves out zero by chance; the "
    "simultaneous ones are wider, so that with 95% confidence all of them hold together. An interval that holds zero "
    "does not show that two models are equal. Over contexts the effects are those by word, "
    "each word averaged over its contexts, and not the pooled ones."
)
_NAMED = 8


def span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{decimals(low)} to {decimals(high)}"


def apart(row: AssociationDifference) -> int:
    """A place in `APART`."""
    if not _leaves_out_zero(row.interval_low, row.interval_high):
        return 0
    return 2 if _leaves_out_zero(row.simultaneous_low, row.simultaneous_high) else 1


def _leaves_out_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def comparison_headline(found: Comparison) -> str:
    """One line: what is compared."""
    named = [[row.model for row in found.associations], [row.model for row in found.agreements]]
    others = dict.fromkeys([*named[0], *named[1], *(row.model for row in found.words)])
    return f"{', '.join(others)} compared with {found.baseline}"


def comparison_summary(found: Comparison) -> list[Finding]:
    """What differs, in plain words."""
    models = list(dict.fromkeys(row.model for row in found.associations))
    sentences = [_about(m, [r for r in found.associations if r.model == m], found.baseline) for m in models]
    sentences += [
        Finding(
            f"{row.model}, {measure_name(row.measure)}: agrees with people with tau {_number(row.tau_model)}, "
            f"{found.baseline} with {_number(row.tau_baseline)}; the difference is {_number(row.difference)} "
            f"(95% over groups {span(row.interval_low, row.interval_high)}). The two agree with each other with tau "
            f"{_number(row.tau_between)}."
        )
        for row in found.agreements
    ]
    sentences += [
        Finding(
            f"{row.group}: {len(row.both):,} words are tied to the group by both, {len(row.only_baseline):,} by "
            f"{row.baseline} only, {len(row.only_model):,} by {row.model} only."
        )
        for row in found.words
    ]
    return sentences


def _number(value: float | None) -> str:
    return "–" if value is None else decimals(value)


def _about(model: str, rows: Sequence[AssociationDifference], baseline: str) -> Finding:
    compared = [row for row in rows if row.interval_low is not None]
    differing = sorted((r for r in compared if apart(r)), key=lambda r: -abs(r.difference or 0.0))
    sure = sum(apart(row) == 2 for row in compared)
    expected = len(compared) / 20
    counted = "1 difference" if len(compared) == 1 else f"{len(compared)} differences"
    text = (
        f"{model}: of {counted} from {baseline}, intervals that leave out zero: {len(differing)} (by chance about "
        f"{expected:.1f}), simultaneously: {sure}."
    )
    if len(rows) > len(compared):
        text += f" {len(rows) - len(compared)} could not be compared."
    points = tuple(_point(row) for row in differing[:_NAMED])
    more = (f"and {len(differing) - _NAMED} more",) if len(differing) > _NAMED else ()
    return Finding(text, (*points, *more), model)


def _point(row: AssociationDifference) -> str:
    sure = " **" if apart(row) == 2 else ""
    effects = f"{_number(row.effect_baseline)} on {row.baseline}, {_number(row.effect_model)} on {row.model}"
    interval = span(row.interval_low, row.interval_high)
    return f"{row.test}{sure} ({row.title}): {effects}; difference {_number(row.difference)} (95% {interval})"
