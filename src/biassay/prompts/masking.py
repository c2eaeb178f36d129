"""Mask the names of people in texts."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from biassay.datasets.names import AuditName

MASK = "Person"
"""Text that replaces a name."""


def mask_name(text: str, name: AuditName) -> str:
    """Replace a name in a text by "Person", and its possessive by "Person's", so that it changes no score.

    Parameters
    ----------
    text : str
        Text to mask.
    name : AuditName
        Name to replace: first and last name together, the first name, each part of it, and the last name.

    Notes
    -----
    Case and accents are ignored, but the first letter must be a capital: Joy and JOY are replaced, joy is not. A name
    that is also a word, such as May, is replaced at the start of a sentence too. Nicknames are not replaced.
    """

    def replace(match: re.Match[str]) -> str:
        first = match[0][0]
        if first.lower() != first.upper() and not first.isupper():
            return match[0]
        return f"{MASK}'s" if match["possessive"] else MASK

    spellings = _compile_spellings(name.full_name, name.name, name.surname)
    return spellings.sub(replace, unicodedata.normalize("NFC", text))


@lru_cache(maxsize=10_000)
def _compile_spellings(full_name: str, first: str, last: str) -> re.Pattern[str]:
    parts = [part for part in first.split() if len(part) > 1]
    composed = [unicodedata.normalize("NFC", part) for part in (full_name, first, last, *parts) if part]
    spellings = sorted({*composed, *map(_remove_accents, composed)}, key=lambda part: (-len(part), part))
    pattern = "|".join(re.escape(part).replace(r"\ ", r"\s+") for part in spellings)
    start, end = (r"(?<!\w)", r"(?!\w)") if full_name.lower() != full_name.upper() else ("", "")
    after_s = r"|(?<=[sS])['’](?!\w)"  # James' work
    return re.compile(rf"{start}(?:{pattern}){end}(?P<possessive>['’][sS]{end}{after_s})?", re.IGNORECASE)


def _remove_accents(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
