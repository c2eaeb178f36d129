"""Measure the tests, scales and diagnostics of one model, over texts or over contexts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.catalogue import select_tests
from biassay.datasets.linter import group_by_spelling
from biassay.datasets.schema import ROLES, Fingerprint, Test
from biassay.errors import BiassayError, StimulusError, UnknownNameError, UsageError, format_examples
from biassay.grouping import group_pairs
from biassay.models.base import Identity, Span, TextEmbeddings
from biassay.prompts.sentences import (
    SCALE_TEMPLATES,
    StimulusText,
    TestTexts,
    find_shared_templates,
    hash_texts,
    list_forms,
    load_frequent_words,
)
from biassay.results.outcomes import Outcome
from biassay.results.run_data import copy_fields, get_model_fields
from biassay.stats.association import (
    interaction_correlation,
    iter_row_blocks,
    largest_components,
    random_baseline_share,
    unit_rows,
)
from biassay.stats.crossed import crossed_test, effects_without, p_value_without
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.permutation import smallest_p
from biassay.stats.power import POWER, largest_d, smallest_detectable
from biassay.studies.associations.ceat import ContextualAssociation, ceat
from biassay.studies.associations.metrics import ALL, Metric, PairwiseMetric, Score, get_measures, get_metric
from biassay.studies.associations.results import (
    COSINES,
    CROSSED,
    FIXED_WORDS,
    MIN_SD,
    POOLED,
    SENTENCES,
    AssociationRecord,
    Diagnostics,
    MeasureRecord,
    Scale,
    explain_searched,
)
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.weat import (
    Association,
    AssociationOptions,
    Words,
    associate_words,
    average_texts,
    label_words,
    mean_rows,
    pad_words,
)
from biassay.studies.study import Array, Event, Row, derive_seed

if TYPE_CHECKING:
    from biassay.corpus.contexts import TestCoverage

Vectors = NDArray[np.floating]
Numbers = Mapping[str, float]
_SIZES = ("num_targ1", "num_targ2", "num_attr1", "num_attr2")


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measurement of one test on one model.

    Attributes
    ----------
    association : Association, ContextualAssociation or None
        None if the test was skipped or failed; the field ``reason`` has the cause.
    fields : dict of str to object
        Fields of the record that do not depend on the association.
    measures : dict of str to Score
        Scores of the other measures, if requested.
    """

    association: Association | ContextualAssociation | None
    fields: Mapping[str, Any]
    measures: Mapping[str, Score] = field(default_factory=dict)


def _describe_failure(error: BiassayError) -> dict[str, str]:
    """Return the status and the reason: "skipped" for a usage error, otherwise "failed"."""
    return {"status": "skipped" if isinstance(error, UsageError) else "failed", "reason": str(error)}


def check_tests(tests: tuple[Test, ...], settings: AssociationSettings) -> None:
    """Raise StimulusError for tests that the protocol cannot measure."""
    for test in tests:
        sizes = len(test.X.words), len(test.Y.words)
        if settings.protocol == "may2019" and sizes[0] != sizes[1] and not test.has_target_sentences:
            raise StimulusError(
                f"test {test.name!r}: protocol may2019 needs target sets of one size, got {sizes[0]} and {sizes[1]}; "
                "use protocol exact"
            )


def measure_over_texts(
    test: Test,
    texts: TestTexts,
    encoded: Mapping[str, TextEmbeddings],
    settings: AssociationSettings,
    oov_hint: str = "",
    vocabulary: NDArray[np.float32] | None = None,
    skip_reason: str | None = None,
) -> Measurement:
    """Measure one test over texts.

    Parameters
    ----------
    test : Test
    texts : TestTexts
    encoded : dict of str to TextEmbeddings
        Embeddings of the texts, by role.
    settings : AssociationSettings
    oov_hint : str
        What to do about out-of-vocabulary words.
    vocabulary : (n, d) array, optional
        Vectors of random words for the random baseline.
    skip_reason : str, optional
        Why the test is skipped, even if few words are out of vocabulary.
    """
    kept, oov_words, reason = select_usable_texts(test, texts, encoded, settings.max_unknown, oov_hint)
    if settings.protocol == "may2019" and test.has_target_sentences:
        _truncate(kept, np.random.default_rng(derive_seed(settings.seed, test.name, "truncate")))
    chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
    fields: dict[str, Any] = {
        **dict(zip(_SIZES, (len(chosen[role]) for role in ROLES), strict=True)),
        "status": "skipped",
        "reason": reason or skip_reason,
        "level": test.level,
        "num_words": {role: len({text.stimulus for text in chosen[role]}) for role in ROLES},
        "num_cut": {role: sum(encoded[role].truncated_at[i] is not None for i in kept[role]) for role in ROLES},
        "oov_words": oov_words,
        "associations": {},
        "protocol": settings.protocol,
        "alternative": settings.alternative,
    }
    if fields["reason"] is not None:
        return Measurement(None, fields)
    try:
        vectors = {
            role: of.vectors if len(kept[role]) == len(of.vectors) else of.vectors[kept[role]]
            for role, of in ((role, encoded[role]) for role in ROLES)
        }
        association, measured, measures = _associate_texts(test, texts, chosen, vectors, settings, vocabulary)
    except BiassayError as error:
        return Measurement(None, fields | _describe_failure(error))
    return Measurement(association, fields | {"status": "measured"} | measured, measures)


