"""Compiled code that draws hits: their keys, and which of them may be in the sample. ``sampling`` says how."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.tools import compiled

__all__ = ["ENDS", "Drawn", "bounds", "draw", "earlier", "first_of_each", "mark", "xxh64"]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_1, _7, _11, _12, _18, _23, _27, _29, _30, _31, _32, _33, _64 = (
    np.uint64(bits) for bits in (1, 7, 11, 12, 18, 23, 27, 29, 30, 31, 32, 33, 64)
)

# Characters after which a sentence may end; blanks and quotes may stand between.
ENDS = np.array([c >= 128 or not (chr(c).isalnum() or chr(c) in " ,'\"-") for c in range(256)])
_WORD = np.array([c < 128 and chr(c).isalnum() for c in range(256)])
_HIGH, _ONES = np.uint64(0x8080808080808080), np.uint64(0x0101010101010101)
_CLOSING = np.uint64(0x2929292929292929)


class Drawn(NamedTuple):
    """For every hit its key, the hit of the same stimulus before it in the document or -1, and whether it is kept."""

    key: NDArray[np.uint64]
    before: NDArray[np.int64]
    kept: NDArray[np.bool_]


@compiled
def draw(
    hits: tuple[NDArray[np.int64], NDArray[np.int64]],
    documents: tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]],
    keys: NDArray[np.uint64],
    limits: NDArray[np.uint64],
    most: int,
    drawn: Drawn,
    state: NDArray[np.int64],
) -> None:
    """Draw keys. A hit is kept if its key is no larger than the limit and it is of the first so many in its document.

    ``hits`` are stimuli and documents, by document and place; ``state`` is room for two numbers of each stimulus.
    """
    data, words, starts, stops = documents
    stimuli, numbers = hits
    last, current, of_text = state[0], -1, np.uint64(0)
    last[:] = -1
    for hit in range(len(stimuli)):
        stimulus, document = stimuli[hit], numbers[hit]
        if document != current:
            current = document
            of_text = xxh64(data, words, starts[document], stops[document])
        before = last[stimulus]
        if before < 0 or numbers[before] != document:
            before = -1
            state[1, stimulus] = 0
        ordinal = state[1, stimulus]
        key = _mix(_mix(keys[stimulus] ^ of_text) + np.uint64(ordinal) * _GOLDEN)
        drawn.key[hit], drawn.before[hit] = key, before
        drawn.kept[hit] = key <= limits[stimulus] and ordinal < most
        last[stimulus] = hit
        state[1, stimulus] = ordinal + 1


@compiled
def earlier(
    kept: NDArray[np.int64],
    start: NDArray[np.int64],
    before: NDArray[np.int64],
    reach: int,
    stops: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    """Write, for each hit that is kept, the starts of those of its stimulus before it, as far as there is room.

    How many there are; ``stops`` say where those of each end.
    """
    count = 0
    for number in range(len(kept)):
        hit = kept[number]
        other = before[hit]
        while other >= 0 and start[other] >= start[hit] - reach:
            if count < len(out):
                out[count] = start[other]
            count += 1
            other = before[other]
        stops[number] = count
    return count


@compiled
def mark(
    texts: tuple[NDArray[np.uint8], NDArray[np.uint64]],
    hits: tuple[NDArray[np.int64], NDArray[np.int64]],
    lines: NDArray[np.int64],
    earlier: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    longest: int,
    marks: NDArray[np.uint64],
) -> None:
    """Write the marks of hits, given where they start and end in the data and where their lines do; 0 for no mark.

    ``earlier`` as in ``cutting.cut``. ``holding`` says what marks are.
    """
    data, words = texts
    for hit in range(len(marks)):
        line, stop = lines[hit]
        start, end = hits[0][hit], hits[1][hit]
        left, right = start, end
        marks[hit] = 0
        clear = line >= 0 and stop - line <= longest
        for other in range(earlier[1][hit], earlier[2][hit]):
            clear = clear and earlier[0][hit] + earlier[3][other] < line
        if not clear or not _is_plain(data, words, line, stop):
            continue
        while left > line and not ENDS[data[left - 1]]:
            left -= 1
        while left < start and not _WORD[data[left]]:
            left += 1
        while right < stop and not ENDS[data[right]]:
            right += 1
        while right > end and not _WORD[data[right - 1]]:
            right -= 1
        marks[hit] = xxh64(data, words, left, right) | _1


@compiled
def _is_plain(data: NDArray[np.uint8], words: NDArray[np.uint64], i: int, stop: int) -> bool:
    """Whether all is ASCII and no bracket is closed."""
    while i + 8 <= stop:
        eight = words[np.uint64(i)]
        if (eight | ((eight ^ _CLOSING) - _ONES)) & _HIGH:  # a byte is not ASCII, or is ")"
            break
        i += 8
    while i < stop and data[i] < 128 and data[i] != 41:
        i += 1
    return i == stop


@compiled
def bounds(
    rows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]],
    marks: NDArray[np.uint64],
    k: int,
    state: tuple[NDArray[np.int64], NDArray[np.int64]],
    limits: NDArray[np.uint64],
) -> None:
    """Write the key at which a stimulus has k different marks. Marks that seem the same count once.

    ``rows`` are their order, by stimulus and key, their stimuli and keys; ``state`` as in ``first_of_each``.
    """
    order, stimuli, keys = rows
    slots, counts = state
    most = np.uint64(len(slots) - 1)
    for row in order:
        stimulus = stimuli[row]
        if not marks[row] or counts[stimulus] == k:
            continue
        slot = _mix(marks[row] + np.uint64(stimulus) * _GOLDEN) & most
        while slots[slot] >= 0 and (stimuli[slots[slot]] != stimulus or marks[slots[slot]] != marks[row]):
            slot = (slot + _1) & most
        if slots[slot] < 0:
            slots[slot] = row
            counts[stimulus] += 1
            if counts[stimulus] == k:
                limits[stimulus] = keys[row]


@compiled
def first_of_each(
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    texts: tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.int64]],
    k: int,
    state: tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]],
    kept: NDArray[np.int64],
) -> int:
    """Write the first k rows of every stimulus, of rows with the same text the first only. How many these are.

    ``rows`` are their order, by stimulus, and their stimuli; ``texts`` are in one piece, with the places where they
    start and stop; ``state`` is room: a table for hashes, twice as long as there are rows or longer and empty (-1), the
    hashes themselves, and a zero for every stimulus.
    """
    order, stimuli = rows
    data, words, places = texts
    slots, hashes, counts = state
    count, most = 0, np.uint64(len(slots) - 1)
    for row in order:
        stimulus = stimuli[row]
        if counts[stimulus] == k:
            continue
        hashes[row] = xxh64(data, words, places[row], places[row + 1])
        slot = _mix(hashes[row] + np.uint64(stimulus) * _GOLDEN) & most
        while slots[slot] >= 0 and not _same(slots[slot], row, stimuli, hashes, data, places):
            slot = (slot + _1) & most
        if slots[slot] < 0:
            slots[slot] = row
            kept[count] = row
            count += 1
            counts[stimulus] += 1
    return count


@compiled
def _same(
    one: int,
    other: int,
    stimuli: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    data: NDArray[np.uint8],
    places: NDArray[np.int64],
) -> bool:
    size = places[one + 1] - places[one]
    if stimuli[one] != stimuli[other] or hashes[one] != hashes[other] or places[other + 1] - places[other] != size:
        return False
    for i in range(size):  # noqa: SIM110  (a generator is not compiled)
        if data[places[one] + i] != data[places[other] + i]:
            return False
    return True


@compiled
def _mix(x: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: a bijection in which every bit of the result depends on every bit of the input."""
    x = (x ^ (x >> _30)) * _MIX_1
    x = (x ^ (x >> _27)) * _MIX_2
    return x ^ (x >> _31)


