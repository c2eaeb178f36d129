"""The family of all words of a vocabulary: what its correction needs, in memory that does not grow with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.stats.multiple import step_up

__all__ = ["Corrected", "Family"]

_Floats = NDArray[np.float64]
_WAITING = 1 << 16  # p-values that are counted at once
_ROUNDING = 1e-9  # relative: how far a q may lie below its p


class Family:
    """How often every p-value occurs.

    Permutations give few different ones, so that counts replace them. Pairs of p-values are kept of words that EIBD
    detects and that may turn out to be associated.

    Attributes
    ----------
    alpha : float
    num_words, num_above : int
        Words so far, and those above IBD's threshold.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self.num_words = self.num_above = 0
        self._values = np.empty(0)
        self._counts = np.empty((3, 0), dtype=np.int64)  # of all words, of those above, of those above every group
        self._waiting: list[tuple[_Floats, NDArray[np.bool_]]] = []
        self._pairs: list[_Floats] = []
        self._num_excess = 0

    def add(self, p: _Floats, marks: NDArray[np.bool_]) -> None:
        """Count words with their p-values of the association and of the excess, (n, 2), and ``marks`` (n, 3).

        Marks: above IBD's threshold, above it against every group, and detected by EIBD.
        """
        above, every, eibd = marks.T
        self.num_words += len(p)
        self.num_above += int(above.sum())
        self._num_excess += int((~np.isnan(p[:, 1])).sum())
        self._pairs.append(p[eibd & (p[:, 0] <= self.alpha * (1.0 + _ROUNDING))])
        self._waiting.append((p[:, 0].copy(), np.stack([np.ones_like(above), above, above & every])))
        if sum(len(waiting) for waiting, _ in self._waiting) >= _WAITING:
            self._count()

    def _count(self) -> None:
        """Join what waits with what was counted before."""
        p = np.concatenate([self._values, *(waiting for waiting, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(marks for _, marks in self._waiting)], axis=1)
        given = ~np.isnan(p)
        self._values, places = np.unique(p[given], return_inverse=True)
        rows = (np.bincount(places, row[given], len(self._values)) for row in counts)
        self._counts = np.stack([row.astype(np.int64) for row in rows])
        self._waiting = []

    def corrected(self) -> Corrected:
        """What Benjamini and Hochberg's correction makes of it."""
        self._count()
        adjusted = step_up(self._values, self._counts[0])
        significant = adjusted <= self.alpha
        pairs = np.concatenate([np.empty((0, 2)), *self._pairs])
        chosen = pairs[significant[np.searchsorted(self._values, pairs[:, 0])]]
        excess = np.sort(chosen[~np.isnan(chosen[:, 1]), 1])
        # All others stand at 1. Correction first and choice after would not do: words that are chosen hold more of the
        # chance than their share (Katsevich et al. 2023).
        others = self._num_excess - len(excess)
        values = np.append(excess, 1.0) if others else excess
        counts = np.append(np.ones(len(excess), dtype=np.int64), others)[: len(values)]
        adjusted_excess = step_up(values, counts)
        _, num_associated, num_every = self._counts[:, significant].sum(axis=1).tolist()
        return Corrected(
            values=self._values,
            adjusted=adjusted,
            values_excess=values,
            adjusted_excess=adjusted_excess,
            num_associated=num_associated,
            num_every=num_every,
            num_eibd=len(chosen),
            num_emergent=int((adjusted_excess[: len(excess)] <= self.alpha).sum()),
        )


@dataclass(frozen=True, eq=False)
class Corrected:
    """q-values of all p-values that occur, and how many words hold after correction."""

    values: _Floats
    adjusted: _Floats
    values_excess: _Floats
    adjusted_excess: _Floats
    num_associated: int
    num_every: int
    num_eibd: int
    num_emergent: int

    def q(self, p: _Floats) -> _Floats:
        """q-values of the association. The share of chance among words with a q of alpha or less is at most alpha."""
        return _looked_up(p, self.values, self.adjusted)

    def q_excess(self, p: _Floats, eibd: NDArray[np.bool_]) -> _Floats:
        """q-values of the excess: of words that EIBD detects and that are associated; of others 1."""
        return _looked_up(np.where(eibd | np.isnan(p), p, 1.0), self.values_excess, self.adjusted_excess)


def _looked_up(p: _Floats, values: _Floats, adjusted: _Floats) -> _Floats:
    found = np.full(len(p), np.nan)
    given = ~np.isnan(p)
    found[given] = adjusted[np.searchsorted(values, p[given])]
    return found
