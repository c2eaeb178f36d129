"""What a model can be asked: plain text, never tokens, so that what was answered is used again without a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from biassay.errors import UsageError

__all__ = ["Blank", "Segments", "Slot"]


class Slot(Enum):
    """A place in a text: the blank that a word is wanted for, or a group that is masked."""

    BLANK = "blank"
    MASKED = "masked"


Segments = tuple[str | Slot, ...]


@dataclass(frozen=True)
class Blank:
    """A text with a blank, and all words that are wanted there: one request, whatever the number of words.

    Without words, only what of the text the model does not know is asked.
    """

    segments: Segments
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.segments.count(Slot.BLANK) != 1 or self.segments.count(Slot.MASKED) > 1:
            raise UsageError(f"a text needs one blank and has at most one masked group, got {self.segments!r}")
        if len(set(self.words)) < len(self.words) or "" in self.words:
            raise UsageError(f"the words for a blank differ from each other, and none is empty, got {self.words!r}")

    @cached_property
    def key(self) -> str:
        """Equal for the same text and words, and for nothing else."""
        parts = [[part.value] if isinstance(part, Slot) else part for part in self.segments]
        return json.dumps(["blank", parts, self.words])

    def halves(self, mask: str) -> tuple[str, str]:
        """The text before and after the blank, with ``mask`` in the place of a masked group."""
        place = self.segments.index(Slot.BLANK)
        return _joined(self.segments[:place], mask), _joined(self.segments[place + 1 :], mask)


def _joined(segments: Sequence[str | Slot], mask: str) -> str:
    return "".join(mask if isinstance(part, Slot) else part for part in segments)
