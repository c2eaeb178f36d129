"""p-values of a group against every other group, word by word, by permuting the names of two groups at a time.

That a word is closer to a group than to every other one is shown if it is shown against each of them; the largest of
those p-values is the p-value of all. Only names of the two groups are permuted: that a third group differs from both
proves nothing. The cosines of a word with all names of a pair stay what they are, whoever has them, so that the score
rises with the sum over the first group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association import FLAT
from biassay.stats.permuting import PERMUTATIONS_AT_ONCE, ROUNDING, Place, Tally, check_permutations, permuted

__all__ = ["PairPermutations"]

_WORDS_AT_ONCE = 1024


class PairPermutations:
    """Permutations of the names of every two groups.

    Parameters are those of `NamePermutations`, but for the categories: ``count`` is the number of groups.
    """

    def __init__(
        self,
        groups: NDArray[np.intp],
        count: int,
        targets: Sequence[int],
        permutations: int,
        rng: np.random.Generator,
        *,
        stop: int | None = 50,
        place: Place | None = None,
    ) -> None:
        check_permutations(permutations)
        self.permutations, self.targets, self.place = permutations, tuple(targets), place
        self._stop = permutations + 1 if stop is None else stop
        self._groups = groups
        self._pairs = [(target, other) for target in self.targets for other in range(count) if other != target]
        # Every pair has permutations of its own, so that what is asked of other targets changes nothing.
        self._root = int(rng.integers(2**63))

    def tails(self, cosines: NDArray[np.floating]) -> NDArray[np.float64]:
        """p-values (n, targets) of words from their ``cosines`` (n, m); NaN where a pair leaves a word without one."""
        found = np.zeros((len(cosines), len(self.targets)))
        for target, other in self._pairs:
            place = self.targets.index(target)
            found[:, place] = np.maximum(found[:, place], self._of_pair(cosines, target, other))
        return found

    def _of_pair(self, cosines: NDArray[np.floating], first: int, second: int) -> NDArray[np.float64]:
        names = np.flatnonzero(np.isin(self._groups, (first, second)))
        values = cosines[:, names].astype(np.float64)
        values -= values.mean(axis=1, keepdims=True)
        own = self._groups[names] == first
        spread = values.std(axis=1)
        seen = (values @ own - ROUNDING * spread * np.sqrt(len(names))).astype(np.float32)[:, None]
        tally = Tally((spread <= FLAT)[:, None], self._stop)
        given, place = values.astype(np.float32), self.place or np.asarray
        orders = permuted(len(names), self.permutations, np.random.default_rng([self._root, *sorted((first, second))]))
        for start in range(0, self.permutations, PERMUTATIONS_AT_ONCE):
            running = tally.running
            if not len(running):
                break
            permutations = place(own[orders[start : start + PERMUTATIONS_AT_ONCE]].T.astype(np.float32))
            for at in range(0, len(running), _WORDS_AT_ONCE):
                words = running[at : at + _WORDS_AT_ONCE]
                tally.add(words, start, (place(given[words]) @ permutations)[None, ...], place(seen[words]))
        return tally.p_values(self.permutations)[:, 0]
