"""Compiled code that finds stimuli in documents. ``matching`` says by which rules.

Ends of words are found eight bytes at a time, and a word is looked up by its first and last eight bytes. A word with
anything but ASCII letters is read character by character.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from biassay.texts.characters import HYPHEN, WORD
from biassay.texts.tools import compiled, trailing_zeros

__all__ = ["Forms", "Text", "find", "fold", "hash_of_word"]

_int = cast("Callable[[Any], int]", np.int64)  # for mypy: compiled code has no other whole numbers
_trailing_zeros = trailing_zeros()
_ZERO, _ONE, _SEVEN = (np.uint64(number) for number in (0, 1, 7))
_BIT, _BYTE = np.uint64(48), np.uint64(51)  # the first 16 bits of a hash are the place of a bit, 13 that of its byte
_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_SMALL = np.uint64(0x2020202020202020)
_TO_A = np.uint64(0x1F1F1F1F1F1F1F1F)  # added to a byte below 128 it sets the high bit of "a" and all above
_PAST_Z = np.uint64(0x0505050505050505)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(0xC2B2AE3D27D4EB4F)
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)

# By its first byte a character is no part of a word; a letter; or a digit, "_", "-" or not ASCII.
_BLANK, _LETTER, _OTHER = 0, 1, 2
_CLASS = np.array(
    [_OTHER if c >= 128 or chr(c) in "_-0123456789" else _LETTER if chr(c).isalpha() else _BLANK for c in range(256)],
    np.uint8,
)
_BETWEEN = np.array([ord(c) for c in " \t\xa0\"'“”‘’«»„‚()[]{}"])
_ENDS_SENTENCE = np.array([ord(c) for c in "\n\r.!?…"])


class Text(NamedTuple):
    """Documents in one piece, also by eight bytes, and where they start and stop. A blank byte stands after each."""

    data: NDArray[np.uint8]
    words: NDArray[np.uint64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


class Forms(NamedTuple):
    """The ways to write stimuli, in a hash table by first word; ``following`` is another with the same hash, or -1.

    ``likely`` has a bit for the first 16 of each hash: small enough for the fastest memory, it rules most words out.
    """

    likely: NDArray[np.uint8]
    slots: NDArray[np.int32]
    shift: np.uint64
    hashes: NDArray[np.uint64]
    following: NDArray[np.int32]
    word_size: NDArray[np.int64]
    letters: NDArray[np.uint8]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    stimulus: NDArray[np.int64]
    only_opening: NDArray[np.bool_]


@compiled
def find(text: Text, forms: Forms, kinds: NDArray[np.uint8], hits: NDArray[np.int64]) -> int:
    """Write hits, as rows of stimulus, document and place in the data, as far as there is room. How many there are."""
    count = 0
    data, words, likely = text.data, text.words, forms.likely
    for document in range(len(text.starts)):
        i, stop = text.starts[document], text.stops[document]
        while i < stop:
            if _CLASS[data[np.uint64(i)]] == _BLANK:
                i += 1
                continue
            start, i = _word(data, words, i, kinds)
            hashed = hash_of_word(words, start, i)
            if not likely[hashed >> _BYTE] >> (hashed >> _BIT & _SEVEN) & _ONE:
                continue
            form = _look_up(forms, hashed)
            while form >= 0:
                if forms.word_size[form] == i - start and _stands(text, document, forms, form, start, kinds):
                    if count < len(hits):
                        hits[count, 0], hits[count, 1], hits[count, 2] = forms.stimulus[form], document, start
                    count += 1
                form = forms.following[form]
    return count


@compiled
def _word(data: NDArray[np.uint8], words: NDArray[np.uint64], i: int, kinds: NDArray[np.uint8]) -> tuple[int, int]:
    """Where the first word from i on starts and ends: the same place twice where a blank comes first."""
    if _CLASS[data[np.uint64(i)]] == _LETTER:
        end = i
        while True:
            eight = words[np.uint64(end)]  # unsigned, so that it is not first asked whether it is negative
            small = (eight | _SMALL) & _LOW
            others = (~(small + _TO_A) | (small + _PAST_Z) | eight) & _HIGH  # the high bits of all but letters
            if others != _ZERO:
                break
            end += 8
        end += _trailing_zeros(others) >> 3
        if _CLASS[data[np.uint64(end)]] == _BLANK:
            return i, end
    return _word_of_any_kind(data, i, kinds)


@compiled
def _word_of_any_kind(data: NDArray[np.uint8], i: int, kinds: NDArray[np.uint8]) -> tuple[int, int]:
    """The same, one character at a time. No word character stands before i."""
    while _CLASS[data[i]] != _BLANK:
        code, width = _decode(data, i)
        if kinds[code] & WORD:
            break
        i += width
    start = i
    while _CLASS[data[i]] != _BLANK:
        code, width = _decode(data, i)
        if not kinds[code] & WORD and not (kinds[code] & HYPHEN and _is_word(data, i + width, kinds)):
            break
        i += width
    return start, i


@compiled
def _decode(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The character that stands there, in valid UTF-8, and its length."""
    lead = _int(data[i])
    if lead < 0x80:
        return lead, 1
    width = 2 + (lead >= 0xE0) + (lead >= 0xF0)
    code = lead & (0x7F >> width)
    for at in range(i + 1, i + width):
        code = code << 6 | data[at] & 0x3F
    return code, width