@compiled
def _turn(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (_64 - bits))


@compiled
def _round(state: np.uint64, eight: np.uint64) -> np.uint64:
    return _turn(state + eight * _P2, _31) * _P1


@compiled
def _join(state: np.uint64, lane: np.uint64) -> np.uint64:
    return (state ^ _round(np.uint64(0), lane)) * _P1 + _P4


@compiled
def xxh64(data: NDArray[np.uint8], words: NDArray[np.uint64], start: int, stop: int) -> np.uint64:
    """The hash XXH64, with seed 0, of a piece of data. Nothing outside of the piece is read."""
    i, size = start, np.uint64(stop - start)
    state = _P5
    if stop - start >= 32:
        a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
        while i + 32 <= stop:
            a, b = _round(a, words[i]), _round(b, words[i + 8])
            c, d = _round(c, words[i + 16]), _round(d, words[i + 24])
            i += 32
        state = _turn(a, _1) + _turn(b, _7) + _turn(c, _12) + _turn(d, _18)
        state = _join(_join(_join(_join(state, a), b), c), d)
    state += size
    while i + 8 <= stop:
        state = _turn(state ^ _round(np.uint64(0), words[i]), _27) * _P1 + _P4
        i += 8
    if i + 4 <= stop:
        four = np.uint64(data[i] | data[i + 1] << 8 | data[i + 2] << 16 | np.int64(data[i + 3]) << 24)
        state = _turn(state ^ four * _P1, _23) * _P2 + _P3
        i += 4
    while i < stop:
        state = _turn(state ^ np.uint64(data[i]) * _P5, _11) * _P1
        i += 1
    state = (state ^ (state >> _33)) * _P2
    state = (state ^ (state >> _29)) * _P3
    return state ^ (state >> _32)
