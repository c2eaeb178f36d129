"""``completions:MODEL?base_url=...``: any OpenAI-compatible endpoint that goes on with plain text."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from biassay.errors import UsageError
from biassay.models.answering import Reply, TokenLikelihoods
from biassay.models.api_answering import (
    answering_settings,
    choice_of,
    ended_by,
    used_by,
)
from biassay.models.api_asking import Pace, Sending
from biassay.models.api_connection import MalformedError
from biassay.models.api_settings import consent
from biassay.models.api_streaming import Answered, EndpointModel
from biassay.models.base import COLUMNS, Filled
from biassay.models.completions_likelihood import GivenText, Scored
from biassay.models.family import Family, ModelName
from biassay.models.sampling import Sampling, check_not_sampled
from biassay.models.spending import rough_tokens
from biassay.texts.requests import Blank, Likelihood, Prompt, Slot

__all__ = ["FAMILY", "Completions", "CompletionsBlanks", "CompletionsLikelihoods"]

_PATH = "/completions"
_BYTES_AROUND, _BYTES_A_TOKEN = 64 * 1024, 64


class Completions(EndpointModel[Prompt, Reply]):
    """Answers prompts in plain text: a system message is put before them, a line apart.

    An option is a continuation of the prompt; its likelihood is that of all tokens with a character of it.
    """

    option_log_p = "continuation"

    def __init__(self, model: ModelName, pace: Pace | None = None) -> None:
        self._sampling = Sampling.of(model)
        super().__init__(model, _PATH, self._sampling.settings, pace)
        self._given = GivenText(self._asking, self._name, self._who)

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        return self._all(prompts)

    def _unanswered(self, request: Prompt, ended: Literal["filter", "failed"]) -> Reply:
        return Reply("", ended, log_p=(math.nan,) * len(request.options))

    def _text(self, prompt: Prompt) -> str:
        system = self._sampling.system if prompt.system is None else prompt.system
        return f"{system}\n\n{prompt.text}" if system else prompt.text

    def _tokens(self, request: Prompt) -> tuple[int, int]:
        text = self._text(request)
        if not request.options:
            return rough_tokens(text), self._sampling.max_tokens
        return sum(rough_tokens(text + option) for option in request.options), len(request.options)

    def _ask(self, request: Prompt, sending: Sending) -> Answered:
        return self._scored(request, sending) if request.options else self._written(request, sending)

    def _written(self, prompt: Prompt, sending: Sending) -> Answered:
        asked: dict[str, Any] = {
            "model": self._name,
            "prompt": self._text(prompt),
            "temperature": self._sampling.temperature,
            "max_tokens": self._sampling.max_tokens,
        }
        seed = self._sampling.seed_of(prompt.key)
        asked |= {} if seed is None else {"seed": seed}
        most = _BYTES_AROUND + _BYTES_A_TOKEN * self._sampling.max_tokens
        return self._asking.post(asked, most, _read, sending, "a prompt")

    def _scored(self, prompt: Prompt, sending: Sending) -> Answered:
        text = self._text(prompt)
        scores = self._given.ask([text + option for option in prompt.options], sending)
        ends = [len(text) + len(option) for option in prompt.options]
        log_p = tuple(one.tokens.within(len(text), end) for one, end in zip(scores.texts, ends, strict=True))
        read, written = scores.tokens_in, scores.tokens_out
        return Answered(Reply("", None, read, written, log_p), read, written)


def _read(body: bytes) -> Answered:
    choice, usage = choice_of(body)
    text = choice.get("text")
    if not isinstance(text, str):
        raise MalformedError("a choice without a text")
    read, written = used_by(usage)
    return Answered(Reply(text, ended_by(choice.get("finish_reason")), read, written), read, written)


class CompletionsLikelihoods(EndpointModel[Likelihood, TokenLikelihoods]):
    """Likelihoods of texts, as a causal model gives them. The first token has none: nothing stands before it."""

    kind: Literal["causal"] = "causal"

    def __init__(self, model: ModelName, pace: Pace | None = None) -> None:
        check_not_sampled(model, "likelihoods")
        super().__init__(model, _PATH, {}, pace)
        self._given = GivenText(self._asking, self._name, self._who)

    def likelihoods(self, texts: Sequence[Likelihood]) -> list[TokenLikelihoods]:
        return self._all(texts)

    def _tokens(self, request: Likelihood) -> tuple[int, int]:
        return rough_tokens(request.text), 1

    def _ask(self, request: Likelihood, sending: Sending) -> Answered:
        found = self._given.ask([request.text], sending)
        return Answered(found.texts[0].tokens, found.tokens_in, found.tokens_out)


class CompletionsBlanks(EndpointModel[Blank, Filled]):
    """Fills blanks as a causal model does, all words in one request where the server takes that.

    Masses and distances are not known.
    """

    kind: Literal["causal"] = "causal"
    has_mask = False
    has_output_layer = False

    def __init__(self, model: ModelName, pace: Pace | None = None) -> None:
        check_not_sampled(model, "blanks")
        super().__init__(model, _PATH, {"head": "causal"}, pace)
        self._given = GivenText(self._asking, self._name, self._who)

    def fill(self, blanks: Sequence[Blank]) -> list[Filled]:
        return self._all(blanks)

    def _tokens(self, request: Blank) -> tuple[int, int]:
        before, after = request.halves("")
        return sum(rough_tokens(before + word + after) for word in request.words), len(request.words)

    def _ask(self, request: Blank, sending: Sending) -> Answered:
        if Slot.MASKED in request.segments:
            raise UsageError("a causal model has no mask, so that no group can be masked")
        before, after = request.halves("")
        if not before and request.words:
            raise UsageError("a causal model reads from the left: a blank needs text before it")
        scores = self._given.ask([before + word + after for word in request.words], sending)
        ends = [len(before) + len(word) for word in request.words]
        pieces = [_pieces(one, len(before), end) for one, end in zip(scores.texts, ends, strict=True)]
        columns = np.full((sum(map(len, pieces)), len(COLUMNS)), np.nan, dtype=np.float32)
        columns[:, COLUMNS.index("log_p")] = [log_p for own in pieces for _, log_p in own]
        filled = Filled(
            lengths=np.array([len(own) for own in pieces], dtype=np.int32),
            pieces=np.array([number for own in pieces for number, _ in own], dtype=np.int32),
            columns=columns,
            unknown=0,
            passes=len(scores.texts),
        )
        return Answered(filled, scores.tokens_in, scores.tokens_out)


def _pieces(scored: Scored, start: int, end: int) -> list[tuple[int, float]]:
    """The tokens of a word, each with a number made from its characters, for an endpoint does not tell its own."""
    spans = scored.tokens.spans.tolist()
    inside = [place for place, (a, b) in enumerate(spans) if a < end and b > start]
    numbers = [zlib.crc32(scored.names[place].encode("utf-8", "surrogatepass")) >> 1 for place in inside]
    return list(zip(numbers, scored.tokens.log_p[inside].tolist(), strict=True))


@contextmanager
def _selftest(_: Path) -> Iterator[str]:
    from biassay.models.tiny import answering_endpoint, environment

    key = "BIASSAY_SELFTEST_KEY"  # the user's own key is for other servers
    with environment({key: "none"}), answering_endpoint() as address:
        yield f"completions:tiny?base_url={address}&key_env={key}&retries=0"


_SETTINGS: Mapping[str, str] = answering_settings(_PATH)

FAMILY = Family(
    name="completions",
    form="completions:MODEL",
    about="any OpenAI-compatible endpoint that goes on with plain text: vLLM, llama.cpp, ...",
    settings=_SETTINGS,
    extra="api",
    needs=("httpx",),
    blanks=partial(CompletionsBlanks, pace=None),
    replies=partial(Completions, pace=None),
    likelihoods=partial(CompletionsLikelihoods, pace=None),
    splits=False,  # concurrency= says how many requests are on their way at once
    consent=consent,
    selftest=_selftest,
)
