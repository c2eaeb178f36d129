"""WEAT and WEFAT: effect sizes and p-values from sets of vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError, VectorError
from biassay.stats.association import associations, effect_size, inner_products, rounding_error, unit_rows, wefat_scores
from biassay.stats.crossed import CrossedResult, crossed_test
from biassay.stats.crossed_effect import EffectEstimate, crossed_effect, summarize_effect
from biassay.stats.permutation import Alternative, Protocol, Rng, Route, TailProbability, permutation_test

Floating = TypeVar("Floating", bound=np.floating[Any])
Words = tuple[Sequence[str], Sequence[str]] | tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]
"""The word of every text of X and Y, or of X, Y, A and B."""


def mean_rows(rows: NDArray[Floating], words: Sequence[str] | None) -> NDArray[Floating]:
    """Average the rows of every word, in the order of first appearance. If None, every row is a word."""
    if words is None or len(set(words)) == len(words) == len(rows):
        return rows
    index = _word_numbers(words, len(rows))
    counts = np.bincount(index)
    order = np.argsort(index, kind="stable")
    means = np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0, dtype=np.float64) / counts[:, None]
    return np.asarray(means, dtype=rows.dtype)


def average_texts(
    table: NDArray[Floating], sizes: tuple[int, int, int, int], words: Words | None
) -> tuple[NDArray[Floating], tuple[int, int, int, int]]:
    """Average a table of similarities of texts by word.

    Parameters
    ----------
    table : (targets, attributes) array
        Similarities of texts; rows of X and Y, columns of A and B.
    sizes : tuple of int
        Numbers of texts of X, Y, A and B.
    words : Words or None
        Word of every text, or cluster of every word. If None, the table is returned unchanged.

    Returns
    -------
    table : (target words, attribute words) array
        Mean similarities, in the order of first appearance.
    sizes : tuple of int
        Numbers of words of X, Y, A and B.
    """
    if words is None:
        return table, sizes
    x, y, a, b = pad_words(words)
    rows = [mean_rows(part, of) for part, of in ((table[: sizes[0]], x), (table[sizes[0] :], y))]
    columns = np.concatenate(rows).T
    sets = [mean_rows(part, of) for part, of in ((columns[: sizes[2]], a), (columns[sizes[2] :], b))]
    return np.concatenate(sets).T, count_rows([*rows, *sets])


def associate_words(
    table: NDArray[np.floating], sizes: tuple[int, int, int, int], labels: Words | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the association of every word with the clusters on the other side.

    The association of a target is its mean similarity with the clusters of A minus that with the clusters of B; the
    association of an attribute is its mean similarity with the clusters of X minus that with the clusters of Y.

    Parameters
    ----------
    table : (targets, attributes) array
        Similarities of words; rows of X and Y, columns of A and B.
    sizes : tuple of int
        Numbers of words of X, Y, A and B.
    labels : Words or None
        Cluster of every word. If None, every word is a cluster.

    Returns
    -------
    targets : (targets,) float64
        Associations of the words of X and Y.
    attributes : (attributes,) float64
        Associations of the words of A and B.
    """
    n, _, k, _ = sizes
    x, y, a, b = pad_words(labels)
    of_a, of_b = mean_rows(table[:, :k].T, a).T, mean_rows(table[:, k:].T, b).T
    of_x, of_y = mean_rows(table[:n], x), mean_rows(table[n:], y)
    of_targets = of_a.mean(axis=1, dtype=np.float64) - of_b.mean(axis=1, dtype=np.float64)
    return of_targets, of_x.mean(axis=0, dtype=np.float64) - of_y.mean(axis=0, dtype=np.float64)


def label_words(words: Mapping[str, Sequence[str]], clusters: Mapping[str, Mapping[str, str]]) -> Words | None:
    """Return the cluster of every word of X, Y, A and B; None if no cluster has several words."""
    if not any(clusters.values()):
        return None
    x, y, a, b = ([clusters.get(role, {}).get(word, word) for word in words[role]] for role in "XYAB")
    return x, y, a, b