def _associate_texts(
    test: Test,
    texts: TestTexts,
    chosen: dict[str, list[StimulusText]],
    vectors: dict[str, NDArray[np.float32]],
    settings: AssociationSettings,
    vocabulary: NDArray[np.float32] | None,
) -> tuple[Association, dict[str, Any], dict[str, Score]]:
    """Return the association of usable texts, the fields of its record, and the scores of other measures."""
    for role in ROLES:  # the error names the fault
        largest_components(vectors[role], test.concept(role).label, [text.text for text in chosen[role]])
    _check_case(vectors, chosen)
    metric = get_metric(settings.metric)
    how = AssociationOptions(
        settings.protocol,
        settings.alternative,
        words=_label_texts(test, chosen, by_cluster=False),
        clusters=_label_texts(test, chosen, by_cluster=True),
        rng=np.random.default_rng(derive_seed(settings.seed, test.name, "p-value")),
    )
    found = metric.associate(vectors, how)
    shares = find_shared_templates(texts.X, texts.Y)
    if how.words is not None and shares.templates is not None and not settings.is_paper_protocol:
        # Words are compared on the templates that X and Y share; sentence-level numbers use all templates.
        indices = {role: [i for i, text in enumerate(chosen[role]) if shares.includes(text)] for role in "XY"}
        vectors |= {role: vectors[role][own] for role, own in indices.items()}
        chosen = chosen | {role: [chosen[role][i] for i in own] for role, own in indices.items()}
        words, clusters = (_label_texts(test, chosen, by_cluster=by_cluster) for by_cluster in (False, True))
        how = replace(how, words=words, clusters=clusters)
        found = replace(
            metric.associate(vectors, replace(how, p=found.p)),
            **copy_fields(found, "effect_size", "statistic", "p", "sizes"),
        )
    if not test.has_known_words:
        found = replace(found, cosines=None)
    share = _compute_random_share(metric, found, vectors, chosen, vocabulary, settings)
    fields: dict[str, Any] = {
        "associations": _get_word_associations(metric, found, vectors, chosen),
        "shared_templates": shares.share,
        "share_random": share,
        "random_sets": None if share is None else settings.random_sets,
        "leave_one_out": found.leave_one_out,
    }
    if test.has_known_words:
        stimuli = {role: [text.stimulus for text in chosen[role]] for role in ROLES}
        clusters_by_role = {role: test.concept(role).cluster_labels for role in ROLES}
        fields["undeclared"] = find_undeclared_forms(vectors, stimuli, clusters_by_role)
    asked = get_measures() if settings.metric == ALL and how.words is not None else ()
    same_splits = replace(how, rng=np.random.default_rng(derive_seed(settings.seed, test.name)))
    return found, fields, {measure.name: measure.score(vectors, same_splits) for measure in asked}


def _compute_random_share(
    metric: Metric,
    association: Association,
    vectors: Mapping[str, NDArray[np.float32]],
    chosen: Mapping[str, list[StimulusText]],
    vocabulary: NDArray[np.float32] | None,
    settings: AssociationSettings,
) -> float | None:
    """Compute how often random attribute words give an effect as large; None if that is undefined."""
    if vocabulary is None or association.cosines is None or association.effect_size_by_word is None:
        return None
    if not len(vocabulary) or not isinstance(metric, PairwiseMetric):
        return None
    words = [f"{role} {text.stimulus}" for role in "XY" for text in chosen[role]]
    targets = np.concatenate([vectors["X"], vectors["Y"]])
    x, y, *_ = pad_words(association.clusters)
    n_words = association.num_words
    _, (n, _, a, b) = average_texts(association.cosines, n_words, association.clusters)

    def compute_cosines(attributes: NDArray[np.float32]) -> NDArray[np.float64]:
        table = metric.word_matrix(targets, words, attributes)
        return np.concatenate([mean_rows(table[: n_words[0]], x), mean_rows(table[n_words[0] :], y)])

    blocks = iter_row_blocks((len(vocabulary), sum(n_words[:2])))
    return random_baseline_share(
        (compute_cosines(vocabulary[block]) for block in blocks),
        n,
        len(vocabulary),
        (a, b),
        association.effect_size_by_word,
        settings.random_sets,
        settings.seed,
    )


def select_usable_vectors(encoded: TextEmbeddings) -> NDArray[np.float32]:
    """Select the vectors of texts that the model knows and that have a direction."""
    known = np.array([not spans for spans in encoded.unknown], dtype=np.bool_)
    known &= np.isfinite(encoded.vectors).all(axis=1) & encoded.vectors.any(axis=1)
    return encoded.vectors[known]


