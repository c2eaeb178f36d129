"""The records of word association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.results.data import Record, TestRecord
from biassay.stimuli.model import About

__all__ = [
    "Counts",
    "DecisionsResult",
    "Evidence",
    "Example",
    "InputsRecord",
    "Missing",
    "Result",
    "Unit",
    "WordResult",
]

Evidence = Literal["significant", "uncorrected", "inconclusive", "not_testable", "descriptive", "skipped"]
Unit = Literal["share", "log-odds"]


@dataclass(frozen=True)
class Result(Record):
    """One test on one model.

    ``difference`` is the mean over negative words less that over positive ones: of shares given to the stigmatised
    group, or of log-odds. ``p_value`` and the interval hold for other words and other pairs of group words where there
    are several; else for other words and other answers; of one pair by log-odds, for other words. ``claim`` says which.
    ``p_floor`` is the smallest p-value that so many pairs, or words, can have.

    Refusals, prompts that the endpoint filtered or on which it failed at every attempt, unparsed replies and words
    that a reply leaves out are missing responses. ``bound_low`` and
    ``bound_high`` are the difference with all of them counted against the stereotype and for it (None: missing
    log-odds, which have no bounds). ``p_value``, ``low``, ``high`` and ``p_these_groups`` hold whatever the missing
    responses would have been; ``p_value_read`` leaves them out, and ``words_left_out`` counts the words that it does
    not use. ``evidence`` sums up the test, and ``evidence_reason`` says why it is not significant where the p-value
    alone does not. ``variant_of`` names the question if the test is another form of it, and ``form_of`` the test that
    stands for this question in the correction. ``follows_order`` is True if the order of the group words decides more
    than their meaning.
    """

    model: str
    options: str
    model_revision: str | None
    test: str
    title: str
    status: Literal["measured", "unanswered"]
    reason: str | None
    about: About
    topic: str
    default: str
    stigmatised: str
    positive: str
    negative: str
    unit: Unit
    pairs: int
    answers: int
    complete: int | None = None
    partial: int | None = None
    refused: int | None = None
    filtered: int | None = None
    failed: int | None = None
    unparsed: int | None = None
    cut_off: int | None = None
    d: float | None = None
    d_p_value: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    claim: Literal["pairs", "answers", "words"] | None = None
    bound_low: float | None = None
    bound_high: float | None = None
    p_value: float | None = None
    p_value_read: float | None = None
    p_value_holm: float | None = None
    family: int | None = None
    p_floor: float | None = None
    words_left_out: int | None = None
    p_these_groups: float | None = None
    p_by_word: float | None = None
    first: float | None = None
    follows_order: bool | None = None
    refusal_rate: float | None = None
    missing_rate: float | None = None
    descriptive: bool = False
    evidence: Evidence | None = None
    evidence_reason: str | None = None
    alpha: float = 0.05
    variant_of: str | None = None
    form_of: str | None = None


@dataclass(frozen=True)
class Missing(Record):
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
class Counts(Record):
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
class Example(Record):
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
class WordResult(Record):
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
class DecisionsResult(Record):
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
class InputsRecord:
    """What was asked: tests, and the texts of wordings by name."""

    tests: tuple[TestRecord, ...]
    wordings: dict[str, str]
