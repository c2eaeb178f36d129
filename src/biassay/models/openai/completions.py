"""Query a completions endpoint (`completions:MODEL`)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from biassay.errors import MeasurementError, ModelError, UsageError
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import BLANK_COLUMNS, SAMPLING_SETTINGS, BlankScores, Reply, TokenLikelihoods, reject_settings
from biassay.models.openai.base import (
    EndpointModel,
    EndpointReplyModel,
    EndpointResponse,
    make_generation_settings,
    parse_choices,
    parse_finish_reason,
    parse_log_probability,
    parse_usage,
)
from biassay.models.openai.client import (
    EndpointClient,
    MalformedResponseError,
    PendingRequest,
    RejectedError,
    RetryPolicy,
)
from biassay.models.openai.endpoint import get_endpoint_consents, make_selftest
from biassay.models.token_budget import estimate_token_count
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt, Slot

_SCORING_BYTES_OVERHEAD, _BYTES_PER_CHARACTER = 64 * 1024, 512


class _MissingLogprobsError(Exception):
    """A response lacks the requested log-probabilities."""


class _MissingTextsError(Exception):
    """A response covers fewer texts than the request."""


TokenLogprobs = list[tuple[str, float]]
ChoiceParser = Callable[[str, dict[str, Any]], tuple[TokenLogprobs, Any]]


class LogprobClient:
    """Score given texts, several per request if the server supports lists.

    There are two forms of request; the first one that works is used from then on. Some servers reject 0 new tokens, so
    one token is generated and ignored.

    Parameters
    ----------
    client : EndpointClient
        Sends the requests.
    model : str
        Name of the model on the server.
    label : str
        Name of the model in error messages.
    """

    _FORMS: ClassVar[dict[str, dict[str, Any]]] = {
        "echo with logprobs": {"echo": True, "logprobs": 1},
        "prompt_logprobs": {"prompt_logprobs": 0},
    }

    def __init__(self, client: EndpointClient, model: str, label: str) -> None:
        self._client, self._model, self._label = client, model, label
        self._form: str | None = None
        self._takes_lists: bool | None = None  # not known yet
        self._lock = threading.Lock()

    def score(self, texts: Sequence[str], pending_request: PendingRequest) -> EndpointResponse:
        """Return a list with the log-probabilities of the tokens of each text."""
        responses: list[EndpointResponse] = []
        with self._lock if self._form is None else nullcontext():
            if self._form is None and texts:
                self._form, first = self._find_form(texts[0], pending_request)
                responses, texts = [first], texts[1:]
        responses += self._score_in_form(texts, pending_request)
        return EndpointResponse(
            [likelihoods for response in responses for likelihoods in response.output],
            _sum_counts([response.tokens_in for response in responses]),
            _sum_counts([response.tokens_out for response in responses]),
        )

    def _score_in_form(self, texts: Sequence[str], pending_request: PendingRequest) -> list[EndpointResponse]:
        form = str(self._form)
        try:
            if len(texts) > 1 and self._takes_lists is not False:
                try:
                    response = self._post(form, texts, pending_request)
                except (MeasurementError, _MissingTextsError):
                    if self._takes_lists:
                        raise
                    self._takes_lists = False
                else:
                    self._takes_lists = True
                    return [response]
            return [self._post(form, [text], pending_request) for text in texts]
        except _MissingLogprobsError:
            raise self._make_unsupported_error([f"{form}: suddenly missing"]) from None

    def _find_form(self, text: str, pending_request: PendingRequest) -> tuple[str, EndpointResponse]:
        problems = []
        for form in self._FORMS:
            try:
                return form, self._post(form, [text], pending_request)
            except RejectedError as error:
                if error.status == 404:  # wrong model or URL
                    raise
                problems.append(f"{form}: {error.server_message or error.status!r}")
            except _MissingLogprobsError:
                problems.append(f"{form}: none in the response")
        raise self._make_unsupported_error(problems)

    def _make_unsupported_error(self, problems: Sequence[str]) -> ModelError:
        return ModelError(
            f"{self._label}: the server returns no log-probabilities of given texts ({'; '.join(problems)})"
        )

    def _post(self, form: str, texts: Sequence[str], pending_request: PendingRequest) -> EndpointResponse:
        prompt = texts[0] if len(texts) == 1 else list(texts)
        payload = {"model": self._model, "prompt": prompt, "temperature": 1.0, "max_tokens": 1, **self._FORMS[form]}
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        max_bytes = _SCORING_BYTES_OVERHEAD * len(texts) + _BYTES_PER_CHARACTER * size
        parse_choice = _parse_prompt_logprobs if form == "prompt_logprobs" else _parse_echo
        parse = partial(self._parse, parse_choice, texts)
        return self._client.post(payload, max_bytes, parse, pending_request, f"{len(texts)} texts")

    def _parse(self, parse_choice: ChoiceParser, texts: Sequence[str], body: bytes) -> EndpointResponse:
        choices, usage = parse_choices(body)
        if len(choices) != len(texts):
            if len(texts) > 1 and not self._takes_lists:
                raise _MissingTextsError
            raise MalformedResponseError(f"{len(choices)} choices for {len(texts)} texts")
        scored = [
            _locate_likelihoods(text, *parse_choice(self._label, choice))
            for text, choice in zip(texts, choices, strict=True)
        ]
        return EndpointResponse(scored, *parse_usage(usage))


def _sum_counts(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(count or 0 for count in counts)


def _locate_likelihoods(text: str, tokens: TokenLogprobs, offsets: Any) -> TokenLikelihoods:
    located = _locate_tokens(text, [name for name, _ in tokens], offsets)
    return TokenLikelihoods(
        np.array([tokens[i][1] for i, _ in located], dtype=np.float64),
        np.array([span for _, span in located], dtype=np.int32).reshape(-1, 2),
        np.array([_make_token_id(tokens[i][0]) for i, _ in located], dtype=np.int64),
    )


def _make_token_id(name: str) -> int:
    """Hash the name of a token."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _parse_echo(label: str, choice: dict[str, Any]) -> tuple[TokenLogprobs, Any]:
    """Parse tokens in OpenAI's format, prompt first; return them with their offsets."""
    logprobs = choice.get("logprobs")
    content = logprobs if isinstance(logprobs, dict) else {}
    names, numbers = content.get("tokens"), content.get("token_logprobs")
    if not isinstance(names, list) or not isinstance(numbers, list) or not names:
        raise _MissingLogprobsError
    if len(names) != len(numbers) or not all(isinstance(name, str) for name in names):
        raise MalformedResponseError("tokens and log-probabilities that do not match")
    tokens = [
        (name, np.nan if number is None else parse_log_probability(label, number))
        for name, number in zip(names, numbers, strict=True)
    ]
    return tokens, content.get("text_offset")


