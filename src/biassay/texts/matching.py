"""Stimuli found in documents, as whole words.

A hit touches no word character (``\\w``), and no hyphen that stands between word characters: "short" is not in
"short-term". An apostrophe separates, so that "she's" holds "she"; but a word before 't ("can't") is another word.
A stimulus matches as written. With ``openings`` one without a capital matches also with a capital first letter where
it opens a sentence; that lets in names ("Rose came home.") and what follows an abbreviation ("Mr. Bell"). Blanks
within a stimulus match single blanks.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import StimulusError
from biassay.texts.characters import HYPHENS, kinds, small_letters
from biassay.texts.joined import Joined
from biassay.texts.tools import tool

__all__ = ["Hits", "Matcher", "matcher_for"]

_FIRST_WORD = re.compile(rf"\w+(?:[{HYPHENS}]\w+)*")
_SLOTS_FOR_A_FORM = 8  # so that most words that are no stimulus meet an empty slot


@dataclass(frozen=True)
class Hits:
    """Hits by document, then place: stimulus, document, and first byte in the data of all documents."""

    stimulus: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]


@dataclass(frozen=True)
class _Form:
    """One way a stimulus is written. ``only_opening``: counts where it opens a sentence."""

    stimulus: int
    written: str
    only_opening: bool

    @property
    def first_word(self) -> bytes:
        match = _FIRST_WORD.match(self.written)
        return match[0].encode() if match else b""


@functools.lru_cache(maxsize=4)
def matcher_for(stimuli: tuple[str, ...], ignore_case: bool, openings: bool) -> Matcher:
    """The matcher of these stimuli, made once in a process."""
    return Matcher(stimuli, ignore_case, openings)


class Matcher:
    """Finds all of some stimuli at once."""

    def __init__(self, stimuli: Sequence[str], ignore_case: bool = False, openings: bool = True) -> None:
        self._openings = openings
        self._finding = tool("biassay.texts.finding")
        self._small = small_letters() if ignore_case else None
        self.lengths = np.array([len(_nfc(stimulus).encode()) for stimulus in stimuli], np.int64)
        forms = [form for number, word in enumerate(stimuli) for form in self._written(number, word)]
        self._forms = self._table(forms)
        self._words = np.empty((16384, 3), np.int64)

    def find(self, joined: Joined) -> Hits:
        """All hits in some documents."""
        text = self._text(joined)
        if self._small is not None:
            folded = joined.data.copy()
            self._finding.fold(text, self._small, folded)
            folded.flags.writeable = False
            text = text._replace(data=folded)
        count = self._finding.find_words(text, self._forms.likely, kinds(), self._words)
        if count > len(self._words):
            self._words = np.empty((2 * count, 3), np.int64)
            self._finding.find_words(text, self._forms.likely, kinds(), self._words)
        words = self._words[:count]
        hits = np.empty((count, 3), np.int64)
        count = self._finding.find(text, self._forms, kinds(), words, hits)
        if count > len(hits):
            hits = np.empty((count, 3), np.int64)
            self._finding.find(text, self._forms, kinds(), words, hits)
        return Hits(*np.ascontiguousarray(hits[:count].T))

    def _text(self, joined: Joined) -> Any:
        return self._finding.Text(joined.data, joined.starts, joined.stops)

    def _written(self, number: int, stimulus: str) -> Iterator[_Form]:
        """How a stimulus may be written."""
        word = _nfc(stimulus)
        if not re.match(r"\w", word) or "\0" in word:
            raise StimulusError(
                f"the stimulus {stimulus!r} cannot be looked for; it has to begin with a letter or digit"
            )
        if self._small is not None:
            yield _Form(number, "".join(chr(self._small[ord(letter)]) for letter in word), only_opening=False)
            return
        yield _Form(number, word, only_opening=False)
        if not self._openings:
            return
        capital = word[0].upper() + word[1:]
        # A letter whose capital has another length (ß) opens no sentence.
        if word == word.lower() != capital and len(capital.encode()) == len(word.encode()):
            yield _Form(number, capital, only_opening=True)

    def _table(self, forms: Sequence[_Form]) -> Any:
        """The hash table of the forms."""
        written = Joined.of([form.written.encode() for form in forms])
        sizes = np.array([len(form.first_word) for form in forms], np.int64)
        ends = written.starts + sizes
        hash_of = self._finding.hash_of_word
        hashes = np.array(
            [hash_of(written.data, *ends_of) for ends_of in zip(written.starts, ends, strict=True)], np.uint64
        )
        bits = max(6, (_SLOTS_FOR_A_FORM * len(forms)).bit_length())
        slots, following = _chained(hashes, bits)
        likely = np.zeros(1 << 16, np.bool_)
        likely[hashes >> np.uint64(48)] = True
        return self._finding.Forms(
            likely=np.packbits(likely, bitorder="little").view("<u8"),
            slots=slots,
            shift=np.uint64(64 - bits),
            hashes=hashes,
            following=following,
            word_size=sizes,
            letters=written.data,
            start=written.starts,
            stop=written.stops,
            stimulus=np.array([form.stimulus for form in forms], np.int64),
            only_opening=np.array([form.only_opening for form in forms], np.bool_),
        )


def _chained(hashes: NDArray[np.uint64], bits: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The slots of a table, and for every form the next with the same hash, or -1."""
    slots = np.full(1 << bits, -1, np.int32)
    following = np.full(len(hashes), -1, np.int32)
    last: dict[int, int] = {}
    for form, hashed in enumerate(hashes.tolist()):
        if hashed in last:
            following[last[hashed]] = form
        else:
            slot = hashed >> (64 - bits)
            while slots[slot] >= 0:
                slot = (slot + 1) % len(slots)
            slots[slot] = form
        last[hashed] = form
    return slots, following


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
