"""The tables of robustness."""

from __future__ import annotations

from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.tables import MODEL, REVISION, Column, TableSpec, pick
from biassay.studies.robustness.records import Result, Specification

__all__ = ["NUMBERS", "SUMMARY", "TABLES"]

_RESULTS = (
    *MODEL,
    REVISION,
    Column("test", "test", "The name of the test."),
    Column("title", "title", "The test in words."),
    Column("status", "status", "Measured, refused (too many words lost) or failed (the statistic is undefined)."),
    Column("reason", "reason", "Why it was not measured."),
    Column("about", "about", "Whether it is about people, or checks the method."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("direction", "expected sign", "Sign of the effect that the test expects; empty if it expects none."),
    Column("variant_of", "variant of", "The test of words that it puts into sentences."),
    Column("form_of", "form of", "The test that stands for the question; empty if it is this one."),
    Column("targ1", "X", "The first targets."),
    Column("targ2", "Y", "The second targets."),
    Column("attr1", "A", "The first attributes."),
    Column("attr2", "B", "The second attributes."),
    Column("d", "d", "Effect size by word of the model as it is, by cosine.", "number"),
    Column("d_low", "d, low", "Of d with other words of the same kinds: lower end.", "number"),
    Column("d_high", "d, high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column("p_value_crossed", "p", "Of d, with other words of the same kinds (crossed test); two-sided.", "p"),
    Column(
        "p_value_crossed_holm", "p, Holm", "After Holm's correction over the social-bias questions of a model.", "p"
    ),
    Column("family", "family", "Number of questions corrected together; sanity checks are not corrected.", "count"),
    Column("choices", "choices", "Layers, poolings, similarities and templates, with all words.", "count"),
    Column("d_median", "median d", "Of all choices.", "number"),
    Column("d_smallest", "min d", "Of all choices.", "number"),
    Column("d_largest", "max d", "Of all choices.", "number"),
    Column("same_sign", "same sign", "Choices with the sign of d.", "count"),
    Column("significant", "significant", "Choices with the sign of d and a crossed p of at most alpha.", "count"),
    Column(
        "p_joint",
        "joint p, these attributes",
        "For these attribute words: of the median over choices, target words relabelled in all at once; two-sided.",
        "p",
    ),
    Column("without_word", "weakest word", "The word without which least of the effect is left."),
    Column("d_without_word", "d without it", "What is left.", "number"),
    Column("share_sign_words", "words left out", "Same sign with each word left out in turn.", "share"),
    Column("share_sign_subsets", "halves", "Same sign with random halves of the words.", "share"),
    Column("d_equal_tokens", "equal tokens", "d of target words with equal numbers of tokens.", "number"),
    Column("d_equal_frequency", "equal frequency", "d of target words of about equal frequency.", "number"),
    Column("alpha", "alpha", "Level of significance.", "number"),
)
_SPECIFICATIONS = (
    *MODEL,
    REVISION,
    Column("test", "test", "The name of the test."),
    Column("kind", "kind", "What differs from the first: model, template, word, subset or matched."),
    Column("reading", "reading", "Layer and pooling; empty: the model's own."),
    Column("similarity", "similarity", "How vectors are compared."),
    Column("template", "template", "The only template; empty: all that words share."),
    Column("words", "words", "Which words; empty: all."),
    Column("d", "d", "Effect size by word; empty: not defined.", "number"),
    Column("d_low", "d, low", "Of d with other words of the same kinds: lower end.", "number"),
    Column("d_high", "d, high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column("p_value_crossed", "p", "Crossed test, two-sided.", "p"),
    Column("num_words", "words of", "Words by role."),
)
TABLES = (
    TableSpec(
        "results",
        "Every number of the tests",
        Result,
        _RESULTS,
        key=("test",),
        number="d_median",
        shown=(
            *("model", "options", "test", "status", "d", "p_value_crossed", "d_median", "d_smallest", "d_largest"),
            *("choices", "same_sign", "significant", "p_joint", "without_word"),
        ),
        detail=True,
    ),
    TableSpec("specifications", "Every specification", Specification, _SPECIFICATIONS, detail=True),
)


def _range(row: Result) -> tuple[float | None, float | None]:
    return row.d_smallest, row.d_largest


def _of(row: Result, count: int | None) -> str | None:
    return None if count is None else f"{count:,} of {row.choices:,}"


NUMBERS = (
    *pick(_RESULTS, "d", "p_value_crossed"),
    Column("d_median", "median d", "Over choices of layer, pooling, similarity and template.", "number"),
    Column("range", "range", "The smallest and the largest d of them.", "interval", _range),
    Column("same_sign", "same sign", "Choices with the sign of d.", "count", lambda row: _of(row, row.same_sign)),
    Column(
        "significant",
        "significant",
        "Choices with the sign of d and a p of at most alpha.",
        "count",
        lambda row: _of(row, row.significant),
    ),
    *pick(_RESULTS, "p_joint"),
)
"""What a person reads of a test."""


def _short(run: RunData) -> tuple[Column, ...]:
    """These numbers and the weakest word; models are named where there are several."""
    labels = model_labels(run)
    model = Column("model", "model", "The model.", get=lambda row: labels[model_key(row)])
    named = (model,) if len(labels) > 1 else ()
    return (*named, *pick(_RESULTS, "test"), *NUMBERS, *pick(_RESULTS, "without_word", "reason"))


SUMMARY = TableSpec("summary", "What the tests survive", None, _short, rows=lambda run: run.results)
"""For a terminal and a page; nothing in it is stored."""
