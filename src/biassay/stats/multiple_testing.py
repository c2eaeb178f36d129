"""Correct p-values for multiple testing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.grouping import group_pairs

_SAME = 1e-9  # relative difference of a p-value and a floor that are equal except for rounding
_BELOW = 1e-3  # relative precision of p-values


@dataclass(frozen=True, eq=False)
class Correction:
    """Adjusted p-values and decisions, in the order of the p-values.

    Attributes
    ----------
    adjusted : (n,) float64
        Adjusted p-values; NaN where the p-value is missing.
    rejected : (n,) bool
        True where the null hypothesis is rejected at `alpha`. False where the p-value is missing.
    alpha : float
    n : int
        Number of hypotheses corrected for: the p-values that are not NaN.
    """

    adjusted: NDArray[np.float64]
    rejected: NDArray[np.bool_]
    alpha: float
    n: int


def holm(p_values: ArrayLike, alpha: float = 0.01, floors: ArrayLike | None = None) -> Correction:
    """Apply Holm's step-down correction, which bounds the probability of any false rejection by `alpha`.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN is missing and does not count as a test.
    alpha : float
        Significance level.
    floors : (n,) array-like, optional
        Smallest p-value that each test can have, such as that of a permutation test of few words; NaN or 0 if there is
        none. A test does not count at levels that it cannot reach (Tarone 1990).

    Returns
    -------
    Correction

    Notes
    -----
    Valid under any dependence between the tests. In ascending order, each p-value is multiplied by the number of tests,
    itself and later ones, whose floor it reaches, and is at least as large as the previous result. This is the smallest
    `alpha` at which Tarone's rule, applied step by step, rejects it. Unlike with that rule alone, a larger `alpha`
    never rejects less [3]_.

    References
    ----------
    .. [1] Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics,
       6(2), 65-70.
    .. [2] Tarone, R. E. (1990). A modified Bonferroni method for discrete data. Biometrics, 46(2), 515-522.
    .. [3] Hommel, G., and Krummenauer, F. (1998). Improvements and modifications of Tarone's multiple test procedure
       for discrete data. Biometrics, 54(2), 673-681.

    Examples
    --------
    >>> import biassay
    >>> biassay.holm([0.01, 0.04, 0.03], alpha=0.05).adjusted
    array([0.03, 0.06, 0.06])

    Three words against three have 20 splits, so that no p-value is below 0.05:

    >>> biassay.holm([0.01, 0.04, 0.1], alpha=0.05, floors=[0.001, 0.001, 0.05]).adjusted
    array([0.02, 0.04, 0.1 ])
    """
    p, order = _sort_p_values(p_values, alpha)
    n = len(order)
    counted = np.arange(n, 0, -1)
    if floors is not None:
        least = _validate_floors(floors, p)[order]
        within = least <= p[order, None] * (1.0 + _SAME)
        counted = np.triu(within).sum(axis=1)
    return _restore_order(np.maximum.accumulate(p[order] * counted), order, len(p), alpha)


def holm_by_question(
    p_values: ArrayLike, questions: Sequence[Hashable], alpha: float = 0.01, floors: ArrayLike | None = None
) -> Correction:
    """Correct for the number of questions, where each question may be tested in several forms.

    The first p-value of a question represents it. Its other forms are tested only after the first is rejected, at the
    level of the question divided by the number of forms not yet rejected. A question whose forms are all rejected
    passes its level on to the remaining questions. With one form per question this is Holm's correction.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN is missing and does not count as a test.
    questions : sequence of length n
        Question of every p-value.
    alpha : float
        Significance level.
    floors : (n,) array-like, optional
        Smallest p-value that each test can have; see `holm`.

    Returns
    -------
    Correction
        `n` is the number of questions.

    Notes
    -----
    The probability of any false rejection, of questions or forms, is at most `alpha` under any dependence: the levels
    of hypotheses that can be rejected sum to at most `alpha` and never decrease when others are rejected [1]_. This is
    the inheritance procedure [2]_ on a tree of questions and their forms.

    References
    ----------
    .. [1] Goeman, J. J., and Solari, A. (2010). The sequential rejection principle of familywise error control. Annals
       of Statistics, 38(6), 3782-3810.
    .. [2] Goeman, J. J., and Finos, L. (2012). The inheritance procedure: multiple testing of tree-structured
       hypotheses. Statistical Applications in Genetics and Molecular Biology, 11(1).
    """
    p, order = _sort_p_values(p_values, alpha)
    least = np.zeros(len(p)) if floors is None else _validate_floors(floors, p)
    pending = group_pairs((questions[i], i) for i in sorted(order.tolist()))
    first = {question: forms[0] for question, forms in pending.items()}
    n, adjusted = len(pending), 0.0
    order_rejected, stepped = [], []
    while pending:
        candidates = []
        floor_by_question = []
        for question, forms in pending.items():
            if forms[0] == first[question]:
                candidates.append((float(p[forms[0]]), forms[0], question))
                floor_by_question.append(least[forms[0]])
            else:
                candidates.append(min((len(forms) * float(p[i]), i, question) for i in forms))
                floor_by_question.append(0.0)
        scaled, i, question = min(candidates, key=lambda candidate: candidate[:2])
        counted = int((np.array(floor_by_question) <= scaled * (1.0 + _SAME)).sum())
        adjusted = max(adjusted, scaled * counted)
        order_rejected.append(i)
        stepped.append(adjusted)
        pending[question].remove(i)
        if not pending[question]:
            del pending[question]
    correction = _restore_order(np.array(stepped), np.array(order_rejected, dtype=np.intp), len(p), alpha)
    return replace(correction, n=n)


def benjamini_hochberg(p_values: ArrayLike, alpha: float = 0.01) -> Correction:
    """Apply Benjamini and Hochberg's step-up correction, which bounds the false discovery rate by `alpha`.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN is missing and does not count as a test.
    alpha : float
        False discovery rate.

    Returns
    -------
    Correction

    Notes
    -----
    Valid for tests that are independent or positively dependent.

    References
    ----------
    .. [1] Benjamini, Y., and Hochberg, Y. (1995). Controlling the false discovery rate: a practical and powerful
       approach to multiple testing. Journal of the Royal Statistical Society B, 57(1), 289-300.

    Examples
    --------
    >>> import biassay
    >>> biassay.benjamini_hochberg([0.01, 0.04, 0.03], alpha=0.05).adjusted
    array([0.03, 0.04, 0.04])
    """
    p, order = _sort_p_values(p_values, alpha)
    n = len(order)
    adjusted = np.minimum.accumulate((p[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    return _restore_order(adjusted, order, len(p), alpha)


def _validate_floors(floors: ArrayLike, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return floors (n,), none of them above its p-value; 0 where there is none."""
    least = np.nan_to_num(np.asarray(floors, dtype=np.float64), nan=0.0)
    if least.shape != p.shape:
        raise UsageError(f"expected one floor per p-value (NaN for none), got {least.shape} and {p.shape}")
    if ((least < 0.0) | (least > 1.0)).any():
        raise UsageError("floors must lie between 0 and 1 (NaN for none)")
    below = np.flatnonzero(p < least * (1.0 - _BELOW))
    if len(below):
        i = int(below[0])
        raise UsageError(f"p-value {i} is {p[i]:.6g}, below the smallest that its test can have, {least[i]:.6g}")
    return np.asarray(np.fmin(least, p))


