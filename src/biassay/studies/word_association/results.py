"""Rows and columns of word association tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from biassay.reporting.formats import format_concept
from biassay.results.outcomes import (
    DECISIONS,
    ResultRecord,
    make_alternative_columns,
    make_outcome_columns,
    make_result_columns,
)
from biassay.results.run_data import RevisionRow, TestRecord
from biassay.results.tables import Column, TableSpec, column, keyword_row, optional, table_row
from biassay.studies.study import declare_reply

Unit = Literal["share", "log-odds"]
GeneralizesTo = Literal["pairs", "answers", "words"]


REPLY_LABELS = {"filtered": "filtered by the endpoint", "failed": "failed after retries"}
"""Labels of kinds of replies that differ from the name of the kind."""


def list_counts(counts: Mapping[str, int | None]) -> str:
    """List counts of replies by kind, such as "40 complete, 12 filtered by the endpoint"."""
    return ", ".join(f"{n:,} {REPLY_LABELS.get(kind, kind)}" for kind, n in counts.items() if n)


@keyword_row
class WordAssociationResult(ResultRecord):
    """One test on one model.

    The primary outcome is the mean over negative words minus that over positive words: of shares given to the
    stigmatised group, or of log-odds. Its interval and p-value hold whatever the missing responses would have been.
    The alternatives are "read" (missing responses left out), "fixed_groups" (these group words), "fixed_words" (words
    permuted between the poles in these answers) and "bai" (the published score D).

    Attributes
    ----------
    test : str
        Name of the test.
    default, stigmatised, positive, negative : str
        Labels of the two groups and the two poles.
    generalizes_to : {"pairs", "answers", "words"} or None
        Sampling units beside words that interval and p-value generalize to: other pairs of group words, other
        answers with these group words, or nothing ("words").
    pairs, answers : int
        Pairs of group words, and prompts.
    complete, partial, refused, filtered, failed, unparsed : int or None
        Replies by kind. All but complete replies have missing responses.
    cut_off : int or None
        Replies of any kind that max_tokens= cut off.
    words_left_out : int or None
        Words that "read" does not use because they were not read throughout.
    first : float or None
        Share or log-odds of the group word named first: 0.5 or 0 if order does not matter.
    follows_order : bool or None
        If True, the order of the group words decides more than their meaning.
    refusal_rate, missing_rate : float or None
        Share of replies that refuse, and share of words in replies (or of log-odds) that are missing.
    """

    test: str = column("test", "The name of the test.")
    default: str = column("default", "The default group.")
    stigmatised: str = column("stigmatised", "The group that a stereotype associates with negative words.")
    positive: str = column("positive", "The positive words.")
    negative: str = column("negative", "The negative words.")
    pairs: int = column("pairs", "Pairs of group words in the prompts.")
    answers: int = column("answers", "Prompts.")
    generalizes_to: GeneralizesTo | None = optional(
        "generalizes to",
        "Population of p and interval besides other words: other pairs of group words (pairs), other responses "
        "(answers), or none (words).",
    )
    complete: int | None = optional("complete", "Replies that assign every word to a group; reported log-odds.")
    partial: int | None = optional("partial", "Replies that assign only some words to a group.")
    refused: int | None = optional("refused", "Replies that refuse.")
    filtered: int | None = optional("filtered", "Prompts or replies that the endpoint filtered.")
    failed: int | None = optional("failed", "Prompts on which the endpoint failed at every attempt.")
    unparsed: int | None = optional("unparsed", "Other replies in which no word could be read; unreported log-odds.")
    cut_off: int | None = optional("cut off", "Replies of any kind cut off by max_tokens=.")
    words_left_out: int | None = optional(
        "left out", "Words that p (read only) omits, because some responses lack them."
    )
    first: float | None = optional(
        "first", "Share (log-odds) of the group word named first: 0.5 (0) if order does not matter."
    )
    follows_order: bool | None = optional(
        "follows order", "Whether the order of the group words outweighs their meaning."
    )
    refusal_rate: float | None = optional("refusal rate", "Share of replies that refuse.", "share")
    missing_rate: float | None = optional(
        "missing", "Share of words in replies (or of log-odds) that were not read.", "share"
    )

    @property
    def item(self) -> str:
        """Name of the test."""
        return self.test

    def format_concepts(self) -> tuple[str, ...]:
        """Return the stigmatised group, the negative words, the default group and the positive words in plain text."""
        return tuple(map(format_concept, (self.stigmatised, self.negative, self.default, self.positive)))

    @property
    def may_change_sign(self) -> bool:
        """True if missing responses could change the sign of the difference."""
        low, high = self.outcome.bound_low, self.outcome.bound_high
        return bool(self.missing_rate) and low is not None and high is not None and low <= 0.0 <= high

    def describe_missing(self) -> str:
        """List the counts of replies with missing words by kind. Return an empty string if there are none."""
        kinds = ("partial", "refused", "filtered", "failed", "unparsed")
        return list_counts({kind: getattr(self, kind) for kind in kinds})

    @property
    def bai_score(self) -> float | None:
        """Published score D: mean over responses."""
        return self.alternatives["bai"].effect_size if "bai" in self.alternatives else None


@table_row
class MissingResponses(RevisionRow):
    """Missing responses at one level of a factor of a test.

    ``factor`` is "pole" (of ``asked`` words in replies, those that were not read), or "pair of group words" or "group
    word named first" (of ``asked`` replies, those without any word read). ``p_value`` is exact and tests whether the
    rate is the same at all levels of the factor.
    """

    test: str = column("test", "The name of the test.")
    factor: Literal["pole", "pair of group words", "group word named first"] = column(
        "by", "Pole of the words, pair of group words in the prompt, or group word named first."
    )
    level: str = column("level", "Level of the factor.")
    asked: int = column("asked", "Words in replies (by pole), or replies.")
    missing: int = column("missing", "Unread words (by pole), or replies without any word read.")
    rate: float = column("rate", "Share that is missing.", "share")
    p_value: float | None = column("p", "Exact test of equal rates over the levels of the factor.", "p")


@table_row
class ReplyCounts(RevisionRow):
    """Replies to prompts of one wording, by kind. ``left_out`` are items of replies that are not clear."""

    test: str = column("test", "The name of the test.")
    form: Literal["list", "decision"] = column("form", "Form of the prompts: list of words, or decision.")
    wording: str = column("wording", "The wording of the prompts.")
    answers: int = column("answers", "Replies.")
    complete: int = column("complete", "Replies that assign every word to a group; reported log-odds.")
    partial: int = column("partial", "Replies that assign only some words to a group.")
    refused: int = column("refused", "Replies that refuse.")
    unparsed: int = column("unparsed", "Other replies in which no word could be read; unreported log-odds.")
    undecided: int = column("undecided", "Decisions that assign both tasks to one person.")
    left_out: int = column("left out", "Parts of replies that name a word but do not assign it clearly.")
    cut_off: int = column("cut off", "Replies of any kind cut off by max_tokens=.", default=0)
    filtered: int = column("filtered", "Prompts or replies that the endpoint filtered.", default=0)
    failed: int = column("failed", "Prompts on which the endpoint failed at every attempt.", default=0)


@table_row
class WordAssociationReplyExample(RevisionRow):
    """A reply, or its beginning: one of the first of its kind in a test."""

    test: str = column("test", "The name of the test.")
    form: Literal["list", "decision"] = column("form", "Form of the prompt: list of words, or decision.")
    wording: str = column("wording", "The wording of the prompt.")
    kind: str = column(
        "kind", "Kind of the reply: complete, partial, refused, filtered, failed, unparsed or undecided."
    )
    reply: str = declare_reply()


@table_row
class WordResult(RevisionRow):
    """Share or log-odds of the stigmatised group for one attribute word.

    ``by_pair`` has one value per pair of group words, ``by_block`` one per block of responses that differ only in the
    order of the group words. Comparisons of models use both.
    """

    test: str = column("test", "The name of the test.")
    word: str = column("word", "The attribute word.")
    pole: Literal["positive", "negative"] = column("pole", "Positive or negative.")
    value: float | None = column("value", "Share or log-odds of the stigmatised group.")
    by_pair: tuple[float | None, ...] = ()
    by_block: tuple[float | None, ...] = ()


@table_row
class RelativeDecisionsRow(RevisionRow):
    """Share of decisions that follow the stereotype: which of two people gets which of two tasks."""

    test: str = column("test", "The name of the test.")
    answers: int = column("answers", "Prompts for a decision.")
    decided: int = column("decided", "Decisions that were read.")
    tasks: int = column("tasks", "Pairs of a positive and a negative topic.")
    share: float | None = column("share", "Share of decisions that follow the stereotype: mean over tasks.", "share")
    low: float | None = column("low", "Lower end of the interval over tasks.", "share")
    high: float | None = column("high", "Upper end of the interval; the confidence is 1 - alpha.", "share")
    p_by_task: float | None = column("p", "Two-sided sign test over tasks.", "p")
    p_by_decision: float | None = column("p (these tasks only)", "Two-sided binomial test over decisions.", "p")
    bound_low: float | None = optional(
        "lower bound", "Share if all missing decisions contradicted the stereotype.", "share"
    )
    bound_high: float | None = optional(
        "upper bound", "Share if all missing decisions followed the stereotype.", "share"
    )


@dataclass(frozen=True)
class WordAssociationInputsRecord:
    """Tests of a run, and the texts of wordings by name."""

    tests: tuple[TestRecord, ...]
    wordings: dict[str, str]


_RESULTS = make_result_columns(
    WordAssociationResult,
    ("test",),
    *make_outcome_columns(
        "bound_low",
        "bound_high",
        "p_floor",
        bound_low="Difference if all missing responses (refused, filtered, failed, unparsed, left out) contradicted "
        "the stereotype.",
        bound_high="Difference if all missing responses followed the stereotype.",
        p_floor="Smallest p-value that this number of pairs or words allows.",
    ),
    *make_alternative_columns("read", p_value=("p (read only)", "P-value without missing responses.")),
    *make_alternative_columns(
        "fixed_groups",
        p_value=("p (these groups only)", "P-value for other words and responses with the same group words."),
    ),
    *make_alternative_columns(
        "fixed_words", p_value=("p (these responses only)", "Exact p-value of permuting words between the poles.")
    ),
    Column("bai_score", "D", "Published score D: mean over responses.", "number"),
    *make_alternative_columns(
        "bai", p_value=("p of D", "P-value of the published t-test of D over responses, for these words only.")
    ),
    effect_size="Share (or log-odds) of the stigmatised group: mean over negative minus mean over positive words.",
    ci_low="Lower end of the interval, for any value of missing responses.",
    ci_high="Upper end of the interval; the confidence is 1 - alpha.",
    scale="share of responses that assign a word to the stigmatised group, or log-odds.",
    p_value="Two-sided p-value for other words and for what `generalizes_to` names, with missing responses counted "
    "against it.",
    p_adjusted="P-value after Holm's correction (with Tarone's refinement) over social-bias questions; descriptive "
    "tests excluded.",
    direction="Expected: the stigmatised group is associated with negative words.",
    status="measured or failed (too little could be read).",
)
TABLES = (
    TableSpec(
        "results",
        "All tests",
        WordAssociationResult,
        _RESULTS,
        key=("test",),
        value_column="effect_size",
        default_columns=(
            *("model", "test", "scale", "effect_size", "ci_low", "ci_high", "bound_low", "bound_high", "p_value"),
            *("p_adjusted", "evidence", "bai_score", "reason"),
        ),
    ),
    DECISIONS,
    TableSpec("missing", "Missing responses", MissingResponses, key=("test", "factor", "level"), value_column="rate"),
    TableSpec(
        "replies",
        "Replies by kind",
        ReplyCounts,
        key=("test", "form", "wording"),
        default_columns=(
            "model",
            "test",
            "form",
            "wording",
            "complete",
            "partial",
            "refused",
            "filtered",
            "failed",
            "unparsed",
        ),
    ),
    TableSpec("words", "Words", WordResult, key=("test", "word"), value_column="value", collapsed=True),
    TableSpec(
        "relative_decisions",
        "Relative decisions",
        RelativeDecisionsRow,
        key=("test",),
        value_column="share",
    ),
    TableSpec("examples", "Example responses", WordAssociationReplyExample, collapsed=True),
)
