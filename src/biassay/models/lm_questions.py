"""Blanks in tokens: what a language model is asked about the pieces of every word, each in its own sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from biassay.errors import UsageError
from biassay.texts.requests import Blank, Slot

__all__ = ["InTokens", "Question", "Questions"]


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
        self._tokenizer, self._kind = tokenizer, kind
        self._mask: str = tokenizer.mask_token if kind == "masked" else ""

    def plan(self, blanks: Sequence[Blank], most: int) -> list[list[int]]:
        """Batches of whole blanks, by their places, of about ``most`` questions each.

        Texts that begin alike stand together, so that a causal model can answer for one while reading another.
        """
        texts = ["".join(blank.halves(self._mask)) for blank in blanks]
        ids = self._tokenizer(texts)["input_ids"] if texts else []
        sizes: dict[tuple[str, ...], int] = {}  # pieces hardly differ between sentences, and are costly to count
        batches: list[list[int]] = []
        room = 0
        for place in sorted(range(len(blanks)), key=lambda i: ids[i]):
            words = blanks[place].words
            size = sizes[words] if words in sizes else sizes.setdefault(words, sum(self.of(blanks[place]).lengths))
            if size > room or not batches:
                batches.append([])
                room = most
            batches[-1].append(place)
            room -= size
        return batches

    def of(self, blank: Blank) -> InTokens:
        """The questions of a blank, those about one word behind those about the other."""
        if self._kind == "causal" and Slot.MASKED in blank.segments:
            raise UsageError("a causal model has no mask, so that no group can be masked")
        before, after = blank.halves(self._mask)
        texts = [before + after, *(before + word + after for word in blank.words)]
        encoded = self._tokenizer(texts, return_offsets_mapping=True)
        (whole, *with_word), (_, *offsets) = encoded["input_ids"], encoded["offset_mapping"]
        spans = [_span(o, len(before), len(w)) for o, w in zip(offsets, blank.words, strict=True)]
        known = [self._known(ids, span) for ids, span in zip(with_word, spans, strict=True)]
        if self._kind == "causal":
            starts = [ids[:start] for ids, (start, _) in zip(with_word, spans, strict=True)]
            asked = [_behind(start, pieces) for start, pieces in zip(starts, known, strict=True)]
        else:
            masked = {n: self._masked(blank, n) for n in {len(pieces) for pieces in known} - {0}}
            asked = [_among(masked[len(pieces)], pieces) if pieces else [] for pieces in known]
        return InTokens(
            tuple(len(pieces) for pieces in known),
            tuple(question for questions in asked for question in questions),
            whole.count(self._tokenizer.unk_token_id),
        )

    def _known(self, ids: list[int], span: tuple[int, int]) -> list[int]:
        """The pieces of a word; none, if one is unknown."""
        pieces = ids[slice(*span)]
        return [] if self._tokenizer.unk_token_id in pieces else pieces

    def _masked(self, blank: Blank, n: int) -> tuple[list[int], list[int]]:
        """Tokens of a text with n masks in its blank, and the places of these."""
        before, after = blank.halves(self._mask)
        ids: list[int] = self._tokenizer(before + " ".join([self._mask] * n) + after)["input_ids"]
        places = [place for place, token in enumerate(ids) if token == self._tokenizer.mask_token_id]
        if Slot.MASKED not in blank.segments:
            return ids, places
        group_first = blank.segments.index(Slot.MASKED) < blank.segments.index(Slot.BLANK)
        return ids, places[1:] if group_first else places[:-1]


def _span(offsets: Sequence[tuple[int, int]], start: int, length: int) -> tuple[int, int]:
    """Which tokens stand for a word, by the characters that each stands for."""
    inside = [place for place, (a, b) in enumerate(offsets) if a < b and a < start + length and b > start]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


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
