"""Associations, their effect size, and WEFAT's effect size of single words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import DegenerateError, VectorError

__all__ = ["FLAT", "associations", "effect_size", "largest_parts", "rounding", "unit_rows", "wefat_scores"]

FLAT = 1e-12  # associations are differences of cosines: a spread this small is rounding


def unit_rows(vectors: ArrayLike, what: str, names: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Rows of ``vectors`` (n, d) scaled to length one; a row without a direction is an error that names it."""
    array = np.asarray(vectors, dtype=np.float64)
    array = array / largest_parts(array, what, names)[:, None]  # first, so that squares neither overflow nor vanish
    array /= np.linalg.norm(array, axis=1, keepdims=True)
    return array


def largest_parts(array: NDArray[np.floating], what: str, names: Sequence[str] | None = None) -> NDArray[np.floating]:
    """The largest component of every row, by its size; a row without a direction is an error that names it."""
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] == 0:
        raise VectorError(f"{what} must be an array of shape (n, d) with n and d at least 1, got shape {array.shape}")
    largest = np.maximum(array.max(axis=1), -array.min(axis=1))  # not a number, where a component is none
    finite = np.isfinite(largest)
    for row in np.flatnonzero(~finite | (largest == 0.0)).tolist():
        name = repr(names[row]) if names is not None else f"row {row}"
        kind = "is zero" if finite[row] else "holds a value that is not finite"
        raise VectorError(f"{what}: the vector of {name} {kind}, so it has no direction")
    return np.asarray(largest)


def associations(targets: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """s(w, A, B) of every target: mean cosine with A minus mean cosine with B.

    All rows are unit vectors: ``targets`` (n, d), ``a`` (k, d), ``b`` (l, d). Since a mean of dot products is the dot
    product with the mean, one matrix-vector product does it.
    """
    return np.asarray(targets @ (a.mean(axis=0) - b.mean(axis=0)))


def rounding(toward: NDArray[np.float64], *dtypes: np.dtype[Any]) -> float:
    """How far rounding may move the product of a unit vector with ``toward`` (d,), if vectors came in ``dtypes``.

    Half a unit in the last place of the length of ``toward``, in the narrowest arithmetic: no more can come of rounding
    the components of a unit vector. What came in half precision was computed in float32.
    """
    narrow = any(dtype.kind == "f" and dtype.itemsize < 8 for dtype in dtypes)
    return 0.5 * float(np.finfo(np.float32 if narrow else np.float64).eps * np.linalg.norm(toward))


def effect_size(x: NDArray[np.float64], y: NDArray[np.float64], *, ddof: int = 1) -> float:
    """Difference of the mean associations in units of the standard deviation over both sets together."""
    spread = float(np.concatenate([x, y]).std(ddof=ddof))
    if not spread > FLAT * max(1.0, float(np.abs(x).max()), float(np.abs(y).max())):
        raise DegenerateError(
            "all targets have the same association with the attributes: the effect size would divide by zero"
        )
    return float((x.mean() - y.mean()) / spread)


def wefat_scores(
    words: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64], *, ddof: int = 1
) -> NDArray[np.float64]:
    """Single-target effect size of every word (unit rows, shape (n, d)) between two attribute sets."""
    toward_a, toward_b = words @ a.T, words @ b.T
    spread = np.concatenate([toward_a, toward_b], axis=1).std(axis=1, ddof=ddof)
    if (spread <= FLAT).any():
        row = int(np.argmax(spread <= FLAT))
        raise DegenerateError(f"word {row} has the same cosine with every attribute: its score would divide by zero")
    return np.asarray((toward_a.mean(axis=1) - toward_b.mean(axis=1)) / spread)
