"""Encode texts and words in context with Hugging Face models (`hf:NAME`)."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UsageError
from biassay.models.backend import ModelBackend, ModelName, defer, read_choice_setting
from biassay.models.base import (
    SAMPLING_SETTINGS,
    ContextEmbeddings,
    Identity,
    Representation,
    Span,
    TextEmbeddings,
    check_spans,
    default_representation,
    refuse_settings,
)
from biassay.models.devices import DEVICE_HELP
from biassay.models.transformers.batches import BatchPrefetcher
from biassay.models.transformers.checkpoint import TRUST_HELP, Checkpoint, find_checkpoint
from biassay.models.transformers.hidden_states import DTYPES, POOLS, PoolName, TokenStates, pool

if TYPE_CHECKING:
    import torch

    from biassay.models.transformers.hidden_states import Layers, PendingVectors
    from biassay.models.transformers.tokenizer import TokenizedTexts


_WORD_PARTS: tuple[PoolName, ...] = ("last", "first", "mean")
_WORD_BATCH_SIZES = {"cpu": 2048, "cuda": 65_536}
_PART_SIZE = 4096  # texts that are tokenized while the GPU works on the previous ones


class HfWordEncoder:
    """Encode a word in context as its last token, its first token, or the mean of all its tokens."""

    def __init__(self, model: ModelName) -> None:
        refuse_settings(model, "pool", *SAMPLING_SETTINGS)
        self._checkpoint = checkpoint = find_checkpoint(model)
        checkpoint.check_tokenizer()
        self._states = TokenStates(model, checkpoint)
        self._part: PoolName = read_choice_setting(model, "word", _WORD_PARTS, "last")  # type: ignore[assignment]
        settings = {"word": self._part, **self._states.settings}
        self.identity = Identity(checkpoint.name, "hf", checkpoint.fingerprint, tuple(settings.items()))

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode_words`."""
        return _WORD_BATCH_SIZES[self._states.device]

    def prepare(self) -> None:
        """Load the weights."""
        self._states.load()

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> ContextEmbeddings:
        """Return one vector per text, that of the word at its span."""
        check_spans(texts, spans)
        starts = range(0, len(texts), _PART_SIZE)
        parts = ([items[start : start + _PART_SIZE] for start in starts] for items in (texts, spans))
        vectors, missing = [], []
        with ThreadPoolExecutor(max_workers=1) as thread:
            for located in thread.map(self._checkpoint.text_tokenizer.locate, *parts):
                vectors.append(self._states.vectors(located.tokenized, self._pooling))
                missing += located.missing
        return ContextEmbeddings.from_vectors(self.identity.name, texts, np.concatenate(vectors), missing)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens."""
        return self._checkpoint.text_tokenizer.count(texts)

    def _pooling(self, states: torch.Tensor, _: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Pool the tokens of the word as if they were the whole text."""
        return pool(self._part, states, words, words)