def _parse_prompt_logprobs(label: str, choice: dict[str, Any]) -> tuple[TokenLogprobs, Any]:
    """Parse tokens in vLLM's format: one mapping per token of the prompt, None for the first."""
    entries = choice.get("prompt_logprobs")
    if not isinstance(entries, list) or not entries:
        raise _MissingLogprobsError
    tokens: TokenLogprobs = []
    for entry in entries[1:]:
        token = next(iter(entry.values()), None) if isinstance(entry, dict) else None
        if not isinstance(token, dict) or not isinstance(token.get("decoded_token"), str):
            raise MalformedResponseError("prompt_logprobs without decoded tokens")
        tokens.append((token["decoded_token"], parse_log_probability(label, token.get("logprob"))))
    return [("", np.nan), *tokens], None


def _locate_tokens(text: str, names: Sequence[str], offsets: Any) -> list[tuple[int, tuple[int, int]]]:
    """Return index and span of the tokens of a text; tokens before and after the text are left out."""
    rest = "".join(names[1:])
    if names and not names[0] and text.endswith(rest) and rest != text:  # the server does not name the first token
        names = [text[: len(text) - len(rest)], *names[1:]]
    for first in range(min(2, len(names))):  # the first token may be a start marker
        start, located = 0, []
        for i in range(first, len(names)):
            if start >= len(text) or not text.startswith(names[i], start):
                break
            if names[i]:
                located.append((i, (start, start + len(names[i]))))
            start += len(names[i])
        if start == len(text):
            return located
    return _locate_by_offsets(text, names, offsets)


