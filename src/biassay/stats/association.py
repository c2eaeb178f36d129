"""Compute cosines, their scale in a model, associations, effect sizes and a random baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import DegenerateError, UsageError, VectorError
from biassay.stats.skewness import invert_hall, sample_skewness

FLAT = 1e-12  # associations are differences of cosines: a spread this small is rounding


def unit_rows(vectors: ArrayLike, what: str, names: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Scale vectors to length one.

    Parameters
    ----------
    vectors : (n, d) array-like
    what : str
        Name of the vectors for error messages.
    names : sequence of str, optional
        Names of the rows for error messages. Default: their indices.

    Returns
    -------
    (n, d) float64

    Raises
    ------
    VectorError
        If a vector is zero or not finite.
    """
    array = np.asarray(vectors, dtype=np.float64)
    # Divide by the largest component first, so that squares neither overflow nor underflow.
    array = array / largest_components(array, what, names)[:, None]
    array /= np.linalg.norm(array, axis=1, keepdims=True)
    return array


def largest_components(
    array: NDArray[np.floating], what: str, names: Sequence[str] | None = None
) -> NDArray[np.floating]:
    """Return the largest absolute component of every row, and check that every row has a direction.

    Parameters
    ----------
    array : (n, d) float
    what : str
        Name of the vectors for error messages.
    names : sequence of str, optional
        Names of the rows for error messages. Default: their indices.

    Returns
    -------
    (n,) float

    Raises
    ------
    VectorError
        If a vector is zero or not finite.
    """
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] == 0:
        raise VectorError(f"{what} must be an array of shape (n, d) with n and d at least 1, got shape {array.shape}")
    largest = np.maximum(array.max(axis=1), -array.min(axis=1))  # NaN if a component is
    finite = np.isfinite(largest)
    for row in np.flatnonzero(~finite | (largest == 0.0)).tolist():
        name = repr(names[row]) if names is not None else f"row {row}"
        kind = "is zero" if finite[row] else "contains a value that is not finite"
        raise VectorError(f"{what}: the vector of {name} {kind}, so it has no direction")
    return np.asarray(largest)


def associations(targets: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute s(w, A, B) of every target: its mean cosine with A minus its mean cosine with B.

    Parameters
    ----------
    targets, a, b : (n, d), (k, d), (l, d) float64
        Unit vectors.

    Returns
    -------
    (n,) float64

    Notes
    -----
    A mean of dot products is the dot product with the mean, so one matrix-vector product is enough.

    References
    ----------
    Caliskan, A., Bryson, J. J., and Narayanan, A. (2017). Semantics derived automatically from language corpora contain
    human-like biases. Science, 356(6334), 183-186.
    """
    return np.asarray(targets @ (a.mean(axis=0) - b.mean(axis=0)))


def rounding_error(toward: NDArray[np.float64], *dtypes: np.dtype[Any]) -> float:
    """Bound the rounding error of the product of a unit vector with `toward` (d,) for vectors given in `dtypes`.

    Rounding the components of a unit vector changes the product by at most half a unit in the last place of the length
    of `toward`. Vectors in half precision were computed in float32.
    """
    narrow = any(dtype.kind == "f" and dtype.itemsize < 8 for dtype in dtypes)
    return 0.5 * float(np.finfo(np.float32 if narrow else np.float64).eps * np.linalg.norm(toward))


def effect_size(x: NDArray[np.float64], y: NDArray[np.float64], *, ddof: int = 1) -> float:
    """Compute the effect size d: the difference of mean associations over the standard deviation of all of them.

    Parameters
    ----------
    x, y : (n,), (m,) float64
        Associations of the two target sets.
    ddof : int, default 1
        Delta degrees of freedom of the standard deviation.

    Returns
    -------
    float

    References
    ----------
    Caliskan, A., Bryson, J. J., and Narayanan, A. (2017). Semantics derived automatically from language corpora contain
    human-like biases. Science, 356(6334), 183-186.
    """
    spread = float(np.concatenate([x, y]).std(ddof=ddof))
    if not spread > FLAT * max(1.0, float(np.abs(x).max()), float(np.abs(y).max())):
        raise DegenerateError(
            "all targets have the same association with the attributes, so the effect size is undefined"
        )
    return float((x.mean() - y.mean()) / spread)


def wefat_scores(words: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the single-target effect size (WEFAT) of every word between two attribute sets.

    Parameters
    ----------
    words, a, b : (n, d), (k, d), (l, d) float64
        Unit vectors.

    Returns
    -------
    (n,) float64
    """
    toward_a, toward_b = words @ a.T, words @ b.T
    spread = np.concatenate([toward_a, toward_b], axis=1).std(axis=1, ddof=1)
    if (spread <= FLAT).any():
        row = int(np.argmax(spread <= FLAT))
        raise DegenerateError(f"word {row} has the same cosine with every attribute, so its score is undefined")
    return np.asarray((toward_a.mean(axis=1) - toward_b.mean(axis=1)) / spread)


REMOVED_COMPONENTS = 3
"""Number of principal components that the similarity ``components`` removes."""
FloatArray = NDArray[np.floating]
VectorTransform = Callable[[FloatArray], NDArray[np.float64]]


def compute_directions(name: str, vectors: FloatArray, background: FloatArray) -> NDArray[np.float64]:
    """Transform vectors into unit vectors whose dot products are the similarities.

    Parameters
    ----------
    name : str
        A key of `SIMILARITIES`.
    vectors : (n, d) float
    background : (m, d) float
        Vectors of words that are unrelated to the test.

    Returns
    -------
    (n, d) float64
        NaN where the transformed vector is zero.
    """
    transformed = SIMILARITIES[name](np.asarray(background, dtype=np.float64))(vectors)
    lengths = np.linalg.norm(transformed, axis=1, keepdims=True)
    scale = np.linalg.norm(vectors, axis=1, keepdims=True) if name != "rank" else 1.0
    missing = np.full_like(transformed, np.nan)
    return np.asarray(np.divide(transformed, lengths, out=missing, where=lengths > 1e-6 * scale))


def _keep_vectors(_: FloatArray) -> VectorTransform:
    return lambda vectors: np.asarray(vectors, dtype=np.float64)


def _centre_vectors(background: FloatArray) -> VectorTransform:
    """Subtract the mean of the background, which all vectors of a model may share."""
    mean = background.mean(axis=0)
    return lambda vectors: np.asarray(vectors - mean, dtype=np.float64)


def _remove_components(background: FloatArray) -> VectorTransform:
    """Subtract the mean of the background and remove its first principal components."""
    mean = background.mean(axis=0)
    _, _, axes = np.linalg.svd(background - mean, full_matrices=False)
    top = axes[: min(REMOVED_COMPONENTS, max(0, min(background.shape) - 1))]

    def transform(vectors: FloatArray) -> NDArray[np.float64]:
        centred = np.asarray(vectors - mean, dtype=np.float64)
        return np.asarray(centred - centred @ top.T @ top)

    return transform


def _rank_components(_: FloatArray) -> VectorTransform:
    """Replace components by their ranks, so that cosines become Spearman's correlations."""

    def transform(vectors: FloatArray) -> NDArray[np.float64]:
        ranks = scipy.stats.rankdata(vectors, axis=1)
        return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))

    return transform


