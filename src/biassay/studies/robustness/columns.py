"""The tables of robustness."""

from __future__ import annotations

from biassay.results.tables import Column, TableSpec
from biassay.studies.robustness.records import Result, Specification

__all__ = ["TABLES"]

_RESULTS = (
    Column("model", "model", "The model's name."),
    Column("options", "options", "Its settings."),
    Column("test", "test", "The name of the test."),
    Column("title", "title", "The test in words."),
    Column("status", "status", "Measured, refused (too many words lost) or failed (the statistic is undefined)."),
    Column("reason", "reason", "Why it was not measured."),
    Column("about", "about", "Whether it is about people, or checks the method."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("targ1", "X", "The first targets."),
    Column("targ2", "Y", "The second targets."),
    Column("attr1", "A", "The first attributes."),
    Column("attr2", "B", "The second attributes."),
    Column("d", "d", "Effect size by word of the model as it is, by cosine.", "number"),
    Column("choices", "choices", "Specifications with all words: layers, poolings, similarities, templates.", "count"),
    Column("d_median", "median d", "Of all choices.", "number"),
    Column("d_smallest", "smallest d", "Of all choices.", "number"),
    Column("d_largest", "largest d", "Of all choices.", "number"),
    Column("share_sign", "same sign", "Choices with the sign of d.", "share"),
    Column(
        "share_significant", "and significant", "Choices with the sign of d and a crossed p at most alpha.", "share"
    ),
    Column("p_joint", "joint p", "Of the median over choices, target words relabelled in all at once; two-sided.", "p"),
    Column("p_joint_holm", "joint p, Holm", "After Holm's correction over the tests about people of a model.", "p"),
    Column("family", "family", "Tests that are corrected together; a check of the method stands outside.", "count"),
    Column("without_word", "without", "The word without which least of the effect is left."),
    Column("d_without_word", "d without it", "What is left.", "number"),
    Column("share_sign_words", "words left out", "Same sign with each word left out in turn.", "share"),
    Column("share_sign_subsets", "halves", "Same sign with random halves of the words.", "share"),
    Column("d_equal_tokens", "equal tokens", "d of target words with equal numbers of tokens.", "number"),
    Column("d_equal_frequency", "equal frequency", "d of target words of about equal frequency.", "number"),
    Column("alpha", "alpha", "Level of significance.", "number"),
)
_SPECIFICATIONS = (
    Column("model", "model", "The model's name."),
    Column("options", "options", "Its settings."),
    Column("test", "test", "The name of the test."),
    Column("kind", "kind", "What differs from the first: model, template, word, subset or matched."),
    Column("reading", "reading", "Layer and pooling; empty: the model's own."),
    Column("similarity", "similarity", "How vectors are compared."),
    Column("template", "template", "The only template; empty: all that words share."),
    Column("words", "words", "Which words; empty: all."),
    Column("d", "d", "Effect size by word; empty: words cannot be told apart so.", "number"),
    Column("d_low", "d, low", "Of d with other words of the same kinds: lower end.", "number"),
    Column("d_high", "d, high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column("p_value_crossed", "p", "Crossed test, two-sided.", "p"),
    Column("num_words", "words of", "Words by role."),
)
TABLES = (
    TableSpec(
        "results",
        "What associations survive",
        Result,
        _RESULTS,
        key=("test",),
        number="d_median",
        shown=(
            *("model", "options", "test", "d", "choices", "d_median", "d_smallest", "d_largest"),
            *("share_sign", "share_significant", "p_joint", "p_joint_holm", "without_word", "d_without_word"),
        ),
    ),
    TableSpec("specifications", "Specifications", Specification, _SPECIFICATIONS),
)
