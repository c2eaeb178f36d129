"""Rows, columns and findings of robustness."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from biassay.reporting.formats import format_count, format_decimal, format_interval
from biassay.results.findings import Finding
from biassay.results.outcomes import (
    DECISIONS,
    Result,
    ResultRecord,
    join_decisions,
    make_alternative_columns,
    make_outcome_columns,
)
from biassay.results.run_data import BaseRecord, RunData, TestRecord
from biassay.results.tables import MODEL_COLUMNS, REVISION_COLUMN, Column, TableSpec, select_columns
from biassay.results.views import model_key, model_labels
from biassay.studies.associations.findings import describe_direction

__all__ = [
    "KINDS",
    "NUMBERS",
    "SUMMARY",
    "TABLES",
    "Kind",
    "RobustnessInputsRecord",
    "RobustnessResult",
    "Specification",
    "get_results",
    "make_findings",
]


Kind = Literal["model", "template", "word", "subset", "matched"]
KINDS: tuple[Kind, ...] = ("model", "template", "word", "subset", "matched")
"""What a specification varies: the layer, pooling or similarity; the template; one word left out; half of the words;
words of equal frequency or number of tokens."""


@dataclass(frozen=True)
class Specification(BaseRecord):
    """One specification of a test and its result.

    Attributes
    ----------
    kind : Kind
        What differs from the first specification.
    reading, similarity, template : str
        Layer and pooling, similarity of vectors, and the only template; empty if it is the default.
    words : str
        Words that are measured; empty if all are.
    effect_size, ci_low, ci_high, p_value : float or None
        Effect size d, its interval and the p-value of the crossed test. None if d is undefined.
    n_words : dict of str to int
        Number of words by role.
    """

    model: str
    options: str
    model_revision: str | None
    test: str
    kind: Kind
    reading: str
    similarity: str
    template: str
    words: str
    effect_size: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    n_words: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class RobustnessResult(ResultRecord):
    """One test on one model over all its specifications.

    The primary outcome is that of the first specification, the model as it is by cosine: the same as in association
    tests, and corrected in the same families. Counts are over the specifications of the kinds model and template that
    have an effect size. They use all words, and no two of them give the same cosines.

    Alternatives are ``joint``, the median effect over these specifications with the p-value of a common relabelling of
    target words, for these attribute words only; ``without_word``, the effect without the word that leaves least of it
    or most of the opposite; ``equal_tokens`` and ``equal_frequency``, the effect of matched target words.

    Attributes
    ----------
    test, targ1, targ2, attr1, attr2 : str
        Name of the test and of its four word sets.
    alpha : float
        Level of significance.
    n_specifications, n_same_sign, n_significant : int
        Specifications; those with the sign of the first one; those of these with a p-value of at most alpha.
    min_effect_size, max_effect_size : float or None
        Range of the effect over the specifications.
    without_word : str or None
        Word that is left out in the alternative ``without_word``.
    share_sign_words, share_sign_subsets : float or None
        Share of left-out words, and of random halves, with the sign of the first specification.
    """

    test: str
    targ1: str
    targ2: str
    attr1: str
    attr2: str
    alpha: float = 0.05
    n_specifications: int = 0
    n_same_sign: int | None = None
    n_significant: int | None = None
    min_effect_size: float | None = None
    max_effect_size: float | None = None
    without_word: str | None = None
    share_sign_words: float | None = None
    share_sign_subsets: float | None = None

    @property
    def item(self) -> str:
        """Name of the test."""
        return self.test


@dataclass(frozen=True)
class RobustnessInputsRecord:
    """Tests of a robustness run, with digests."""

    tests: tuple[TestRecord, ...]


_RESULTS = (
    *MODEL_COLUMNS,
    REVISION_COLUMN,
    Column("test", "test", "Name of the test."),
    *make_outcome_columns(
        effect_size="Effect size d of the model as it is, by cosine.",
        ci_low="Lower end of the interval of d with other words of the same kinds; its confidence is 1 - alpha.",
        ci_high="Upper end of the interval of d.",
        p_value="P-value of d with other words of the same kinds (crossed test); two-sided.",
        p_adjusted="P-value after Holm's correction over the social-bias questions of a model.",
    ),
    *make_alternative_columns(
        "joint",
        {
            "effect_size": ("median d", "Median d over specifications of layer, pooling, similarity and template."),
            "p_value": (
                "joint p, these attributes",
                "P-value of the median for these attribute words: target words are relabelled in all specifications "
                "at once; two-sided.",
            ),
        },
    ),
    Column("without_word", "weakest word", "Word without which least of the effect is left."),
    *make_alternative_columns("without_word", {"effect_size": ("d without it", "d without this word.")}),
    *make_alternative_columns(
        "equal_tokens", {"effect_size": ("equal tokens", "d of target words with equal numbers of tokens.")}
    ),
    *make_alternative_columns(
        "equal_frequency", {"effect_size": ("equal frequency", "d of target words of about equal frequency.")}
    ),
    Column("title", "title", "The test in words."),
    Column("status", "status", "measured, skipped (too many words out of vocabulary) or failed (d is undefined)."),
    Column("reason", "reason", "Why it was not measured."),
    Column("about", "about", "people (social-bias test) or method (sanity check)."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("question", "question", "Test whose question it asks in another form; empty if it is the only form."),
    Column("form_of", "form of", "Test that stands for the question; empty if it is this one."),
    Column("family_size", "questions", "Number of questions corrected together.", "count"),
    Column("targ1", "X", "First targets."),
    Column("targ2", "Y", "Second targets."),
    Column("attr1", "A", "First attributes."),
    Column("attr2", "B", "Second attributes."),
    Column("n_specifications", "specifications", "Layers, poolings, similarities and templates, all words.", "count"),
    Column("min_effect_size", "min d", "Smallest d of these specifications.", "number"),
    Column("max_effect_size", "max d", "Largest d of these specifications.", "number"),
    Column("n_same_sign", "same sign", "Specifications with the sign of d.", "count"),
    Column("n_significant", "p at most alpha", "Specifications with the sign of d and a p of at most alpha.", "count"),
    Column("share_sign_words", "words left out", "Share of left-out words with the same sign.", "share"),
    Column("share_sign_subsets", "halves", "Share of random halves of the words with the same sign.", "share"),
    Column("alpha", "alpha", "Level of significance.", "number"),
)
_SPECIFICATIONS = (
    *MODEL_COLUMNS,
    REVISION_COLUMN,
    Column("test", "test", "Name of the test."),
    Column("kind", "kind", "What differs from the first: model, template, word, subset or matched."),
    Column("reading", "reading", "Layer and pooling; empty if the model has one only."),
    Column("similarity", "similarity", "Similarity of vectors."),
    Column("template", "template", "The only template; empty if all shared templates are used."),
    Column("words", "words", "Words that are measured; empty if all are."),
    Column("effect_size", "d", "Effect size d; empty if it is undefined.", "number"),
    Column("ci_low", "low", "Lower end of the interval of d with other words of the same kinds.", "number"),
    Column("ci_high", "high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column("p_value", "p", "P-value of the crossed test, two-sided.", "p"),
    Column("n_words", "words of", "Number of words by role."),
)


def get_results(run: RunData) -> tuple[Result, ...]:
    """Return the records of a run with their decisions."""
    return join_decisions(run.tables.get("results", ()), run.tables.get("decisions", ()))


TABLES = (
    TableSpec(
        "results",
        "Every number of the tests",
        RobustnessResult,
        _RESULTS,
        rows=get_results,
        key=("test",),
        number="joint_effect_size",
        shown=(
            *("model", "options", "test", "status", "effect_size", "p_value", "evidence", "joint_effect_size"),
            *("min_effect_size", "max_effect_size", "n_specifications", "n_same_sign", "n_significant"),
            *("joint_p_value", "without_word"),
        ),
        detail=True,
    ),
    TableSpec("specifications", "Every specification", Specification, _SPECIFICATIONS, detail=True),
    DECISIONS,
)


def _get_range(row: Result) -> tuple[float | None, float | None]:
    return row.min_effect_size, row.max_effect_size


def _format_count_of(row: Result, count: int | None) -> str | None:
    return None if count is None else f"{count:,} of {row.n_specifications:,}"


_D, _P = select_columns(_RESULTS, "effect_size", "p_value")
NUMBERS = (
    dataclasses.replace(_D, label="d"),
    _P,
    *select_columns(_RESULTS, "joint_effect_size"),
    Column("range", "range", "Smallest and largest d of the specifications.", "interval", _get_range),
    Column(
        "n_same_sign",
        "same sign",
        "Specifications with the sign of d.",
        "count",
        lambda row: _format_count_of(row, row.n_same_sign),
    ),
    Column(
        "n_significant",
        "p at most alpha",
        "Specifications with the sign of d and a p of at most alpha.",
        "count",
        lambda row: _format_count_of(row, row.n_significant),
    ),
    *select_columns(_RESULTS, "joint_p_value"),
)
"""Columns of a test in the terminal, the report and the paper."""


def _choose_summary_columns(run: RunData) -> tuple[Column, ...]:
    """Return these numbers and the weakest word, and the model if there are several."""
    labels = model_labels(run)
    model = Column("model", "model", "The model.", get=lambda row: labels[model_key(row)])
    named = (model,) if len(labels) > 1 else ()
    return (*named, *select_columns(_RESULTS, "test"), *NUMBERS, *select_columns(_RESULTS, "without_word", "reason"))


SUMMARY = TableSpec("summary", "Robustness of the tests", None, _choose_summary_columns, rows=get_results)
"""Table of the terminal and the report; it is not stored."""


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and test: that of association tests, and how robust it is."""
    labels = model_labels(run)
    return [_make_finding(result, labels[model_key(result)]) for result in get_results(run)]


