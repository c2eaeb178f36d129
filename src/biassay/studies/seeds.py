"""Seeds that depend on nothing but what they are for, so that neither order nor resuming changes a number."""

from __future__ import annotations

import hashlib

__all__ = ["seed_of"]


def seed_of(seed: int, *parts: str) -> list[int]:
    """The run's seed, and a number made from the name of a test and the purpose."""
    digest = hashlib.blake2b(" ".join(parts).encode(), digest_size=8).digest()
    return [seed, int.from_bytes(digest)]