def _locate_by_offsets(text: str, names: Sequence[str], offsets: Any) -> list[tuple[int, tuple[int, int]]]:
    """Locate tokens by the server's offsets, because some tokens are parts of a character."""
    is_valid = isinstance(offsets, list) and len(offsets) == len(names) and all(type(n) is int for n in offsets)
    if not is_valid or offsets[0] != 0 or sorted(offsets) != offsets or (len(offsets) > 1 and offsets[-1] > len(text)):
        raise MalformedResponseError("tokens that are not those of the text")
    ends = [*offsets[1:], len(text)]
    pairs = enumerate(zip(offsets, ends, strict=True))
    return [(i, (start, min(max(end, start + 1), len(text)))) for i, (start, end) in pairs if start < len(text)]


_PATH = "/completions"
_BYTES_OVERHEAD, _BYTES_PER_TOKEN = 64 * 1024, 64


class CompletionsModel(EndpointReplyModel):
    """Continue prompts as plain text, after the system message and an empty line.

    The likelihood of an option is that of all tokens that cover one of its characters.
    """

    option_log_p = "continuation"

    def __init__(self, model: ModelName, retry_policy: RetryPolicy | None = None) -> None:
        super().__init__(model, _PATH, {}, retry_policy)
        self._logprobs = LogprobClient(self._client, self._name, self._label)

    def _format_prompt(self, prompt: Prompt) -> str:
        system = self._get_system_message(prompt)
        return f"{system}\n\n{prompt.text}" if system else prompt.text

    def _tokens(self, request: Prompt) -> tuple[int, int]:
        text = self._format_prompt(request)
        if not request.options:
            return estimate_token_count(text), self._sampling.max_tokens
        return sum(estimate_token_count(text + option) for option in request.options), len(request.options)

    def _fetch(self, request: Prompt, pending_request: PendingRequest) -> EndpointResponse:
        respond = self._score_options if request.options else self._generate
        return respond(request, pending_request)

    def _generate(self, prompt: Prompt, pending_request: PendingRequest) -> EndpointResponse:
        payload: dict[str, Any] = {
            "prompt": self._format_prompt(prompt),
            "max_tokens": self._sampling.max_tokens,
            **self._make_payload(prompt),
        }
        max_bytes = _BYTES_OVERHEAD + _BYTES_PER_TOKEN * self._sampling.max_tokens
        return self._client.post(payload, max_bytes, _parse_completion, pending_request, "a prompt")

    def _score_options(self, prompt: Prompt, pending_request: PendingRequest) -> EndpointResponse:
        text = self._format_prompt(prompt)
        scores = self._logprobs.score([text + option for option in prompt.options], pending_request)
        ends = [len(text) + len(option) for option in prompt.options]
        log_p = tuple(scored.within(len(text), end) for scored, end in zip(scores.output, ends, strict=True))
        read, written = scores.tokens_in, scores.tokens_out
        return EndpointResponse(Reply("", None, read, written, log_p), read, written)


def _parse_completion(body: bytes) -> EndpointResponse:
    (choice, *_), usage = parse_choices(body)
    text = choice.get("text")
    if not isinstance(text, str):
        raise MalformedResponseError("a choice without a text")
    read, written = parse_usage(usage)
    return EndpointResponse(Reply(text, parse_finish_reason(choice.get("finish_reason")), read, written), read, written)


