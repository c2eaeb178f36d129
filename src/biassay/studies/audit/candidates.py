"""Candidates compared in one prompt: sets, orders, and a test of whether choices follow the order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import UsageError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST_FOLLOWED = 0.5
"""Share of choices that the position decides, from which on choices are said to follow it."""


def draw_candidates(groups: Sequence[str], k: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Draw sets of k names so that every name is in equally many sets.

    Names are drawn at random and groups alternate, so that a set holds as many groups as possible. If k does not divide
    the number of names, every name is in several sets.

    Parameters
    ----------
    groups : sequence of str
        Group of every name.
    k : int
        Names per set.
    rng : numpy.random.Generator

    Returns
    -------
    list of tuple of int
        Indices of names.
    """
    n = len(groups)
    if not 2 <= k <= n:
        raise UsageError(f"a prompt compares at least 2 and at most all {n} names, got {k}")
    unique = list(dict.fromkeys(groups))
    members = [rng.permutation([i for i, group in enumerate(groups) if group == label]).tolist() for label in unique]
    sizes = {len(indices) for indices in members}
    is_even = len(sizes) == 1 and len(unique) % k == 0
    offsets = rng.random((len(unique), max(sizes) if is_even else 1))  # new ones per round, or the same in all rounds
    places = [
        ((j + offsets[g, j if is_even else 0]) / len(indices), name)
        for g, indices in enumerate(members)
        for j, name in enumerate(indices)
    ]
    order = [name for _, name in sorted(places)] * (k // math.gcd(n, k))
    return [tuple(order[start : start + k]) for start in range(0, len(order), k)]


def rotate(candidates: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all rotations of a set, in which every candidate is at every position once."""
    for start in range(len(candidates)):
        yield (*candidates[start:], *candidates[:start])


@dataclass(frozen=True)
class PositionTest:
    """Number of times that the candidate at each position is chosen.

    Attributes
    ----------
    counts : tuple of int
    p_value : float
        Of equal shares: chi-square, exact with fewer than five choices expected per position and two positions. It is
        conservative, because a model that looks at the candidates only chooses every position equally often.
    followed : float
        Share of choices that the favoured position decides: 0 if positions do not matter, 1 if nothing else does.
    """

    counts: tuple[int, ...]
    p_value: float
    followed: float

    def follows(self, alpha: float) -> bool:
        """Return whether the position decides at least half of the choices."""
        return self.p_value <= alpha and self.followed >= MOST_FOLLOWED

    def describe(self) -> str:
        """Return the share of the favoured position in words."""
        favoured = int(np.argmax(self.counts))
        return f"candidate {LETTERS[favoured]} is chosen in {self.counts[favoured] / sum(self.counts):.0%} of prompts"


def check_positions(positions: Sequence[int], k: int) -> PositionTest | None:
    """Test whether choices follow the position; None without choices.

    Parameters
    ----------
    positions : sequence of int
        Position of every chosen candidate.
    k : int
        Candidates per prompt.
    """
    counts: NDArray[np.int64] = np.bincount(np.asarray(positions, dtype=np.intp), minlength=k)
    total = int(counts.sum())
    if not total:
        return None
    if k == 2 and total < 10:
        p_value = float(scipy.stats.binomtest(int(counts[0]), total).pvalue)
    else:
        p_value = float(scipy.stats.chisquare(counts).pvalue)
    share = float(counts.max()) / total
    return PositionTest(tuple(counts.tolist()), p_value, max((share - 1.0 / k) / (1.0 - 1.0 / k), 0.0))
