"""Rows and columns of word association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.results.outcomes import (
    DECISIONS,
    Result,
    ResultRecord,
    join_decisions,
    make_alternative_columns,
    make_outcome_columns,
)
from biassay.results.run_data import BaseRecord, RunData, TestRecord
from biassay.results.tables import MODEL_COLUMNS, REVISION_COLUMN, Column, TableSpec
from biassay.studies.study import REPLY_COLUMN

__all__ = [
    "TABLES",
    "GeneralizesTo",
    "MissingResponses",
    "RelativeDecisionsRow",
    "ReplyCounts",
    "Unit",
    "WordAssociationInputsRecord",
    "WordAssociationReplyExample",
    "WordAssociationResult",
    "WordResult",
    "get_results",
]


Unit = Literal["share", "log-odds"]
GeneralizesTo = Literal["pairs", "answers", "words"]


@dataclass(frozen=True, kw_only=True)
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
        What interval and p-value generalise to beside other words: other pairs of group words, other answers with
        these group words, or nothing ("words").
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

    test: str
    default: str
    stigmatised: str
    positive: str
    negative: str
    pairs: int
    answers: int
    generalizes_to: GeneralizesTo | None = None
    complete: int | None = None
    partial: int | None = None
    refused: int | None = None
    filtered: int | None = None
    failed: int | None = None
    unparsed: int | None = None
    cut_off: int | None = None
    words_left_out: int | None = None
    first: float | None = None
    follows_order: bool | None = None
    refusal_rate: float | None = None
    missing_rate: float | None = None

    @property
    def item(self) -> str:
        """Name of the test."""
        return self.test

    @property
    def bai_score(self) -> float | None:
        """The published score D: mean over answers."""
        return self.alternatives["bai"].effect_size if "bai" in self.alternatives else None


def get_results(run: RunData) -> tuple[Result, ...]:
    """Return the records of a run with their decisions."""
    return join_decisions(run.tables.get("results", ()), run.tables.get("decisions", ()))


@dataclass(frozen=True)
class MissingResponses(BaseRecord):
    """Missing responses at one level of a factor of a test.

    ``factor`` is "pole" (of ``asked`` words in replies, those that were not read), or "pair of group words" or "group
    word named first" (of ``asked`` replies, those without any word read). ``p_value`` is exact and tests whether the
    rate is the same at all levels of the factor.
    """

    model: str
    options: str
    model_revision: str | None
    test: str
    factor: Literal["pole", "pair of group words", "group word named first"]
    level: str
    asked: int
    missing: int
    rate: float
    p_value: float | None


@dataclass(frozen=True)
class ReplyCounts(BaseRecord):
    """Replies to prompts of one wording, by kind. ``left_out`` are items of replies that are not clear."""

    model: str
    options: str
    model_revision: str | None
    test: str
    form: Literal["list", "decision"]
    wording: str
    answers: int
    complete: int
    partial: int
    refused: int
    unparsed: int
    undecided: int
    left_out: int
    cut_off: int = 0
    filtered: int = 0
    failed: int = 0


@dataclass(frozen=True)
class WordAssociationReplyExample(BaseRecord):
    """A reply, or its beginning: one of the first of its kind in a test."""

    model: str
    options: str
    model_revision: str | None
    test: str
    form: Literal["list", "decision"]
    wording: str
    kind: str
    reply: str


@dataclass(frozen=True)
class WordResult(BaseRecord):
    """What a model gives to one attribute word: the share of the stigmatised group, or its log-odds.

    ``by_pair`` and ``by_block`` are the same by pair of group words, and by block of answers that differ in the order
    of the group words alone: what two models are compared by.
    """

    model: str
    options: str
    model_revision: str | None
    test: str
    word: str
    pole: Literal["positive", "negative"]
    value: float | None
    by_pair: tuple[float | None, ...] = ()
    by_block: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class RelativeDecisionsRow(BaseRecord):
    """Who of two people gets which of two tasks: the share of decisions that follow the stereotype."""

    model: str
    options: str
    model_revision: str | None
    test: str
    answers: int
    decided: int
    tasks: int
    share: float | None
    low: float | None
    high: float | None
    p_by_task: float | None
    p_by_decision: float | None
    bound_low: float | None = None
    bound_high: float | None = None


@dataclass(frozen=True)
class WordAssociationInputsRecord:
    """What was asked: tests, and the texts of wordings by name."""

    tests: tuple[TestRecord, ...]
    wordings: dict[str, str]


_ASKED = (
    *MODEL_COLUMNS,
    REVISION_COLUMN,
    Column("test", "test", "The name of the test."),
)
_KINDS = (
    Column("complete", "complete", "Replies that give every word to a group; log-odds that are told.", "count"),
    Column("partial", "partial", "Replies that give some words to a group.", "count"),
    Column("refused", "refused", "Replies that refuse.", "count"),
    Column("filtered", "filtered", "Prompts or replies that the endpoint filtered.", "count"),
    Column("failed", "failed", "Prompts on which the endpoint failed at every attempt.", "count"),
    Column(
        "unparsed", "unparsed", "Other replies in which nothing could be read; log-odds that are not told.", "count"
    ),
    Column("cut_off", "cut off", "Replies of any kind that max_tokens= cut off.", "count"),
)
_RESULTS = (
    *_ASKED,
    *make_outcome_columns(
        effect_size="Mean over negative words minus that over positive words, of what the stigmatised group gets.",
        ci_low="Lower end of the interval, whatever missing responses would have been.",
        ci_high="Upper end of the interval; the confidence is 1 - alpha.",
        scale="share: of answers that give a word to the stigmatised group; or log-odds.",
        p_value="Two-sided p-value, for other words and what `generalizes_to` names, whatever missing responses would "
        "have been.",
        p_adjusted="P-value after Holm's correction (with Tarone's refinement) over social-bias questions; descriptive "
        "tests excluded.",
        direction="Expected: the stigmatised group gets negative words.",
    ),
    Column(
        "bound_low",
        "lower bound",
        "Difference with all missing responses (refused, filtered, failed, unparsed, left out) counted against the "
        "stereotype.",
        "number",
    ),
    Column("bound_high", "upper bound", "Difference with all of them counted for the stereotype.", "number"),
    Column("p_floor", "smallest p", "Smallest p-value that this number of pairs or words allows.", "p"),
    *make_alternative_columns("read", {"p_value": ("p, read", "P-value with missing responses left out.")}),
    *make_alternative_columns(
        "fixed_groups",
        {"p_value": ("p (these groups only)", "P-value for other words and answers, with these group words.")},
    ),
    *make_alternative_columns(
        "fixed_words",
        {"p_value": ("p (these answers only)", "Exact p-value: words permuted between the poles in these answers.")},
    ),
    Column("bai_score", "D", "The published score D: mean over answers.", "number"),
    *make_alternative_columns(
        "bai", {"p_value": ("p of D", "P-value of the published t-test of D over answers, for these words only.")}
    ),
    Column("title", "title", "The test in words."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("about", "about", "people: social-bias test; method: sanity check."),
    Column("status", "status", "measured or failed (too little could be read)."),
    Column("reason", "reason", "Why it was not measured."),
    Column("doubt", "doubt", "Why the evidence is not what the p-value alone suggests."),
    Column("question", "question", "The question, if the test is another form of it."),
    Column("form_of", "form of", "Test that stands for the question in the correction, if it is another one."),
    Column("family_size", "questions", "Questions that are corrected together; a question counts once.", "count"),
    Column("default", "default", "The default group."),
    Column("stigmatised", "stigmatised", "The group that a stereotype associates with negative words."),
    Column("positive", "positive", "The positive words."),
    Column("negative", "negative", "The negative words."),
    Column(
        "generalizes_to",
        "generalises to",
        "What p and the interval generalise to beside other words: other pairs of group words (pairs), other answers "
        "(answers), or nothing (words).",
    ),
    Column("pairs", "pairs", "Pairs of group words in the prompts.", "count"),
    Column("answers", "answers", "Prompts.", "count"),
    *_KINDS,
    Column("words_left_out", "left out", "Words not read throughout, which p, read, does not use.", "count"),
    Column("first", "first", "Of the group word named first: 0.5 (log-odds: 0) if order does not matter.", "number"),
    Column(
        "follows_order", "follows order", "If the order of the group words decides more than their meaning.", "flag"
    ),
    Column("refusal_rate", "refusal rate", "Share of replies that refuse.", "share"),
    Column("missing_rate", "missing", "Share of words in replies (or of log-odds) that were not read.", "share"),
    Column("warnings", "warnings", "What changes how the difference is read."),
)
_MISSING = (
    *_ASKED,
    Column("factor", "by", "Pole of the words, pair of group words in the prompt, or group word named first."),
    Column("level", "level", "Level of the factor."),
    Column("asked", "asked", "Words in replies (by pole), or replies.", "count"),
    Column("missing", "missing", "Words that were not read (by pole), or replies without any word read.", "count"),
    Column("rate", "rate", "Share that is missing.", "share"),
    Column("p_value", "p", "Exact test of equal rates over the levels of the factor.", "p"),
)
_COUNTS = (
    *_ASKED,
    Column("form", "form", "Prompts that list words, or ask for a decision."),
    Column("wording", "wording", "The wording of the prompts."),
    Column("answers", "answers", "Replies.", "count"),
    *_KINDS,
    Column("undecided", "undecided", "Decisions that give both tasks to one person.", "count"),
    Column("left_out", "left out", "Items of replies that name a word and are not clear.", "count"),
)
_WORDS = (
    *_ASKED,
    Column("word", "word", "The attribute word."),
    Column("pole", "pole", "Positive or negative."),
    Column("value", "value", "Share given to the stigmatised group, or log-odds.", "number"),
)
_DECISIONS = (
    *_ASKED,
    Column("answers", "answers", "Decisions that were asked for.", "count"),
    Column("decided", "decided", "Decisions that were read.", "count"),
    Column("tasks", "tasks", "Pairs of a positive and a negative topic.", "count"),
    Column("share", "share", "Of decisions that follow the stereotype: mean over tasks.", "share"),
    Column("low", "low", "Lower end, over tasks.", "share"),
    Column("high", "high", "Upper end; the confidence is 1 - alpha.", "share"),
    Column("bound_low", "lower bound", "Share with missing decisions counted against the stereotype.", "share"),
    Column("bound_high", "upper bound", "Share with missing decisions counted for the stereotype.", "share"),
    Column("p_by_task", "p by task", "Sign test over tasks, two-sided.", "p"),
    Column("p_by_decision", "p by decision", "Binomial test of these very tasks, two-sided.", "p"),
)
_EXAMPLES = (
    *_ASKED,
    Column("form", "form", "A prompt that lists words, or asks for a decision."),
    Column("wording", "wording", "The wording of the prompt."),
    Column(
        "kind", "kind", "How the reply was read: complete, partial, refused, filtered, failed, unparsed, or undecided."
    ),
    REPLY_COLUMN,
)
TABLES = (
    TableSpec(
        "results",
        "Word association tests",
        WordAssociationResult,
        _RESULTS,
        rows=get_results,
        key=("test",),
        number="effect_size",
        shown=(
            *("model", "test", "scale", "effect_size", "ci_low", "ci_high", "bound_low", "bound_high", "p_value"),
            *("p_adjusted", "evidence", "bai_score", "reason"),
        ),
    ),
    DECISIONS,
    TableSpec(
        "missing", "Missing responses", MissingResponses, _MISSING, key=("test", "factor", "level"), number="rate"
    ),
    TableSpec(
        "replies",
        "Replies by kind",
        ReplyCounts,
        _COUNTS,
        key=("test", "form", "wording"),
        shown=("model", "test", "form", "wording", "complete", "partial", "refused", "filtered", "failed", "unparsed"),
    ),
    TableSpec("words", "Every word", WordResult, _WORDS, key=("test", "word"), number="value", detail=True),
    TableSpec(
        "relative_decisions", "Relative decisions", RelativeDecisionsRow, _DECISIONS, key=("test",), number="share"
    ),
    TableSpec("examples", "Examples of replies", WordAssociationReplyExample, _EXAMPLES, detail=True),
)
