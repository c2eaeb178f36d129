"""The effect size by word with an interval over target words and attribute words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from biassay.stats.crossed import CONFIDENCE, crossed_test

__all__ = ["Estimate", "crossed_effect"]


@dataclass(frozen=True)
class Estimate:
    """An effect size and its interval over words of the same kinds; None: not defined."""

    effect_size: float
    low: float | None
    high: float | None
    confidence: float


def crossed_effect(cosines: ArrayLike, n: int, k: int, *, confidence: float = CONFIDENCE) -> Estimate:
    table = np.asarray(cosines, dtype=np.float64)
    found = crossed_test(table, n, k, confidence=confidence)
    s = table[:, :k].mean(axis=1) - table[:, k:].mean(axis=1)
    x, y = s[:n], s[n:]
    within = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum())
    total = len(s)

    def size(D: float) -> float:
        return D / math.sqrt((within + n * (total - n) / total * D * D) / (total - 1))

    if found.interval is None:
        return Estimate(size(found.D) if within else math.nan, None, None, confidence)
    return Estimate(size(found.D), size(found.interval[0]), size(found.interval[1]), confidence)
