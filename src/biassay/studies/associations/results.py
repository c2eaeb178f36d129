"""Records of association tests, and the columns of their tables.

The primary outcome is the crossed test, which takes target words and attribute words as samples. A metric that gives
one score of four sets has the test over target words instead, and texts whose words are unknown have the test over
texts, which is descriptive. Under the papers' protocols the primary outcome is the paper's own test over texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import TemplateKind
from biassay.grouping import group_pairs
from biassay.results.outcomes import (
    Decision,
    Outcome,
    Result,
    ResultRecord,
    correct_by_model,
    correct_declared,
    correct_rows,
    make_alternative_columns,
    make_decision,
    make_outcome_columns,
    make_result_columns,
)
from biassay.results.run_data import MODEL_COLUMNS, RevisionRow, RunData, TestRecord
from biassay.results.tables import Column, TableSpec, column, keyword_row, make_columns, optional, table_row
from biassay.stats.topic_effect import FEWEST_TESTS, correlate_errors, summarize_topic
from biassay.studies.associations.settings import PAPER_PROTOCOLS, AssociationSettings
from biassay.studies.study import ContextsRecord

CROSSED, FIXED_WORDS, SENTENCES, POOLED = "crossed", "fixed_words", "sentences", "pooled"
"""Names of outcomes: over target and attribute words, over target words, over texts, and pooled over contexts."""
COSINES = "cosines"
"""The array of a test: cosines of words, rows X and Y, columns A and B, in the order of the result's associations."""
MIN_SD = 1e-3
"""With a smaller cosine SD, rounding would decide: differences are not calibrated."""
_P_LABEL = "p (these words only)"

_SEARCHED = (
    "descriptive: the words of this test were found by searching this model, so the effect only repeats the search; "
    "run the test on another model"
)
_RELATIVE = (
    "descriptive: the words of this test were found by searching a model that this one is a copy or descendant of "
    "(their cosines correlate at {:.2f}), so the effect only repeats the search; run the test on an unrelated model"
)


def explain_searched(correlation: float | None) -> str:
    """Explain why a test is descriptive on the searched model, or on a relative with this correlation."""
    return _SEARCHED if correlation is None else _RELATIVE.format(correlation)


