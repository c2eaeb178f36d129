"""Which numbers of a result lead: those of the crossed test; by text under the papers' protocols.

Where there is no crossed test (a metric of four sets, a run of an older version) those by word lead; where the words of
texts are not known, numbers by text are shown and nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from biassay.pages.formats import interval_text
from biassay.results.findings import Standing
from biassay.stats.power import largest_d
from biassay.stimuli.model import About, Direction
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = [
    "Lead",
    "cannot_reach",
    "corrected_p_of",
    "d_interval",
    "effect_of",
    "interval_of",
    "is_against",
    "is_claimed",
    "is_opposite",
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


def is_claimed(row: Result) -> bool:
    """Does the p-value that leads claim anything? By text only under the papers' protocols."""
    return not row.searched and (lead_of(row) != "text" or row.protocol in PAPERS)


def standing_of(row: Result) -> Standing:
    """Classify the evidence of a result by the p-value that leads."""
    if row.status != "measured":
        return "skipped"
    if not is_claimed(row):
        return "descriptive"
    p, corrected = p_of(row), corrected_p_of(row)
    if p is not None and p <= row.alpha:
        return "significant" if corrected is not None and corrected <= row.alpha else "uncorrected"
    if _is_untested_side(row):
        return "uncorrected"
    return "not_testable" if cannot_reach(row) else "inconclusive"


def _is_untested_side(row: Result) -> bool:
    """Is the effect significant on the side at which a one-sided test does not look? It is never corrected."""
    p = row.p_value_by_word_opposite
    return lead_of(row) == "word" and p is not None and p <= row.alpha


def is_opposite(row: Result) -> bool:
    """Is the effect significant, before or after correction, against the expected direction?"""
    if standing_of(row) not in ("significant", "uncorrected"):
        return False
    return is_against(row, effect_of(row)) or (row.direction is None and _is_untested_side(row))


class _Expecting(Protocol):
    @property
    def direction(self) -> Direction | None: ...
    @property
    def about(self) -> About | None: ...


def is_against(row: _Expecting, effect: float | None) -> bool:
    """Does an effect have the sign that the test does not expect? A sanity check expects a positive one."""
    expected = row.direction or ("positive" if row.about == "method" else None)
    return expected is not None and (effect or 0.0) * (1.0 if expected == "positive" else -1.0) < 0.0


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
