"""Rows, columns and findings of robustness runs, for association tests and for prompts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from biassay.reporting.formats import format_count, format_decimal, format_interval
from biassay.results.outcomes import (
    DECISIONS,
    Finding,
    Outcome,
    Result,
    ResultRecord,
    make_alternative_columns,
    make_outcome_finding,
    make_result_columns,
)
from biassay.results.run_data import RevisionRow, RunData, TestRecord, model_key, model_labels, none_if_nan
from biassay.results.tables import (
    Column,
    TableSpec,
    column,
    keyword_row,
    optional,
    select_columns,
    table_row,
)
from biassay.stats.specification_curve import JointResult
from biassay.studies.associations.findings import describe_direction, format_claim, format_label

Kind = Literal["model", "template", "word", "subset", "matched"]
"""Kind of a specification: the layer, pooling or similarity; the template; one word left out; half of the words;
words of equal frequency or number of tokens."""
ALL_WORDS: tuple[Kind, ...] = ("model", "template")
"""Kinds of specifications that use all words of a test."""
PromptKind = Literal["default", "wording", "order", "temperature", "system"]


@table_row
class Specification(RevisionRow):
    """One specification of a test and its result.

    Attributes
    ----------
    kind : Kind
        Difference from the first specification.
    representation, similarity, template : str
        Layer and pooling, similarity of vectors, and the only template; empty if it is the default.
    words : str
        Words that are measured; empty if all are.
    effect_size, standard_error, ci_low, ci_high, p_value : float or None
        Effect size d, its standard error, its interval and the p-value of the crossed test. None if d is undefined.
    n_words : dict of str to int
        Number of words by role.
    """

    test: str = column("test", "Name of the test.")
    kind: Kind = column("kind", "Difference from the first specification: model, template, word, subset or matched.")
    representation: str = column("layer, pooling", "Layer and pooling; empty if the model has one only.")
    similarity: str = column("similarity", "Similarity of vectors.")
    template: str = column("template", "The only template; empty if all shared templates are used.")
    words: str = column("words", "Words that are measured; empty if all are.")
    effect_size: float | None = column("d", "Effect size d; empty if it is undefined.")
    standard_error: float | None = column("SE", "Standard error of d over other words of the same kinds.")
    ci_low: float | None = column("low", "Lower end of the interval of d with other words of the same kinds.")
    ci_high: float | None = column("high", "Upper end; the confidence is 1 - alpha.")
    p_value: float | None = column("p", "P-value over other words of the same kinds, two-sided.", "p")
    n_words: dict[str, int] = column("number of words", "Number of words by role.")


@keyword_row
class _VariedResult(ResultRecord):
    """Summary of one item on one model over all specifications."""

    test: str = column("test", "Test, or category of the benchmark.")
    n_specifications: int = column(
        "specifications", "Specifications with an effect. Association tests: those with all words.", default=0
    )
    n_same_sign: int | None = optional("same sign", "Specifications with the sign of the default.")
    n_significant: int | None = optional("p at most alpha", "Number of these with p at most alpha, not corrected.")
    min_effect_size: float | None = optional("min", "Smallest effect of these specifications.")
    max_effect_size: float | None = optional("max", "Largest effect of these specifications.")

    @property
    def item(self) -> str:
        """Name of the test or category."""
        return self.test


@keyword_row
class RobustnessResult(_VariedResult):
    """One test on one model over all its specifications.

    The primary outcome is that of the first specification, the default representation with cosine, as in association
    tests, and is corrected in the same families. Counts are over the specifications of the kinds model and template
    that have an effect size. They use all words, and no two of them give the same cosines.

    Alternatives are ``joint``, the median effect over these specifications with the p-value of a common relabelling of
    target words, for these attribute words only; ``without_word``, the effect without the word that leaves least of it
    or most of the opposite; ``equal_tokens`` and ``equal_frequency``, the effect of matched target words.

    Attributes
    ----------
    targ1, targ2, attr1, attr2 : str
        Names of the four word sets.
    alpha : float
        Level of significance.
    without_word : str or None
        Word that is left out in the alternative ``without_word``.
    share_sign_words, share_sign_subsets : float or None
        Share of left-out words, and of random halves, with the sign of the first specification.
    """

    targ1: str = column("X", "First targets.")
    targ2: str = column("Y", "Second targets.")
    attr1: str = column("A", "First attributes.")
    attr2: str = column("B", "Second attributes.")
    alpha: float = column("alpha", "Level of significance.", default=0.05)
    without_word: str | None = optional("weakest word", "Word whose removal reduces the effect most.")
    share_sign_words: float | None = optional("words left out", "Share of left-out words with the same sign.", "share")
    share_sign_subsets: float | None = optional(
        "halves", "Share of random halves of the words with the same sign.", "share"
    )


@table_row
class PromptSpecification(RevisionRow):
    """Effect of an item under one specification of its prompts, relative to an unbiased model."""

    test: str = column("test", "Test, or category of the benchmark.")
    kind: PromptKind = column("kind", "Difference from the default: wording, order, temperature or system.")
    value: str = column("value", "The wording, order, temperature or system message.")
    effect_size: float | None = column("effect", "Effect, from the value of a model without bias.")
    ci_low: float | None = column("low", "Lower end of the interval; none for one order of group words.")
    ci_high: float | None = column("high", "Upper end; the confidence is 1 - alpha.")
    p_value: float | None = column("p", "P-value, not corrected.", "p")


@keyword_row
class PromptRobustnessResult(_VariedResult):
    """One item on one model over all specifications of its prompts.

    The primary outcome is that of the default specification: all wordings and orders, with the model's own temperature
    and system message. The alternative ``joint`` is the median effect with one p-value for all specifications.
    """


def summarize_specifications(
    rows: Sequence[Specification] | Sequence[PromptSpecification], alpha: float, joint: JointResult, test: str
) -> tuple[dict[str, Any], Outcome]:
    """Return the counts and the range of the effects of specifications, and their joint outcome.

    Parameters
    ----------
    rows : sequence of Specification or PromptSpecification
        Specifications. The first one is the default.
    alpha : float
        Level of significance.
    joint : JointResult
        Joint test of the specifications with an effect.
    test : str
        Name of the joint test.
    """
    counted = [row for row in rows if row.effect_size is not None]
    effects = [row.effect_size for row in counted if row.effect_size is not None]
    sign = math.copysign(1.0, effects[0])
    agree = [row for row in counted if (row.effect_size or 0.0) * sign > 0.0]
    counts = {
        "n_specifications": len(counted),
        "n_same_sign": len(agree),
        "n_significant": sum(row.p_value is not None and row.p_value <= alpha for row in agree),
        "min_effect_size": min(effects),
        "max_effect_size": max(effects),
    }
    median, p_value = none_if_nan(joint.median), none_if_nan(joint.p_value)
    return counts, Outcome(effect_size=median, p_value=p_value, test=test, n={"specifications": len(counted)})


@dataclass(frozen=True)
class RobustnessInputsRecord:
    """Tests of a robustness run, with digests."""

    tests: tuple[TestRecord, ...]


@dataclass(frozen=True)
class PromptRobustnessInputsRecord:
    """Digests of the tests, or of the benchmark's data."""

    digests: dict[str, str]


