"""Search a vocabulary for words associated with groups, and validate against rated words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from biassay.datasets.groups import Group, Grouping
from biassay.errors import InsufficientVocabularyError, format_examples
from biassay.grouping import group_pairs
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.devices import get_gpu_transfer
from biassay.results.outcomes import Outcome
from biassay.results.run_data import none_if_nan
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
from biassay.studies.discovery.results import CurveRow, GroupResult, Source, Task, ValidatedRow, WordRow
from biassay.studies.discovery.settings import DiscoverySettings
from biassay.studies.study import Array, Event, Row

_Floats = NDArray[np.float64]
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
    names: _Floats
    clusters: NDArray[np.intp]
    groups: NDArray[np.intp]
    oov_names: Mapping[str, tuple[str, ...]]
    similar: Mapping[str, tuple[tuple[str, str], ...]]

    def cosines(self, vectors: NDArray[np.floating], what: str, words: Sequence[str]) -> _Floats:
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

    def average(self, cosines: _Floats) -> _Floats:
        """Average cosines (n, k) with names over the names of every cluster, (n, m)."""
        if len(self.groups) == len(self.names):
            return cosines
        member = self.clusters[:, None] == np.arange(len(self.groups))
        return np.asarray(cosines @ (member / member.sum(axis=0)))

    def scores(self, target: Group, cosines: _Floats) -> tuple[_Floats, _Floats]:
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

    @property
    def categories(self) -> NDArray[np.intp]:
        """Index of every group's value in every category, (groups, categories)."""
        values = {category: self.grouping.values(category) for category in self.grouping.groups[0].belongs}
        return np.array(
            [[of.index(group.belongs[name]) for name, of in values.items()] for group in self.grouping.groups],
            dtype=np.intp,
        )

    def _sides(self, first: tuple[str, ...], second: tuple[str, ...]) -> SidePair:
        names = np.array([group.name for group in self.grouping.groups])[self.groups]
        return np.flatnonzero(np.isin(names, first)), np.flatnonzero(np.isin(names, second))


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
        names, mask = np.array(group.names, dtype=object), known[at : at + len(group.names)]
        left[group.name], oov_names[group.name] = names[mask].tolist(), tuple(names[~mask].tolist())
        own = [(index, label) for label, there in zip(group.cluster_labels, mask, strict=True) if there]
        _check_vocabulary(group, oov_names[group.name], len(set(own)), max_unknown, hint)
        rows.append(unit_rows(encoded.vectors[at : at + len(mask)][mask], group.label))
        labels += own
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
    names: Mapping[str, Sequence[str]], rows: Sequence[_Floats], labels: Sequence[tuple[int, str]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Find pairs of names, by group, that lie far closer together than two names of one group usually do."""
    distances: dict[tuple[str, str, str], float] = {}
    for index, (group, own) in enumerate(names.items()):
        clusters = [label for of, label in labels if of == index]
        for i, j in combinations(range(len(own)), 2):
            if clusters[i] != clusters[j]:
                distances[group, own[i], own[j]] = 1.0 - float(rows[index][i] @ rows[index][j])
    limit = _NEAR * np.median(list(distances.values()))
    near = group_pairs((group, pair) for (group, *pair), distance in distances.items() if distance < limit)
    return {group: tuple((one, other) for one, other in pairs) for group, pairs in near.items()}


def _check_vocabulary(group: Group, oov_names: tuple[str, ...], clusters: int, max_unknown: float, hint: str) -> None:
    if len(oov_names) <= max_unknown * len(group.names) and clusters >= 2:
        return
    limit = f"the limit is {max_unknown:.0%}, `biassay discover --max-unknown` changes it"
    if clusters < 2:
        limit = f"at least two{' clusters of names' if group.clusters else ''} must be left"
    raise InsufficientVocabularyError(
        f"{len(oov_names):,} of {len(group.names):,} names of {group.label} are out of vocabulary "
        f"({format_examples(oov_names)}); {limit}{f'; {hint}' if hint else ''}"
    )


CONVENTIONAL_THRESHOLD = 0.8  # a large effect by convention, if no rated words can choose a threshold


@dataclass(frozen=True, eq=False)
class Trial:
    """Detection of rated words by one rule.

    Attributes
    ----------
    threshold : float
        Threshold in use.
    source : Source
        How the threshold was chosen.
    detected : (n,) bool
        Rated words that the threshold detects.
    curve : DetectionCurve or None
        Detection at all thresholds. None unless some rated words belong to the group and some do not.
    chosen : int
        Index of the threshold in the curve.
    """

    threshold: float
    source: Source
    detected: NDArray[np.bool_]
    curve: DetectionCurve | None
    chosen: int


@dataclass(frozen=True, eq=False)
class Validation:
    """Scores (n, k) and (n, c) of the n rated words of a group, with their detection by IBD and EIBD."""

    words: Sequence[str]
    scores: _Floats
    constituents: _Floats
    trials: Mapping[Task, Trial]

    @property
    def thresholds(self) -> tuple[float, float]:
        """Thresholds of IBD and EIBD."""
        return self.trials["ibd"].threshold, self.trials["eibd"].threshold


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
    cosines = np.empty((0, len(name_vectors.groups)))
    if len(words):
        cosines = name_vectors.average(name_vectors.cosines(vectors, "validation words", words))
    scores, constituents = name_vectors.scores(target, cosines)
    trials: dict[Task, Trial] = {
        "ibd": _run_trial(scores, None, _find_rated(words, target.biases), settings),
        "eibd": _run_trial(scores, constituents, _find_rated(words, target.emergent), settings),
    }
    return Validation(words, scores, constituents, trials)


def _find_rated(words: Sequence[str], rated: Collection[str]) -> NDArray[np.bool_]:
    return np.array([word in rated for word in words], dtype=bool)


def _run_trial(
    scores: _Floats,
    dropping: _Floats | None,
    truth: NDArray[np.bool_],
    settings: DiscoverySettings,
) -> Trial:
    """Choose a threshold and detect the words. Without `dropping` the rule is IBD, otherwise EIBD."""
    given, rule, compare = settings.threshold, settings.rule, settings.compare
    source: Source = "convention" if given is None else "given"
    threshold, curve, chosen = CONVENTIONAL_THRESHOLD if given is None else given, None, 0
    if truth.any() and not truth.all():
        grid = THRESHOLDS if given is None else np.unique([*THRESHOLDS, given])
        curve = detection_curve(scores, truth, constituents=dropping, rule=rule, compare=compare, thresholds=grid)
        chosen = int(np.argmin(np.abs(curve.thresholds - threshold)))
        best = curve.best(positive_only=settings.positive_only)
        if given is None and curve.tp[best]:  # otherwise even the best threshold detects no word of the group
            chosen, threshold, source = best, float(curve.thresholds[best]), "validation"
    detected = find_detected(*strongest_scores(scores, dropping, rule, compare), threshold)
    return Trial(threshold, source, detected, curve, chosen)


_MANY = 100_000  # words: for fewer it takes longer to find a GPU than to do without
_SAME = 1.0 - 1e-6  # cosine from which on a word of the vocabulary is one of the names


@dataclass(frozen=True, eq=False)
class RankedWords:
    """Words of a vocabulary that rank highest for a group, best first, and counts over the whole vocabulary.

    Attributes
    ----------
    words : (n,) object
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
    num_words, num_above : int
        Words of the whole vocabulary, and those above IBD's threshold.
    corrected : FdrResult
        Numbers of significant words of the whole vocabulary.
    """

    words: NDArray[np.object_]
    scores: _Floats
    constituents: _Floats
    score: _Floats
    p: _Floats
    q: _Floats
    p_excess: _Floats
    q_excess: _Floats
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
        thresholds: Mapping[str, tuple[float, float]],
        settings: DiscoverySettings,
        rng: np.random.Generator,
    ) -> None:
        indices = [name_vectors.grouping.groups.index(target) for target in targets]
        self._name_vectors, self._targets = name_vectors, tuple(targets)
        self._threads = ThreadpoolController()
        most, categories = settings.n_permutations, name_vectors.categories
        self._permutations = NamePermutations(name_vectors.groups, categories, indices, most, rng)
        every = settings.compare == "every"
        self._pairs = PairPermutations(name_vectors.groups, len(categories), indices, most, rng) if every else None
        self._ranked = {t.name: _TopWords(thresholds[t.name], settings) for t in targets}
        self._seen, self._looked = 0, False

    def add(self, words: Sequence[str], vectors: NDArray[np.floating]) -> None:
        """Score some words; those that are names of the groups are left out."""
        if not len(words):
            return
        self._seen += len(words)
        if self._seen > _MANY and not self._looked:  # make permutations on a GPU from now on, if there is one
            self._looked = True
            self._permutations.to_device = get_gpu_transfer()
            if self._pairs is not None:
                self._pairs.to_device = self._permutations.to_device
        cosines = self._name_vectors.cosines(vectors, "vocabulary", words)
        others = np.flatnonzero(cosines.max(axis=1) <= _SAME)
        kept, cosines = np.array(words, dtype=object)[others], self._name_vectors.average(cosines[others])
        # Products this small gain nothing from threads, which on a busy machine wait for each other without end.
        with self._threads.limit(limits=1, user_api="blas"):
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


class _TopWords:
    """Keep the highest-ranked words of one target, and the p-values of all words for the correction."""

    def __init__(self, thresholds: tuple[float, float], settings: DiscoverySettings) -> None:
        self._thresholds, self._settings = thresholds, settings
        self._family = FdrAccumulator(settings.alpha)
        self._best: dict[str, NDArray[Any]] = {}

    def add(
        self,
        words: NDArray[np.object_],
        scores: _Floats,
        constituents: _Floats,
        p: _Floats,
    ) -> None:
        """Add words with their scores, and p-values (n, 2) of the association and of the excess."""
        rule, compare, (own, emergent) = self._settings.rule, self._settings.compare, self._thresholds
        marks = np.stack(
            [
                find_detected(*strongest_scores(scores, None, rule, compare), own),
                find_detected(*strongest_scores(scores, None, rule, "every"), own),
                find_detected(*strongest_scores(scores, constituents, rule, compare), emergent),
            ],
            axis=1,
        )
        self._family.add(p, marks)
        block: dict[str, NDArray[Any]] = {
            "words": words,
            "scores": scores,
            "constituents": constituents,
            "p": p,
            "marks": marks,
        }
        if self._best:
            block = {name: np.concatenate([self._best[name], values]) for name, values in block.items()}
        # Keep the best words by score and the best of EIBD by excess. The stable sort prefers earlier words.
        order = np.argsort(-np.nan_to_num(self._score(block["scores"]), nan=-np.inf), kind="stable")
        kept, keep = np.arange(len(order)) < self._settings.keep, self._settings.keep
        eibd = np.flatnonzero(block["marks"][order, 2])
        kept[eibd[np.argsort(block["p"][order, 1][eibd], kind="stable")][:keep]] = True
        self._best = {name: values[order[kept]] for name, values in block.items()}

    def _score(self, scores: _Floats) -> _Floats:
        return strongest_scores(scores, None, self._settings.rule, self._settings.compare)[0]

    def ranked(self) -> RankedWords:
        best, family = self._best, self._family
        if not family.num_words:
            raise InsufficientVocabularyError(
                "no word is left to search: all are out of vocabulary or names of the groups"
            )
        corrected, (p, p_excess) = family.correct(), best["p"].T
        q = corrected.q(p)
        associated, _, eibd = (best["marks"] & (q <= family.alpha)[:, None]).T
        q_excess = corrected.q_excess(p_excess, eibd)
        return RankedWords(
            words=best["words"],
            scores=best["scores"],
            constituents=best["constituents"],
            score=self._score(best["scores"]),
            p=p,
            q=q,
            p_excess=p_excess,
            q_excess=q_excess,
            associated=associated,
            eibd=eibd,
            emergent=q_excess <= family.alpha,
            num_words=family.num_words,
            num_above=family.num_above,
            corrected=corrected,
        )


CURVE_ARRAYS = ("thresholds", "tp", "fp", "fn", "tn")
"""Arrays of a detection curve; their names begin with GROUP/TASK/."""


def make_group_events(
    identity: Identity, grouping: Grouping, target: Group, validation: Validation, ranked: RankedWords
) -> Iterator[Event]:
    """Yield all rows and arrays of one group in one model.

    Parameters
    ----------
    identity : Identity
    grouping : Grouping
    target : Group
    validation : Validation
    ranked : RankedWords
    """
    key: dict[str, Any] = {"model": identity.name, "options": identity.options, "group": target.name}
    others = tuple(other.name for other in grouping.comparison_groups(target))
    pairs = tuple(pair.label for pair in grouping.constituents(target))
    own, emergent = validation.trials.values()
    n = {"words": ranked.num_words}
    group = GroupResult(
        **key,
        model_revision=identity.revision,
        title=target.label,
        topic=", ".join(target.belongs),
        outcome=_count_words(ranked.corrected.num_associated, n, ranked.q),
        alternatives={
            "eibd": _count_words(ranked.corrected.num_eibd, n),
            "emergent": _count_words(ranked.corrected.num_emergent, n, ranked.q_excess),
        },
        belongs=dict(target.belongs),
        other_groups=others,
        constituents=pairs,
        threshold=own.threshold,
        threshold_source=own.source,
        threshold_emergent=emergent.threshold,
        threshold_emergent_source=emergent.source,
        n_above=ranked.num_above,
        n_every=ranked.corrected.num_every,
    )
    yield Row("groups", group)
    for task, trial in validation.trials.items():
        if trial.curve is not None:
            yield Row("curves", _make_curve_row(key, task, trial.curve, trial.chosen))
            for name in CURVE_ARRAYS:
                values = np.asarray(getattr(trial.curve, name), dtype=np.float64)
                yield Array(f"{target.name}/{task}/{name}", values)

    def name_scores(scored: Validation | RankedWords, row: int) -> dict[str, Any]:
        return {
            "scores": dict(zip(others, map(none_if_nan, scored.scores[row]), strict=True)),
            "constituents": dict(zip(pairs, map(none_if_nan, scored.constituents[row]), strict=True)),
        }

    for row, word in enumerate(validation.words):
        validated = ValidatedRow(
            **key,
            word=word,
            of_group=word in target.biases,
            emergent_of_group=word in target.emergent,
            **name_scores(validation, row),
            detected=bool(own.detected[row]),
            detected_emergent=bool(emergent.detected[row]),
        )
        yield Row("validated", validated)
    for row, word in enumerate(ranked.words):
        found = WordRow(
            **key,
            word=word,
            effect_size=none_if_nan(ranked.score[row]),
            **name_scores(ranked, row),
            p_value=none_if_nan(ranked.p[row]),
            p_adjusted=none_if_nan(ranked.q[row]),
            excess_p_value=none_if_nan(ranked.p_excess[row]),
            excess_p_adjusted=none_if_nan(ranked.q_excess[row]),
            associated=bool(ranked.associated[row]),
            eibd=bool(ranked.eibd[row]),
            emergent=bool(ranked.emergent[row]),
        )
        yield Row("results", found)


def _make_curve_row(key: dict[str, Any], task: Task, curve: DetectionCurve, at: int) -> CurveRow:
    rated = {"rated words": int(curve.tp[at] + curve.fp[at] + curve.fn[at] + curve.tn[at])}
    return CurveRow(
        **key,
        task=task,
        outcome=Outcome(effect_size=curve.area, scale="area under the curve", null=0.5, n=rated),
        chance=curve.chance,
        chosen=float(curve.thresholds[at]),
        accuracy=float(curve.accuracy[at]),
        precision=none_if_nan(curve.precision[at]),
        recall=float(curve.tpr[at]),
        false_positive_rate=float(curve.fpr[at]),
    )


def _count_words(number: int, words: dict[str, int], q: _Floats | None = None) -> Outcome:
    """Return the number of words as an outcome, with the smallest adjusted p-value of the kept words."""
    known = np.empty(0) if q is None else q[~np.isnan(q)]
    return Outcome(
        effect_size=float(number),
        scale="words",
        p_value=float(known.min()) if len(known) else None,
        test="" if q is None else "smallest adjusted p-value of the kept words",
        n=words,
    )