class HfEncoder:
    """Encode texts by pooling token states of one or several layers."""

    def __init__(self, model: ModelName) -> None:
        refuse_settings(model, "word", *SAMPLING_SETTINGS)
        self._checkpoint = checkpoint = find_checkpoint(model)
        self._states = TokenStates(model, checkpoint)
        self._pool = _choose_pooling(model, checkpoint)
        settings = {"pool": self._pool, **self._states.settings}
        self.identity = Identity(checkpoint.name, "hf", checkpoint.fingerprint, tuple(settings.items()))
        self._tokenized: BatchPrefetcher[Sequence[str], TokenizedTexts] = BatchPrefetcher(
            lambda texts: checkpoint.text_tokenizer(texts)
        )
        self._running: BatchPrefetcher[tuple[Sequence[str], tuple[str, ...]], tuple[TokenizedTexts, PendingVectors]] = (
            BatchPrefetcher(self._start)
        )

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode`."""
        return 512 if self._states.device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        """Load the weights."""
        self._states.load()

    def prefetch_representations(self, texts: Sequence[str], names: Sequence[str]) -> None:
        """Start on texts of a later batch.

        A background thread tokenizes them. On a GPU, a second thread also starts the model on them, so that the GPU
        continues with the next batch while the previous one is copied back and cached.
        """
        self._tokenized.prefetch(texts)
        if self._states.is_asynchronous:
            self._running.prefetch((texts, tuple(names)))

    def cancel_prefetch(self) -> None:
        """Drop prefetched texts and wait until the background threads are idle."""
        self._running.cancel()
        self._tokenized.cancel()

    def _start(self, requested: tuple[Sequence[str], tuple[str, ...]]) -> tuple[TokenizedTexts, PendingVectors]:
        texts, names = requested
        tokenized = self._tokenized(texts)
        ways = [(layers, partial(pool, pooling)) for _, layers, pooling in map(self._offered.__getitem__, names)]
        return tokenized, self._states.start(tokenized, ways, self._running.stopping)

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text, with unknown and truncated parts."""
        return self.encode_representations(texts, [self._default_name])[self._default_name]

    @cached_property
    def _default_name(self) -> str:
        return default_representation(self).name

    @property
    def representations(self) -> tuple[Representation, ...]:
        """Every layer, from the embedding to the top, with every pooling."""
        return tuple(representation for representation, *_ in self._offered.values())

    @cached_property
    def _offered(self) -> dict[str, tuple[Representation, Layers, PoolName]]:
        pools = [name for name in POOLS if name != "cls" or self._checkpoint.has_cls]
        offered = {}
        for layers, name in itertools.product(self._states.each_layer, pools):
            settings = self._states.get_layer_settings(layers)
            identity = dataclasses.replace(self.identity, settings=tuple({"pool": name, **settings}.items()))
            settings.pop("dtype", None)  # the same for all
            representation = Representation((*settings.items(), ("pool", name)), identity)
            offered[representation.name] = (representation, layers, name)
        return offered

    def encode_representations(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, TextEmbeddings]:
        """Return one set of embeddings per representation, all from one pass."""
        tokenized, pending = self._running((texts, tuple(names)))
        return {
            name: TextEmbeddings.from_vectors(vectors, tokenized.unknown, tokenized.truncated_at)
            for name, vectors in zip(names, pending.vectors(), strict=True)
        }

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens."""
        return self._checkpoint.text_tokenizer.count(texts)


def _read_trained_pooling(checkpoint: Checkpoint) -> str | None:
    """Return the pooling that a sentence-transformers folder was trained with, if `pool` supports it."""
    folder = Path(checkpoint.location)
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        modules = folder / "modules.json"
        if modules.is_file() and "1_Pooling" in modules.read_text(encoding="utf-8", errors="replace"):
            raise ModelError(
                f"model {checkpoint.typed!r}: {modules} names 1_Pooling, which is missing; copy the whole folder, or "
                "choose the pooling, such as pool=mean"
            )
        return None
    modes = json.loads(path.read_text(encoding="utf-8"))
    names = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
    chosen = [name for name, key in names.items() if modes.get(key)]
    return chosen[0] if len(chosen) == 1 else None


def _choose_pooling(model: ModelName, checkpoint: Checkpoint) -> PoolName:
    """Return the user's pooling, or the one the model was trained for: [CLS] for BERT, the last token for GPT."""
    has_cls = checkpoint.has_cls
    default = "last" if checkpoint.ends_last else "cls" if has_cls else "mean"
    trained = None if "pool" in model.settings else _read_trained_pooling(checkpoint)
    name = read_choice_setting(model, "pool", POOLS, trained or default)
    if name == "cls" and not has_cls:
        raise UsageError(f"model {model.text!r} has no [CLS] token at the start of a text; use pool=mean or pool=last")
    return name  # type: ignore[return-value]


def _selftest(folder: Path) -> AbstractContextManager[str]:
    from biassay.models.selftest import write_tiny_bert

    return nullcontext(f"hf:{write_tiny_bert(folder)}")


BACKEND = ModelBackend(
    name="hf",
    syntax="hf:NAME[@REVISION]",
    description="Hugging Face encoder or language model",
    settings={
        "pool": f"texts: {', '.join(POOLS)}; by default the pooling the model was trained for",
        "word": "words in context: last (default), first or mean of the word's tokens",
        "layer": "0 for the embedding, -1 (default) for the top; separate several by commas",
        "join": "how to combine several layers: sum (default) or concat",
        "dtype": f"{DTYPES[0]} (default), {' or '.join(DTYPES[1:])}",
        "device": DEVICE_HELP,
        "trust_remote_code": TRUST_HELP,
        **{name: f"replies: {text}" for name, text in SAMPLING_SETTINGS.items()},
        "chat": "replies: true (default) to use the model's chat template, false for plain text",
    },
    extra="hf",
    needs=("torch", "transformers"),
    packages=("torch", "transformers"),
    texts=HfEncoder,
    words=HfWordEncoder,
    blanks=defer("biassay.models.transformers.language_model:open_language_model"),
    replies=defer("biassay.models.transformers.generation:HfReplies"),
    likelihoods=defer("biassay.models.transformers.language_model:HfLikelihoods"),
    selftest=_selftest,
    takes_bare_names=True,
)