_RESULTS = make_result_columns(
    RobustnessResult,
    ("test",),
    *make_alternative_columns(
        "joint",
        effect_size=("median d", "Median d over specifications of layer, pooling, similarity and template."),
        p_value=(
            "p of median",
            "Two-sided permutation p-value of the median d, by relabelling the target words in all specifications "
            "at once. It does not generalize to other attribute words.",
        ),
    ),
    *make_alternative_columns("without_word", effect_size=("d without it", "Effect size d without this word.")),
    *make_alternative_columns(
        "equal_tokens", effect_size=("equal tokens", "Effect size d of target words with equal numbers of tokens.")
    ),
    *make_alternative_columns(
        "equal_frequency", effect_size=("equal frequency", "Effect size d of target words of about equal frequency.")
    ),
    effect_size="Effect size d with the default representation and cosine.",
    ci_low="Lower end of the interval of d with other words of the same kinds; its confidence is 1 - alpha.",
    ci_high="Upper end of the interval of d.",
    standard_error="Standard error of d over other words of the same kinds.",
    p_value="Tests, two-sided, whether the association extends to other words of the same kinds.",
    p_adjusted="P-value after Holm's correction over the social-bias questions of a model.",
    status="measured, skipped (too many words out of vocabulary) or failed (d is undefined).",
)


