"""Contributions of single words to an effect, and its crossed test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.results.outcomes import Outcome
from biassay.results.run_data import RunData, belongs_to
from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.power import POWER, largest_d, smallest_detectable
from biassay.studies.associations.results import CROSSED, AnyResult
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.weat import Words, average_clusters, average_texts, mean_rows

__all__ = [
    "COSINES",
    "MIN_SD",
    "Contributions",
    "CrossedMeasurement",
    "PairedCosines",
    "compute_contributions",
    "find_common_words",
    "get_cosines",
    "measure_crossed",
    "pair_cosines",
]


MIN_SD = 1e-3
"""With a smaller cosine SD, rounding would decide: differences are not calibrated."""
COSINES = "cosines"
"""The array of a test: cosines of words, rows X and Y, columns A and B, in the order of the result's associations."""


@dataclass(frozen=True)
class CrossedMeasurement:
    """The crossed test of a result: its outcome, and the fields of the record that belong to it."""

    outcome: Outcome
    fields: Mapping[str, Any]


def measure_crossed(
    cosines: NDArray[np.floating] | None,
    num_words: tuple[int, int, int, int],
    settings: AssociationSettings,
    effect_size: float | None,
    *,
    cosine_sd: float | None = None,
    clusters: Words | None = None,
) -> CrossedMeasurement | None:
    """Run the crossed test on the cosines of words, with every cluster one observation.

    Parameters
    ----------
    cosines : (targets, attributes) array or None
        None if the words of the texts are not known; then there is no crossed test.
    num_words : (int, int, int, int)
        Words of X, Y, A and B.
    settings : AssociationSettings
    effect_size : float or None
        Effect size over words.
    cosine_sd : float, optional
        Standard deviation of cosines between frequent words on the model.
    clusters : two or four sequences of str, optional
        Cluster of every word.
    """
    if cosines is None:
        return None
    table, sizes = average_clusters(cosines, num_words, clusters)
    crossed = crossed_test(table, sizes[0], sizes[2], confidence=1.0 - settings.alpha_or_default)
    interval = crossed_effect(table, sizes[0], sizes[2], test=crossed)
    targets, attributes, residual = crossed.variance_shares or (None, None, None)
    low, high = crossed.interval or (None, None)
    margin, parts = settings.equivalence, crossed.components
    detectable = None
    if parts is not None and settings.alpha_or_default < POWER:  # beyond, chance alone finds as much
        detectable = smallest_detectable(parts, crossed.sizes, settings.alpha_or_default)
    scale = cosine_sd if cosine_sd is not None and cosine_sd >= MIN_SD else None
    outcome = Outcome(
        effect_size=effect_size,
        ci_low=interval.low,
        ci_high=interval.high,
        confidence=1.0 - settings.alpha_or_default,
        limit=largest_d(sizes[0], sizes[1]),
        p_value=crossed.p_value,
        test=CROSSED,
        df=None if np.isnan(crossed.df) else crossed.df,
        n={"targets": sum(sizes[:2]), "attributes": sum(sizes[2:])},
        power_80=detectable[1] if detectable else None,
        reason="too few words" if crossed.p_value is None else None,
        contributions=COSINES,
    )
    fields = {
        "cosine_difference": crossed.D,
        "cosine_ci_low": low,
        "cosine_ci_high": high,
        "cosine_sd": cosine_sd,
        "calibrated_difference": None if scale is None else crossed.D / scale,
        "calibrated_ci_low": None if scale is None or low is None else low / scale,
        "calibrated_ci_high": None if scale is None or high is None else high / scale,
        "share_targets": targets,
        "share_attributes": attributes,
        "share_residual": residual,
        "var_targets": parts and parts.targets,
        "var_attributes": parts and parts.attributes,
        "var_residual": parts and parts.residual,
        "margin": margin,
        "p_equivalence": None if margin is None else crossed.p_equivalence(margin),
    }
    return CrossedMeasurement(outcome, fields)


_ROLES = ("X", "Y", "A", "B")


@dataclass(frozen=True)
class Contributions:
    """How much every target adds to the effect size by word, their sum; and how much closer every attribute lies to X
    than to Y, in the same unit. Attributes have no exact share: words have unequal numbers of texts.
    """

    effect_size: float
    targets: Mapping[str, Mapping[str, float]]
    attributes: Mapping[str, Mapping[str, float]]


def compute_contributions(result: AnyResult) -> Contributions | None:
    """What every word adds to the effect size by word; None where words are not known or it is not defined.

    The effect size is (mean over X less mean over Y) / spread. An association counts from the mean of all targets, so
    that a word in the middle adds nothing; a word of Y adds by its association with B.
    """
    roles = {role: result.associations.get(role, {}) for role in _ROLES}
    if not all(roles.values()) or result.word_effect is None:
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


def _cluster_sizes(result: AnyResult, role: str) -> list[tuple[str, int]]:
    """Return the cluster of every word of a role, and how many words it has."""
    labels = [result.clusters.get(role, {}).get(word, word) for word in result.associations[role]]
    return [(label, labels.count(label)) for label in labels]


def get_cosines(result: AnyResult, run: RunData) -> NDArray[np.float64] | None:
    """Of the words of a result of the run, rows X and Y, columns A and B; None where none were kept that fit."""
    place = next((i for i, record in enumerate(run.manifest.models) if belongs_to(result, record)), None)
    table = run.arrays.get(f"{place}/{result.test}/{COSINES}")
    x, y, a, b = (len(result.associations.get(role, {})) for role in _ROLES)
    return table if table is not None and table.shape == (x + y, a + b) else None


@dataclass(frozen=True, eq=False)
class PairedCosines:
    """Cosines of the same words on two models, in the same order.

    ``sizes`` are the words of X, Y, A and B, where near-synonyms of one cluster count as one word.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    sizes: tuple[int, int, int, int]


def find_common_words(first: AnyResult, second: AnyResult) -> dict[str, list[str]]:
    """The words that both results have, by role, in the order of the first."""
    return {
        role: [word for word in first.associations.get(role, {}) if word in second.associations.get(role, {})]
        for role in _ROLES
    }


def pair_cosines(
    first: AnyResult, second: AnyResult, cosines: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> PairedCosines:
    """Cut the cosines of two results to the words that both have, then average the words of each cluster."""
    words = find_common_words(first, second)
    if not all(words.values()):
        none = np.zeros((0, 0))
        return PairedCosines(none, none, (0, 0, 0, 0))
    one, other = (_select_words(table, result, words) for table, result in zip(cosines, (first, second), strict=True))
    x, y, a, b = ([first.clusters.get(role, {}).get(word, word) for word in words[role]] for role in _ROLES)
    sizes = len(x), len(y), len(a), len(b)
    (one, clusters), (other, _) = (average_texts(table, sizes, (x, y, a, b)) for table in (one, other))
    return PairedCosines(one, other, clusters)


def _select_words(table: NDArray[np.float64], result: AnyResult, words: Mapping[str, list[str]]) -> NDArray[np.float64]:
    places = {role: {word: i for i, word in enumerate(result.associations[role])} for role in _ROLES}
    rows, columns = (
        [places[one][w] for w in words[one]] + [len(places[one]) + places[other][w] for w in words[other]]
        for one, other in (("X", "Y"), ("A", "B"))
    )
    return table[np.ix_(rows, columns)]
