"""Hard debiasing: remove the main direction of pair differences, and make the words of each pair equidistant."""

from __future__ import annotations

import numpy as np

from biassay.models.erasure import Eraser, ErasureMethod, FittingWords, Floats


def _fit(given: FittingWords) -> Eraser:
    pairs = given.vectors[given.pairs]  # (pairs, classes, d)
    means = pairs.mean(axis=1, keepdims=True)
    _, _, directions = np.linalg.svd((pairs - means).reshape(-1, pairs.shape[2]), full_matrices=False)
    basis = directions[: pairs.shape[1] - 1]
    replaced: dict[str, Floats] = {}
    for rows, mean, own in zip(given.pairs, means[:, 0], pairs, strict=True):
        neutral = mean - mean @ basis.T @ basis
        biased = own @ basis.T @ basis - mean @ basis.T @ basis
        lengths = np.linalg.norm(biased, axis=1, keepdims=True)
        size = np.sqrt(max(1.0 - neutral @ neutral, 0.0))
        equalized = neutral + size * biased / np.where(lengths > 0.0, lengths, 1.0)
        replaced |= {given.words[row]: vector for row, vector in zip(rows, equalized, strict=True)}
    return Eraser.from_basis(basis, replaced)


METHOD = ErasureMethod(
    "hard",
    "Hard debiasing",
    _fit,
    removes="The main direction of the differences within pairs. Words of a pair stay apart, equally far from all "
    "other words.",
    weakness="Words that share a stereotype stay neighbours, so a linear probe still finds the classes.",
    source="Bolukbasi et al. 2016, Man is to Computer Programmer as Woman is to Homemaker?, NeurIPS",
    needs_pairs=True,
)