@keyword_row
class AssociationRecord(ResultRecord):
    """One test on one model.

    The outcomes are ``crossed`` (target words and attribute words are samples; the effect size is d over words, with
    its interval), ``fixed_words`` (permutations of the target words, for these attribute words only), and
    ``sentences`` (permutations of texts, as in the papers) or, over contexts, ``pooled`` (the random-effects model of
    CEAT). One of them is the primary outcome.

    Attributes
    ----------
    test : str
        Name of the test, which is the item.
    level : {"word", "sentence", "context"}
        How words become texts.
    targ1, targ2, attr1, attr2 : str
        Names of the word sets X, Y, A and B.
    num_targ1, num_targ2, num_attr1, num_attr2 : int
        Texts of each set; over contexts, words.
    num_words, num_cut : dict of str to int
        Words measured, and texts that the model did not read to the end, by role.
    oov_words, too_rare : dict of str to tuple of str
        Out-of-vocabulary words, by role; over contexts, words with too few contexts, and those of them that
        are too rare in the corpus.
    associations : dict of str to dict of str to float
        Association of every word, by role.
    leave_one_out : dict or None
        Score without each word, for a metric that gives one score of four sets.
    clusters : dict of str to dict of str to str
        Cluster of every word that shares its cluster with another word, by role. The words of a cluster are averaged
        and count as one observation.
    undeclared : dict of str to tuple of str
        Words that look like forms of one word or near-synonyms and are not declared as a cluster.
    cosine_difference, cosine_ci_low, cosine_ci_high, cosine_standard_error : float or None
        D, how much closer X than Y is to A than to B, in cosine units, with its interval and standard error.
    calibrated_difference, calibrated_ci_low, calibrated_ci_high, cosine_sd : float or None
        D divided by the standard deviation of cosines between frequent words, which compares models.
    share_targets, share_attributes, share_residual, var_targets, var_attributes, var_residual : float or None
        Shares in the variance of D, and the variances, from which a test can be planned.
    share_random, random_sets : float or None, int or None
        Share of random attribute sets with an effect as large, and the number of sets.
    margin, p_equivalence : float or None
        A D that would not matter, and the p-value of the hypothesis that D is as large.
    shared_templates : float or None
        Share of their texts that X and Y have in common.
    statistic : float or None
        Sum of associations over X minus that over Y; over contexts z.
    sentences_route, fixed_words_route : str or None
        How the p-values were computed.
    searched, searched_correlation : bool, float or None
        Whether the words were found by searching this model or, with this correlation of cosines, a relative.
    n_samples, share_significant, num_contexts, new_contexts_low, new_contexts_high, fewest_documents
        Over contexts: number of samples, share of samples with a one-sided p-value of at most alpha, contexts of every
        stimulus by role, where 95% of effects of these words lie in new contexts, and the fewest documents of a word.
    """

    outcome_names: ClassVar[tuple[str, ...]] = (CROSSED, FIXED_WORDS, SENTENCES, POOLED)

    test: str = column("test", "Name of the test.")
    level: Literal["word", "sentence", "context"] = column(
        "level", "How words become texts: by themselves, in sentences, in contexts of a corpus."
    )
    template: TemplateKind | None = optional("template", "Kind of the sentences.")
    language: str | None = optional("language", "Language of the words, as the test states it.")
    targ1: str = column("X", "The first targets.")
    targ2: str = column("Y", "The second targets.")
    attr1: str = column("A", "The first attributes.")
    attr2: str = column("B", "The second attributes.")
    num_targ1: int = column("X", "Texts of the first targets; over contexts, words.")
    num_targ2: int = column("Y", "Texts of the second targets.")
    num_attr1: int = column("A", "Texts of the first attributes.")
    num_attr2: int = column("B", "Texts of the second attributes.")
    num_words: dict[str, int] = column("words", "Words measured, by role.")
    num_cut: dict[str, int] = column("cut", "Texts that the model did not read to the end, by role.")
    oov_words: dict[str, tuple[str, ...]] = column(
        "out of vocabulary", "Out-of-vocabulary words, by role; over contexts, words with too few contexts."
    )
    too_rare: dict[str, tuple[str, ...]] | None = optional(
        "too rare", "Out-of-vocabulary words that are too rare in the corpus; the model could not locate the others."
    )
    associations: dict[str, dict[str, float]]
    leave_one_out: dict[str, dict[str, float]] | None = None
    clusters: dict[str, dict[str, str]] = column(
        "cluster of", "Clusters with two or more measured words, by role.", default={}
    )
    undeclared: dict[str, tuple[str, ...]] = column(
        "undeclared", "Words that look like forms of one word or near-synonyms, without a cluster.", default={}
    )
    cosine_difference: float | None = optional(
        "D", "Association of X with A rather than B minus that of Y, in cosines."
    )
    cosine_ci_low: float | None = optional("D, low", "Interval of D over other words of the same kinds: lower end.")
    cosine_ci_high: float | None = optional("D, high", "Upper end.")
    cosine_standard_error: float | None = optional("SE of D", "Standard error of D over other words of the same kinds.")
    calibrated_difference: float | None = optional(
        "calibrated", "D divided by the cosine SD: comparable between models."
    )
    calibrated_ci_low: float | None = optional("calibrated, low", "Lower end; the cosine SD is taken as known.")
    calibrated_ci_high: float | None = optional("calibrated, high", "Upper end.")
    cosine_sd: float | None = optional("cosine SD", "Standard deviation of cosines between pairs of frequent words.")
    share_targets: float | None = optional("of targets", "Share of target words in the variance of D.", "share")
    share_attributes: float | None = optional("of attributes", "Share of attribute words.", "share")
    share_residual: float | None = optional("residual", "Share of the residual.", "share")
    var_targets: float | None = optional("variance, targets", "Variance of a target's association, in cosines squared.")
    var_attributes: float | None = optional("variance, attributes", "Variance of an attribute's association.")
    var_residual: float | None = optional("variance, residual", "Residual variance of a single cosine.")
    share_random: float | None = optional(
        "random sets", "Share of random attribute sets whose effect is at least as large.", "share"
    )
    random_sets: int | None = optional("sets drawn", "Number of random attribute sets.")
    margin: float | None = optional("margin", "Margin of the equivalence test, in cosine units.")
    p_equivalence: float | None = optional(
        "p, equivalence", "P-value of the hypothesis that D is as large as the margin.", "p"
    )
    shared_templates: float | None = optional(
        "shared", "Share of sentence templates that X and Y have in common.", "share"
    )
    statistic: float | None = optional("statistic", "Sum of associations over X minus that over Y; over contexts z.")
    sentences_route: str | None = optional("route", "How the sentence-level p-value was computed.")
    fixed_words_route: str | None = optional("route, words", "How p (these words only) was computed.")
    searched: bool = column(
        "searched", "Whether the words were found by searching this model or a relative.", default=False
    )
    searched_correlation: float | None = optional(
        "relative",
        "Correlation of cosines with the model whose words were searched, if this model is a copy or descendant.",
    )
    n_samples: int | None = optional("n", "Samples of contexts.")
    share_significant: float | None = optional(
        "samples", "Share of samples of contexts with a p-value of at most alpha.", "share"
    )
    num_contexts: dict[str, dict[str, int]] | None = None
    new_contexts_low: float | None = optional(
        "new contexts, low",
        "Range of 95% of the effects of these words in new contexts from new documents: lower end. Empty if some "
        "word has contexts from one document only.",
    )
    new_contexts_high: float | None = optional("new contexts, high", "Upper end.")
    fewest_documents: int | None = optional("documents", "Fewest documents from which the contexts of a word come.")
    metric: str = column("metric", "How vectors become associations.", default="cosine")
    protocol: str = column("protocol", "Protocol of the sentence-level p-value.")
    alternative: str = column("alternative", "Direction of the permutation tests: greater or two-sided.")
    alpha: float = column("alpha", "Level of significance.")
    seed: int = column("seed", "Random seed.")
    source: str = column("source", "Collection of the test.")
    test_version: str = column("version", "Version of the test's data.")
    test_digest: str = column("digest", "Digest of its texts and words, the same for a test and its export.")

    @property
    def item(self) -> str:
        """Name of the test."""
        return self.test

    @property
    def num_clusters(self) -> dict[str, int]:
        """The number of words by role, with every cluster counted once."""
        repeated = {role: len(words) - len(set(words.values())) for role, words in self.clusters.items()}
        return {role: count - repeated.get(role, 0) for role, count in self.num_words.items()}

    @property
    def word_effect(self) -> float | None:
        """Effect size over words, whichever outcome is the primary one."""
        outcome = self.get_outcome(CROSSED) or self.get_outcome(FIXED_WORDS)
        return None if outcome is None else outcome.effect_size

    @property
    def published(self) -> Outcome:
        """Outcome that the papers report: over texts, or pooled over contexts. Empty if it was not computed."""
        return self.get_outcome(SENTENCES) or self.get_outcome(POOLED) or Outcome()


