"""RNSB: how unequally a classifier of the attributes finds the targets negative."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import DegenerateError
from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Measure, Vectors

_MAX_STEPS = 100


def rnsb(words: ArrayLike, A: ArrayLike, B: ArrayLike) -> NDArray[np.float64]:
    """Compute the probability that words are negative, by a classifier trained on positive and negative words.

    Parameters
    ----------
    words, A, B : (n, d), (k, d), (l, d) array-like
        Vectors of the words, of positive and of negative words; only their directions count.

    Returns
    -------
    (n,) float64
        Probability of B by logistic regression (L2 penalty of 1, intercept without penalty). `rnsb_divergence` turns
        it into the published measure.

    References
    ----------
    .. [1] Sweeney, C., and Najafian, M. (2019). A transparent framework for evaluating unintended demographic bias in
       word embeddings. ACL, 1662-1667.

    Examples
    --------
    >>> import biassay
    >>> (biassay.rnsb([[1, 0], [-1, 0]], [[1, 0]], [[-1, 0]]) > 0.5).tolist()
    [False, True]
    """
    a_rows, b_rows = unit_rows(A, "A"), unit_rows(B, "B")
    rows = np.concatenate([a_rows, b_rows])
    labels = np.repeat([0.0, 1.0], [len(a_rows), len(b_rows)])
    weights, intercept = _fit_logistic(rows, labels)
    return np.asarray(scipy.special.expit(unit_rows(words, "words") @ weights + intercept), dtype=np.float64)


def rnsb_divergence(probabilities: ArrayLike) -> float:
    """Compute the Kullback-Leibler divergence of the shares of negative probability from equal shares.

    Parameters
    ----------
    probabilities : (n,) array-like
        Probabilities from `rnsb`.

    Returns
    -------
    float
        0 if all words have the same probability.

    Examples
    --------
    >>> import biassay
    >>> biassay.rnsb_divergence([0.5, 0.5])
    0.0
    """
    shares = np.asarray(probabilities, dtype=np.float64)
    shares = shares / shares.sum()
    return float(scipy.special.rel_entr(shares, 1.0 / len(shares)).sum())


def _fit_logistic(rows: NDArray[np.float64], labels: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Fit by Newton's method. The weights are a combination of the rows, so there are as many unknowns as rows."""
    gram = rows @ rows.T
    n = len(rows)
    parameters = np.zeros(n + 1)
    design = np.column_stack([gram, np.ones(n)])
    penalty = np.zeros((n + 1, n + 1))
    penalty[:n, :n] = gram
    ridge = 1e-12 * np.eye(n + 1)
    for _ in range(_MAX_STEPS):
        p = scipy.special.expit(design @ parameters)
        gradient = design.T @ (p - labels) + penalty @ parameters
        hessian = design.T @ (design * (p * (1.0 - p))[:, None]) + penalty + ridge
        step = np.linalg.solve(hessian, gradient)
        parameters -= step
        if np.abs(design @ step).max() < 1e-12:
            return parameters[:n] @ rows, float(parameters[n])
    raise DegenerateError("the logistic regression of RNSB did not converge")


def _score(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    return np.full(len(in_x), rnsb_divergence(rnsb(targets, A, B)))


METRIC = Measure(
    "rnsb",
    "RNSB",
    _score,
    word_scores=rnsb,
    signed=False,
    permutes=False,
    claim="How unequally all targets are classified as B. It does not compare X with Y, so it has no p-value.",
    source="Sweeney and Najafian 2019, A Transparent Framework, ACL",
)
