"""Interface and registry of association metrics.

A metric is one object in one file; `biassay.studies.associations.metrics` lists them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import combinations
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, UsageError
from biassay.packages import check_unique_name, find_package, load_plugins
from biassay.stats.permutation import TailProbability
from biassay.studies.associations.weat import Association, AssociationOptions, average_texts, mean_rows, run_tests

__all__ = [
    "Metric",
    "PairwiseMetric",
    "SetScore",
    "Sets",
    "Similarity",
    "Vectors",
    "get_metric",
    "get_metric_package",
    "metric_names",
]


Vectors = NDArray[np.floating]
Sets = Mapping[str, Vectors]
"""Vectors (n, d) by role: X, Y, A, B."""
_MAX_ENUMERATED = 20_000  # splits of words, beyond which some are drawn
_N_DRAWN = 9_999


@runtime_checkable
class Metric(Protocol):
    """How strongly do targets X rather than Y go with attributes A rather than B?"""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def unit(self) -> str:
        """Of the effect size: "d" for standard deviations, anything else for a number of another kind."""
        ...

    def associate(self, sets: Sets, how: AssociationOptions) -> Association:
        """Effect size and p-values; ``x`` and ``y`` say how much every target text adds."""
        ...

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:
        """How much closer every text of A and B is to X than to Y; empty where the metric does not say it."""
        ...


@runtime_checkable
class PairwiseMetric(Protocol):
    """A metric that gives the similarity of every target with every attribute."""

    def word_matrix(self, targets: Vectors, words: Sequence[str], attributes: Vectors) -> NDArray[np.float64]:
        """Similarities (words, attributes), where texts of a word are averaged; ``words`` are those of the targets."""
        ...


@dataclass(frozen=True)
class Similarity:
    """A metric by pairs: ``matrix`` gives the similarity (n, m) of vectors (n, d) and (m, d).

    The association of a target is its mean similarity with A less that with B; effect sizes, p-values and intervals
    are those of WEAT.
    """

    name: str
    title: str
    matrix: Callable[[Vectors, Vectors], NDArray[np.float64]]
    scale: Literal["sd"] | None = None
    """If "sd", models are compared on similarities divided by their standard deviation between frequent words. If None,
    a comparison needs a margin in the metric's own units."""

    @property
    def unit(self) -> str:
        return "d"

    def associate(self, sets: Sets, how: AssociationOptions) -> Association:
        near_a, near_b = ({t: self._matrix(sets[t], sets[a]) for t in "XY"} for a in "AB")
        x, y = (near_a[t].mean(axis=1) - near_b[t].mean(axis=1) for t in "XY")
        largest = max(float(np.abs(near[t]).max()) for near in (near_a, near_b) for t in "XY")
        narrow = any(sets[role].dtype.itemsize < 8 for role in sets)
        noise = 0.5 * largest * float(np.finfo(np.float32 if narrow else np.float64).eps)
        table = np.block([[near_a["X"], near_b["X"]], [near_a["Y"], near_b["Y"]]])
        return run_tests(x, y, _sizes(sets), replace(how, noise=noise), *average_texts(table, _sizes(sets), how.words))

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:
        return {
            a: self._matrix(sets["X"], sets[a]).mean(axis=0) - self._matrix(sets["Y"], sets[a]).mean(axis=0)
            for a in "AB"
        }

    def word_matrix(self, targets: Vectors, words: Sequence[str], attributes: Vectors) -> NDArray[np.float64]:
        return mean_rows(self._matrix(targets, attributes), words)

    def _matrix(self, targets: Vectors, attributes: Vectors) -> NDArray[np.float64]:
        found = np.asarray(self.matrix(targets, attributes), dtype=np.float64)
        if found.shape != (len(targets), len(attributes)) or not np.isfinite(found).all():
            expected = (len(targets), len(attributes))
            raise UsageError(f"metric {self.name!r} gave {found.shape} numbers, expected {expected}, all finite")
        return found