AnyResult = AssociationRecord | Result
"""A record as it is measured, or with the decision of its run."""


@table_row
class Scale(RevisionRow):
    """The words whose similarities give the scale of a model, for one form of text.

    ``words`` are those that the model knows, in the order of the run's array ``scales/FORM``: the similarities of all
    pairs, the upper triangle row by row. ``form`` is "word", "sentence" or "context", or "word tests" and "sentence
    tests", the words of the shipped word tests, which are used where two models share fewer than 200 frequent words.
    """

    form: str = column("form", "How the words were put into text.")
    words: tuple[str, ...] = column("words", "Number of words.", "count", get=lambda row: len(row.words))
    cosine_sd: float = column("cosine SD", "Standard deviation of cosines between pairs of the words.")


@table_row
class Diagnostics(RevisionRow):
    """Diagnostics of the words of one test on one model. None means unknown.

    Attributes
    ----------
    tokens, single : dict of str to float or None
        Mean number of tokens of a word, and share of single-token words, by role.
    frequency : dict of str to float or None
        Median rank of the words in the vocabulary, or over contexts their median number of contexts, by role.
    driver : str or None
        Word whose removal reduces the effect most.
    d_without, p_without : float or None
        Effect size and p-value without this word.
    p_skew : float or None
        P-value corrected for skewness.
    """

    test: str = column("test", "The name of the test.")
    tokens: dict[str, float] | None = column("tokens", "Mean number of tokens of a word, by role.", "number")
    single: dict[str, float] | None = column("single", "Share of words that are a single token.", "share")
    frequency: dict[str, float] | None = column(
        "frequency", "Median rank in the model's vocabulary; over contexts, their median number.", "count"
    )
    driver: str | None = column("driver", "The word whose removal reduces the effect most.")
    d_without: float | None = column("d without it", "Effect size d without that word.")
    p_without: float | None = column("p without it", "P-value without that word.", "p")
    p_skew: float | None = optional("p, skew", "P-value corrected for skewed associations; a diagnostic.", "p")


