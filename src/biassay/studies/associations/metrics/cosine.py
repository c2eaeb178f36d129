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


METRIC = _Cosine()
