"""Blanks in tokens: what a language model is asked about the pieces of every word, each in its own sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from biassay.errors import UsageError
from biassay.models.base import Span
from biassay.models.tokenising import tokens_at
from biassay.texts.requests import Blank, Slot

__all__ = ["InTokens", "Question", "Questions"]

Word = tuple[list[int], list[int]]  # tokens before it, and its pieces


@dataclass(frozen=True)
class Question:
    """How likely is the token ``target`` at a place of a sequence? For causal models the place is that before it."""

    ids: tuple[int, ...]
    place: int
    target: int


@dataclass(frozen=True)
class InTokens:
    """A blank as a model reads it: the questions about the words, one a piece, and how many tokens are unknown."""

    lengths: tuple[int, ...]
    questions: tuple[Question, ...]
    unknown: int


class Questions:
    """Makes questions of blanks, by the tokenizer of a model."""

    def __init__(self, tokenizer: Any, kind: Literal["masked", "causal"]) -> None:
        self._kind = kind
        self._mask: str = tokenizer.mask_token if kind == "masked" else ""
        self._mask_id, self._unknown = tokenizer.mask_token_id, tokenizer.unk_token_id
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()

    def plan(self, blanks: Sequence[Blank], most: int) -> list[list[int]]:
        """Batches of whole blanks, by their places, of about ``most`` questions each.

        Texts that begin alike stand together, so that a causal model can answer for one while reading another.
        """
        ids = self._ids(["".join(blank.halves(self._mask)) for blank in blanks])
        first = list({blank.words: blank for blank in reversed(blanks)}.values())
        # Pieces hardly differ between sentences, and are costly to count.
        sizes = {one.words: sum(asked.lengths) for one, asked in zip(first, self.of(first), strict=True)}
        batches: list[list[int]] = []
        room = 0
        for place in sorted(range(len(blanks)), key=ids.__getitem__):
            size = sizes[blanks[place].words]
            if size > room or not batches:
                batches.append([])
                room = most
            batches[-1].append(place)
            room -= size
        return batches

    def of(self, blanks: Sequence[Blank]) -> list[InTokens]:
        """The questions of every blank, those about one word behind those about the other."""
        if self._kind == "causal" and any(Slot.MASKED in blank.segments for blank in blanks):
            raise UsageError("a causal model has no mask, so that no group can be masked")
        halves = [blank.halves(self._mask) for blank in blanks]
        unknown = [ids.count(self._unknown) for ids in self._ids([before + after for before, after in halves])]
        words = self._words(blanks, halves)
        asked = self._behind_texts(words) if self._kind == "causal" else self._among_masks(blanks, halves, words)
        return [
            InTokens(tuple(len(pieces) for _, pieces in own), tuple(chain.from_iterable(questions)), strange)
            for own, questions, strange in zip(words, asked, unknown, strict=True)
        ]

    def encoded(self, texts: list[str], *, special: bool = True) -> list[Any]:
        """Tokens of texts with their places. Several threads may ask; the tokenizer itself takes one at a time."""
        found: list[Any] = self._backend.encode_batch(texts, add_special_tokens=special)
        return found

    def _ids(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._backend.encode_batch_fast(texts, add_special_tokens=True)]

    def _words(self, blanks: Sequence[Blank], halves: Sequence[tuple[str, str]]) -> list[list[Word]]:
        """Of every word in its blank, the tokens before it and its pieces; no pieces, if one is unknown."""
        texts = [
            before + word + after for blank, (before, after) in zip(blanks, halves, strict=True) for word in blank.words
        ]
        encodings = iter(self.encoded(texts))
        found = []
        for blank, (before, _) in zip(blanks, halves, strict=True):
            spans = [(len(before), len(before) + len(word)) for word in blank.words]
            found.append([self._word(encoding, span) for span, encoding in zip(spans, encodings, strict=False)])
        return found

    def _word(self, encoding: Any, span: Span) -> Word:
        ids, places = encoding.ids, tokens_at(encoding, span)
        start, end = (places[0], places[-1] + 1) if places else (0, 0)
        pieces = ids[start:end]
        return ids[:start], [] if self._unknown in pieces else pieces

    def _behind_texts(self, words: Sequence[Sequence[Word]]) -> list[list[list[Question]]]:
        return [[_behind(start, pieces) for start, pieces in own] for own in words]

    def _among_masks(
        self, blanks: Sequence[Blank], halves: Sequence[tuple[str, str]], words: Sequence[Sequence[Word]]
    ) -> list[list[list[Question]]]:
        """Every blank is read with as many masks as any of its words has pieces."""
        wanted = [
            (place, n) for place, own in enumerate(words) for n in sorted({len(pieces) for _, pieces in own} - {0})
        ]
        texts = [halves[place][0] + " ".join([self._mask] * n) + halves[place][1] for place, n in wanted]
        masked = {
            (place, n): (ids, self._places(ids, blanks[place]))
            for (place, n), ids in zip(wanted, self._ids(texts), strict=True)
        }
        return [
            [_among(masked[place, len(pieces)], pieces) if pieces else [] for _, pieces in own]
            for place, own in enumerate(words)
        ]

    def _places(self, ids: list[int], blank: Blank) -> list[int]:
        """Where the masks of the blank itself stand."""
        places = [place for place, token in enumerate(ids) if token == self._mask_id]
        if Slot.MASKED not in blank.segments:
            return places
        group_first = blank.segments.index(Slot.MASKED) < blank.segments.index(Slot.BLANK)
        return places[1:] if group_first else places[:-1]


def _behind(start: list[int], pieces: Sequence[int]) -> list[Question]:
    """One question a piece, behind the pieces before it."""
    if pieces and not start:
        raise UsageError("a causal model reads from the left: a blank needs text before it")
    whole = (*start, *pieces)
    return [Question(whole[: len(start) + i], len(start) + i - 1, piece) for i, piece in enumerate(pieces)]


def _among(masked: tuple[list[int], list[int]], pieces: Sequence[int]) -> list[Question]:
    """One question a piece, the pieces before it in place of their masks."""
    filled, asked = list(masked[0]), []
    for place, piece in zip(masked[1], pieces, strict=True):
        asked.append(Question(tuple(filled), place, piece))
        filled[place] = piece
    return asked
