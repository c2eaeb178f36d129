"""Encode texts with sentence-transformers models (`st:NAME`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.devices import DEVICE_HELP
from biassay.models.transformers.batches import BatchPrefetcher, retry_in_halves, split_in_half
from biassay.models.transformers.checkpoint import (
    TRUST_HELP,
    check_half_precision,
    find_checkpoint,
    translate_errors,
)
from biassay.models.transformers.tokenizer import TokenizedTexts

_TOKENS_AT_ONCE = 4096  # on a CPU: larger batches take memory and no less time
_CHARACTERS_PER_TOKEN = 4


class SentenceTransformersEncoder:
    """Encode texts with all modules of a sentence-transformers model, pooling included."""

    def __init__(self, model: ModelName) -> None:
        self._checkpoint = find_checkpoint(model)
        self._checkpoint.check_tokenizer()
        self._model: Any = None
        self.identity = Identity(self._checkpoint.name, "st", self._checkpoint.fingerprint)
        self._tokenized: BatchPrefetcher[Sequence[str], TokenizedTexts] = BatchPrefetcher(
            lambda texts: self._checkpoint.text_tokenizer(texts)
        )

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode`."""
        return 512 if self._checkpoint.device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        """Load the weights."""
        if self._model is not None:
            return
        from sentence_transformers import SentenceTransformer

        checkpoint = self._checkpoint
        if not checkpoint.has("modules.json"):
            raise ModelError(f"{checkpoint.label} is not a sentence-transformers model (no modules.json); use hf:")
        with translate_errors(checkpoint.label, "weights"):
            model = SentenceTransformer(checkpoint.location, device=checkpoint.device, **checkpoint.options)
        checkpoint.check_unchanged()
        check_half_precision(checkpoint.label, model)
        self._model = model
        if self._model.max_seq_length:
            text_tokenizer = self._checkpoint.text_tokenizer
            text_tokenizer.limit = min(text_tokenizer.limit, int(self._model.max_seq_length))

    def prefetch(self, texts: Sequence[str]) -> None:
        """Tokenize texts of a later batch in the background."""
        self._tokenized.prefetch(texts)

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text, with unknown and truncated parts."""
        self.prepare(texts)
        vectors = np.concatenate(retry_in_halves(self._checkpoint.label, self._vectors, list(texts), split_in_half))
        tokenized = self._tokenized(texts)
        return TextEmbeddings.from_vectors(vectors, tokenized.unknown, tokenized.truncated_at)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        size = 1024
        if self._checkpoint.device == "cpu":
            longest = max(map(len, texts)) // _CHARACTERS_PER_TOKEN + 1
            size = max(8, min(64, _TOKENS_AT_ONCE // min(longest, self._model.max_seq_length or longest)))
        vectors = self._model.encode(list(texts), batch_size=size, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens."""
        return self._checkpoint.text_tokenizer.count(texts)


def write_tiny_sentence_transformer(folder: Path) -> None:
    """Write a model with random weights that averages over tokens."""
    from biassay.models.selftest import TINY_SIZE, write_tiny_bert

    write_tiny_bert(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": TINY_SIZE, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    write_tiny_sentence_transformer(folder)
    yield f"st:{folder}"


BACKEND = ModelBackend(
    name="st",
    syntax="st:NAME[@REVISION]",
    description="sentence-transformers model",
    settings={"device": DEVICE_HELP, "trust_remote_code": TRUST_HELP},
    extra="st",
    needs=("torch", "transformers", "sentence_transformers"),
    packages=("torch", "transformers", "sentence-transformers"),
    texts=SentenceTransformersEncoder,
    selftest=_selftest,
    alias_of="hf",
)