SIMILARITIES: Mapping[str, Callable[[FloatArray], VectorTransform]] = {
    "cosine": _keep_vectors,
    "centred": _centre_vectors,
    "components": _remove_components,
    "rank": _rank_components,
}


Floats = NDArray[np.float64]


def random_baseline_share(
    cosines: Iterable[Floats], n: int, words: int, sizes: tuple[int, int], observed: float, draws: int, seed: int
) -> float | None:
    """Return the share of random attribute sets with an effect size at least as far from 0 as `observed`.

    Parameters
    ----------
    cosines : iterable of (targets, part of the vocabulary) float64
        Consecutive columns of the table of all words. The first `n` rows are X.
    n : int
        Number of words of X.
    words : int
        Number of words of the vocabulary.
    sizes : (int, int)
        Number of words of A and of B.
    observed : float
        Effect size of the test.
    draws : int
        Number of random pairs of attribute sets.
    seed : int

    Returns
    -------
    float or None
        None if the vocabulary is too small for `sizes`.
    """
    if words < 2 * sum(sizes):
        return None
    effects = random_effect_sizes(cosines, n, words, sizes, draws, seed)
    return float((np.abs(effects) >= abs(observed)).mean())


def random_effect_sizes(
    cosines: Iterable[Floats], n: int, words: int, sizes: tuple[int, int], draws: int, seed: int
) -> Floats:
    """Compute effect sizes with random attribute sets.

    Parameters
    ----------
    cosines, n, words, sizes, draws, seed
        See `random_baseline_share`.

    Returns
    -------
    (draws,) float64
    """
    weights, start, scores = _random_set_weights(words, *sizes, draws, seed), 0, None
    for part in cosines:
        part_scores = part @ weights[start : start + part.shape[1]]
        scores = part_scores if scores is None else np.add(scores, part_scores, out=scores)
        start += part.shape[1]
    assert scores is not None
    scores -= scores.mean(axis=0)
    spread = np.sqrt(np.einsum("ij,ij->j", scores, scores) / (len(scores) - 1))
    difference = scores[:n].mean(axis=0) - scores[n:].mean(axis=0)
    return np.asarray(np.divide(difference, spread, out=np.zeros_like(difference), where=spread > 0.0))


@lru_cache(maxsize=8)
def _random_set_weights(words: int, k: int, l: int, draws: int, seed: int) -> Floats:  # noqa: E741
    """Return weights (words, draws) of the mean over k random words minus the mean over l others.

    Cached, because many tests have sets of the same sizes.
    """
    order = _random_order(words, draws, seed)
    weights = np.zeros((words, draws))
    np.put_along_axis(weights, order[:k], 1.0 / k, axis=0)
    np.put_along_axis(weights, order[k : k + l], -1.0 / l, axis=0)
    return weights


