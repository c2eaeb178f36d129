"""Correct the scores of a judge in a name audit by human labels of some responses.

A judge is an instrument with error, and the error may differ between groups of names. Labels of a random part of the
responses estimate it, name by name, so that its uncertainty enters the interval with that of names and prompts.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.alignment import nan_mean
from biassay.stats.kendall import kendall_by_row
from biassay.stats.name_audit import NameAudit, name_audit
from biassay.stats.permutation import Rng
from biassay.stats.power import ALPHA

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgeAgreement:
    """Agreement of a judge with people on the labelled responses of a group.

    Attributes
    ----------
    group : str
    n_labels : int
        Labelled responses with a score of the judge.
    judge_mean, human_mean : float
        Means over these responses. Their difference is the error of the judge.
    kappa : float or None
        Cohen's kappa, if scores are categories. None if judge and people use a single category.
    tau : float or None
        Kendall's tau-b, if scores are ratings. None if all ratings of the judge, or of people, are equal.
    """

    group: str
    n_labels: int
    judge_mean: float
    human_mean: float
    kappa: float | None
    tau: float | None

    @property
    def error(self) -> float:
        """Mean score of the judge minus mean label."""
        return self.judge_mean - self.human_mean


@dataclass(frozen=True, eq=False)
class JudgedAudit:
    """Result of `judged_audit`.

    Attributes
    ----------
    corrected : NameAudit
        Audit of the labels that people would give, with the error of the judge in the variance.
    uncorrected : NameAudit
        Audit of the scores of the judge.
    agreement : mapping of str to JudgeAgreement
        By group.
    """

    corrected: NameAudit
    uncorrected: NameAudit
    agreement: Mapping[str, JudgeAgreement]


def judged_audit(
    scores: ArrayLike,
    labels: ArrayLike,
    groups: Sequence[str],
    *,
    categorical: bool = False,
    units: Sequence[Hashable] | None = None,
    alpha: float = ALPHA,
    rng: Rng = None,
) -> JudgedAudit:
    """Compare responses between groups of names by the scores of a judge, corrected by human labels.

    Parameters
    ----------
    scores : (names, prompts) or (names, prompts, responses) array-like
        Scores of the judge; NaN where there is no response or no score.
    labels : array-like with the shape of `scores`
        Scores of people on the same scale; NaN where a response was not labelled. The labelled responses are a random
        part of those of every name, best equally many per name.
    groups : (names,) sequence of str
        Group of every name.
    categorical : bool, default False
        If True, scores are categories, such as 0 and 1, and agreement is Cohen's kappa instead of Kendall's tau-b.
    units : (names,) sequence, optional
        Sampling unit of every name; see `name_audit`.
    alpha : float, default 0.05
        Significance level; 1 - alpha is the confidence of intervals.
    rng : numpy Generator or seed
        See `name_audit`.

    Returns
    -------
    JudgedAudit
        ``audit.corrected[group]`` is the difference of a group from the others.

    Notes
    -----
    The score of a name is the mean score of the judge over its responses, minus the mean of score less label over its
    labelled responses (the difference estimator of survey sampling; prediction-powered inference). It does not depend
    on how good the judge is; a poor judge makes intervals wider. Names and prompts are samples, as in `name_audit`:
    the variance between prompts is that of leaving out one prompt with its labels at a time. Labels count as the
    truth: the interval says nothing about other raters.

    References
    ----------
    A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic (2023). Prediction-powered inference. Science
    382.
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20.

    Examples
    --------
    >>> import numpy as np, biassay
    >>> rng = np.random.default_rng(0)
    >>> groups = ["a"] * 20 + ["b"] * 20
    >>> human = rng.normal(0, 1, (40, 12))
    >>> judge = human + rng.normal(0, 0.3, (40, 12)) - np.repeat([[0.5], [0.0]], 20, axis=0)
    >>> labels = np.where(np.argsort(rng.random((40, 12))) < 5, human, np.nan)
    >>> audit = biassay.judged_audit(judge, labels, groups, rng=0)
    >>> round(audit.uncorrected["a"].effect_size, 2), round(audit.corrected["a"].effect_size, 2)
    (-0.47, 0.04)
    """
    table, known = _validate(scores, labels, groups)
    names = list(map(str, groups))
    audit = functools.partial(name_audit, groups=names, top=(), units=units, alpha=alpha, rng=rng)
    return JudgedAudit(
        corrected=audit(nan_mean(correct_scores(table, known, names), axis=2)),
        uncorrected=audit(nan_mean(table, axis=2)),
        agreement=measure_agreement(table, known, names, categorical=categorical),
    )


def correct_scores(scores: ArrayLike, labels: ArrayLike, groups: Sequence[str]) -> Floats:
    """Return scores (names, prompts, responses) whose means by name are those of the judge, corrected by the labels.

    Parameters
    ----------
    scores, labels, groups
        As in `judged_audit`.

    Notes
    -----
    All scores change by the mean error of the group. A labelled response changes also by its own error minus that of
    the group, times the number of responses that it represents: those of its name over the labels of its name, if no
    score is missing. So leaving out a prompt leaves out its labels, and a name whose labels are all in one prompt still
    has a corrected score.
    """
    table, known = _validate(scores, labels, groups)
    labelled = ~np.isnan(known)
    errors = np.where(labelled, table - known, 0.0)
    n_labels = labelled.sum(axis=(1, 2))
    by_name = errors.sum(axis=(1, 2)) / n_labels
    members = np.array(groups)
    by_group = {group: float(by_name[members == group].mean()) for group in dict.fromkeys(groups)}
    centre = np.array([by_group[group] for group in groups])[:, None, None]
    n_responses = np.count_nonzero(~np.isnan(table), axis=2)
    stands_for = np.count_nonzero(n_responses, axis=1)[:, None] * n_responses / n_labels[:, None]
    return np.asarray(table - centre - stands_for[:, :, None] * np.where(labelled, errors - centre, 0.0))


def measure_agreement(
    scores: ArrayLike, labels: ArrayLike, groups: Sequence[str], *, categorical: bool = False
) -> dict[str, JudgeAgreement]:
    """Measure the agreement of a judge with people on labelled responses, by group.

    Parameters
    ----------
    scores, labels, groups, categorical
        As in `judged_audit`.
    """
    table, known = _validate(scores, labels, groups)
    members, found = np.array(groups), {}
    for group in dict.fromkeys(groups):
        human = known[members == group]
        judge = table[members == group][~np.isnan(human)]
        human = human[~np.isnan(human)]
        tau = float(kendall_by_row(judge[None], human[None])[0]) if not categorical and len(human) > 1 else np.nan
        found[str(group)] = JudgeAgreement(
            group=str(group),
            n_labels=len(human),
            judge_mean=float(judge.mean()),
            human_mean=float(human.mean()),
            kappa=cohen_kappa(judge, human) if categorical else None,
            tau=None if np.isnan(tau) else tau,
        )
    return found


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Cohen's kappa of two ratings (n,) by category; None if both use a single category."""
    a, b = np.asarray(first), np.asarray(second)
    categories = np.union1d(a, b)
    shares = [np.array([(side == category).mean() for category in categories]) for side in (a, b)]
    expected = float(shares[0] @ shares[1])
    return None if len(categories) < 2 else (float((a == b).mean()) - expected) / (1.0 - expected)


def _validate(scores: ArrayLike, labels: ArrayLike, groups: Sequence[str]) -> tuple[Floats, Floats]:
    """Return scores and labels (names, prompts, responses); a label of a response without a score is missing."""
    try:
        table, known = np.array(scores, dtype=np.float64), np.array(labels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"scores and labels must be numbers, NaN where missing: {error}") from None
    if table.ndim not in (2, 3) or table.shape != known.shape:
        raise UsageError(
            "scores and labels must be arrays of names x prompts (x responses) of the same shape, got shapes "
            f"{table.shape} and {known.shape}"
        )
    if len(table) != len(groups):
        raise UsageError(f"expected one group per name (row of scores), got {len(groups)} groups, {len(table)} names")
    if np.isinf(table).any() or np.isinf(known).any():
        raise UsageError("scores and labels must be finite")
    if table.ndim == 2:
        table, known = table[:, :, None], known[:, :, None]
    known[np.isnan(table)] = np.nan
    bare = np.flatnonzero(np.isnan(known).all(axis=(1, 2)))
    if len(bare):
        raise UsageError(
            f"{len(bare):,} of {len(known):,} names have no labelled response with a score of the judge, such as name "
            f"{bare[0]} (from 0); label equally many responses of every name"
        )
    return table, known
