"""Summary of several tests of one topic: a random-effects model for tests that share words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

FEWEST_TESTS = 3


@dataclass(frozen=True)
class TopicEffect:
    """Mean effect of the tests of a topic, and shrunken effects of the tests.

    Attributes
    ----------
    mean, standard_error : float
        Mean effect over tests of this kind, and its standard error.
    ci_low, ci_high : float
        Interval of the mean, with Student's t.
    df : float
        Degrees of freedom of the interval.
    p_value : float
        Two-sided p-value of a mean of 0.
    between_sd : float
        Standard deviation of true effects between tests.
    shrunken : tuple of float
        Effect of each test, shrunk towards the mean in proportion to its uncertainty. It has no interval: one that
        takes `between_sd` as known covers .90 with few tests.
    n_tests : int
    """

    mean: float
    standard_error: float
    ci_low: float
    ci_high: float
    df: float
    p_value: float
    between_sd: float
    shrunken: tuple[float, ...]
    n_tests: int


def correlate_errors(influences: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """Correlate the errors of tests by the words that they share.

    Parameters
    ----------
    influences : sequence of mappings
        For each test, how much each word (or cluster) moves the effect. The squares of a test add up to its variance.
    """
    words = list(dict.fromkeys(word for of_test in influences for word in of_test))
    table = np.array([[of_test.get(word, 0.0) for word in words] for of_test in influences])
    lengths = np.sqrt((table**2).sum(axis=1, keepdims=True))
    scaled = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0.0)
    correlations: NDArray[np.float64] = scaled @ scaled.T
    np.fill_diagonal(correlations, 1.0)
    return correlations


def summarize_topic(
    effects: ArrayLike,
    standard_errors: ArrayLike,
    correlations: ArrayLike | None = None,
    dfs: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
) -> TopicEffect:
    """Estimate the mean effect of tests by restricted maximum likelihood.

    Parameters
    ----------
    effects, standard_errors : (k,) array-like
        Effects of at least three tests with their standard errors.
    correlations : (k, k) array-like, optional
        Correlations of the errors, because tests share words. By default the tests are independent.
    dfs : (k,) array-like, optional
        Degrees of freedom of the standard errors; the smallest one is that of the error that tests share.
    confidence : float
        Confidence of all intervals.

    Notes
    -----
    Effects are normal around the mean with variance `between_sd` squared, and their estimates normal around them. The
    mean weighs each test by its variance alone, which is robust where tests share many words. Its variance is that of
    the error that tests share, plus the rest, which is corrected after Knapp and Hartung with k - 1 degrees of freedom;
    the interval uses Student's t with degrees of freedom after Satterthwaite.

    References
    ----------
    .. [1] Knapp, G., and Hartung, J. (2003). Improved tests for a random effects meta-regression with a single
       covariate. Statistics in Medicine, 22(17), 2693-2710.
    """
    y, se = np.asarray(effects, dtype=np.float64), np.asarray(standard_errors, dtype=np.float64)
    k = len(y)
    if k < FEWEST_TESTS:
        raise UsageError(f"a summary of a topic needs at least {FEWEST_TESTS} tests, got {k}")
    if not (se > 0.0).all():
        raise UsageError("every test needs a positive standard error")
    errors = np.outer(se, se) * (np.eye(k) if correlations is None else np.asarray(correlations, dtype=np.float64))
    scale = float(np.var(y) + np.mean(se**2))
    found = scipy.optimize.minimize_scalar(
        lambda root: _restricted_loss(y, errors, root**2), bounds=(0.0, 3.0 * math.sqrt(scale)), method="bounded"
    )
    tau2 = 0.0 if _restricted_loss(y, errors, 0.0) <= found.fun else float(found.x**2)
    covariance = errors + tau2 * np.eye(k)
    shares = 1.0 / np.diag(covariance)
    shares /= shares.sum()
    mean = float(shares @ y)
    residuals = y - mean
    common = max(float(shares @ (errors - np.diag(se**2)) @ shares), 0.0)
    weights = np.linalg.inv(covariance)
    spread = float(residuals @ weights @ residuals - (weights @ residuals).sum() ** 2 / weights.sum()) / (k - 1)
    own = spread * float(shares**2 @ np.diag(covariance))
    standard_error = math.sqrt(own + common)
    df_common = k - 1.0 if dfs is None else max(k - 1.0, float(np.min(np.asarray(dfs, dtype=np.float64))))
    df = (own + common) ** 2 / (own**2 / (k - 1.0) + common**2 / df_common)
    quantile = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0))
    shrunken = mean + tau2 * weights @ residuals
    t = mean / standard_error
    return TopicEffect(
        mean=mean,
        standard_error=standard_error,
        ci_low=mean - quantile * standard_error,
        ci_high=mean + quantile * standard_error,
        df=df,
        p_value=2.0 * float(scipy.special.stdtr(df, -abs(t))),
        between_sd=math.sqrt(tau2),
        shrunken=tuple(shrunken.tolist()),
        n_tests=k,
    )


def _restricted_loss(y: NDArray[np.float64], errors: NDArray[np.float64], tau2: float) -> float:
    """Compute minus twice the restricted log-likelihood, without constants."""
    covariance = errors + tau2 * np.eye(len(y))
    sign, log_determinant = np.linalg.slogdet(covariance)
    if sign <= 0:
        return math.inf
    weights = np.linalg.inv(covariance)
    total = float(weights.sum())
    residuals = y - (weights @ y).sum() / total
    return float(log_determinant + math.log(total) + residuals @ weights @ residuals)