def deduplicate_labels(words: Words | None, clusters: Words | None) -> Words | None:
    """Return the cluster of every word, in the order of first appearance, from the words and clusters of all texts."""
    if clusters is None:
        return None
    labels: list[Sequence[str]] = []
    for of_words, of_clusters in zip(pad_words(words), pad_words(clusters), strict=True):
        if of_clusters is None:
            break
        rows = [str(row) for row in range(len(of_clusters))] if of_words is None else of_words
        owner: dict[str, str] = {}
        for word, cluster in zip(rows, of_clusters, strict=True):
            if owner.setdefault(word, cluster) != cluster:
                raise UsageError(f"the word {word!r} is in two clusters, {owner[word]!r} and {cluster!r}")
        labels.append(list(owner.values()))
    return tuple(labels)  # type: ignore[return-value]  # two or four


def _word_numbers(words: Sequence[str], texts: int) -> NDArray[np.intp]:
    if len(words) != texts:
        raise UsageError(f"got {len(words)} words for {texts} texts; every text needs its word")
    indices = {word: index for index, word in enumerate(dict.fromkeys(words))}
    return np.array([indices[word] for word in words], dtype=np.intp)


def pad_words(words: Words | None) -> tuple[Sequence[str] | None, ...]:
    """Return the words of all four sets; None for a set if every row is a word."""
    given = () if words is None else tuple(words)
    if len(given) not in (0, 2, 4):
        raise UsageError(f"words are given for X and Y, or for X, Y, A and B; got {len(given)} lists")
    return given + (None,) * (4 - len(given))


def count_rows(sets: Sequence[NDArray[np.floating]]) -> tuple[int, int, int, int]:
    """Count the rows of four sets."""
    x, y, a, b = map(len, sets)
    return x, y, a, b


@dataclass(frozen=True, eq=False)
class Association:
    """Result of an association test.

    Attributes
    ----------
    effect_size : float
        Difference of mean associations in standard deviations; positive if X is associated with A and Y with B.
    statistic : float
        Sum of associations over X minus sum over Y.
    p : TailProbability or None
        P-value under the protocol, over texts as in the papers. None for a measure without a permutation test.
    by_word : TailProbability or None
        Exact p-value over words: all texts of a word, and all words of a cluster, move together. None if the words of
        the texts are unknown.
    by_word_opposite : TailProbability or None
        P-value of the opposite direction, if a one-sided test has a negative effect over words.
    effect_size_by_word : float or None
        Effect size over words: texts of a word are averaged, then words of a cluster, on both sides.
    protocol, alternative : str
    sizes : (int, int, int, int)
        Number of vectors in X, Y, A and B.
    x, y : (n,), (m,) float64
        Associations of the targets; empty for a metric that gives one score for all sets.
    cosines : (n + m, k + l) float64 (float32 if there are more than half a million), or None
        Cosines of words: texts of a word are averaged on both sides. Rows are the words of X and of Y, columns those
        of A and of B. None for a metric that gives one score for all sets.
    num_words : (int, int, int, int)
        Words of X, Y, A and B.
    floor : float or None
        Smallest possible p-value over words, if only some of the splits were tried.
    leave_one_out : role -> word -> float, or None
        Score without each word, for such a metric.
    clusters : two or four sequences of str, or None
        The cluster of every word; `crossed` and `estimate` average the words of a cluster first.
    """

    effect_size: float
    statistic: float
    p: TailProbability | None
    by_word: TailProbability | None
    by_word_opposite: TailProbability | None
    effect_size_by_word: float | None
    protocol: Protocol
    alternative: Alternative
    sizes: tuple[int, int, int, int]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    cosines: NDArray[np.floating] | None = None
    num_words: tuple[int, int, int, int] = (0, 0, 0, 0)
    floor: float | None = None
    leave_one_out: Mapping[str, Mapping[str, float]] | None = None
    clusters: Words | None = None

    @cached_property
    def crossed(self) -> CrossedResult | None:
        """Crossed test, which treats target words and attribute words as samples of their kinds."""
        if self.cosines is None:
            return None
        table, sizes = average_texts(self.cosines, self.num_words, self.clusters)
        return crossed_test(table, sizes[0], sizes[2])

    @cached_property
    def estimate(self) -> EffectEstimate | None:
        """Effect size over words, with an interval over target words and attribute words."""
        if self.cosines is None:
            return None
        table, sizes = average_texts(self.cosines, self.num_words, self.clusters)
        return crossed_effect(table, sizes[0], sizes[2])

    @property
    def p_value(self) -> float:
        """P-value under the protocol; NaN if there is none."""
        return math.nan if self.p is None else self.p.value

    @property
    def log10_p_value(self) -> float:
        """Logarithm of the p-value, which may underflow."""
        return math.nan if self.p is None else self.p.log10

    @property
    def p_value_by_word(self) -> float | None:
        """P-value over words, by permutation of the target words."""
        return None if self.by_word is None else self.by_word.value

    def __repr__(self) -> str:
        if self.crossed is None or self.estimate is None:
            return f"Association(effect_size={self.effect_size:.4g}, p_value={self.p_value:.4g}, sizes={self.sizes})"
        return f"Association({summarize_effect(self.estimate, self.crossed)})"


