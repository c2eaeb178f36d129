"""Permuted statistics of association scores in arrays of any library of the array standard, on any device.

The same steps as in ``name_permutation``, which makes them in place, where a core's cache holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

__all__ = ["TINY", "associated_there", "excess_there"]

TINY = np.float32(1e-30)  # where a variance is zero, so is what is divided by it


def associated_there(
    mean: Any, squares: Any, sizes: NDArray[np.intp], pairs: Sequence[tuple[int, int]], targets: Sequence[int]
) -> Any:
    """The largest score of every target, (targets, words, permutations), squared, with its sign.

    ``mean`` and ``squares`` (groups, words, permutations) are mean cosines of the groups and their sums of squares.
    """
    xp = array_namespace(mean)
    within = [squares[i, ...] - mean[i, ...] * mean[i, ...] * float(size) + float(TINY) for i, size in enumerate(sizes)]
    best: dict[int, list[Any]] = {target: [] for target in targets}
    for i, j in pairs:
        n = int(sizes[i] + sizes[j])
        signed = mean[i, ...] - mean[j, ...]
        signed = signed * xp.abs(signed)
        between = xp.abs(signed) * float(np.float32(sizes[i] * sizes[j] / n))
        signed = signed / (within[i] + within[j] + between) * float(n - 1)
        best[i].append(signed)
        if j in best:
            best[j].append(-signed)
    return xp.stack([xp.max(xp.stack(best[target]), axis=0) for target in targets])


def excess_there(excess: Any, explained: Any, squared: Any) -> Any:
    """The excess of every target in every permutation, (targets, words, permutations), squared, with its sign."""
    xp = array_namespace(excess)
    unexplained = squared[:, None] + float(TINY)
    for i in range(explained.shape[0]):
        unexplained = unexplained - explained[i, ...] * explained[i, ...]
    return excess * xp.abs(excess) / unexplained
