"""Warnings about the words of a test, out-of-vocabulary words and context counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import ROLES, Test
from biassay.reporting.formats import format_concept, format_count, format_decimal, format_p
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.results.views import model_key, model_labels
from biassay.stats.crossed import crossed_test, effects_without, p_value_without
from biassay.studies.associations.results import CROSSED, SENTENCES, AssociationRecord, Diagnostics
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.weat import average_clusters, label_words

__all__ = [
    "HALF",
    "ContextCounts",
    "count_contexts",
    "describe_assumption",
    "diagnose",
    "format_context_range",
    "list_assumptions",
    "list_lost_words",
    "list_warnings",
    "list_without_baseline",
]


HALF = 0.5
"""Of their texts: where X and Y have less in common, grammar cannot be told from meaning."""
_APART = 0.4  # between the shares of single tokens of X and Y
_TIMES = 5.0  # between the median frequencies of X and Y
_TWICE = 2.0  # alpha: a p-value just below it easily crosses it
_UNEQUAL = 2.0  # between sizes and between spreads of X and Y
Numbers = Mapping[str, float]


def diagnose(
    test: Test,
    row: AssociationRecord,
    cosines: NDArray[np.floating] | None,
    tokens: Numbers | None,
    frequency: Numbers | None,
) -> Diagnostics:
    """``tokens`` and ``frequency`` (rank, or number of contexts) are those of words; None: not known."""
    words = {role: list(row.associations.get(role, {})) or list(test.concept(role).words) for role in ROLES}
    counts = None if tokens is None else {role: [tokens[w] for w in own if w in tokens] for role, own in words.items()}
    counts = counts if counts is not None and all(counts.values()) else None
    driver, d_without, p = _find_driver(row, words, cosines)
    crossed = None
    if cosines is not None:
        x, y, a, b = (len(words[role]) for role in ROLES)
        table, (n, _, k, _) = average_clusters(cosines, (x, y, a, b), label_words(words, row.clusters))
        crossed = crossed_test(table, n, k)
    return Diagnostics(
        model=row.model,
        options=row.options,
        test=row.test,
        tokens=None if counts is None else {role: float(np.mean(own)) for role, own in counts.items()},
        single=None if counts is None else {role: float(np.mean(np.equal(own, 1))) for role, own in counts.items()},
        frequency=None if frequency is None else _median_frequencies(words, frequency),
        driver=driver,
        d_without=d_without,
        p_without=p,
        p_skew=None if crossed is None else crossed.p_skew,
        model_revision=row.model_revision,
    )


def _median_frequencies(words: Mapping[str, Sequence[str]], frequency: Numbers) -> dict[str, float] | None:
    known = {
        role: [frequency[w] for w in own if math.isfinite(frequency.get(w, math.nan))] for role, own in words.items()
    }
    return {role: float(median(own)) for role, own in known.items()} if all(known.values()) else None


def _find_driver(
    row: AssociationRecord, words: Mapping[str, Sequence[str]], cosines: NDArray[np.floating] | None
) -> tuple[str | None, float | None, float | None]:
    """Return the word or cluster without which least of the effect is left, with the d and the p that are left."""
    if cosines is None or row.word_effect is None:
        return None, None, None
    sizes = len(words["X"]), len(words["Y"]), len(words["A"]), len(words["B"])
    table, (n, _, k, _) = average_clusters(cosines, sizes, label_words(words, row.clusters))
    effects = effects_without(table, n, k)
    towards = effects * math.copysign(1.0, row.word_effect)
    if np.isnan(towards).all():
        return None, None, None
    place = int(np.nanargmin(towards))
    names = [name for role in ROLES for name in _name_clusters(words[role], row.clusters.get(role, {}))]
    return names[place], float(effects[place]), p_value_without(table, n, k, place)


def _name_clusters(words: Sequence[str], clusters: Mapping[str, str]) -> list[str]:
    """Name the clusters of a word set by their words: he/him/his."""
    joined: dict[str, list[str]] = {}
    for word in words:
        joined.setdefault(clusters.get(word, word), []).append(word)
    return ["/".join(cluster) for cluster in joined.values()]


def list_warnings(row: Result, found: Diagnostics | None) -> Iterator[str]:
    """Only what changes the reading: of a result that claims nothing little can be taken away."""
    x, y = format_concept(row.targ1), format_concept(row.targ2)
    if row.shared_templates is not None and row.shared_templates < HALF:
        yield (
            f"{x} and {y} stand in different sentences ({row.shared_templates:.0%} in common): a difference of grammar "
            "cannot be told from one of meaning"
        )
    if row.undeclared and row.outcome.test != SENTENCES:
        words = ", ".join(group for groups in row.undeclared.values() for group in groups)
        yield f"{words} look like forms of one word and count as several: declare them as a cluster (see tests.md)"
    if row.evidence not in ("significant", "uncorrected"):
        return
    if found is not None and row.outcome.test == CROSSED:
        yield from _list_word_warnings(row, found, x, y)
    yield from _warn_unequal(row)


def _list_word_warnings(row: Result, found: Diagnostics, x: str, y: str) -> Iterator[str]:
    if found.p_without is not None and found.p_without > _TWICE * row.alpha:
        left = f"d is {format_decimal(found.d_without)}, p {format_p(found.p_without)}"
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


def _warn_unequal(row: Result) -> Iterator[str]:
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


_TESTS_SHOWN = 3
_WORDS_SHOWN = 8


def list_lost_words(run: RunData) -> list[str]:
    """A line for every model that was measured without some words, and every cause."""
    return [
        f"{label} was measured without words {cause}: {_format_by_test(tests)}"
        for key, label in model_labels(run).items()
        for cause, tests in _group_by_cause([r for r in run.results if model_key(r) == key]).items()
    ]


def _group_by_cause(results: Sequence[Result]) -> dict[str, dict[str, list[str]]]:
    """The words lost, by cause and test."""
    found: dict[str, dict[str, list[str]]] = {}
    for r in results:
        for role, words in r.lost.items() if r.status == "measured" else ():
            for word in words:
                found.setdefault(_find_cause(r, role, word), {}).setdefault(r.test, []).append(word)
    return found


def _find_cause(result: Result, role: str, word: str) -> str:
    if result.level != "context":
        return "it does not know"
    too_rare = (result.too_rare or {}).get(role, ())
    return "with too few contexts in the corpus" if word in too_rare else "it placed in too few contexts"


def _format_by_test(tests: Mapping[str, Sequence[str]]) -> str:
    words = _format_words(list(dict.fromkeys(word for own in tests.values() for word in own)))
    return f"{words} ({_format_tests(list(tests))})"


def list_assumptions(run: RunData) -> list[str]:
    """A line for every test whose file does not say what its texts are about."""
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
    found: dict[str, list[str]] = {}
    for test, language in missing:
        if (language or "").lower().split("-")[0] != "en":
            found.setdefault(language or "", []).append(test)
    return [
        f"no random baseline, because its words are English: {_format_tests(tests)} "
        + (f"(language {language})" if language else '(no language stated; if they are English, add language = "en")')
        for language, tests in found.items()
    ]


def _format_tests(tests: Sequence[str]) -> str:
    return ", ".join(tests) if len(tests) <= _TESTS_SHOWN else format_count(len(tests), "test")


def describe_assumption(assumed: Mapping[str, Sequence[str]]) -> str:
    """What the texts of a test were taken to be about, by role."""
    sets = "; ".join(f"{role}: {_format_words(words)}" for role, words in assumed.items())
    return f"the file does not say which words its texts are about; what varies between them is taken ({sets})"


def _format_words(words: Sequence[str]) -> str:
    more = f" and {len(words) - _WORDS_SHOWN} more" if len(words) > _WORDS_SHOWN else ""
    return ", ".join(words[:_WORDS_SHOWN]) + more


@dataclass(frozen=True)
class ContextCounts:
    """Contexts of a test on a model: words kept of all words, the counts, and the words lost."""

    test: str
    model: str
    kept: int
    words: int
    range: str
    lost: str


def format_context_range(result: Result) -> str:
    """Fewest, median and most contexts of the words that were measured."""
    if result.num_contexts is None:
        return ""
    counts = [
        count
        for role, words in result.num_contexts.items()
        for word, count in words.items()
        if word not in result.lost[role]
    ]
    return f"{min(counts):,} / {median(counts):,.0f} / {max(counts):,}" if counts else ""


def count_contexts(run: RunData, labels: Mapping[tuple[str, str, str | None], str]) -> list[ContextCounts]:
    """A row for every test and model."""
    rows = []
    for r in run.results:
        counts = r.num_contexts or {}
        lost = "; ".join(
            ", ".join(f"{w} {counts[role][w]}{_unlocated_note(r, role, w)}" if counts else w for w in words)
            for role, words in r.lost.items()
            if words
        )
        kept = sum(r.num_words.values())
        total = kept + sum(map(len, r.lost.values()))
        label = labels[r.model, r.options, r.model_revision]
        rows.append(ContextCounts(r.test, label, kept, total, format_context_range(r), lost))
    return rows


def _unlocated_note(result: Result, role: str, word: str) -> str:
    return " (the model could not place more)" if result.too_rare and word not in result.too_rare.get(role, ()) else ""