@dataclass(frozen=True)
class AssociationInputsRecord:
    """Tests and contexts of a run."""

    tests: tuple[TestRecord, ...]
    contexts: ContextsRecord | None = None


@table_row
class MeasureRecord(RevisionRow):
    """Score of one measure on one test and model, beside WEAT's d.

    Attributes
    ----------
    measure_title : str
        Title of the measure.
    """

    test: str = column("test", "Name of the test.")
    measure: str = column("measure", "Name of the measure; `biassay metrics` describes it.")
    measure_title: str
    score: float = column("score", "Positive if X rather than Y is associated with A, for a measure with a direction.")
    score_p_value: float | None = column(
        _P_LABEL, "Share of splits of the target words with a score as large; not corrected.", "p"
    )
    signed: bool = column("direction", "If yes, the sign of the score is that of the association.")
    words: dict[str, float] = column("words", "Score of every target word, if the measure defines one.")


@table_row
class TopicRecord(RevisionRow):
    """Effect of one topic on one model: the mean calibrated difference over tests, in the expected direction."""

    topic: str = column("topic", "Topic of the tests.")
    tests: tuple[str, ...] = column("tests", "Tests in the summary: one per question, with an expected direction.")
    topic_effect: float = column(
        "topic effect", "Mean calibrated difference of tests of this kind, positive in the expected direction."
    )
    topic_ci_low: float = column("low", "Lower end of its 95% interval.")
    topic_ci_high: float = column("high", "Upper end.")
    topic_p_value: float = column("p", "P-value of a topic effect of 0, two-sided; not corrected over topics.", "p")
    between_sd: float = column("SD between tests", "Standard deviation of true effects between tests.")
    shrunken: dict[str, float] = column("shrunken", "Effect of each test, drawn towards the mean by its uncertainty.")


SAMPLE_ARRAYS = ("samples", "variances", "sample_p_values")
"""Last parts of the names of a test's arrays, after the name of the test."""


@dataclass(frozen=True, eq=False)
class ContextSamples:
    """Effect sizes of a test on samples of contexts, their variances, and the one-sided p-value of each, (n,)."""

    effect_sizes: NDArray[np.float64]
    variances: NDArray[np.float64]
    p_values: NDArray[np.float64]


def get_samples(run: RunData, model_index: int, test: str) -> ContextSamples | None:
    """Return the samples of contexts of a test.

    Parameters
    ----------
    run : RunData
        Run of the study.
    model_index : int
        Index of the model in the manifest.
    test : str
        Name of the test.

    Returns
    -------
    ContextSamples or None
        None if the test was not measured over contexts.
    """
    arrays = [run.arrays.get(f"{model_index}/{test}/{name}") for name in SAMPLE_ARRAYS]
    known = [array for array in arrays if array is not None]
    return ContextSamples(*known) if len(known) == len(SAMPLE_ARRAYS) else None


