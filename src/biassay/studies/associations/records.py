"""The records of association tests. A number that was not computed is None; NaN is a number that was."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from biassay.results.data import Record, TestRecord
from biassay.stimuli.model import About, Direction, TemplateKind

__all__ = [
    "SEARCHED",
    "ContextsRecord",
    "Contextual",
    "Diagnostics",
    "InputsRecord",
    "Result",
    "Scale",
    "explain_searched",
]


SEARCHED = (
    "descriptive: the words of this test were found by searching this model, so the effect only repeats the search; "
    "run the test on another model"
)
"""Why nothing is claimed of a test on the model that was searched for its words."""
_RELATIVE = (
    "descriptive: the words of this test were found by searching a model that this one is a copy or descendant of "
    "(their cosines correlate at {:.2f}), so the effect only repeats the search; run the test on an unrelated model"
)


def explain_searched(correlation: float | None) -> str:
    """Explain why nothing is claimed of a test on the searched model, or on a relative with this correlation."""
    return SEARCHED if correlation is None else _RELATIVE.format(correlation)


@dataclass(frozen=True)
class Contextual(Record):
    """What a test over contexts (CEAT) found besides its pooled effect size.

    ``standard_error`` and ``z`` come from the random-effects model over ``n_samples`` samples. 95% of the effect sizes
    of new draws of contexts, from new documents, lie between ``new_contexts_low`` and ``new_contexts_high``; None where
    some word has contexts from one document only. ``share_significant`` is the share of samples whose own one-sided
    p-value is at most alpha. ``num_contexts`` holds how many contexts every stimulus had, by role; ``fewest_documents``
    from how many documents those of a word come, at least. Runs of earlier versions know neither.
    """

    standard_error: float
    z: float
    share_significant: float
    n_samples: int
    num_contexts: dict[str, dict[str, int]]
    new_contexts_low: float | None = None
    new_contexts_high: float | None = None
    fewest_documents: int | None = None


@dataclass(frozen=True)
class Result(Record):
    """One test on one model.

    The first nine fields are the columns of the published results. ``p_value`` is over texts under ``protocol``;
    ``p_value_by_word`` is exact and over words, whose texts move together; ``p_floor_by_word`` is the smallest it could
    be with so many words; ``p_value_by_word_opposite`` is that of the opposite direction, where the test is one-sided
    and the effect by word negative. ``significant`` and ``significant_holm`` compare ``p_value`` with the run's alpha,
    before and after Holm's correction over its family; ``..._by_word`` the same for ``p_value_by_word``, and
    ``..._crossed`` for ``p_value_crossed``. ``family`` is the number of questions corrected together and
    ``family_name`` says which: "run" for the social-bias questions of the run on one model, "rows" for all rows of a
    paper's protocol, otherwise the declared family; a test outside of a declared family has the name and no number.
    ``form_of`` names the test that stands for the question, if this result is another form of it. Sanity checks are
    not corrected.

    ``D`` to ``share_residual`` are of the crossed test, which takes target and attribute words as samples: D in cosine
    units with its interval, the interval of the effect size by word, and what target words, attribute words and the
    residual add to the variance of D; ``var_...`` are the variances behind it, from which the next test can be planned.
    A true effect size of ``smallest_effect`` would be found in 80 of 100 such tests. ``share_random`` says how many of
    ``random_sets`` random attribute sets give an effect as large. ``p_equivalence`` is of D being as large as
    ``margin``, in cosine units. ``shared_templates`` is how much of their texts X and Y have in common.

    ``cosine_sd`` is the standard deviation of cosines between pairs of frequent words on this model, and
    ``calibrated_difference`` is D divided by it, with its interval: what models are compared by.
    ``clusters`` holds, by role, the cluster of every word that shares its cluster with another word: by word, and in
    the crossed test, the words of a cluster are averaged and count as one observation.

    ``undeclared`` holds, by role, words that look like forms of one word and are not declared as a cluster.
    ``searched_correlation`` is the correlation of cosines by which a relative of the searched model was recognised.
    ``searched`` is True if the words of the test were found by searching this very model: then the effect is described
    only, and there is no p-value and no interval.

    Of a test over contexts ``effect_size`` is the pooled one, ``p_value`` that of the random-effects model (two-sided),
    and ``contextual`` holds the rest; of the words ``lost``, the corpus has too few contexts of those ``too_rare``, and
    the model could not place the others.
    """

    model: str
    options: str
    test: str
    p_value: float | None
    effect_size: float | None
    num_targ1: int
    num_targ2: int
    num_attr1: int
    num_attr2: int
    status: Literal["measured", "refused", "failed"]
    reason: str | None
    title: str
    level: Literal["word", "sentence", "context"]
    targ1: str
    targ2: str
    attr1: str
    attr2: str
    statistic: float | None
    log10_p_value: float | None
    p_route: str | None
    p_error: float | None
    effect_size_by_word: float | None
    p_value_by_word: float | None
    log10_p_value_by_word: float | None
    p_route_by_word: str | None
    p_error_by_word: float | None
    p_floor_by_word: float | None
    num_words: dict[str, int]
    num_cut: dict[str, int]
    p_value_holm: float | None
    significant: bool | None
    significant_holm: bool | None
    p_value_by_word_holm: float | None
    significant_by_word: bool | None
    significant_by_word_holm: bool | None
    protocol: str
    alternative: str
    alpha: float
    seed: int
    source: str
    test_version: str
    test_digest: str
    model_revision: str | None
    lost: dict[str, tuple[str, ...]]
    associations: dict[str, dict[str, float]]
    contextual: Contextual | None = None
    too_rare: dict[str, tuple[str, ...]] | None = None
    p_value_by_word_opposite: float | None = None
    about: About | None = None
    topic: str | None = None
    variant_of: str | None = None
    form_of: str | None = None
    template: TemplateKind | None = None
    direction: Direction | None = None
    language: str | None = None
    metric: str = "cosine"
    unit: str = "d"
    leave_one_out: dict[str, dict[str, float]] | None = None
    d_low: float | None = None
    d_high: float | None = None
    D: float | None = None
    D_low: float | None = None
    D_high: float | None = None
    p_value_crossed: float | None = None
    df_crossed: float | None = None
    p_value_crossed_holm: float | None = None
    significant_crossed: bool | None = None
    significant_crossed_holm: bool | None = None
    family: int | None = None
    family_name: str | None = None
    share_targets: float | None = None
    share_attributes: float | None = None
    share_residual: float | None = None
    smallest_effect: float | None = None
    share_random: float | None = None
    p_equivalence: float | None = None
    shared_templates: float | None = None
    var_targets: float | None = None
    var_attributes: float | None = None
    var_residual: float | None = None
    margin: float | None = None
    random_sets: int | None = None
    calibrated_difference: float | None = None
    calibrated_ci_low: float | None = None
    calibrated_ci_high: float | None = None
    cosine_sd: float | None = None
    clusters: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    searched: bool = False
    searched_correlation: float | None = None
    undeclared: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    @property
    def num_clusters(self) -> dict[str, int]:
        """The number of words by role, with every cluster counted once."""
        repeated = {role: len(of) - len(set(of.values())) for role, of in self.clusters.items()}
        return {role: count - repeated.get(role, 0) for role, count in self.num_words.items()}

    @property
    def question(self) -> str:
        """The question that the test asks: all forms of one test share it."""
        return self.variant_of or self.test


@dataclass(frozen=True)
class Scale(Record):
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
class Diagnostics(Record):
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
class InputsRecord:
    """What association tests were measured with."""

    tests: tuple[TestRecord, ...]
    contexts: ContextsRecord | None = None