def select_usable_texts(
    test: Test,
    texts: TestTexts,
    encoded: Mapping[str, TextEmbeddings],
    max_unknown: float,
    oov_hint: str = "",
    command: str = "run",
) -> tuple[dict[str, list[int]], dict[str, tuple[str, ...]], str | None]:
    """Return by role the indices of texts that the model knows, the words left out, and why these are too many.

    Parameters
    ----------
    test : Test
    texts : TestTexts
    encoded : dict of str to TextEmbeddings
        Embeddings of the texts, by role.
    max_unknown : float
        Largest share of out-of-vocabulary words.
    oov_hint : str
        What to do about them.
    command : str
        Command whose option changes the limit.
    """
    kept: dict[str, list[int]] = {}
    oov_words: dict[str, tuple[str, ...]] = {}
    reason: str | None = None
    for role in ROLES:
        asked, of_role = texts.role(role), encoded[role]
        lost = [_find_lost_spans(t, of_role.unknown[i], of_role.truncated_at[i]) for i, t in enumerate(asked)]
        kept[role] = [i for i, spans in enumerate(lost) if not spans]
        oov_words[role] = list_forms(replace(t, spans=spans) for t, spans in zip(asked, lost, strict=True) if spans)
        total, gone = len(asked), len(asked) - len(kept[role])
        is_above = gone > max_unknown * total
        if reason is None and (is_above or (gone and len(kept[role]) < 2)):
            kind = "words" if test.level == "word" else "texts"
            count = f"{gone:,} of {total:,} {kind} of {test.concept(role).label} are out of vocabulary"
            above = (
                f"more than {max_unknown:.0%} (`biassay {command} --max-unknown`)" if is_above else "too few are left"
            )
            reason = f"{count} ({format_examples(oov_words[role])}): {above}{f'; {oov_hint}' if oov_hint else ''}"
    return kept, oov_words, reason


def explain_unknown_language(
    test: Test, count_tokens: Callable[[Sequence[str]], NDArray[np.int64] | None], limit: float
) -> str | None:
    """Explain why a model does not know the language of a test, judged by the number of tokens per word.

    Parameters
    ----------
    test : Test
    count_tokens : callable
        Returns the number of tokens of words, or None if the model cannot count them.
    limit : float
        Largest mean number of tokens per word.

    Returns
    -------
    str or None
        None if the test is in English or states no language, or if its words have few tokens.
    """
    if test.language is None or test.is_english:
        return None
    words = list(dict.fromkeys(word for role in ROLES for word in test.concept(role).words))
    counts = count_tokens(words)
    if counts is None or counts.mean() <= limit:
        return None
    return (
        f"the model does not know the language {test.language}: {counts.mean():.1f} tokens per word, more than "
        f"{limit:g}; raise the limit with --max-tokens"
    )


def _find_lost_spans(text: StimulusText, unknown: tuple[Span, ...], cut: int | None) -> tuple[Span, ...]:
    """Find the spans of test words that are out of vocabulary or beyond the end of the text that the model read."""
    if cut is None and not unknown:
        return ()
    return tuple(
        (start, end)
        for start, end in text.spans
        if (cut is not None and cut < end) or any(a < end and start < b for a, b in unknown)
    )


def _truncate(kept: dict[str, list[int]], rng: np.random.Generator) -> None:
    """Cut the longer target set to the length of the shorter, at random and in order, as the published files were."""
    size = min(len(kept["X"]), len(kept["Y"]))
    for role in "XY":
        if len(kept[role]) > size:
            kept[role] = sorted(rng.choice(kept[role], size=size, replace=False).tolist())


def _check_case(vectors: Mapping[str, NDArray[np.float32]], chosen: Mapping[str, list[StimulusText]]) -> None:
    """Raise UsageError for words that differ only in case and have the same vectors: they are one word."""
    spellings: dict[str, dict[tuple[str, str], list[int]]] = {}
    for role in ROLES:
        for row, text in enumerate(chosen[role]):
            spellings.setdefault(text.stimulus.casefold(), {}).setdefault((role, text.stimulus), []).append(row)
    for words in spellings.values():
        for (one, first), (other, second) in combinations(words, 2):
            rows = vectors[one][words[one, first]], vectors[other][words[other, second]]
            if first != second and rows[0].shape == rows[1].shape and np.array_equal(*rows):
                raise UsageError(
                    f"{first!r} ({one}) and {second!r} ({other}) differ only in case, and the model gives both "
                    "the same vector; remove one of them"
                )


def _label_texts(test: Test, chosen: Mapping[str, list[StimulusText]], *, by_cluster: bool) -> Words | None:
    """Return the word or cluster of every text, or None if words are unknown or the test has no clusters."""
    if not test.has_known_target_words or (by_cluster and not any(test.concept(role).clusters for role in ROLES)):
        return None
    labels = {role: test.concept(role).cluster_labels if by_cluster else {} for role in ROLES}
    x, y, a, b = ([labels[role].get(text.stimulus, text.stimulus) for text in chosen[role]] for role in ROLES)
    return (x, y, a, b) if test.has_known_words else (x, y)


