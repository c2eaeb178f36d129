"""INLP: train a linear probe, project onto its null space, and repeat."""

from __future__ import annotations

import numpy as np

from biassay.models.erasure import Eraser, ErasureMethod, FittingWords
from biassay.stats.probe import fit_linear_probe

_ROUNDS = 10


def _fit(given: FittingWords) -> Eraser:
    n_directions, dimension = int(given.labels.max()), given.vectors.shape[1]
    basis = np.empty((0, dimension))
    for _ in range(min(_ROUNDS, dimension // (2 * n_directions))):
        weights = fit_linear_probe(given.vectors - given.vectors @ basis.T @ basis, given.labels)
        _, _, directions = np.linalg.svd(weights - weights @ basis.T @ basis, full_matrices=False)
        basis = np.linalg.qr(np.concatenate([basis, directions[:n_directions]]).T)[0].T
    return Eraser.from_basis(basis)


METHOD = ErasureMethod(
    "inlp",
    "INLP",
    _fit,
    removes="The directions that a linear probe uses, in 10 rounds.",
    weakness="Removes 10 directions per class beyond the first, so that vectors lose other information too.",
    source="Ravfogel et al. 2020, Null It Out: Guarding Protected Attributes by Iterative Nullspace Projection, ACL",
)
