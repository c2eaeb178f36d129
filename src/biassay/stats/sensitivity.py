"""Distance of the sensitivity test (SeT): the smallest change of an output matrix that makes a token the top one.

Only the component of every row along the hidden state h changes. Let l be the logits and g_i = l_i - l_t + margin the
gaps of all other tokens, largest first. The optimal rise of the target is a = (g_1 + ... + g_k) / (k + 1) for the
largest k with g_k > a. Each of these k tokens falls by the rest of its gap, so that

    |h|^2 Delta = a^2 + sum (g_i - a)^2 = sum g_i^2 - (k + 1) a^2.

The largest logits of a context, sorted once, and two cumulative sums serve all its targets: leaving out the target, and
converting logits to gaps, only adds constants, and bisection finds k. It is usually small, because g_k must be close to
the mean of all larger gaps; otherwise all logits are sorted. Arrays may be NumPy's or torch's, on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

_HEAD = 512


class SortedLogits:
    """Largest logits of several contexts (b, V), sorted once for any number of targets."""

    def __init__(self, logits: Any, head: int = _HEAD) -> None:
        self._xp = xp = array_namespace(logits)
        self._logits, self._vocabulary = logits, int(logits.shape[1])
        self._width = min(head, self._vocabulary)
        ordered = xp.astype(_largest_first(logits, self._width), xp.float64)
        # Only differences count. Differences from the largest logit lose no digits in the sums.
        self._top = ordered[:, :1]
        ordered = ordered - self._top
        self._ordered = xp.reshape(ordered, (-1,))
        self._sums = xp.reshape(xp.cumulative_sum(ordered, axis=1), (-1,))
        self._squares = xp.reshape(xp.cumulative_sum(ordered * ordered, axis=1), (-1,))

    def distances(self, rows: Any, targets: Any, hidden_norm2: Any, *, margin: float = 1.0) -> Any:
        """Compute ||A' - A||_F for pairs of a context and a target token.

        Parameters
        ----------
        rows, targets : (n,) int
            Indices of the contexts and of the tokens.
        hidden_norm2 : (n,) float
            Squared norms of the hidden states of the contexts.
        margin : float, default 1

        Returns
        -------
        (n,) float64
            Zero where the target is already the top token by the margin.
        """
        xp = self._xp
        base = rows * self._width
        logit = xp.astype(xp.take(xp.reshape(self._logits, (-1,)), rows * self._vocabulary + targets), xp.float64)
        logit = logit - xp.take(xp.reshape(self._top, (-1,)), rows)
        above = self._count_above(base, logit)  # tokens after the target move up by one position
        lift = margin - logit

        def gap_sum(k: Any) -> Any:
            return self._sum_others(self._sums, base, above, k, logit) + k * lift

        def still_above(k: Any) -> Any:
            gap = self._at(self._ordered, base, xp.where(k <= above, k, k + 1)) + lift
            return gap * (k + 1) > gap_sum(k)

        others = xp.where(above < self._width, xp.zeros_like(above) + (self._width - 1), above)
        k = self._bisect(still_above, others)
        if self._width < self._vocabulary and xp.any(k == others):
            return SortedLogits(self._logits, self._vocabulary).distances(rows, targets, hidden_norm2, margin=margin)
        total = gap_sum(k)
        plain = self._sum_others(self._sums, base, above, k, logit)
        squares = self._sum_others(self._squares, base, above, k, logit * logit) + 2.0 * lift * plain + k * lift * lift
        squared = xp.clip(squares - total * total / (k + 1), 0.0, None)
        return xp.where(k > 0, xp.sqrt(squared / hidden_norm2), xp.zeros_like(squared))

    def _at(self, values: Any, base: Any, position: Any) -> Any:
        """Return the value of every row at a position, counted from one."""
        return self._xp.take(values, base + self._xp.clip(position - 1, 0, self._width - 1))

    def _sum_others(self, sums: Any, base: Any, above: Any, k: Any, value: Any) -> Any:
        """Return the sum over the k largest tokens without the target, which has this value."""
        xp = self._xp
        total = self._at(sums, base, xp.where(k <= above, k, k + 1)) - xp.where(k <= above, 0.0 * value, value)
        return xp.where(k > 0, total, 0.0 * total)

    def _count_above(self, base: Any, logit: Any) -> Any:
        """Count the ordered logits above that of the target."""
        highest = self._xp.zeros_like(base) + self._width
        return self._bisect(lambda k: self._at(self._ordered, base, k) > logit, highest)

    def _bisect(self, holds: Any, highest: Any) -> Any:
        """Return the largest k from 0 to `highest` (n,) for which a condition holds that is monotone in k."""
        xp = self._xp
        low, high = xp.zeros_like(highest), highest
        for _ in range(self._width.bit_length() + 1):
            middle = (low + high + 1) // 2
            good = (middle == low) | holds(middle)
            low, high = xp.where(good, middle, low), xp.where(good, high, middle - 1)
        return low


def _largest_first(logits: Any, n: int) -> Any:
    """Return the n largest values of every row in descending order; the array API has no function for it."""
    if hasattr(logits, "topk"):
        return logits.topk(n, dim=1).values
    return np.sort(np.partition(logits, -n, axis=1)[:, -n:], axis=1)[:, ::-1]


def sensitivity(
    logits: ArrayLike, targets: ArrayLike, hidden_norm2: ArrayLike, *, margin: float = 1.0
) -> NDArray[np.float64]:
    """Compute how far the output matrix must change until each target is the top token by `margin`.

    Parameters
    ----------
    logits : (b, V) array-like
    targets : (b,) array-like of int
        Token ids.
    hidden_norm2 : (b,) array-like
        Squared norms of the hidden states that the matrix is multiplied with, plus one if it has a bias.
    margin : float
        Amount by which the target must exceed all other logits.

    Returns
    -------
    (b,) float64
        Zero where the target is already the top token by the margin.

    Notes
    -----
    The result is the Frobenius norm of the smallest change of the output matrix, the square root of SeT's Delta [1]_,
    in closed form.

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.

    Examples
    --------
    >>> import biassay
    >>> biassay.sensitivity([[2.0, 0.0, -1.0]], [1], [4.0]).round(3)  # each token closes half of the gap of 3
    array([1.061])
    """
    matrix, tokens = np.asarray(logits, dtype=np.float64), np.asarray(targets)
    norms = np.asarray(hidden_norm2, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise UsageError(f"logits must be an array of shape (b, V) with V at least 2, got shape {matrix.shape}")
    if tokens.shape != (len(matrix),) or norms.shape != (len(matrix),):
        raise UsageError(
            f"expected one target and one norm for each of {len(matrix)} rows of logits, got targets of shape "
            f"{tokens.shape} and norms of shape {norms.shape}"
        )
    if not np.issubdtype(tokens.dtype, np.integer) or ((tokens < 0) | (tokens >= matrix.shape[1])).any():
        raise UsageError(f"targets must be token ids from 0 to {matrix.shape[1] - 1}")
    if not np.isfinite(matrix).all() or not (norms > 0.0).all():
        raise UsageError("logits must be finite and norms positive")
    return np.asarray(SortedLogits(matrix).distances(np.arange(len(matrix)), tokens, norms, margin=margin))
