"""Generate replies and score answer options with a local language model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from biassay.errors import ModelError
from biassay.models.backend import ModelName, read_bool_setting
from biassay.models.base import Reply, SamplingOptions
from biassay.models.transformers.batches import BatchPrefetcher, avoid_cudnn_attention, retry_in_halves, split_in_half
from biassay.models.transformers.forward_plan import TokenQuery
from biassay.models.transformers.language_model import LanguageModel
from biassay.models.transformers.tokenizer import find_tokens
from biassay.prompts.requests import Prompt

if TYPE_CHECKING:
    import torch


_MAX_GENERATED_PROMPTS = {"cpu": 8, "cuda": 256}
_MAX_SCORED_PROMPTS = {"cpu": 64, "cuda": 4096}
_FIXED_TODAY = datetime(2024, 7, 26)  # the default date of the chat templates of Llama
_DATE_FORMATS = {f"%{letter}": _FIXED_TODAY.strftime(f"%{letter}") for letter in "aAbBcdDeFHIjmMpSTuUVwWxXyY"}
_DATE_FORMATS |= {f"%-{letter}": _DATE_FORMATS[f"%{letter}"].lstrip("0") or "0" for letter in "dHIjmMSy"}
# The library passes its own functions to a template and accepts none of ours, but a template may define a macro.
_DATE_MACRO = (
    "{% macro strftime_now(format) %}{% set date = namespace(text=format) %}"
    "{% for name, value in biassay_date.items() %}"
    "{% set date.text = date.text | replace(name, value) %}{% endfor %}{{ date.text }}{% endmacro %}"
)


class HfReplies:
    """Generate replies with a causal model, through its chat template or as plain text (``chat=false``).

    Every reply has its own random numbers, derived from the seed and the prompt; temperature 0 selects the most likely
    token. The model's own generation defaults, such as penalties and top-p, are not applied. A template that asks for
    the date gets 26 July 2024, so that prompts do not change from day to day. The likelihood of an option is that of
    all tokens that cover one of its characters.
    """

    option_log_p = "continuation"

    def __init__(self, model: ModelName) -> None:
        self._sampling = SamplingOptions.from_model(model, seed=0)
        self._chat = read_bool_setting(model, "chat", default=True)
        self._model = LanguageModel(model)
        self._label = model.label
        identity = self._model.identity
        if self._model.kind != "causal":
            raise ModelError(
                f"{model.label} is a masked language model and cannot reply to prompts; choose a causal or chat model"
            )
        settings = {**dict(identity.settings), **self._sampling.settings, **({} if self._chat else {"chat": "false"})}
        del settings["head"]
        self.identity = dataclasses.replace(identity, settings=tuple(settings.items()))
        self._prefetcher = BatchPrefetcher(self._make_queries)

    def prepare(self, prompts: Sequence[Prompt]) -> None:  # noqa: ARG002
        """Load the weights; raise ModelError if there is no chat template."""
        if self._chat and not getattr(self._model.tokenizer, "chat_template", None):
            raise ModelError(f"{self._label} has no chat template; add ?chat=false to have it continue plain text")
        self._model.prepare()

    def batches(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Group prompts with options by their text, and all others by their length."""
        scored = sorted((i for i, prompt in enumerate(prompts) if prompt.options), key=lambda i: prompts[i].text)
        generated = sorted(
            (i for i, prompt in enumerate(prompts) if not prompt.options), key=lambda i: len(prompts[i].text)
        )
        batches = []
        for indices, sizes in ((scored, _MAX_SCORED_PROMPTS), (generated, _MAX_GENERATED_PROMPTS)):
            size = sizes[self._model.device]
            batches += [indices[start : start + size] for start in range(0, len(indices), size)]
        return batches

    def prefetch(self, prompts: Sequence[Prompt]) -> None:
        """Tokenize prompts with options of a later batch in the background."""
        if all(prompt.options for prompt in prompts):
            self._prefetcher.prefetch(prompts)

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """Score the options of prompts that have some; generate a response to all others."""
        self.prepare(prompts)
        scored = [prompt for prompt in prompts if prompt.options]
        others = [prompt for prompt in prompts if not prompt.options]
        scores = self._score_options(scored) if scored else []
        parts = retry_in_halves(self._label, self._generate_batch, others, split_in_half) if others else []
        replies = {True: iter(scores), False: chain.from_iterable(parts)}
        return [next(replies[bool(prompt.options)]) for prompt in prompts]

    def _format_prompt(self, prompt: Prompt) -> str:
        """Return the text that the model reads."""
        system = self._sampling.system if prompt.system is None else prompt.system
        if not self._chat:
            return f"{system}\n\n{prompt.text}" if system else prompt.text
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt.text})
        try:
            text: str = self._model.tokenizer.apply_chat_template(
                messages,
                chat_template=self._template,
                tokenize=False,
                add_generation_prompt=True,
                biassay_date=_DATE_FORMATS,
            )
        except Exception as error:  # templates are programs; some reject a system message
            raise ModelError(f"{self._label}: its chat template rejects the prompt: {error}") from error
        return text

    @cached_property
    def _template(self) -> str:
        """The chat template, with a constant date."""
        template: str = self._model.tokenizer.get_chat_template()
        return f"{_DATE_MACRO}\n{template}" if "strftime_now" in template else template

    def _encode(self, texts: Sequence[str]) -> list[Any]:
        """Tokenize texts; a chat template already contains special tokens."""
        return self._model.encode(texts, special=not self._chat)

    # Options

    def _score_options(self, prompts: Sequence[Prompt]) -> list[Reply]:
        option_queries = self._prefetcher(prompts)
        distinct = list(dict.fromkeys(query for queries in option_queries for query in queries))
        log_p = dict(zip(distinct, self._model.log_p(distinct).tolist(), strict=True))
        scores = iter([(len(queries[0].ids), sum(log_p[query] for query in queries)) for queries in option_queries])
        replies = []
        for prompt in prompts:
            options = [next(scores) for _ in prompt.options]
            replies.append(Reply("", None, options[0][0], 0, tuple(score for _, score in options)))
        return replies

    def _make_queries(self, prompts: Sequence[Prompt]) -> list[list[TokenQuery]]:
        """Query the tokens of each option after its prompt."""
        texts = [self._format_prompt(prompt) for prompt in prompts]
        pairs = [(text, option) for text, prompt in zip(texts, prompts, strict=True) for option in prompt.options]
        encodings = self._encode([text + option for text, option in pairs])
        queries = []
        for (text, option), encoding in zip(pairs, encodings, strict=True):
            ids, positions = encoding.ids, find_tokens(encoding, (len(text), len(text) + len(option)))
            if not positions or positions[0] == 0:
                raise ModelError(f"{self._label} has no token for the option {option!r} after a prompt")
            queries.append([TokenQuery(tuple(ids[:i]), i - 1, ids[i]) for i in positions])
        return queries

    # Generation

    def _generate_batch(self, prompts: Sequence[Prompt]) -> list[Reply]:
        rows = [encoding.ids for encoding in self._encode([self._format_prompt(prompt) for prompt in prompts])]
        longest, limit = max(map(len, rows)), self._model.limit
        if longest >= limit:
            raise ModelError(f"{self._label} reads at most {limit} tokens, but a prompt has {longest}")
        groups: dict[tuple[int, float], list[int]] = {}  # maximum length of the reply, temperature -> prompts
        for i, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
            temperature = self._sampling.temperature if prompt.temperature is None else prompt.temperature
            groups.setdefault((min(self._sampling.max_tokens, limit - len(row)), temperature), []).append(i)
        replies: dict[int, Reply] = {}
        for (max_tokens, temperature), indices in groups.items():
            part = self._generate([prompts[i] for i in indices], [rows[i] for i in indices], max_tokens, temperature)
            replies |= dict(zip(indices, part, strict=True))
        return [replies[i] for i in range(len(rows))]

    def _generate(
        self, prompts: Sequence[Prompt], rows: Sequence[list[int]], max_tokens: int, temperature: float
    ) -> list[Reply]:
        import torch

        longest = max(map(len, rows))
        ends, padding = self._ends
        device = self._model.device
        seeds = [self._sampling.derive_seed(prompt.key) or 0 for prompt in prompts]
        ids = torch.tensor([[*[padding] * (longest - len(row)), *row] for row in rows], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
        with torch.inference_mode(), avoid_cudnn_attention(device, longest):
            generated = self._model.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=_make_generation_config(max_tokens, ends, padding),
                logits_processor=[_TokenSampler(seeds, temperature)] if temperature else [],
            )
        replies = []
        for row, output in zip(rows, generated[:, longest:].tolist(), strict=True):
            end = next((i for i, token in enumerate(output) if token in ends), None)  # the rest is padding
            written = output if end is None else output[: end + 1]
            text = self._model.tokenizer.decode(written, skip_special_tokens=True)
            replies.append(Reply(text, "length" if end is None else "stop", len(row), len(written)))
        return replies

    @cached_property
    def _ends(self) -> tuple[list[int], int]:
        """End tokens and the padding token; the model's other generation defaults are dropped."""
        configured, tokenizer = self._model.model.generation_config.eos_token_id, self._model.tokenizer
        tokens = configured if isinstance(configured, list) else [configured]
        ends = list(dict.fromkeys(token for token in (*tokens, tokenizer.eos_token_id) if token is not None))
        padding = next(token for token in (tokenizer.pad_token_id, *ends, 0) if token is not None)
        self._model.model.generation_config = _make_generation_config(1, ends, padding)
        return ends, padding


def _make_generation_config(max_tokens: int, ends: list[int], padding: int) -> Any:
    import transformers

    library: Any = transformers
    return library.GenerationConfig(
        max_new_tokens=max_tokens, do_sample=False, eos_token_id=ends or None, pad_token_id=padding, use_cache=True
    )


class _TokenSampler:
    """Sample the next token of each row with its own generator, independently of the batch.

    All other tokens become impossible, so that the library selects the sampled one.
    """

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        self._generators, self._temperature = [np.random.default_rng(seed) for seed in seeds], temperature

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        import torch

        cumulative = torch.softmax(scores.double() / self._temperature, dim=1).cumsum(dim=1)
        numbers = [[generator.random()] for generator in self._generators]
        uniform = torch.tensor(numbers, dtype=cumulative.dtype, device=cumulative.device)
        sampled = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
        return torch.full_like(scores, -torch.inf).scatter(1, sampled.clamp(max=scores.shape[1] - 1), 0.0)
