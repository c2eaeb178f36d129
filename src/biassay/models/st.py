"""``st:NAME``: any sentence-transformers model, pooled as it was trained to be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError
from biassay.models.ahead import Ahead
from biassay.models.base import Encoded, Identity
from biassay.models.checkpoint import Checkpoint
from biassay.models.family import Family, ModelName
from biassay.models.half_precision import refuse_deadly
from biassay.models.hub import DEVICE_HELP, TRUST_HELP, check_device, choose_device, loading
from biassay.models.memory import halves_of, in_halves
from biassay.models.tokenising import Tokenised

__all__ = ["FAMILY", "StEncoder", "provide"]


def provide(model: ModelName) -> StEncoder:
    return StEncoder(model, Checkpoint(model))


class StEncoder:
    """A model with its own pooling and whatever layers follow it."""

    def __init__(self, model: ModelName, checkpoint: Checkpoint) -> None:
        check_device(model)
        checkpoint.check_tokenizer()
        self._name, self._checkpoint, self._source = model, checkpoint, checkpoint.source
        self._model: Any = None
        self.identity = Identity(checkpoint.source.name, "st", checkpoint.fingerprint)

        self._tokenised: Ahead[Sequence[str], Tokenised] = Ahead(lambda texts: checkpoint.tokeniser(texts))

    @cached_property
    def _device(self) -> str:
        return choose_device(self._name)

    @property
    def batch_size(self) -> int:
        return 512 if self._device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        if self._model is not None:
            return
        from sentence_transformers import SentenceTransformer

        if not self._source.has("modules.json"):
            raise ModelError(
                f"model {self._source.name!r} is not a sentence-transformers model (no modules.json); use hf:"
            )
        with loading(self._source.name, "weights"):
            model = SentenceTransformer(
                self._source.place,
                device=self._device,
                **self._source.options,
            )
        self._source.check_unchanged()
        refuse_deadly(self._source.name, model)
        self._model = model
        if self._model.max_seq_length:
            tokeniser = self._checkpoint.tokeniser
            tokeniser.limit = min(tokeniser.limit, int(self._model.max_seq_length))

    def expect(self, texts: Sequence[str]) -> None:
        """Tokenise texts that are asked for soon."""
        self._tokenised.expect(texts)

    def encode(self, texts: Sequence[str]) -> Encoded:
        self.prepare(texts)
        vectors = np.concatenate(in_halves(self.identity.name, self._vectors, list(texts), halves_of))
        tokenised = self._tokenised(texts)
        return Encoded.of(vectors, tokenised.unknown, tokenised.cut)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        size = 64 if self._device == "cpu" else 1024
        found = self._model.encode(list(texts), batch_size=size, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found, dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self._checkpoint.tokeniser.count(texts)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    from biassay.models.tiny import SIZE, write_bert

    write_bert(folder)
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": SIZE, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    yield f"st:{folder}"


FAMILY = Family(
    name="st",
    form="st:NAME[@REVISION]",
    about="any sentence-transformers model, by name or folder",
    settings={
        "device": DEVICE_HELP,
        "trust_remote_code": TRUST_HELP,
    },
    extra="st",
    needs=("torch", "transformers", "sentence_transformers"),
    packages=("torch", "transformers", "sentence-transformers"),
    texts=provide,
    selftest=_selftest,
    same_as="hf",
)
