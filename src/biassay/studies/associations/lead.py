"""Which numbers of a result lead: those of the crossed test; by text under the papers' protocols.

Where there is no crossed test (a metric of four sets, a run of an older version) those by word lead; where the words of
texts are not known, numbers by text are shown and nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from biassay.pages.formats import interval_text
from biassay.results.findings import Standing
from biassay.stats.power import largest_d
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = [
    "Lead",
    "cannot_reach",
    "corrected_p_of",
    "d_interval",
    "effect_of",
    "interval_of",
    "largest",
    "lead_of",
    "lead_of_table",
    "p_of",
    "standing_of",
]

Lead = Literal["crossed", "word", "text"]
_LEADS: tuple[Lead, ...] = ("crossed", "word", "text")


def lead_of(row: Result) -> Lead:
    if row.protocol in PAPERS:
        return "text"
    if row.D is not None:
        return "crossed"
    return "text" if row.p_value_by_word is None else "word"


def lead_of_table(rows: Iterable[Result]) -> Lead:
    """What leads in a table of results: the crossed test where any of them has it."""
    leads = {lead_of(row) for row in rows if row.status == "measured" or row.protocol in PAPERS}
    return next((lead for lead in _LEADS if lead in leads), "crossed")


def effect_of(row: Result) -> float | None:
    """The one effect size that is shown of a result: by word, and by text where that leads."""
    return row.effect_size if lead_of(row) == "text" else row.effect_size_by_word


def interval_of(row: Result) -> tuple[float, float] | None:
    """Of that effect size, over target words and attribute words; its confidence is 1 - alpha."""
    return None if lead_of(row) != "crossed" or row.d_low is None or row.d_high is None else (row.d_low, row.d_high)


def p_of(row: Result) -> float | None:
    """The p-value that leads."""
    return {"crossed": row.p_value_crossed, "word": row.p_value_by_word, "text": row.p_value}[lead_of(row)]


def corrected_p_of(row: Result) -> float | None:
    """The same after correction; None: not computed, or outside of any family."""
    lead = lead_of(row)
    return {"crossed": row.p_value_crossed_holm, "word": row.p_value_by_word_holm, "text": row.p_value_holm}[lead]


def standing_of(row: Result) -> Standing:
    """How sure a result is, by the p-value that leads."""
    lead = lead_of(row)
    if row.status != "measured":
        return "not measured"
    if row.searched or (lead == "text" and row.protocol not in PAPERS):
        return "described"
    if _opposite(row, lead):
        return "opposite"
    significant, corrected = {
        "crossed": (row.significant_crossed, row.significant_crossed_holm),
        "word": (row.significant_by_word, row.significant_by_word_holm),
        "text": (row.significant, row.significant_holm),
    }[lead]
    if significant:
        return "corrected" if corrected else "uncorrected"
    return "too few" if cannot_reach(row) else "not shown"


def _opposite(row: Result, lead: Lead) -> bool:
    """Significant against the direction of the test; a one-sided test that did not look there claims nothing."""
    against = (effect_of(row) or 0.0) < 0.0
    if lead == "crossed":
        return bool(row.significant_crossed) and against
    if lead == "text":
        return False
    if row.p_value_by_word_opposite is not None:
        return row.p_value_by_word_opposite <= row.alpha
    return bool(row.significant_by_word) and against


def cannot_reach(row: Result) -> bool:
    """Has the test too few words for any result to be significant?"""
    if row.searched:
        return False
    lead = lead_of(row)
    if lead == "crossed":
        return row.p_value_crossed is None
    return lead == "word" and row.significant_by_word is False and (row.p_floor_by_word or 0.0) > row.alpha


def largest(result: Result) -> float | None:
    """How far from 0 d can be with so many target words; None: of another unit, or not known."""
    n, m = (result.num_clusters.get(role, 0) for role in "XY")
    return largest_d(n, m) if result.unit == "d" and n and m else None


def d_interval(result: Result) -> str:
    """The interval of d by word."""
    return interval_text(result.d_low, result.d_high, largest(result))
