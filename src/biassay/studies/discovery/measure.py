"""Search a vocabulary for words associated with groups, and validate against rated words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from biassay.datasets.groups import Group, Grouping
from biassay.errors import InsufficientVocabularyError, format_examples
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.devices import get_gpu_transfer
from biassay.results.outcomes import Outcome
from biassay.results.run_data import BaseRecord, none_if_nan
from biassay.stats.association import unit_rows
from biassay.stats.detection import (
    THRESHOLDS,
    DetectionCurve,
    SidePair,
    detection_curve,
    find_detected,
    pair_scores,
    strongest_scores,
)
from biassay.stats.multiple_testing import FdrAccumulator, FdrResult
from biassay.stats.name_permutation import NamePermutations, PairPermutations
from biassay.studies.discovery.results import CurveRow, GroupResult, Scores, Source, Task, ValidatedRow, WordRow
from biassay.studies.discovery.settings import DiscoverySettings
from biassay.studies.study import Array, Event, Row

_NEAR = 0.35  # share of the median distance within groups, below which two names are reported as near-duplicates


@dataclass(frozen=True, eq=False)
class GroupNameVectors:
    """Vectors of the names of all groups in one model.

    Attributes
    ----------
    names : (k, d) float64
        Unit vectors of the names in the vocabulary, group by group.
    clusters : (k,) int
        The cluster of every name, from 0. A name without near-duplicates is a cluster by itself.
    groups : (m,) int
        Index of every cluster's group.
    oov_names : group -> names
        Out-of-vocabulary names.
    similar : group -> pairs of names
        Names of different clusters with nearly the same vector.
    """

    grouping: Grouping
    names: NDArray[np.float64]
    clusters: NDArray[np.intp]
    groups: NDArray[np.intp]
    oov_names: Mapping[str, tuple[str, ...]]
    similar: Mapping[str, tuple[tuple[str, str], ...]]

    def cosines(self, vectors: NDArray[np.floating], what: str, words: Sequence[str]) -> NDArray[np.float64]:
        """Compute the cosines of words with every name.

        Parameters
        ----------
        vectors : (n, d) array
            Vectors of the words.
        what : str
            Name of the vectors, for error messages.
        words : (n,) sequence of str
            Words, for errors.

        Returns
        -------
        (n, k) float64
        """
        return np.asarray(unit_rows(vectors, what, words) @ self.names.T)

    def average(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average cosines (n, k) with names over the names of every cluster, (n, m)."""
        if len(self.groups) == len(self.names):
            return cosines
        member = self.clusters[:, None] == np.arange(len(self.groups))
        return np.asarray(cosines @ (member / member.sum(axis=0)))

    def scores(self, target: Group, cosines: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the scores of words against every other group, and of every pair of categories.

        Parameters
        ----------
        target : Group
        cosines : (n, m) float64
            Averages over the names of every cluster.
        """
        others = [self._sides((target.name,), (other.name,)) for other in self.grouping.comparison_groups(target)]
        pairs = [self._sides(pair.first, pair.second) for pair in self.grouping.constituents(target)]
        return pair_scores(cosines, others), pair_scores(cosines, pairs)

    def get_group_index(self, target: Group) -> int:
        """Return the index of a group."""
        return self.grouping.groups.index(target)

    @property
    def categories(self) -> NDArray[np.intp]:
        """Index of every group's value in every category, (groups, categories)."""
        categories = list(self.grouping.groups[0].belongs)
        values = [self.grouping.values(category) for category in categories]
        return np.array(
            [
                [of.index(group.belongs[category]) for category, of in zip(categories, values, strict=True)]
                for group in self.grouping.groups
            ],
            dtype=np.intp,
        )

    def _sides(self, first: tuple[str, ...], second: tuple[str, ...]) -> SidePair:
        names = [group.name for group in self.grouping.groups]
        sides = ([names.index(name) for name in side] for side in (first, second))
        one, other = (np.flatnonzero(np.isin(self.groups, side)) for side in sides)
        return one, other


def find_known_rows(encoded: TextEmbeddings) -> NDArray[np.bool_]:
    """Find the words, each a text of its own, that are in the vocabulary and were not truncated."""
    pairs = zip(encoded.unknown, encoded.truncated_at, strict=True)
    return np.array([not unknown and cut is None for unknown, cut in pairs], dtype=bool)


def make_group_name_vectors(
    grouping: Grouping, encoded: TextEmbeddings, max_unknown: float, hint: str = ""
) -> GroupNameVectors:
    """Make the name vectors of all groups. Raise an error if too many names of a group are out of vocabulary.

    Parameters
    ----------
    grouping : Grouping
    encoded : TextEmbeddings
        Names of all groups, in order.
    max_unknown : float
        Largest share of the names of a group that may be out of vocabulary.
    hint : str
        Advice that is added to the error.
    """
    known, at = find_known_rows(encoded), 0
    oov_names, rows, labels, left = {}, [], [], {}
    for index, group in enumerate(grouping.groups):
        mask = known[at : at + len(group.names)]
        oov_names[group.name] = tuple(name for name, there in zip(group.names, mask, strict=True) if not there)
        kept = [label for label, there in zip(group.cluster_labels, mask, strict=True) if there]
        _check_vocabulary(group, oov_names[group.name], len(set(kept)), max_unknown, hint)
        rows.append(unit_rows(encoded.vectors[at : at + len(mask)][mask], group.label))
        labels += [(index, label) for label in kept]
        left[group.name] = [name for name, there in zip(group.names, mask, strict=True) if there]
        at += len(mask)
    order = {cluster: i for i, cluster in enumerate(dict.fromkeys(labels))}
    return GroupNameVectors(
        grouping=grouping,
        names=np.concatenate(rows),
        clusters=np.array([order[cluster] for cluster in labels], dtype=np.intp),
        groups=np.array([index for index, _ in order], dtype=np.intp),
        oov_names=oov_names,
        similar=_find_similar(left, rows, labels),
    )


def _find_similar(
    names: Mapping[str, Sequence[str]], rows: Sequence[NDArray[np.float64]], labels: Sequence[tuple[int, str]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Find pairs of names, by group, that lie far closer together than two names of one group usually do."""
    distances, pairs = [], []
    for index, (group, own) in enumerate(names.items()):
        clusters = [label for of, label in labels if of == index]
        for i, j in combinations(range(len(own)), 2):
            if clusters[i] != clusters[j]:
                distances.append(1.0 - float(rows[index][i] @ rows[index][j]))
                pairs.append((group, own[i], own[j]))
    near = np.array(distances) < _NEAR * np.median(distances)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for (group, one, other), is_near in zip(pairs, near.tolist(), strict=True):
        if is_near:
            found[group] = (*found.get(group, ()), (one, other))
    return found


def _check_vocabulary(group: Group, oov_names: tuple[str, ...], clusters: int, max_unknown: float, hint: str) -> None:
    if len(oov_names) <= max_unknown * len(group.names) and clusters >= 2:
        return
    option = "`biassay discover --max-unknown`"
    limit = f"the limit is {max_unknown:.0%}, {option} changes it"
    if clusters < 2:
        limit = f"at least two{' clusters of names' if group.clusters else ''} must be left"
    count = f"{len(oov_names):,} of {len(group.names):,} names of {group.label}"
    reason = f"{count} are out of vocabulary ({format_examples(oov_names)})"
    raise InsufficientVocabularyError(f"{reason}; {limit}{f'; {hint}' if hint else ''}")


CONVENTIONAL_THRESHOLD = 0.8  # a large effect by convention, if no rated words can choose a threshold


@dataclass(frozen=True)
class Threshold:
    """A threshold and its source."""

    value: float
    source: Source


@dataclass(frozen=True, eq=False)
class ValidationCurve:
    """Detection of rated words at all thresholds.

    Attributes
    ----------
    curve : DetectionCurve
    chosen : int
        Index of the threshold in use.
    informative : bool
        Whether the best threshold detects any word of the group.
    """

    curve: DetectionCurve
    chosen: int
    informative: bool


@dataclass(frozen=True, eq=False)
class Validation:
    """Scores, thresholds and detection of the rated words of one group.

    Attributes
    ----------
    words : list of str
    scores, constituents : (n, k), (n, c) float64
    curve, curve_emergent : ValidationCurve or None
        For the words of the group, and for its emergent words. None if all known words belong to the group, or none.
    threshold, threshold_emergent : Threshold
    detected, detected_emergent : (n,) bool
        At these thresholds.
    """

    words: Sequence[str]
    scores: NDArray[np.float64]
    constituents: NDArray[np.float64]
    curve: ValidationCurve | None
    curve_emergent: ValidationCurve | None
    threshold: Threshold
    threshold_emergent: Threshold
    detected: NDArray[np.bool_]
    detected_emergent: NDArray[np.bool_]


def validate_words(
    name_vectors: GroupNameVectors,
    target: Group,
    words: Sequence[str],
    vectors: NDArray[np.floating],
    settings: DiscoverySettings,
) -> Validation:
    """Score rated words for a group, and choose its thresholds unless one is given.

    Parameters
    ----------
    name_vectors : GroupNameVectors
    target : Group
    words : sequence of str
    vectors : (n, d) float
        Vectors of the words.
    settings : DiscoverySettings
    """
    if len(words):
        cosines = name_vectors.average(name_vectors.cosines(vectors, "validation words", words))
    else:
        cosines = np.empty((0, len(name_vectors.groups)))
    scores, constituents = name_vectors.scores(target, cosines)
    found = [
        _validate_task(scores, dropping, np.array([word in of for word in words], dtype=bool), settings)
        for dropping, of in ((None, target.biases), (constituents, target.emergent))
    ]
    (curve, at, own), (curve_emergent, at_emergent, emergent) = found
    return Validation(words, scores, constituents, curve, curve_emergent, at, at_emergent, own, emergent)


def _validate_task(
    scores: NDArray[np.float64],
    dropping: NDArray[np.float64] | None,
    truth: NDArray[np.bool_],
    settings: DiscoverySettings,
) -> tuple[ValidationCurve | None, Threshold, NDArray[np.bool_]]:
    """Return the curve, the threshold and the detected words of IBD, or of EIBD if scores drop words."""
    given, rule, compare = settings.threshold, settings.rule, settings.compare
    curve = None
    if truth.any() and not truth.all():
        grid = THRESHOLDS if given is None else np.unique([*THRESHOLDS, given])
        points = detection_curve(scores, truth, constituents=dropping, rule=rule, compare=compare, thresholds=grid)
        best = points.best(positive_only=settings.positive_only)
        informative = bool(points.tp[best])
        wanted = CONVENTIONAL_THRESHOLD if given is None else given
        nearest = int(np.argmin(np.abs(points.thresholds - wanted)))
        index = best if given is None and informative else nearest
        curve = ValidationCurve(points, index, informative)
    at = _choose_threshold(curve, given)
    return curve, at, find_detected(*strongest_scores(scores, dropping, rule, compare), at.value)


def _choose_threshold(curve: ValidationCurve | None, given: float | None) -> Threshold:
    if given is not None:
        return Threshold(given, "given")
    if curve is None or not curve.informative:
        return Threshold(CONVENTIONAL_THRESHOLD, "convention")
    return Threshold(float(curve.curve.thresholds[curve.chosen]), "validation")


_MANY = 100_000  # words: for fewer it takes longer to find a GPU than to do without
_SAME = 1.0 - 1e-6  # cosine from which on a word of the vocabulary is one of the names


@dataclass(frozen=True, eq=False)
class RankedWords:
    """Words of a vocabulary that rank highest for a group, best first, and counts over the whole vocabulary.

    Attributes
    ----------
    words : list of str
    scores, constituents : (n, k), (n, c) float64
    score : (n,) float64
        The largest, or smallest, of the scores, which decides.
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
    corrected: FdrResult


class VocabularySearch:
    """Search a vocabulary block by block.

    Stores the ``keep`` highest-ranked words of each list and, for all others, only the p-values for the correction.
    """

    def __init__(
        self,
        name_vectors: GroupNameVectors,
        targets: Sequence[Group],
        thresholds: Mapping[str, tuple[Threshold, Threshold]],
        settings: DiscoverySettings,
        rng: np.random.Generator,
    ) -> None:
        indices = [name_vectors.get_group_index(target) for target in targets]
        self._name_vectors, self._targets = name_vectors, tuple(targets)
        self._threads = ThreadpoolController()
        most, count = settings.n_permutations, len(name_vectors.categories)
        self._permutations = NamePermutations(name_vectors.groups, name_vectors.categories, indices, most, rng)
        every = settings.compare == "every"
        self._pairs = PairPermutations(name_vectors.groups, count, indices, most, rng) if every else None
        self._ranked = {t.name: _TopWords(thresholds[t.name], settings) for t in targets}
        self._seen, self._looked = 0, False

    def add(self, words: Sequence[str], vectors: NDArray[np.floating]) -> None:
        """Score some words; those that are names of the groups are left out."""
        if not len(words):
            return
        self._seen += len(words)
        if self._seen > _MANY and not self._looked:
            self._move()
        cosines = self._name_vectors.cosines(vectors, "vocabulary", words)
        others = np.flatnonzero(cosines.max(axis=1) <= _SAME)
        kept, cosines = [words[i] for i in others.tolist()], self._name_vectors.average(cosines[others])
        # Products this small gain nothing from threads, which on a busy machine wait for each other without end.
        with self._threads.limit(limits=1, user_api="blas"):
            self._add(kept, cosines)

    def _move(self) -> None:
        """Make permutations on a GPU from now on, if there is one."""
        self._looked = True
        self._permutations.to_device = get_gpu_transfer()
        if self._pairs is not None:
            self._pairs.to_device = self._permutations.to_device

    def _add(self, kept: list[str], cosines: NDArray[np.float64]) -> None:
        scored = [self._name_vectors.scores(target, cosines) for target in self._targets]
        largest = np.stack([np.fmax.reduce(scores, axis=1) for scores, _ in scored], axis=1)
        tails = self._permutations.p_values(cosines, largest)
        p = tails.associated if self._pairs is None else self._pairs.p_values(cosines)
        for i, (target, (scores, constituents)) in enumerate(zip(self._targets, scored, strict=True)):
            both = np.stack([p[:, i], tails.excess[:, i]], axis=1)
            self._ranked[target.name].add(kept, scores, constituents, both)

    def ranked(self) -> dict[str, RankedWords]:
        """Return the words by name of the target group."""
        return {name: ranked.ranked() for name, ranked in self._ranked.items()}


@dataclass(frozen=True, eq=False)
class _Block:
    """Words with their scores and p-values."""

    words: list[str]
    scores: NDArray[np.float64]
    constituents: NDArray[np.float64]
    p: NDArray[np.float64]  # p-values of the association and of the excess
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


class _TopWords:
    """Keep the highest-ranked words of one target, and the p-values of all words for the correction."""

    def __init__(self, thresholds: tuple[Threshold, Threshold], settings: DiscoverySettings) -> None:
        self._thresholds, self._keep = thresholds, settings.keep
        self._rule, self._compare = settings.rule, settings.compare
        self._family = FdrAccumulator(settings.alpha)
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
        above = find_detected(*strongest_scores(scores, None, self._rule, self._compare), own)
        every = find_detected(*strongest_scores(scores, None, self._rule, "every"), own)
        left = find_detected(*strongest_scores(scores, constituents, self._rule, self._compare), emergent)
        return np.stack([above, every, left], axis=1)

    def _cut(self, block: _Block) -> _Block:
        """Keep the best of all words by score, earlier words first among equals, and the best of EIBD's by excess."""
        score, _ = strongest_scores(block.scores, None, self._rule, self._compare)
        order = np.argsort(-np.nan_to_num(score, nan=-np.inf), kind="stable")
        kept = np.arange(len(order)) < self._keep
        eibd = np.flatnonzero(block.marks[order, 2])
        kept[eibd[np.argsort(block.p[order, 1][eibd], kind="stable")][: self._keep]] = True
        return block.rows(order[kept])

    def ranked(self) -> RankedWords:
        best, family = self._best, self._family
        if best is None or not family.num_words:
            raise InsufficientVocabularyError(
                "no word is left to search: all are out of vocabulary or names of the groups"
            )
        corrected = family.correct()
        q = corrected.q(best.p[:, 0])
        associated, _, eibd = (best.marks & (q <= family.alpha)[:, None]).T
        q_excess = corrected.q_excess(best.p[:, 1], eibd)
        score, _ = strongest_scores(best.scores, None, self._rule, self._compare)
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
            corrected=corrected,
        )


CURVE_ARRAYS = ("thresholds", "tp", "fp", "fn", "tn")
"""Last parts of the names of a detection curve's arrays, after its group and task."""


def make_array_name(group: str, task: Task, name: str) -> str:
    """Return the name of an array of a detection curve.

    Parameters
    ----------
    group : str
    task : Task
    name : str
        One of `CURVE_ARRAYS`.
    """
    return f"{group}/{task}/{name}"


class GroupRowBuilder:
    """Build the rows and arrays of one group in one model."""

    def __init__(self, identity: Identity, grouping: Grouping, target: Group) -> None:
        self._target = target
        self._others = tuple(other.name for other in grouping.comparison_groups(target))
        self._pairs = tuple(pair.label for pair in grouping.constituents(target))
        self._revision = identity.revision
        self._of: dict[str, Any] = {"model": identity.name, "options": identity.options, "group": target.name}

    def events(self, validation: Validation, ranked: RankedWords) -> Iterator[Event]:
        """Yield all rows and arrays of the group."""
        yield Row("groups", self._group(validation, ranked))
        curves: tuple[tuple[Task, ValidationCurve | None], ...]
        curves = ("ibd", validation.curve), ("eibd", validation.curve_emergent)
        for task, curve in curves:
            if curve is not None:
                yield Row("curves", self._curve(task, curve))
                for name in CURVE_ARRAYS:
                    values = np.asarray(getattr(curve.curve, name), dtype=np.float64)
                    yield Array(make_array_name(self._target.name, task, name), values)
        yield from (Row("validated", row) for row in self._validated(validation))
        yield from (Row("results", row) for row in self._words(ranked))

    def _group(self, validation: Validation, ranked: RankedWords) -> BaseRecord:
        own, emergent = validation.threshold, validation.threshold_emergent
        words = {"words": ranked.num_words}
        return GroupResult(
            **self._of,
            model_revision=self._revision,
            title=self._target.label,
            topic=", ".join(self._target.belongs),
            outcome=_count_words(ranked.corrected.num_associated, words, ranked.q),
            alternatives={
                "eibd": _count_words(ranked.corrected.num_eibd, words),
                "emergent": _count_words(ranked.corrected.num_emergent, words, ranked.q_excess),
            },
            belongs=dict(self._target.belongs),
            other_groups=self._others,
            constituents=self._pairs,
            threshold=own.value,
            threshold_source=own.source,
            threshold_emergent=emergent.value,
            threshold_emergent_source=emergent.source,
            n_above=ranked.num_above,
            n_every=ranked.corrected.num_every,
        )

    def _curve(self, task: Task, fitted: ValidationCurve) -> BaseRecord:
        curve, at = fitted.curve, fitted.chosen
        return CurveRow(
            **self._of,
            task=task,
            outcome=Outcome(
                effect_size=curve.area,
                scale="area under the curve",
                null=0.5,
                n={"rated words": int(curve.tp[at] + curve.fp[at] + curve.fn[at] + curve.tn[at])},
            ),
            chance=curve.chance,
            chosen=float(curve.thresholds[at]),
            accuracy=float(curve.accuracy[at]),
            precision=none_if_nan(curve.precision[at]),
            recall=float(curve.tpr[at]),
            false_positive_rate=float(curve.fpr[at]),
        )

    def _validated(self, validation: Validation) -> Iterator[BaseRecord]:
        for row, word in enumerate(validation.words):
            yield ValidatedRow(
                **self._of,
                word=word,
                of_group=word in self._target.biases,
                emergent_of_group=word in self._target.emergent,
                **self._scores(validation, row),
                detected=bool(validation.detected[row]),
                detected_emergent=bool(validation.detected_emergent[row]),
            )

    def _words(self, ranked: RankedWords) -> Iterator[BaseRecord]:
        for row, word in enumerate(ranked.words):
            yield WordRow(
                **self._of,
                word=word,
                effect_size=none_if_nan(ranked.score[row]),
                **self._scores(ranked, row),
                p_value=none_if_nan(ranked.p[row]),
                p_adjusted=none_if_nan(ranked.q[row]),
                excess_p_value=none_if_nan(ranked.p_excess[row]),
                excess_p_adjusted=none_if_nan(ranked.q_excess[row]),
                associated=bool(ranked.associated[row]),
                eibd=bool(ranked.eibd[row]),
                emergent=bool(ranked.emergent[row]),
            )

    def _scores(self, scored: Validation | RankedWords, row: int) -> dict[str, Any]:
        return {
            "scores": _name_scores(self._others, scored.scores[row]),
            "constituents": _name_scores(self._pairs, scored.constituents[row]),
        }


def _count_words(number: int, words: dict[str, int], q: NDArray[np.float64] | None = None) -> Outcome:
    """Return the number of words as an outcome, with the smallest adjusted p-value of the kept words."""
    known = np.empty(0) if q is None else q[~np.isnan(q)]
    return Outcome(
        effect_size=float(number),
        scale="words",
        p_value=float(known.min()) if len(known) else None,
        test="" if q is None else "smallest adjusted p-value of the kept words",
        n=words,
    )


def _name_scores(names: Sequence[str], values: NDArray[np.float64]) -> Scores:
    return dict(zip(names, map(none_if_nan, values), strict=True))
