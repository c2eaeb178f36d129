"""The shadow of a text: as many bytes as the text, with everything that is no part of a word made a blank.

Word characters are those of ``\\w``. A hyphen between two of them is a part of the word; any other is a dash.
"""

from __future__ import annotations

import functools
import re
import sys

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLANK", "HYPHENS", "shadow", "word_characters"]

BLANK = 0x20
HYPHENS = "-\u2010\u2011"
_HYPHEN = 0x2D
_FILLER = 0x01  # the other bytes of a hyphen that is not ASCII: no part of a word, and no blank
_KEPT = bytes(c if c >= 128 or chr(c).isalnum() or c in b"_-" else BLANK for c in range(256))
_FOLDED = bytes(c + 32 if 65 <= c <= 90 else c for c in _KEPT)
_NO_WORD = np.zeros(256, bool)
_NO_WORD[[BLANK, _HYPHEN, _FILLER]] = True


def shadow(text: bytes, ignore_case: bool = False) -> bytearray:
    """The shadow of valid UTF-8 that begins with NUL and ends with four of them.

    With ``ignore_case`` letters are small, but for those whose small letter has another length in UTF-8.
    """
    made = bytearray(text).translate(_FOLDED if ignore_case else _KEPT)
    view = np.frombuffer(made, np.uint8)
    _resolve(view, ignore_case)
    at = np.flatnonzero(view == _HYPHEN)
    wide = view[at + 1] == _FILLER
    dash = at[_NO_WORD[view[at - 1]] | _NO_WORD[view[at + 1 + 2 * wide]]]
    view[dash] = BLANK
    rest = dash[view[dash + 1] == _FILLER]
    view[rest + 1] = view[rest + 2] = BLANK
    return made


def _resolve(view: NDArray[np.uint8], ignore_case: bool) -> None:
    """Characters beyond ASCII: blanks, hyphens, and where asked for small letters."""
    at = np.flatnonzero(view >= 0xC0)
    if not len(at):
        return
    width, code = _decode(view, at)
    kind = _kinds()[code]
    for extra in range(4):
        view[(at + extra)[(kind == 0) & (width > extra)]] = BLANK
        view[(at + extra)[(kind == 2) & (width > extra)]] = _FILLER if extra else _HYPHEN
    if ignore_case:
        _encode(view, at, width, _small()[code], kind == 1)


def _decode(view: NDArray[np.uint8], at: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    lead = view[at].astype(np.intp)
    width = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    code = lead & (0x7F >> width)
    for extra in range(1, 4):
        more = (code << 6) | (view[at + extra] & 0x3F)
        code = np.where(width > extra, more, code)
    return width, code


def _encode(
    view: NDArray[np.uint8],
    at: NDArray[np.intp],
    width: NDArray[np.intp],
    code: NDArray[np.intp],
    wanted: NDArray[np.bool_],
) -> None:
    """Write code points over others of the same length."""
    for extra in range(1, 4):
        here = wanted & (width > extra)
        view[(at + extra)[here]] = 0x80 | ((code[here] >> (6 * (width[here] - 1 - extra))) & 0x3F)
    mark = np.array([0, 0, 0xC0, 0xE0, 0xF0])[width[wanted]]
    view[at[wanted]] = mark | (code[wanted] >> (6 * (width[wanted] - 1)))


@functools.cache
def word_characters() -> NDArray[np.bool_]:
    """For every code point, whether ``\\w`` takes it."""
    table = np.zeros(sys.maxunicode + 1, bool)
    for run in re.finditer(r"\w+", "".join(map(chr, range(sys.maxunicode + 1)))):
        table[run.start() : run.end()] = True
    return table


@functools.cache
def _kinds() -> NDArray[np.uint8]:
    """For every code point 1 for a word character, 2 for a hyphen, else 0."""
    kinds = word_characters().astype(np.uint8)
    kinds[[ord(c) for c in HYPHENS]] = 2
    return kinds


@functools.cache
def _small() -> NDArray[np.intp]:
    """For every code point its small letter, or itself where that is not one character of the same length."""
    small = np.arange(sys.maxunicode + 1)
    for code in np.flatnonzero(word_characters()).tolist():
        lower = chr(code).lower()
        if len(lower) == 1 and len(lower.encode()) == len(chr(code).encode()):
            small[code] = ord(lower)
    return small
