"""Likelihoods of texts: log-likelihood of causal models, pseudo-log-likelihood of masked ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from biassay.models.ahead import Ahead, uncollected
from biassay.models.answering import TokenLikelihoods
from biassay.models.family import ModelName
from biassay.models.lm import LanguageModel
from biassay.models.lm_questions import Question
from biassay.models.sampling import check_not_sampled
from biassay.texts.requests import Likelihood

__all__ = ["HfLikelihoods"]

_TEXTS_AT_ONCE = {"cpu": 128, "cuda": 4096}
_Asked = tuple[list[Question | None], list[tuple[int, int]], list[int]]
_ENDS = ("<|endoftext|>", "<|end_of_text|>")  # start tokens of models that have no other
_CHAT = re.compile(r"im_start|im_end|turn|header|eot|user|assistant|system", re.IGNORECASE)


class HfLikelihoods:
    """Every token of a text in turn: a causal model reads what is before it, a masked one all others, it alone masked;
    of what fills a blank, a masked one reads the tokens before it and what is around the blank.

    A causal model reads a text behind its start token: that of its tokenizer, or the one that ends a text where it has
    no other. A chat marker, such as ``<|im_start|>``, is not a start token. Without any, the first token has no
    likelihood. Neither has a token that stands for characters which the model does not know.
    """

    def __init__(self, model: ModelName) -> None:
        check_not_sampled(model, "likelihoods")
        self._model = LanguageModel(model)
        self.identity, self.kind = self._model.identity, self._model.kind
        self._asked = Ahead(self._in_tokens)

    def prepare(self, texts: Sequence[Likelihood]) -> None:  # noqa: ARG002
        self._model.prepare()

    def batches(self, texts: Sequence[Likelihood]) -> list[list[int]]:
        """Texts of one length together: a model that pads wastes nothing."""
        order, size = sorted(range(len(texts)), key=lambda i: len(texts[i].text)), _TEXTS_AT_ONCE[self._model.device]
        return [order[start : start + size] for start in range(0, len(order), size)]

    def expect(self, texts: Sequence[Likelihood]) -> None:
        """Tokenise texts that are asked about soon."""
        self._asked.expect(texts)

    def likelihoods(self, texts: Sequence[Likelihood]) -> list[TokenLikelihoods]:
        self._model.prepare()
        asked = self._asked(texts)
        numbers = iter(self._model.log_p([q for questions, _, _ in asked for q in questions if q is not None]).tolist())
        return [
            TokenLikelihoods(
                np.array([np.nan if question is None else next(numbers) for question in questions], dtype=np.float64),
                np.array(spans, dtype=np.int32).reshape(-1, 2),
                np.array(tokens, dtype=np.int64),
            )
            for questions, spans, tokens in asked
        ]

    @property
    def folds_case(self) -> bool:
        """Whether its tokenizer writes capitals small."""
        return self._model.folds_case

    @uncollected()
    def _in_tokens(self, texts: Sequence[Likelihood]) -> list[_Asked]:
        encoded = self._model.encoded([one.text for one in texts])
        return [self._questions(one, encoding) for one, encoding in zip(texts, encoded, strict=True)]

    def _questions(self, asked: Likelihood, encoding: Any) -> _Asked:
        """A question about every token that stands for characters, or None, these characters, and the token."""
        ids, spans = encoding.ids, encoding.offsets
        bare: list[int] | None = None
        if self.kind == "causal" and spans and spans[0][0] < spans[0][1] and self._start is not None:
            bare = ids if asked.start_before == "first" else None
            ids, spans = [self._start, *ids], [(0, 0), *spans]
        places = [place for place, (start, end) in enumerate(spans) if start < end]
        behind = {place: place + 1 for place in places}
        if self.kind == "masked" and asked.filled:
            behind = {}
            for start, end in asked.filled:
                own = [place for place in places if spans[place][0] < end and spans[place][1] > start]
                behind |= dict.fromkeys(own, own[-1] + 1)
        questions = [
            self._question(ids, place, of) if bare is None or place == 1 else self._question(bare, place - 1, of - 1)
            for place, of in behind.items()
        ]
        return questions, [spans[place] for place in behind], [ids[place] for place in behind]

    @cached_property
    def _start(self) -> int | None:
        """The token before a text."""
        tokenizer = self._model.tokenizer
        known = tokenizer.get_vocab()
        names = (tokenizer.bos_token, *(name for name in _ENDS if name in known), tokenizer.eos_token)
        start = next((name for name in names if name is not None and not _CHAT.search(str(name))), None)
        return None if start is None else int(tokenizer.convert_tokens_to_ids(str(start)))

    def _question(self, ids: list[int], place: int, behind: int) -> Question | None:
        """About one token; a masked model goes on to read ``behind``."""
        tokenizer, token = self._model.tokenizer, ids[place]
        if token == tokenizer.unk_token_id and token != tokenizer.eos_token_id:
            return None
        if self.kind == "causal":
            return Question(tuple(ids), place - 1, token) if place else None
        return Question((*ids[:place], tokenizer.mask_token_id, *ids[behind:]), place, token)
