"""A prediction interval for the effect of an association test on new contexts of the same words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["draw_from_other_documents", "number_documents", "prediction_interval"]

_CLOSEST = 1.0 - 1e-12  # to the largest effect size, so that its transform is finite

Floats = NDArray[np.float64]
Documents = Sequence[NDArray[np.int64]]


def number_documents(labels: Sequence[Sequence[object]]) -> list[NDArray[np.int64]]:
    """Replace the document labels of each word's contexts by numbers, the same for all words."""
    numbers: dict[object, int] = {}
    return [np.array([numbers.setdefault(label, len(numbers)) for label in own], dtype=np.int64) for own in labels]


def draw_from_other_documents(
    draws: NDArray[np.integer], documents: Documents, rng: np.random.Generator
) -> NDArray[np.int32] | None:
    """Draw for every context in `draws` (samples, words) a context of the same word from another document.

    Returns None if the contexts of some word all come from one document.
    """
    columns = []
    for word, own in enumerate(documents):
        _, document, sizes = np.unique(own, return_inverse=True, return_counts=True)
        if len(sizes) < 2:
            return None
        order, first = np.argsort(document, kind="stable"), np.cumsum(sizes) - sizes
        drawn = document[draws[:, word]]
        number = rng.integers(len(own) - sizes[drawn])  # among the contexts of all other documents
        columns.append(order[number + np.where(number >= first[drawn], sizes[drawn], 0)])
    return np.stack(columns, axis=1).astype(np.int32)


def prediction_interval(
    effects: Floats,
    partners: Floats,
    draws: NDArray[np.integer],
    documents: Documents,
    largest: float,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Where the effect size of one more draw of contexts lies, with contexts of new documents.

    Parameters
    ----------
    effects : (samples,) array
        Effect sizes with one context per word.
    partners : (pairs,) array
        Effect sizes of the first `pairs` samples after `draw_from_other_documents`.
    draws : (samples, words) array of int
        The contexts in each sample.
    documents : list of (contexts,) arrays of int
        The document of each context, by word.
    largest : float
        The largest effect size that so many targets can have.
    confidence : float

    Notes
    -----
    Effect sizes are transformed by atanh(effect / largest). A sample and its partner share no document in any word, so
    half the mean squared difference of such pairs estimates the variance of new draws, also with two contexts per word.
    The mean over the pool has an error of its own, because each word has few contexts and contexts of one document move
    together. Its variance is a jackknife over documents: the change of the mean without a document, from the mean
    effects of the samples that hold each context. Degrees of freedom are Satterthwaite's.
    """
    z, of_partners = (np.arctanh(np.clip(values / largest, -_CLOSEST, _CLOSEST)) for values in (effects, partners))
    centre = float(z.mean())
    between = float(((z[: len(of_partners)] - of_partners) ** 2).mean()) / 2.0
    by_word = [_changes(z - centre, draws[:, word], own) for word, own in enumerate(documents)]
    changes, names = (np.concatenate([found[part] for found in by_word]) for part in (0, 1))
    by_document = np.bincount(np.unique(names, return_inverse=True)[1], weights=changes)
    squares = by_document**2
    of_centre = max(float(squares.sum()) - draws.shape[1] * between / len(z), 0.0)  # less the noise of sampling
    variance = between + of_centre
    if not variance > 0.0:
        return largest * math.tanh(centre), largest * math.tanh(centre)
    effective = np.array([count for _, _, count in by_word])
    of_words = effective * [float((change**2).sum()) for change, _, _ in by_word]
    free = np.maximum(effective - 1.0, 1e-3)
    in_between = float((of_words**2 / free).sum()) / max(float(of_words.sum()), math.ulp(0.0)) ** 2
    in_centre = float((squares**2).sum()) / max(float(squares.sum()), math.ulp(0.0)) ** 2
    inverse_df = ((between / variance) ** 2) * in_between + ((of_centre / variance) ** 2) * in_centre
    df = 1.0 / min(max(inverse_df, 1e-9), 1.0)
    reach = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0)) * math.sqrt(variance)
    return largest * math.tanh(centre - reach), largest * math.tanh(centre + reach)


def _changes(
    centred: Floats, drawn: NDArray[np.integer], documents: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64], float]:
    """Return how the mean changes without each document of one word, scaled so that squares add up to a variance.

    With it come the numbers of these documents, and how many equally large documents would be worth the same.
    """
    times = np.bincount(drawn, minlength=len(documents))
    used = times > 0
    effects = np.bincount(drawn, weights=centred, minlength=len(documents))[used] / times[used]
    effects -= effects.mean()
    names, document = np.unique(documents[used], return_inverse=True)
    shares = np.bincount(document) / len(effects)
    sums = np.bincount(document, weights=effects) / len(effects)
    rest = np.maximum(1.0 - shares, 1.0 / len(effects))
    scaled = sums / rest * math.sqrt(max(len(names) - 1, 1) / len(names))
    return scaled, names, 1.0 / float((shares**2).sum())