def weat(
    X: ArrayLike,
    Y: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    *,
    protocol: Protocol = "exact",
    alternative: Alternative = "greater",
    route: Route = "auto",
    words: Words | None = None,
    clusters: Words | None = None,
    rng: Rng = None,
) -> Association:
    """Measure how much more X than Y is associated with A rather than B (WEAT).

    Parameters
    ----------
    X, Y, A, B : (n, d), (m, d), (k, d), (l, d) array-like
        Vectors; only their directions count.
    protocol : {"exact", "may2019", "caliskan2017"}
        Method of the p-value; `exact` does not sample.
    alternative : {"greater", "two-sided"}
    route : {"auto", "enumeration", "counting", "saddle-point"}
        Forces one exact route, for instance ``counting`` for an integer count.
    words : two or four sequences of str, optional
        For texts made from words: the word of every row of X and Y, or of X, Y, A and B. Gives `by_word`. Without it
        `crossed` treats every row as a separate word.
    clusters : two or four sequences of str, optional
        The cluster of every row of X and Y, or of X, Y, A and B. Forms of one word (he, him, his) share a cluster and
        count as one observation.
    rng : numpy Generator or seed
        Used by the two protocols that draw.

    Returns
    -------
    Association
        Effect size, statistic and p-values; over words if `words` are given; `crossed` generalizes to other words.

    Notes
    -----
    The association of a target is its mean cosine with A minus its mean cosine with B. The effect size is the
    difference of the mean associations of X and Y over the standard deviation of all (n - 1 in the denominator). The
    p-value is the share of all splits of the targets into sets of these sizes with at least the observed statistic.
    Texts made from one word are not independent: with `words`, whole words are permuted instead. All these p-values
    hold for these attribute words only; `crossed` generalizes to other attribute words as well.

    References
    ----------
    .. [1] Caliskan, A., Bryson, J. J., and Narayanan, A. (2017). Semantics derived automatically from language corpora
       contain human-like biases. Science, 356(6334), 183-186.
    .. [2] May, C., Wang, A., Bordia, S., Bowman, S. R., and Rudinger, R. (2019). On measuring social biases in sentence
       encoders. NAACL-HLT, 622-628.

    Examples
    --------
    >>> import numpy as np, biassay
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(1, 1, (6, 20)), rng.normal(-1, 1, (6, 20))
    >>> found = biassay.weat(A[:3], B[:3], A[3:], B[3:])
    >>> round(found.p_value, 3), found.p.route
    (0.05, 'enumeration')
    >>> round(found.crossed.D, 2), found.crossed.p_value < 0.05
    (2.19, True)
    """
    if clusters is not None and words is None:
        words = tuple([str(row) for row in range(len(labels))] for labels in clusters)  # type: ignore[assignment]
    return associate_sets((X, Y, A, B), AssociationOptions(protocol, alternative, route, words, rng, clusters=clusters))


def associate_sets(sets: Sequence[ArrayLike], options: AssociationOptions) -> Association:
    """Compute the association of four sets of vectors X, Y, A and B by their cosines."""
    x_rows, y_rows, a_rows, b_rows = (unit_rows(vectors, what) for vectors, what in zip(sets, "XYAB", strict=True))
    dimensions = {rows.shape[1] for rows in (x_rows, y_rows, a_rows, b_rows)}
    if len(dimensions) > 1:
        raise VectorError(f"vectors of a test must have the same dimension, got {sorted(dimensions)}")
    if min(len(x_rows), len(y_rows)) < 2:
        raise UsageError(f"X and Y need at least two vectors each, got {len(x_rows)} and {len(y_rows)}")
    x, y = (associations(rows, a_rows, b_rows) for rows in (x_rows, y_rows))
    noise = rounding_error(a_rows.mean(axis=0) - b_rows.mean(axis=0), *(np.asarray(given).dtype for given in sets))
    sizes = (len(x_rows), len(y_rows), len(a_rows), len(b_rows))
    means = [
        mean_rows(rows, of) for rows, of in zip((x_rows, y_rows, a_rows, b_rows), pad_words(options.words), strict=True)
    ]
    cosines = inner_products(np.concatenate(means[:2]), np.concatenate(means[2:]))
    num_words = count_rows(means)
    del means, x_rows, y_rows, a_rows, b_rows  # as large as all vectors of the test
    return run_tests(x, y, sizes, replace(options, noise=noise), cosines, num_words)


