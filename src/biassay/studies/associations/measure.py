"""Measure one association test on one model, over texts or over contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.contexts import TestCoverage, coverage
from biassay.datasets.schema import ROLES, Test
from biassay.errors import BiassayError, StimulusError, UsageError
from biassay.models.base import Identity, Span, TextEmbeddings
from biassay.prompts.sentences import StimulusText, TestTexts, find_shared_templates, hash_texts, list_forms
from biassay.results.outcomes import Outcome
from biassay.stats.association import largest_components, random_baseline_share
from biassay.stats.cosine_tables import iter_row_blocks
from biassay.stats.permutation import TailProbability, smallest_p
from biassay.studies.associations.ceat import ContextualAssociation, ceat
from biassay.studies.associations.contributions import measure_crossed
from biassay.studies.associations.metrics import Metric, PairwiseMetric, get_metric
from biassay.studies.associations.results import (
    CROSSED,
    FIXED_WORDS,
    POOLED,
    SENTENCES,
    AssociationRecord,
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
from biassay.studies.associations.word_forms import find_undeclared_forms
from biassay.studies.study import derive_seed

__all__ = [
    "ContextMeasurement",
    "Measurement",
    "check_coverage",
    "check_tests",
    "check_word_tests",
    "is_searched",
    "make_contextual_result",
    "make_result",
    "measure_over_contexts",
    "measure_over_texts",
    "select_usable_texts",
    "select_usable_vectors",
]


@dataclass(frozen=True, eq=False)
class Measurement:
    """What came of one test on one model.

    Attributes
    ----------
    association : Association or None
        None if the test was skipped or failed; then ``reason`` says why.
    status : {"measured", "skipped", "failed"}
        Skipped: too many words were lost. Failed: the numbers leave the statistic undefined.
    num_texts, num_words, num_cut : role -> int
        Texts that were measured, words they were made from, and texts the model did not read to the end.
    lost : role -> words
        Words, in the form in which they stood in a text, that the model does not know.
    associations : role -> word -> float
        For targets the mean association with A rather than B; for attributes the mean cosine with X rather than Y.
    shared_templates : float or None
        How much of their texts X and Y have in common. Words are compared on the templates that they share.
    share_random : float or None
        How often random attribute words give an effect by word as large.
    undeclared : role -> words
        Words that look like forms of one word and are not declared as a cluster.
    """

    association: Association | None
    status: Literal["measured", "skipped", "failed"]
    reason: str | None
    num_texts: Mapping[str, int]
    num_words: Mapping[str, int]
    num_cut: Mapping[str, int]
    lost: Mapping[str, tuple[str, ...]]
    associations: Mapping[str, Mapping[str, float]]
    shared_templates: float | None = None
    share_random: float | None = None
    undeclared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def check_tests(tests: tuple[Test, ...], settings: AssociationSettings) -> None:
    """Refuse, before anything is encoded, what the protocol cannot measure."""
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
) -> Measurement:
    """Measure one test; ``encoded`` holds the vectors of its texts by role, ``vocabulary`` (n, d) of random words."""
    kept, lost, reason = select_usable_texts(test, texts, encoded, settings.max_unknown, oov_hint)
    if settings.protocol == "may2019" and test.has_target_sentences:
        _truncate(kept, np.random.default_rng(derive_seed(settings.seed, test.name, "truncate")))
    chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
    counts: dict[str, Any] = {
        "num_texts": {role: len(chosen[role]) for role in ROLES},
        "num_words": {role: len({text.stimulus for text in chosen[role]}) for role in ROLES},
        "num_cut": {role: sum(encoded[role].truncated_at[i] is not None for i in kept[role]) for role in ROLES},
    }
    if reason is not None:
        return Measurement(None, "skipped", reason, **counts, lost=lost, associations={})
    shares = find_shared_templates(texts.X, texts.Y)
    try:
        vectors = {
            role: of.vectors if len(kept[role]) == len(of.vectors) else of.vectors[kept[role]]
            for role, of in ((role, encoded[role]) for role in ROLES)
        }
        for role in ROLES:
            largest_components(
                vectors[role], test.concept(role).label, [t.text for t in chosen[role]]
            )  # names what is wrong
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
            places = {role: [i for i, text in enumerate(chosen[role]) if shares.includes(text)] for role in "XY"}
            vectors |= {role: vectors[role][own] for role, own in places.items()}
            chosen |= {role: [chosen[role][i] for i in own] for role, own in places.items()}
            shared = replace(
                how, words=_get_text_words(test, chosen), clusters=_get_text_clusters(test, chosen), p=found.p
            )
            found = combine_levels(found, metric.associate(vectors, shared))
        if not test.has_known_words:
            found = replace(found, cosines=None)
        associations = _get_word_associations(metric, found, vectors, chosen)
        rare = _compute_random_share(metric, found, vectors, chosen, vocabulary, settings)
        undeclared = _list_undeclared(test, vectors, chosen) if test.has_known_words else {}
    except UsageError as error:
        return Measurement(None, "skipped", str(error), **counts, lost=lost, associations={})
    except BiassayError as error:
        return Measurement(None, "failed", str(error), **counts, lost=lost, associations={})
    return Measurement(
        found, "measured", None, **counts, lost=lost, associations=associations,
        shared_templates=shares.share, share_random=rare, undeclared=undeclared,
    )  # fmt: skip


def _compute_random_share(
    metric: Metric,
    found: Association,
    vectors: Mapping[str, NDArray[np.float32]],
    chosen: Mapping[str, list[StimulusText]],
    vocabulary: NDArray[np.float32] | None,
    settings: AssociationSettings,
) -> float | None:
    """How often random attribute words give an effect by word as large; None where it cannot be asked."""
    if vocabulary is None or found.cosines is None or found.effect_size_by_word is None:
        return None
    if not len(vocabulary) or not isinstance(metric, PairwiseMetric):
        return None
    words = [f"{role} {text.stimulus}" for role in "XY" for text in chosen[role]]
    targets = np.concatenate([vectors["X"], vectors["Y"]])
    n, x_y_a_b = found.num_words[0], pad_words(found.clusters)

    def cosines_of(some: NDArray[np.float32]) -> NDArray[np.float64]:
        table = metric.word_matrix(targets, words, some)
        parts = zip((table[:n], table[n:]), x_y_a_b[:2], strict=True)
        return np.concatenate([mean_rows(part, labels) for part, labels in parts])

    a, b = (
        count if labels is None else len(set(labels))
        for count, labels in zip(found.num_words[2:], x_y_a_b[2:], strict=True)
    )
    return random_baseline_share(
        (cosines_of(vocabulary[block]) for block in iter_row_blocks((len(vocabulary), sum(found.num_words[:2])))),
        n if x_y_a_b[0] is None else len(set(x_y_a_b[0])),
        len(vocabulary),
        (a, b),
        found.effect_size_by_word,
        settings.random_sets,
        settings.seed,
    )


def select_usable_vectors(encoded: TextEmbeddings) -> NDArray[np.float32]:
    """Vectors of the texts that the model knows, those left out that have no direction."""
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
    """By role the places of the texts that the model knows, and the words lost; and why these are too many."""
    kept: dict[str, list[int]] = {}
    lost: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        of_role = encoded[role]
        gone = [
            _find_lost_spans(t, of_role.unknown[i], of_role.truncated_at[i]) for i, t in enumerate(texts.role(role))
        ]
        kept[role] = [i for i, spans in enumerate(gone) if not spans]
        lost[role] = list_forms(
            replace(t, spans=spans) for t, spans in zip(texts.role(role), gone, strict=True) if spans
        )
    reason = _explain_too_many_lost(test, texts, kept, lost, max_unknown, command)
    return kept, lost, f"{reason}; {oov_hint}" if reason is not None and oov_hint else reason


def _find_lost_spans(text: StimulusText, unknown: tuple[Span, ...], cut: int | None) -> tuple[Span, ...]:
    """The places of those words that the text is about and the model did not know, or did not read as far as."""
    if cut is None and not unknown:
        return ()
    return tuple(
        (start, end)
        for start, end in text.spans
        if (cut is not None and cut < end) or any(a < end and start < b for a, b in unknown)
    )


def _explain_too_many_lost(
    test: Test,
    texts: TestTexts,
    kept: Mapping[str, list[int]],
    lost: Mapping[str, tuple[str, ...]],
    max_unknown: float,
    command: str,
) -> str | None:
    for role in ROLES:
        total = len(texts.role(role))
        gone = total - len(kept[role])
        if gone > max_unknown * total or (gone and len(kept[role]) < 2):
            kind = "words" if test.level == "word" else "texts"
            count = f"the model does not know {gone} of {total} {kind} of {test.concept(role).label}"
            option = f"`biassay {command} --max-unknown`"
            limit = f"the limit is {max_unknown:.0%}, {option} changes it" if max_unknown < 1.0 else "too few are left"
            return f"{count} ({', '.join(lost[role])}); {limit}"
    return None


def _truncate(kept: dict[str, list[int]], rng: np.random.Generator) -> None:
    """Cut the longer target set to the length of the shorter, at random and in order, as the published files were."""
    size = min(len(kept["X"]), len(kept["Y"]))
    for role in "XY":
        if len(kept[role]) > size:
            kept[role] = sorted(rng.choice(kept[role], size=size, replace=False).tolist())


def _check_case(vectors: Mapping[str, NDArray[np.float32]], chosen: Mapping[str, list[StimulusText]]) -> None:
    """Refuse words that differ only in case if the model gives them the same vectors: they are one word."""
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


def _list_undeclared(
    test: Test, vectors: Mapping[str, NDArray[np.float32]], chosen: Mapping[str, list[StimulusText]]
) -> dict[str, tuple[str, ...]]:
    words = {role: [text.stimulus for text in chosen[role]] for role in ROLES}
    return find_undeclared_forms(vectors, words, {role: test.concept(role).cluster_labels for role in ROLES})


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
    found: Association,
    vectors: Mapping[str, NDArray[np.float32]],
    chosen: Mapping[str, list[StimulusText]],
) -> dict[str, dict[str, float]]:
    """Association of every word, by role; empty for a metric that gives one score of four sets."""
    names = {role: list(dict.fromkeys(text.stimulus for text in chosen[role])) for role in ROLES}
    if found.cosines is not None:
        n, _, k, _ = found.num_words
        targets, attributes = associate_words(found.cosines, found.num_words, found.clusters)
        means = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    else:
        scores = {"X": found.x, "Y": found.y, **metric.attribute_scores(vectors)} if found.x.size else {}
        words = {role: [text.stimulus for text in chosen[role]] for role in scores}
        means = {role: mean_rows(scores[role][:, None], words[role])[:, 0] for role in scores}
    return {role: dict(zip(names[role], map(float, own), strict=True)) for role, own in means.items()}


Vectors = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ContextMeasurement:
    """What came of one test on one model; ``num_contexts`` and ``associations`` by role and stimulus.

    Of the stimuli ``lost``, the corpus has too few contexts of those ``too_rare``; others the model could not place.
    """

    association: ContextualAssociation | None
    status: Literal["measured", "skipped", "failed"]
    reason: str | None
    lost: Mapping[str, tuple[str, ...]]
    too_rare: Mapping[str, tuple[str, ...]]
    num_contexts: Mapping[str, Mapping[str, int]]
    associations: Mapping[str, Mapping[str, float]]

    def num_words(self, role: str) -> int:
        return len(self.num_contexts[role]) - len(self.lost[role])


def check_word_tests(tests: tuple[Test, ...]) -> None:
    """Refuse tests that are not about words."""
    for test in tests:
        if test.level != "word":
            hint = f"; {test.variant_of!r} is the same with words" if test.variant_of else ""
            raise StimulusError(
                f"test {test.name!r} asks about sentences made from templates, and contexts come from a corpus{hint}"
            )


def check_coverage(
    count: Callable[[str], int], test: Test, settings: AssociationSettings, found: Callable[[str], int] | None = None
) -> TestCoverage:
    """Which stimuli of a test have contexts enough, and whether that is enough for the test."""
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
    """Measure one test; ``vectors`` holds for each stimulus the rows (contexts, d) that the model could locate.

    ``model`` takes part in the draws where every model draws its own contexts; ``found_contexts`` tells how many the
    corpus has of a stimulus, by default no more than were located. ``documents`` holds the document of every row; by
    default, every row counts as a document.
    """
    covered = check_coverage(lambda word: len(vectors.get(word, ())), test, settings, found_contexts)
    counts, lost, rare, reason = covered.counts, covered.lost, covered.too_rare, covered.reason
    if reason is not None:
        return ContextMeasurement(None, "skipped", reason, lost, rare, counts, {})
    kept = {role: [word for word in counts[role] if word not in lost[role]] for role in ROLES}
    who = model if settings.mode == "random" else ""
    try:
        found = ceat(
            *([vectors[word] for word in kept[role]] for role in ROLES),
            n_samples=settings.n_samples,
            documents=None if documents is None else _group_by_role(documents, kept),
            rng=np.random.default_rng(derive_seed(settings.seed, test.name, "contexts", who)),
            clusters=_get_stimulus_clusters(test, kept),
        )
    except UsageError as error:
        return ContextMeasurement(None, "skipped", str(error), lost, rare, counts, {})
    except BiassayError as error:
        return ContextMeasurement(None, "failed", str(error), lost, rare, counts, {})
    n, _, k, _ = found.sizes
    targets, attributes = associate_words(found.cosines, found.sizes, found.clusters)
    by_role = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    associations = {role: dict(zip(kept[role], map(float, by_role[role]), strict=True)) for role in ROLES}
    return ContextMeasurement(found, "measured", None, lost, rare, counts, associations)


def _get_stimulus_clusters(test: Test, kept: Mapping[str, list[str]]) -> Words | None:
    """Return the cluster of every stimulus; None if no cluster has several words."""
    if not any(test.concept(role).clusters for role in ROLES):
        return None
    x, y, a, b = ([test.concept(role).cluster_labels[word] for word in kept[role]] for role in ROLES)
    return x, y, a, b


def _group_by_role(
    documents: Mapping[str, NDArray[np.int64]], kept: Mapping[str, Sequence[str]]
) -> tuple[Sequence[NDArray[np.int64]], ...]:
    return tuple([documents[word] for word in kept[role]] for role in ROLES)


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
    words = measured.associations or leave_one_out or {}
    clusters = _find_clusters(test, {role: tuple(of_role) for role, of_role in words.items()})
    unit = get_metric(settings.metric).unit
    outcomes: dict[str, Outcome] = {}
    fields: dict[str, Any] = {}
    if association is not None:
        crossed = measure_crossed(
            association.cosines,
            association.num_words,
            settings,
            association.effect_size_by_word,
            cosine_sd=cosine_sd,
            clusters=association.clusters,
        )
        if crossed is not None:
            outcomes[CROSSED], fields = crossed.outcome, dict(crossed.fields)
        if association.by_word is not None:
            n, m = (measured.num_words[role] - _count_repeated(clusters, role) for role in "XY")
            outcomes[FIXED_WORDS] = _make_fixed_words(
                association.by_word,
                association.effect_size_by_word,
                {"targets": n + m},
                max(smallest_p(n, m, settings.alternative), association.floor or 0.0),
                association.by_word_opposite,
            )
            fields["fixed_words_route"] = association.by_word.route
        outcomes[SENTENCES] = Outcome(
            effect_size=association.effect_size,
            p_value=association.p.value,
            log10_p_value=association.p.log10,
            test=SENTENCES,
            n={"texts": measured.num_texts["X"] + measured.num_texts["Y"]},
        )
        fields |= {"sentences_route": association.p.route, "statistic": association.statistic}
    outcomes = {name: _set_scale(outcome, unit, settings.alpha_or_default) for name, outcome in outcomes.items()}
    record = AssociationRecord(
        **_describe_request(test, identity, settings),
        **_choose_primary(outcomes, unit, of_papers=settings.is_paper_protocol),
        **fields,
        num_targ1=measured.num_texts["X"],
        num_targ2=measured.num_texts["Y"],
        num_attr1=measured.num_texts["A"],
        num_attr2=measured.num_texts["B"],
        status=measured.status,
        reason=measured.reason,
        level=test.level,
        num_words=dict(measured.num_words),
        num_cut=dict(measured.num_cut),
        protocol=settings.protocol,
        alternative=settings.alternative,
        metric=settings.metric,
        leave_one_out=None if leave_one_out is None else _to_dicts(leave_one_out),
        lost=dict(measured.lost),
        associations=_to_dicts(measured.associations),
        shared_templates=measured.shared_templates,
        share_random=measured.share_random,
        random_sets=None if measured.share_random is None else settings.random_sets,
        clusters=clusters,
        undeclared=dict(measured.undeclared),
    )
    return _drop_inference(record, related) if is_searched(test, identity) or related is not None else record


def _make_fixed_words(
    p: TailProbability,
    effect_size: float | None,
    n: dict[str, int],
    floor: float,
    opposite: TailProbability | None = None,
) -> Outcome:
    return Outcome(
        effect_size=effect_size,
        p_value=p.value,
        log10_p_value=p.log10,
        p_opposite=None if opposite is None else opposite.value,
        p_floor=floor,
        test=FIXED_WORDS,
        n=n,
    )


def _set_scale(outcome: Outcome, unit: str, alpha: float) -> Outcome:
    return replace(outcome, scale=unit, confidence=1.0 - alpha, limit=outcome.limit if unit == "d" else None)


def _choose_primary(outcomes: Mapping[str, Outcome], unit: str, *, of_papers: bool) -> dict[str, Any]:
    """Choose the primary outcome: over words where they are known, over texts under the papers' protocols.

    Texts whose words are unknown are described and not tested, because texts of one word are not independent.
    """
    order = (SENTENCES,) if of_papers else (CROSSED, FIXED_WORDS, SENTENCES)
    primary = next((name for name in order if name in outcomes), None)
    if primary is None:
        return {"outcome": Outcome(scale=unit)}
    others = {name: outcome for name, outcome in outcomes.items() if name != primary}
    if primary == SENTENCES and not of_papers:
        doubt = "the words of the texts are unknown, and texts of one word are not independent"
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
    return Outcome(**{name: getattr(outcome, name) for name in kept})


_INFERENCE_FIELDS = (
    *("sentences_route", "fixed_words_route", "cosine_ci_low", "cosine_ci_high", "p_equivalence", "margin"),
    *("share_random", "random_sets", "calibrated_ci_low", "calibrated_ci_high"),
)


def _find_clusters(test: Test, words: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
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
    clusters = _find_clusters(test, {role: tuple(of_role) for role, of_role in measured.associations.items()})
    outcomes: dict[str, Outcome] = {}
    fields: dict[str, Any] = {}
    if (association := measured.association) is not None:
        crossed = measure_crossed(
            association.cosines,
            association.sizes,
            settings,
            association.effect_size_by_word,
            cosine_sd=cosine_sd,
            clusters=association.clusters,
        )
        assert crossed is not None
        n, m = (words[role] - _count_repeated(clusters, role) for role in "XY")
        outcomes[CROSSED] = crossed.outcome
        outcomes[FIXED_WORDS] = _make_fixed_words(
            association.by_word, association.effect_size_by_word, {"targets": n + m}, smallest_p(n, m, "two-sided")
        )
        outcomes[POOLED] = Outcome(
            effect_size=association.effect_size,
            standard_error=association.standard_error,
            p_value=association.p_value,
            log10_p_value=association.log10_p_value,
            test=POOLED,
            n={"samples": association.pooled.n},
        )
        fields = {
            **crossed.fields,
            **_describe_contexts(association, measured, settings.alpha_or_default),
            "fixed_words_route": association.by_word.route,
            "statistic": association.pooled.z,
        }
    outcomes = {name: _set_scale(outcome, "d", settings.alpha_or_default) for name, outcome in outcomes.items()}
    record = AssociationRecord(
        **_describe_request(test, identity, settings),
        **_choose_primary(outcomes, "d", of_papers=False),
        **fields,
        num_targ1=words["X"],
        num_targ2=words["Y"],
        num_attr1=words["A"],
        num_attr2=words["B"],
        status=measured.status,
        reason=measured.reason,
        level="context",
        num_words=words,
        num_cut=dict.fromkeys(ROLES, 0),
        protocol="ceat",
        alternative="two-sided",
        lost=dict(measured.lost),
        associations=_to_dicts(measured.associations),
        too_rare=dict(measured.too_rare),
        clusters=clusters,
    )
    return _drop_inference(record, None) if is_searched(test, identity) else record


def _describe_contexts(
    association: ContextualAssociation, measured: ContextMeasurement, alpha: float
) -> dict[str, Any]:
    low, high = association.prediction_interval or (None, None)
    return {
        "share_significant": float((association.sample_p_values <= alpha).mean()),
        "n_samples": association.pooled.n,
        "num_contexts": {role: dict(counts) for role, counts in measured.num_contexts.items()},
        "new_contexts_low": low,
        "new_contexts_high": high,
        "fewest_documents": int(association.num_documents.min()),
    }


def _describe_request(test: Test, identity: Identity, settings: AssociationSettings) -> dict[str, Any]:
    """Return the fields that describe the test, the model and the settings."""
    return {
        "model": identity.name,
        "options": identity.options,
        "model_revision": identity.revision,
        "test": test.name,
        "title": test.title,
        "about": test.about,
        "topic": test.topic,
        "question": test.variant_of or "",
        "template": test.template,
        "direction": None if test.direction is None else 1 if test.direction == "positive" else -1,
        "language": test.language,
        "targ1": test.X.label,
        "targ2": test.Y.label,
        "attr1": test.A.label,
        "attr2": test.B.label,
        "alpha": settings.alpha_or_default,
        "seed": settings.seed,
        "source": test.source.name,
        "test_version": test.source.version,
        "test_digest": hash_texts(test),
    }
