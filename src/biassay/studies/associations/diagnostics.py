"""Diagnostics of stimuli: what is known of the words of a test, and what of it changes how its result is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from biassay.pages.formats import concept, decimals, format_p
from biassay.stats.crossed import crossed_test
from biassay.stats.leave_one_out import effects_without, p_without
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.averaging import average_clusters, labels_of_words
from biassay.studies.associations.lead import lead_of, standing_of
from biassay.studies.associations.records import Diagnostics, Result

__all__ = ["HALF", "diagnosed", "warnings_of"]

HALF = 0.5
"""Of their texts: where X and Y have less in common, grammar cannot be told from meaning."""
_APART = 0.4  # between the shares of single tokens of X and Y
_TIMES = 5.0  # between the median frequencies of X and Y
_TWICE = 2.0  # alpha: a p-value just below it easily crosses it
_UNEQUAL = 2.0  # between sizes and between spreads of X and Y
Numbers = Mapping[str, float]


def diagnosed(
    test: Test,
    row: Result,
    cosines: NDArray[np.floating] | None,
    tokens: Numbers | None,
    frequency: Numbers | None,
) -> Diagnostics:
    """``tokens`` and ``frequency`` (rank, or number of contexts) are those of words; None: not known."""
    words = {role: list(row.associations.get(role, {})) or list(test.concept(role).words) for role in ROLES}
    counts = None if tokens is None else {role: [tokens[w] for w in own if w in tokens] for role, own in words.items()}
    counts = counts if counts is not None and all(counts.values()) else None
    driver, d_without, p = _driver(row, words, cosines)
    crossed = None
    if cosines is not None:
        x, y, a, b = (len(words[role]) for role in ROLES)
        table, (n, _, k, _) = average_clusters(cosines, (x, y, a, b), labels_of_words(words, row.clusters))
        crossed = crossed_test(table, n, k)
    return Diagnostics(
        model=row.model,
        options=row.options,
        test=row.test,
        tokens=None if counts is None else {role: float(np.mean(own)) for role, own in counts.items()},
        single=None if counts is None else {role: float(np.mean(np.equal(own, 1))) for role, own in counts.items()},
        frequency=None if frequency is None else _medians(words, frequency),
        driver=driver,
        d_without=d_without,
        p_without=p,
        p_skew=None if crossed is None else crossed.p_skew,
        model_revision=row.model_revision,
    )


def _medians(words: Mapping[str, Sequence[str]], frequency: Numbers) -> dict[str, float] | None:
    known = {
        role: [frequency[w] for w in own if math.isfinite(frequency.get(w, math.nan))] for role, own in words.items()
    }
    return {role: float(median(own)) for role, own in known.items()} if all(known.values()) else None


def _driver(
    row: Result, words: Mapping[str, Sequence[str]], cosines: NDArray[np.floating] | None
) -> tuple[str | None, float | None, float | None]:
    """Return the word or cluster without which least of the effect is left, with the d and the p that are left."""
    if cosines is None or row.effect_size_by_word is None:
        return None, None, None
    sizes = len(words["X"]), len(words["Y"]), len(words["A"]), len(words["B"])
    table, (n, _, k, _) = average_clusters(cosines, sizes, labels_of_words(words, row.clusters))
    effects = effects_without(table, n, k)
    towards = effects * math.copysign(1.0, row.effect_size_by_word)
    if np.isnan(towards).all():
        return None, None, None
    place = int(np.nanargmin(towards))
    names = [name for role in ROLES for name in _by_cluster(words[role], row.clusters.get(role, {}))]
    return names[place], float(effects[place]), p_without(table, n, k, place)


def _by_cluster(words: Sequence[str], clusters: Mapping[str, str]) -> list[str]:
    """Name the clusters of a word set by their words: he/him/his."""
    joined: dict[str, list[str]] = {}
    for word in words:
        joined.setdefault(clusters.get(word, word), []).append(word)
    return ["/".join(cluster) for cluster in joined.values()]


def warnings_of(row: Result, found: Diagnostics | None) -> Iterator[str]:
    """Only what changes the reading: of a result that claims nothing little can be taken away."""
    x, y = concept(row.targ1), concept(row.targ2)
    if row.shared_templates is not None and row.shared_templates < HALF:
        yield (
            f"{x} and {y} stand in different sentences ({row.shared_templates:.0%} in common): a difference of grammar "
            "cannot be told from one of meaning"
        )
    if row.undeclared and lead_of(row) != "text":
        words = ", ".join(group for groups in row.undeclared.values() for group in groups)
        yield f"{words} look like forms of one word and count as several: declare them as a cluster (see tests.md)"
    if standing_of(row) not in ("significant", "uncorrected"):
        return
    if found is not None and lead_of(row) == "crossed":
        yield from _of_words(row, found, x, y)
    yield from _unequal(row)


def _of_words(row: Result, found: Diagnostics, x: str, y: str) -> Iterator[str]:
    if found.p_without is not None and found.p_without > _TWICE * row.alpha:
        left = f"d is {decimals(found.d_without)}, p {format_p(found.p_without)}"
        yield f"it hangs on one word: without {found.driver}, {left}"
    if found.p_skew is not None and found.p_skew > row.alpha:
        yield (
            f"the associations are skewed: corrected for that, p is {format_p(found.p_skew)}, which is not significant"
        )
    if found.single is not None and abs(found.single["X"] - found.single["Y"]) > _APART:
        shares = f"{found.single['X']:.0%} of {x}, {found.single['Y']:.0%} of {y}"
        yield f"words of a single token: {shares}; the difference may come from how words are split"
    if found.frequency is not None and not 1 / _TIMES < found.frequency["X"] / found.frequency["Y"] < _TIMES:
        medians = f"{found.frequency['X']:,.0f} for {x}, {found.frequency['Y']:,.0f} for {y}"
        yield f"words differ in frequency (median {medians}), from which the difference may come"


def _unequal(row: Result) -> Iterator[str]:
    """Exchangeability is more than equal means."""
    x, y = (list(row.associations.get(role, {}).values()) for role in "XY")
    if min(len(x), len(y)) < 2 or max(len(x), len(y)) < _UNEQUAL * min(len(x), len(y)):
        return
    if not np.isfinite([*x, *y]).all():
        return
    spreads = float(np.std(x, ddof=1)), float(np.std(y, ddof=1))
    if max(spreads) >= _UNEQUAL * min(spreads):
        yield (
            f"{len(x)} and {len(y)} words with unequal spreads: p (these words only) is not to be trusted; the "
            "crossed p does not need equal spreads"
        )
