"""Encode what the store lacks, batch by batch, and hand back everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from biassay.encoders.base import Encoded, Encoder
from biassay.errors import VectorError
from biassay.vectors.store import ModelStore

__all__ = ["Progress", "encode_missing"]

Progress = Callable[[int, int], None]


def encode_missing(encoder: Encoder, texts: Sequence[str], store: ModelStore, progress: Progress | None = None) -> int:
    """Make sure that the store holds a vector of every text; each distinct text is encoded once.

    Returns the number of texts that had to be encoded. A batch is in the store before the next one begins.
    """
    # Texts of one length in one batch: a model that pads wastes nothing.
    missing = sorted(store.missing(texts), key=len)
    if not missing:
        return 0
    encoder.prepare(missing)
    dimension = None
    for start in range(0, len(missing), encoder.batch_size):
        batch = missing[start : start + encoder.batch_size]
        encoded = encoder.encode(batch)
        _check(encoder, batch, encoded)
        if dimension not in (None, encoded.vectors.shape[1]):
            sizes = f"{dimension} and {encoded.vectors.shape[1]}"
            raise VectorError(f"model {encoder.identity.name!r} gave vectors of different dimensions, {sizes}")
        dimension = encoded.vectors.shape[1]
        store.add(batch, encoded)
        if progress is not None:
            progress(min(start + len(batch), len(missing)), len(missing))
    return len(missing)


def _check(encoder: Encoder, texts: Sequence[str], encoded: Encoded) -> None:
    """Refuse vectors without a direction before they are stored; a text of unknown words only may be zero."""
    name = encoder.identity.name
    if not len(encoded.vectors) == len(encoded.unknown) == len(encoded.cut) == len(texts):
        raise VectorError(f"model {name!r} gave {len(encoded.vectors)} vectors for {len(texts)} texts")
    finite = np.isfinite(encoded.vectors).all(axis=1)
    if not finite.all():
        raise VectorError(f"model {name!r}: the vector of {texts[int(np.argmin(finite))]!r} is not finite")
    for row in np.flatnonzero(~encoded.vectors.any(axis=1)).tolist():
        if not encoded.unknown[row]:
            raise VectorError(f"model {name!r}: the vector of {texts[row]!r} is zero, so it has no direction")
