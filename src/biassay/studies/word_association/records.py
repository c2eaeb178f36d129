"""The records of word association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.results.data import Record, TestRecord
from biassay.stimuli.model import About

__all__ = ["Counts", "DecisionsResult", "Example", "InputsRecord", "Result", "Unit", "WordResult"]

Unit = Literal["share", "log-odds"]


@dataclass(frozen=True)
class Result(Record):
    """One test on one model.

    ``difference`` is the mean over negative words less that over positive ones: of shares given to the stigmatised
    group, or of log-odds. ``p_value`` and the interval hold for other words and other pairs of group words where there
    are several; else for other words and other answers; of one pair by log-odds, for other words. ``claim`` says which.
    ``p_floor`` is the smallest p-value that so many pairs, or words, can have. ``words_left_out`` are words that were
    not read throughout, and which the p-value and the interval therefore do not count.
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
    unparsed: int | None = None
    cut_off: int | None = None
    d: float | None = None
    d_p_value: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    claim: Literal["pairs", "answers", "words"] | None = None
    p_value: float | None = None
    p_value_holm: float | None = None
    family: int | None = None
    p_floor: float | None = None
    words_left_out: int | None = None
    p_these_groups: float | None = None
    p_by_word: float | None = None
    first: float | None = None
    alpha: float = 0.05


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


@dataclass(frozen=True)
class InputsRecord:
    """What was asked: tests, and the texts of wordings by name."""

    tests: tuple[TestRecord, ...]
    wordings: dict[str, str]
