"""Records of association tests, and the columns of their tables.

The primary outcome is the crossed test, which takes target words and attribute words as samples. A metric that gives
one score of four sets has the test over target words instead, and texts whose words are unknown have the test over
texts, which claims nothing. Under the papers' protocols the primary outcome is the paper's own test over texts.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import About, Direction, TemplateKind
from biassay.results.outcomes import (
    DECISIONS,
    Outcome,
    Result,
    ResultRecord,
    make_alternative_columns,
    make_outcome_columns,
)
from biassay.results.run_data import BaseRecord, RunData, TestRecord
from biassay.results.tables import MODEL_COLUMNS, REVISION_COLUMN, Column, TableSpec

__all__ = [
    "COLUMNS",
    "CROSSED",
    "DECISIONS",
    "DIAGNOSTICS",
    "FIXED_WORDS",
    "PAPER_COLUMNS",
    "POOLED",
    "RESULTS",
    "SAMPLE_ARRAYS",
    "SCALES",
    "SENTENCES",
    "AnyResult",
    "AssociationInputsRecord",
    "AssociationRecord",
    "ContextSamples",
    "ContextsRecord",
    "Diagnostics",
    "Scale",
    "explain_searched",
    "get_samples",
    "is_against",
]

CROSSED, FIXED_WORDS, SENTENCES, POOLED = "crossed", "fixed_words", "sentences", "pooled"
"""Names of outcomes: over target and attribute words, over target words, over texts, and pooled over contexts."""

_SEARCHED = (
    "descriptive: the words of this test were found by searching this model, so the effect only repeats the search; "
    "run the test on another model"
)
_RELATIVE = (
    "descriptive: the words of this test were found by searching a model that this one is a copy or descendant of "
    "(their cosines correlate at {:.2f}), so the effect only repeats the search; run the test on an unrelated model"
)


def explain_searched(correlation: float | None) -> str:
    """Explain why nothing is claimed of a test on the searched model, or on a relative with this correlation."""
    return _SEARCHED if correlation is None else _RELATIVE.format(correlation)


@dataclass(frozen=True, kw_only=True)
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
    lost, too_rare : dict of str to tuple of str
        Words that the model does not know, by role; over contexts, words with too few contexts, and those of them that
        are too rare in the corpus.
    associations : dict of str to dict of str to float
        Association of every word, by role.
    leave_one_out : dict or None
        Score without each word, for a metric that gives one score of four sets.
    clusters : dict of str to dict of str to str
        Cluster of every word that shares its cluster with another word, by role. The words of a cluster are averaged
        and count as one observation.
    undeclared : dict of str to tuple of str
        Words that look like forms of one word and are not declared as a cluster.
    cosine_difference, cosine_ci_low, cosine_ci_high : float or None
        D, how much closer X than Y is to A than to B, in cosine units.
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

    test: str
    level: Literal["word", "sentence", "context"]
    template: TemplateKind | None = None
    language: str | None = None
    targ1: str
    targ2: str
    attr1: str
    attr2: str
    num_targ1: int
    num_targ2: int
    num_attr1: int
    num_attr2: int
    num_words: dict[str, int]
    num_cut: dict[str, int]
    lost: dict[str, tuple[str, ...]]
    too_rare: dict[str, tuple[str, ...]] | None = None
    associations: dict[str, dict[str, float]]
    leave_one_out: dict[str, dict[str, float]] | None = None
    clusters: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    undeclared: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    cosine_difference: float | None = None
    cosine_ci_low: float | None = None
    cosine_ci_high: float | None = None
    calibrated_difference: float | None = None
    calibrated_ci_low: float | None = None
    calibrated_ci_high: float | None = None
    cosine_sd: float | None = None
    share_targets: float | None = None
    share_attributes: float | None = None
    share_residual: float | None = None
    var_targets: float | None = None
    var_attributes: float | None = None
    var_residual: float | None = None
    share_random: float | None = None
    random_sets: int | None = None
    margin: float | None = None
    p_equivalence: float | None = None
    shared_templates: float | None = None
    statistic: float | None = None
    sentences_route: str | None = None
    fixed_words_route: str | None = None
    searched: bool = False
    searched_correlation: float | None = None
    n_samples: int | None = None
    share_significant: float | None = None
    num_contexts: dict[str, dict[str, int]] | None = None
    new_contexts_low: float | None = None
    new_contexts_high: float | None = None
    fewest_documents: int | None = None
    metric: str = "cosine"
    protocol: str
    alternative: str
    alpha: float
    seed: int
    source: str
    test_version: str
    test_digest: str

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


class _Expecting(Protocol):
    @property
    def direction(self) -> Direction | None: ...
    @property
    def about(self) -> About | None: ...


def is_against(row: _Expecting, effect: float | None) -> bool:
    """Return whether an effect has the sign that the test does not expect; a sanity check expects a positive one."""
    expected = row.direction or ("positive" if row.about == "method" else None)
    return expected is not None and (effect or 0.0) * (1.0 if expected == "positive" else -1.0) < 0.0


@dataclass(frozen=True)
class Scale(BaseRecord):
    """The words whose similarities give the scale of a model, for one form of text.

    ``words`` are those that the model knows, in the order of the run's array ``scales/FORM``: the similarities of all
    pairs, the upper triangle row by row. ``form`` is "word", "sentence" or "context", or "word tests" and "sentence
    tests", the words of the shipped word tests, which stand in where two models share fewer than 200 frequent words.
    """

    model: str
    options: str
    form: str
    words: tuple[str, ...]
    cosine_sd: float
    model_revision: str | None


@dataclass(frozen=True)
class Diagnostics(BaseRecord):
    """What is known of the words of one test on one model, by role.

    ``tokens`` is the mean number of tokens of a word, ``single`` the share of words of one token, ``frequency`` the
    median rank of the words in the model's vocabulary, or over contexts their median number. ``driver`` is the word
    without which least of the effect is left; then d is ``d_without`` and the crossed p ``p_without``. ``p_skew`` is
    the crossed p corrected for skewness. None: not known.
    A word that stands twice in a set, or in both sets of targets or of attributes, is refused when a test is read.
    """

    model: str
    options: str
    test: str
    tokens: dict[str, float] | None
    single: dict[str, float] | None
    frequency: dict[str, float] | None
    driver: str | None
    d_without: float | None
    p_without: float | None
    model_revision: str | None
    p_skew: float | None = None


@dataclass(frozen=True)
class ContextsRecord:
    """Where the contexts of a run came from.

    ``corpus`` names the files that were read, ``found_with`` says how.
    """

    file: str
    digest: str
    rows: int
    per_stimulus: int
    seed: int
    documents: int
    bytes: int
    corpus: tuple[str, ...] = ()
    found_with: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class AssociationInputsRecord:
    """What association tests were measured with."""

    tests: tuple[TestRecord, ...]
    contexts: ContextsRecord | None = None


SAMPLE_ARRAYS = ("samples", "variances", "sample_p_values")
"""Names of the arrays of a test, behind its own."""


@dataclass(frozen=True, eq=False)
class ContextSamples:
    """Effect sizes of a test on samples of contexts, their variances, and the one-sided p-value of each, (n,)."""

    effect_sizes: NDArray[np.float64]
    variances: NDArray[np.float64]
    p_values: NDArray[np.float64]


def get_samples(run: RunData, place: int, test: str) -> ContextSamples | None:
    """The samples of a test on a model; None where it was not measured over contexts."""
    arrays = [run.arrays.get(f"{place}/{test}/{name}") for name in SAMPLE_ARRAYS]
    known = [array for array in arrays if array is not None]
    return ContextSamples(*known) if len(known) == len(SAMPLE_ARRAYS) else None


_SIZES = (
    Column("num_targ1", "X", "Texts of the first targets; over contexts, words.", "count"),
    Column("num_targ2", "Y", "Texts of the second targets.", "count"),
    Column("num_attr1", "A", "Texts of the first attributes.", "count"),
    Column("num_attr2", "B", "Texts of the second attributes.", "count"),
)
_TEST = Column("test", "test", "Name of the test.")
PAPER_COLUMNS = (
    *MODEL_COLUMNS,
    _TEST,
    Column("p_value", "p", "P-value over texts under the protocol; over contexts of the pooled effect.", "p",
           attrgetter("published.p_value")),
    Column("effect_size", "effect", "Effect size over texts; over contexts the pooled effect (CES).", "number",
           attrgetter("published.effect_size")),
    *_SIZES,
)  # fmt: skip
"""The nine columns of the papers' result files."""

