"""IBD and EIBD: words that a model associates with an intersectional group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import DegenerateError, UsageError, VectorError
from biassay.stats.association import unit_rows
from biassay.stats.detection import RULES, Rule, SidePair, find_detected, pair_scores, strongest_scores
from biassay.stats.permutation import check_choice

_Floats = NDArray[np.float64]
_SAME = 1.0 - 1e-6  # cosine from which on two rows are taken for the same name, in single precision too


@dataclass(frozen=True, eq=False)
class Detection:
    """The words that were detected.

    Attributes
    ----------
    scores : (n, k) float64
        Association score of every word for the target against each of the k other groups, in standard deviations.
    detected : (n,) bool
        IBD: a score is above the threshold. EIBD: and the constituents do not explain it.
    threshold : float
    constituent_scores : (n, c) float64 or None
        Scores between the sides of the constituent pairs; None for IBD.
    rule : {"any", "all"} or None
        Which constituent scores drop a word.

    The words describe the model, not people, and could be misused to write stereotypes.
    """

    scores: NDArray[np.float64]
    detected: NDArray[np.bool_]
    threshold: float
    constituent_scores: NDArray[np.float64] | None = None
    rule: Rule | None = None


def ibd(words: ArrayLike, target: ArrayLike, others: Sequence[ArrayLike], *, threshold: float) -> Detection:
    """Detect words that a model associates with a group more than with at least one other group.

    Parameters
    ----------
    words : (n, d) array-like
    target : (k, d) array-like
        Vectors of the names of the group.
    others : list of (k, d) array-like
        Vectors of the names of each of the groups it is compared with.
    threshold : float
        Scores above it count.

    Returns
    -------
    Detection
        The scores of every word, and which words are detected.

    Notes
    -----
    The score of a word is the effect size of `wefat` between the names of the target and those of another group.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import numpy as np, biassay
    >>> rng = np.random.default_rng(0)
    >>> group, other = rng.normal(1, 1, (6, 20)), rng.normal(-1, 1, (6, 20))
    >>> found = biassay.ibd([group.mean(axis=0), other.mean(axis=0)], group, [other], threshold=0.5)
    >>> found.detected
    array([ True, False])
    """
    return _detect_words(words, target, others, None, threshold, "any")


def eibd(
    words: ArrayLike,
    target: ArrayLike,
    others: Sequence[ArrayLike],
    *,
    constituents: Sequence[tuple[ArrayLike, ArrayLike]],
    threshold: float,
    rule: Rule = "any",
) -> Detection:
    """Detect words of `ibd` that a model does not associate with the categories of the group one by one.

    Parameters
    ----------
    words, target, others, threshold
        As for `ibd`.
    constituents : list of pairs of (m, d) array-like
        For every category of the target, names of all groups that share it, against names of all groups with another
        value of the category. The first of a pair holds the target's names, the second does not.
    rule : {"any", "all"}
        Whether a word is dropped when any constituent score is above the threshold (the paper's prose), or only when
        all of them are (its formula).

    Returns
    -------
    Detection
        As from `ibd`, with the scores of the constituents.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    A word of old women, and the word "old", with names in four groups of age and gender:

    >>> import numpy as np, biassay
    >>> rng = np.random.default_rng(0)
    >>> old, female, both = np.eye(3)
    >>> means = {"old women": old + female + both, "old men": old, "young women": female, "young men": 0 * old}
    >>> names = {group: mean + rng.normal(0, 0.1, (4, 3)) for group, mean in means.items()}
    >>> target, *others = names.values()
    >>> age = np.vstack([target, names["old men"]]), np.vstack([names["young women"], names["young men"]])
    >>> gender = np.vstack([target, names["young women"]]), np.vstack([names["old men"], names["young men"]])
    >>> biassay.eibd([both, old], target, others, constituents=[age, gender], threshold=1.2).detected
    array([ True, False])
    """
    check_choice("rule", rule, RULES)
    if len(constituents) == 0:
        raise UsageError("constituents must hold at least one pair of arrays; for none use ibd()")
    return _detect_words(words, target, others, constituents, threshold, rule)


def _detect_words(
    words: ArrayLike,
    target: ArrayLike,
    others: Sequence[ArrayLike],
    constituents: Sequence[tuple[ArrayLike, ArrayLike]] | None,
    threshold: float,
    rule: Rule,
) -> Detection:
    if np.isnan(threshold):
        raise UsageError("the threshold is NaN; give a number")
    if len(others) == 0:
        raise UsageError("others must hold at least one group to compare the target with")
    rows = unit_rows(words, "words")
    group = _check_group(target, "target", rows)
    compared = [_check_group(other, f"others[{i}]", rows) for i, other in enumerate(others)]
    for i, other in enumerate(compared):
        if (shared := _find_shared_rows(group, other)).any():
            raise UsageError(
                f"row {int(np.argmax(shared))} of target is also in others[{i}]; groups cannot share names"
            )
    scores, of_pairs = _score_words(rows, [(group, other) for other in compared]), None
    if constituents is not None:
        of_pairs = _score_words(rows, [_split_constituent(pair, group, i) for i, pair in enumerate(constituents)])
    detected = find_detected(*strongest_scores(scores, of_pairs, rule), threshold)
    return Detection(scores, detected, threshold, of_pairs, None if constituents is None else rule)


def _check_group(vectors: ArrayLike, what: str, words: _Floats) -> _Floats:
    """Return the unit vectors of at least two names, in the same dimension as the words."""
    rows = unit_rows(vectors, what)
    if len(rows) < 2:
        raise UsageError(f"{what} has one name; a group needs at least two")
    if rows.shape[1] != words.shape[1]:
        dimensions = sorted({rows.shape[1], words.shape[1]})
        raise VectorError(f"words and names must have the same dimension, got {dimensions}")
    return rows


def _find_shared_rows(group: _Floats, other: _Floats) -> NDArray[np.bool_]:
    """Find the rows of the group that are rows of the other group as well."""
    return np.asarray((group @ other.T).max(axis=1) > _SAME)


def _split_constituent(pair: tuple[ArrayLike, ArrayLike], group: _Floats, place: int) -> tuple[_Floats, _Floats]:
    if len(pair) != 2:
        raise UsageError(f"constituents[{place}] must be a pair of arrays, got {len(pair)}")
    first, second = (_check_group(side, f"constituents[{place}][{i}]", group) for i, side in enumerate(pair))
    inside, outside = _find_shared_rows(group, first), _find_shared_rows(group, second)
    if not inside.all():
        raise UsageError(
            f"constituents[{place}][0] does not contain the target: row {int(np.argmin(inside))} of target is missing"
        )
    if outside.any():
        raise UsageError(f"constituents[{place}][1] contains row {int(np.argmax(outside))} of target; it must not")
    return first, second


def _score_words(rows: _Floats, pairs: Sequence[tuple[_Floats, _Floats]]) -> _Floats:
    columns = []
    for first, second in pairs:
        cosines = rows @ np.concatenate([first, second]).T
        sides: SidePair = np.arange(len(first)), np.arange(len(first), len(first) + len(second))
        columns.append(pair_scores(cosines, [sides])[:, 0])
    scores = np.stack(columns, axis=1)
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores).any(axis=1)))
        raise DegenerateError(f"word {row} has the same cosine with every name: its score would divide by zero")
    return scores
