"""Log-probabilities of the tokens of a given text, by whichever way a server has for it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from biassay.errors import MeasurementError, ModelError
from biassay.models.answering import TokenLikelihoods
from biassay.models.api_answering import choices_of, log_probability, used_by
from biassay.models.api_asking import Asking, RejectedError, Sending
from biassay.models.api_connection import MalformedError

__all__ = ["GivenText", "Scored", "Scores"]

_BYTES_AROUND, _BYTES_A_CHARACTER = 64 * 1024, 512


@dataclass(frozen=True, eq=False)
class Scored:
    """The tokens of a text: how likely each is, and what it is called."""

    tokens: TokenLikelihoods
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Scores:
    """Some texts, and how many tokens were read and written for all of them."""

    texts: list[Scored]
    tokens_in: int | None
    tokens_out: int | None

    def __add__(self, other: Scores) -> Scores:
        read, written = _sum(self.tokens_in, other.tokens_in), _sum(self.tokens_out, other.tokens_out)
        return Scores(self.texts + other.texts, read, written)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


class _AbsentError(Exception):
    """An answer lacks the log-probabilities that were asked for."""


class _FewerError(Exception):
    """A server answered about fewer texts than it was given at once."""


Named = list[tuple[str, float]]
Way = tuple[dict[str, Any], Callable[[str, dict[str, Any]], tuple[Named, Any]]]


class GivenText:
    """Asks a server for given texts, several in one request where it takes that.

    The first way that it has is found out, and is the way from then on. The server may not take 0 tokens to write, so
    that it is asked for one, which is not looked at.
    """

    def __init__(self, asking: Asking, model: str, who: str) -> None:
        self._asking, self._model, self._who = asking, model, who
        self._ways: dict[str, Way] = {
            "echo with logprobs": ({"echo": True, "logprobs": 1}, _echoed),
            "prompt_logprobs": ({"prompt_logprobs": 0}, _of_prompt),
        }
        self._way: str | None = None
        self._takes_lists: bool | None = None  # not known yet
        self._finding = threading.Lock()

    def ask(self, texts: Sequence[str], sending: Sending) -> Scores:
        if not texts:
            return Scores([], 0, 0)
        way = self._way
        if way is None:
            with self._finding:
                way = self._way
                if way is None:
                    self._way, first = self._first(texts[0], sending)
                    return first + self._asked(self._way, texts[1:], sending) if texts[1:] else first
        return self._asked(way, texts, sending)

    def _asked(self, way: str, texts: Sequence[str], sending: Sending) -> Scores:
        try:
            if len(texts) > 1 and self._takes_lists is not False:
                found = self._together(way, texts, sending)
                if found is not None:
                    return found
            return sum((self._by(way, [text], sending) for text in texts), start=Scores([], 0, 0))
        except _AbsentError:
            raise self._none([f"to {way} it suddenly answers without them"]) from None

    def _together(self, way: str, texts: Sequence[str], sending: Sending) -> Scores | None:
        """Several texts in one request. None: the server does not take that, however it says so."""
        try:
            found = self._by(way, texts, sending)
        except (MeasurementError, _FewerError):
            if self._takes_lists:
                raise
            self._takes_lists = False
            return None
        self._takes_lists = True
        return found

    def _first(self, text: str, sending: Sending) -> tuple[str, Scores]:
        lacking = []
        for way in self._ways:
            try:
                return way, self._by(way, [text], sending)
            except RejectedError as error:
                if error.status == 404:  # the model or the address, and not the way
                    raise
                lacking.append(f"to {way} it says {error.said or error.status!r}")
            except _AbsentError:
                lacking.append(f"to {way} it answers without them")
        raise self._none(lacking)

    def _none(self, lacking: Sequence[str]) -> ModelError:
        return ModelError(f"{self._who}: its server gives no log-probabilities of given texts: {'; '.join(lacking)}")

    def _by(self, way: str, texts: Sequence[str], sending: Sending) -> Scores:
        more, tokens_in = self._ways[way]
        prompt = texts[0] if len(texts) == 1 else list(texts)
        asked = {"model": self._model, "prompt": prompt, "temperature": 1.0, "max_tokens": 1, **more}
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        most = _BYTES_AROUND * len(texts) + _BYTES_A_CHARACTER * size
        return self._asking.post(asked, most, partial(self._read, tokens_in, texts), sending, f"{len(texts)} texts")

    def _read(
        self, tokens_in: Callable[[str, dict[str, Any]], tuple[Named, Any]], texts: Sequence[str], body: bytes
    ) -> Scores:
        choices, usage = choices_of(body)
        if len(choices) != len(texts):
            if len(texts) > 1 and not self._takes_lists:
                raise _FewerError
            raise MalformedError(f"{len(choices)} choices, where {len(texts)} were asked for")
        scored = [self._scored(text, *tokens_in(self._who, one)) for text, one in zip(texts, choices, strict=True)]
        return Scores(scored, *used_by(usage))

    @staticmethod
    def _scored(text: str, named: Named, offsets: Any) -> Scored:
        places = _spans(text, [name for name, _ in named], offsets)
        spans = np.array([span for _, span in places], dtype=np.int32).reshape(-1, 2)
        log_p = np.array([named[place][1] for place, _ in places], dtype=np.float64)
        names = tuple(named[place][0] for place, _ in places)
        return Scored(
            TokenLikelihoods(log_p, spans, np.array([_number(name) for name in names], dtype=np.int64)), names
        )


def _number(name: str) -> int:
    """Return a number for the name of a token: the same for the same name."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _echoed(who: str, choice: dict[str, Any]) -> tuple[Named, Any]:
    """Tokens as OpenAI's protocol gives them, those of the prompt first."""
    given = choice.get("logprobs")
    tokens, numbers = (given.get(name) if isinstance(given, dict) else None for name in ("tokens", "token_logprobs"))
    if not isinstance(tokens, list) or not isinstance(numbers, list) or not tokens:
        raise _AbsentError
    if len(tokens) != len(numbers) or not all(isinstance(token, str) for token in tokens):
        raise MalformedError("tokens and log-probabilities that do not belong together")
    pairs = zip(tokens, numbers, strict=True)
    named = [(token, np.nan if n is None else log_probability(who, n)) for token, n in pairs]
    return named, given.get("text_offset") if isinstance(given, dict) else None


