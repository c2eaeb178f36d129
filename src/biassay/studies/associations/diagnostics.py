"""Warnings about the words of a test, out-of-vocabulary words, undeclared word forms and context counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.linter import group_by_spelling
from biassay.datasets.schema import ROLES, Test
from biassay.errors import format_examples
from biassay.reporting.formats import format_concept, format_count, format_decimal, format_p_relation
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData, copy_fields, model_key, model_labels
from biassay.stats.association import unit_rows
from biassay.stats.crossed import crossed_test, effects_without, p_value_without
from biassay.studies.associations.results import CROSSED, SENTENCES, AssociationRecord, Diagnostics
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.weat import average_clusters, label_words, mean_rows

HALF = 0.5
"""Share of common templates below which a difference between X and Y may be one of grammar."""
_MAX_TOKEN_GAP = 0.4  # between the shares of single-token words of X and Y
_MAX_FREQUENCY_RATIO = 5.0  # between the median frequencies of X and Y
_MAX_ALPHA_RATIO = 2.0  # p-values just above alpha are not worth a warning
_MAX_SIZE_RATIO = 2.0  # between sizes and between spreads of X and Y
Numbers = Mapping[str, float]


def diagnose(
    test: Test,
    row: AssociationRecord,
    cosines: NDArray[np.floating] | None,
    tokens: Numbers | None,
    frequency: Numbers | None,
) -> Diagnostics:
    """Collect explanations of an effect other than meaning.

    Parameters
    ----------
    test : Test
        Test that was measured.
    row : AssociationRecord
        Its record on one model.
    cosines : (targets, attributes) array or None
        Cosines of the words. None if they were not stored.
    tokens : mapping of str to float or None
        Number of tokens by word. None if unknown.
    frequency : mapping of str to float or None
        Rank in the vocabulary, or number of contexts, by word. None if unknown.

    Returns
    -------
    Diagnostics
    """
    words = {role: list(row.associations.get(role, {})) or list(test.concept(role).words) for role in ROLES}
    counts = None if tokens is None else {role: [tokens[w] for w in own if w in tokens] for role, own in words.items()}
    counts = counts if counts is not None and all(counts.values()) else None
    driver, d_without, p, crossed = None, None, None, None
    if cosines is not None:
        x, y, a, b = (len(words[role]) for role in ROLES)
        table, (n, _, k, _) = average_clusters(cosines, (x, y, a, b), label_words(words, row.clusters))
        crossed = crossed_test(table, n, k)
        driver, d_without, p = _find_driver(row, words, table, n, k)
    return Diagnostics(
        **copy_fields(row, "model", "options", "model_revision", "test"),
        tokens=None if counts is None else {role: float(np.mean(own)) for role, own in counts.items()},
        single=None if counts is None else {role: float(np.mean(np.equal(own, 1))) for role, own in counts.items()},
        frequency=None if frequency is None else _median_frequencies(words, frequency),
        driver=driver,
        d_without=d_without,
        p_without=p,
        p_skew=None if crossed is None else crossed.p_skew,
    )


def _median_frequencies(words: Mapping[str, Sequence[str]], frequency: Numbers) -> dict[str, float] | None:
    known = {
        role: [frequency[w] for w in own if math.isfinite(frequency.get(w, math.nan))] for role, own in words.items()
    }
    return {role: float(median(own)) for role, own in known.items()} if all(known.values()) else None


def _find_driver(
    row: AssociationRecord, words: Mapping[str, Sequence[str]], table: NDArray[np.floating], n: int, k: int
) -> tuple[str | None, float | None, float | None]:
    """Return the word or cluster whose removal reduces the effect most, and d and p without it."""
    if row.word_effect is None:
        return None, None, None
    effects = effects_without(table, n, k)
    towards = effects * math.copysign(1.0, row.word_effect)
    if np.isnan(towards).all():
        return None, None, None
    index = int(np.nanargmin(towards))
    names = [name for role in ROLES for name in _name_clusters(words[role], row.clusters.get(role, {}))]
    return names[index], float(effects[index]), p_value_without(table, n, k, index)


def _name_clusters(words: Sequence[str], clusters: Mapping[str, str]) -> list[str]:
    """Name the clusters of a word set by their words: he/him/his."""
    joined: dict[str, list[str]] = {}
    for word in words:
        joined.setdefault(clusters.get(word, word), []).append(word)
    return ["/".join(cluster) for cluster in joined.values()]


def list_warnings(row: Result, diagnostics: Diagnostics | None) -> Iterator[str]:
    """Yield warnings about a result; most of them concern significant results only."""
    x, y = format_concept(row.targ1), format_concept(row.targ2)
    if row.shared_templates is not None and row.shared_templates < HALF:
        yield (
            f"{x} and {y} appear in different sentences ({row.shared_templates:.0%} in common): the effect may "
            "come from grammar instead of meaning"
        )
    if row.undeclared and row.outcome.test != SENTENCES:
        words = ", ".join(group for groups in row.undeclared.values() for group in groups)
        yield (
            f"{words} may be forms of one word or near-synonyms: declare them as a cluster unless they vary "
            "independently"
        )
    if row.evidence not in ("significant", "uncorrected"):
        return
    if diagnostics is not None and row.outcome.test == CROSSED:
        yield from _list_word_warnings(row, diagnostics, x, y)
    yield from _warn_unequal(row)


def _list_word_warnings(row: Result, diagnostics: Diagnostics, x: str, y: str) -> Iterator[str]:
    if diagnostics.p_without is not None and diagnostics.p_without > _MAX_ALPHA_RATIO * row.alpha:
        left = f"d = {format_decimal(diagnostics.d_without)}, p {format_p_relation(diagnostics.p_without)}"
        yield f"it depends on one word: without {diagnostics.driver}, {left}"
    if diagnostics.p_skew is not None and diagnostics.p_skew > row.alpha:
        p = format_p_relation(diagnostics.p_skew)
        yield f"the associations are skewed: corrected for that, p {p}, which is not significant"
    if diagnostics.single is not None and abs(diagnostics.single["X"] - diagnostics.single["Y"]) > _MAX_TOKEN_GAP:
        shares = f"{diagnostics.single['X']:.0%} of {x}, {diagnostics.single['Y']:.0%} of {y}"
        yield f"words of a single token: {shares}; tokenization may explain the difference"
    ratio = 1.0 if diagnostics.frequency is None else diagnostics.frequency["X"] / diagnostics.frequency["Y"]
    if diagnostics.frequency is not None and not 1 / _MAX_FREQUENCY_RATIO < ratio < _MAX_FREQUENCY_RATIO:
        medians = f"{diagnostics.frequency['X']:,.0f} for {x}, {diagnostics.frequency['Y']:,.0f} for {y}"
        yield f"words differ in frequency (median {medians}), which may explain the difference"


def _warn_unequal(row: Result) -> Iterator[str]:
    """Warn if X and Y differ in size and spread, because a permutation test then rejects for unequal spreads."""
    x, y = (list(row.associations.get(role, {}).values()) for role in "XY")
    if min(len(x), len(y)) < 2 or max(len(x), len(y)) < _MAX_SIZE_RATIO * min(len(x), len(y)):
        return
    if not np.isfinite([*x, *y]).all():
        return
    spreads = float(np.std(x, ddof=1)), float(np.std(y, ddof=1))
    if max(spreads) >= _MAX_SIZE_RATIO * min(spreads):
        yield (
            f"{len(x)} and {len(y)} words with unequal spreads: p (these words only) is unreliable; p does not "
            "need equal spreads"
        )


_TESTS_SHOWN = 3


def list_lost_words(run: RunData) -> list[str]:
    """Return one line per model and cause for words that were left out."""
    lines = []
    for key, label in model_labels(run).items():
        for cause, tests in _group_by_cause([r for r in run.results if model_key(r) == key]).items():
            words = format_examples(list(dict.fromkeys(word for own in tests.values() for word in own)))
            lines.append(f"{label} was measured without words {cause}: {words} ({_format_tests(list(tests))})")
    return lines


def _group_by_cause(results: Sequence[Result]) -> dict[str, dict[str, list[str]]]:
    """Group the words that were left out by cause and test."""
    causes: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for role, words in result.oov_words.items() if result.status == "measured" else ():
            for word in words:
                causes.setdefault(_find_cause(result, role, word), {}).setdefault(result.test, []).append(word)
    return causes


def _find_cause(result: Result, role: str, word: str) -> str:
    if result.level != "context":
        return "out of its vocabulary"
    too_rare = (result.too_rare or {}).get(role, ())
    return "with too few contexts in the corpus" if word in too_rare else "that it located in too few contexts"


def list_assumptions(run: RunData) -> list[str]:
    """Return one line per test whose file does not state the words of its texts."""
    return [f"{test.name}: {describe_assumption(test.assumed)}" for test in run.manifest.inputs.tests if test.assumed]


def list_without_baseline(run: RunData) -> list[str]:
    """Name the tests without a random baseline because they do not state that their words are English."""
    if not run.manifest.settings.random_sets:
        return []
    missing = dict.fromkeys(
        (r.test, r.language)
        for r in run.results
        if r.cosine_difference is not None
        and r.level != "context"
        and r.protocol not in PAPER_PROTOCOLS
        and r.share_random is None
    )
    by_language: dict[str, list[str]] = {}
    for test, language in missing:
        if (language or "").lower().split("-")[0] != "en":
            by_language.setdefault(language or "", []).append(test)
    return [
        f"no random baseline, because its words are English: {_format_tests(tests)} "
        + (f"(language {language})" if language else '(no language stated; if they are English, add language = "en")')
        for language, tests in by_language.items()
    ]


def _format_tests(tests: Sequence[str]) -> str:
    return ", ".join(tests) if len(tests) <= _TESTS_SHOWN else format_count(len(tests), "test")


def describe_assumption(assumed: Mapping[str, Sequence[str]]) -> str:
    """Describe the words that biassay assumed for the texts of a test, by role."""
    sets = "; ".join(f"{role}: {format_examples(words)}" for role, words in assumed.items())
    return (
        f"the file does not say which words its texts are about; biassay uses the words that vary between them ({sets})"
    )


def format_context_range(result: Result) -> str:
    """Format the smallest, median and largest number of contexts of the measured words."""
    if result.num_contexts is None:
        return ""
    counts = [
        count
        for role, words in result.num_contexts.items()
        for word, count in words.items()
        if word not in result.oov_words[role]
    ]
    return f"{min(counts):,} / {median(counts):,.0f} / {max(counts):,}" if counts else ""


def format_dropped_words(result: Result) -> str:
    """Format the words that were left out, with their numbers of contexts."""
    counts = result.num_contexts or {}
    return "; ".join(
        ", ".join(f"{w} {counts[role][w]}{_unlocated_note(result, role, w)}" if counts else w for w in words)
        for role, words in result.oov_words.items()
        if words
    )


def _unlocated_note(result: Result, role: str, word: str) -> str:
    return " (the model could not locate more)" if result.too_rare and word not in result.too_rare.get(role, ()) else ""


_FAR_ABOVE = 1.0  # robust standard deviations above the median of all pairs within sets, on Fisher's scale
_SYNONYMS = 6.0  # robust standard deviations from which words spelled otherwise may be near-synonyms
_CLOSE = 0.9  # cosine that they have at least
_SAMPLED = 500  # words per set that give the median of all pairs


def find_undeclared_forms(
    vectors: Mapping[str, NDArray[np.floating]],
    words: Mapping[str, Sequence[str]],
    clusters: Mapping[str, Mapping[str, str]],
) -> dict[str, tuple[str, ...]]:
    """Find words that look like forms of one word, or that may be near-synonyms.

    Forms of one word are spelled alike, and their cosine is above the rest; spelling alone would take *bee* and
    *beetle* for them. The cosine of words that may be near-synonyms is very far above the rest, however they are
    spelled: *jail* and *prison*.

    Parameters
    ----------
    vectors : role -> (texts, d)
    words : role -> word of every text
    clusters : role -> word -> declared cluster

    Returns
    -------
    dict
        By role the groups of such words, joined: ``{"X": ("he/him/his",)}``.
    """
    units = {role: unit_rows(mean_rows(unit_rows(vectors[role], "vectors"), of), "words") for role, of in words.items()}
    every = np.concatenate([_sample_pairs(of) for of in units.values()])
    if not every.size:
        return {}
    center = float(np.median(every))
    spread = 1.4826 * float(np.median(np.abs(every - center)))
    synonyms = max(center + _SYNONYMS * spread, float(np.arctanh(_CLOSE)))
    found: dict[str, tuple[str, ...]] = {}
    for role, of in words.items():
        names = list(dict.fromkeys(of))
        labels = [clusters[role].get(name, name) for name in names]
        group = _DisjointSets(len(names))
        alike = [(indices, center + _FAR_ABOVE * spread) for indices in group_by_spelling(names)]
        for indices, limit in [*alike, (list(range(len(names))), synonyms)]:
            for i, j in _close_pairs(units[role], indices, limit):
                if labels[i] != labels[j]:
                    group.join(i, j)
        several = tuple("/".join(names[i] for i in members) for members in group.several())
        if several:
            found[role] = several
    return found


def _close_pairs(units: NDArray[np.float64], indices: list[int], limit: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of indices whose cosine is above the limit."""
    own = units[indices]
    for start, row in enumerate(indices[:-1]):
        above = np.flatnonzero(_fisher(own[start + 1 :] @ own[start]) > limit)
        yield from ((row, indices[start + 1 + step]) for step in above.tolist())


class _DisjointSets:
    """Disjoint sets of indices that can be merged."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def _root(self, index: int) -> int:
        while self._parent[index] != index:
            self._parent[index] = index = self._parent[self._parent[index]]
        return index

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parent[second] = first

    def several(self) -> list[list[int]]:
        """Return the sets of more than one index."""
        members: dict[int, list[int]] = {}
        for index in range(len(self._parent)):
            members.setdefault(self._root(index), []).append(index)
        return [own for own in members.values() if len(own) > 1]


def _sample_pairs(units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines of all pairs of words on Fisher's scale; large sets are thinned evenly to `_SAMPLED` words."""
    if len(units) > _SAMPLED:
        units = units[np.linspace(0, len(units) - 1, _SAMPLED).round().astype(np.intp)]
    return _fisher((units @ units.T)[np.triu_indices(len(units), 1)])


def _fisher(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines on Fisher's scale, where differences near 1 count more."""
    return np.asarray(np.arctanh(np.clip(cosines, -0.999, 0.999)))
