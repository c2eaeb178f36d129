"""The tables of word association tests."""

from __future__ import annotations

from biassay.results.tables import MODEL, REVISION, Column, TableSpec
from biassay.studies.examples import REPLY
from biassay.studies.word_association.records import Counts, DecisionsResult, Example, Missing, Result, WordResult

__all__ = ["TABLES"]

_ASKED = (
    *MODEL,
    REVISION,
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
    Column("title", "title", "The test in words."),
    Column("topic", "topic", "Gender, race, age, ...; see tests.md."),
    Column("about", "about", "Whether it is about people, or checks the method."),
    Column("status", "status", "Measured, or unanswered (too little could be read)."),
    Column("reason", "reason", "Why it was not measured."),
    Column("default", "default", "The group that is the default."),
    Column("stigmatised", "stigmatised", "The group that a stereotype gives negative words to."),
    Column("positive", "positive", "The positive words."),
    Column("negative", "negative", "The negative words."),
    Column("pairs", "pairs", "Pairs of group words that were asked about.", "count"),
    Column("answers", "answers", "Prompts that were asked.", "count"),
    *_KINDS,
    Column("unit", "unit", "Of the difference: share of words given to the stigmatised group, or log-odds."),
    Column("d", "D", "The published score: mean over answers.", "number"),
    Column("d_p_value", "p of D", "The published t-test of D over answers: of these very words.", "p"),
    Column("difference", "difference", "Negative words less positive ones: given to the stigmatised group.", "number"),
    Column("low", "low", "Lower end of the interval, whatever missing responses would have been.", "number"),
    Column("high", "high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column(
        "bound_low",
        "lower bound",
        "Difference with all missing responses (refused, filtered, failed, unparsed, left out) counted against the "
        "stereotype.",
        "number",
    ),
    Column("bound_high", "upper bound", "Difference with all of them counted for the stereotype.", "number"),
    Column(
        "claim",
        "holds for other",
        "What p and the interval hold for: other words with other pairs of group words (pairs), other words with other "
        "answers (answers), or other words alone (words).",
    ),
    Column(
        "p_value",
        "p",
        "Two-sided p-value for other words and other units of the claim, whatever missing responses would have been.",
        "p",
    ),
    Column("p_value_read", "p, read", "p with missing responses left out.", "p"),
    Column(
        "p_value_holm",
        "p, Holm",
        "After Holm's correction (with Tarone's refinement) over social-bias questions; descriptive tests excluded.",
        "p",
    ),
    Column("family", "family", "Questions that are corrected together; a question counts once.", "count"),
    Column("p_floor", "smallest p", "The smallest p-value that so many pairs or words can have.", "p"),
    Column("words_left_out", "left out", "Words not read throughout, which p, read, does not use.", "count"),
    Column("p_these_groups", "p, these groups", "With other words and answers, and these group words.", "p"),
    Column(
        "p_by_word", "p (these answers only)", "Words exchanged between the poles in these very answers, exactly.", "p"
    ),
    Column("first", "first", "Of the group word named first: 0.5 (log-odds: 0) if order does not count.", "number"),
    Column(
        "follows_order", "follows order", "If the order of the group words decides more than their meaning.", "flag"
    ),
    Column("refusal_rate", "refusal rate", "Share of replies that refuse.", "share"),
    Column("missing_rate", "missing", "Share of words in replies (or of log-odds) that were not read.", "share"),
    Column("descriptive", "descriptive", "If no response could make the test significant: too few pairs.", "flag"),
    Column(
        "evidence",
        "evidence",
        "significant (after correction), uncorrected, inconclusive, not_testable, descriptive, or skipped.",
    ),
    Column("evidence_reason", "because", "Why it is not significant, where the p-value alone does not say so."),
    Column("alpha", "alpha", "Level of significance.", "number"),
    Column("variant_of", "variant of", "The question, if the test is another form of it."),
    Column("form_of", "form of", "The test that stands for the question in the correction, if it is another one."),
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
    REPLY,
)
TABLES = (
    TableSpec(
        "results",
        "Word association tests",
        Result,
        _RESULTS,
        key=("test",),
        number="difference",
        shown=(
            *("model", "test", "unit", "difference", "low", "high", "bound_low", "bound_high", "p_value"),
            *("p_value_holm", "evidence", "d", "reason"),
        ),
    ),
    TableSpec("missing", "Missing responses", Missing, _MISSING, key=("test", "factor", "level"), number="rate"),
    TableSpec(
        "replies",
        "Replies by kind",
        Counts,
        _COUNTS,
        key=("test", "form", "wording"),
        shown=("model", "test", "form", "wording", "complete", "partial", "refused", "filtered", "failed", "unparsed"),
    ),
    TableSpec("words", "Every word", WordResult, _WORDS, key=("test", "word"), number="value", detail=True),
    TableSpec("decisions", "Relative decisions", DecisionsResult, _DECISIONS, key=("test",), number="share"),
    TableSpec("examples", "Examples of replies", Example, _EXAMPLES, detail=True),
)