@compiled
def _is_word(data: NDArray[np.uint8], i: int, kinds: NDArray[np.uint8]) -> bool:
    return bool(kinds[_decode(data, i)[0]] & WORD)


@compiled
def hash_of_word(words: NDArray[np.uint64], start: int, end: int) -> np.uint64:
    """A number for a word by its first and last eight bytes."""
    size = end - start
    if size <= 8:
        return np.uint64((words[start] & _MASKS[size]) * _GOLDEN)
    return np.uint64((words[start] ^ (words[end - 8] + np.uint64(size)) * _ODD) * _GOLDEN)


@compiled
def _look_up(forms: Forms, hashed: np.uint64) -> int:
    """The first form with this hash, or -1. The table has empty slots."""
    slot = _int(hashed >> forms.shift)
    while forms.slots[slot] >= 0:
        form = _int(forms.slots[slot])
        if forms.hashes[form] == hashed:
            return form
        slot = (slot + 1) % len(forms.slots)
    return -1


@compiled
def _stands(text: Text, document: int, forms: Forms, form: int, at: int, kinds: NDArray[np.uint8]) -> bool:
    """Whether a form stands there, where a word starts that is as long as its first."""
    data, first = text.data, forms.start[form]
    size = forms.stop[form] - first
    end = at + size
    if end > text.stops[document]:
        return False
    for i in range(size):
        if data[at + i] != forms.letters[first + i]:
            return False
    if _goes_on(data, end, kinds) or _is_negated(data, end, kinds):
        return False
    return not forms.only_opening[form] or _opens(data, text.starts[document], at)


@compiled
def _goes_on(data: NDArray[np.uint8], end: int, kinds: NDArray[np.uint8]) -> bool:
    """Whether a word character follows, or a hyphen between two."""
    code, width = _decode(data, end)
    if kinds[code] & WORD:
        return True
    if not kinds[code] & HYPHEN or not _is_word(data, end + width, kinds):
        return False
    return _is_word(data, _before(data, end), kinds)


@compiled
def _before(data: NDArray[np.uint8], i: int) -> int:
    """The place of the character before."""
    i -= 1
    while data[i] & 0xC0 == 0x80:
        i -= 1
    return i


@compiled
def _is_negated(data: NDArray[np.uint8], end: int, kinds: NDArray[np.uint8]) -> bool:
    """Whether 't follows, which makes it another word."""
    code, width = _decode(data, end)
    if (code != 0x27 and code != 0x2019) or data[end + width] | 32 != 116:
        return False
    return not _is_word(data, end + width + 1, kinds)


@compiled
def _opens(data: NDArray[np.uint8], begin: int, at: int) -> bool:
    """Whether nothing, a line break or the end of a sentence stands before, quotes and brackets aside."""
    while at > begin:
        at = _before(data, at)
        code, _ = _decode(data, at)
        if not _among(_BETWEEN, code):
            return _among(_ENDS_SENTENCE, code)
    return True


@compiled
def _among(codes: NDArray[np.int64], code: int) -> bool:
    for one in codes:  # noqa: SIM110  (a generator is not compiled)
        if one == code:
            return True
    return False


@compiled
def fold(text: Text, small: NDArray[np.int32], folded: NDArray[np.uint8]) -> None:
    """Write all documents with small letters, those aside whose small letter has another length."""
    for document in range(len(text.starts)):
        i = text.starts[document]
        while i < text.stops[document]:
            code, width = _decode(text.data, i)
            code = _int(small[code])
            for at in range(i + width - 1, i, -1):
                folded[at] = 0x80 | code & 0x3F
                code >>= 6
            folded[i] = code if width == 1 else 0xF00 >> width & 0xFF | code
            i += width