def _get_word_associations(
    metric: Metric,
    association: Association,
    vectors: Mapping[str, NDArray[np.float32]],
    chosen: Mapping[str, list[StimulusText]],
) -> dict[str, dict[str, float]]:
    """Return the association of every word, by role; empty for a metric with one score of four sets."""
    stimuli = {role: [text.stimulus for text in chosen[role]] for role in ROLES}
    names = {role: list(dict.fromkeys(words)) for role, words in stimuli.items()}
    if association.cosines is not None:
        return _associate_by_role(association, association.num_words, names)
    if not association.x.size:
        return {}
    scores = {"X": association.x, "Y": association.y, **metric.attribute_scores(vectors)}
    means = {role: mean_rows(values[:, None], stimuli[role])[:, 0] for role, values in scores.items()}
    return {role: dict(zip(names[role], map(float, own), strict=True)) for role, own in means.items()}


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
        groups = {i: [i] for i in range(len(names))}  # words of a group share a list, so that merges reach all of them
        alike = [(indices, center + _FAR_ABOVE * spread) for indices in group_by_spelling(names)]
        for indices, limit in [*alike, (list(range(len(names))), synonyms)]:
            for i, j in _close_pairs(units[role], indices, limit):
                if labels[i] != labels[j] and groups[i] is not groups[j]:
                    joined = sorted(groups[i] + groups[j])
                    groups |= dict.fromkeys(joined, joined)
        several = ["/".join(names[k] for k in group) for i, group in groups.items() if len(group) > 1 and group[0] == i]
        if several:
            found[role] = tuple(several)
    return found


