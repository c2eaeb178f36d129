"""Requests to models: blanks, prompts and likelihoods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from biassay.errors import UsageError


class Slot(Enum):
    """Slot in a text: the blank to fill, or a masked group."""

    BLANK = "blank"
    MASKED = "masked"


Segments = tuple[str | Slot, ...]


@dataclass(frozen=True, slots=True)
class Blank:
    """Request for the probabilities of words in a blank.

    Without words, the request only finds the out-of-vocabulary parts of the text.
    """

    segments: Segments
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.segments.count(Slot.BLANK) != 1 or self.segments.count(Slot.MASKED) > 1:
            raise UsageError(f"expected one blank and at most one masked group, got {self.segments!r}")
        if len(set(self.words)) < len(self.words) or "" in self.words:
            raise UsageError(f"the words for a blank must be different and not empty, got {self.words!r}")

    @property
    def key(self) -> str:
        """Unique text for the segments and words."""
        parts = [[part.value] if isinstance(part, Slot) else part for part in self.segments]
        return json.dumps(["blank", parts, self.words])

    def halves(self, mask: str) -> tuple[str, str]:
        """Return the text before and after the blank, with `mask` in place of a masked group."""
        index = self.segments.index(Slot.BLANK)
        return _join_segments(self.segments[:index], mask), _join_segments(self.segments[index + 1 :], mask)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Request for one response of a model; n responses to the same text are n requests.

    Attributes
    ----------
    text : str
        User message.
    system : str or None
        System message. If None, that of the model's settings, if any.
    options : tuple of str
        Texts whose probabilities after the prompt are requested, including leading spaces. Without options, the model
        generates a response.
    sample : int
        Number of the response.
    temperature : float or None
        Sampling temperature. If None, that of the model's settings.
    """

    text: str
    system: str | None = None
    options: tuple[str, ...] = ()
    sample: int = 0
    temperature: float | None = None

    def __post_init__(self) -> None:
        if not self.text:
            raise UsageError("a prompt needs a text")
        if len(set(self.options)) < len(self.options) or "" in self.options:
            raise UsageError(f"the options of a prompt must be different and not empty, got {self.options!r}")
        if self.sample < 0:
            raise UsageError(f"samples are numbered from 0, got {self.sample}")

    @property
    def key(self) -> str:
        """Unique text for the prompt and the sample."""
        varied = [] if self.temperature is None else [self.temperature]
        return json.dumps(["prompt", self.text, self.system, self.options, self.sample, *varied])


@dataclass(frozen=True, slots=True)
class LikelihoodRequest:
    """Request for the log-likelihood of every token of a text.

    Attributes
    ----------
    text : str
        Text to score.
    filled : tuple of (int, int)
        Spans of characters that fill blanks, for masked models. Only their tokens are scored, each without seeing the
        later tokens of its span.
    start_before : {"all", "first"}
        Tokens that a causal model reads after its start token if its tokenizer does not add one: all tokens, or only
        the first one.
    """

    text: str
    filled: tuple[tuple[int, int], ...] = ()
    start_before: Literal["all", "first"] = "all"

    def __post_init__(self) -> None:
        if not self.text:
            raise UsageError("the likelihood of an empty text is not defined")

    @property
    def key(self) -> str:
        """Unique text for the text and its spans."""
        return json.dumps(["token likelihoods", self.text, self.filled, self.start_before])


def _join_segments(segments: Sequence[str | Slot], mask: str) -> str:
    return "".join(mask if isinstance(part, Slot) else part for part in segments)
