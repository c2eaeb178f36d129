"""Compiled code that takes one field out of JSON lines.

It takes plain lines only. A line with anything unusual is left to ``json``, which alone decides what is an error.
Each line is judged by itself: a document does not depend on its neighbours.

64 bytes are looked at in one step. A block is padded with a line feed and zeros, at which all loops stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from biassay.texts.characters import STABLE
from biassay.texts.lines import Lines
from biassay.texts.skimming import CLEAR, UNCLEAR
from biassay.texts.tools import WIDTH, compiled, moved_bytes, trailing_zeros

__all__ = ["Work", "skim_json"]

_int = cast("Callable[[Any], int]", np.int64)  # for mypy: compiled code has no other whole numbers
_trailing_zeros = trailing_zeros()
_NO = -1
_DEEPEST = 60

_ZERO = np.uint64(0)
# Bytes are copied, and these found: quotes, backslashes, controls, and what is not ASCII.
_move = moved_bytes((34, 34), (92, 92), (0, 31), (128, 255))

_ESCAPED = np.zeros(256, np.uint8)  # the byte that a backslash and this one stand for; 0 where they stand for none
for _code, _meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _ESCAPED[_code] = _meant
_DIGITS = np.array([int(chr(c), 16) if chr(c) in "0123456789abcdefABCDEF" else _NO for c in range(256)])
_NULL, _TRUE, _FALSE, _DELETED, _REMOVED = (
    np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false", b"[deleted]", b"[removed]")
)


class Work(NamedTuple):
    """A block, room to write texts to, and the kinds of all characters."""

    data: NDArray[np.uint8]
    out: NDArray[np.uint8]
    kinds: NDArray[np.uint8]


@compiled
def skim_json(work: Work, size: int, field: NDArray[np.uint8], longest: int, lines: Lines) -> tuple[int, int]:
    """Write out one field of all lines, each text followed by a zero. How many lines and how many bytes there are."""
    i = o = count = 0
    while i < size:
        end, begin, stop = _line(work, i, o, field)
        if end < 0:
            end, begin, stop = i, o, o
            while work.data[end] != 10:
                end += 1
            lines.state[count] = UNCLEAR
        else:
            lines.state[count] = CLEAR if end - i <= longest else UNCLEAR
        lines.start[count], lines.stop[count] = i, end
        lines.text_start[count], lines.text_stop[count] = begin, stop
        work.out[stop] = 0
        i, o, count = end + 1, stop + 1, count + 1
    return count, o


@compiled
def _line(work: Work, i: int, o: int, field: NDArray[np.uint8]) -> tuple[int, int, int]:
    """The end of a line, and where in ``out`` its field was written. The end is _NO where anything is unclear."""
    data, found, stop = work.data, False, o
    i = _blanks(data, i)
    i = _blanks(data, i + 1) if data[i] == 123 else _NO  # {
    while i >= 0 and data[i] != 125:  # }
        i, end = _key(work, i, stop)
        if i < 0:
            return i, o, o
        if end - stop != len(field) or not _is(work.out, stop, field):
            i = _pass_value(work, i, stop)
        elif found:  # the field is there twice
            return _NO, o, o
        else:
            found = True
            i, stop = _text(work, i, o)
        i = _after_value(data, i, 125)
    i = _blanks(data, i + 1) if i >= 0 and found else _NO
    return (i, o, stop) if i >= 0 and data[i] == 10 else (_NO, o, o)


@compiled
def _text(work: Work, i: int, o: int) -> tuple[int, int]:
    """Write out the value of the field. The places after it and after what was written."""
    if _is(work.data, i, _NULL):
        return i + 4, o
    if work.data[i] != 34:
        return _NO, o
    i, stop = _string(work, i + 1, o)
    gone = stop - o == len(_DELETED) and (_is(work.out, o, _DELETED) or _is(work.out, o, _REMOVED))
    return i, o if gone else stop


@compiled
def _after_value(data: NDArray[np.uint8], i: int, closing: int) -> int:
    """The place of the next key or value, or of the bracket that closes."""
    if i < 0:
        return i
    i = _blanks(data, i)
    if data[i] == closing:
        return i
    if data[i] != 44:  # ,
        return _NO
    i = _blanks(data, i + 1)
    return i if data[i] != closing else _NO


@compiled
def _pass_value(work: Work, i: int, o: int) -> int:
    """The place after any value. Of brackets that are open, ``closing`` has one bit each: 1 for a brace."""
    data, depth, closing = work.data, 0, 0
    while i >= 0:
        if data[i] == 123 or data[i] == 91:  # { [
            brace = _int(data[i] == 123)
            depth, closing = depth + 1, closing << 1 | brace
            i = _blanks(data, i + 1) if depth < _DEEPEST else _NO
        else:
            i = _pass_scalar(work, i, o)
            if i >= 0 and depth:
                i = _after_value(data, i, 125 if closing & 1 else 93)
        while i >= 0 and depth and data[i] == (125 if closing & 1 else 93):
            depth, closing, i = depth - 1, closing >> 1, i + 1
            if depth:
                i = _after_value(data, i, 125 if closing & 1 else 93)
        if not depth:
            return i
        if i >= 0 and closing & 1:
            i, _ = _key(work, i, o)
    return i


@compiled
def _pass_scalar(work: Work, i: int, o: int) -> int:
    c = work.data[i]
    if c == 34:
        i, _ = _string(work, i + 1, o)
        return i
    if c == 110 or c == 116:
        return i + 4 if _is(work.data, i, _NULL) or _is(work.data, i, _TRUE) else _NO
    if c == 102:
        return i + 5 if _is(work.data, i, _FALSE) else _NO
    return _pass_number(work.data, i)


@compiled
def _pass_number(data: NDArray[np.uint8], i: int) -> int:
    i += data[i] == 45  # -
    end = _digits(data, i)
    if end == i or (data[i] == 48 and end > i + 1):
        return _NO
    if data[end] == 46:  # .
        i = end + 1
        end = _digits(data, i)
    if end > i and data[end] | 32 == 101:  # e
        i = end + 1 + (data[end + 1] == 43 or data[end + 1] == 45)
        end = _digits(data, i)
    return end if end > i else _NO


@compiled
def _digits(data: NDArray[np.uint8], i: int) -> int:
    while 48 <= data[i] <= 57:
        i += 1
    return i


@compiled
def _blanks(data: NDArray[np.uint8], i: int) -> int:
    """The place of the first byte from i on that is no blank."""
    while data[i] == 32 or data[i] == 9 or data[i] == 13:
        i += 1
    return i


@compiled
def _is(data: NDArray[np.uint8], i: int, word: NDArray[np.uint8]) -> bool:
    """Whether a word stands there."""
    for at in range(len(word)):  # noqa: SIM110  (a generator is not compiled)
        if data[i + at] != word[at]:
            return False
    return True


@compiled
def _key(work: Work, i: int, o: int) -> tuple[int, int]:
    """Write out a key. The places of its value and after what was written."""
    if work.data[i] != 34:
        return _NO, o
    i, end = _string(work, i + 1, o)
    if i < 0:
        return i, o
    i = _blanks(work.data, i)
    return (_blanks(work.data, i + 1), end) if work.data[i] == 58 else (_NO, o)


@compiled
def _string(work: Work, i: int, o: int) -> tuple[int, int]:
    """Write out the string that begins at i, after its quote. The places after its last quote and what was written."""
    data, out, kinds = work
    while i >= 0:
        special = _move(data, i, out, o)
        if special == _ZERO:
            i, o = i + WIDTH, o + WIDTH
            continue
        ahead = _trailing_zeros(special)
        i, o = i + ahead, o + ahead
        if data[i] == 34:
            return i + 1, o
        code, i = _escape(data, i + 1) if data[i] == 92 else _decode(data, i)
        if code >= 0x300 and not kinds[code] & STABLE:
            return _NO, o
        o = _encode(code, out, o)
    return i, o


@compiled
def _escape(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The character of an escape, i being after its backslash, and the place after it. Half a pair is unclear."""
    if data[i] != 117:  # u
        return (_int(_ESCAPED[data[i]]), i + 1) if _ESCAPED[data[i]] else (0, _NO)
    code = _hexadecimal(data, i + 1)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return 0, _NO
    if not 0xD800 <= code < 0xDC00:
        return code, i + 5
    second = _hexadecimal(data, i + 7) if data[i + 5] == 92 and data[i + 6] == 117 else 0
    return (0x10000 + ((code & 0x3FF) << 10 | second & 0x3FF), i + 11) if 0xDC00 <= second < 0xE000 else (0, _NO)


