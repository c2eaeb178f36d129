"""Keys of requests, many of them: hashes in sorted arrays, which take some fifty bytes each and not some hundreds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import VectorError

__all__ = ["KeyIndex", "keys_of"]

_SIZE = 16


def keys_of(requests: Iterable[str]) -> NDArray[np.uint8]:
    """(n, 16): a hash of every request."""
    hashes = b"".join(hashlib.blake2b(request.encode(), digest_size=_SIZE).digest() for request in requests)
    return np.frombuffer(hashes, dtype=np.uint8).reshape(-1, _SIZE)


class KeyIndex:
    """In which file, and in which row of it, the answer to a request lies.

    What is added is sorted in when something is next looked for.
    """

    def __init__(self) -> None:
        self._keys: NDArray[Any] = np.empty(0, dtype=f"S{_SIZE}")
        self._files = np.empty(0, dtype=np.int32)
        self._rows = np.empty(0, dtype=np.int32)
        self._added: list[tuple[NDArray[Any], int]] = []

    def add(self, keys: NDArray[Any], file: int) -> None:
        """Note the keys (n, 16) of a file, in the order of its rows."""
        if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != _SIZE:
            raise VectorError(f"keys are an array (n, {_SIZE}) of bytes, got {keys.dtype} {keys.shape}")
        self._added.append((_as_strings(keys), file))

    def find(self, keys: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The file and the row of every key (n, 16); -1 where there is none."""
        self._sort_in()
        if not len(self._keys):
            return np.full(len(keys), -1), np.full(len(keys), -1)
        wanted = _as_strings(keys)
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        there = self._keys[places] == wanted
        return np.where(there, self._files[places], -1), np.where(there, self._rows[places], -1)

    def drop(self, files: Sequence[int]) -> None:
        """Forget all keys of some files."""
        self._sort_in()
        kept = ~np.isin(self._files, files)
        self._keys, self._files, self._rows = self._keys[kept], self._files[kept], self._rows[kept]

    def _sort_in(self) -> None:
        if not self._added:
            return
        sizes = [len(keys) for keys, _ in self._added]
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._added)])
        files = np.repeat(np.array([file for _, file in self._added], dtype=np.int32), sizes)
        rows = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._files = np.concatenate([self._files, files])[order]
        self._rows = np.concatenate([self._rows, rows])[order]
        self._added = []


def _as_strings(keys: NDArray[np.uint8]) -> NDArray[Any]:
    """Keys (n, 16) as what can be sorted and compared: strings of bytes."""
    return np.ascontiguousarray(keys).view(f"S{_SIZE}").reshape(-1)
