"""Rates of missing responses, and exact tests of whether they differ between poles or between prompts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.crossed_answers import exchanged_words

__all__ = ["MissingRates", "missing_by_level", "missing_by_pole"]


@dataclass(frozen=True)
class MissingRates:
    """How many responses are missing at each level of a factor.

    Attributes
    ----------
    totals, missing : (levels,) int
        Responses that were asked for, and those that are missing.
    p_value : float or None
        Exact and two-sided: the rate is the same at all levels. None: there is one level only.
    """

    totals: NDArray[np.int64]
    missing: NDArray[np.int64]
    p_value: float | None

    @property
    def rates(self) -> NDArray[np.float64]:
        return np.asarray(self.missing / self.totals)


def missing_by_pole(missing: ArrayLike, negative: ArrayLike) -> MissingRates:
    """Compare how often positive and negative words are missing.

    Words are the observations: the exact test exchanges them between the poles.

    Parameters
    ----------
    missing : (responses, words) bool
    negative : (words,) bool

    Returns
    -------
    MissingRates
        Positive words first.

    Examples
    --------
    >>> import numpy as np
    >>> missing = np.tile([False] * 4 + [True] * 4, (10, 1))
    >>> found = missing_by_pole(missing, [False] * 4 + [True] * 4)
    >>> found.rates.tolist(), round(found.p_value, 3)
    ([0.0, 1.0], 0.029)
    """
    table, is_negative = np.asarray(missing, dtype=bool), np.asarray(negative, dtype=bool)
    if table.ndim != 2 or is_negative.shape != table.shape[1:]:
        raise UsageError(f"expected responses x words and a pole per word, got {table.shape} and {is_negative.shape}")
    poles = [table[:, is_negative == pole] for pole in (False, True)]
    exact = exchanged_words(table.mean(axis=0), is_negative)
    totals, counts = (np.array([measure(pole) for pole in poles], dtype=np.int64) for measure in (np.size, np.sum))
    return MissingRates(totals, counts, None if exact is None else exact.value)


def missing_by_level(missing: ArrayLike, levels: ArrayLike) -> MissingRates:
    """Compare how often responses are missing between prompts of different kinds.

    Responses are the observations. Each level is compared with the others by Fisher's exact test; with more than two
    levels, the smallest p-value is multiplied by their number.

    Parameters
    ----------
    missing : (responses,) bool
    levels : (responses,) int or str
        The level of each response, such as the pair of group words in its prompt.

    Returns
    -------
    MissingRates
        By level, in sorted order.

    Examples
    --------
    >>> missing_by_level([True] * 5 + [False] * 5, [0] * 5 + [1] * 5).p_value < 0.01
    True
    """
    gone, of = np.asarray(missing, dtype=bool), np.asarray(levels)
    if gone.ndim != 1 or of.shape != gone.shape or not len(gone):
        raise UsageError(f"expected one level per response, got shapes {gone.shape} and {of.shape}")
    names = np.unique(of)
    totals = np.array([(of == name).sum() for name in names], dtype=np.int64)
    counts = np.array([gone[of == name].sum() for name in names], dtype=np.int64)
    return MissingRates(totals, counts, _homogeneity(counts, totals) if len(names) > 1 else None)


def _homogeneity(counts: NDArray[np.int64], totals: NDArray[np.int64]) -> float:
    """Return the smallest p-value of Fisher's exact test of one level against the others, times the number of tests."""
    p_values = [
        _fisher(int(count), int(total), int(counts.sum()), int(totals.sum()))
        for count, total in zip(counts, totals, strict=True)
    ]
    return min(1.0, min(p_values) * (len(p_values) if len(p_values) > 2 else 1))


def _fisher(count: int, total: int, all_counts: int, all_totals: int) -> float:
    """Return Fisher's exact two-sided p-value of ``count`` in ``total``, given both sums."""
    possible = np.arange(max(0, total - all_totals + all_counts), min(total, all_counts) + 1)
    log_p = _log_choose(all_counts, possible) + _log_choose(all_totals - all_counts, total - possible)
    log_p = log_p - np.logaddexp.reduce(log_p)
    observed = log_p[possible == count][0]
    return min(1.0, float(np.exp(log_p[log_p <= observed + 1e-7]).sum()))


def _log_choose(n: int, k: NDArray[np.int64]) -> NDArray[np.float64]:
    log_gamma = scipy.special.gammaln
    return np.asarray(log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1))
