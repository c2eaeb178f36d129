"""Which words were seen before, in sixteen bytes a word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["SeenWords"]

_Hashes = NDArray[np.int64]
_LONGEST = 1 << 18  # hashes in one array: to join longer ones would take more memory than it saves time


class SeenWords:
    """Words seen so far, each as two hashes of 64 bits, in arrays sorted by the first.

    That two different words among ten million are taken for one has a probability below 1e-24.
    """

    def __init__(self) -> None:
        self._held: list[tuple[_Hashes, _Hashes]] = []  # longer ones first

    def new(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Which of some words come for the first time; from now on they are all seen."""
        first, second = _hashes(words), _hashes([f"{word} " for word in words])
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        fresh = np.ones(len(words), dtype=bool)
        fresh[1:] = (np.diff(first) != 0) | (np.diff(second) != 0)  # of words given twice the earlier
        for held, beside in self._held:
            places = np.searchsorted(held, first)
            for row in np.flatnonzero(held[np.minimum(places, len(held) - 1)] == first).tolist():
                equal = slice(places[row], np.searchsorted(held, first[row], "right"))
                fresh[row] &= second[row] not in beside[equal]
        self._add(first[fresh], second[fresh])
        found = np.empty(len(words), dtype=bool)
        found[order] = fresh
        return found

    def _add(self, first: _Hashes, second: _Hashes) -> None:
        """Join arrays of like length, so that there are few of them and none is joined often."""
        while self._held and len(self._held[-1][0]) <= 2 * len(first) < _LONGEST:
            first, second = (np.concatenate(pair) for pair in zip(self._held.pop(), (first, second), strict=True))
            order = np.argsort(first, kind="stable")
            first, second = first[order], second[order]
        if len(first):
            self._held.append((first, second))


def _hashes(words: Sequence[str]) -> _Hashes:
    return np.fromiter(map(hash, words), dtype=np.int64, count=len(words))
