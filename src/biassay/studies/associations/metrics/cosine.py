"""Cosine similarity, the metric of WEAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Sets, Vectors
from biassay.studies.associations.weat import Association, AssociationOptions, associate_sets, mean_rows

__all__ = ["METRIC"]


@dataclass(frozen=True)
class _Cosine:
    """Mean cosines by one product of matrices."""

    name: str = "cosine"
    title: str = "cosine (WEAT)"
    unit: str = "d"
    scale: Literal["sd"] | None = "sd"

    def associate(self, sets: Sets, how: AssociationOptions) -> Association:
        return associate_sets([sets[role] for role in "XYAB"], how)

    def attribute_scores(self, sets: Sets) -> Mapping[str, NDArray[np.float64]]:
        between = unit_rows(sets["X"], "X").mean(axis=0) - unit_rows(sets["Y"], "Y").mean(axis=0)
        return {role: unit_rows(sets[role], role) @ between for role in "AB"}

    def word_matrix(self, targets: Vectors, words: Sequence[str], attributes: Vectors) -> NDArray[np.float64]:
        return mean_rows(unit_rows(targets, "X and Y"), words) @ unit_rows(attributes, "attributes").T


METRIC = _Cosine()
