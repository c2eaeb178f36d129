"""Compiled code that finds stimuli in documents. ``matching`` says by which rules.

Ends of words are found in 64 bytes at a time, and a word is looked up by its first and last eight bytes. A word with
anything but ASCII letters is read character by character.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from biassay.texts.characters import HYPHEN, WORD
from biassay.texts.tools import WIDTH, compiled, eight_bytes, matching_bytes, trailing_zeros

__all__ = ["Forms", "Text", "find", "find_words", "fold", "hash_of_word"]

_int = cast("Callable[[Any], int]", np.int64)  # for mypy: compiled code has no other whole numbers
_eight, _trailing_zeros = eight_bytes(), trailing_zeros()
_ZERO, _ONE, _SIX = (np.uint64(number) for number in (0, 1, 63))
_BIT, _NUMBER = np.uint64(48), np.uint64(54)  # the first 16 bits of a hash say which bit, 10 of them in which number
_TOP = np.uint64(1 << 63)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(0xC2B2AE3D27D4EB4F)

# By its first byte a character is a letter; a digit, "_", "-" or not ASCII; or no part of a word.
_LETTERS = ((ord("A"), ord("Z")), (ord("a"), ord("z")))
_OTHERS = ((ord("0"), ord("9")), (ord("_"), ord("_")), (ord("-"), ord("-")), (128, 255))
_letters, _others = matching_bytes(*_LETTERS), matching_bytes(*_OTHERS)
_IS_BLANK = np.array([not any(first <= c <= last for first, last in _LETTERS + _OTHERS) for c in range(256)])
_BETWEEN = np.array([ord(c) for c in " \t\xa0\"'“”‘’«»„‚()[]{}"])
_ENDS_SENTENCE = np.array([ord(c) for c in "\n\r.!?…"])


class Text(NamedTuple):
    """Documents in one piece, and where they start and stop. A blank byte stands after each."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


class Forms(NamedTuple):
    """The ways to write stimuli, in a hash table by first word; ``following`` is another with the same hash, or -1.

    ``likely`` has a bit for the first 16 of each hash: small enough for the fastest memory, it rules most words out.
    """

    likely: NDArray[np.uint64]
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
def find_words(text: Text, likely: NDArray[np.uint64], kinds: NDArray[np.uint8], words: NDArray[np.int64]) -> int:
    """Write words that may begin a form, as rows of document, start and end, as far as there is room. How many."""
    count = 0
    data = text.data
    for document in range(len(text.starts)):
        i, stop = text.starts[document], text.stops[document]
        while i < stop:  # no piece without blanks stands on both sides of i
            letters = _letters(data, i)
            inner = letters | _others(data, i)
            if stop - i < WIDTH:
                inner &= (_ONE << np.uint64(stop - i)) - _ONE
            starts, others, ahead = inner & ~(inner << _ONE), inner & ~letters, WIDTH
            while starts != _ZERO:
                first = _trailing_zeros(starts)
                size = _trailing_zeros(~(inner >> np.uint64(first)) | _TOP)
                if first + size >= WIDTH - 1:  # it may go on
                    ahead = first
                    break
                starts &= starts - _ONE
                start, end = i + first, i + first + size
                if others >> np.uint64(first) & ((_ONE << np.uint64(size)) - _ONE) != _ZERO:
                    count = _find_others(data, document, start, end, likely, kinds, words, count)
                elif _is_likely(likely, hash_of_word(data, start, end)):
                    count = _write(words, count, document, start, end)
            if not ahead:
                end = i
                while not _IS_BLANK[data[end]]:
                    end += 1
                count = _find_others(data, document, i, end, likely, kinds, words, count)
                ahead = end - i
            i += ahead
    return count


@compiled
def _find_others(
    data: NDArray[np.uint8],
    document: int,
    i: int,
    stop: int,
    likely: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    words: NDArray[np.int64],
    count: int,
) -> int:
    """The same for a piece without blanks that is not all letters, or long."""
    while i < stop:
        start, i = _word(data, i, kinds)
        if _is_likely(likely, hash_of_word(data, start, i)):
            count = _write(words, count, document, start, i)
    return count


@compiled
def _is_likely(likely: NDArray[np.uint64], hashed: np.uint64) -> bool:
    return bool(_ONE << (hashed >> _BIT & _SIX) & likely[hashed >> _NUMBER])


@compiled
def _write(rows: NDArray[np.int64], count: int, one: int, two: int, three: int) -> int:
    """Write a row, if there is room. How many there are now."""
    if count < len(rows):
        rows[count, 0], rows[count, 1], rows[count, 2] = one, two, three
    return count + 1


@compiled
def find(text: Text, forms: Forms, kinds: NDArray[np.uint8], words: NDArray[np.int64], hits: NDArray[np.int64]) -> int:
    """Write hits, as rows of stimulus, document and place in the data, as far as there is room. How many there are."""
    count = 0
    data, letters = text.data, forms.letters
    for word in range(len(words)):
        document, start, end = words[word, 0], words[word, 1], words[word, 2]
        form = _look_up(forms.slots, forms.shift, forms.hashes, hash_of_word(data, start, end))
        while form >= 0:
            if (
                forms.word_size[form] == end - start
                and _stands(data, start, text.stops[document], letters, forms.start[form], forms.stop[form], kinds)
                and (not forms.only_opening[form] or _opens(data, text.starts[document], start))
            ):
                count = _write(hits, count, forms.stimulus[form], document, start)
            form = forms.following[form]
    return count


@compiled
def _word(data: NDArray[np.uint8], i: int, kinds: NDArray[np.uint8]) -> tuple[int, int]:
    """Where the first word from i on starts and ends, before a blank; no word character stands before i."""
    while not _IS_BLANK[data[i]]:
        code, width = _decode(data, i)
        if kinds[code] & WORD:
            break
        i += width
    start = i
    while not _IS_BLANK[data[i]]:
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
def hash_of_word(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """A number for a word by its first and last eight bytes."""
    size = end - start
    first = _eight(data, start)
    if size < 8:
        return np.uint64((first & ((_ONE << np.uint64(8 * size)) - _ONE)) * _GOLDEN)
    return np.uint64((first ^ (_eight(data, end - 8) + np.uint64(size)) * _ODD) * _GOLDEN)


@compiled
def _look_up(slots: NDArray[np.int32], shift: np.uint64, hashes: NDArray[np.uint64], hashed: np.uint64) -> int:
    """The first form with this hash, or -1. The table has empty slots."""
    slot = _int(hashed >> shift)
    while slots[slot] >= 0:
        form = _int(slots[slot])
        if hashes[form] == hashed:
            return form
        slot = (slot + 1) % len(slots)
    return -1


@compiled
def _stands(
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    letters: NDArray[np.uint8],
    first: int,
    last: int,
    kinds: NDArray[np.uint8],
) -> bool:
    """Whether letters stand there, before a place to stop, where a word starts that is as long as their first."""
    end = at + last - first
    if end > stop:
        return False
    for i in range(last - first):
        if data[at + i] != letters[first + i]:
            return False
    return not _goes_on(data, end, kinds) and not _is_negated(data, end, kinds)


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
