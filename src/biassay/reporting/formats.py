"""Format numbers, p-values and intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from rich.cells import cell_len, set_cell_size

from biassay.io import make_printable
from biassay.results.tables import Format

__all__ = [
    "FULL_RANGE",
    "MANY_MODELS",
    "SANITY_CHECK_PASSED",
    "clean_line",
    "format_concept",
    "format_count",
    "format_decimal",
    "format_interval",
    "format_p",
    "format_percent",
    "format_share_of_time",
    "format_value",
    "shorten",
    "topic_name",
    "unit_name",
]

MANY_MODELS = 12
"""Beyond which models do not stand side by side, and it is said what they have in common."""
FULL_RANGE = "any"
"""An interval that leaves nothing out."""
SANITY_CHECK_PASSED = "on a sanity check, which is not corrected: passed"
"""What one star means on a sanity check."""
_UNITS = {"share": "difference of shares", "log-odds": "difference of log-odds"}
_TOPICS = {"intersection": "Several groups at once"}
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")
_COMMON = re.compile(  # words of the published labels that are no proper names
    r"\b(?:Abled|Acceptable|Arts|Biases|Career|Competence|Dangerous|Dark|Disabled|Disease|Emergent|Family|Fat|Female|Flowers|Gay|"
    r"Guilty|Harmless|Healthy|Incompetence|Innocent|Insects|Instruments|Intersectional|Leadership|Learners|Light|"
    r"Mainstream|Male|Math|Mental|Names|Old|Other|Peoples|Physical|Science|Shameful|Straight|Strong|Support|Terms|Thin|Unhealthy|Weak|Weapons|Young)\b"
)
_PHRASES = {  # of published labels that are no nouns
    "AngryBlackWomanStereotype": "the angry Black woman stereotype",
    "CompetentAchievementOriented": "being competent and achievement-oriented",
    "Female": "female words",
    "IncompetentNotAchievementOriented": "being incompetent and not achievement-oriented",
    "LikableNotHostile": "being likable and not hostile",
    "Male": "male words",
    "NearAntonyms": "near antonyms of the stereotype",
    "Permanent": "what is permanent",
    "Pleasant": "pleasant words",
    "Temporary": "what is temporary",
    "UnlikableHostile": "being unlikable and hostile",
    "Unpleasant": "unpleasant words",
}


def format_decimal(value: float | None) -> str:
    """A number to two decimals; a dash where there is none."""
    return "–" if value is None else "NaN" if math.isnan(value) else f"{value:z.2f}"


def format_p(value: float | None, log10: float | None = None) -> str:
    """A p-value to two digits, from its logarithm where it is too small for a float."""
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


def format_count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_interval(low: float | None, high: float | None, most: float | None = None) -> str:
    """The two ends of an interval, or a dash; "any" where it holds all values that there can be, up to ``most``."""
    if low is None or high is None:
        return "–"
    is_any = most is not None and (format_decimal(low), format_decimal(high)) == (
        format_decimal(-most),
        format_decimal(most),
    )
    return FULL_RANGE if is_any else f"{format_decimal(low)} to {format_decimal(high)}"


def format_percent(share: float) -> str:
    """A share as a confidence is written."""
    return f"{100.0 * share:.4g}%"


def format_share_of_time(share: float, drawn: int | None = None) -> str:
    """A share as a percentage of the time; ``drawn``: the number of cases it was counted in."""
    if share >= 0.01:
        return f"{100.0 * share:.0f}% of the time"
    if share > 0.0:
        return f"{100.0 * share:.2g}% of the time"
    return f"less than {100.0 / (drawn or 100):.2g}% of the time"


def format_concept(label: str) -> str:
    """The name of a set of words as it is read in a sentence: OldPeoplesNames are old people's names."""
    if label in _PHRASES:
        return _PHRASES[label]
    words = _COMMON.sub(lambda found: found[0].lower(), _JOINT.sub(" ", label))
    return words.replace("peoples ", "people's ").replace("biases of ", "biases about ")


def topic_name(topic: str | None) -> str:
    """A topic as a heading."""
    return _TOPICS.get(topic or "other", (topic or "other").capitalize())


def unit_name(unit: str) -> str:
    """What an effect is called in a sentence."""
    return _UNITS.get(unit, unit)


def format_value(form: Format, value: Any) -> str:
    """A value of a table as a person reads it; a dash where it was not computed."""
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
    """One line that can be printed."""
    return make_printable(" ".join(text.split()))


def shorten(text: str, width: int, *, middle: bool = False) -> str:
    """A text that has room, or its beginning; or its two ends."""
    if cell_len(text) <= width:
        return text
    kept = max(width - 1, 0)
    end = kept // 2 if middle else 0
    tail = set_cell_size(text[::-1], end)[::-1] if end else ""
    return f"{set_cell_size(text, kept - end).rstrip()}…{tail.lstrip()}"


_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: f"{value:,}",
    "number": format_decimal,
    "p": format_p,
    "share": lambda value: f"{value:.1%}",
}
