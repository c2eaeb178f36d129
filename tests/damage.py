"""Damage random bytes of a file, reproducibly."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["damages"]


def damages(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Copies with a bit or a byte altered, some bytes replaced, or some left out."""
    rng = random.Random(seed)
    for number in range(count):
        at = rng.randrange(len(content))
        size = 1 if number % 4 < 2 else rng.randint(1, 16)
        instead = bytes([content[at] ^ 1 << rng.randrange(8)]), rng.randbytes(1), rng.randbytes(size), b""
        yield content[:at] + instead[number % 4] + content[at + size :]
