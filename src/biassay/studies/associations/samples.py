"""The samples behind a pooled effect size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.results.data import RunData

__all__ = ["SAMPLE_ARRAYS", "Samples", "samples_of"]

SAMPLE_ARRAYS = ("samples", "variances", "sample_p_values")
"""Names of the arrays of a test, behind its own."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Effect sizes of a test on samples of contexts, their variances, and the one-sided p-value of each, (n,)."""

    effect_sizes: NDArray[np.float64]
    variances: NDArray[np.float64]
    p_values: NDArray[np.float64]


def samples_of(run: RunData, place: int, test: str) -> Samples | None:
    """The samples of a test on a model; None where it was not measured over contexts."""
    arrays = [run.arrays.get(f"{place}/{test}/{name}") for name in SAMPLE_ARRAYS]
    known = [array for array in arrays if array is not None]
    return Samples(*known) if len(known) == len(SAMPLE_ARRAYS) else None
