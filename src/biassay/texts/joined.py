"""Documents in one piece, as compiled code takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.texts.tools import WIDTH

__all__ = ["PADDING", "Joined", "by_eight"]

PADDING = WIDTH  # bytes after the last document


@dataclass(frozen=True)
class Joined:
    """Documents in one piece of memory, that is not changed. A zero or a line break stands after each.

    ``starts`` and ``stops`` are their places, in any order.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, documents: Sequence[bytes]) -> Joined:
        sizes = np.fromiter(map(len, documents), np.int64, len(documents))
        starts = np.cumsum(sizes + 1) - sizes - 1
        return cls(np.frombuffer(b"\0".join(documents) + bytes(PADDING), np.uint8), starts, starts + sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def document(self, number: int) -> bytes:
        return self.data[self.starts[number] : self.stops[number]].tobytes()


def by_eight(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The eight bytes from every place on, the last seven places aside, as one number."""
    return np.ndarray((max(0, len(data) - 7),), "<u8", data, 0, (1,))
