"""IBD and EIBD over a whole vocabulary: the words that rank highest for a group, with p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from biassay.errors import RefusedError
from biassay.models.devices import gpu
from biassay.stats.detection import detected, strongest
from biassay.stats.name_permutation import NamePermutations
from biassay.stats.pair_permutation import PairPermutations
from biassay.stimuli.groups import Group
from biassay.studies.discovery.family import Family
from biassay.studies.discovery.panel import Panel
from biassay.studies.discovery.settings import Settings
from biassay.studies.discovery.validation import Threshold

__all__ = ["RankedWords", "Search"]

_MANY = 100_000  # words: for fewer it takes longer to find a GPU than to do without
_SAME = 1.0 - 1e-6  # cosine from which on a word of the vocabulary is one of the names


@dataclass(frozen=True, eq=False)
class RankedWords:
    """The words of a vocabulary that rank highest for a group, best first, and how many there are of each kind.

    Attributes
    ----------
    words : list of str
    scores, constituents : (n, k), (n, c) float64
    score : (n,) float64
        The largest, or smallest, of the scores: what decides.
    p, q : (n,) float64
        Of the association with the group, by permutation of names; q after Benjamini and Hochberg's correction over the
        whole vocabulary.
    p_excess, q_excess : (n,) float64
        Of the excess over what the categories of the group contribute; q with the p-values of words that EIBD does not
        detect set to 1, so that what is expected to be chance is a share of the words called emergent.
    associated, eibd : (n,) bool
        Detected by IBD, and by EIBD, and with q at most alpha.
    emergent : (n,) bool
        With q of the excess at most alpha, which is so for words detected by EIBD only.
    num_words, num_above, num_associated, num_every, num_eibd, num_emergent : int
        Of the whole vocabulary: words; those above IBD's threshold; those associated, and of these those whose scores
        against every other group are above it; those by EIBD, and of these those emergent.
    """

    words: list[str]
    scores: NDArray[np.float64]
    constituents: NDArray[np.float64]
    score: NDArray[np.float64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]
    p_excess: NDArray[np.float64]
    q_excess: NDArray[np.float64]
    associated: NDArray[np.bool_]
    eibd: NDArray[np.bool_]
    emergent: NDArray[np.bool_]
    num_words: int
    num_above: int
    num_associated: int
    num_every: int
    num_eibd: int
    num_emergent: int


class Search:
    """Goes through a vocabulary block by block.

    Everything is kept of the ``keep`` words that rank highest in each list; of all others only what correction needs.
    """

    def __init__(
        self,
        panel: Panel,
        targets: Sequence[Group],
        thresholds: Mapping[str, tuple[Threshold, Threshold]],
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        places = [panel.place(target) for target in targets]
        self._panel, self._targets = panel, tuple(targets)
        self._threads = ThreadpoolController()
        most, count = settings.n_permutations, len(panel.categories)
        self._permutations = NamePermutations(panel.groups, panel.categories, places, most, rng)
        every = settings.compare == "every"
        self._pairs = PairPermutations(panel.groups, count, places, most, rng) if every else None
        self._ranked = {t.name: _Ranked(thresholds[t.name], settings) for t in targets}
        self._seen, self._looked = 0, False

    def add(self, words: Sequence[str], vectors: NDArray[np.floating]) -> None:
        """Score some words; those that are names of the groups are left out."""
        if not len(words):
            return
        self._seen += len(words)
        if self._seen > _MANY and not self._looked:
            self._move()
        cosines = self._panel.cosines(vectors, "vocabulary", words)
        others = np.flatnonzero(cosines.max(axis=1) <= _SAME)
        kept, cosines = [words[i] for i in others.tolist()], self._panel.average(cosines[others])
        # Products this small gain nothing from threads, which on a busy machine wait for each other without end.
        with self._threads.limit(limits=1, user_api="blas"):
            self._add(kept, cosines)

    def _move(self) -> None:
        """From now on permutations are made on a GPU, where there is one."""
        self._looked = True
        self._permutations.place = gpu()
        if self._pairs is not None:
            self._pairs.place = self._permutations.place

    def _add(self, kept: list[str], cosines: NDArray[np.float64]) -> None:
        scored = [self._panel.scores(target, cosines) for target in self._targets]
        largest = np.stack([np.fmax.reduce(scores, axis=1) for scores, _ in scored], axis=1)
        tails = self._permutations.tails(cosines, largest)
        p = tails.associated if self._pairs is None else self._pairs.tails(cosines)
        for i, (target, (scores, constituents)) in enumerate(zip(self._targets, scored, strict=True)):
            both = np.stack([p[:, i], tails.excess[:, i]], axis=1)
            self._ranked[target.name].add(kept, scores, constituents, both)

    def ranked(self) -> dict[str, RankedWords]:
        """The words, by the name of the target."""
        return {name: ranked.ranked() for name, ranked in self._ranked.items()}


@dataclass(frozen=True, eq=False)
class _Block:
    """Some words with their scores and p-values."""

    words: list[str]
    scores: NDArray[np.float64]
    constituents: NDArray[np.float64]
    p: NDArray[np.float64]  # of the association and of the excess
    marks: NDArray[np.bool_]  # above IBD's threshold, above it against every group, and EIBD

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.scores, self.constituents, self.p, self.marks

    def rows(self, rows: NDArray[np.intp]) -> _Block:
        return _Block([self.words[i] for i in rows.tolist()], *(array[rows] for array in self._arrays))

    @classmethod
    def joined(cls, one: _Block, other: _Block) -> _Block:
        pairs = zip(one._arrays, other._arrays, strict=True)
        return cls([*one.words, *other.words], *(np.concatenate(pair) for pair in pairs))


class _Ranked:
    """The words that rank highest for one target so far, and what correction needs of all."""

    def __init__(self, thresholds: tuple[Threshold, Threshold], settings: Settings) -> None:
        self._thresholds, self._keep = thresholds, settings.keep
        self._rule, self._compare = settings.rule, settings.compare
        self._family = Family(settings.alpha)
        self._best: _Block | None = None

    def add(
        self,
        words: list[str],
        scores: NDArray[np.float64],
        constituents: NDArray[np.float64],
        p: NDArray[np.float64],
    ) -> None:
        block = _Block(words, scores, constituents, p, self._detected(scores, constituents))
        self._family.add(p, block.marks)
        self._best = self._cut(block if self._best is None else _Block.joined(self._best, block))

    def _detected(self, scores: NDArray[np.float64], constituents: NDArray[np.float64]) -> NDArray[np.bool_]:
        own, emergent = (threshold.value for threshold in self._thresholds)
        above = detected(*strongest(scores, None, self._rule, self._compare), own)
        every = detected(*strongest(scores, None, self._rule, "every"), own)
        left = detected(*strongest(scores, constituents, self._rule, self._compare), emergent)
        return np.stack([above, every, left], axis=1)

    def _cut(self, block: _Block) -> _Block:
        """Keep the best of all words by score, earlier words first among equals, and the best of EIBD's by excess."""
        score, _ = strongest(block.scores, None, self._rule, self._compare)
        order = np.argsort(-np.nan_to_num(score, nan=-np.inf), kind="stable")
        kept = np.arange(len(order)) < self._keep
        eibd = np.flatnonzero(block.marks[order, 2])
        kept[eibd[np.argsort(block.p[order, 1][eibd], kind="stable")][: self._keep]] = True
        return block.rows(order[kept])

    def ranked(self) -> RankedWords:
        best, family = self._best, self._family
        if best is None or not family.num_words:
            raise RefusedError("no word was left to search: the model knows none of them, or they are the names")
        corrected = family.corrected()
        q = corrected.q(best.p[:, 0])
        associated, _, eibd = (best.marks & (q <= family.alpha)[:, None]).T
        q_excess = corrected.q_excess(best.p[:, 1], eibd)
        score, _ = strongest(best.scores, None, self._rule, self._compare)
        return RankedWords(
            words=best.words,
            scores=best.scores,
            constituents=best.constituents,
            score=score,
            p=best.p[:, 0],
            q=q,
            p_excess=best.p[:, 1],
            q_excess=q_excess,
            associated=associated,
            eibd=eibd,
            emergent=q_excess <= family.alpha,
            num_words=family.num_words,
            num_above=family.num_above,
            num_associated=corrected.num_associated,
            num_every=corrected.num_every,
            num_eibd=corrected.num_eibd,
            num_emergent=corrected.num_emergent,
        )
