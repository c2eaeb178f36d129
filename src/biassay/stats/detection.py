"""Which words are associated with a group more than with others: scores, detection at a threshold, and its accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.association import FLAT
from biassay.stats.permutation import check_choice

__all__ = [
    "COMPARES",
    "RULES",
    "THRESHOLDS",
    "Compare",
    "DetectionCurve",
    "Rule",
    "Sides",
    "detected",
    "detection_curve",
    "pair_scores",
    "strongest",
]

Rule = Literal["any", "all"]
RULES: tuple[Rule, ...] = get_args(Rule)
Compare = Literal["any", "every"]
COMPARES: tuple[Compare, ...] = get_args(Compare)
Sides = tuple[NDArray[np.intp], NDArray[np.intp]]
THRESHOLDS = np.arange(-200, 200, 5) / 100.0
"""Those at which the published curves were drawn."""


def pair_scores(cosines: NDArray[np.floating], pairs: Sequence[Sides]) -> NDArray[np.float64]:
    """Association score of every word between the two sides of every pair, (n, len(pairs)).

    ``cosines`` (n, m) holds those of the words with m names; a pair holds the columns of its first and of its second
    side. A word whose cosines with all names of a pair are equal has no score: NaN.
    """
    scores = np.empty((len(cosines), len(pairs)))
    for column, (first, second) in enumerate(pairs):
        both = cosines[:, np.concatenate([first, second])].astype(np.float64)
        spread = both.std(axis=1, ddof=1)
        difference = both[:, : len(first)].mean(axis=1) - both[:, len(first) :].mean(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores[:, column] = np.where(spread > FLAT, difference / spread, np.nan)
    return scores


def strongest(
    scores: NDArray[np.float64], constituents: NDArray[np.float64] | None, rule: Rule, compare: Compare = "any"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What decides at any threshold t: a word is detected if the first is above t and the second is not.

    The first is the largest of the scores against other groups (``any``: one above t is enough, which is IBD) or the
    smallest (``every``: all must be). The second is the largest score of a constituent
    pair (rule ``any``: one that is above t drops the word) or the smallest (``all``: only all of them together do);
    without constituents it is minus infinity and drops nothing.
    """
    decides = (np.fmax if compare == "any" else np.fmin).reduce(scores, axis=1)
    if constituents is None:
        return decides, np.full(len(scores), -np.inf)
    return decides, (np.fmax if rule == "any" else np.fmin).reduce(constituents, axis=1)


def detected(largest: NDArray[np.float64], dropping: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """The words that are detected at a threshold, (n,)."""
    return np.asarray((largest > threshold) & ~(dropping > threshold))


@dataclass(frozen=True, eq=False)
class DetectionCurve:
    """How well the words detected at every threshold fit the truth.

    Attributes
    ----------
    thresholds : (k,) float64
    tp, fp, fn, tn : (k,) int
        Words by whether they were detected (p) and whether rightly (t).
    area : float
        Under the curve over all thresholds there can be, from (0, 0) to (1, 1). Where a lower threshold detects less,
        as it may with constituents, the best rate up to a point counts.
    """

    thresholds: NDArray[np.float64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    fn: NDArray[np.int64]
    tn: NDArray[np.int64]
    area: float

    @property
    def tpr(self) -> NDArray[np.float64]:
        """True positive rate, which is the recall."""
        return self.tp / (self.tp + self.fn)

    @property
    def fpr(self) -> NDArray[np.float64]:
        return self.fp / (self.fp + self.tn)

    @property
    def accuracy(self) -> NDArray[np.float64]:
        return (self.tp + self.tn) / self.n

    @property
    def precision(self) -> NDArray[np.float64]:
        """NaN where no word is detected."""
        found = self.tp + self.fp
        return np.where(found > 0, self.tp / np.maximum(found, 1), np.nan)

    @property
    def n(self) -> int:
        return int(self.tp[0] + self.fp[0] + self.fn[0] + self.tn[0])

    @property
    def chance(self) -> float:
        """The share of words that belong to the group: how often a word picked at random does."""
        return float((self.tp[0] + self.fn[0]) / self.n)

    def best(self, *, positive_only: bool = False) -> int:
        """Place of the threshold with the largest TPR - FPR; of equals that with most true positives, then the highest.

        TPR - FPR is compared in whole numbers, so that rounding breaks no tie.
        """
        allowed = np.flatnonzero(self.thresholds > 0.0) if positive_only else np.arange(len(self.thresholds))
        if len(allowed) == 0:
            raise UsageError("there is no positive threshold to choose from")
        positives, negatives = int(self.tp[0] + self.fn[0]), int(self.fp[0] + self.tn[0])
        gain = self.tp * negatives - self.fp * positives
        return int(max(allowed, key=lambda place: (gain[place], self.tp[place], self.thresholds[place])))


def detection_curve(
    scores: ArrayLike,
    truth: ArrayLike,
    *,
    constituents: ArrayLike | None = None,
    rule: Rule = "any",
    compare: Compare = "any",
    thresholds: ArrayLike = THRESHOLDS,
) -> DetectionCurve:
    """True and false detections of the words of a group at every threshold.

    Parameters
    ----------
    scores : (n, k) array-like
        Of n words against k other groups, as from `ibd`.
    truth : (n,) array-like of bool
        Which words were validated as those of the group.
    constituents : (n, c) array-like, optional
        Scores of the constituent pairs; with them the curve is that of emergent words, as from `eibd`.
    rule : {"any", "all"}
        Whether any constituent score above the threshold drops a word, or only all of them together.
    compare : {"any", "every"}
        Whether one score above the threshold is enough, or all are needed.
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
    at = np.asarray(thresholds, dtype=np.float64)
    dropping_scores = None if constituents is None else np.asarray(constituents, dtype=np.float64)
    for what, array in (("scores", matrix), ("constituents", dropping_scores)):
        if array is not None and (array.ndim != 2 or len(array) != len(true) or array.shape[1] == 0):
            raise UsageError(f"{what} must have a row for each of the {len(true)} words, got shape {array.shape}")
    if not true.any() or true.all():
        raise UsageError(
            f"{int(true.sum())} of {len(true)} words are marked as true: a threshold cannot be validated without words "
            "of both kinds"
        )
    if at.ndim != 1 or len(at) == 0:
        raise UsageError("at least one threshold is needed")
    largest, dropping = strongest(matrix, dropping_scores, rule, compare)
    tp, fp = _counts(largest, dropping, true, at)
    positives = int(true.sum())
    return DetectionCurve(at, tp, fp, positives - tp, len(true) - positives - fp, _area(largest, dropping, true))


def _counts(
    largest: NDArray[np.float64], dropping: NDArray[np.float64], true: NDArray[np.bool_], at: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sets = [detected(largest, dropping, threshold) for threshold in at]
    tp = np.array([np.count_nonzero(found & true) for found in sets])
    fp = np.array([np.count_nonzero(found & ~true) for found in sets])
    return tp, fp


def _area(largest: NDArray[np.float64], dropping: NDArray[np.float64], true: NDArray[np.bool_]) -> float:
    """Every value that a word has is a threshold at which the set may change; there are no others."""
    values = np.concatenate([largest, dropping, [-np.inf]])
    tp, fp = _counts(largest, dropping, true, np.unique(values[~np.isnan(values)]))
    positives = np.count_nonzero(true)
    x = np.concatenate([[0.0], fp / (len(true) - positives), [1.0]])
    y = np.concatenate([[0.0], tp / positives, [1.0]])
    order = np.lexsort((y, x))
    return float(np.trapezoid(np.maximum.accumulate(y[order]), x[order]))
