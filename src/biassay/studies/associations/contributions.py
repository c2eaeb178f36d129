"""Contributions of single words to an effect, and its crossed test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

MIN_SD = 1e-3
"""With a smaller cosine SD, rounding would decide: differences are not calibrated."""
COSINES = "cosines"
"""The array of a test: cosines of words, rows X and Y, columns A and B, in the order of the result's associations."""


def measure_crossed(
    cosines: NDArray[np.floating] | None,
    num_words: tuple[int, int, int, int],
    settings: AssociationSettings,
    effect_size: float | None,
    *,
    cosine_sd: float | None = None,
    clusters: Words | None = None,
) -> tuple[Outcome, dict[str, Any]] | None:
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
        standard_error=interval.standard_error,
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
        "cosine_standard_error": None if np.isnan(crossed.V) else float(np.sqrt(crossed.V)),
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
    return outcome, fields


_ROLES = ("X", "Y", "A", "B")


@dataclass(frozen=True)
class Contributions:
    """Contributions of single words to the effect size over words.

    Attributes
    ----------
    effect_size : float
        Sum of the contributions of the targets.
    targets : dict of str to dict of str to float
        Contribution of every target word, by role.
    attributes : dict of str to dict of str to float
        How much closer every attribute word is to X than to Y, in the same unit. Attribute words have no exact
        contribution.
    """

    effect_size: float
    targets: Mapping[str, Mapping[str, float]]
    attributes: Mapping[str, Mapping[str, float]]


def compute_contributions(result: AnyResult) -> Contributions | None:
    """Compute what every word adds to the effect size over words; None if words are unknown or it is undefined.

    Associations are measured from the mean of all targets, so that an average word adds nothing. A word of Y adds by
    its association with B.
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
    """Return the cosines of the words of a result, rows X and Y, columns A and B; None if the run has none that fit."""
    index = next((i for i, record in enumerate(run.manifest.models) if belongs_to(result, record)), None)
    table = run.arrays.get(f"{index}/{result.test}/{COSINES}")
    x, y, a, b = (len(result.associations.get(role, {})) for role in _ROLES)
    return table if table is not None and table.shape == (x + y, a + b) else None


@dataclass(frozen=True, eq=False)
class MatchedCosines:
    """Cosines of the same words on several models, in the same order.

    ``sizes`` are the words of X, Y, A and B, where near-synonyms of one cluster count as one word.
    """

    tables: tuple[NDArray[np.float64], ...]
    sizes: tuple[int, int, int, int]


def find_common_words(*results: AnyResult) -> dict[str, list[str]]:
    """Find the words that all results have, by role, in the order of the first."""
    first, *others = results
    return {
        role: [
            word
            for word in first.associations.get(role, {})
            if all(word in other.associations.get(role, {}) for other in others)
        ]
        for role in _ROLES
    }


def match_cosines(results: Sequence[AnyResult], cosines: Sequence[NDArray[np.float64]]) -> MatchedCosines:
    """Select the cosines of the words that all results share, and average the words of each cluster.

    Parameters
    ----------
    results : sequence of Result
        Results of one test on several models.
    cosines : sequence of (targets, attributes) array
        Cosines of the words of each result.

    Returns
    -------
    MatchedCosines
        Empty if a word set has no word in common.
    """
    words = find_common_words(*results)
    if not all(words.values()):
        return MatchedCosines((np.zeros((0, 0)),) * len(results), (0, 0, 0, 0))
    x, y, a, b = ([results[0].clusters.get(role, {}).get(word, word) for word in words[role]] for role in _ROLES)
    sizes = len(x), len(y), len(a), len(b)
    averaged = [
        average_texts(_select_words(table, result, words), sizes, (x, y, a, b))
        for table, result in zip(cosines, results, strict=True)
    ]
    return MatchedCosines(tuple(table for table, _ in averaged), averaged[0][1])


def _select_words(table: NDArray[np.float64], result: AnyResult, words: Mapping[str, list[str]]) -> NDArray[np.float64]:
    indices = {role: {word: i for i, word in enumerate(result.associations[role])} for role in _ROLES}
    rows, columns = (
        [indices[one][w] for w in words[one]] + [len(indices[one]) + indices[other][w] for w in words[other]]
        for one, other in (("X", "Y"), ("A", "B"))
    )
    return table[np.ix_(rows, columns)]
