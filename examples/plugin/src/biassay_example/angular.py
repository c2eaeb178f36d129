"""A metric: the angle between two vectors, from 1 (the same direction) to 0 (opposite ones)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.plugin import Similarity, unit_rows

__all__ = ["METRIC"]


def _angular(targets: NDArray[np.floating], attributes: NDArray[np.floating]) -> NDArray[np.float64]:
    cosines = unit_rows(targets, "targets") @ unit_rows(attributes, "attributes").T
    nearness: NDArray[np.float64] = 1.0 - np.arccos(np.clip(cosines, -1.0, 1.0)) / np.pi
    return nearness


METRIC = Similarity("angular", "angular similarity", _angular)