@lru_cache(maxsize=1)
def _random_order(words: int, draws: int, seed: int) -> NDArray[np.intp]:
    """Return random orders of the words, one per column, so that smaller sets are subsets of larger ones."""
    return np.argsort(np.random.default_rng(seed).random((words, draws)), axis=0)


BLOCK_SIZE = 1 << 19
"""Number of cells of a block. A table with at most this many cells is one block and stays in float64."""


def iter_row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield the rows of consecutive blocks of a table."""
    rows, columns = shape
    step = max(1, BLOCK_SIZE // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def fits_one_block(table: NDArray[np.floating]) -> bool:
    """Return True if a table has at most `BLOCK_SIZE` cells."""
    return table.size <= BLOCK_SIZE


def as_float_table(values: ArrayLike) -> NDArray[np.floating]:
    """Convert values to float64, except for large float32 tables, whose copy would be twice as large."""
    table = np.asarray(values)
    if table.dtype == np.float32 and not fits_one_block(table):
        return table
    return np.asarray(table, dtype=np.float64)


def max_abs_value(table: NDArray[np.floating]) -> float:
    """Return the largest absolute value; NaN if a value is NaN, 0 for an empty table."""
    return max(float(table.max()), -float(table.min())) if table.size else 0.0


def inner_products(rows: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.floating]:
    """Compute the products (n, m) of all rows (n, d) with all columns (m, d).

    They are computed in float64 and stored in float32 if there are more than `BLOCK_SIZE` of them.
    """
    if len(rows) * len(columns) <= BLOCK_SIZE:
        return np.asarray(rows @ columns.T)
    table = np.empty((len(rows), len(columns)), dtype=np.float32)
    for block in iter_row_blocks(table.shape):
        table[block] = rows[block] @ columns.T
    return table


_CONFIDENCE = 0.99  # confidence of the interval that the widened variance matches; comparisons use 0.975 and more


def similarity_sd(similarities: ArrayLike) -> float:
    """Return the standard deviation of the similarities of all pairs of words.

    Parameters
    ----------
    similarities : (words, words) array-like
        Symmetric. The diagonal is not used.

    Returns
    -------
    float
        The pairs are a population, so the divisor is their number.
    """
    table = np.asarray(similarities, dtype=np.float64)
    return float(table[np.triu_indices(len(table), 1)].std())


def log_contrast_variance(tables: Sequence[ArrayLike], weights: ArrayLike) -> float:
    """Return the variance of a weighted sum of log(SD), from a jackknife that deletes one word at a time.

    Parameters
    ----------
    tables : sequence of (words, words) array-like
        Similarities of the same words on several models.
    weights : (tables,) array-like
        Weight of the log(SD) of each table.

    Returns
    -------
    float

    Notes
    -----
    With a few outlying words, the jackknife is too small in samples that contain fewer of them than usual. It is
    therefore multiplied by (a / z)^2, where z is the normal quantile of a 99% interval and a the farther end of that
    interval after Hall's (1992) correction for the skewness of the influences of words. With 200 to 373 words, 3% to
    10% of them outliers, 95% intervals cover 92% to 97% instead of 85% to 92%.
    """
    n = len(np.asarray(tables[0]))
    if n < 4:
        raise UsageError(f"the variance of a scale needs at least 4 words, got {n}")
    logs = 0.5 * np.asarray(weights, dtype=np.float64) @ np.log([_variances_without_one(table) for table in tables])
    influence = logs.mean() - logs
    variance = float((n - 1) / n * (influence**2).sum())
    return variance * _skewness_widening(influence) ** 2 if variance > 0.0 else 0.0


def _skewness_widening(influence: Floats) -> float:
    """Return the ratio, at least 1, of the half width corrected for skewness to the normal half width."""
    normal = float(scipy.special.ndtri(0.5 + _CONFIDENCE / 2.0))
    ends = invert_hall((normal, -normal), sample_skewness(influence) / np.sqrt(len(influence)))
    return max(float(np.abs(ends).max()) / normal, 1.0)


def _variances_without_one(similarities: ArrayLike) -> Floats:
    """Compute the variance over the pairs that are left when each word is deleted."""
    table = np.asarray(similarities, dtype=np.float64)
    n = len(table)
    centred = table - table[np.triu_indices(n, 1)].mean()
    np.fill_diagonal(centred, 0.0)
    sums, squares = centred.sum(axis=1), (centred**2).sum(axis=1)
    pairs = (n - 1) * (n - 2) / 2
    mean = (sums.sum() / 2.0 - sums) / pairs
    return np.asarray((squares.sum() / 2.0 - squares) / pairs - mean**2)


def interaction_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Correlate two tables of cosines after removing the means of rows and columns.

    Parameters
    ----------
    first, second : (n, m) array-like
        Cosines of the same words on two models.

    Returns
    -------
    float
        Pearson correlation of the double-centred tables; 0 if one of them is constant after centring.

    Notes
    -----
    The means of rows and columns are removed because frequent words and hubs have high cosines on any model. The
    remaining interactions show how each target differs over the attributes.
    """
    x, y = (_double_centre(np.asarray(table, dtype=np.float64)) for table in (first, second))
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / size if size > 0.0 else 0.0


def _double_centre(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean())
