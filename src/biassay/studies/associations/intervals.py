"""What follows from the associations of single words: how much each contributes, and those that two models share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.results.data import RunData, is_of
from biassay.studies.associations.averaging import mean_rows, of_words
from biassay.studies.associations.crossing import COSINES
from biassay.studies.associations.records import Result

__all__ = ["Contributions", "Pair", "contributions", "cosines_of", "pair", "words_in_common"]

_ROLES = ("X", "Y", "A", "B")


@dataclass(frozen=True)
class Contributions:
    """How much every target adds to the effect size by word, their sum; and how much closer every attribute lies to X
    than to Y, in the same unit. Attributes have no exact share: words have unequal numbers of texts.
    """

    effect_size: float
    targets: Mapping[str, Mapping[str, float]]
    attributes: Mapping[str, Mapping[str, float]]


def contributions(result: Result) -> Contributions | None:
    """What every word adds to the effect size by word; None where words are not known or it is not defined.

    The effect size is (mean over X less mean over Y) / spread. An association counts from the mean of all targets, so
    that a word in the middle adds nothing; a word of Y adds by its association with B.
    """
    roles = {role: result.associations.get(role, {}) for role in _ROLES}
    if not all(roles.values()) or result.effect_size_by_word is None:
        return None
    clusters = {role: _cluster_sizes(result, role) for role in "XY"}
    means = {
        role: mean_rows(np.array(list(roles[role].values()))[:, None], [cluster for cluster, _ in clusters[role]])[:, 0]
        for role in "XY"
    }
    scores = np.concatenate([means["X"], means["Y"]])
    spread = float(scores.std(ddof=1)) if len(scores) > 1 and np.isfinite(scores).all() else 0.0
    if not spread > 1e-12 * float(np.abs(scores).max()):
        return None
    centre = float(scores.mean())

    def shares(role: str, sign: int) -> dict[str, float]:
        weights = [len(means[role]) * size for _, size in clusters[role]]
        return {
            word: sign * (score - centre) / (weight * spread)
            for (word, score), weight in zip(roles[role].items(), weights, strict=True)
        }

    return Contributions(
        effect_size=float(means["X"].mean() - means["Y"].mean()) / spread,
        targets={"X": shares("X", 1), "Y": shares("Y", -1)},
        attributes={role: {word: score / spread for word, score in roles[role].items()} for role in ("A", "B")},
    )


def _cluster_sizes(result: Result, role: str) -> list[tuple[str, int]]:
    """Return the cluster of every word of a role, and how many words it has."""
    labels = [result.clusters.get(role, {}).get(word, word) for word in result.associations[role]]
    return [(label, labels.count(label)) for label in labels]


def cosines_of(result: Result, run: RunData) -> NDArray[np.float64] | None:
    """Of the words of a result of the run, rows X and Y, columns A and B; None where none were kept that fit."""
    place = next((i for i, record in enumerate(run.manifest.models) if is_of(result, record)), None)
    table = run.arrays.get(f"{place}/{result.test}/{COSINES}")
    x, y, a, b = (len(result.associations.get(role, {})) for role in _ROLES)
    return table if table is not None and table.shape == (x + y, a + b) else None


@dataclass(frozen=True, eq=False)
class Pair:
    """Cosines of the same words on two models, in the same order.

    ``sizes`` are the words of X, Y, A and B, where near-synonyms of one cluster count as one word.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    sizes: tuple[int, int, int, int]


def words_in_common(first: Result, second: Result) -> dict[str, list[str]]:
    """The words that both results have, by role, in the order of the first."""
    return {
        role: [word for word in first.associations.get(role, {}) if word in second.associations.get(role, {})]
        for role in _ROLES
    }


def pair(first: Result, second: Result, cosines: tuple[NDArray[np.float64], NDArray[np.float64]]) -> Pair:
    """Cut the cosines of two results to the words that both have, then average the words of each cluster."""
    words = words_in_common(first, second)
    if not all(words.values()):
        none = np.zeros((0, 0))
        return Pair(none, none, (0, 0, 0, 0))
    one, other = (_cut(table, result, words) for table, result in zip(cosines, (first, second), strict=True))
    x, y, a, b = ([first.clusters.get(role, {}).get(word, word) for word in words[role]] for role in _ROLES)
    sizes = len(x), len(y), len(a), len(b)
    (one, clusters), (other, _) = (of_words(table, sizes, (x, y, a, b)) for table in (one, other))
    return Pair(one, other, clusters)


def _cut(table: NDArray[np.float64], result: Result, words: Mapping[str, list[str]]) -> NDArray[np.float64]:
    places = {role: {word: i for i, word in enumerate(result.associations[role])} for role in _ROLES}
    rows, columns = (
        [places[one][w] for w in words[one]] + [len(places[one]) + places[other][w] for w in words[other]]
        for one, other in (("X", "Y"), ("A", "B"))
    )
    return table[np.ix_(rows, columns)]
