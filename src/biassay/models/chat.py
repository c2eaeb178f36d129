"""``chat:MODEL?base_url=...``: any OpenAI-compatible chat endpoint, also of vLLM, llama.cpp or Ollama."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from biassay.errors import ModelError
from biassay.models.answering import Reply
from biassay.models.api_answering import (
    answering_settings,
    choice_of,
    ended_by,
    log_probability,
    used_by,
)
from biassay.models.api_asking import Pace, RejectedError, Sending
from biassay.models.api_connection import MalformedError
from biassay.models.api_settings import consent
from biassay.models.api_streaming import Answered, EndpointModel
from biassay.models.family import Family, ModelName
from biassay.models.sampling import Sampling
from biassay.models.spending import rough_tokens
from biassay.texts.requests import Prompt

__all__ = ["FAMILY", "ChatModel", "provide"]

_PATH = "/chat/completions"
_BYTES_AROUND, _BYTES_A_TOKEN = (
    256 * 1024,
    1024,
)  # with the log-probabilities of the likeliest tokens at the first place
_LIKELIEST = 20  # tokens whose log-probabilities an endpoint gives at most
_TOKENS_A_MESSAGE = 4


def provide(model: ModelName, pace: Pace | None = None) -> ChatModel:
    return ChatModel(model, pace)


class ChatModel(EndpointModel[Prompt, Reply]):
    """Asks a chat endpoint for one answer at a time, many prompts at once.

    The likelihood of an option is that of the first token of the answer, where this is the option: an endpoint tells
    it of the likeliest tokens only.
    """

    option_log_p = "first token"

    def __init__(self, model: ModelName, pace: Pace | None = None) -> None:
        self._sampling, self._effort = Sampling.of(model), model.settings.get("reasoning_effort")
        effort = {} if self._effort is None else {"reasoning_effort": self._effort}
        super().__init__(model, _PATH, self._sampling.settings | effort, pace)
        self._limit_name = "max_tokens"  # some endpoints want max_completion_tokens, and say so

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        return self._all(prompts)

    def _unanswered(self, request: Prompt, ended: Literal["filter", "failed"]) -> Reply:
        return Reply("", ended, log_p=(math.nan,) * len(request.options))

    def _tokens(self, request: Prompt) -> tuple[int, int]:
        read = sum(rough_tokens(message["content"]) + _TOKENS_A_MESSAGE for message in self._messages(request))
        return read, 1 if request.options else self._sampling.max_tokens

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        system = self._sampling.system if prompt.system is None else prompt.system
        before = [{"role": "system", "content": system}] if system else []
        return [*before, {"role": "user", "content": prompt.text}]

    def _ask(self, request: Prompt, sending: Sending) -> Answered:
        limit_name = self._limit_name
        try:
            return self._sent(request, sending, limit_name)
        except RejectedError as error:
            if limit_name == "max_tokens" and "max_completion_tokens" in error.said:
                self._limit_name = "max_completion_tokens"
            elif request.options and "logprobs" in error.said:
                raise self._no_log_p(f"it says: {error.said}") from None
            else:
                raise
        return self._sent(request, sending, self._limit_name)

    def _sent(self, prompt: Prompt, sending: Sending, limit_name: str) -> Answered:
        asked: dict[str, Any] = {
            "model": self._name,
            "messages": self._messages(prompt),
            "temperature": self._sampling.temperature,
            limit_name: 1 if prompt.options else self._sampling.max_tokens,
        }
        seed = self._sampling.seed_of(prompt.key)
        asked |= {} if seed is None else {"seed": seed}
        asked |= {} if self._effort is None else {"reasoning_effort": self._effort}
        asked |= {"logprobs": True, "top_logprobs": _LIKELIEST} if prompt.options else {}
        most = _BYTES_AROUND + _BYTES_A_TOKEN * self._sampling.max_tokens
        return self._asking.post(asked, most, partial(self._read, prompt), sending, "a prompt")

    def _read(self, prompt: Prompt, body: bytes) -> Answered:
        choice, usage = choice_of(body)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise MalformedError("a choice without a message")
        refusal = message.get("refusal")
        refused = isinstance(refusal, str) and bool(refusal)
        text = refusal if refused else _text(message.get("content"))
        ended = "refusal" if refused else ended_by(choice.get("finish_reason"))
        read, written = used_by(usage)
        log_p = self._log_p(prompt.options, choice.get("logprobs")) if prompt.options else ()
        return Answered(Reply(str(text), ended, read, written, log_p), read, written)

    def _log_p(self, options: Sequence[str], given: object) -> tuple[float, ...]:
        """Of each option, the probability of all tokens at the first place that are it, but for spaces around it."""
        places = given.get("content") if isinstance(given, dict) else None
        first = places[0] if isinstance(places, list) and places else None
        likeliest = first.get("top_logprobs") if isinstance(first, dict) else None
        if not isinstance(likeliest, list) or not likeliest:
            raise self._no_log_p("it answers without them")
        found: dict[str, float] = {}
        for one in likeliest:
            token = one.get("token") if isinstance(one, dict) else None
            if not isinstance(token, str):
                raise MalformedError("log-probabilities without their tokens")
            word = token.strip()
            log_p = log_probability(self._who, one.get("logprob"))
            found[word] = _log_sum(found[word], log_p) if word in found else log_p
        return tuple(found.get(option.strip(), math.nan) for option in options)

    def _no_log_p(self, why: str) -> ModelError:
        return ModelError(
            f"{self._who}: its server gives no log-probabilities of options ({why}); ask for answers in words instead"
        )


def _log_sum(a: float, b: float) -> float:
    return min(max(a, b) + math.log1p(math.exp(-abs(a - b))), 0.0)


def _text(content: object) -> str:
    """The text of a message: a string, parts, or nothing, as where all tokens went into thinking."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise MalformedError("a message whose content is not a text")
    return "".join(map(str, texts))


@contextmanager
def _selftest(_: Path) -> Iterator[str]:
    from biassay.models.tiny import answering_endpoint, environment

    key = "BIASSAY_SELFTEST_KEY"  # the user's own key is for other servers
    with environment({key: "none"}), answering_endpoint() as address:
        yield f"chat:tiny?base_url={address}&key_env={key}&retries=0"


FAMILY = Family(
    name="chat",
    form="chat:MODEL",
    about="any OpenAI-compatible chat endpoint: OpenAI, vLLM, llama.cpp, Ollama, ...",
    settings=answering_settings(_PATH)
    | {"reasoning_effort": "how much a model thinks before it answers, where it takes that: low, medium, high"},
    extra="api",
    needs=("httpx",),
    replies=provide,
    splits=False,  # concurrency= says how many requests are on their way at once
    consent=consent,
    selftest=_selftest,
)
