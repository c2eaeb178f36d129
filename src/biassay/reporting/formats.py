"""Format numbers, p-values and intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from biassay.io import make_printable
from biassay.results.tables import Format

MANY_MODELS = 12
"""Number of models up to which reports show models side by side; of more, reports summarize what they share."""
FULL_RANGE = "full range"
"""An interval that holds every possible value."""
SANITY_CHECK_PASSED = "on a sanity check, which is not corrected: passed"
"""Meaning of one star on a sanity check."""
_UNITS = {"share": "difference of shares", "log-odds": "difference of log-odds"}
_TOPICS = {"intersection": "Several groups at once"}
_SMALL = 0.005  # two decimals round it to 0
_TINY = 1e-9  # rounding errors
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON = re.compile(  # words of the published labels that are not proper names
    r"\b(?:Abled|Acceptable|Arts|Biases|Career|Competence|Dangerous|Dark|Disabled|Disease|Emergent|Family|Fat|Female|Flowers|Gay|"
    r"Guilty|Harmless|Healthy|Incompetence|Innocent|Insects|Instruments|Intersectional|Leadership|Learners|Light|"
    r"Mainstream|Male|Math|Mental|Names|Old|Other|Peoples|Physical|Science|Shameful|Straight|Strong|Support|Terms|Thin|Unhealthy|Weak|Weapons|Young)\b"
)
_PHRASES = {  # published labels that are not nouns
    "AngryBlackWomanStereotype": "the angry Black woman stereotype",
    "CompetentAchievementOriented": "competence",
    "Female": "female words",
    "IncompetentNotAchievementOriented": "incompetence",
    "LikableNotHostile": "likability",
    "Male": "male words",
    "NearAntonyms": "near antonyms of the stereotype",
    "Permanent": "permanent words",
    "Pleasant": "pleasant words",
    "Temporary": "temporary words",
    "UnlikableHostile": "hostility",
    "Unpleasant": "unpleasant words",
}


def format_decimal(value: float | None) -> str:
    """Format a number to two decimals; a dash for None."""
    return "–" if value is None else "NaN" if math.isnan(value) else f"{value:z.2f}"


def format_p(value: float | None, log10: float | None = None) -> str:
    """Format a p-value to two digits, from its logarithm if it is too small for a float."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if value >= 0.001:
        return f"{value:.3f}"
    if log10 is None or math.isnan(log10):
        log10 = math.log10(value) if value > 0.0 else -math.inf
    if math.isinf(log10):
        return "0"
    exponent = math.floor(log10)
    digits = round(10 ** (log10 - exponent), 1)
    if digits >= 10.0:
        digits, exponent = 1.0, exponent + 1
    return f"{digits:.1f}e{exponent}"


def format_p_relation(value: float | None) -> str:
    """Format a p-value for a sentence: "= .043", or "< .001"."""
    return "< .001" if value is not None and value < 0.001 else f"= {format_p(value).removeprefix('0')}"


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_examples(items: Sequence[str], most: int = 8) -> str:
    """Format a list; a long one as its count and the first items."""
    if len(items) <= most:
        return ", ".join(items)
    return f"{len(items):,}, for example {', '.join(items[:most])}"


def format_interval(low: float | None, high: float | None, most: float | None = None) -> str:
    """Format an interval as "[low, high]", or as a dash if an end is None.

    Parameters
    ----------
    low, high : float or None
        Ends of the interval.
    most : float, optional
        Largest possible absolute value. An interval from -most to most is formatted as "full range".

    Returns
    -------
    str
    """
    if low is None or high is None:
        return "–"
    is_any = most is not None and (format_decimal(low), format_decimal(high)) == (
        format_decimal(-most),
        format_decimal(most),
    )
    return FULL_RANGE if is_any else f"[{format_decimal(low)}, {format_decimal(high)}]"


def format_percent(share: float) -> str:
    """Format a share as a percentage: 95%, 99.9%."""
    return f"{100.0 * share:.4g}%"


def format_share_of_time(share: float, drawn: int | None = None) -> str:
    """Format a share as a percentage of the time, out of ``drawn`` cases."""
    if share >= 0.01:
        return f"{100.0 * share:.0f}% of the time"
    if share > 0.0:
        return f"{100.0 * share:.2g}% of the time"
    return f"less than {100.0 / (drawn or 100):.2g}% of the time"


def format_concept(label: str) -> str:
    """Format the label of a word set for a sentence: OldPeoplesNames is old people's names."""
    if label in _PHRASES:
        return _PHRASES[label]
    words = _COMMON.sub(lambda found: found[0].lower(), _JOINT.sub(" ", label))
    return words.replace("peoples ", "people's ").replace("biases of ", "biases about ")


def topic_name(topic: str | None) -> str:
    """Format a topic as a heading."""
    return _TOPICS.get(topic or "other", (topic or "other").capitalize())


def unit_name(unit: str) -> str:
    """Return the name of a unit in a sentence."""
    return _UNITS.get(unit, unit)


def format_value(form: Format, value: Any) -> str:
    """Format a value of a table; a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {format_value(form, item)}" for key, item in value.items() if item or item == 0)
    if form == "interval":
        return format_interval(*value)
    if isinstance(value, tuple):
        return ", ".join(format_value(form, item) for item in value)
    if isinstance(value, int | float) and form in _NUMBERS:
        return _NUMBERS[form](value)
    return make_printable(str(value))


def clean_line(text: str) -> str:
    """Return a text as one printable line."""
    return make_printable(" ".join(text.split()))


def shorten(text: str, width: int, *, middle: bool = False) -> str:
    """Shorten a text and mark the gap with an ellipsis.

    Parameters
    ----------
    text : str
        Text on one line.
    width : int
        Maximum width in terminal cells; some characters take two.
    middle : bool
        If True, cut the middle instead of the end.

    Returns
    -------
    str
    """
    if cell_len(text) <= width:
        return text
    kept = max(width - 1, 0)
    end = kept // 2 if middle else 0
    tail = set_cell_size(text[::-1], end)[::-1] if end else ""
    return f"{set_cell_size(text, kept - end).rstrip()}…{tail.lstrip()}"


_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,}",
    "number": lambda value: f"{value:.2g}" if _TINY < abs(value) < _SMALL else format_decimal(value),
    "p": format_p,
    "share": lambda value: f"{value:.1%}",
}
