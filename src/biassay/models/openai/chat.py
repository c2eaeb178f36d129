"""Query a chat endpoint (`chat:MODEL`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from biassay.errors import ModelError
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Reply
from biassay.models.openai.base import (
    EndpointReplyModel,
    EndpointResponse,
    make_generation_settings,
    parse_choices,
    parse_finish_reason,
    parse_log_probability,
    parse_usage,
)
from biassay.models.openai.client import MalformedResponseError, PendingRequest, RejectedError, RetryPolicy
from biassay.models.openai.endpoint import get_endpoint_consents, make_selftest
from biassay.models.token_budget import estimate_token_count
from biassay.prompts.requests import Prompt

_PATH = "/chat/completions"
_BYTES_OVERHEAD, _BYTES_PER_TOKEN = 256 * 1024, 1024  # includes the log-probabilities of the first token
_MAX_TOP_LOGPROBS = 20  # limit of the protocol
_TOKENS_PER_MESSAGE = 4


class ChatModel(EndpointReplyModel):
    """Reply to prompts through a chat endpoint, one request per prompt.

    The likelihood of an option is that of the response's first token, if it equals the option: endpoints report only
    the most likely tokens.
    """

    option_log_p = "first token"

    def __init__(self, model: ModelName, retry_policy: RetryPolicy | None = None) -> None:
        effort = model.settings.get("reasoning_effort")
        self._effort = {} if effort is None else {"reasoning_effort": effort}
        super().__init__(model, _PATH, self._effort, retry_policy)
        self._limit_name = "max_tokens"  # some endpoints require max_completion_tokens and say so

    def _tokens(self, request: Prompt) -> tuple[int, int]:
        read = sum(
            estimate_token_count(message["content"]) + _TOKENS_PER_MESSAGE for message in self._messages(request)
        )
        return read, 1 if request.options else self._sampling.max_tokens

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        system = self._get_system_message(prompt)
        messages = [{"role": "system", "content": system}] if system else []
        return [*messages, {"role": "user", "content": prompt.text}]

    def _fetch(self, request: Prompt, pending_request: PendingRequest) -> EndpointResponse:
        limit_name = self._limit_name
        try:
            return self._post(request, pending_request, limit_name)
        except RejectedError as error:
            if limit_name == "max_tokens" and "max_completion_tokens" in error.server_message:
                self._limit_name = "max_completion_tokens"
            elif request.options and "logprobs" in error.server_message:
                raise self._make_logprob_error(f"its message: {error.server_message}") from None
            else:
                raise
        return self._post(request, pending_request, self._limit_name)

    def _post(self, prompt: Prompt, pending_request: PendingRequest, limit_name: str) -> EndpointResponse:
        payload: dict[str, Any] = {
            "messages": self._messages(prompt),
            limit_name: 1 if prompt.options else self._sampling.max_tokens,
            **self._make_payload(prompt),
            **self._effort,
        }
        if prompt.options:
            payload |= {"logprobs": True, "top_logprobs": _MAX_TOP_LOGPROBS}
        max_bytes = _BYTES_OVERHEAD + _BYTES_PER_TOKEN * self._sampling.max_tokens
        return self._client.post(payload, max_bytes, partial(self._parse, prompt), pending_request, "a prompt")

    def _parse(self, prompt: Prompt, body: bytes) -> EndpointResponse:
        (choice, *_), usage = parse_choices(body)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise MalformedResponseError("a choice without a message")
        refusal = message.get("refusal")
        refused = isinstance(refusal, str) and bool(refusal)
        text = refusal if refused else _extract_text(message.get("content"))
        finish_reason = "refusal" if refused else parse_finish_reason(choice.get("finish_reason"))
        read, written = parse_usage(usage)
        log_p = self._parse_options(prompt.options, choice.get("logprobs")) if prompt.options else ()
        return EndpointResponse(Reply(str(text), finish_reason, read, written, log_p), read, written)

    def _parse_options(self, options: Sequence[str], logprobs: object) -> tuple[float, ...]:
        """Return the log-probability of each option: that of all first tokens that equal it except for spaces."""
        positions = logprobs.get("content") if isinstance(logprobs, dict) else None
        first = positions[0] if isinstance(positions, list) and positions else None
        candidates = first.get("top_logprobs") if isinstance(first, dict) else None
        if not isinstance(candidates, list) or not candidates:
            raise self._make_logprob_error("the response has none")
        words: dict[str, float] = {}
        for candidate in candidates:
            token = candidate.get("token") if isinstance(candidate, dict) else None
            if not isinstance(token, str):
                raise MalformedResponseError("log-probabilities without their tokens")
            word = token.strip()
            log_p = parse_log_probability(self._label, candidate.get("logprob"))
            words[word] = _add_log_probabilities(words[word], log_p) if word in words else log_p
        return tuple(words.get(option.strip(), math.nan) for option in options)

    def _make_logprob_error(self, reason: str) -> ModelError:
        return ModelError(
            f"{self._label}: the server returns no log-probabilities of options ({reason}); use generated responses "
            "instead, in audits with --answer yes-no"
        )


def _add_log_probabilities(a: float, b: float) -> float:
    return min(max(a, b) + math.log1p(math.exp(-abs(a - b))), 0.0)


def _extract_text(content: object) -> str:
    """Return the text of a message: a string, a list of parts, or None if all tokens went into reasoning."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise MalformedResponseError("a message whose content is not a text")
    return "".join(map(str, texts))


BACKEND = ModelBackend(
    name="chat",
    syntax="chat:MODEL",
    description="OpenAI-compatible chat",
    settings=make_generation_settings(_PATH)
    | {"reasoning_effort": "low, medium or high, for models that reason before they reply"},
    extra="api",
    needs=("httpx",),
    replies=ChatModel,
    splittable=False,  # requests are already concurrent
    required_consents=get_endpoint_consents,
    selftest=make_selftest("chat"),
)
