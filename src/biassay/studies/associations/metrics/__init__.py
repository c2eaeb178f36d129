"""Interface and registry of association metrics.

Each metric is one object in its own module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, UsageError
from biassay.packages import check_unique_name, find_package, import_object, load_plugins
from biassay.stats.association import unit_rows
from biassay.stats.permutation import TailProbability
from biassay.studies.associations.weat import (
    Association,
    AssociationOptions,
    associate_sets,
    average_texts,
    mean_rows,
    pad_words,
    run_tests,
)

Vectors = NDArray[np.floating]
Sets = Mapping[str, Vectors]
"""Vectors (n, d) by role: X, Y, A, B."""
_MAX_ENUMERATED = 20_000  # more splits of words are sampled
_N_DRAWN = 9_999


@runtime_checkable
class Metric(Protocol):
    """Metric of how strongly targets X rather than Y are associated with attributes A rather than B."""

    @property
    def name(self) -> str:
        """Name in settings."""

    @property
    def title(self) -> str:
        """Name in reports."""

    @property
    def unit(self) -> str:
        """Unit of the effect size: "d" for standard deviations, any other name for another scale."""
        ...

    def associate(self, sets: Sets, options: AssociationOptions) -> Association:
        """Compute effect size and p-values, and in ``x`` and ``y`` the association of every target text."""
        ...

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:
        """Return how much closer each text of A and B is to X than to Y; empty if the metric does not define it."""
        ...


@runtime_checkable
class PairwiseMetric(Protocol):
    """Metric that defines a similarity for every pair of target and attribute."""

    def word_matrix(self, targets: Vectors, words: Sequence[str], attributes: Vectors) -> NDArray[np.float64]:
        """Compute similarities of words and attributes.

        Parameters
        ----------
        targets : (texts, d) array
            Vectors of the target texts.
        words : sequence of str
            Word of every target text. Texts of one word are averaged.
        attributes : (attributes, d) array
            Vectors of the attributes.

        Returns
        -------
        (words, attributes) float64
        """
        ...


@dataclass(frozen=True)
class _Cosine:
    """Cosine metric, computed by one matrix product."""

    name: str = "cosine"
    title: str = "cosine (WEAT)"
    unit: str = "d"
    scale: Literal["sd"] | None = "sd"
    claim: str = "X rather than Y is associated with A rather than B, for other words of the same kinds as well."
    source: str = "Caliskan, Bryson and Narayanan 2017, Science 356(6334)"

    def associate(self, sets: Sets, options: AssociationOptions) -> Association:
        return associate_sets([sets[role] for role in "XYAB"], options)

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:
        between = unit_rows(sets["X"], "X").mean(axis=0) - unit_rows(sets["Y"], "Y").mean(axis=0)
        return {role: unit_rows(sets[role], role) @ between for role in "AB"}

    def word_matrix(self, targets: Vectors, words: Sequence[str], attributes: Vectors) -> NDArray[np.float64]:
        return mean_rows(unit_rows(targets, "X and Y"), words) @ unit_rows(attributes, "attributes").T


COSINE = _Cosine()


@dataclass(frozen=True)
class Similarity:
    """Metric defined by the similarity of pairs of vectors.

    The association of a target is its mean similarity with A minus that with B. Effect sizes, p-values and intervals
    are computed as in WEAT.

    Attributes
    ----------
    name, title : str
        Name in settings and in reports.
    matrix : callable
        Function from vectors (n, d) and (m, d) to similarities (n, m).
    scale : {"sd"} or None
        If "sd", models are compared on similarities divided by their standard deviation between frequent words. If
        None, a comparison needs a margin in the metric's own units.
    claim, source : str
        What a result may claim, and the publication. Metrics of biassay itself need both.
    """

    name: str
    title: str
    matrix: Callable[[Vectors, Vectors], NDArray[np.float64]]
    scale: Literal["sd"] | None = None
    claim: str = ""
    source: str = ""

    @property
    def unit(self) -> str:
        """Scale of the effect size."""
        return "d"

    def associate(self, sets: Sets, options: AssociationOptions) -> Association:
        """Compute effect size and p-values."""
        near_a, near_b = ({t: self._matrix(sets[t], sets[a]) for t in "XY"} for a in "AB")
        x, y = (near_a[t].mean(axis=1) - near_b[t].mean(axis=1) for t in "XY")
        largest = max(float(np.abs(near[t]).max()) for near in (near_a, near_b) for t in "XY")
        narrow = any(sets[role].dtype.itemsize < 8 for role in sets)
        noise = 0.5 * largest * float(np.finfo(np.float32 if narrow else np.float64).eps)
        table = np.block([[near_a["X"], near_b["X"]], [near_a["Y"], near_b["Y"]]])
        return run_tests(
            x, y, _sizes(sets), replace(options, noise=noise), *average_texts(table, _sizes(sets), options.words)
        )

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:
        """Return how much closer each text of A and B is to X than to Y."""
        return {
            a: self._matrix(sets["X"], sets[a]).mean(axis=0) - self._matrix(sets["Y"], sets[a]).mean(axis=0)
            for a in "AB"
        }

    def word_matrix(self, targets: Vectors, words: Sequence[str], attributes: Vectors) -> NDArray[np.float64]:
        """Compute similarities of words and attributes; see `PairwiseMetric.word_matrix`."""
        return mean_rows(self._matrix(targets, attributes), words)

    def _matrix(self, targets: Vectors, attributes: Vectors) -> NDArray[np.float64]:
        similarities = np.asarray(self.matrix(targets, attributes), dtype=np.float64)
        if similarities.shape != (len(targets), len(attributes)) or not np.isfinite(similarities).all():
            expected = (len(targets), len(attributes))
            raise UsageError(f"metric {self.name!r} gave {similarities.shape} numbers, expected {expected}, all finite")
        return similarities


class _SetMetric:
    """Base of metrics that give one score for all word sets, and none for single words of A and B."""

    @property
    def unit(self) -> str:
        """Scale of the effect size."""
        return "score"

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:  # noqa: ARG002
        """Return how much closer each text of A and B is to X than to Y."""
        return {}

    @staticmethod
    def _associate(
        score: Score,
        sets: Sets,
        options: AssociationOptions,
        without: Mapping[str, Mapping[str, float]],
        in_x: NDArray[np.bool_],
    ) -> Association:
        """Return a score as an association; `without` are the scores without each word, `in_x` the targets in X."""
        has_words = options.words is not None
        x, y = (np.empty(0), np.empty(0)) if score.words is None else (score.words[in_x], score.words[~in_x])
        return Association(
            effect_size=score.value,
            statistic=score.value,
            p=score.p,
            by_word=score.p if has_words else None,
            by_word_opposite=None,
            effect_size_by_word=score.value if has_words else None,
            protocol=options.protocol,
            alternative=options.alternative,
            sizes=_sizes(sets),
            x=x,
            y=y,
            floor=score.floor,
            leave_one_out=without if has_words else None,
        )


@dataclass(frozen=True)
class SetScore(_SetMetric):
    """Metric that gives one score for all word sets.

    The effect is the score times `sign`: it is positive if X rather than Y is associated with A, and 0 if both are
    alike. The p-value is the share of splits of all target words into sets of the same sizes with at least the observed
    score. It assumes that words are exchangeable between X and Y under the score. `Association.leave_one_out` holds
    the score without each word.

    Attributes
    ----------
    name, title : str
        Name in settings and in reports.
    score : callable
        Function from the vectors X, Y, A and B to a number; from X, Y and A if `attribute_sets` is 1.
    sign : {1, -1}
        1 if a higher score means that X rather than Y is associated with A, -1 if a lower score does.
    attribute_sets : {1, 2}
        Attribute sets that the score uses. If 1, it does not depend on B.
    claim, source : str
        What a result may claim, and the publication. Metrics of biassay itself need both.
    """

    name: str
    title: str
    score: Callable[..., float]
    sign: Literal[1, -1] = 1
    attribute_sets: Literal[1, 2] = 2
    claim: str = ""
    source: str = ""

    def associate(self, sets: Sets, options: AssociationOptions) -> Association:
        """Compute effect size and p-values."""
        words = options.words[:2] if options.words else tuple([f"{t}{i}" for i in range(len(sets[t]))] for t in "XY")
        clusters = words if options.clusters is None else options.clusters[:2]
        rows = np.concatenate([sets["X"], sets["Y"]])
        in_x = np.arange(len(rows)) < len(sets["X"])
        owners = np.array([f"{t} {word}" for t, of in zip("XY", clusters, strict=True) for word in of])
        names = list(dict.fromkeys(owners.tolist()))
        first = sum(name.startswith("X ") for name in names)

        attributes = [sets[role] for role in "AB"[: self.attribute_sets]]

        def compute_score(x: NDArray[np.bool_], y: NDArray[np.bool_]) -> float:
            return self.sign * float(self.score(rows[x], rows[y], *attributes))

        observed = compute_score(in_x, ~in_x)
        chosen = (np.isin(owners, [names[i] for i in split]) for split in _iter_splits(len(names), first, options))
        splits = np.array([compute_score(x, ~x) for x in chosen])
        without: dict[str, dict[str, float]] = {"X": {}, "Y": {}}
        for role, of, side in (("X", words[0], in_x), ("Y", words[1], ~in_x)):
            for word in dict.fromkeys(of):
                kept = np.ones(len(rows), dtype=np.bool_)
                kept[side] = np.array(of) != word
                without[role][word] = compute_score(in_x & kept, ~in_x & kept)
        score = Score(observed, _p_value(observed, splits, options), 1.0 / len(splits), None)
        return self._associate(score, sets, options, without, in_x)


@dataclass(frozen=True)
class Measure(_SetMetric):
    """Published measure that gives one score for all word sets, computed from one vector per word.

    Texts of a word, and words of a cluster, are averaged first. Where a permutation test makes sense, the p-value is
    the share of splits of the target words into sets of the same sizes with at least the observed score.

    Attributes
    ----------
    name, title : str
        Name in settings and in reports.
    score_splits : callable
        Function from the vectors of all target words, a boolean array (splits, words) that is True for the words of X,
        and the vectors of A and B, to one score per split.
    claim : str
        Claims that the score supports, and those that it does not.
    source : str
        Publication.
    word_scores : callable or None
        Function from the vectors of target words, A and B to one score per word, if the measure defines it.
    signed : bool
        If True, the score is positive if X rather than Y is associated with A. If False, it has no direction.
    permutes : bool
        If False, the score does not depend on the split or has no permutation test.
    unit_vectors : bool
        If True, all vectors have length 1.
    """

    name: str
    title: str
    score_splits: Callable[[Vectors, NDArray[np.bool_], Vectors, Vectors], NDArray[np.float64]]
    claim: str
    source: str
    word_scores: Callable[[Vectors, Vectors, Vectors], NDArray[np.float64]] | None = None
    signed: bool = True
    permutes: bool = True
    unit_vectors: bool = True

    def associate(self, sets: Sets, options: AssociationOptions) -> Association:
        """Compute effect size and p-values."""
        score = self.score(sets, options)
        labels = pad_words(options.words if options.clusters is None else options.clusters)[:2]
        names = [word for of_role in labels for word in dict.fromkeys(of_role or ())]
        without: dict[str, dict[str, float]] = {"X": {}, "Y": {}}
        targets, in_x, A, B = self._prepare(sets, options)
        for index, word in enumerate(names):
            kept = np.arange(len(targets)) != index
            if 1 < in_x[kept].sum() < kept.sum() - 1:
                role = "X" if in_x[index] else "Y"
                without[role][word] = float(self.score_splits(targets[kept], in_x[kept][None], A, B)[0])
        return self._associate(score, sets, options, without, in_x)

    def score(self, sets: Sets, options: AssociationOptions) -> Score:
        """Compute the score, its p-value and the scores of words."""
        targets, in_x, A, B = self._prepare(sets, options)
        values = self.score_splits(targets, in_x[None], A, B)
        p, floor = None, None
        if self.permutes:
            splits = _make_splits(len(targets), int(in_x.sum()), options.rng)
            tried = self.score_splits(targets, splits, A, B)
            p = _p_value(float(values[0]), tried, options if self.signed else replace(options, alternative="greater"))
            floor = 1.0 / len(tried)
        words = None if self.word_scores is None else self.word_scores(targets, A, B)
        return Score(float(values[0]), p, floor, words)

    def _prepare(self, sets: Sets, options: AssociationOptions) -> tuple[Vectors, NDArray[np.bool_], Vectors, Vectors]:
        """Return one vector per word or cluster of the targets, which are in X, and those of A and B."""
        labels = pad_words(options.words if options.clusters is None else options.clusters)
        rows = []
        for role, of_role in zip("XYAB", labels, strict=True):
            vectors = np.asarray(sets[role], dtype=np.float64)
            means = mean_rows(unit_rows(vectors, role) if self.unit_vectors else vectors, of_role)
            rows.append(unit_rows(means, role) if self.unit_vectors else means)
        x, y, a, b = rows
        return np.concatenate([x, y]), np.arange(len(x) + len(y)) < len(x), a, b


@dataclass(frozen=True, eq=False)
class Score:
    """Score of a measure, its p-value and smallest possible p-value, and the scores of target words.

    None where the measure defines none.
    """

    value: float
    p: TailProbability | None
    floor: float | None
    words: NDArray[np.float64] | None


def _iter_splits(words: int, first: int, options: AssociationOptions) -> Iterator[Sequence[int]]:
    """Yield all splits, or a random sample of them if there are too many; the observed one is always included."""
    if math.comb(words, first) <= _MAX_ENUMERATED:
        yield from combinations(range(words), first)
        return
    rng = np.random.default_rng(options.rng)
    yield range(first)
    for _ in range(_N_DRAWN):
        yield rng.permutation(words)[:first].tolist()


@lru_cache(maxsize=1)  # the measures of a test share a generator, and so the splits
def _make_splits(words: int, first: int, seed: int | np.random.Generator | None) -> NDArray[np.bool_]:
    """Return the same splits as an array with one row per split, True for the words of X."""
    rng = np.random.default_rng(seed)
    if math.comb(words, first) <= _MAX_ENUMERATED:
        chosen = np.array(list(combinations(range(words), first)), dtype=np.intp)
        splits = np.zeros((len(chosen), words), dtype=np.bool_)
        np.put_along_axis(splits, chosen, values=True, axis=1)
    else:
        numbers = rng.random((_N_DRAWN, words))
        drawn = numbers <= np.partition(numbers, first - 1, axis=1)[:, first - 1, None]
        splits = np.concatenate([np.arange(words)[None] < first, drawn])
    splits.flags.writeable = False
    return splits


def _p_value(observed: float, splits: NDArray[np.float64], options: AssociationOptions) -> TailProbability:
    close = 1e-9 * max(1.0, abs(observed))
    sided = (
        np.abs(splits) >= abs(observed) - close if options.alternative == "two-sided" else splits >= observed - close
    )
    value = float(sided.mean())
    route = "sampling" if len(splits) == _N_DRAWN + 1 else "enumeration"
    return TailProbability(value, math.log10(value), route)


def _sizes(sets: Sets) -> tuple[int, int, int, int]:
    return len(sets["X"]), len(sets["Y"]), len(sets["A"]), len(sets["B"])


_GROUP = "biassay.metrics"
_METRICS: Mapping[str, str] = {
    "cosine": "biassay.studies.associations.metrics:COSINE",
    "ripa": "biassay.studies.associations.metrics.ripa:METRIC",
    "same": "biassay.studies.associations.metrics.same:METRIC",
    "rnd": "biassay.studies.associations.metrics.rnd:METRIC",
    "ect": "biassay.studies.associations.metrics.ect:METRIC",
    "mac": "biassay.studies.associations.metrics.mac:METRIC",
    "direct-bias": "biassay.studies.associations.metrics.direct_bias:METRIC",
    "rnsb": "biassay.studies.associations.metrics.rnsb:METRIC",
}
ALL = "all"
"""Name that selects the cosine metric and, beside it, every measure."""


def _load_plugin_metrics() -> Mapping[str, Metric]:
    return load_plugins(_GROUP, _METRICS, Metric)


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, built-in ones first."""
    return (*_METRICS, *_load_plugin_metrics())


def get_metric(name: str) -> Metric:
    """Return a metric by name, importing it on first use."""
    if not isinstance(name, str):
        raise UsageError(
            f"a metric is given by its name, one of {', '.join(metric_names())}; got {type(name).__name__}"
        )
    name = "cosine" if name == ALL else name
    if name not in _METRICS:
        check_unique_name(_GROUP, name)
    if name in _METRICS:
        metric: Metric = import_object(_METRICS[name])
        return metric
    added = _load_plugin_metrics()
    if name not in added:
        known = (*_METRICS, ALL, *added)
        raise UnknownNameError("metric", name, known, f"(one of {', '.join(known)})")
    return added[name]


def get_measures() -> tuple[Measure, ...]:
    """Return the measures that `ALL` computes beside the cosine metric, those of other packages last."""
    return tuple(metric for metric in map(get_metric, metric_names()) if isinstance(metric, Measure))


def get_metric_package(name: str) -> str:
    """Return the distribution that provides a metric."""
    return "biassay" if name in _METRICS or name == ALL else find_package(_GROUP, name)
