"""What Unicode says of every character, as tables for compiled code."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

import numpy as np
from numpy.typing import NDArray

__all__ = ["HYPHEN", "HYPHENS", "STABLE", "WORD", "kinds", "small_letters"]

WORD, HYPHEN, STABLE = 1, 2, 4
HYPHENS = "-\u2010\u2011"
_LOOKED_AT = 0x20000  # beyond are rare ideographs only; texts with one are normalised, not taken as they are


@functools.cache
def kinds() -> NDArray[np.uint8]:
    """For every code point the sum of what holds: WORD (taken by ``\\w``), HYPHEN, STABLE.

    A text all of whose characters are stable is in composed form (NFC): none of them has another form, and none
    combines with the one before.
    """
    table = np.zeros(sys.maxunicode + 1, np.uint8)
    for run in re.finditer(r"\w+", np.arange(len(table), dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")):
        table[run.start() : run.end()] = WORD
    table[[ord(hyphen) for hyphen in HYPHENS]] |= HYPHEN
    table[_stable()] |= STABLE
    return table


def _stable() -> list[int]:
    characters = [chr(code) for code in range(_LOOKED_AT) if not 0xD800 <= code < 0xE000]
    decomposed = (unicodedata.decomposition(character).split() for character in characters)
    seconds = {int(parts[1], 16) for parts in decomposed if len(parts) == 2 and parts[0][0] != "<"}
    seconds |= {*range(0x1160, 0x1200)}  # vowels and finals of Hangul combine by rule, not by table
    return [
        ord(character)
        for character in characters
        if ord(character) not in seconds
        and not unicodedata.combining(character)
        and unicodedata.is_normalized("NFC", character)
    ]


@functools.cache
def small_letters() -> NDArray[np.int32]:
    """For every code point its small letter, or itself where that is not one character of the same length."""
    small = np.arange(sys.maxunicode + 1, dtype=np.int32)
    for code in np.flatnonzero(kinds() & WORD).tolist():
        lower = chr(code).lower()
        if len(lower) == 1 and len(lower.encode()) == len(chr(code).encode()):
            small[code] = ord(lower)
    return small