def _close_pairs(units: NDArray[np.float64], indices: list[int], limit: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of indices whose cosine is above the limit."""
    own = units[indices]
    for start, row in enumerate(indices[:-1]):
        above = np.flatnonzero(_fisher(own[start + 1 :] @ own[start]) > limit)
        yield from ((row, indices[start + 1 + step]) for step in above.tolist())


def _sample_pairs(units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines of all pairs of words on Fisher's scale; large sets are thinned evenly to `_SAMPLED` words."""
    if len(units) > _SAMPLED:
        units = units[np.linspace(0, len(units) - 1, _SAMPLED).round().astype(np.intp)]
    return _fisher((units @ units.T)[np.triu_indices(len(units), 1)])


def _fisher(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines on Fisher's scale, where differences near 1 count more."""
    return np.asarray(np.arctanh(np.clip(cosines, -0.999, 0.999)))


def check_word_tests(tests: tuple[Test, ...]) -> None:
    """Raise StimulusError for tests that are not about words."""
    for test in tests:
        if test.level != "word":
            hint = f"; {test.variant_of!r} is the same with words" if test.variant_of else ""
            raise StimulusError(
                f"test {test.name!r} puts words into sentence templates, which contexts from a corpus replace{hint}"
            )


def check_coverage(
    count: Callable[[str], int], test: Test, settings: AssociationSettings, found: Callable[[str], int] | None = None
) -> TestCoverage:
    """Check which words of a test have enough contexts, and whether these suffice for the test.

    Parameters
    ----------
    count : callable
        Function from a word to its number of usable contexts.
    test : Test
        Test of words.
    settings : AssociationSettings
        Settings with the limits `min_contexts` and `max_unknown`.
    found : callable, optional
        Function from a word to its number of contexts in the corpus. By default all of them are usable.

    Returns
    -------
    TestCoverage
    """
    from biassay.corpus.contexts import coverage  # most runs have no contexts

    (covered,) = coverage(count, [test], settings.min_contexts, settings.max_unknown, found)
    return covered


def measure_over_contexts(
    test: Test,
    vectors: Mapping[str, Vectors],
    settings: AssociationSettings,
    model: str,
    found_contexts: Callable[[str], int] | None = None,
    documents: Mapping[str, NDArray[np.int64]] | None = None,
) -> Measurement:
    """Measure one test over contexts.

    Parameters
    ----------
    test : Test
    vectors : dict of str to (contexts, d) array
        Vectors of the contexts of every word that the model could locate.
    settings : AssociationSettings
    model : str
        Part of the random seed if every model draws its own contexts.
    found_contexts : callable, optional
        Function from a word to its number of contexts in the corpus. By default, those that were located.
    documents : dict of str to (contexts,) array, optional
        Document of every context. By default, every context counts as a document.
    """
    covered = check_coverage(lambda word: len(vectors.get(word, ())), test, settings, found_contexts)
    kept = {role: [word for word in covered.counts[role] if word not in covered.missing[role]] for role in ROLES}
    num_words = {role: len(kept[role]) for role in ROLES}
    fields: dict[str, Any] = {
        **dict(zip(_SIZES, num_words.values(), strict=True)),
        "status": "skipped",
        "reason": covered.reason,
        "level": "context",
        "num_words": num_words,
        "num_cut": dict.fromkeys(ROLES, 0),
        "oov_words": dict(covered.missing),
        "too_rare": dict(covered.too_rare),
        "associations": {},
        "protocol": "ceat",
        "alternative": "two-sided",
    }
    if covered.reason is not None:
        return Measurement(None, fields)
    who = model if settings.mode == "random" else ""
    has_clusters = any(test.concept(role).clusters for role in ROLES)
    x, y, a, b = ([test.concept(role).cluster_labels[word] for word in kept[role]] for role in ROLES)
    try:
        found = ceat(
            *([vectors[word] for word in kept[role]] for role in ROLES),
            n_samples=settings.n_samples,
            documents=None if documents is None else [[documents[word] for word in kept[role]] for role in ROLES],
            rng=np.random.default_rng(derive_seed(settings.seed, test.name, "contexts", who)),
            clusters=(x, y, a, b) if has_clusters else None,
        )
    except BiassayError as error:
        return Measurement(None, fields | _describe_failure(error))
    low, high = found.prediction_interval or (None, None)
    fields |= {
        "status": "measured",
        "associations": _associate_by_role(found, found.sizes, kept),
        "share_significant": float((found.sample_p_values <= settings.alpha_or_default).mean()),
        "n_samples": found.pooled.n,
        "num_contexts": {role: dict(counts) for role, counts in covered.counts.items()},
        "new_contexts_low": low,
        "new_contexts_high": high,
        "fewest_documents": int(found.num_documents.min()),
    }
    return Measurement(found, fields)


def _associate_by_role(
    association: Association | ContextualAssociation,
    sizes: tuple[int, int, int, int],
    words: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, float]]:
    """Compute the association of every word by role, from the cosines of words."""
    assert association.cosines is not None
    n, _, k, _ = sizes
    targets, attributes = associate_words(association.cosines, sizes, association.clusters)
    values = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    return {role: dict(zip(words[role], map(float, values[role]), strict=True)) for role in ROLES}


def make_measure_records(test: Test, identity: Identity, measured: Measurement) -> Iterator[MeasureRecord]:
    """Yield the records of the other measures of one test on one model.

    Parameters
    ----------
    test : Test
    identity : Identity
        The model.
    measured : Measurement
    """
    associations, labels = measured.fields["associations"], {role: test.concept(role).cluster_labels for role in "XY"}
    names = dict.fromkeys(labels[role].get(word, word) for role in "XY" for word in associations.get(role, ()))
    for metric in get_measures() if measured.measures else ():
        score = measured.measures[metric.name]
        yield MeasureRecord(
            **get_model_fields(identity),
            test=test.name,
            measure=metric.name,
            measure_title=metric.title,
            score=score.value,
            score_p_value=None if score.p is None else score.p.value,
            signed=metric.signed,
            words={} if score.words is None else dict(zip(names, score.words.tolist(), strict=False)),
        )


def make_result(
    test: Test,
    identity: Identity,
    measured: Measurement,
    settings: AssociationSettings,
    cosine_sd: float | None = None,
    related: float | None = None,
) -> AssociationRecord:
    """Return the record of one test on one model.

    Parameters
    ----------
    test : Test
    identity : Identity
        The model.
    measured : Measurement
    settings : AssociationSettings
    cosine_sd : float, optional
        Standard deviation of cosines between frequent words on the model.
    related : float, optional
        Correlation with the model that was searched for the words, if this one is its relative.
    """
    association, alpha, unit = measured.association, settings.alpha_or_default, get_metric(settings.metric).unit
    clusters = _find_clusters(test, measured.fields["associations"] or measured.fields.get("leave_one_out") or {})
    fields: dict[str, Any] = {**describe_test(test, identity, alpha), **measured.fields, "clusters": clusters}
    outcomes: dict[str, Outcome] = {}
    if association is not None:
        outcomes, outcome_fields = _measure_outcomes(association, fields, settings, cosine_sd)
        fields |= outcome_fields
    scaled = {
        name: replace(outcome, scale=unit, confidence=1.0 - alpha, limit=outcome.limit if unit == "d" else None)
        for name, outcome in outcomes.items()
    }
    record = AssociationRecord(
        **fields,
        **_choose_primary(scaled, unit, association, is_paper_protocol=settings.is_paper_protocol),
        template=test.template,
        language=test.language,
        metric=settings.metric,
        seed=settings.seed,
        source=test.source.name,
        test_version=test.source.version,
        test_digest=hash_texts(test),
    )
    return _drop_inference(record, related) if is_searched(test, identity) or related is not None else record


def _measure_outcomes(
    association: Association | ContextualAssociation,
    fields: Mapping[str, Any],
    settings: AssociationSettings,
    cosine_sd: float | None,
) -> tuple[dict[str, Outcome], dict[str, Any]]:
    """Return all outcomes of an association, and the fields of the record that belong to them."""
    outcomes: dict[str, Outcome] = {}
    found: dict[str, Any] = {}
    texts = association if isinstance(association, Association) else None
    crossed = measure_crossed(
        association.cosines,
        association.num_words if isinstance(association, Association) else association.sizes,
        settings,
        association.effect_size_by_word,
        cosine_sd=cosine_sd,
        clusters=association.clusters,
    )
    if crossed is not None:
        outcomes[CROSSED], found = crossed
    if (p := association.by_word) is not None:
        n, m = (fields["num_words"][role] - _count_repeated(fields["clusters"], role) for role in "XY")
        opposite, floor = (texts.by_word_opposite, texts.floor) if texts else (None, None)
        outcomes[FIXED_WORDS] = Outcome(
            effect_size=association.effect_size_by_word,
            p_value=p.value,
            log10_p_value=p.log10,
            p_opposite=None if opposite is None else opposite.value,
            p_floor=max(smallest_p(n, m, fields["alternative"]), floor or 0.0),
            test=FIXED_WORDS,
            n={"targets": n + m},
        )
        found["fixed_words_route"] = p.route
    numbers = copy_fields(association, "effect_size", "p_value", "log10_p_value")
    if isinstance(association, ContextualAssociation):
        n_samples, error = association.pooled.n, association.standard_error
        outcomes[POOLED] = Outcome(**numbers, standard_error=error, test=POOLED, n={"samples": n_samples})
        return outcomes, found | {"statistic": association.pooled.z}
    numbers = numbers if association.p is not None else numbers | dict.fromkeys(("p_value", "log10_p_value"))
    n_texts = fields["num_targ1"] + fields["num_targ2"]
    outcomes[SENTENCES] = Outcome(**numbers, test=SENTENCES, n={"texts": n_texts})
    route = None if association.p is None else association.p.route
    return outcomes, found | {"sentences_route": route, "statistic": association.statistic}


def measure_crossed(
    cosines: NDArray[np.floating] | None,
    num_words: tuple[int, int, int, int],
    settings: AssociationSettings,
    effect_size: float | None,
    *,
    cosine_sd: float | None = None,
    clusters: Words | None = None,
) -> tuple[Outcome, dict[str, Any]] | None:
    """Run the crossed test on the cosines of words, with every cluster one observation.

    Parameters
    ----------
    cosines : (targets, attributes) array or None
        None if the words of the texts are not known; then there is no crossed test.
    num_words : (int, int, int, int)
        Words of X, Y, A and B.
    settings : AssociationSettings
    effect_size : float or None
        Effect size over words.
    cosine_sd : float, optional
        Standard deviation of cosines between frequent words on the model.
    clusters : two or four sequences of str, optional
        Cluster of every word.
    """
    if cosines is None:
        return None
    table, sizes = average_texts(cosines, num_words, clusters)
    crossed = crossed_test(table, sizes[0], sizes[2], confidence=1.0 - settings.alpha_or_default)
    interval = crossed_effect(table, sizes[0], sizes[2], test=crossed)
    targets, attributes, residual = crossed.variance_shares or (None, None, None)
    low, high = crossed.interval or (None, None)
    margin, parts = settings.equivalence, crossed.components
    detectable = None
    if parts is not None and settings.alpha_or_default < POWER:  # beyond, chance alone finds as much
        detectable = smallest_detectable(parts, crossed.sizes, settings.alpha_or_default)
    scale = cosine_sd if cosine_sd is not None and cosine_sd >= MIN_SD else None
    outcome = Outcome(
        effect_size=effect_size,
        standard_error=interval.standard_error,
        ci_low=interval.low,
        ci_high=interval.high,
        confidence=1.0 - settings.alpha_or_default,
        limit=largest_d(sizes[0], sizes[1]),
        p_value=crossed.p_value,
        test=CROSSED,
        df=None if np.isnan(crossed.df) else crossed.df,
        n={"targets": sum(sizes[:2]), "attributes": sum(sizes[2:])},
        power_80=detectable[1] if detectable else None,
        reason="too few words" if crossed.p_value is None else None,
        contributions=COSINES,
    )
    fields = {
        "cosine_difference": crossed.D,
        "cosine_standard_error": None if np.isnan(crossed.V) else float(np.sqrt(crossed.V)),
        "cosine_ci_low": low,
        "cosine_ci_high": high,
        "cosine_sd": cosine_sd,
        "calibrated_difference": None if scale is None else crossed.D / scale,
        "calibrated_ci_low": None if scale is None or low is None else low / scale,
        "calibrated_ci_high": None if scale is None or high is None else high / scale,
        "share_targets": targets,
        "share_attributes": attributes,
        "share_residual": residual,
        "var_targets": parts and parts.targets,
        "var_attributes": parts and parts.attributes,
        "var_residual": parts and parts.residual,
        "margin": margin,
        "p_equivalence": None if margin is None else crossed.p_equivalence(margin),
    }
    return outcome, fields


def _choose_primary(
    outcomes: Mapping[str, Outcome],
    unit: str,
    association: Association | ContextualAssociation | None,
    *,
    is_paper_protocol: bool,
) -> dict[str, Any]:
    """Choose the primary outcome: over words where they are known, over texts under the papers' protocols.

    Texts whose words are unknown are described and not tested, because texts of one word are not independent.
    """
    order = (SENTENCES,) if is_paper_protocol else (CROSSED, FIXED_WORDS, SENTENCES)
    primary = next((name for name in order if name in outcomes), None)
    if primary is None:
        return {"outcome": Outcome(scale=unit)}
    others = {name: outcome for name, outcome in outcomes.items() if name != primary}
    if primary == SENTENCES and not is_paper_protocol:
        has_test = isinstance(association, Association) and association.p is not None
        unknown = "the words of the texts are unknown, and texts of one word are not independent"
        doubt = unknown if has_test else "the measure has no permutation test"
        return {"outcome": outcomes[primary], "alternatives": others, "claim": "descriptive", "doubt": doubt}
    return {"outcome": outcomes[primary], "alternatives": others}


def is_searched(test: Test, identity: Identity) -> bool:
    """Return whether the words of the test were found by searching this model."""
    return identity.weights in test.source.searched_models


def _drop_inference(record: AssociationRecord, correlation: float | None) -> AssociationRecord:
    """Return the record without p-values and intervals: its words were chosen because they show the effect."""
    without: dict[str, Any] = dict.fromkeys(_INFERENCE_FIELDS)
    return replace(
        record,
        **without,
        outcome=_describe(record.outcome),
        alternatives={name: _describe(outcome) for name, outcome in record.alternatives.items()},
        claim="descriptive",
        doubt=explain_searched(correlation),
        searched=True,
        searched_correlation=correlation,
    )


def _describe(outcome: Outcome) -> Outcome:
    """Return an outcome with its effect size only."""
    kept = ("effect_size", "confidence", "scale", "null", "limit", "test", "n")
    return Outcome(**copy_fields(outcome, *kept))


_INFERENCE_FIELDS = (
    *("sentences_route", "fixed_words_route", "cosine_ci_low", "cosine_ci_high", "p_equivalence", "margin"),
    "cosine_standard_error",
    *("share_random", "random_sets", "calibrated_ci_low", "calibrated_ci_high"),
)


def _find_clusters(test: Test, words: Mapping[str, Collection[str]]) -> dict[str, dict[str, str]]:
    """Return by role the cluster of every measured word that shares it with another measured word."""
    clusters = {}
    for role, measured in words.items():
        labels = {word: test.concept(role).cluster_labels.get(word, word) for word in measured}
        counts = Counter(labels.values())
        shared = {word: label for word, label in labels.items() if counts[label] > 1}
        if shared:
            clusters[role] = shared
    return clusters


def _count_repeated(clusters: Mapping[str, Mapping[str, str]], role: str) -> int:
    """Return by how much the number of clusters is below the number of words."""
    labels = clusters.get(role, {})
    return len(labels) - len(set(labels.values()))


def describe_test(test: Test, identity: Identity, alpha: float) -> dict[str, Any]:
    """Return the fields of a record that describe the model, the test and the level of significance.

    Parameters
    ----------
    test : Test
    identity : Identity
        The model.
    alpha : float
        Level of significance.
    """
    return {
        **get_model_fields(identity),
        "test": test.name,
        "title": test.title,
        "about": test.about,
        "topic": test.topic,
        "question": test.variant_of or "",
        "direction": None if test.direction is None else 1 if test.direction == "positive" else -1,
        "targ1": test.X.label,
        "targ2": test.Y.label,
        "attr1": test.A.label,
        "attr2": test.B.label,
        "alpha": alpha,
    }


MIN_RELATED_CORRELATION = 0.7
"""Correlation with the cosines of a searched model from which a model counts as its relative.

Measured over names and attributes of seven tests: GloVe, USE and MiniLM reach 0.55 at most with each other, MiniLM with
10% noise on its weights 0.89 at least, with 20% noise 0.65 to 0.90.
"""
_FEWEST = 4  # words per side that a correlation needs


def fingerprint_words(tests: Iterable[Test]) -> list[str]:
    """Return the words whose vectors are needed to recognize relatives of searched models."""
    return [word for fingerprint in _iter_fingerprints(tests) for word in fingerprint.words]


def find_related_correlations(tests: Iterable[Test], model: ModelOutputs) -> dict[str, float]:
    """Return, by test, how closely a model agrees with the one that was searched, if it counts as its relative."""
    own = list(tests)
    correlations = {fingerprint: _correlation(fingerprint, model) for fingerprint in _iter_fingerprints(own)}
    found: dict[str, float] = {}
    for test in own:
        largest = max((correlations[fingerprint] for fingerprint in test.source.fingerprints), default=0.0)
        if largest >= MIN_RELATED_CORRELATION:
            found[test.name] = largest
    return found


def _iter_fingerprints(tests: Iterable[Test]) -> Iterator[Fingerprint]:
    return iter(dict.fromkeys(fingerprint for test in tests for fingerprint in test.source.fingerprints))


def _correlation(fingerprint: Fingerprint, model: ModelOutputs) -> float:
    """Correlate the cosines of a searched model with those of another, over the words that it knows; 0 if too few."""
    sides = [model.texts(words) for words in (fingerprint.targets, fingerprint.attributes)]
    known = [_find_known(encoded) for encoded in sides]
    if min(map(np.count_nonzero, known)) < _FEWEST:
        return 0.0
    targets, attributes = (
        unit_rows(encoded.vectors[there], "fingerprint") for encoded, there in zip(sides, known, strict=True)
    )
    searched = np.array(fingerprint.cosines)[np.ix_(*known)]
    return interaction_correlation(searched, targets @ attributes.T)


def _find_known(encoded: TextEmbeddings) -> NDArray[np.bool_]:
    """Return which of some words have a vector with a direction."""
    known = [not unknown and cut is None for unknown, cut in zip(encoded.unknown, encoded.truncated_at, strict=True)]
    return np.asarray(known, dtype=np.bool_) & np.asarray(encoded.vectors.any(axis=1))


_WANTED_WORDS = 200
FEWEST_WORDS = 50
"""Minimum number of words for a cosine SD."""
_TESTS = "tests"


def has_scale(metric: str) -> bool:
    """Return whether a metric declares that its similarities are divided by their standard deviation.

    Without the package of a metric, its scale is unknown.
    """
    try:
        chosen = get_metric(metric)
    except UnknownNameError:
        return False
    return isinstance(chosen, PairwiseMetric) and getattr(chosen, "scale", None) == "sd"


def list_scale_texts(tests: Sequence[Test], metric: str, capabilities: Capabilities) -> list[str]:
    """Return the texts whose vectors give the scales that the tests need.

    Parameters
    ----------
    tests : sequence of Test
    metric : str
        Name of the metric, or "all".
    capabilities : Capabilities
        What the model can return.
    """
    lists = _list_scale_words(tests, metric, capabilities).items()
    return [text for form, words in lists for word in words for text, _ in _make_scale_texts(form, word)]


def measure_scales(tests: Sequence[Test], metric: str, model: ModelOutputs) -> Iterator[Event]:
    """Yield a row and an array for each form of text of the tests.

    The words never depend on the chosen tests. Word tests use frequent words by themselves. Sentence tests use them in
    the two templates that most classes of words share, averaged per word.

    Parameters
    ----------
    tests : sequence of Test
    metric : str
        Name of the metric.
    model : ModelOutputs
    """
    pairwise = get_metric(metric)
    for form, words in _list_scale_words(tests, metric, model.capabilities).items():
        assert isinstance(pairwise, PairwiseMetric)
        asked = [(word, text, span) for word in words for text, span in _make_scale_texts(form, word)]
        encoded = model.restrict([text for _, text, _ in asked]).texts([text for _, text, _ in asked])
        usable = [_is_usable(encoded, i, span) for i, (_, _, span) in enumerate(asked)]
        lost = {word for (word, _, _), known in zip(asked, usable, strict=True) if not known}
        kept = [i for i, (word, _, _) in enumerate(asked) if word not in lost]
        if kept:
            owners, vectors = [asked[i][0] for i in kept], encoded.vectors[kept]
            table = mean_rows(pairwise.word_matrix(vectors, owners, vectors).T, owners)
            yield from _make_scale_events(form, table, tuple(dict.fromkeys(owners)), model.identity)


def measure_context_scale(
    vectors: Mapping[str, NDArray[np.floating]], count: int, identity: Identity
) -> Iterator[Event]:
    """Yield the row and the array of the scale of words in contexts.

    Parameters
    ----------
    vectors : dict of str to (contexts, d) array
        Vectors of the contexts of every word.
    count : int
        Number of contexts to average per word; words with fewer are left out.
    identity : Identity
        Identity of the model.

    Yields
    ------
    Event
    """
    means = {word: unit_rows(rows[:count], word).mean(axis=0) for word, rows in vectors.items() if len(rows) >= count}
    if means:
        table = np.stack(list(means.values()))
        yield from _make_scale_events("context", table @ table.T, tuple(means), identity)


def model_sd(scales: Mapping[str, Scale], level: str) -> float | None:
    """Return the standard deviation that calibrates the tests of a level, from a model's rows by form."""
    form = choose_form({form: len(row.words) for form, row in scales.items()}, level)
    return None if form is None else scales[form].cosine_sd


@cache
def _test_words() -> tuple[str, ...]:
    tests = [test for test in select_tests() if test.level == "word"]
    return tuple(dict.fromkeys(word for test in tests for role in ROLES for word in test.concept(role).words))


def _list_scale_words(tests: Sequence[Test], metric: str, capabilities: Capabilities) -> dict[str, tuple[str, ...]]:
    """List the words of each form. A model with a vocabulary may lack frequent words, so it gets a second list."""
    if not has_scale(metric):
        return {}
    levels = dict.fromkeys(test.level for test in tests if test.has_known_words)
    lists: dict[str, tuple[str, ...]] = {level: load_frequent_words() for level in levels}
    if capabilities.has_vocabulary:
        lists |= {f"{level} {_TESTS}": _test_words() for level in levels}
    return lists


def _make_scale_texts(form: str, word: str) -> list[tuple[str, tuple[int, int]]]:
    """Make the texts of a word, with its span in each."""
    templates = SCALE_TEMPLATES if form.startswith("sentence") else ("{}",)
    starts = [template.index("{}") for template in templates]
    return [(t.format(word), (start, start + len(word))) for t, start in zip(templates, starts, strict=True)]


def _is_usable(encoded: TextEmbeddings, row: int, span: tuple[int, int]) -> bool:
    vector, cut = encoded.vectors[row], encoded.truncated_at[row]
    if any(start < span[1] and span[0] < end for start, end in encoded.unknown[row]) or (
        cut is not None and cut < span[1]
    ):
        return False
    return bool(np.isfinite(vector).all() and vector.any())


def _make_scale_events(
    form: str, table: NDArray[np.float64], words: tuple[str, ...], identity: Identity
) -> Iterator[Event]:
    if len(words) < 2:
        return
    values = table[np.triu_indices(len(words), 1)].astype(np.float32)
    yield Row(
        "scales",
        Scale(identity.name, identity.options, identity.revision, form, words, float(np.std(values, dtype=np.float64))),
    )
    yield Array(f"scales/{form}", values)


def choose_form(numbers: Mapping[str, int], level: str) -> str | None:
    """Choose frequent words if there are enough, else words of the shipped tests, else the few frequent ones."""
    if numbers.get(level, 0) >= _WANTED_WORDS:
        return level
    return next((form for form in (f"{level} {_TESTS}", level) if numbers.get(form, 0) >= FEWEST_WORDS), None)


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
        table, (n, _, k, _) = average_texts(cosines, (x, y, a, b), label_words(words, row.clusters))
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
    joined = group_pairs((clusters.get(word, word), word) for word in words)
    return ["/".join(cluster) for cluster in joined.values()]
