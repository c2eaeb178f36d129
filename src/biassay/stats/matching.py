"""Words of two sets that are alike in a number: of equal value, or of about equal size."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["matched"]


def matched(x: Sequence[float], y: Sequence[float], factor: float = 1.0) -> tuple[list[int], list[int]]:
    """Places in ``x`` and in ``y`` of pairs whose values differ by at most ``factor``, as many as there can be.

    Values that are not finite or not positive match nothing.
    """
    places = [sorted((v, i) for i, v in enumerate(values) if math.isfinite(v) and v > 0.0) for values in (x, y)]
    first, second = places
    of_x: list[int] = []
    of_y: list[int] = []
    i = j = 0
    while i < len(first) and j < len(second):
        a, b = first[i][0], second[j][0]
        if a > b * factor:
            j += 1
        elif b > a * factor:
            i += 1
        else:
            of_x.append(first[i][1])
            of_y.append(second[j][1])
            i, j = i + 1, j + 1
    return sorted(of_x), sorted(of_y)
