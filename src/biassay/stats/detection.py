"""Detect words associated with a group, and score the detection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.association import FLAT
from biassay.stats.permutation import check_choice

Rule = Literal["any", "all"]
RULES: tuple[Rule, ...] = get_args(Rule)
Compare = Literal["any", "every"]
COMPARES: tuple[Compare, ...] = get_args(Compare)
SidePair = tuple[NDArray[np.intp], NDArray[np.intp]]
THRESHOLDS = np.arange(-200, 200, 5) / 100.0
"""Thresholds of the published curves."""


def pair_scores(cosines: NDArray[np.floating], pairs: Sequence[SidePair]) -> NDArray[np.float64]:
    """Compute the association score of every word between the two sides of every pair, (n, pairs).

    `cosines` (n, m) are those of words with m names; a pair lists the columns of its two sides. A score is NaN if a
    word has the same cosine with all names of the pair.
    """
    scores = np.empty((len(cosines), len(pairs)))
    for column, (first, second) in enumerate(pairs):
        both = cosines[:, np.concatenate([first, second])].astype(np.float64)
        spread = both.std(axis=1, ddof=1)
        difference = both[:, : len(first)].mean(axis=1) - both[:, len(first) :].mean(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores[:, column] = np.where(spread > FLAT, difference / spread, np.nan)
    return scores


def strongest_scores(
    scores: NDArray[np.float64], constituents: NDArray[np.float64] | None, rule: Rule, compare: Compare = "any"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Reduce the scores of every word to the two that decide whether it is detected.

    Parameters
    ----------
    scores : (n, k) float64
        Scores against other groups.
    constituents : (n, c) float64 or None
        Scores of the constituent pairs.
    rule : {"any", "all"}
        Whether a single constituent score above the threshold drops a word, or only all of them together.
    compare : {"any", "every"}
        Whether a single score above the threshold is enough (IBD), or all are needed.

    Returns
    -------
    deciding, dropping : (n,) float64
        A word is detected at threshold t if the first is above t and the second is not. Without constituents, the
        second is minus infinity.
    """
    decides = (np.fmax if compare == "any" else np.fmin).reduce(scores, axis=1)
    if constituents is None:
        return decides, np.full(len(scores), -np.inf)
    return decides, (np.fmax if rule == "any" else np.fmin).reduce(constituents, axis=1)