class CompletionsLikelihoods(EndpointModel[LikelihoodRequest, TokenLikelihoods]):
    """Score texts with a causal model; the first token has no log-probability."""

    kind: Literal["causal"] = "causal"

    def __init__(self, model: ModelName, retry_policy: RetryPolicy | None = None) -> None:
        reject_settings(model, *SAMPLING_SETTINGS)
        super().__init__(model, _PATH, {}, retry_policy)
        self._logprobs = LogprobClient(self._client, self._name, self._label)

    def likelihoods(self, texts: Sequence[LikelihoodRequest]) -> list[TokenLikelihoods]:
        """Return the log-probabilities of the tokens of each text."""
        return self._fetch_all(texts)

    def _tokens(self, request: LikelihoodRequest) -> tuple[int, int]:
        return estimate_token_count(request.text), 1

    def _fetch(self, request: LikelihoodRequest, pending_request: PendingRequest) -> EndpointResponse:
        scores = self._logprobs.score([request.text], pending_request)
        return replace(scores, output=scores.output[0])


class CompletionsBlanks(EndpointModel[Blank, BlankScores]):
    """Fill blanks with a causal model, all words in one request if the server supports lists.

    Only log-probabilities are available.
    """

    kind: Literal["causal"] = "causal"
    has_mask = False
    has_output_layer = False

    def __init__(self, model: ModelName, retry_policy: RetryPolicy | None = None) -> None:
        reject_settings(model, *SAMPLING_SETTINGS)
        super().__init__(model, _PATH, {"head": "causal"}, retry_policy)
        self._logprobs = LogprobClient(self._client, self._name, self._label)

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        """Return the scores of each blank."""
        return self._fetch_all(blanks)

    def _tokens(self, request: Blank) -> tuple[int, int]:
        before, after = request.halves("")
        return sum(estimate_token_count(before + word + after) for word in request.words), len(request.words)

    def _fetch(self, request: Blank, pending_request: PendingRequest) -> EndpointResponse:
        if Slot.MASKED in request.segments:
            raise UsageError("a causal model has no mask token, so groups cannot be masked")
        before, after = request.halves("")
        if not before and request.words:
            raise UsageError("a causal model reads from left to right: a blank needs text before it")
        scores = self._logprobs.score([before + word + after for word in request.words], pending_request)
        ends = [len(before) + len(word) for word in request.words]
        words = [_select_tokens(scored, len(before), end) for scored, end in zip(scores.output, ends, strict=True)]
        columns = np.full((sum(len(tokens) for tokens, _ in words), len(BLANK_COLUMNS)), np.nan, dtype=np.float32)
        columns[:, BLANK_COLUMNS.index("log_p")] = [value for _, log_p in words for value in log_p]
        filled = BlankScores(
            lengths=np.array([len(tokens) for tokens, _ in words], dtype=np.int32),
            pieces=np.array([token for tokens, _ in words for token in tokens], dtype=np.int32),
            columns=columns,
            unknown=0,
            passes=len(scores.output),
        )
        return replace(scores, output=filled)


def _select_tokens(scored: TokenLikelihoods, start: int, end: int) -> tuple[list[int], list[float]]:
    """Return 31-bit hashes of a word's tokens, as endpoints do not return token ids, and log-probabilities."""
    inside = (scored.spans[:, 0] < end) & (scored.spans[:, 1] > start)
    return (scored.tokens[inside] & 0x7FFFFFFF).tolist(), scored.log_p[inside].tolist()


BACKEND = ModelBackend(
    name="completions",
    syntax="completions:MODEL",
    description="OpenAI-compatible completions",
    settings=make_generation_settings(_PATH),
    extra="api",
    needs=("httpx",),
    blanks=CompletionsBlanks,
    replies=CompletionsModel,
    likelihoods=CompletionsLikelihoods,
    splittable=False,  # requests are already concurrent
    required_consents=get_endpoint_consents,
    selftest=make_selftest("completions"),
)
