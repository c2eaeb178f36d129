"""Measure whether a group, in its contexts, is closer to the right traits of a pair than to the left ones (CEAT).

The effect size is the mean cosine with the right adjectives less that with the left ones, over the standard deviation
of the cosines with all of them (Cao et al. 2022, 3.1; there A and B are the right and the left traits). Cosines are
those of every context of the group with every context of an adjective. Every adjective weighs the same, however many
contexts it has: in the mean of its side, and in the standard deviation, which is that of all these cosines as they are
(ddof 0). The cosines themselves are never made: a mean of cosines is the product of two mean directions, and a mean of
their squares the product of two matrices of second moments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError, VectorError
from biassay.stats.association import unit_rows

__all__ = ["CEAT", "GroupAssociation", "GroupCosines", "drop_unlocated"]

CEAT = "ceat"
_ROWS_AT_ONCE = 4096
_BYTES_AT_ONCE = 1 << 28  # of second moments; more are made a part at a time
_NOISE = 1e-13  # of a variance of cosines, a difference of numbers up to one: anything so small is rounding
_F64 = NDArray[np.float64]


@dataclass(frozen=True)
class GroupAssociation:
    """How one group stands to one pair of traits.

    Attributes
    ----------
    effect_size : float
        Positive: closer to the right trait. NaN if it was not measured.
    standard_error : float
        Of the effect size, with other contexts of the group and the same of the adjectives; the standard deviation of
        the cosines is taken as known. It takes contexts as independent. NaN for a group with one context.
    mean_left, mean_right, spread : float
        Mean cosine with the adjectives of either side, and the standard deviation of all.
    reason : str or None
        Why it was not measured.
    """

    effect_size: float
    standard_error: float
    mean_left: float
    mean_right: float
    spread: float
    reason: str | None = None

    @classmethod
    def unmeasured(cls, reason: str) -> GroupAssociation:
        """Return an association without numbers, for a stated reason."""
        return cls(math.nan, math.nan, math.nan, math.nan, math.nan, reason)


def drop_unlocated(rows: ArrayLike) -> NDArray[np.floating]:
    """Return the rows that are not all NaN: contexts in which the model could locate the word."""
    array = np.asarray(rows)
    if array.ndim != 2:
        raise VectorError(f"the contexts of a word must be an array of shape (contexts, d), got shape {array.shape}")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    missing = np.isnan(array).all(axis=1)
    return array[~missing] if missing.any() else array


@dataclass(frozen=True, eq=False)
class GroupCosines:
    """Moments of the cosines between contexts of groups and contexts of words.

    Attributes
    ----------
    means, squares : (groups, words) float64
        Mean of the cosines of a group's contexts with a word's, and of their squares.
    covariances : (groups, words, words) float64
        Over the contexts of a group (ddof 1): of a context's mean cosines with the words.
    sizes : (groups,) int64
        Contexts of every group.
    """

    means: _F64
    squares: _F64
    covariances: _F64
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, groups: Sequence[ArrayLike], words: Sequence[ArrayLike]) -> GroupCosines:
        """From the vectors (contexts, d) of every group and every word; only their directions count."""
        of_groups, of_words = _check_arrays(groups, "group"), _check_arrays(words, "word")
        dimensions = {rows.shape[1] for rows in (*of_groups, *of_words)}
        if len(dimensions) != 1:
            raise VectorError(f"groups and words must have vectors of one dimension, got {sorted(dimensions)}")
        directions = np.stack([_mean_direction(rows) for rows in of_words])
        found = [_project_rows(rows, directions) for rows in of_groups]
        return cls(
            means=np.stack([mean for mean, _ in found]),
            squares=_squares(of_groups, of_words, dimensions.pop()),
            covariances=np.stack([covariance for _, covariance in found]),
            sizes=np.array([len(rows) for rows in of_groups], dtype=np.int64),
        )

    def association(self, group: int, left: Sequence[int], right: Sequence[int]) -> GroupAssociation:
        """Return a group's association with the words ``right`` rather than ``left``, given as indices."""
        if not left or not right:
            raise UsageError("a pair needs at least one adjective on either side")
        left, right = list(left), list(right)
        means, both = self.means[group], [*left, *right]
        variance = self.squares[group, both].mean() - means[both].mean() ** 2
        if not variance > _NOISE:
            return GroupAssociation.unmeasured("all cosines are equal, so that an effect size would divide by zero")
        low, high, spread = means[left].mean(), means[right].mean(), math.sqrt(variance)
        weights = np.zeros(len(means))
        np.add.at(weights, right, 1.0 / len(right))
        np.add.at(weights, left, -1.0 / len(left))
        error = weights @ self.covariances[group] @ weights / self.sizes[group]
        error = math.sqrt(max(0.0, error)) if self.sizes[group] > 1 else math.nan
        return GroupAssociation(float((high - low) / spread), error / spread, float(low), float(high), spread)


def _check_arrays(arrays: Sequence[ArrayLike], what: str) -> list[NDArray[np.floating]]:
    found = [np.asarray(rows) for rows in arrays]
    if not found:
        raise UsageError(f"at least one {what} is needed")
    for number, rows in enumerate(found):
        if rows.ndim != 2 or 0 in rows.shape:
            raise VectorError(f"{what} {number}: expected an array (contexts, d) that is not empty, got {rows.shape}")
    return found


def _iter_unit_rows(rows: NDArray[np.floating]) -> Iterator[_F64]:
    """Rows of length one, some at a time: as float64 all of them may not fit into memory."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield unit_rows(rows[start : start + _ROWS_AT_ONCE], f"contexts from {start} on")


def _mean_direction(rows: NDArray[np.floating]) -> _F64:
    return np.asarray(sum(part.sum(axis=0) for part in _iter_unit_rows(rows)) / len(rows))


def _project_rows(rows: NDArray[np.floating], directions: _F64) -> tuple[_F64, _F64]:
    """Mean (words,) and covariance (words, words) of the products of unit rows with some directions."""
    found = np.concatenate([part @ directions.T for part in _iter_unit_rows(rows)])
    mean = found.mean(axis=0)
    centred = found - mean
    return mean, centred.T @ centred / max(1, len(rows) - 1)


def _squares(groups: Sequence[NDArray[np.floating]], words: Sequence[NDArray[np.floating]], d: int) -> _F64:
    """Mean squared cosines (groups, words): traces of products of moments (d, d), some of their rows at a time."""
    step = max(1, _BYTES_AT_ONCE // (8 * d * (len(groups) + len(words))))
    total = np.zeros((len(groups), len(words)))
    for start in range(0, d, step):
        columns = slice(start, start + step)
        of_groups, of_words = (np.stack([_moment(r, columns) for r in arrays]) for arrays in (groups, words))
        total += of_groups @ of_words.T
    return total


def _moment(rows: NDArray[np.floating], columns: slice) -> _F64:
    """Compute some rows of the mean of u uᵀ over unit rows u, flattened."""
    return np.asarray(sum(part[:, columns].T @ part for part in _iter_unit_rows(rows)) / len(rows)).ravel()
