"""Is an association shown to be too small to matter? Of one result: the margin, what is shown, and that in words."""

from __future__ import annotations

import math

import scipy

from biassay.pages.formats import decimals, format_p
from biassay.stats.power import d_of
from biassay.studies.associations.lead import lead_of
from biassay.studies.associations.records import Result

__all__ = ["bound_of", "equivalence_of", "margin_as_d"]

_WIDE = 0.8


def bound_of(row: Result) -> float | None:
    """The smallest margin in cosine units for which an equivalence test at the level of the row would hold."""
    if row.D is None or row.D_high is None or row.df_crossed is None:
        return None
    error = (row.D_high - row.D) / scipy.special.stdtrit(row.df_crossed, 1.0 - row.alpha / 2.0)
    return float(abs(row.D) + scipy.special.stdtrit(row.df_crossed, 1.0 - row.alpha) * error)


def margin_as_d(row: Result) -> float | None:
    """The d that a D as large as the margin would give with the spread of this result; None: not known."""
    x, y = (list(row.associations.get(role, {}).values()) for role in "XY")
    if row.margin is None or len(x) + len(y) < 3 or not (x and y):
        return None
    squares = sum((one - math.fsum(own) / len(own)) ** 2 for own in (x, y) for one in own)
    spread = math.sqrt(squares / (len(x) + len(y) - 2))
    return d_of(row.margin, spread, len(x), len(y)) if spread > 0.0 else None


def equivalence_of(row: Result) -> str:
    """What is shown of its size; nothing where that was not asked, or cannot be told."""
    if row.margin is None or row.p_equivalence is None or row.D is None or lead_of(row) != "crossed":
        return ""
    is_shown = "shown" if row.p_equivalence <= row.alpha else "not shown"
    d = margin_as_d(row)
    wide = ": too wide a margin to say much" if d is not None and d >= _WIDE and is_shown == "shown" else ""
    as_d = "" if d is None else f", here a d of {decimals(d)}{wide}"
    size = f"smaller than {row.margin:g} (cosine{as_d})"
    return f"D = {row.D:z.3f}, {is_shown} to be {size}, p = {format_p(row.p_equivalence)}"
