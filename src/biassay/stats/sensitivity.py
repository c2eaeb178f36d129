"""The smallest change of an output matrix that brings a token to the top: the distance of the sensitivity test (SeT).

Only the component of every row along the hidden state h moves. With logits l and gaps g_i = l_i - l_t + margin of all
other tokens, largest first, the best rise of the target is a = (g_1 + ... + g_k) / (k + 1) for the largest k with
g_k > a; each of these k tokens falls by the rest of its gap, so that

    |h|^2 Delta = a^2 + sum (g_i - a)^2 = sum g_i^2 - (k + 1) a^2.

The largest logits of a context, sorted once, and two running sums serve all its targets: leaving out the target itself,
and going from logits to gaps, only adds constants, and k is found by halving. It is small, for g_k must stay near the
mean of all larger ones; where it is not, more logits are taken. Arrays may be NumPy's or torch's, on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["SortedLogits", "sensitivity"]


_HEAD = 512


class SortedLogits:
    """The largest logits of some contexts (b, V), sorted once for any number of targets."""

    def __init__(self, logits: Any, head: int = _HEAD) -> None:
        self._xp = xp = array_namespace(logits)
        self._logits, self._all = logits, int(logits.shape[1])
        self._width = min(head, self._all)
        ordered = xp.astype(_largest_first(logits, self._width), xp.float64)
        # Only differences count; taken from the largest they lose no digits in the sums.
        self._top = ordered[:, :1]
        ordered = ordered - self._top
        self._ordered = xp.reshape(ordered, (-1,))
        self._sums = xp.reshape(xp.cumulative_sum(ordered, axis=1), (-1,))
        self._squares = xp.reshape(xp.cumulative_sum(ordered * ordered, axis=1), (-1,))

    def distances(self, rows: Any, targets: Any, hidden_norm2: Any, *, margin: float = 1.0) -> Any:
        """||A' - A||_F for target tokens (n,) in contexts ``rows`` (n,); ``hidden_norm2`` (n,) are those of the rows.

        Zero where the target is on top by the margin already.
        """
        xp = self._xp
        base = rows * self._width
        own = xp.astype(xp.take(xp.reshape(self._logits, (-1,)), rows * self._all + targets), xp.float64)
        own = own - xp.take(xp.reshape(self._top, (-1,)), rows)
        above = self._count(base, own)  # tokens above the target: those behind it move up by one
        lift = margin - own

        def gap_sum(k: Any) -> Any:
            return self._of_others(self._sums, base, above, k, own) + k * lift

        def still_above(k: Any) -> Any:
            gap = self._at(self._ordered, base, xp.where(k <= above, k, k + 1)) + lift
            return gap * (k + 1) > gap_sum(k)

        others = xp.where(above < self._width, xp.zeros_like(above) + (self._width - 1), above)
        k = self._largest(still_above, others)
        if self._width < self._all and xp.any(k == others):
            return SortedLogits(self._logits, self._all).distances(rows, targets, hidden_norm2, margin=margin)
        total = gap_sum(k)
        plain = self._of_others(self._sums, base, above, k, own)
        squares = self._of_others(self._squares, base, above, k, own * own) + 2.0 * lift * plain + k * lift * lift
        squared = xp.clip(squares - total * total / (k + 1), 0.0, None)
        return xp.where(k > 0, xp.sqrt(squared / hidden_norm2), xp.zeros_like(squared))

    def _at(self, values: Any, base: Any, place: Any) -> Any:
        """The value at a place counted from one, of every row."""
        return self._xp.take(values, base + self._xp.clip(place - 1, 0, self._width - 1))

    def _of_others(self, sums: Any, base: Any, above: Any, k: Any, own: Any) -> Any:
        """Sum over the k largest of the other tokens: with the target among the first, one more less itself."""
        xp = self._xp
        found = self._at(sums, base, xp.where(k <= above, k, k + 1)) - xp.where(k <= above, 0.0 * own, own)
        return xp.where(k > 0, found, 0.0 * found)

    def _count(self, base: Any, own: Any) -> Any:
        """How many of the ordered logits lie above the target's."""
        most = self._xp.zeros_like(base) + self._width
        return self._largest(lambda k: self._at(self._ordered, base, k) > own, most)

    def _largest(self, holds: Any, most: Any) -> Any:
        """The largest k from 0 to ``most`` (n,) for which it holds, where it holds from 1 up to some k only."""
        xp = self._xp
        low, high = xp.zeros_like(most), most
        for _ in range(self._width.bit_length() + 1):
            middle = (low + high + 1) // 2
            good = (middle == low) | holds(middle)
            low, high = xp.where(good, middle, low), xp.where(good, high, middle - 1)
        return low


def _largest_first(logits: Any, n: int) -> Any:
    """The n largest of every row, in order; the standard of array libraries has no name for this."""
    if hasattr(logits, "topk"):
        return logits.topk(n, dim=1).values
    return np.sort(np.partition(logits, -n, axis=1)[:, -n:], axis=1)[:, ::-1]


def sensitivity(
    logits: ArrayLike, targets: ArrayLike, hidden_norm2: ArrayLike, *, margin: float = 1.0
) -> NDArray[np.float64]:
    """How far the output matrix must move until each target is the top token by ``margin``: the root of SeT's Delta.

    Parameters
    ----------
    logits : (b, V) array-like
    targets : (b,) array-like of int
        Numbers of the tokens.
    hidden_norm2 : (b,) array-like
        Squared lengths of the hidden states that the matrix is multiplied with, plus one where it has a bias.
    margin : float
        How far the target must exceed all other logits.

    Returns
    -------
    (b,) float64
        Zero where the target is on top by the margin already.

    Notes
    -----
    The Frobenius norm of the smallest change of the output matrix, in closed form: see the top of this module.

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.

    Examples
    --------
    >>> import biassay
    >>> biassay.sensitivity([[2.0, 0.0, -1.0]], [1], [4.0]).round(3)  # of a gap of 3 either token moves one half
    array([1.061])
    """
    matrix, tokens = np.asarray(logits, dtype=np.float64), np.asarray(targets)
    norms = np.asarray(hidden_norm2, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise UsageError(f"logits must be an array of shape (b, V) with V at least 2, got shape {matrix.shape}")
    if tokens.shape != (len(matrix),) or norms.shape != (len(matrix),):
        raise UsageError(
            f"every row of logits needs a target and a norm: {len(matrix)} rows, targets of shape {tokens.shape}, "
            f"norms of shape {norms.shape}"
        )
    if not np.issubdtype(tokens.dtype, np.integer) or ((tokens < 0) | (tokens >= matrix.shape[1])).any():
        raise UsageError(f"targets must be numbers of tokens from 0 to {matrix.shape[1] - 1}")
    if not np.isfinite(matrix).all() or not (norms > 0.0).all():
        raise UsageError("logits must be finite and norms positive")
    found = SortedLogits(matrix).distances(np.arange(len(matrix)), tokens, norms, margin=margin)
    return np.asarray(found)