def _of_prompt(who: str, choice: dict[str, Any]) -> tuple[Named, Any]:
    """Tokens as vLLM gives them: of every token of the prompt a mapping from its number, of the first one none."""
    given = choice.get("prompt_logprobs")
    if not isinstance(given, list) or not given:
        raise _AbsentError
    named: Named = []
    for one in given[1:]:
        known = next(iter(one.values()), None) if isinstance(one, dict) else None
        if not isinstance(known, dict) or not isinstance(known.get("decoded_token"), str):
            raise MalformedError("prompt_logprobs without decoded tokens")
        named.append((known["decoded_token"], log_probability(who, known.get("logprob"))))
    return [("", np.nan), *named], None


def _spans(text: str, names: Sequence[str], offsets: Any) -> list[tuple[int, tuple[int, int]]]:
    """The tokens of a text, by their place among all, and the characters that each stands for.

    What is before the text, such as a mark of its beginning, and behind it is left out.
    """
    rest = "".join(names[1:])
    if names and not names[0] and text.endswith(rest) and rest != text:  # the first, of which nothing is told
        names = [text[: len(text) - len(rest)], *names[1:]]
    for first in range(min(2, len(names))):
        at, found = 0, []
        for place in range(first, len(names)):
            if at >= len(text) or not text.startswith(names[place], at):
                break
            if names[place]:
                found.append((place, (at, at + len(names[place]))))
            at += len(names[place])
        if at == len(text):
            return found
    return _by_offsets(text, names, offsets)


def _by_offsets(text: str, names: Sequence[str], offsets: Any) -> list[tuple[int, tuple[int, int]]]:
    """The same by what a server says of where tokens begin: some are parts of a character."""
    whole = isinstance(offsets, list) and len(offsets) == len(names) and all(type(n) is int for n in offsets)
    if not whole or offsets[0] != 0 or sorted(offsets) != offsets or (len(offsets) > 1 and offsets[-1] > len(text)):
        raise MalformedError("tokens that are not those of the text")
    ends = [*offsets[1:], len(text)]
    pairs = enumerate(zip(offsets, ends, strict=True))
    return [(place, (start, min(max(end, start + 1), len(text)))) for place, (start, end) in pairs if start < len(text)]
