"""Words that groups of texts use more often: log-odds with an informative Dirichlet prior, by sampling unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.multiple_testing import benjamini_hochberg

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordUse:
    """How much more often the units of each group use each word than those of all others.

    Attributes
    ----------
    groups : tuple of str
    log_odds : (groups, words) float
        Difference of the log-odds of the word, group minus others.
    standard_error, df : (groups, words) float
        Of the log-odds, by delete-one jackknife over units; NaN with fewer than two units on a side.
    p_value : (groups, words) float
        Two-sided, by t; NaN without a standard error.
    p_adjusted : (groups, words) float
        After the Benjamini-Hochberg correction over words and groups; over words only if there are two groups, which
        have the same differences.
    """

    groups: tuple[str, ...]
    log_odds: Floats
    standard_error: Floats
    df: Floats
    p_value: Floats
    p_adjusted: Floats


def compare_word_use(counts: ArrayLike, groups: Sequence[str], *, prior_weight: float | None = None) -> WordUse:
    """Compare how often groups use words.

    Parameters
    ----------
    counts : (units, words) array
        Number of times that each unit, such as a name, uses each word.
    groups : sequence of str
        Group of each unit.
    prior_weight : float, optional
        Words that the prior is worth, which has the frequencies of all units together. By default the mean number of
        words per unit.

    Returns
    -------
    WordUse

    Notes
    -----
    The log-odds are those of equation 16 of Monroe et al. Their standard error treats tokens as independent, but
    responses to the same name repeat words. Here units are: each is left out in turn, with the prior unchanged.

    References
    ----------
    .. [1] Monroe, B. L., Colaresi, M. P., and Quinn, K. M. (2008). Fightin' words: Lexical feature selection and
       evaluation for identifying the content of political conflict. Political Analysis, 16(4), 372-403.
    """
    table = np.asarray(counts, dtype=np.float64)
    totals = table.sum(axis=0)
    weight = float(table.sum() / len(table)) if prior_weight is None else float(prior_weight)
    prior = weight * totals / totals.sum()
    labels = np.array(groups)
    unique = tuple(dict.fromkeys(groups))
    columns = [_compare_group(table[labels == label], table[labels != label], prior) for label in unique]
    log_odds, errors, df = (np.stack(part) for part in zip(*columns, strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        p_values = np.asarray(2.0 * scipy.stats.t.sf(np.abs(log_odds / errors), df))
    p_values[~(errors > 0.0)] = np.nan
    return WordUse(unique, log_odds, errors, df, p_values, _adjust(p_values))


def _compare_group(own: Floats, others: Floats, prior: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log-odds, standard error and degrees of freedom."""
    (value, variance), (value_others, variance_others) = (_jackknife(rows, prior) for rows in (own, others))
    total = variance + variance_others
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [part**2 / (len(rows) - 1) for part, rows in ((variance, own), (variance_others, others))]
        df = total**2 / (parts[0] + parts[1])
    return value - value_others, np.sqrt(total), df


def _jackknife(rows: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return the log-odds of words on one side and their variance over units."""
    sums = rows.sum(axis=0)
    value = _compute_log_odds(sums, prior)
    if len(rows) < 2:
        return value, np.full(len(sums), np.nan)
    left_out = _compute_log_odds(sums - rows, prior)
    return value, (len(rows) - 1) * left_out.var(axis=0)


def _compute_log_odds(sums: Floats, prior: Floats) -> Floats:
    used = sums + prior
    return np.asarray(np.log(used / (used.sum(axis=-1, keepdims=True) - used)))


def _adjust(p_values: Floats) -> Floats:
    if len(p_values) == 2:
        return np.tile(_adjust(p_values[:1]), (2, 1))
    adjusted = np.full(p_values.shape, np.nan)
    known = ~np.isnan(p_values)
    adjusted[known] = benjamini_hochberg(p_values[known]).adjusted
    return adjusted
