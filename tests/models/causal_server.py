"""A causal language model of the library behind the server of ``api_server``: chat, completions, log-probabilities."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from . import api_server
from .api_server import Asked, Endpoint, Reply
from .tiny_models import byte_tokenizer, save_random

TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>a\n{% endif %}"
)
Way = Literal["echo", "prompt_logprobs"]


def save_chatting(folder: Path) -> Path:
    """A tiny causal model with random weights, every byte a token, that takes long prompts by a chat template."""
    import torch
    import transformers

    torch.manual_seed(7)
    tokenizer = byte_tokenizer(special=False, max_length=2048)
    tokenizer.chat_template = TEMPLATE
    sizes: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 2048}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), bos_token_id=2, eos_token_id=2, **sizes)
    return save_random(transformers.AutoModelForCausalLM.from_config(config), tokenizer, folder)


class Causal:
    """Answers requests as vLLM or OpenAI do, whatever the path: one with messages is a chat."""

    def __init__(self, folder: Path, way: Way = "echo") -> None:
        """``way``: how it tells log-probabilities of a given text."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.way, self._lock = way, threading.Lock()

    def __call__(self, asked: Asked) -> Reply:
        with self._lock:
            if "messages" in asked:
                return self._sent([self._chat(asked)])
            prompts = asked["prompt"] if isinstance(asked["prompt"], list) else [asked["prompt"]]
            if asked.get("echo") and self.way != "echo":
                return Reply(400, b'{"error": {"message": "echo is not supported with logprobs"}}')
            return self._sent([self._completion(asked, prompt) for prompt in prompts])

    def _sent(self, made: list[tuple[dict[str, Any], int, int]]) -> Reply:
        choices = [{"index": index, **choice} for index, (choice, _, _) in enumerate(made)]
        usage = {"prompt_tokens": sum(n for _, n, _ in made), "completion_tokens": sum(n for _, _, n in made)}
        return Reply(body=json.dumps({"object": "list", "choices": choices, "usage": usage}).encode())

    def _chat(self, asked: Asked) -> tuple[dict[str, Any], int, int]:
        text = self.tokenizer.apply_chat_template(asked["messages"], tokenize=False, add_generation_prompt=True)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        written, ended, first = self._written(asked, ids, self._scores(ids))
        message = {"role": "assistant", "content": self.tokenizer.decode(written, skip_special_tokens=True)}
        choice: dict[str, Any] = {"message": message, "finish_reason": ended}
        if asked.get("logprobs"):
            values, tokens = first.topk(asked["top_logprobs"])
            likely = [
                {"token": self.tokenizer.decode([token]), "logprob": value}
                for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
            ]
            choice["logprobs"] = {"content": [{**likely[0], "top_logprobs": likely}]}
        return choice, len(ids), len(written)

    def _completion(self, asked: Asked, prompt: str) -> tuple[dict[str, Any], int, int]:
        given = self.tokenizer(prompt, return_offsets_mapping=True)
        ids, offsets = given["input_ids"], [start for start, _ in given["offset_mapping"]]
        scores = self._scores(ids)
        log_p = [float(scores[place - 1, ids[place]]) for place in range(1, len(ids))]
        written, ended, first = self._written(asked, ids, scores)
        choice: dict[str, Any] = {"text": self.tokenizer.decode(written, skip_special_tokens=True)}
        names = [self.tokenizer.decode([token]) for token in ids]
        if asked.get("echo"):
            numbers = [None, *log_p, float(first[written[0]])]
            tokens = [*names, self.tokenizer.decode(written[:1])]
            logprobs = {"tokens": tokens, "token_logprobs": numbers, "text_offset": [*offsets, len(prompt)]}
            choice |= {"text": prompt + choice["text"], "logprobs": logprobs}
        elif "prompt_logprobs" in asked and self.way == "prompt_logprobs":
            told = zip(ids[1:], log_p, names[1:], strict=True)
            choice["prompt_logprobs"] = [None, *({str(i): {"logprob": n, "decoded_token": t}} for i, n, t in told)]
        return {**choice, "finish_reason": ended}, len(ids), len(written)

    def _scores(self, ids: list[int]) -> Any:
        import torch

        with torch.inference_mode():
            return self.model(torch.tensor([ids])).logits[0].double().log_softmax(dim=1)

    def _written(self, asked: Asked, ids: list[int], scores: Any) -> tuple[list[int], str, Any]:
        """What it goes on with, the likeliest token each time; why that ends; and how likely tokens were at first."""
        if asked["max_tokens"] == 1:
            return [int(scores[-1].argmax())], "length", scores[-1]
        import torch
        from transformers import GenerationConfig

        end = self.tokenizer.eos_token_id
        config = GenerationConfig(max_new_tokens=asked["max_tokens"], eos_token_id=end, pad_token_id=end)
        given = torch.tensor([ids])
        made = self.model.generate(
            input_ids=given,
            attention_mask=torch.ones_like(given),
            generation_config=config,
        )
        written = made[0, len(ids) :].tolist()
        return written, "stop" if written[-1] == end else "length", scores[-1]


@contextmanager
def serving(model: Causal) -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = model
        yield server