def decide_associations(settings: AssociationSettings, records: Sequence[AssociationRecord]) -> tuple[Decision, ...]:
    """Correct over the questions of each model, or a declared family; over all rows under the papers' protocols.

    A test whose words were found by searching the model belongs to no family.
    """
    alpha = settings.alpha_or_default
    rows = [record for record in records if record.protocol in PAPER_PROTOCOLS and not record.searched]
    others = [record for record in records if record.protocol not in PAPER_PROTOCOLS and not record.searched]
    decisions = {id(record): make_decision(record, alpha) for record in records if record.searched}
    decisions |= {id(record): decision for record, decision in zip(rows, correct_rows(rows, alpha), strict=True)}
    if settings.declared:
        decided = correct_declared(others, alpha, settings.declared, ", ".join(settings.family))
    else:
        decided = correct_by_model(others, alpha)
    decisions |= {id(record): decision for record, decision in zip(others, decided, strict=True)}
    return tuple(decisions[id(record)] for record in records)


def summarize_topics(records: Iterable[AssociationRecord]) -> tuple[TopicRecord, ...]:
    """Summarize the social-bias tests of every model and topic.

    A question counts once, in words if it was measured in words. Tests without an expected direction, or whose words
    were found by searching the model, are left out.
    """
    by_topic: dict[tuple[object, ...], dict[str, AssociationRecord]] = {}
    for record in sorted(records, key=lambda record: record.level != "word"):
        key = (record.model, record.options, record.model_revision, record.topic)
        if record.about == "people" and _is_usable(record):
            by_topic.setdefault(key, {}).setdefault(record.question or record.test, record)
    chosen = (tuple(questions.values()) for questions in by_topic.values() if len(questions) >= FEWEST_TESTS)
    return tuple(map(_summarize, chosen))


def _is_usable(record: AssociationRecord) -> bool:
    return (
        record.direction is not None
        and not record.searched
        and record.outcome.test == CROSSED
        and bool(record.calibrated_difference is not None and record.cosine_standard_error and record.outcome.df)
    )


def _summarize(records: Sequence[AssociationRecord]) -> TopicRecord:
    effects = [float(r.direction or 0) * float(r.calibrated_difference or 0.0) for r in records]
    errors = [float(r.cosine_standard_error or 0.0) / float(r.cosine_sd or 1.0) for r in records]
    influences = [dict(_list_influences(record)) for record in records]
    found = summarize_topic(
        effects, errors, correlate_errors(influences), [float(r.outcome.df or 1.0) for r in records]
    )
    first, names = records[0], [record.test for record in records]
    return TopicRecord(
        model=first.model,
        options=first.options,
        topic=first.topic,
        tests=tuple(names),
        topic_effect=found.mean,
        topic_ci_low=found.ci_low,
        topic_ci_high=found.ci_high,
        topic_p_value=found.p_value,
        between_sd=found.between_sd,
        shrunken=dict(zip(names, found.shrunken, strict=True)),
        model_revision=first.model_revision,
    )


def _list_influences(record: AssociationRecord) -> Iterator[tuple[str, float]]:
    """Yield how much each word, or cluster, moves the effect in the expected direction."""
    for role, sign in zip("XYAB", (1.0, -1.0, 1.0, -1.0), strict=True):
        means = _average_clusters(record.associations[role], record.clusters.get(role, {}))
        center, n = fmean(means.values()), len(means)
        if n > 1:
            factor = float(record.direction or 0) * sign / (n * (n - 1)) ** 0.5
            yield from ((word, factor * (value - center)) for word, value in means.items())


def _average_clusters(values: Mapping[str, float], clusters: Mapping[str, str]) -> dict[str, float]:
    grouped = group_pairs((clusters.get(word, word), value) for word, value in values.items())
    return {word: fmean(of_word) for word, of_word in grouped.items()}


PAPER_COLUMNS = (
    *MODEL_COLUMNS,
    *make_columns(AssociationRecord, "test"),
    Column(
        "p_value",
        "p",
        "P-value over texts under the protocol; over contexts of the pooled effect.",
        "p",
        attrgetter("published.p_value"),
    ),
    Column(
        "effect_size",
        "effect",
        "Effect size over texts; over contexts the pooled effect (CES).",
        "number",
        attrgetter("published.effect_size"),
    ),
    *make_columns(AssociationRecord, "num_targ1", "num_targ2", "num_attr1", "num_attr2"),
)
"""The nine columns of the papers' result files."""

