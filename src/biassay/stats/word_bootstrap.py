"""An interval for the pooled effect size over other words of the same kinds: the words are resampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.stats.meta import pooled_means

__all__ = ["bootstrap_means", "word_interval"]

_BLOCK = 1 << 22  # associations held at once


def word_interval(means: NDArray[np.float64], observed: float, confidence: float) -> tuple[float, float]:
    """The middle ``confidence`` of resampled pooled effect sizes, moved so that their mean is the one observed.

    A resample holds fewer different words than the sets do, and an effect size over fewer attributes is smaller.
    Without the move an interval of 95% held the expected effect size in as few as 78 of 100 simulations, with it in 91
    to 97.
    """
    outside = 50.0 * (1.0 - confidence)
    low, high = np.percentile(means, [outside, 100.0 - outside])
    move = observed - float(means.mean())
    return float(low) + move, float(high) + move


def bootstrap_means(
    cosines: NDArray[np.float32], sizes: tuple[int, int, int, int], replicates: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Pooled effect sizes with the words of X, Y, A and B each drawn anew, with replacement, (replicates,).

    ``cosines`` (samples, |X| + |Y|, |A| + |B|) of the contexts drawn; a word that is drawn twice brings the same
    context twice.
    """
    samples, targets, attributes = cosines.shape
    counts = [rng.multinomial(size, np.full(size, 1.0 / size), size=replicates) for size in sizes]
    between = np.concatenate([counts[2] / sizes[2], -counts[3] / sizes[3]], axis=1).T.astype(np.float32)
    flat = cosines.reshape(samples * targets, attributes)
    step = max(1, _BLOCK // (samples * targets))
    parts = []
    for start in range(0, replicates, step):
        part = slice(start, start + step)
        scores = (flat @ between[:, part]).reshape(samples, targets, -1)
        parts.append(_pooled(scores, counts[0][part].T, counts[1][part].T))
    return np.concatenate(parts)


def _pooled(scores: NDArray[np.float32], x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pooled effect size of every replicate: ``scores`` (samples, targets, c), how often a word counts (words, c)."""
    n, m = x[:, 0].sum(), y[:, 0].sum()
    scores = scores - scores.mean(axis=1, keepdims=True)  # first, so that squares cancel no digits
    of_x = np.concatenate([x, np.zeros_like(y)]).astype(np.float32)
    of_y = np.concatenate([np.zeros_like(x), y]).astype(np.float32)
    mean_x, mean_y = (np.einsum("rtc,tc->rc", scores, w, dtype=np.float64) / k for w, k in ((of_x, n), (of_y, m)))
    mean = (n * mean_x + m * mean_y) / (n + m)
    squares = np.einsum("rtc,rtc,tc->rc", scores, scores, of_x + of_y, dtype=np.float64)
    variances = (squares - (n + m) * mean * mean) / (n + m - 1)
    variances = np.maximum(variances, np.finfo(np.float32).eps ** 2)  # below it a cosine is rounding
    return pooled_means((mean_x - mean_y) / np.sqrt(variances), variances)
