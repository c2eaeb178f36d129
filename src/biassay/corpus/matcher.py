r"""Find stimuli in documents as whole words.

A match does not touch a word character (``\w``), nor a hyphen between word characters: "short" does not match in
"short-term". An apostrophe is a boundary, so that "she's" contains "she", but a word before 't ("can't") does not
match. Blanks in a stimulus match single blanks.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.reader import PackedDocuments
from biassay.errors import StimulusError
from biassay.packages import require

_HYPHENS = "-\u2010\u2011"
_APOSTROPHES = "'’"
_SENTENCE_ENDS = "\n\r.!?…"
_BEFORE_OPENING = " \t\xa0\"'“”‘’«»„‚()[]{}"
_WORD_BYTES = frozenset(byte for byte in range(128) if chr(byte).isalnum() or chr(byte) == "_")
# Next to one of these bytes a match is a whole word; next to others the characters decide.
_IS_BOUNDARY = bytes(byte < 128 and byte not in _WORD_BYTES and chr(byte) not in "-'" for byte in range(256))
_OPENING_WINDOW = 64


class Matches(NamedTuple):
    """Matches sorted by document, stimulus and position.

    Attributes
    ----------
    stimulus, document : (n,) array of int
        Indices of the stimulus and the document.
    start : (n,) array of int
        First byte of the match in the data of all documents.
    """

    stimulus: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]


class _Form(NamedTuple):
    """A spelling of a stimulus. If `only_opening`, it counts only at the start of a sentence."""

    stimulus: int
    spelling: bytes
    only_opening: bool
    ends_in_word: bool


class StimulusMatcher:
    """Find the stimuli of a scan in many documents at once.

    Parameters
    ----------
    stimuli : sequence of str
        Words and phrases. Each must begin with a letter or digit.
    ignore_case : bool
        If True, match in any case. Otherwise a stimulus matches as written.
    openings : bool
        If True, a stimulus in lower case also matches with a capital at the start of a sentence. This lets in names
        ("Rose came home.") and words after an abbreviation ("Mr. Bell").
    """

    def __init__(self, stimuli: Sequence[str], ignore_case: bool = False, openings: bool = False) -> None:
        self._ignore_case = ignore_case
        self.lengths = [len(_compose(stimulus).encode()) for stimulus in stimuli]
        self._forms = [
            form for index, word in enumerate(stimuli) for form in _get_forms(index, word, ignore_case, openings)
        ]
        hyperscan = require("hyperscan")
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=[_make_expression(form.spelling) for form in self._forms],
            ids=list(range(len(self._forms))),
            elements=len(self._forms),
            flags=[0] * len(self._forms),
        )

    def find(self, documents: PackedDocuments) -> Matches:
        """Return all matches in some documents."""
        data = _fold(documents.data) if self._ignore_case else documents.data
        candidates: list[tuple[int, int]] = []
        add = candidates.append
        self._database.scan(data, match_event_handler=lambda form, _start, end, _flags, _context: add((form, end)))
        found = [
            (form.stimulus, start)
            for index, end in candidates
            for form in (self._forms[index],)
            for start in (end - len(form.spelling),)
            if (_IS_BOUNDARY[data[start - 1]] and _IS_BOUNDARY[data[end]]) or _is_whole_word(data, start, end, form)
            if not form.only_opening or _is_opening(data, documents, start)
        ]
        stimulus, start = np.array(found, np.int64).reshape(-1, 2).T
        document = np.searchsorted(documents.starts, start, side="right") - 1
        order = np.lexsort((start, stimulus, document))
        return Matches(stimulus[order], document[order], start[order])


@functools.lru_cache(maxsize=4)
def get_matcher(stimuli: tuple[str, ...], ignore_case: bool, openings: bool) -> StimulusMatcher:
    """Return a `StimulusMatcher`, compiled once per process.

    Parameters
    ----------
    stimuli, ignore_case, openings
        As for `StimulusMatcher`.
    """
    return StimulusMatcher(stimuli, ignore_case, openings)


def _get_forms(index: int, stimulus: str, ignore_case: bool, openings: bool) -> Iterator[_Form]:
    word = _compose(stimulus)
    if not word or not _is_word_character(word[0]) or "\0" in word:
        raise StimulusError(f"cannot search for the stimulus {stimulus!r}; it must begin with a letter or digit")
    ends_in_word = _is_word_character(word[-1])
    if ignore_case:
        yield _Form(index, _fold(word.encode()), False, ends_in_word)
        return
    yield _Form(index, word.encode(), False, ends_in_word)
    capitalized = word[0].upper() + word[1:]
    # A letter whose capital has another length in UTF-8, such as ß, cannot open a sentence.
    if openings and word == word.lower() != capitalized and len(capitalized.encode()) == len(word.encode()):
        yield _Form(index, capitalized.encode(), True, ends_in_word)


def _make_expression(spelling: bytes) -> bytes:
    """Return a regular expression over bytes; word boundaries are only known next to ASCII letters."""
    literal = "".join(f"\\x{byte:02x}" for byte in spelling)
    before, after = (r"\b" if byte in _WORD_BYTES else "" for byte in (spelling[0], spelling[-1]))
    return f"{before}{literal}{after}".encode()


def _is_whole_word(data: bytes, start: int, end: int, form: _Form) -> bool:
    """Check the characters around a match. A zero byte separates documents."""
    left = data[max(0, start - 8) : start].decode(errors="ignore")  # two characters or more
    if _is_word_character(left[-1:]) or (left[-1:] in _HYPHENS and _is_word_character(left[-2:-1])):
        return False
    right = data[end : end + 12].decode(errors="ignore")  # three characters or more
    first, second, third = right[:1], right[1:2], right[2:3]
    if _is_word_character(first) or (first in _HYPHENS and form.ends_in_word and _is_word_character(second)):
        return False
    return not (first in _APOSTROPHES and second in ("t", "T") and not _is_word_character(third))


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_opening(data: bytes, documents: PackedDocuments, start: int) -> bool:
    """Return whether a sentence opens here: only quotes and brackets between the end of another and the match."""
    document_start = int(documents.starts[np.searchsorted(documents.starts, start, side="right") - 1])
    size = _OPENING_WINDOW
    while True:
        begin = max(document_start, start - size)
        before = data[begin:start].decode(errors="ignore").rstrip(_BEFORE_OPENING)
        if before:
            return before[-1] in _SENTENCE_ENDS
        if begin == document_start:
            return True
        size *= 2


class _FoldTable(dict[int, str]):
    """Map a character to lower case if that keeps its length in UTF-8, so that positions stay valid."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        lower = character.lower()
        self[code] = lower if len(lower.encode()) == len(character.encode()) else character
        return self[code]


_FOLD_TABLE = _FoldTable()


def _fold(data: bytes) -> bytes:
    return data.lower() if data.isascii() else data.decode().translate(_FOLD_TABLE).encode()


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", text)