COLUMNS = make_result_columns(
    AssociationRecord,
    ("test",),
    *make_outcome_columns("df", df="Degrees of freedom of p; below 2 there are too few words."),
    *make_alternative_columns(
        FIXED_WORDS,
        effect_size=("d (these words only)", "Effect size over words: texts or contexts of a word are averaged."),
        p_value=(_P_LABEL, "Share of splits of the target words with at least this effect, for these attributes."),
        log10_p_value=(f"log10 {_P_LABEL}", "Logarithm of this p-value."),
        p_opposite=("p, opposite", "P-value (these words only) of the opposite direction, if d is negative."),
        p_floor=("smallest p", "Smallest p (these words only) that this number of words allows."),
    ),
    *make_alternative_columns(
        SENTENCES,
        effect_size=("sentence-level effect", "Effect size with every text as an observation, as in the papers."),
        p_value=("sentence-level p", "P-value over texts under the protocol."),
        log10_p_value=("log10 sentence-level p", "Logarithm of this p-value, which may underflow."),
    ),
    *make_alternative_columns(
        POOLED,
        effect_size=("pooled effect (CES)", "Mean effect over samples of contexts."),
        standard_error=("pooled SE", "Standard error of the pooled effect."),
        p_value=("pooled p", "P-value of the random-effects model. It shrinks with the number of samples."),
        log10_p_value=("log10 pooled p", "Logarithm of this p-value, which may underflow."),
    ),
    *make_alternative_columns(
        CROSSED,
        effect_size=("crossed d", "Effect size over words, also where the primary outcome is over texts."),
        ci_low=("crossed d, low", "Interval of d over other words of the same kinds: lower end."),
        ci_high=("crossed d, high", "Upper end of this interval."),
        p_value=("crossed p", "p over other words of the same kinds, also where the primary outcome is over texts."),
        df=("crossed df", "Degrees of freedom of this p-value."),
        power_80=("crossed 80% power", "d that this test detects with 80% power."),
    ),
    Column(
        "expected_sign",
        "expected sign",
        "Sign of the effect that the test expects; empty if it expects none.",
        get=attrgetter("record.direction"),
    ),
    Column(
        "num_clusters",
        "clusters",
        "Words measured, with each cluster (he, him, his) counted once, by role.",
        get=lambda row: row.num_clusters if row.clusters else None,
    ),
    effect_size="Effect size d over words; under the papers' protocols, over texts.",
    ci_low="Interval of d over other words of the same kinds, targets and attributes: lower end.",
    ci_high="Upper end; the confidence is 1 - alpha.",
    standard_error="Standard error of d over other words of the same kinds, by the delta method. The interval is "
    "not symmetric and not computed from it. Empty under the papers' protocols, whose tests define none.",
    p_value="Tests, two-sided, whether the association extends to other target and attribute words of the same "
    "kinds. Under the papers' protocols, the paper's own test.",
    power_80="d that the test detects with 80% power.",
    status="measured, skipped (too many words are out of vocabulary) or failed.",
    doubt="Why the result is descriptive.",
    family="run: social-bias questions of the run, per model; rows: all rows; else the declared family.",
)
_SHOWN = (
    *("model", "options", "test", "title", "status", "effect_size", "ci_low", "ci_high"),
    *("p_value", "p_adjusted", "evidence", "fixed_words_p_value", "share_random"),
)
DIAGNOSTICS = TableSpec("diagnostics", "Words of the tests", Diagnostics)
SCALES = TableSpec("scales", "Spread of cosines between frequent words", Scale, key=("form",), collapsed=True)
MEASURES = TableSpec("measures", "Other measures", MeasureRecord, key=("test", "measure"), collapsed=True)
TOPICS = TableSpec("topics", "Topics", TopicRecord, key=("topic",), collapsed=True)
RESULTS = TableSpec("results", "Association tests", AssociationRecord, COLUMNS, default_columns=_SHOWN)