def find_detected(largest: NDArray[np.float64], dropping: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return which words are detected at a threshold.

    Parameters
    ----------
    largest, dropping : (n,) float64
        See `strongest_scores`.
    threshold : float

    Returns
    -------
    (n,) bool
    """
    return np.asarray((largest > threshold) & ~(dropping > threshold))


@dataclass(frozen=True, eq=False)
class DetectionCurve:
    """Detections at every threshold compared with the truth.

    Attributes
    ----------
    thresholds : (k,) float64
    tp, fp, fn, tn : (k,) int
        True and false positives, false and true negatives.
    area : float
        Area under the ROC curve over all possible thresholds. With constituents a lower threshold may detect fewer
        words; the best true positive rate up to each point then counts.
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    fn: NDArray[np.int64]
    tn: NDArray[np.int64]
    area: float

    @property
    def tpr(self) -> NDArray[np.float64]:
        """True positive rate, or recall."""
        return self.tp / (self.tp + self.fn)

    @property
    def fpr(self) -> NDArray[np.float64]:
        """False positive rate."""
        return self.fp / (self.fp + self.tn)

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Share of words that are classified correctly."""
        return (self.tp + self.tn) / self.n

    @property
    def precision(self) -> NDArray[np.float64]:
        """Share of detected words that belong to the group; NaN if no word is detected."""
        detected = self.tp + self.fp
        return np.where(detected > 0, self.tp / np.maximum(detected, 1), np.nan)

    @property
    def n(self) -> int:
        """Number of words."""
        return int(self.tp[0] + self.fp[0] + self.fn[0] + self.tn[0])

    @property
    def chance(self) -> float:
        """Share of words that belong to the group, which is the precision of a random choice."""
        return float((self.tp[0] + self.fn[0]) / self.n)

    def best(self, *, positive_only: bool = False) -> int:
        """Return the index of the threshold with the largest TPR - FPR.

        Among ties, the one with the most true positives wins, then the highest. TPR - FPR is compared in integers, so
        that rounding does not break ties.
        """
        allowed = np.flatnonzero(self.thresholds > 0.0) if positive_only else np.arange(len(self.thresholds))
        if len(allowed) == 0:
            raise UsageError("no threshold is positive")
        positives, negatives = int(self.tp[0] + self.fn[0]), int(self.fp[0] + self.tn[0])
        gain = self.tp * negatives - self.fp * positives
        return int(max(allowed, key=lambda i: (gain[i], self.tp[i], self.thresholds[i])))


def detection_curve(
    scores: ArrayLike,
    truth: ArrayLike,
    *,
    constituents: ArrayLike | None = None,
    rule: Rule = "any",
    compare: Compare = "any",
    thresholds: ArrayLike = THRESHOLDS,
) -> DetectionCurve:
    """Count true and false detections of the words of a group at every threshold.

    Parameters
    ----------
    scores : (n, k) array-like
        Scores of n words against k other groups, as from `ibd`.
    truth : (n,) array-like of bool
        Words that are validated as words of the group.
    constituents : (n, c) array-like, optional
        Scores of the constituent pairs. If given, the curve is that of emergent words, as from `eibd`.
    rule : {"any", "all"}
        Whether a single constituent score above the threshold drops a word, or only all of them together.
    compare : {"any", "every"}
        Whether a single score above the threshold is enough, or all are needed.
    thresholds : (t,) array-like

    Returns
    -------
    DetectionCurve
        Counts and rates at every threshold, and the area under the curve.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import biassay
    >>> scores, truth = [[0.9], [0.1], [0.7], [-0.4]], [True, False, True, False]
    >>> curve = biassay.detection_curve(scores, truth, thresholds=[0.0, 0.5])
    >>> curve.tpr, curve.fpr, curve.area
    (array([1., 1.]), array([0.5, 0. ]), 1.0)
    """
    check_choice("rule", rule, RULES)
    check_choice("compare", compare, COMPARES)
    matrix, true = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=bool)
    levels = np.asarray(thresholds, dtype=np.float64)
    constituent_scores = None if constituents is None else np.asarray(constituents, dtype=np.float64)
    for name, array in (("scores", matrix), ("constituents", constituent_scores)):
        if array is not None and (array.ndim != 2 or len(array) != len(true) or array.shape[1] == 0):
            raise UsageError(f"{name} must have a row for each of the {len(true)} words, got shape {array.shape}")
    if not true.any() or true.all():
        raise UsageError(
            f"{int(true.sum())} of {len(true)} words belong to the group; validating a threshold takes words that do "
            "and words that do not"
        )
    if levels.ndim != 1 or len(levels) == 0:
        raise UsageError("at least one threshold is needed")
    largest, dropping = strongest_scores(matrix, constituent_scores, rule, compare)
    tp, fp = _count_positives(largest, dropping, true, levels)
    positives = int(true.sum())
    return DetectionCurve(levels, tp, fp, positives - tp, len(true) - positives - fp, _area(largest, dropping, true))


def _count_positives(
    largest: NDArray[np.float64], dropping: NDArray[np.float64], true: NDArray[np.bool_], levels: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    detected = np.array([find_detected(largest, dropping, threshold) for threshold in levels])
    return np.count_nonzero(detected & true, axis=1), np.count_nonzero(detected & ~true, axis=1)


def _area(largest: NDArray[np.float64], dropping: NDArray[np.float64], true: NDArray[np.bool_]) -> float:
    """Compute the area under the ROC curve; the set of detected words changes only at scores of words."""
    values = np.concatenate([largest, dropping, [-np.inf]])
    tp, fp = _count_positives(largest, dropping, true, np.unique(values[~np.isnan(values)]))
    positives = np.count_nonzero(true)
    x = np.concatenate([[0.0], fp / (len(true) - positives), [1.0]])
    y = np.concatenate([[0.0], tp / positives, [1.0]])
    order = np.lexsort((y, x))
    return float(np.trapezoid(np.maximum.accumulate(y[order]), x[order]))