_P_LABEL = "p (these words only)"
_OWN = (
    Column("df", "df", "Degrees of freedom of the crossed test; below 2 there are too few words.", "number"),
    Column("cosine_difference", "D", "How much closer X than Y is to A than to B, in cosine units.", "number"),
    Column("cosine_ci_low", "D, low", "Interval of D over other words of the same kinds: lower end.", "number"),
    Column("cosine_ci_high", "D, high", "Upper end.", "number"),
    Column("calibrated_difference", "calibrated", "D divided by the cosine SD: comparable between models.", "number"),
    Column("calibrated_ci_low", "calibrated, low", "Lower end; the cosine SD is taken as known.", "number"),
    Column("calibrated_ci_high", "calibrated, high", "Upper end.", "number"),
    Column("cosine_sd", "cosine SD", "Standard deviation of cosines between pairs of frequent words.", "number"),
    *make_alternative_columns(FIXED_WORDS, {
        "effect_size": ("d (these words only)", "Effect size over words: texts or contexts of a word are averaged."),
        "p_value": (_P_LABEL, "Share of splits of the target words with an effect as large, for these attributes."),
        "log10_p_value": (f"log10 {_P_LABEL}", "Its logarithm."),
        "p_opposite": ("p, opposite", "P-value (these words only) of the opposite direction, if d is negative."),
        "p_floor": ("smallest p", "Smallest p (these words only) that this number of words allows."),
    }),
    *make_alternative_columns(SENTENCES, {
        "effect_size": ("sentence-level effect", "Effect size with every text as an observation, as in the papers."),
        "p_value": ("sentence-level p", "P-value over texts under the protocol."),
        "log10_p_value": ("log10 sentence-level p", "Its logarithm, also where it underflows."),
    }),
    *make_alternative_columns(POOLED, {
        "effect_size": ("pooled effect (CES)", "Mean effect over samples of contexts."),
        "standard_error": ("pooled SE", "Standard error of the pooled effect."),
        "p_value": ("pooled p", "P-value of the random-effects model. It shrinks with the number of samples."),
        "log10_p_value": ("log10 pooled p", "Its logarithm, also where it underflows."),
    }),
    *make_alternative_columns(CROSSED, {
        "effect_size": ("crossed d", "Effect size over words, also where the primary outcome is over texts."),
        "ci_low": ("crossed d, low", "Interval of d over other words of the same kinds: lower end."),
        "ci_high": ("crossed d, high", "Upper end."),
        "p_value": ("crossed p", "Crossed test, two-sided: would other words of the same kinds show it too?"),
        "df": ("crossed df", "Its degrees of freedom."),
        "power_80": ("crossed 80% power", "d that it detects with 80% power."),
    }),
    Column("share_random", "random sets", "Share of random attribute sets with an effect as large.", "share"),
    Column("random_sets", "sets drawn", "Number of random attribute sets.", "count"),
    Column("share_targets", "of targets", "Share of target words in the variance of D.", "share"),
    Column("share_attributes", "of attributes", "Share of attribute words.", "share"),
    Column("share_residual", "residual", "Share of the residual.", "share"),
    Column("var_targets", "variance, targets", "Variance of a target's association, in cosines squared.", "number"),
    Column("var_attributes", "variance, attributes", "Variance of an attribute's association.", "number"),
    Column("var_residual", "variance, residual", "Residual variance of a single cosine.", "number"),
    Column("margin", "margin", "A D that would not matter, in cosine units.", "number"),
    Column("p_equivalence", "p, equivalence", "P-value of the hypothesis that D is as large as the margin.", "p"),
    Column("status", "status", "measured, skipped (too many words are out of vocabulary) or failed."),
    Column("reason", "reason", "Why the test was not measured."),
    Column("title", "title", "The test in words."),
    Column("about", "about", "people, or method for a sanity check."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("question", "question", "Question of the test, which its forms share.", get=attrgetter("asked_question")),
    Column("form_of", "form of", "Test that stands for the question; empty if it is this one."),
    Column("family", "family", "run: social-bias questions of the run, per model; rows: all rows; else the declared "
           "family."),
    Column("family_size", "questions", "Number of questions corrected together.", "count"),
    Column("exploratory", "exploratory", "Whether the test is outside the declared family.", "flag"),
    Column("claim", "claim", "tested, or descriptive if no p-value becomes evidence."),
    Column("doubt", "doubt", "Why the result is descriptive."),
    Column("level", "level", "How words become texts: by themselves, in sentences, in contexts of a corpus."),
    Column("template", "template", "Kind of the sentences."),
    Column("language", "language", "Language of the words, as the test states it."),
    Column("expected_sign", "expected sign", "Sign of the effect that the test expects; empty if it expects none.",
           get=attrgetter("record.direction")),
    Column("metric", "metric", "How vectors become associations."),
    Column("targ1", "X", "The first targets."),
    Column("targ2", "Y", "The second targets."),
    Column("attr1", "A", "The first attributes."),
    Column("attr2", "B", "The second attributes."),
    *_SIZES,
    Column("num_words", "words", "Words measured, by role."),
    Column(
        "num_clusters", "clusters", "Words measured, with each cluster (he, him, his) counted once, by role.",
        get=lambda row: row.num_clusters if row.clusters else None,
    ),
    Column("clusters", "cluster of", "The cluster of every word that shares its cluster with another, by role."),
    Column("num_cut", "cut", "Texts that the model did not read to the end, by role."),
    Column("lost", "lost", "Out-of-vocabulary words, by role; over contexts, words with too few contexts."),
    Column("too_rare", "too rare", "Lost words that are too rare in the corpus; the model could not place others."),
    Column("undeclared", "undeclared", "Words that look like forms of one word and are not declared as a cluster."),
    Column("searched", "searched", "Whether the words were found by searching this model or a relative.", "flag"),
    Column("searched_correlation", "relative", "Correlation with the cosines of the searched model, for its relatives.",
           "number"),
    Column("shared_templates", "shared", "Share of their texts that X and Y have in common.", "share"),
    Column("statistic", "statistic", "Sum of associations over X minus that over Y; over contexts z.", "number"),
    Column("sentences_route", "route", "How the sentence-level p-value was computed."),
    Column("fixed_words_route", "route, words", "How p (these words only) was computed."),
    Column("new_contexts_low", "new contexts, low", "Where 95% of effects of these words lie in new contexts, from new "
           "documents: lower end. Empty if some word has contexts from one document only.", "number"),
    Column("new_contexts_high", "new contexts, high", "Upper end.", "number"),
    Column("fewest_documents", "documents", "Fewest documents from which the contexts of a word come.", "count"),
    Column("share_significant", "samples", "Share of samples of contexts with a p-value of at most alpha.", "share"),
    Column("n_samples", "n", "Samples of contexts.", "count"),
    Column("protocol", "protocol", "How the sentence-level p-value was found."),
    Column("alternative", "alternative", "Direction of the permutation tests: greater or two-sided."),
    Column("alpha", "alpha", "Level of significance.", "number"),
    Column("seed", "seed", "Random seed.", "count"),
    Column("source", "source", "Collection of the test."),
    Column("test_version", "version", "Version of the test's data."),
    Column("test_digest", "digest", "Digest of its texts and words, the same for a test and its export."),
    REVISION_COLUMN,
)  # fmt: skip

_DIAGNOSTICS = (
    *MODEL_COLUMNS,
    Column("test", "test", "The name of the test."),
    Column("tokens", "tokens", "Mean number of tokens of a word, by role.", "number"),
    Column("single", "single", "Share of words of a single token.", "share"),
    Column(
        "frequency", "frequency", "Median rank in the model's vocabulary; over contexts, their median number.", "count"
    ),
    Column("driver", "driver", "The word without which least of the effect is left."),
    Column("d_without", "d without it", "What is left.", "number"),
    Column("p_without", "p without it", "Crossed p without that word.", "p"),
    Column("p_skew", "p, skew", "Crossed p corrected for skewed associations; a diagnostic.", "p"),
    REVISION_COLUMN,
)

_SCALES = (
    *MODEL_COLUMNS,
    Column("form", "form", "How the words were put into text."),
    Column("cosine_sd", "cosine SD", "Standard deviation of cosines between pairs of the words.", "number"),
    Column("number", "words", "Number of words.", "count", lambda row: len(row.words)),
    REVISION_COLUMN,
)

COLUMNS = (
    *MODEL_COLUMNS,
    _TEST,
    *make_outcome_columns(
        effect_size="Effect size d over words; under the papers' protocols, over texts.",
        ci_low="Interval of d over other words of the same kinds, targets and attributes: lower end.",
        ci_high="Upper end; the confidence is 1 - alpha.",
        p_value="Crossed test, two-sided: would other words of the same kinds show it too? Under the papers' "
        "protocols, the paper's own test.",
        power_80="d that the test detects with 80% power.",
    ),
    *_OWN,
)
_SHOWN = (
    *("model", "options", "test", "title", "status", "effect_size", "ci_low", "ci_high"),
    *("p_value", "p_adjusted", "evidence", "fixed_words_p_value", "share_random"),
)
DIAGNOSTICS = TableSpec("diagnostics", "Words of the tests", Diagnostics, _DIAGNOSTICS)
SCALES = TableSpec("scales", "Spread of cosines between frequent words", Scale, _SCALES, key=("form",), detail=True)
RESULTS = TableSpec(
    "results", "Association tests", AssociationRecord, COLUMNS, rows=attrgetter("decided_results"), shown=_SHOWN
)
