"""``hf:NAME`` for words: the state of a word's tokens in its context, at one layer or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import Identity, InContext, Span, check_spans
from biassay.models.checkpoint import Checkpoint
from biassay.models.family import ModelName
from biassay.models.pooling import PoolName, check_words, pool
from biassay.models.states import TokenStates, choice

if TYPE_CHECKING:
    import torch

__all__ = ["HfWordEncoder", "one_ahead", "provide"]

_WORD_PARTS: tuple[PoolName, ...] = ("last", "first", "mean")
_BATCH = {"cpu": 2048, "cuda": 65_536}
# A part of a batch is tokenised while the GPU works on the one before it.
_PART = 4096
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


def provide(model: ModelName) -> HfWordEncoder:
    check_words(model)
    return HfWordEncoder(model, Checkpoint(model))


class HfWordEncoder:
    """The last token of a word, the first, or the mean of all, located by character offsets."""

    def __init__(self, model: ModelName, checkpoint: Checkpoint) -> None:
        checkpoint.check_tokenizer()
        self._checkpoint = checkpoint
        self._states = TokenStates(model, checkpoint)
        self._part: PoolName = choice(model, "word", "last", _WORD_PARTS)  # type: ignore[assignment]
        settings = {"word": self._part, **self._states.settings}
        self.identity = Identity(checkpoint.source.name, "hf", checkpoint.fingerprint, tuple(settings.items()))

    @property
    def batch_size(self) -> int:
        return _BATCH[self._states.device]

    def prepare(self) -> None:
        self._states.load()

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> InContext:
        check_spans(texts, spans)
        parts = [slice(start, start + _PART) for start in range(0, len(texts), _PART)]
        vectors, missing = [], []
        for located in one_ahead(lambda part: self._checkpoint.tokeniser.locate(texts[part], spans[part]), parts):
            vectors.append(self._states.vectors(located.tokenised, self._pooling))
            missing += located.missing
        return InContext.of(self.identity.name, texts, np.concatenate(vectors), missing)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self._checkpoint.tokeniser.count(texts)

    def _pooling(self, states: torch.Tensor, _: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """As of a text that has no tokens but the word's."""
        return pool(self._part, states, words, words)


def one_ahead(work: Callable[[_Given], _Result], given: Sequence[_Given]) -> Iterator[_Result]:
    """The results of ``work`` in order; the next is computed while the caller uses one."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = thread.submit(work, given[0])
        for following in given[1:]:
            result = coming.result()
            coming = thread.submit(work, following)
            yield result
        yield coming.result()
