"""Draw a subset of items that is balanced over several factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def draw_balanced(levels: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw n items so that the levels of every factor occur about equally often.

    Parameters
    ----------
    levels : (items, factors) array of int
        Level of each item in each factor, such as its template and the position of its right answer.
    n : int
        Number of items to draw. If there are no more items, all are drawn.
    rng : numpy.random.Generator

    Returns
    -------
    (n,) array
        Indices of the items drawn, ascending.

    Notes
    -----
    Items are drawn one by one. The next item has the levels that occur least often so far, summed over the factors;
    ties are broken at random (minimisation; Pocock and Simon 1975).

    Examples
    --------
    >>> drawn = draw_balanced([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, 4, np.random.default_rng(0))
    >>> sorted((drawn % 4).tolist())
    [0, 0, 3, 3]
    """
    table = np.asarray(levels)
    codes = [np.unique(column, return_inverse=True)[1] for column in table.T]
    counts = [np.zeros(code.max() + 1 if len(code) else 0) for code in codes]
    tie_breaks = rng.random(len(table))
    free = np.ones(len(table), dtype=bool)
    drawn = []
    for _ in range(min(n, len(table))):
        cost = tie_breaks + sum((count[code] for count, code in zip(counts, codes, strict=True)), np.zeros(len(table)))
        chosen = int(np.where(free, cost, np.inf).argmin())
        free[chosen] = False
        drawn.append(chosen)
        for count, code in zip(counts, codes, strict=True):
            count[code[chosen]] += 1.0
    return np.sort(np.array(drawn, dtype=np.int64))
