"""p-values of association scores, word by word, by permuting names among the groups.

Two hypotheses are tested for every word and target group. **Associated**: were the names of all groups exchangeable,
would the largest score of the target against any other group be as large? **Excess**: were a group's association the
sum of what its categories contribute, would the target's excess over that sum be as large? The second permutes the
residuals of the sum (Freedman and Lane), and compares the excess in units of what the sum leaves unexplained. The unit
is the name; residuals are taken as exchangeable, so that names of all groups should vary alike. Simulated with 6 to 12
names a group, normal, t3 and skewed, its level at 0.05 is 0.045 to 0.054; with spreads as those of the names in GloVe
0.03 to 0.063, and 0.10 if the names of the target alone vary three times as much.

The same permutations are used for every word, so that words can be taken in blocks of any size with the same result.
All is done in single precision with the mean of every word's cosines taken off, which leaves six digits of a statistic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from biassay.stats.permuted_there import TINY, associated_there, excess_there
from biassay.stats.permuting import PERMUTATIONS_AT_ONCE, ROUNDING, Place, Tally, check_permutations, permuted

__all__ = ["NamePermutations", "PermutedTails"]

_F32 = NDArray[np.float32]
_WORDS_AT_ONCE = 256  # with so many permutations, the arrays of one step stay in a core's cache
_WORDS_THERE = 8192  # on another device, where steps are large and arrays are not reused
_NOTHING = 1e-9  # of a length: what rounding leaves of zero


@dataclass(frozen=True, eq=False)
class PermutedTails:
    """p-values (n, targets) of both hypotheses; NaN where a word has the same cosine with every name."""

    associated: NDArray[np.float64]
    excess: NDArray[np.float64]


class NamePermutations:
    """Permutations of m names to groups, and the p-values they give.

    Parameters
    ----------
    groups : (m,) int
        The group of every name, from 0.
    categories : (groups, c) int
        The value of every group in every category.
    targets : sequence of int
        The groups that are tested.
    permutations : int
        How many random permutations are made; the smallest p-value is 1 / (permutations + 1).
    rng : numpy Generator
    place : function, optional
        Takes an array to where permutations are made, as an array of any library of the array standard. None: here.
    stop : int or None
        A word is finished once so many permutations reach its statistic (Besag and Clifford): its p-value is not small
        and is then known well enough, so that the work goes to the small ones. None: every word gets all permutations.
    """

    def __init__(
        self,
        groups: NDArray[np.intp],
        categories: NDArray[np.intp],
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
        self._sizes = np.bincount(groups, minlength=len(categories))
        self._groups, self._orders = groups, permuted(len(groups), permutations, rng)
        self._pairs = _pairs_of(self.targets, len(self._sizes))
        self._additive = _additive_basis(groups, categories)
        self._excess = _excess_contrasts(groups, self._additive, self.targets)

    def tails(self, cosines: NDArray[np.floating], largest: NDArray[np.float64]) -> PermutedTails:
        """p-values of words from their ``cosines`` (n, m) and their ``largest`` scores (n, targets)."""
        centred = cosines - cosines.mean(axis=1, keepdims=True, dtype=np.float64)
        left = centred - (centred @ self._additive) @ self._additive.T
        squared = (left**2).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            excess = _signed_square(left @ self._excess) / squared[:, None]
        parts = centred, centred**2, left, squared, _lowered(_signed_square(largest)), _lowered(excess)
        words = _Words(*(part.astype(np.float32) for part in parts))
        tallies = [Tally(np.isnan(seen), self._stop) for seen in (largest, excess)]
        done = 0
        for permutations in self._batches():
            running = np.union1d(tallies[0].running, tallies[1].running)
            if not len(running):
                break
            self._count(words.rows(running), permutations, running, done, tallies)
            done += permutations.n
        return PermutedTails(*(tally.p_values(self.permutations) for tally in tallies))

    def _batches(self) -> Iterator[_Permutations]:
        for start in range(0, self.permutations, PERMUTATIONS_AT_ONCE):
            orders = self._orders[start : start + PERMUTATIONS_AT_ONCE].astype(np.intp)
            member = (np.arange(len(self._sizes))[:, None, None] == self._groups[orders].T).astype(np.float32)
            means = member / self._sizes[:, None, None].astype(np.float32)
            yield _Permutations(
                means, member, _permuted_columns(self._excess, orders), _permuted_columns(self._additive, orders)
            )

    def _count(
        self, words: _Words, permutations: _Permutations, numbers: NDArray[np.intp], done: int, tallies: Sequence[Tally]
    ) -> None:
        """Count in both tallies where a batch of permutations reaches the observed statistics of some words."""
        if self.place is not None:
            self._count_there(self.place, words, permutations, numbers, done, tallies)
            return
        # One set of arrays for all tiles: fresh ones would cost more than what is computed in them.
        rows = min(_WORDS_AT_ONCE, len(words.centred))
        made = [np.empty((len(matrices), rows, permutations.n), dtype=np.float32) for matrices in permutations.matrices]
        scratch = np.empty((3 + len(self.targets), rows, permutations.n), dtype=np.float32)
        for at in range(0, len(words.centred), rows):
            tile = words.rows(slice(at, at + rows))
            n = len(tile.centred)
            sources = (tile.centred, tile.squares, tile.left, tile.left)
            for source, matrices, out in zip(sources, permutations.matrices, made, strict=True):
                np.matmul(source, matrices, out=out[:, :n])
            means, squares, excess, explained = (array[:, :n] for array in made)
            those = numbers[at : at + n]
            tallies[0].add(those, done, self._as_associated(means, squares, scratch[:, :n]), tile.largest)
            tallies[1].add(those, done, self._as_excess(excess, explained, tile.squared, scratch[:, :n]), tile.excess)

    def _count_there(
        self,
        place: Place,
        words: _Words,
        permutations: _Permutations,
        numbers: NDArray[np.intp],
        done: int,
        tallies: Sequence[Tally],
    ) -> None:
        """The same with arrays of another library, in fewer and larger steps."""
        matrices = [place(matrix) for matrix in permutations.matrices]
        for at in range(0, len(words.centred), _WORDS_THERE):
            tile = words.rows(slice(at, at + _WORDS_THERE))
            sources = map(place, (tile.centred, tile.squares, tile.left, tile.left))
            means, squares, excess, explained = (
                source @ matrix for source, matrix in zip(sources, matrices, strict=True)
            )
            those = numbers[at : at + _WORDS_THERE]
            associated = associated_there(means, squares, self._sizes, self._pairs, self.targets)
            tallies[0].add(those, done, associated, place(tile.largest))
            tallies[1].add(those, done, excess_there(excess, explained, place(tile.squared)), place(tile.excess))

    def _as_associated(self, mean: _F32, squares: _F32, scratch: _F32) -> _F32:
        """The largest score of every target, (targets, words, permutations), squared, with its sign.

        ``mean`` and ``squares`` (groups, words, permutations) are mean cosines of the groups and their sums of squares;
        the latter become those about the mean of the group.
        """
        sizes, within, (signed, square, variance) = self._sizes, squares, scratch[:3]
        for group, size in enumerate(sizes):
            np.square(mean[group], out=square)
            within[group] -= np.multiply(square, np.float32(size), out=square)
            within[group] += TINY
        best = dict(zip(self.targets, scratch[3:], strict=True))
        scratch[3:] = -np.inf
        for i, j in self._pairs:
            # Squares within both groups, and what their difference adds, are those about the common mean.
            n = sizes[i] + sizes[j]
            np.subtract(mean[i], mean[j], out=signed)
            np.abs(signed, out=square)
            signed *= square
            np.abs(signed, out=square)
            square *= np.float32(sizes[i] * sizes[j] / n)
            np.add(within[i], within[j], out=variance)
            variance += square
            signed /= variance
            signed *= np.float32(n - 1)
            np.maximum(best[i], signed, out=best[i])
            if j in best:
                np.maximum(best[j], np.negative(signed, out=signed), out=best[j])
        return scratch[3:]

    def _as_excess(self, excess: _F32, explained: _F32, squared: _F32, scratch: _F32) -> _F32:
        """The excess of every target in every permutation, (targets, words, permutations), squared, with its sign."""
        square, unexplained = scratch[:2]
        unexplained[:] = squared[:, None] + TINY
        for column in explained:
            unexplained -= np.square(column, out=square)
        for share in excess:
            share *= np.abs(share, out=square)
            share /= unexplained
        return excess


@dataclass(frozen=True, eq=False)
class _Words:
    """Words as they are permuted: cosines, their squares, residuals of the sum of categories; observed statistics."""

    centred: _F32
    squares: _F32
    left: _F32
    squared: _F32
    largest: _F32
    excess: _F32

    def rows(self, rows: slice | NDArray[np.intp]) -> _Words:
        return _Words(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class _Permutations:
    """Matrices (what, names, permutations): they turn cosines of words with names into statistics of the groups."""

    means: _F32
    members: _F32
    excess: _F32
    additive: _F32

    @property
    def n(self) -> int:
        return int(self.means.shape[2])

    @property
    def matrices(self) -> tuple[_F32, ...]:
        return self.means, self.members, self.excess, self.additive


def _pairs_of(targets: Sequence[int], groups: int) -> list[tuple[int, int]]:
    """Every pair of groups that holds a target, once, with a target first."""
    pairs = [(target, other) for target in targets for other in range(groups) if other != target]
    return [(i, j) for place, (i, j) in enumerate(pairs) if (j, i) not in pairs[:place]]


def _additive_basis(groups: NDArray[np.intp], categories: NDArray[np.intp]) -> NDArray[np.float64]:
    """Orthonormal columns that span all sums of what the categories contribute, but for a constant."""
    codes = categories[groups]
    columns = [codes[:, [c]] == np.unique(codes[:, c])[:-1] for c in range(codes.shape[1])]
    design = np.concatenate(columns, axis=1).astype(np.float64)
    basis, size, _ = np.linalg.svd(design - design.mean(axis=0), full_matrices=False)
    return np.asarray(basis[:, size > 1e-9 * size.max()])


def _excess_contrasts(
    groups: NDArray[np.intp], additive: NDArray[np.float64], targets: Sequence[int]
) -> NDArray[np.float64]:
    """For every target the unit column that measures its excess over the sum of its categories.

    It is zero where the categories leave nothing over, as a single one does: every excess is then 0, with a p of 1.
    """
    inside = (groups[:, None] == np.asarray(targets)).astype(np.float64)
    inside -= inside.mean(axis=0)
    excess = inside - additive @ (additive.T @ inside)
    size = np.linalg.norm(excess, axis=0)
    left = size > _NOTHING * np.linalg.norm(inside, axis=0)
    return np.asarray(np.where(left, excess / np.where(left, size, 1.0), 0.0))


def _permuted_columns(columns: NDArray[np.float64], orders: NDArray[np.intp]) -> _F32:
    """(columns, names, permutations): every column in every order."""
    return np.ascontiguousarray(columns[orders].transpose(2, 1, 0), dtype=np.float32)


def _signed_square(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(values * np.abs(values))


def _lowered(seen: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(seen - ROUNDING * np.abs(seen))