def _sort_p_values(p_values: ArrayLike, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise UsageError(f"p-values must have one dimension, got an array of shape {p.shape}")
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")
    if ((p < 0.0) | (p > 1.0)).any():
        raise UsageError("p-values must lie between 0 and 1 (NaN if missing)")
    present = np.flatnonzero(~np.isnan(p))
    return p, present[np.argsort(p[present], kind="stable")]


def _restore_order(stepped: NDArray[np.float64], order: NDArray[np.intp], n: int, alpha: float) -> Correction:
    adjusted = np.full(n, np.nan)
    adjusted[order] = np.minimum(stepped, 1.0)
    rejected = np.zeros(n, dtype=bool)
    rejected[order] = adjusted[order] <= alpha
    return Correction(adjusted, rejected, alpha, len(order))


_Floats = NDArray[np.float64]


class FdrAccumulator:
    """Collects the p-values of a large vocabulary and corrects them for the false discovery rate.

    Attributes
    ----------
    alpha : float
    num_words, num_above : int
        Number of words so far, and of those above IBD's threshold.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self.num_words = self.num_above = 0
        self._p = [np.empty((0, 2))]
        self._marks = [np.empty((0, 3), dtype=bool)]

    def add(self, p: _Floats, marks: NDArray[np.bool_]) -> None:
        """Add words with their p-values of the association and of the excess, (n, 2), and `marks` (n, 3).

        The marks are: above IBD's threshold, above it against every group, and detected by EIBD.
        """
        self.num_words += len(p)
        self.num_above += int(marks[:, 0].sum())
        self._p.append(p.copy())
        self._marks.append(marks.copy())

    def correct(self) -> FdrResult:
        """Apply Benjamini and Hochberg's correction to all p-values so far."""
        self._p, self._marks = [np.concatenate(self._p)], [np.concatenate(self._marks)]  # frees memory
        (p, p_excess), (above, every, eibd) = self._p[0].T, self._marks[0].T
        correction = benjamini_hochberg(p, self.alpha)
        significant, tested = correction.rejected, ~np.isnan(p_excess)
        # All other words count with a p-value of 1. Correcting all words before choosing some would be wrong: the
        # chosen words contain more than their share of false discoveries (Katsevich et al. 2023).
        chosen = eibd & significant
        emergent_correction = benjamini_hochberg(np.where(chosen, p_excess, np.where(tested, 1.0, np.nan)), self.alpha)
        values, first = np.unique(p[~np.isnan(p)], return_index=True)
        values_excess = np.where(chosen, p_excess, 1.0)[tested]
        values_excess, first_excess = np.unique(values_excess, return_index=True)
        return FdrResult(
            values=values,
            adjusted=correction.adjusted[~np.isnan(p)][first],
            values_excess=values_excess,
            adjusted_excess=emergent_correction.adjusted[tested][first_excess],
            num_associated=int((above & significant).sum()),
            num_every=int((above & every & significant).sum()),
            num_eibd=int(chosen.sum()),
            num_emergent=int((chosen & emergent_correction.rejected).sum()),
        )


@dataclass(frozen=True, eq=False)
class FdrResult:
    """Adjusted p-values (q-values) of all distinct p-values, and numbers of words that are significant."""

    values: _Floats
    adjusted: _Floats
    values_excess: _Floats
    adjusted_excess: _Floats
    num_associated: int
    num_every: int
    num_eibd: int
    num_emergent: int

    def q(self, p: _Floats) -> _Floats:
        """Return q-values of the association. Words with a q of at most alpha have a false discovery rate of alpha."""
        return _look_up(p, self.values, self.adjusted)

    def q_excess(self, p: _Floats, eibd: NDArray[np.bool_]) -> _Floats:
        """Return q-values of the excess for words that EIBD detects and that are associated; 1 for others."""
        return _look_up(np.where(eibd | np.isnan(p), p, 1.0), self.values_excess, self.adjusted_excess)


def _look_up(p: _Floats, values: _Floats, adjusted: _Floats) -> _Floats:
    q = np.full(len(p), np.nan)
    present = ~np.isnan(p)
    q[present] = adjusted[np.searchsorted(values, p[present])]
    return q