@dataclass(frozen=True)
class SetScore:
    """A metric of four sets: ``score`` gives one number for vectors X, Y, A, B.

    Its p-value is by word: in how many splits of all target words into sets of these sizes is the score as high? That
    asks that words can be exchanged between X and Y under the score. `leave_one_out`
    says what it would be without each word.
    """

    name: str
    title: str
    score: Callable[[Vectors, Vectors, Vectors, Vectors], float]

    @property
    def unit(self) -> str:
        return "score"

    def associate(self, sets: Sets, how: AssociationOptions) -> Association:
        words = how.words[:2] if how.words else tuple([f"{t}{i}" for i in range(len(sets[t]))] for t in "XY")
        clusters = words if how.clusters is None else how.clusters[:2]
        rows = np.concatenate([sets["X"], sets["Y"]])
        in_x = np.arange(len(rows)) < len(sets["X"])
        owners = np.array([f"{t} {word}" for t, of in zip("XY", clusters, strict=True) for word in of])
        names = list(dict.fromkeys(owners.tolist()))
        first = sum(name.startswith("X ") for name in names)

        def scored(x: NDArray[np.bool_], y: NDArray[np.bool_]) -> float:
            return float(self.score(rows[x], rows[y], sets["A"], sets["B"]))

        observed = scored(in_x, ~in_x)
        chosen = (np.isin(owners, [names[i] for i in split]) for split in _iter_splits(len(names), first, how))
        splits = np.array([scored(x, ~x) for x in chosen])
        without: dict[str, dict[str, float]] = {"X": {}, "Y": {}}
        for role, of, side in (("X", words[0], in_x), ("Y", words[1], ~in_x)):
            for word in dict.fromkeys(of):
                kept = np.ones(len(rows), dtype=np.bool_)
                kept[side] = np.array(of) != word
                without[role][word] = scored(in_x & kept, ~in_x & kept)
        p = _p_value(observed, splits, how)
        return Association(
            effect_size=observed,
            statistic=observed,
            p=p,
            by_word=p if how.words is not None else None,
            by_word_opposite=None,
            effect_size_by_word=observed if how.words is not None else None,
            protocol=how.protocol,
            alternative=how.alternative,
            sizes=_sizes(sets),
            x=np.empty(0),
            y=np.empty(0),
            floor=1.0 / len(splits),
            leave_one_out=without if how.words is not None else None,
        )

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:  # noqa: ARG002
        return {}


def _iter_splits(words: int, first: int, how: AssociationOptions) -> Iterator[Sequence[int]]:
    """All splits, or where they are too many some at random; the observed one is among them."""
    if math.comb(words, first) <= _MAX_ENUMERATED:
        yield from combinations(range(words), first)
        return
    rng = np.random.default_rng(how.rng)
    yield range(first)
    for _ in range(_N_DRAWN):
        yield rng.permutation(words)[:first].tolist()


def _p_value(observed: float, splits: NDArray[np.float64], how: AssociationOptions) -> TailProbability:
    close = 1e-9 * max(1.0, abs(observed))
    sided = np.abs(splits) >= abs(observed) - close if how.alternative == "two-sided" else splits >= observed - close
    value = float(sided.mean())
    route = "sampling" if len(splits) == _N_DRAWN + 1 else "enumeration"
    return TailProbability(value, math.log10(value), route)


def _sizes(sets: Sets) -> tuple[int, int, int, int]:
    return len(sets["X"]), len(sets["Y"]), len(sets["A"]), len(sets["B"])


_GROUP = "biassay.metrics"
_METRICS: Mapping[str, str] = {
    "cosine": "biassay.studies.associations.metrics.cosine:METRIC",
}


def _load_plugin_metrics() -> Mapping[str, Metric]:
    return load_plugins(_GROUP, _METRICS, Metric)


def metric_names() -> tuple[str, ...]:
    return (*_METRICS, *_load_plugin_metrics())


def get_metric(name: str) -> Metric:
    """A metric by its name, imported when it is first needed."""
    if not isinstance(name, str):
        raise UsageError(
            f"a metric is given by its name, one of {', '.join(metric_names())}; got {type(name).__name__}"
        )
    if name not in _METRICS:
        check_unique_name(_GROUP, name)
    if name in _METRICS:
        module, _, attribute = _METRICS[name].partition(":")
        metric: Metric = getattr(import_module(module), attribute)
        return metric
    added = _load_plugin_metrics()
    if name not in added:
        known = (*_METRICS, *added)
        raise UnknownNameError("metric", name, known, f"(one of {', '.join(known)})")
    return added[name]


def get_metric_package(name: str) -> str:
    """The distribution that holds a metric."""
    return "biassay" if name in _METRICS else find_package(_GROUP, name)
