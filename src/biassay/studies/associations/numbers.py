"""The numbers of a result as they stand in a table, those that lead first."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import decimals, percent
from biassay.studies.associations.lead import Lead, d_interval, effect_of, interval_of, lead_of, lead_of_table
from biassay.studies.associations.marks import BY_WORD, lead_p, p_by_word, sign
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = ["OTHER", "Number", "column_names", "numbers_of", "other_lead"]

Number = tuple[str, str]
"""A number as it is read, and its marks."""
OTHER = "†"
_P = {"word": BY_WORD, "text": "p by text"}
_WHY = {
    "word": "by word, for there is no crossed test of it",
    "text": "by text, for the words of its texts are not known",
}
_PAPERS = "by text, which leads under its protocol"


def column_names(results: Sequence[Result]) -> tuple[str, ...]:
    """What stands over the numbers of one model."""
    lead = lead_of_table(results)
    effect = " or ".join(dict.fromkeys(result.unit for result in results)) or "d"
    if lead != "crossed":
        return effect, _P[lead]
    alphas = sorted({result.alpha for result in results}) or [0.05]
    return effect, " or ".join(percent(1.0 - alpha) for alpha in alphas), "p", BY_WORD


def numbers_of(result: Result | None, lead: Lead) -> tuple[Number, ...]:
    """A number for each column of a table with this lead; blank where there is no result, a dash where no number is."""
    if result is None or result.effect_size is None:
        blank = "" if result is None else "–"
        return ((blank, ""),) * (4 if lead == "crossed" else 2)
    own, mark = lead_of(result), sign(result)
    effect = decimals(effect_of(result)), "" if own == lead else OTHER
    p = lead_p(result).removesuffix(mark), mark
    if lead != "crossed":
        return effect, p
    return effect, (d_interval(result) if interval_of(result) else "–", ""), p, (p_by_word(result), "")


def other_lead(results: Sequence[Result]) -> str:
    """What is said of results whose effect size and p-value are not those that lead in the table, and why."""
    lead = lead_of_table(results)
    others = [r for r in results if r.status == "measured" and lead_of(r) != lead]
    why = dict.fromkeys(_PAPERS if r.protocol in PAPERS else _WHY[lead_of(r)] for r in others)
    return f"{OTHER} {' or '.join(sorted(why))}" if why else ""
