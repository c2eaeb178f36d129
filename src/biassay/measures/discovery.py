"""IBD and EIBD over a whole vocabulary: the words that rank highest for a group, with p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MeasurementError
from biassay.measures.panel import Panel
from biassay.measures.validation import Threshold
from biassay.stats.association import unit_rows
from biassay.stats.detection import Rule, detected, strongest
from biassay.stats.multiple import benjamini_hochberg
from biassay.stats.name_permutation import NamePermutations
from biassay.stimuli.groups import Group

__all__ = ["Found", "Search"]

_SAME = 1.0 - 1e-6  # cosine from which on a word of the vocabulary is one of the names


@dataclass(frozen=True, eq=False)
class Found:
    """The words of a vocabulary that rank highest for a group, best first, and how many there are of each kind.

    Attributes
    ----------
    words : list of str
    scores, constituents : (n, k), (n, c) float64
    p, q : (n,) float64
        Of the association with the group, by dealing the names anew; q after Benjamini and Hochberg's correction over
        the whole vocabulary.
    p_emergent, q_emergent : (n,) float64
        The same of the excess over what the categories of the group contribute.
    associated, emergent : (n,) bool
        Detected by IBD, and by EIBD, and with q at most alpha.
    num_words, num_associated, num_emergent, num_excess : int
        Of the whole vocabulary: words, those associated, those emergent, and those of them whose excess is significant.
    at_floor : int
        Words whose p is the smallest that so many permutations can give.
    """

    words: list[str]
    scores: NDArray[np.float64]
    constituents: NDArray[np.float64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]
    p_emergent: NDArray[np.float64]
    q_emergent: NDArray[np.float64]
    associated: NDArray[np.bool_]
    emergent: NDArray[np.bool_]
    num_words: int
    num_associated: int
    num_emergent: int
    num_excess: int
    at_floor: int


class Search:
    """Goes through a vocabulary block by block.

    Of all words two p-values and two marks are kept, of the ``keep`` words that rank highest in each list everything.
    """

    def __init__(
        self,
        panel: Panel,
        targets: Sequence[Group],
        thresholds: Mapping[str, tuple[Threshold, Threshold]],
        rule: Rule,
        *,
        permutations: int,
        keep: int,
        rng: np.random.Generator,
    ) -> None:
        places = [panel.place(target) for target in targets]
        self._panel, self._targets, self._keep = panel, tuple(targets), keep
        self._permutations = NamePermutations(panel.groups, panel.categories, places, permutations, rng)
        self._ranked = {target.name: _Ranked(keep, thresholds[target.name], rule) for target in targets}

    def add(self, words: Sequence[str], vectors: NDArray[np.floating]) -> None:
        """Score some words; those that are names of the groups are left out."""
        if not len(words):
            return
        cosines = unit_rows(vectors, "vocabulary", words) @ self._panel.names.T
        others = np.flatnonzero(cosines.max(axis=1) <= _SAME)
        kept, cosines = [words[i] for i in others.tolist()], cosines[others]
        scored = [self._panel.scores(target, cosines) for target in self._targets]
        largest = np.stack([np.fmax.reduce(scores, axis=1) for scores, _ in scored], axis=1)
        tails = self._permutations.tails(cosines, largest)
        for i, (target, (scores, constituents)) in enumerate(zip(self._targets, scored, strict=True)):
            p = np.stack([tails.associated[:, i], tails.emergent[:, i]], axis=1)
            self._ranked[target.name].add(kept, scores, constituents, p)

    def found(self, alpha: float) -> dict[str, Found]:
        """What was found, by the name of the target."""
        floor = 1.0 / (1 + self._permutations.deals)
        return {name: ranked.found(alpha, floor) for name, ranked in self._ranked.items()}


class _Ranked:
    """The words that rank highest for one target so far."""

    def __init__(self, keep: int, thresholds: tuple[Threshold, Threshold], rule: Rule) -> None:
        self._keep, self._thresholds, self._rule = keep, thresholds, rule
        self._p: list[NDArray[np.float64]] = []
        self._marks: list[NDArray[np.bool_]] = []
        self._words: list[str] = []
        self._places = np.empty(0, dtype=np.intp)
        self._emergent = np.empty(0, dtype=bool)
        self._scores: NDArray[np.float64] | None = None  # against others, then those of constituents
        self._split = self._seen = 0

    def add(
        self,
        words: list[str],
        scores: NDArray[np.float64],
        constituents: NDArray[np.float64],
        p: NDArray[np.float64],
    ) -> None:
        marks = [
            detected(*strongest(scores, dropping, self._rule), threshold.value)
            for dropping, threshold in zip((None, constituents), self._thresholds, strict=True)
        ]
        self._p.append(p)
        self._marks.append(np.stack(marks, axis=1))
        self._emergent = np.concatenate([self._emergent, marks[1]])
        self._split = scores.shape[1]
        both = np.concatenate([scores, constituents], axis=1)
        self._words += words
        self._places = np.concatenate([self._places, self._seen + np.arange(len(words))])
        self._scores = both if self._scores is None else np.concatenate([self._scores, both])
        self._seen += len(words)
        self._cut()

    def _cut(self) -> None:
        """Keep the best of all words and the best of the emergent ones, by score, earlier words first among equals."""
        assert self._scores is not None
        largest = np.fmax.reduce(self._scores[:, : self._split], axis=1)
        order = np.argsort(-np.nan_to_num(largest, nan=-np.inf), kind="stable")
        emergent = self._emergent[order]
        best = order[(np.arange(len(order)) < self._keep) | (emergent & (np.cumsum(emergent) <= self._keep))]
        self._words = [self._words[i] for i in best]
        self._places, self._scores, self._emergent = self._places[best], self._scores[best], self._emergent[best]

    def found(self, alpha: float, floor: float) -> Found:
        if self._scores is None:
            raise MeasurementError("the vocabulary holds no word but the names themselves")
        p, marks = np.concatenate(self._p), np.concatenate(self._marks)
        q = np.stack([benjamini_hochberg(p[:, i], alpha).adjusted for i in range(2)], axis=1)
        associated, emergent = (marks[:, i] & (q[:, 0] <= alpha) for i in range(2))
        rows = self._places
        return Found(
            words=self._words,
            scores=self._scores[:, : self._split],
            constituents=self._scores[:, self._split :],
            p=p[rows, 0],
            q=q[rows, 0],
            p_emergent=p[rows, 1],
            q_emergent=q[rows, 1],
            associated=associated[rows],
            emergent=emergent[rows],
            num_words=len(p),
            num_associated=int(associated.sum()),
            num_emergent=int(emergent.sum()),
            num_excess=int((emergent & (q[:, 1] <= alpha)).sum()),
            at_floor=int((p[:, 0] <= floor).sum()),
        )
