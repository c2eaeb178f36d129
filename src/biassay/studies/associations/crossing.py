"""What the crossed test says of one result, from the cosines of its words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.stats.crossed import crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.power import POWER, smallest_detectable
from biassay.studies.associations.averaging import Words, average_clusters
from biassay.studies.associations.settings import Settings

__all__ = ["COSINES", "LEAST_SD", "crossed_fields"]

LEAST_SD = 1e-3
"""With a smaller cosine SD, rounding would decide: differences are not calibrated."""
COSINES = "cosines"
"""The array of a test: cosines of words, rows X and Y, columns A and B, in the order of the result's associations."""


def crossed_fields(
    cosines: NDArray[np.floating] | None,
    num_words: tuple[int, int, int, int],
    settings: Settings,
    cosine_sd: float | None = None,
    clusters: Words | None = None,
) -> dict[str, Any]:
    """Fields of a result, with every cluster one observation; none where the words of its texts are not known.

    ``cosine_sd`` is that of frequent words on the model.
    """
    if cosines is None:
        return {}
    table, (n, _, k, _) = average_clusters(cosines, num_words, clusters)
    found = crossed_test(table, n, k, confidence=1.0 - settings.level)
    size = crossed_effect(table, n, k, test=found)
    targets, attributes, residual = found.shares or (None, None, None)
    low, high = found.interval or (None, None)
    margin, parts = settings.equivalence, found.components
    seen = None
    if parts is not None and settings.level < POWER:  # beyond, chance alone finds as much
        seen = smallest_detectable(parts, found.sizes, settings.level)
    scale = cosine_sd if cosine_sd is not None and cosine_sd >= LEAST_SD else None
    return {
        "D": found.D,
        "cosine_sd": cosine_sd,
        "calibrated_difference": None if scale is None else found.D / scale,
        "calibrated_ci_low": None if scale is None or low is None else low / scale,
        "calibrated_ci_high": None if scale is None or high is None else high / scale,
        "D_low": low,
        "D_high": high,
        "d_low": size.low,
        "d_high": size.high,
        "p_value_crossed": found.p_value,
        "df_crossed": None if np.isnan(found.df) else found.df,
        "share_targets": targets,
        "share_attributes": attributes,
        "share_residual": residual,
        "var_targets": parts and parts.targets,
        "var_attributes": parts and parts.attributes,
        "var_residual": parts and parts.residual,
        "smallest_effect": seen[1] if seen else None,
        "margin": margin,
        "p_equivalence": None if margin is None else found.p_equivalence(margin),
    }