@dataclass(frozen=True, eq=False)
class AssociationOptions:
    """Options of an association test.

    Attributes
    ----------
    words, clusters : Words, optional
        Word and cluster of every text.
    noise : float
        Largest rounding error of an association.
    p : TailProbability, optional
        Sentence-level p-value, if it is known already.
    """

    protocol: Protocol = "exact"
    alternative: Alternative = "greater"
    route: Route = "auto"
    words: Words | None = None
    rng: Rng = None
    noise: float = 0.0
    p: TailProbability | None = None
    clusters: Words | None = None


def run_tests(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    sizes: tuple[int, int, int, int],
    options: AssociationOptions,
    cosines: NDArray[np.floating],
    num_words: tuple[int, int, int, int],
) -> Association:
    """Compute effect sizes and p-values from the associations of texts and the cosines of words.

    Parameters
    ----------
    x, y : (n,) and (m,) float64
        Associations of the texts of X and Y.
    sizes : tuple of int
        Numbers of texts of X, Y, A and B.
    options : AssociationOptions
        Options of the tests.
    cosines : (target words, attribute words) array
        Similarities of words.
    num_words : tuple of int
        Numbers of words of X, Y, A and B.

    Returns
    -------
    Association
    """
    size = effect_size(x, y)
    p = options.p or permutation_test(
        x,
        y,
        protocol=options.protocol,
        alternative=options.alternative,
        route=options.route,
        noise=options.noise,
        rng=options.rng,
    )
    labels = deduplicate_labels(options.words, options.clusters)
    table, counts = average_texts(cosines, num_words, labels)
    every_text_a_word = options.p is None and sizes == counts and (options.protocol, options.route) == ("exact", "auto")
    by_word = opposite = size_by_word = None
    if options.words is not None:
        a, b = (table[:, part].mean(axis=1, dtype=np.float64) for part in (slice(counts[2]), slice(counts[2], None)))
        scores = a - b
        x_words, y_words = scores[: counts[0]], scores[counts[0] :]
        by_word = p
        if not every_text_a_word:
            by_word = permutation_test(x_words, y_words, alternative=options.alternative, noise=options.noise)
        size_by_word = effect_size(x_words, y_words)
        if options.alternative == "greater" and size_by_word < 0.0:
            opposite = permutation_test(-x_words, -y_words, noise=options.noise)
    return Association(
        effect_size=size,
        statistic=float(x.sum() - y.sum()),
        p=p,
        by_word=by_word,
        by_word_opposite=opposite,
        effect_size_by_word=size_by_word,
        protocol=options.protocol,
        alternative=options.alternative,
        sizes=sizes,
        x=x,
        y=y,
        cosines=cosines,
        num_words=num_words,
        clusters=labels,
    )


def wefat(words: ArrayLike, A: ArrayLike, B: ArrayLike) -> NDArray[np.float64]:
    """Compute single-target effect sizes: the association of each word with A rather than B (WEFAT).

    Parameters
    ----------
    words, A, B : (n, d), (k, d), (l, d) array-like
        Vectors; only their directions count.

    Returns
    -------
    (n,) float64
        Mean cosine with A minus that with B, over the standard deviation of the cosines with both.

    References
    ----------
    .. [1] Caliskan, A., Bryson, J. J., and Narayanan, A. (2017). Semantics derived automatically from language corpora
       contain human-like biases. Science, 356(6334), 183-186.

    Examples
    --------
    >>> import biassay
    >>> biassay.wefat([[1, 0], [0, 1]], [[1, 0], [2, 1]], [[0, 1], [1, 2]]).round(2)
    array([ 1.58, -1.58])
    """
    rows, a_rows, b_rows = (
        unit_rows(vectors, what) for vectors, what in zip((words, A, B), ("words", "A", "B"), strict=True)
    )
    return wefat_scores(rows, a_rows, b_rows)
