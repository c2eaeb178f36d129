"""Local models as they answer prompts: in words, or by the likelihoods of options."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from biassay.errors import ModelError
from biassay.models.ahead import Ahead
from biassay.models.answering import Reply
from biassay.models.attention import without_plans
from biassay.models.base import Identity
from biassay.models.family import ModelName
from biassay.models.hub import flag
from biassay.models.lm import LanguageModel
from biassay.models.lm_questions import Question
from biassay.models.memory import halves_of, in_halves
from biassay.models.sampling import Sampling
from biassay.models.tokenising import tokens_at
from biassay.texts.requests import Prompt

if TYPE_CHECKING:
    import torch

__all__ = ["HfReplies"]

_WRITTEN_AT_ONCE = {"cpu": 8, "cuda": 256}
_SCORED_AT_ONCE = {"cpu": 64, "cuda": 4096}
_TODAY = datetime(2024, 7, 26)  # what templates of Llama say where nobody tells them the date
_DIRECTIVES = {f"%{letter}": _TODAY.strftime(f"%{letter}") for letter in "aAbBcdDeFHIjmMpSTuUVwWxXyY"}
_DIRECTIVES |= {f"%-{letter}": _DIRECTIVES[f"%{letter}"].lstrip("0") or "0" for letter in "dHIjmMSy"}
# The library puts its own functions into a template and takes none of ours, but a template may define one.
_FIXED_DATE = (
    "{% macro strftime_now(format) %}{% set date = namespace(text=format) %}"
    "{% for name, said in biassay_date.items() %}"
    "{% set date.text = date.text | replace(name, said) %}{% endfor %}{{ date.text }}{% endmacro %}"
)


class HfReplies:
    """A causal model, asked by its chat template, or by plain text with ``chat=false``.

    Every answer is drawn from numbers of its own, by the seed and what is asked; a temperature of 0 takes the likeliest
    token. Penalties and limits of probability that come with a model are not applied. A template that asks for the date
    is told 26 July 2024, so that a prompt is the same on every day. An option is a continuation of the prompt; its
    likelihood is that of all tokens with a character of it.
    """

    option_log_p = "continuation"

    def __init__(self, model: ModelName) -> None:
        self._sampling, self._chat = Sampling.of(model, seed=0), flag(model, "chat", "true")
        self._model = LanguageModel(model)
        own = self._model.identity
        if self._model.kind != "causal":
            raise ModelError(f"model {own.name!r} is a masked language model, which answers no prompts")
        plain = {} if self._chat else {"chat": "false"}
        settings = {**dict(own.settings), **self._sampling.settings, **plain}
        del settings["head"]
        self.identity = Identity(own.name, own.family, own.revision, tuple(settings.items()))
        self._asked = Ahead(self._questions)

    def prepare(self, prompts: Sequence[Prompt]) -> None:  # noqa: ARG002
        self._check_template()
        self._model.prepare()

    def batches(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Prompts with options apart from others; those that begin alike, and those of one length, together."""
        scored = sorted((i for i, one in enumerate(prompts) if one.options), key=lambda i: prompts[i].text)
        written = sorted((i for i, one in enumerate(prompts) if not one.options), key=lambda i: len(prompts[i].text))
        device, batches = self._model.device, []
        for places, sizes in ((scored, _SCORED_AT_ONCE), (written, _WRITTEN_AT_ONCE)):
            size = sizes[device]
            batches += [places[start : start + size] for start in range(0, len(places), size)]
        return batches

    def expect(self, prompts: Sequence[Prompt]) -> None:
        """Tokenise prompts with options that are asked soon."""
        if all(one.options for one in prompts):
            self._asked.expect(prompts)

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        self.prepare(prompts)
        found: dict[int, Reply] = {}
        for with_options, answer in ((True, self._scored), (False, self._written)):
            places = [place for place, one in enumerate(prompts) if bool(one.options) == with_options]
            found |= dict(zip(places, answer([prompts[place] for place in places]) if places else (), strict=True))
        return [found[place] for place in range(len(prompts))]

    def _check_template(self) -> None:
        if self._chat and not getattr(self._model.tokenizer, "chat_template", None):
            raise ModelError(
                f"model {self.identity.name!r} has no chat template, so that it is not known how a prompt is put to "
                "it; add ?chat=false to have it go on with plain text"
            )

    def _text(self, prompt: Prompt) -> str:
        """What the model reads before it answers."""
        system = self._sampling.system if prompt.system is None else prompt.system
        if not self._chat:
            return f"{system}\n\n{prompt.text}" if system else prompt.text
        before = [{"role": "system", "content": system}] if system else []
        messages = [*before, {"role": "user", "content": prompt.text}]
        try:
            text: str = self._model.tokenizer.apply_chat_template(
                messages,
                chat_template=self._template,
                tokenize=False,
                add_generation_prompt=True,
                biassay_date=_DIRECTIVES,
            )
        except Exception as error:  # templates are programs: that of some models refuses a system message
            raise ModelError(f"model {self.identity.name!r}: its chat template refuses the prompt: {error}") from error
        return text

    @cached_property
    def _template(self) -> str:
        """The chat template; where it asks for today's date, it gets one that is always the same."""
        own: str = self._model.tokenizer.get_chat_template()
        return f"{_FIXED_DATE}\n{own}" if "strftime_now" in own else own

    def _encoded(self, texts: Sequence[str]) -> list[Any]:
        """Tokens of texts; a template writes special ones itself."""
        return self._model.encoded(texts, special=not self._chat)

    # Options

    def _scored(self, prompts: Sequence[Prompt]) -> list[Reply]:
        asked = self._asked(prompts)
        distinct = list(dict.fromkeys(question for questions in asked for question in questions))
        log_p = dict(zip(distinct, self._model.log_p(distinct).tolist(), strict=True))
        sums = iter([(len(own[0].ids), sum(log_p[question] for question in own)) for own in asked])
        replies = []
        for prompt in prompts:
            found = [next(sums) for _ in prompt.options]
            replies.append(Reply("", None, found[0][0], 0, tuple(number for _, number in found)))
        return replies

    def _questions(self, prompts: Sequence[Prompt]) -> list[list[Question]]:
        """Of every option behind its prompt, a question for each token with a character of it."""
        befores = [self._text(prompt) for prompt in prompts]
        pairs = [(text, option) for text, one in zip(befores, prompts, strict=True) for option in one.options]
        encoded = self._encoded([before + option for before, option in pairs])
        found = []
        for (before, option), encoding in zip(pairs, encoded, strict=True):
            ids, own = encoding.ids, tokens_at(encoding, (len(before), len(before) + len(option)))
            if not own or own[0] == 0:
                raise ModelError(f"model {self.identity.name!r} has no token for the option {option!r} behind a prompt")
            found.append([Question(tuple(ids[:place]), place - 1, ids[place]) for place in own])
        return found

    # Words

    def _written(self, prompts: Sequence[Prompt]) -> list[Reply]:
        parts = in_halves(self.identity.name, self._answered, prompts, halves_of)
        return [reply for part in parts for reply in part]

    def _answered(self, prompts: Sequence[Prompt]) -> list[Reply]:
        rows = [encoding.ids for encoding in self._encoded([self._text(one) for one in prompts])]
        longest, limit = max(map(len, rows)), self._model.limit
        if longest >= limit:
            raise ModelError(f"model {self.identity.name!r} reads at most {limit} tokens, and a prompt has {longest}")
        together: dict[int, list[int]] = {}  # those that have room for as many tokens
        for place, row in enumerate(rows):
            together.setdefault(min(self._sampling.max_tokens, limit - len(row)), []).append(place)
        found: dict[int, Reply] = {}
        for most, places in together.items():
            made = self._generated([prompts[place] for place in places], [rows[place] for place in places], most)
            found |= dict(zip(places, made, strict=True))
        return [found[place] for place in range(len(rows))]

    def _generated(self, prompts: Sequence[Prompt], rows: Sequence[list[int]], most: int) -> list[Reply]:
        import torch

        longest = max(map(len, rows))
        ends, padding = self._ends
        device = self._model.device
        ids = torch.tensor([[*[padding] * (longest - len(row)), *row] for row in rows], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
        with torch.inference_mode(), without_plans(device, longest):
            made = self._model.model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=_config(most, ends, padding),
                logits_processor=[] if not self._sampling.temperature else [self._draws(prompts)],
            )
        written = [_until(row, ends) for row in made[:, longest:].tolist()]
        return [self._reply(row, own, ends) for row, own in zip(rows, written, strict=True)]

    def _reply(self, read: list[int], written: list[int], ends: Sequence[int]) -> Reply:
        text = self._model.tokenizer.decode(written, skip_special_tokens=True)
        stopped = bool(written) and written[-1] in ends
        return Reply(text, "stop" if stopped else "length", len(read), len(written))

    @cached_property
    def _ends(self) -> tuple[list[int], int]:
        """Tokens that end an answer, and one that fills up a batch. What else comes with the model is put aside."""
        own, tokenizer = self._model.model.generation_config.eos_token_id, self._model.tokenizer
        named = own if isinstance(own, list) else [own]
        ends = list(dict.fromkeys(token for token in (*named, tokenizer.eos_token_id) if token is not None))
        padding = tokenizer.pad_token_id
        filling = padding if padding is not None else ends[0] if ends else 0
        self._model.model.generation_config = _config(1, ends, filling)
        return ends, filling

    def _draws(self, prompts: Sequence[Prompt]) -> _Draws:
        return _Draws([self._sampling.seed_of(one.key) or 0 for one in prompts], self._sampling.temperature)


def _config(most: int, ends: list[int], padding: int) -> Any:
    import transformers

    library: Any = transformers
    return library.GenerationConfig(
        max_new_tokens=most, do_sample=False, eos_token_id=ends or None, pad_token_id=padding, use_cache=True
    )


def _until(row: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens of an answer up to the one that ends it; what follows fills up the batch."""
    end = next((place for place, token in enumerate(row) if token in ends), len(row) - 1)
    return row[: end + 1]


class _Draws:
    """Draws the next token of every row by numbers of its own, whatever else is in the batch.

    The library is made to take what was drawn: all other tokens become impossible.
    """

    def __init__(self, seeds: Sequence[int], temperature: float) -> None:
        self._numbers, self._temperature = [np.random.default_rng(seed) for seed in seeds], temperature

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        import torch

        shares = torch.softmax(scores.double() / self._temperature, dim=1).cumsum(dim=1)
        at = torch.tensor([[one.random()] for one in self._numbers], dtype=shares.dtype, device=shares.device)
        drawn = torch.searchsorted(shares, at * shares[:, -1:], right=True).clamp(max=scores.shape[1] - 1)
        return torch.full_like(scores, -torch.inf).scatter(1, drawn, 0.0)
