"""CEAT: the distribution of an association over the contexts of its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import DegenerateError, UsageError, VectorError
from biassay.stats.association import FLAT, effect_size, rounding_error
from biassay.stats.context_samples import (
    ContextPools,
    check_draws,
    draw_contexts,
    draw_from_other_documents,
    mean_directions,
    number_documents,
    prediction_interval,
    sample_associations,
)
from biassay.stats.crossed import CrossedResult, crossed_test
from biassay.stats.crossed_effect import EffectEstimate, crossed_effect, summarize_effect
from biassay.stats.permutation import Rng, TailProbability, permutation_test, sample_p_values
from biassay.stats.power import largest_d
from biassay.stats.random_effects import RandomEffects, random_effects
from biassay.studies.associations.weat import Words, average_texts

_PAIRED = 1000  # enough samples to estimate the variance of new draws to 5%


Labels = Sequence[ArrayLike]


@dataclass(frozen=True, eq=False)
class ContextualAssociation:
    """Result of a contextualized association test.

    Attributes
    ----------
    pooled : RandomEffects
        The random-effects model over the samples; its p-value is the paper's, and says nothing about other words.
    samples, variances, sample_p_values : (n_samples,) float64
        Effect size and variance of every sample, and the one-sided permutation p-value of each.
    by_word : TailProbability
        Exact and two-sided: would a random split of the target words, each with its association averaged over all its
        contexts, do as well?
    effect_size_by_word : float
        The effect size of those averages. Averaging removes the contexts' noise, so it lies further from zero.
    prediction_interval : (float, float) or None
        Where 95% of effect sizes lie if every one of these words is read in one new context, from a new document. None:
        the contexts of some word come from one document.
    x, y, a, b : (n,), (m,), (k,), (l,) float64
        Averaged over contexts: of the targets the association with A rather than B, of the attributes the mean cosine
        with X rather than Y.
    cosines : (n + m, k + l) float64
        Mean cosines of words over all their contexts.
    pool_sizes, num_documents : (words,) int64
        Contexts of every word, in the order X, Y, A, B, and the number of documents they come from.
    sizes : (int, int, int, int)
    clusters : two or four sequences of str, or None
        The cluster of every stimulus. `by_word`, `effect_size_by_word`, `crossed` and `estimate` average the stimuli
        of a cluster first.
    """

    pooled: RandomEffects
    samples: NDArray[np.float64]
    variances: NDArray[np.float64]
    sample_p_values: NDArray[np.float64]
    by_word: TailProbability
    effect_size_by_word: float
    prediction_interval: tuple[float, float] | None
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    cosines: NDArray[np.float64]
    pool_sizes: NDArray[np.int64]
    num_documents: NDArray[np.int64]
    sizes: tuple[int, int, int, int]
    clusters: Words | None = None

    @cached_property
    def crossed(self) -> CrossedResult:
        """Crossed test, which treats target words and attribute words as samples of their kinds."""
        table, sizes = average_texts(self.cosines, self.sizes, self.clusters)
        return crossed_test(table, sizes[0], sizes[2])

    @cached_property
    def estimate(self) -> EffectEstimate:
        """Effect size over words, with an interval over target words and attribute words."""
        table, sizes = average_texts(self.cosines, self.sizes, self.clusters)
        return crossed_effect(table, sizes[0], sizes[2])

    @property
    def effect_size(self) -> float:
        """Combined effect size (CES)."""
        return self.pooled.mean

    @property
    def standard_error(self) -> float:
        """Standard error of the combined effect size."""
        return self.pooled.standard_error

    @property
    def p_value(self) -> float:
        """P-value of the combined effect size, two-sided."""
        return self.pooled.p_value

    @property
    def log10_p_value(self) -> float:
        """Logarithm of the p-value, which may underflow."""
        return self.pooled.log10_p

    @property
    def p_value_by_word(self) -> float:
        """P-value over words, by permutation of the target words."""
        return self.by_word.value

    def __repr__(self) -> str:
        return f"ContextualAssociation({summarize_effect(self.estimate, self.crossed)})"


def ceat(
    X: Sequence[ArrayLike],
    Y: Sequence[ArrayLike],
    A: Sequence[ArrayLike],
    B: Sequence[ArrayLike],
    *,
    n_samples: int = 10_000,
    draws: ArrayLike | None = None,
    documents: Sequence[Labels] | None = None,
    rng: Rng = None,
    threads: int | None = None,
    clusters: Words | None = None,
) -> ContextualAssociation:
    """Measure how much more X than Y is associated with A rather than B, over many contexts (CEAT).

    Parameters
    ----------
    X, Y, A, B : lists of (contexts, d) array-like
        For every stimulus the vectors of its contexts; only their directions count. float16 and float32 are computed in
        float32, anything else in float64.
    n_samples : int
        Samples of one context per stimulus; without replacement from a stimulus that has at least n_samples contexts.
    draws : (n_samples, stimuli) array-like of int, optional
        Row numbers in the order X, Y, A, B, instead of drawing.
    documents : four lists of (contexts,) sequences, optional
        For X, Y, A and B the document of every context, as strings or numbers. Contexts of one document are not
        independent. By default, every context counts as a document.
    rng : numpy Generator or seed
    threads : int, optional
        All cores by default. The numbers do not depend on it.
    clusters : two or four sequences of str, optional
        The cluster of every stimulus of X and Y, or of X, Y, A and B. Forms of one word (he, him, his) share a cluster
        and count as one observation.

    Returns
    -------
    ContextualAssociation
        Combined effect size (CES) with its p-value, its samples, and the exact p-value over words.

    Notes
    -----
    Each sample draws one context per stimulus and gives an effect size of WEAT. A random-effects model (DerSimonian and
    Laird) pools them. The pooled p-value shrinks as you draw more samples: it tests the mean over contexts of these
    words. `crossed` generalizes to other words. The prediction interval is for new contexts of these words.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import numpy as np, biassay
    >>> rng = np.random.default_rng(0)
    >>> def words(n, mean):
    ...     return [rng.normal(mean, 1.0, (20, 10)) for _ in range(n)]
    >>> found = biassay.ceat(words(6, 1), words(6, -1), words(6, 1), words(6, -1), n_samples=1000, rng=0)
    >>> found.effect_size > 1.5, found.p_value_by_word < 0.01
    (True, True)
    """
    x, y, a, b = (
        ContextPools.from_arrays(_to_arrays(given, name), name)
        for given, name in zip((X, Y, A, B), "XYAB", strict=True)
    )
    sizes = (len(x.rows), len(y.rows), len(a.rows), len(b.rows))
    targets = ContextPools(x.rows + y.rows, x.scales + y.scales, np.result_type(x.dtype, y.dtype))
    _check_pools(targets, a, b, sizes)
    generator = np.random.default_rng(rng)
    pool_sizes = np.concatenate([targets.sizes, a.sizes, b.sizes])
    numbered = _number_documents(documents, pool_sizes, sizes)
    table = _draw_contexts(draws, pool_sizes, n_samples, generator)
    scores = sample_associations(targets, a, b, table, threads)
    samples, variances = _compute_effects(scores, sizes[0])
    of_x, of_y, of_a, of_b = (mean_directions(pools) for pools in (x, y, a, b))
    toward_a, toward_x = of_a.mean(axis=0) - of_b.mean(axis=0), of_x.mean(axis=0) - of_y.mean(axis=0)
    mean_x, mean_y = of_x @ toward_a, of_y @ toward_a
    noise = rounding_error(toward_a, targets.dtype, a.dtype, b.dtype)
    table_of_words = np.concatenate([of_x, of_y]) @ np.concatenate([of_a, of_b]).T
    x_words, y_words = mean_x, mean_y
    if clusters is not None:
        averaged, (n, _, k, _) = average_texts(table_of_words, sizes, clusters)
        every = averaged[:, :k].mean(axis=1) - averaged[:, k:].mean(axis=1)
        x_words, y_words = every[:n], every[n:]
    predicted = None
    if (others := draw_from_other_documents(table[:_PAIRED], numbered, generator)) is not None:
        partners, _ = _compute_effects(sample_associations(targets, a, b, others, threads), sizes[0])
        predicted = prediction_interval(samples, partners, table, numbered, largest_d(*sizes[:2]))
    return ContextualAssociation(
        pooled=random_effects(samples, variances),
        samples=samples,
        variances=variances,
        sample_p_values=sample_p_values(scores, sizes[0]),
        by_word=permutation_test(x_words, y_words, alternative="two-sided", noise=noise),
        effect_size_by_word=effect_size(x_words, y_words),
        prediction_interval=predicted,
        x=mean_x,
        y=mean_y,
        a=of_a @ toward_x,
        b=of_b @ toward_x,
        cosines=table_of_words,
        pool_sizes=pool_sizes,
        num_documents=np.array([len(np.unique(own)) for own in numbered]),
        sizes=sizes,
        clusters=clusters,
    )


def _to_arrays(given: Sequence[ArrayLike], name: str) -> list[NDArray[np.floating]]:
    if not isinstance(given, list | tuple):
        raise UsageError(f"{name} must be a list with one array (contexts, d) per stimulus, got {type(given).__name__}")
    return [np.asarray(array) for array in given]


def _check_pools(targets: ContextPools, a: ContextPools, b: ContextPools, sizes: tuple[int, int, int, int]) -> None:
    if min(sizes[:2]) < 2 or min(sizes[2:]) < 1:
        raise UsageError(f"X and Y need at least two stimuli each, A and B one, got {', '.join(map(str, sizes))}")
    dimensions = {array.shape[1] for pools in (targets, a, b) for array in pools.rows}
    if len(dimensions) > 1:
        raise VectorError(f"vectors of a test must have the same dimension, got {sorted(dimensions)}")


def _number_documents(
    given: Sequence[Labels] | None, pool_sizes: NDArray[np.int64], sizes: tuple[int, int, int, int]
) -> list[NDArray[np.int64]]:
    """Return the number of the document of every context, by word."""
    if given is None:
        return np.split(np.arange(int(pool_sizes.sum())), np.cumsum(pool_sizes)[:-1])
    labels = [np.asarray(own).tolist() for words in given for own in words]
    if [len(words) for words in given] != list(sizes) or [len(own) for own in labels] != pool_sizes.tolist():
        raise UsageError("documents must have one label per context, in the order of X, Y, A and B")
    return number_documents(labels)


def _draw_contexts(
    draws: ArrayLike | None, pool_sizes: NDArray[np.int64], n_samples: int, rng: np.random.Generator
) -> NDArray[np.integer]:
    if draws is not None:
        table = np.asarray(draws)
        check_draws(table, pool_sizes)
        n_samples = len(table)
    if n_samples < 3:
        raise UsageError(f"n_samples must be at least 3, got {n_samples}")
    return table if draws is not None else draw_contexts(pool_sizes, n_samples, rng)


def _compute_effects(scores: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute effect size and variance of every sample."""
    variances = scores.var(axis=1, ddof=1)
    flat = variances <= (FLAT * np.maximum(1.0, np.abs(scores).max(axis=1))) ** 2
    if flat.any():
        raise DegenerateError(
            f"in sample {int(np.argmax(flat))} all targets have the same association with the attributes: "
            "its effect size would divide by zero"
        )
    return (scores[:, :n].mean(axis=1) - scores[:, n:].mean(axis=1)) / np.sqrt(variances), variances
