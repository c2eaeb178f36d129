"""What a model can be asked: plain text, never tokens, so that what was answered is used again without a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from biassay.errors import UsageError

__all__ = ["Blank", "Likelihood", "Prompt", "Segments", "Slot"]


class Slot(Enum):
    """A place in a text: the blank that a word is wanted for, or a group that is masked."""

    BLANK = "blank"
    MASKED = "masked"


Segments = tuple[str | Slot, ...]


@dataclass(frozen=True, slots=True)
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

    @property
    def key(self) -> str:
        """Equal for the same text and words, and for nothing else."""
        parts = [[part.value] if isinstance(part, Slot) else part for part in self.segments]
        return json.dumps(["blank", parts, self.words])

    def halves(self, mask: str) -> tuple[str, str]:
        """The text before and after the blank, with ``mask`` in the place of a masked group."""
        place = self.segments.index(Slot.BLANK)
        return _joined(self.segments[:place], mask), _joined(self.segments[place + 1 :], mask)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked to answer, once: n answers to the same words are n requests.

    Attributes
    ----------
    text : str
        The user's message.
    system : str or None
        The system message. None: that of the model's settings, if it has one.
    options : tuple of str
        Answers to choose from: each is asked for how likely it is, behind the prompt. Exactly these characters count,
        a space in front of them too. Without options, an answer in words is asked for.
    sample : int
        The number of the answer.
    """

    text: str
    system: str | None = None
    options: tuple[str, ...] = ()
    sample: int = 0

    def __post_init__(self) -> None:
        if not self.text:
            raise UsageError("a prompt needs a text")
        if len(set(self.options)) < len(self.options) or "" in self.options:
            raise UsageError(f"the options of a prompt differ from each other, and none is empty, got {self.options!r}")
        if self.sample < 0:
            raise UsageError(f"answers are numbered from 0, got {self.sample}")

    @property
    def key(self) -> str:
        """Equal for the same prompt and number of the answer, and for nothing else."""
        return json.dumps(["prompt", self.text, self.system, self.options, self.sample])


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A text, of which the log-likelihood is wanted, token by token.

    ``filled`` are spans of characters that fill blanks, asked of masked models: then only their tokens are wanted, and
    none is told those behind it in its span, as if they were written one after the other.

    ``start_before`` says which tokens a causal model reads behind its start token, where its tokenizer adds none: all
    of them, or the first one alone, the others being read without it.
    """

    text: str
    filled: tuple[tuple[int, int], ...] = ()
    start_before: Literal["all", "first"] = "all"

    def __post_init__(self) -> None:
        if not self.text:
            raise UsageError("the likelihood of an empty text is not defined")

    @property
    def key(self) -> str:
        """Equal for the same text and spans, and for nothing else."""
        return json.dumps(["token likelihoods", self.text, self.filled, self.start_before])


def _joined(segments: Sequence[str | Slot], mask: str) -> str:
    return "".join(mask if isinstance(part, Slot) else part for part in segments)
