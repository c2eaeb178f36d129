"""Mean projection: remove the directions in which the means of the classes differ."""

from __future__ import annotations

import numpy as np

from biassay.models.erasure import Eraser, ErasureMethod, FittingWords


def _fit(given: FittingWords) -> Eraser:
    means = np.stack([given.vectors[given.labels == label].mean(axis=0) for label in np.unique(given.labels)])
    _, _, basis = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    return Eraser.from_basis(basis[: len(means) - 1])


METHOD = ErasureMethod(
    "mean-projection",
    "Mean projection",
    _fit,
    removes="The differences between the mean vectors of the classes, by an orthogonal projection.",
    weakness="Words of the classes often stay apart in other directions, in which a linear probe finds them.",
    source="Dev and Phillips 2019, Attenuating Bias in Word Vectors, AISTATS",
)