@compiled
def _hexadecimal(data: NDArray[np.uint8], i: int) -> int:
    """The number that four digits stand for."""
    one, two, three, four = _DIGITS[data[i]], _DIGITS[data[i + 1]], _DIGITS[data[i + 2]], _DIGITS[data[i + 3]]
    return _int(one << 12 | two << 8 | three << 4 | four)  # negative where one of them is


@compiled
def _decode(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The character beyond ASCII that stands there, and the place after it."""
    lead = _int(data[i])
    width = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    code = lead & (0x7F >> width)
    for at in range(i + 1, i + width):
        if data[at] & 0xC0 != 0x80:
            return 0, _NO
        code = code << 6 | data[at] & 0x3F
    least = 0x80 if width == 2 else 0x800 if width == 3 else 0x10000
    good = 0xC2 <= lead <= 0xF4 and least <= code < 0x110000 and not 0xD800 <= code < 0xE000
    return (code, i + width) if good else (0, _NO)


@compiled
def _encode(code: int, out: NDArray[np.uint8], o: int) -> int:
    """Write a character. The place after it."""
    if code < 0x80:
        out[o] = code
        return o + 1
    width = 2 + (code >= 0x800) + (code >= 0x10000)
    for at in range(o + width - 1, o, -1):
        out[at] = 0x80 | code & 0x3F
        code >>= 6
    out[o] = 0xF00 >> width & 0xFF | code
    return o + width