TABLES = (
    TableSpec(
        "results",
        "All numbers",
        RobustnessResult,
        _RESULTS,
        key=("test",),
        value_column="joint_effect_size",
        default_columns=(
            *("model", "options", "test", "status", "effect_size", "p_value", "evidence", "joint_effect_size"),
            *("min_effect_size", "max_effect_size", "n_specifications", "n_same_sign", "n_significant"),
            *("joint_p_value", "without_word"),
        ),
        collapsed=True,
    ),
    TableSpec("specifications", "All specifications", Specification, collapsed=True),
    DECISIONS,
)
PROMPT_TABLES = (
    TableSpec(
        "results",
        "All numbers",
        PromptRobustnessResult,
        make_result_columns(
            PromptRobustnessResult,
            ("test",),
            *make_alternative_columns(
                "joint",
                effect_size=(
                    "median",
                    "Median over specifications, in standard deviations of words or sampling units.",
                ),
                p_value=(
                    "p of median",
                    "Two-sided permutation p-value of the median: poles of words, or signs of sampling units, are "
                    "exchanged in all specifications at once.",
                ),
            ),
            status="measured or failed.",
        ),
        key=("test",),
        value_column="joint_effect_size",
        default_columns=(
            *("model", "test", "effect_size", "ci_low", "ci_high", "scale", "p_value", "evidence", "n_specifications"),
            *("n_same_sign", "n_significant", "min_effect_size", "max_effect_size", "joint_p_value"),
        ),
    ),
    TableSpec("specifications", "All specifications", PromptSpecification, collapsed=True),
    DECISIONS,
)


def _get_range(row: Result) -> tuple[float | None, float | None]:
    return row.min_effect_size, row.max_effect_size


def _format_share(row: Result, count: int | None) -> str | None:
    return None if count is None else f"{count:,} of {row.n_specifications:,}"


_D, _P, _SAME_SIGN, _SIGNIFICANT = select_columns(_RESULTS, "effect_size", "p_value", "n_same_sign", "n_significant")
NUMBERS = (
    dataclasses.replace(_D, label="d"),
    _P,
    *select_columns(_RESULTS, "joint_effect_size"),
    Column("range", "range", "Smallest and largest d of the specifications.", "interval", _get_range),
    dataclasses.replace(_SAME_SIGN, get=lambda row: _format_share(row, row.n_same_sign)),
    dataclasses.replace(_SIGNIFICANT, get=lambda row: _format_share(row, row.n_significant)),
    *select_columns(_RESULTS, "joint_p_value"),
)
"""Columns of a test in the terminal, the report and the paper."""


def _choose_summary_columns(run: RunData) -> tuple[Column, ...]:
    """Choose claim with test, these numbers and the weakest word, and the model if there are several."""
    labels = model_labels(run)
    model = Column("model", "model", "The model.", get=lambda row: labels[model_key(row)])
    claim = Column(
        "claim", "claim", "Tested association, and the test.", get=lambda row: f"{format_label(row)} ({row.test})"
    )
    first = (model, claim) if len(labels) > 1 else (claim,)
    return (*first, *NUMBERS, *select_columns(_RESULTS, "without_word", "reason"))


SUMMARY = TableSpec("summary", "Robustness of the tests", None, _choose_summary_columns, rows=attrgetter("results"))
"""Table of the terminal and the report; it is not stored."""


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and test: that of association tests, and how robust it is."""
    labels = model_labels(run)
    return [_make_finding(result, labels[model_key(result)]) for result in run.results]


def _make_finding(result: Result, label: str) -> Finding:
    outcome, decision = result.record.outcome, result.decision
    is_measured = outcome.effect_size is not None
    return make_outcome_finding(
        result,
        label,
        direction=describe_direction(result, outcome.effect_size) if is_measured else "",
        unit="d",
        limit=None,
        p_values={
            "crossed": outcome.p_value,
            "crossed, corrected": decision.p_adjusted,
            "p of median (these words only)": result.alternatives["joint"].p_value if is_measured else None,
        },
        robustness=tuple(describe_robustness(result, result.alpha)) if is_measured else (),
        notes=(),
        too_few_of="words",
        no_interval="",
        claim=format_claim(result, outcome.effect_size),
        label=format_label(result),
    )


def describe_robustness(result: Result, alpha: float) -> Iterator[str]:
    """Yield how many specifications agree, the range of the effect, and the word that matters most."""
    total = format_count(result.n_specifications, "specification")
    spread = format_interval(result.min_effect_size, result.max_effect_size)
    agreement = f"same sign in {result.n_same_sign:,} of {total}, p at most {alpha:g} in {result.n_significant:,}"
    if isinstance(result.record, PromptRobustnessResult):
        yield f"{agreement}; effects {spread}"
        return
    yield f"{agreement}; median d = {format_decimal(result.alternatives['joint'].effect_size)} ({spread})"
    if result.without_word is not None:
        effect = result.alternatives["without_word"].effect_size
        changes_sign = (effect or 0.0) * (result.effect_size or 0.0) < 0.0
        said = "changes sign" if changes_sign else "smallest"
        yield f"{said} without {result.without_word}: d = {format_decimal(effect)}"
