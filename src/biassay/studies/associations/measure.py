"""Measure one association test on one model, over texts or over contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.contexts import TestCoverage, coverage
from biassay.datasets.schema import ROLES, Test
from biassay.errors import BiassayError, StimulusError, UsageError, format_examples
from biassay.models.base import Identity, Span, TextEmbeddings
from biassay.prompts.sentences import StimulusText, TestTexts, find_shared_templates, hash_texts, list_forms
from biassay.results.outcomes import Outcome
from biassay.results.run_data import copy_fields, get_model_fields
from biassay.stats.association import largest_components, random_baseline_share
from biassay.stats.cosine_tables import iter_row_blocks
from biassay.stats.permutation import smallest_p
from biassay.studies.associations.ceat import ContextualAssociation, ceat
from biassay.studies.associations.contributions import measure_crossed
from biassay.studies.associations.diagnostics import find_undeclared_forms
from biassay.studies.associations.metrics import ALL, Metric, PairwiseMetric, Score, get_measures, get_metric
from biassay.studies.associations.results import (
    CROSSED,
    FIXED_WORDS,
    POOLED,
    SENTENCES,
    AssociationRecord,
    MeasureRecord,
    explain_searched,
)
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.weat import (
    Association,
    AssociationOptions,
    Words,
    associate_words,
    combine_levels,
    mean_rows,
    pad_words,
)
from biassay.studies.study import derive_seed


@dataclass(frozen=True, eq=False)
class Measurement:
    """Measurement of one test on one model.

    Attributes
    ----------
    association : Association or None
        None if the test was skipped or failed; then ``reason`` says why.
    status : {"measured", "skipped", "failed"}
        Skipped: too many words are out of vocabulary. Failed: the numbers leave the statistic undefined.
    num_texts, num_words, num_cut : role -> int
        Texts that were measured, words they were made from, and texts the model did not read to the end.
    oov_words : role -> words
        Out-of-vocabulary words, in the form in which they appear in a text.
    associations : role -> word -> float
        For targets the mean association with A rather than B; for attributes the mean cosine with X rather than Y.
    shared_templates : float or None
        Share of texts that X and Y have in common. Words are compared on the templates that they share.
    share_random : float or None
        Share of random attribute sets with an effect at least as large.
    undeclared : role -> words
        Words that look like forms of one word or near-synonyms and are not declared as a cluster.
    measures : measure -> Score
        Scores of the other measures, if they were asked for.
    """

    association: Association | None
    status: Literal["measured", "skipped", "failed"]
    reason: str | None
    num_texts: Mapping[str, int]
    num_words: Mapping[str, int]
    num_cut: Mapping[str, int]
    oov_words: Mapping[str, tuple[str, ...]]
    associations: Mapping[str, Mapping[str, float]]
    shared_templates: float | None = None
    share_random: float | None = None
    undeclared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    measures: Mapping[str, Score] = field(default_factory=dict)


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
    reason = reason or skip_reason
    if settings.protocol == "may2019" and test.has_target_sentences:
        _truncate(kept, np.random.default_rng(derive_seed(settings.seed, test.name, "truncate")))
    chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
    counts: dict[str, Any] = {
        "num_texts": {role: len(chosen[role]) for role in ROLES},
        "num_words": {role: len({text.stimulus for text in chosen[role]}) for role in ROLES},
        "num_cut": {role: sum(encoded[role].truncated_at[i] is not None for i in kept[role]) for role in ROLES},
    }
    if reason is not None:
        return Measurement(None, "skipped", reason, **counts, oov_words=oov_words, associations={})
    shares = find_shared_templates(texts.X, texts.Y)
    try:
        vectors = {
            role: of.vectors if len(kept[role]) == len(of.vectors) else of.vectors[kept[role]]
            for role, of in ((role, encoded[role]) for role in ROLES)
        }
        for role in ROLES:
            largest_components(
                vectors[role], test.concept(role).label, [t.text for t in chosen[role]]
            )  # the error names the fault
        _check_case(vectors, chosen)
        metric = get_metric(settings.metric)
        rng = np.random.default_rng(derive_seed(settings.seed, test.name, "p-value"))
        how = AssociationOptions(
            settings.protocol,
            settings.alternative,
            words=_get_text_words(test, chosen),
            clusters=_get_text_clusters(test, chosen),
            rng=rng,
        )
        found = metric.associate(vectors, how)
        if how.words is not None and shares.templates is not None and not settings.is_paper_protocol:
            indices = {role: [i for i, text in enumerate(chosen[role]) if shares.includes(text)] for role in "XY"}
            vectors |= {role: vectors[role][own] for role, own in indices.items()}
            chosen |= {role: [chosen[role][i] for i in own] for role, own in indices.items()}
            how = replace(how, words=_get_text_words(test, chosen), clusters=_get_text_clusters(test, chosen))
            found = combine_levels(found, metric.associate(vectors, replace(how, p=found.p)))
        if not test.has_known_words:
            found = replace(found, cosines=None)
        associations = _get_word_associations(metric, found, vectors, chosen)
        rare = _compute_random_share(metric, found, vectors, chosen, vocabulary, settings)
        undeclared = {}
        if test.has_known_words:
            stimuli = {role: [text.stimulus for text in chosen[role]] for role in ROLES}
            clusters = {role: test.concept(role).cluster_labels for role in ROLES}
            undeclared = find_undeclared_forms(vectors, stimuli, clusters)
        same_splits = replace(how, rng=np.random.default_rng(derive_seed(settings.seed, test.name)))
        measures = {
            measure.name: measure.score(vectors, same_splits)
            for measure in (get_measures() if settings.metric == ALL and how.words is not None else ())
        }
    except UsageError as error:
        return Measurement(None, "skipped", str(error), **counts, oov_words=oov_words, associations={})
    except BiassayError as error:
        return Measurement(None, "failed", str(error), **counts, oov_words=oov_words, associations={})
    return Measurement(
        found, "measured", None, **counts, oov_words=oov_words, associations=associations,
        shared_templates=shares.share, share_random=rare, undeclared=undeclared,
        measures=measures,
    )  # fmt: skip


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
    n, x_y_a_b = association.num_words[0], pad_words(association.clusters)

    def compute_cosines(attributes: NDArray[np.float32]) -> NDArray[np.float64]:
        table = metric.word_matrix(targets, words, attributes)
        parts = zip((table[:n], table[n:]), x_y_a_b[:2], strict=True)
        return np.concatenate([mean_rows(part, labels) for part, labels in parts])

    a, b = (
        count if labels is None else len(set(labels))
        for count, labels in zip(association.num_words[2:], x_y_a_b[2:], strict=True)
    )
    return random_baseline_share(
        (
            compute_cosines(vocabulary[block])
            for block in iter_row_blocks((len(vocabulary), sum(association.num_words[:2])))
        ),
        n if x_y_a_b[0] is None else len(set(x_y_a_b[0])),
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


def _get_text_words(test: Test, chosen: Mapping[str, list[StimulusText]]) -> Words | None:
    if not test.has_known_target_words:
        return None
    x, y, a, b = ([text.stimulus for text in chosen[role]] for role in ROLES)
    return (x, y, a, b) if test.has_known_words else (x, y)


def _get_text_clusters(test: Test, chosen: Mapping[str, list[StimulusText]]) -> Words | None:
    """Return the cluster of every text, in the form of the words; None if no cluster has several words."""
    if not test.has_known_target_words or not any(test.concept(role).clusters for role in ROLES):
        return None
    labels = {role: test.concept(role).cluster_labels for role in ROLES}
    x, y, a, b = ([labels[role].get(text.stimulus, text.stimulus) for text in chosen[role]] for role in ROLES)
    return (x, y, a, b) if test.has_known_words else (x, y)


def _get_word_associations(
    metric: Metric,
    association: Association,
    vectors: Mapping[str, NDArray[np.float32]],
    chosen: Mapping[str, list[StimulusText]],
) -> dict[str, dict[str, float]]:
    """Return the association of every word, by role; empty for a metric with one score of four sets."""
    names = {role: list(dict.fromkeys(text.stimulus for text in chosen[role])) for role in ROLES}
    if association.cosines is not None:
        n, _, k, _ = association.num_words
        targets, attributes = associate_words(association.cosines, association.num_words, association.clusters)
        means = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    else:
        scores = (
            {"X": association.x, "Y": association.y, **metric.attribute_scores(vectors)} if association.x.size else {}
        )
        words = {role: [text.stimulus for text in chosen[role]] for role in scores}
        means = {role: mean_rows(scores[role][:, None], words[role])[:, 0] for role in scores}
    return {role: dict(zip(names[role], map(float, own), strict=True)) for role, own in means.items()}


Vectors = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ContextMeasurement:
    """Measurement of one test over contexts on one model.

    Attributes
    ----------
    association : ContextualAssociation or None
        None if the test was skipped or failed, for the `reason`.
    status : {"measured", "skipped", "failed"}
    oov_words, too_rare : dict of str to tuple of str
        Words with too few contexts, by role, and those of them that are too rare in the corpus. The model could not
        locate the others.
    num_contexts, associations : dict of str to dict
        Contexts and associations of every word, by role.
    """

    association: ContextualAssociation | None
    status: Literal["measured", "skipped", "failed"]
    reason: str | None
    oov_words: Mapping[str, tuple[str, ...]]
    too_rare: Mapping[str, tuple[str, ...]]
    num_contexts: Mapping[str, Mapping[str, int]]
    associations: Mapping[str, Mapping[str, float]]

    def num_words(self, role: str) -> int:
        """Return the number of measured words."""
        return len(self.num_contexts[role]) - len(self.oov_words[role])


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
    (covered,) = coverage(count, [test], settings.min_contexts, settings.max_unknown, found)
    return covered


def measure_over_contexts(
    test: Test,
    vectors: Mapping[str, Vectors],
    settings: AssociationSettings,
    model: str,
    found_contexts: Callable[[str], int] | None = None,
    documents: Mapping[str, NDArray[np.int64]] | None = None,
) -> ContextMeasurement:
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
    counts, oov_words, rare, reason = covered.counts, covered.missing, covered.too_rare, covered.reason
    if reason is not None:
        return ContextMeasurement(None, "skipped", reason, oov_words, rare, counts, {})
    kept = {role: [word for word in counts[role] if word not in oov_words[role]] for role in ROLES}
    who = model if settings.mode == "random" else ""
    try:
        found = ceat(
            *([vectors[word] for word in kept[role]] for role in ROLES),
            n_samples=settings.n_samples,
            documents=None if documents is None else [[documents[word] for word in kept[role]] for role in ROLES],
            rng=np.random.default_rng(derive_seed(settings.seed, test.name, "contexts", who)),
            clusters=_get_stimulus_clusters(test, kept),
        )
    except UsageError as error:
        return ContextMeasurement(None, "skipped", str(error), oov_words, rare, counts, {})
    except BiassayError as error:
        return ContextMeasurement(None, "failed", str(error), oov_words, rare, counts, {})
    n, _, k, _ = found.sizes
    targets, attributes = associate_words(found.cosines, found.sizes, found.clusters)
    by_role = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    associations = {role: dict(zip(kept[role], map(float, by_role[role]), strict=True)) for role in ROLES}
    return ContextMeasurement(found, "measured", None, oov_words, rare, counts, associations)


def _get_stimulus_clusters(test: Test, kept: Mapping[str, list[str]]) -> Words | None:
    """Return the cluster of every stimulus; None if no cluster has several words."""
    if not any(test.concept(role).clusters for role in ROLES):
        return None
    x, y, a, b = ([test.concept(role).cluster_labels[word] for word in kept[role]] for role in ROLES)
    return x, y, a, b


def make_measure_records(test: Test, identity: Identity, measured: Measurement) -> Iterator[MeasureRecord]:
    """Yield the records of the other measures of one test on one model.

    Parameters
    ----------
    test : Test
    identity : Identity
        The model.
    measured : Measurement
    """
    names = [test.concept(role).cluster_labels.get(w, w) for role in "XY" for w in measured.associations.get(role, ())]
    for metric in get_measures():
        if (score := measured.measures.get(metric.name)) is not None:
            words = () if score.words is None else score.words.tolist()
            yield MeasureRecord(
                **get_model_fields(identity),
                test=test.name,
                measure=metric.name,
                measure_title=metric.title,
                score=score.value,
                score_p_value=None if score.p is None else score.p.value,
                signed=metric.signed,
                words=dict(zip(dict.fromkeys(names), words, strict=False)),
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
    association = measured.association
    leave_one_out = None if association is None else association.leave_one_out
    clusters = _find_clusters(test, measured.associations or leave_one_out or {})
    outcomes: dict[str, Outcome] = {}
    fields: dict[str, Any] = {}
    if association is not None:
        n, m = (measured.num_words[role] - _count_repeated(clusters, role) for role in "XY")
        floor = max(smallest_p(n, m, settings.alternative), association.floor or 0.0)
        outcomes, fields = _measure_words(association, association.num_words, n + m, floor, settings, cosine_sd)
        p = association.p
        outcomes[SENTENCES] = Outcome(
            effect_size=association.effect_size,
            p_value=None if p is None else p.value,
            log10_p_value=None if p is None else p.log10,
            test=SENTENCES,
            n={"texts": measured.num_texts["X"] + measured.num_texts["Y"]},
        )
        fields |= {"sentences_route": None if p is None else p.route, "statistic": association.statistic}
    return _make_record(
        test,
        identity,
        settings,
        measured,
        measured.num_texts,
        outcomes,
        get_metric(settings.metric).unit,
        doubt=_find_doubt(association),
        related=related,
        **fields,
        level=test.level,
        num_words=dict(measured.num_words),
        num_cut=dict(measured.num_cut),
        protocol=settings.protocol,
        alternative=settings.alternative,
        metric=settings.metric,
        leave_one_out=None if leave_one_out is None else _to_dicts(leave_one_out),
        shared_templates=measured.shared_templates,
        share_random=measured.share_random,
        random_sets=None if measured.share_random is None else settings.random_sets,
        clusters=clusters,
        undeclared=dict(measured.undeclared),
    )


def _measure_words(
    association: Association | ContextualAssociation,
    sizes: tuple[int, int, int, int],
    n_targets: int,
    floor: float,
    settings: AssociationSettings,
    cosine_sd: float | None,
) -> tuple[dict[str, Outcome], dict[str, Any]]:
    """Return the outcomes over words, with the fields of the record that belong to them."""
    outcomes: dict[str, Outcome] = {}
    fields: dict[str, Any] = {}
    crossed = measure_crossed(
        association.cosines,
        sizes,
        settings,
        association.effect_size_by_word,
        cosine_sd=cosine_sd,
        clusters=association.clusters,
    )
    if crossed is not None:
        outcomes[CROSSED], fields = crossed
    if (p := association.by_word) is not None:
        opposite = association.by_word_opposite if isinstance(association, Association) else None
        outcomes[FIXED_WORDS] = Outcome(
            effect_size=association.effect_size_by_word,
            p_value=p.value,
            log10_p_value=p.log10,
            p_opposite=None if opposite is None else opposite.value,
            p_floor=floor,
            test=FIXED_WORDS,
            n={"targets": n_targets},
        )
        fields["fixed_words_route"] = p.route
    return outcomes, fields


def _make_record(
    test: Test,
    identity: Identity,
    settings: AssociationSettings,
    measured: Measurement | ContextMeasurement,
    numbers: Mapping[str, int],
    outcomes: Mapping[str, Outcome],
    unit: str,
    *,
    doubt: str = "",
    related: float | None = None,
    **fields: Any,
) -> AssociationRecord:
    """Return the record with its primary outcome; `numbers` are the texts or words of every role."""
    alpha = settings.alpha_or_default
    scaled = {
        name: replace(outcome, scale=unit, confidence=1.0 - alpha, limit=outcome.limit if unit == "d" else None)
        for name, outcome in outcomes.items()
    }
    record = AssociationRecord(
        **describe_test(test, identity, alpha),
        **_choose_primary(scaled, unit, is_paper_protocol=settings.is_paper_protocol, doubt=doubt),
        num_targ1=numbers["X"],
        num_targ2=numbers["Y"],
        num_attr1=numbers["A"],
        num_attr2=numbers["B"],
        template=test.template,
        language=test.language,
        seed=settings.seed,
        source=test.source.name,
        test_version=test.source.version,
        test_digest=hash_texts(test),
        status=measured.status,
        reason=measured.reason,
        oov_words=dict(measured.oov_words),
        associations=_to_dicts(measured.associations),
        **fields,
    )
    return _drop_inference(record, related) if is_searched(test, identity) or related is not None else record


def _find_doubt(association: Association | None) -> str:
    """Return why a result without a test over words is descriptive."""
    if association is not None and association.p is None:
        return "the measure has no permutation test"
    return "the words of the texts are unknown, and texts of one word are not independent"


def _choose_primary(
    outcomes: Mapping[str, Outcome], unit: str, *, is_paper_protocol: bool, doubt: str = ""
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


def _to_dicts(by_word: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {role: dict(words) for role, words in by_word.items()}


def make_contextual_result(
    test: Test,
    identity: Identity,
    measured: ContextMeasurement,
    settings: AssociationSettings,
    cosine_sd: float | None = None,
) -> AssociationRecord:
    """Return the record of one test over contexts on one model.

    Parameters
    ----------
    test : Test
    identity : Identity
        The model.
    measured : ContextMeasurement
    settings : AssociationSettings
    cosine_sd : float, optional
        Standard deviation of cosines between frequent words on the model.
    """
    words = {role: measured.num_words(role) for role in ROLES}
    clusters = _find_clusters(test, measured.associations)
    outcomes: dict[str, Outcome] = {}
    fields: dict[str, Any] = {}
    if (association := measured.association) is not None:
        n, m = (words[role] - _count_repeated(clusters, role) for role in "XY")
        floor = smallest_p(n, m, "two-sided")
        outcomes, fields = _measure_words(association, association.sizes, n + m, floor, settings, cosine_sd)
        outcomes[POOLED] = Outcome(
            **copy_fields(association, "effect_size", "standard_error", "p_value", "log10_p_value"),
            test=POOLED,
            n={"samples": association.pooled.n},
        )
        fields |= _describe_contexts(association, measured, settings.alpha_or_default)
    return _make_record(
        test,
        identity,
        settings,
        measured,
        words,
        outcomes,
        "d",
        **fields,
        level="context",
        num_words=words,
        num_cut=dict.fromkeys(ROLES, 0),
        protocol="ceat",
        alternative="two-sided",
        too_rare=dict(measured.too_rare),
        clusters=clusters,
    )


def _describe_contexts(
    association: ContextualAssociation, measured: ContextMeasurement, alpha: float
) -> dict[str, Any]:
    low, high = association.prediction_interval or (None, None)
    return {
        "statistic": association.pooled.z,
        "share_significant": float((association.sample_p_values <= alpha).mean()),
        "n_samples": association.pooled.n,
        "num_contexts": {role: dict(counts) for role, counts in measured.num_contexts.items()},
        "new_contexts_low": low,
        "new_contexts_high": high,
        "fewest_documents": int(association.num_documents.min()),
    }


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
