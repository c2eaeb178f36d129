"""The server of ``api_server`` as chat and completions endpoints, over a toy language model that tests can compute."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from biassay.models.openai.chat import ChatModel
from biassay.models.openai.completions import CompletionsBlanks, CompletionsLikelihoods, CompletionsModel
from biassay.models.registry import parse_model

from .api_server import KEYED, Asked, Clock, Endpoint, Reply, Script


def said_to(text: str) -> str:
    return f"answer to {text}"


def body(choice: dict[str, Any], tokens_in: int = 10, tokens_out: int = 5, **more: Any) -> Reply:
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
    return Reply(body=json.dumps({"choices": [choice], "usage": usage, **more}).encode())


def chat(asked: Asked) -> Reply:
    """Echo the prompt, with a higher probability of "A" than of "B"."""
    choice: dict[str, Any] = {"message": {"content": said_to(asked["messages"][-1]["content"])}}
    if asked.get("logprobs"):
        choice["logprobs"] = {"content": [{"token": "A", "top_logprobs": TOP}]}
    return body({"index": 0, "finish_reason": "stop", **choice})


TOP = [{"token": "A", "logprob": -0.25}, {"token": " B", "logprob": -2.0}, {"token": "B", "logprob": -3.0}]


def tokens_of(text: str) -> list[str]:
    """Words with the space before them, and signs."""
    return re.findall(r"\s*\w+|\s*[^\w\s]", text)


def log_p_of(before: str, token: str) -> float:
    digest = hashlib.blake2b(f"{before}|{token}".encode(), digest_size=4).digest()
    return -10 * int.from_bytes(digest, "big") / 2**32


def log_ps(text: str) -> list[float | None]:
    tokens = tokens_of(text)
    return [None, *(log_p_of("".join(tokens[:i]), token) for i, token in enumerate(tokens) if i)]


def each(answer: Script) -> Script:
    """Several prompts in one request are answered in one, the last one first."""

    def answers(asked: Asked) -> Reply:
        if isinstance(asked["prompt"], str):
            return answer(asked)
        found = [json.loads(answer({**asked, "prompt": prompt}).body) for prompt in asked["prompt"]]
        choices = [{**one["choices"][0], "index": index} for index, one in enumerate(found)]
        usage = {name: sum(one["usage"][name] for one in found) for name in found[0]["usage"]}
        return Reply(body=json.dumps({"choices": choices[::-1], "usage": usage}).encode())

    return answers


def one_by_one(asked: Asked) -> Reply:
    """A server that takes one prompt at a time."""
    return echo(asked) if isinstance(asked["prompt"], str) else Reply(422, b'{"detail": "prompt: not a string"}')


def only_first(asked: Asked) -> Reply:
    """A server that reads only the first of several prompts."""
    return echo({**asked, "prompt": asked["prompt"] if isinstance(asked["prompt"], str) else asked["prompt"][0]})


@each
def echo(asked: Asked) -> Reply:
    """OpenAI's way: tokens of the prompt and of the one written behind it."""
    if not asked.get("echo"):
        return body({"text": said_to(asked["prompt"]), "finish_reason": "length"})
    tokens, numbers = [*tokens_of(asked["prompt"]), " more"], [*log_ps(asked["prompt"]), -0.5]
    logprobs = {"tokens": tokens, "token_logprobs": numbers, "top_logprobs": None}
    return body({"text": "".join(tokens), "finish_reason": "length", "logprobs": logprobs}, len(tokens) - 1, 1)


def beginning(asked: Asked) -> Reply:
    """Return the tokens with a start token before every text."""
    return each(partial(_vllm, bos=True))(asked)


def vllm(asked: Asked) -> Reply:
    """vLLM's way, where echo was switched off."""
    return each(_vllm)(asked)


def _vllm(asked: Asked, *, bos: bool = False) -> Reply:
    if asked.get("echo"):
        return Reply(400, b'{"error": {"message": "echo is not supported with logprobs"}}')
    names, numbers = tokens_of(asked["prompt"]), log_ps(asked["prompt"])
    if bos:
        names, numbers = ["<s>", *names], [None, -7.0, *numbers[1:]]
    given = [
        None if n is None else {str(i): {"logprob": n, "rank": 1, "decoded_token": name}}
        for i, (name, n) in enumerate(zip(names, numbers, strict=True))
    ]
    return body({"text": " more", "finish_reason": "length", "prompt_logprobs": given}, len(names), 1)


def model_string(server: Endpoint, family: str, settings: str = "") -> str:
    if "BIASSAY_API_KEY" in os.environ and "key_env" not in settings:
        settings = "&".join(filter(None, (settings, KEYED)))
    return f"{family}:toy?base_url={server.base}{settings and '&'}{settings}"


def opened(server: Endpoint, settings: str = "", clock: Clock | None = None) -> ChatModel:
    return ChatModel(parse_model(model_string(server, "chat", settings)), (clock or Clock()).pace())


def completing(
    server: Endpoint,
    settings: str = "",
    kind: Callable[..., Any] = CompletionsModel,
) -> Any:
    return kind(parse_model(model_string(server, "completions", settings)), Clock().pace())


KINDS = (CompletionsModel, CompletionsLikelihoods, CompletionsBlanks)
