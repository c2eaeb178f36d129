"""Corrections for testing many hypotheses at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["Correction", "benjamini_hochberg", "holm", "holm_by_question", "step_up"]

_SAME = 1e-9  # relative: a p-value and a floor that differ by rounding are equal
_BELOW = 1e-3  # relative: as precise as a p-value is at least


@dataclass(frozen=True, eq=False)
class Correction:
    """Adjusted p-values and decisions, in the order the p-values were given.

    Attributes
    ----------
    adjusted : (n,) float64
        Adjusted p-values; NaN where no p-value was given.
    rejected : (n,) bool
        Whether the null hypothesis is rejected at ``alpha``. False where no p-value was given.
    alpha : float
    n : int
        Number of hypotheses corrected for: the p-values that are not NaN.
    """

    adjusted: NDArray[np.float64]
    rejected: NDArray[np.bool_]
    alpha: float
    n: int


def holm(p_values: ArrayLike, alpha: float = 0.01, floors: ArrayLike | None = None) -> Correction:
    """Holm's step-down correction, which bounds the probability of any false rejection by ``alpha``.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN marks a missing one, which is not corrected for.
    alpha : float
        The level of significance.
    floors : (n,) array-like, optional
        The smallest p-value that each test could have given, as a permutation test of few words has one; NaN or 0 if
        it has none. A test that could not have reached the level of another is not counted there (Tarone).

    Returns
    -------
    Correction

    Notes
    -----
    Valid whatever the dependence between the tests. The p-values are taken in ascending order; each is multiplied by
    the number of tests, itself and those after it, whose floor it reaches, and is at least as large as the one before.
    That is the smallest ``alpha`` at which Tarone's rule, step by step, rejects it: unlike under that rule alone, a
    larger ``alpha`` never rejects less [3]_.

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
    p, order = _sorted(p_values, alpha)
    n = len(order)
    counted = np.arange(n, 0, -1)
    if floors is not None:
        least = _checked_floors(floors, p)[order]
        within = least <= p[order, None] * (1.0 + _SAME)
        counted = np.triu(within).sum(axis=1)
    return _unsorted(np.maximum.accumulate(p[order] * counted), order, len(p), alpha)


def holm_by_question(
    p_values: ArrayLike, questions: Sequence[Hashable], alpha: float = 0.01, floors: ArrayLike | None = None
) -> Correction:
    """Correct for the number of questions, where a question may be tested in several forms.

    The first p-value of a question stands for it. Its other forms are tested only after it is rejected, at the level
    that the question had, divided by the number of forms not yet rejected. A question whose forms are all rejected
    hands its level on to the remaining questions. With one form per question this is Holm's correction.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN marks a missing one, which is not corrected for.
    questions : sequence of length n
        The question of every p-value.
    alpha : float
        The level of significance.
    floors : (n,) array-like, optional
        Smallest p-values that the tests could give, see `holm`.

    Returns
    -------
    Correction
        ``n`` is the number of questions.

    Notes
    -----
    The probability of any false rejection, of questions or of forms, is at most ``alpha`` whatever the dependence: the
    levels of hypotheses that can be rejected sum to at most ``alpha`` and never fall when others are rejected [1]_.
    This is the inheritance procedure [2]_ on a tree of questions and their forms.

    References
    ----------
    .. [1] Goeman, J. J., and Solari, A. (2010). The sequential rejection principle of familywise error control. Annals
       of Statistics, 38(6), 3782-3810.
    .. [2] Goeman, J. J., and Finos, L. (2012). The inheritance procedure: multiple testing of tree-structured
       hypotheses. Statistical Applications in Genetics and Molecular Biology, 11(1).
    """
    p, order = _sorted(p_values, alpha)
    if len(questions) != len(p):
        raise UsageError(f"every p-value needs its question: got {len(p)} p-values, {len(questions)} questions")
    least = np.zeros(len(p)) if floors is None else _checked_floors(floors, p)
    pending: dict[Hashable, list[int]] = {}
    for i in sorted(order.tolist()):
        pending.setdefault(questions[i], []).append(i)
    first = {question: forms[0] for question, forms in pending.items()}
    n, running = len(pending), 0.0
    rejected, stepped = [], []
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
        running = max(running, scaled * counted)
        rejected.append(i)
        stepped.append(running)
        pending[question].remove(i)
        if not pending[question]:
            del pending[question]
    found = _unsorted(np.array(stepped), np.array(rejected, dtype=np.intp), len(p), alpha)
    return Correction(found.adjusted, found.rejected, alpha, n)


def benjamini_hochberg(p_values: ArrayLike, alpha: float = 0.01) -> Correction:
    """Benjamini and Hochberg's step-up correction, which bounds the expected share of false rejections by ``alpha``.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN marks a missing one, which is not corrected for.
    alpha : float
        The false discovery rate.

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
    p, order = _sorted(p_values, alpha)
    return _unsorted(step_up(p[order], np.ones(len(order), dtype=np.int64)), order, len(p), alpha)


def step_up(p_values: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The same for p-values in ascending order, each of which occurs so often."""
    ends = np.cumsum(counts)
    adjusted = np.minimum.accumulate((p_values * counts.sum() / ends)[::-1])[::-1]
    return np.asarray(np.minimum(adjusted, 1.0))


def _checked_floors(floors: ArrayLike, p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Floors (n,), none of them above its p-value; 0 where there is none."""
    least = np.nan_to_num(np.asarray(floors, dtype=np.float64), nan=0.0)
    if least.shape != p.shape:
        raise UsageError(f"every p-value needs its floor (NaN for none): got {p.shape} p-values, {least.shape} floors")
    if ((least < 0.0) | (least > 1.0)).any():
        raise UsageError("floors must lie between 0 and 1 (NaN where there is none)")
    below = np.flatnonzero(p < least * (1.0 - _BELOW))
    if len(below):
        at = int(below[0])
        raise UsageError(f"p-value {at} is {p[at]:.6g}, below the smallest that its test could give, {least[at]:.6g}")
    return np.asarray(np.fmin(least, p))


def _sorted(p_values: ArrayLike, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise UsageError(f"p-values must be a list of numbers, got an array of shape {p.shape}")
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")
    if ((p < 0.0) | (p > 1.0)).any():
        raise UsageError("p-values must lie between 0 and 1 (NaN marks one that is missing)")
    given = np.flatnonzero(~np.isnan(p))
    return p, given[np.argsort(p[given], kind="stable")]


def _unsorted(stepped: NDArray[np.float64], order: NDArray[np.intp], n: int, alpha: float) -> Correction:
    adjusted = np.full(n, np.nan)
    adjusted[order] = np.minimum(stepped, 1.0)
    rejected = np.zeros(n, dtype=bool)
    rejected[order] = adjusted[order] <= alpha
    return Correction(adjusted, rejected, alpha, len(order))
