"""Plain loops written from the text of the papers, as the reference for speed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

Vector = Sequence[float]


def cosine(u: Vector, v: Vector) -> float:
    dot = sum(a * b for a, b in zip(u, v, strict=True))
    return dot / math.sqrt(sum(a * a for a in u) * sum(b * b for b in v))


def shuffled_test(x: Sequence[float], y: Sequence[float], draws: int, rng: random.Random) -> tuple[float, float]:
    """Compute effect size and p-value from associations by shuffling ``draws`` times."""
    pooled = [*x, *y]
    mean = sum(pooled) / len(pooled)
    deviation = math.sqrt(sum((s - mean) ** 2 for s in pooled) / (len(pooled) - 1))
    effect = (sum(x) / len(x) - sum(y) / len(y)) / deviation
    observed = sum(x) - sum(y)
    hits = 1
    for _ in range(draws):
        rng.shuffle(pooled)
        if sum(pooled[: len(x)]) - sum(pooled[len(x) :]) >= observed:
            hits += 1
    return effect, hits / (draws + 1)