def _make_finding(result: Result, label: str) -> Finding:
    outcome, decision = result.record.outcome, result.decision
    is_measured = outcome.effect_size is not None
    return Finding(
        model=label,
        item=result.test,
        title=result.title,
        topic=result.topic,
        about=result.about,
        evidence=decision.evidence,
        direction=describe_direction(result, outcome.effect_size) if is_measured else "",
        effect=outcome.effect_size,
        low=outcome.ci_low,
        high=outcome.ci_high,
        confidence=outcome.confidence,
        p_values={
            "crossed": outcome.p_value,
            "crossed, corrected": decision.p_adjusted,
            "joint, for these attribute words": result.alternatives["joint"].p_value if is_measured else None,
        },
        reason=result.record.reason,
        survives=tuple(_describe_robustness(result)) if is_measured else (),
        form_of=decision.form_of,
        opposite=decision.opposite,
    )


def _describe_robustness(result: Result) -> Iterator[str]:
    """Yield how many specifications agree, the range of the effect, and the word that matters most."""
    total = format_count(result.n_specifications, "specification")
    median = format_decimal(result.alternatives["joint"].effect_size)
    spread = format_interval(result.min_effect_size, result.max_effect_size)
    yield (
        f"same sign in {result.n_same_sign:,} of {total}, p at most {result.alpha:g} in {result.n_significant:,}; "
        f"median d = {median} ({spread})"
    )
    if result.without_word is not None:
        effect = result.alternatives["without_word"].effect_size
        changes_sign = (effect or 0.0) * (result.effect_size or 0.0) < 0.0
        yield (
            f"{'changes sign' if changes_sign else 'smallest'} without {result.without_word}: d = "
            f"{format_decimal(effect)}"
        )
