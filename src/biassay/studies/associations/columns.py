"""The columns of association tests: the papers' nine first and in order, then the project's own."""

from __future__ import annotations

from biassay.results.tables import MODEL, REVISION, Column, Format, TableSpec
from biassay.studies.associations.marks import BY_WORD
from biassay.studies.associations.records import Diagnostics, Result, Scale

__all__ = ["COLUMNS", "DIAGNOSTICS", "PAPER_COLUMNS", "RESULTS", "SCALES"]

PAPER_COLUMNS = (
    *MODEL,
    Column("test", "test", "The name of the test."),
    Column("p_value", "p by text", "Over texts under the protocol; over contexts that of the pooled effect.", "p"),
    Column("effect_size", "effect", "d over texts; over contexts the pooled effect (CES).", "number"),
    Column("num_targ1", "X", "Texts of the first targets; over contexts, words.", "count"),
    Column("num_targ2", "Y", "Texts of the second targets.", "count"),
    Column("num_attr1", "A", "Texts of the first attributes.", "count"),
    Column("num_attr2", "B", "Texts of the second attributes.", "count"),
)


def _over_contexts(name: str, label: str, help: str, form: Format = "number") -> Column:
    return Column(name, label, help, form, lambda row: getattr(row.contextual, name, None))


_OWN = (
    Column("status", "status", "Measured, refused (too many words lost) or failed (the statistic is undefined)."),
    Column("reason", "reason", "Why it was not measured."),
    Column("title", "title", "The test in words."),
    Column("about", "about", "Whether it is about people, or checks the method."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("variant_of", "variant of", "The test of words that it puts into sentences."),
    Column("form_of", "form of", "The test that stands for the question; empty if it is this one."),
    Column("template", "template", "The kind of its sentences."),
    Column("direction", "expected sign", "Sign of the effect that the test expects; empty if it expects none."),
    Column("language", "language", "Language of the words, as the test states it; empty if it does not."),
    Column("metric", "metric", "How vectors became associations."),
    Column("unit", "unit", "Of the effect sizes: d, or score for a metric of four sets."),
    Column("level", "level", "How words were put into text: by themselves, in sentences, in contexts of a corpus."),
    Column("targ1", "X", "The first targets."),
    Column("targ2", "Y", "The second targets."),
    Column("attr1", "A", "The first attributes."),
    Column("attr2", "B", "The second attributes."),
    Column("statistic", "statistic", "Sum of associations over X less that over Y; over contexts z.", "number"),
    Column("log10_p_value", "log10 p", "Logarithm of the p-value by text, also where it is too small.", "number"),
    Column("p_route", "route", "How the p-value by text was computed."),
    Column("p_error", "error", "Bound of its relative error; 0: exact.", "p"),
    Column("effect_size_by_word", "d", "Effect size over words: texts or contexts of a word are averaged.", "number"),
    Column("d_low", "d, low", "Of d with other words of the same kinds, targets and attributes: lower end.", "number"),
    Column("d_high", "d, high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column("p_value_crossed", "p", "Crossed test, two-sided: would other words of the same kinds show it too?", "p"),
    Column("p_value_crossed_holm", "p, Holm", "After correction over the family of questions.", "p"),
    Column("significant_crossed", "crossed", "Crossed p at or below alpha.", "flag"),
    Column("significant_crossed_holm", "crossed, Holm", "The same after correction.", "flag"),
    Column("family", "family", "Number of questions corrected together; sanity checks are not corrected.", "count"),
    Column("family_name", "family name", "run: social-bias questions of the run, per model; else the declared family."),
    Column("df_crossed", "df", "Degrees of freedom of the crossed test; below 2 there are too few words.", "number"),
    Column("D", "D", "How much closer X than Y is to A than to B, in cosine units.", "number"),
    Column("D_low", "D, low", "Of D with other words of the same kinds: lower end.", "number"),
    Column("D_high", "D, high", "Upper end.", "number"),
    Column("calibrated_difference", "calibrated", "D divided by the cosine SD: comparable between models.", "number"),
    Column("calibrated_ci_low", "calibrated, low", "Lower end; the cosine SD is taken as known.", "number"),
    Column("calibrated_ci_high", "calibrated, high", "Upper end.", "number"),
    Column("cosine_sd", "cosine SD", "Standard deviation of cosines between pairs of frequent words.", "number"),
    Column("share_targets", "of targets", "Share of target words in the variance of D.", "share"),
    Column("share_attributes", "of attributes", "Share of attribute words.", "share"),
    Column("share_residual", "residual", "Share of what is neither.", "share"),
    Column("var_targets", "variance, targets", "Variance of a target's association, in cosines squared.", "number"),
    Column("var_attributes", "variance, attributes", "The same of an attribute's association.", "number"),
    Column("var_residual", "variance, residual", "That of a single cosine beyond both.", "number"),
    Column("smallest_effect", "80% power", "A true d of this size would be found in 80 of 100 such tests.", "number"),
    Column("share_random", "random sets", "Random attribute sets of these sizes with an effect as large.", "share"),
    Column("random_sets", "sets drawn", "How many random attribute sets were drawn.", "count"),
    Column("margin", "margin", "A D that would not matter, in cosine units.", "number"),
    Column("p_equivalence", "p, equivalence", "Of the hypothesis that D is as large as the margin.", "p"),
    Column("shared_templates", "shared", "How much of their texts X and Y have in common.", "share"),
    Column("p_value_by_word", BY_WORD, "By word, exact: would a random split of the target words do as well?", "p"),
    Column("log10_p_value_by_word", f"log10 {BY_WORD}", "Its logarithm.", "number"),
    Column("p_route_by_word", "route by word", "How it was computed."),
    Column("p_error_by_word", "error by word", "Bound of its relative error.", "p"),
    Column("p_floor_by_word", "smallest p", "The smallest p (these words only) that so many words can give.", "p"),
    Column("num_words", "words", "Words measured, by role."),
    Column(
        "num_clusters", "clusters", "Words measured, with each cluster (he, him, his) counted once, by role.",
        get=lambda row: row.num_clusters if row.clusters else None,
    ),
    Column("clusters", "cluster of", "The cluster of every word that shares its cluster with another, by role."),
    Column("num_cut", "cut", "Texts that the model did not read to the end, by role."),
    Column("p_value_holm", "p by text, Holm", "After Holm's correction over the family.", "p"),
    Column("significant", "by text", "p by text at or below alpha.", "flag"),
    Column("significant_holm", "by text, Holm", "The same after correction.", "flag"),
    Column("p_value_by_word_holm", f"{BY_WORD}, Holm", "After Holm's correction over the family.", "p"),
    Column("significant_by_word", "by word", "p (these words only) at or below alpha.", "flag"),
    Column("significant_by_word_holm", "by word, Holm", "The same after correction.", "flag"),
    Column("protocol", "protocol", "How the p-value by text was found."),
    Column("alternative", "alternative", "Direction of p (these words only) and of p by text: one (greater) or both "
           "(two-sided)."),
    Column("alpha", "alpha", "Level of significance.", "number"),
    Column("seed", "seed", "Of what was drawn.", "count"),
    Column("source", "source", "The collection of the test."),
    Column("test_version", "version", "Of the test's data."),
    Column("test_digest", "digest", "Fingerprint of its texts and words, the same for a test and its export."),
    REVISION,
    Column("lost", "lost", "Words that the model does not know, by role; over contexts, with too few usable ones."),
    Column("undeclared", "undeclared", "Words that look like forms of one word and are not declared as a cluster."),
    Column("searched", "searched", "The words were found by searching this model: the effect is descriptive.", "flag"),
    Column("searched_correlation", "relative", "Correlation with the cosines of the searched model, for its relatives.",
           "number"),
    Column("p_value_by_word_opposite", "p, opposite",
           "p (these words only) of the opposite direction, where d is negative.", "p"),
    Column("too_rare", "too rare", "Of these, words that are too rare in the corpus; others could not be placed."),
    _over_contexts("standard_error", "standard error", "Of the pooled effect."),
    _over_contexts("z", "z", "Pooled effect over its standard error."),
    _over_contexts("new_contexts_low", "new contexts, low", "Where 95% of effects of these words lie in new contexts, "
                   "from new documents: lower end. Empty if some word has contexts from one document only."),
    _over_contexts("new_contexts_high", "new contexts, high", "Upper end."),
    _over_contexts("fewest_documents", "documents", "Fewest documents from which the contexts of a word come.",
                   "count"),
    _over_contexts("share_significant", "samples", "Samples of contexts with a p-value at or below alpha.", "share"),
    _over_contexts("n_samples", "n", "Samples of contexts.", "count"),
)  # fmt: skip

_DIAGNOSTICS = (
    *MODEL,
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
    REVISION,
)

_SCALES = (
    *MODEL,
    Column("form", "form", "How the words were put into text."),
    Column("cosine_sd", "cosine SD", "Standard deviation of cosines between pairs of the words.", "number"),
    Column("number", "words", "Number of words.", "count", lambda row: len(row.words)),
    REVISION,
)

COLUMNS = (*PAPER_COLUMNS, *_OWN)
_SHOWN = (
    *("model", "options", "test", "title", "status", "effect_size_by_word", "d_low", "d_high"),
    *("p_value_crossed", "p_value_crossed_holm", "p_value_by_word", "share_random"),
)
DIAGNOSTICS = TableSpec("diagnostics", "Words of the tests", Diagnostics, _DIAGNOSTICS)
SCALES = TableSpec("scales", "Spread of cosines between frequent words", Scale, _SCALES, key=("form",), detail=True)
RESULTS = TableSpec("results", "Association tests", Result, COLUMNS, shown=_SHOWN)
