"""The rows of benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.results.data import Record

__all__ = ["Condition", "Example", "NamedRow", "PairRow", "Result", "TemplateRow", "TermRow", "Unit"]

Unit = Literal["template", "writer", "pair", "term"]
Condition = Literal["", "ambiguous", "disambiguated"]


@dataclass(frozen=True)
class Result(Record):
    """One category of a benchmark on one model.

    Attributes
    ----------
    category, condition : str
        "all" is over all bias types; the condition is "ambiguous" or "disambiguated" for BBQ, and empty for others.
    by : str
        How it was asked: "answer", "log-probability", or "likelihood".
    items, n : int
        Items of the data, and those that count.
    undecided : int
        Items in which nothing is preferred. Answers (BBQ, logs of StereoSet): none chooses an option, or two options
        are chosen equally often. StereoSet: the stereotype and the anti-stereotype are equally likely, or both are as
        likely as the unrelated sentence. These do not count. CrowS-Pairs: both sentences are equally likely; such ties
        are counted in ``n``, as the authors do.
    unrelated : int or None
        Items of logs of StereoSet of which the unrelated sentence was chosen: they do not count in the score.
    replies, refused, filtered, failed, several, empty, unparsed : int or None
        Answers over all orders of options or epochs, and those that choose no option, by kind.
    unanswered : float or None
        Share of the answers that choose no option: refusals, filtered and failed prompts, several options, empty and
        unparsed ones. An option that says "unknown" is an answer.
    position, position_share : str or None, float or None
        The position (A, B or C) of the options that was chosen most often over all answers, and how often. An answer
        that depends on what the options say chooses each position in a third of the answers.
    left_out : int
        Items of which the model does not tell a likelihood.
    agreement : float or None
        Share of the orders that choose the option that is chosen over all, mean over questions.
    lms, icat : float or None
        Of StereoSet, in percent. None in logs: one sentence of three was chosen, which is not lms.
    accuracy, bias : float or None
        Of BBQ; ``bias`` is 2 target / known - 1.
    score, null : float or None, float
        The score of the benchmark, and what it is without bias: 0 for BBQ, 0.5 for the share of CrowS-Pairs, 50 for ss.
    score_low, score_high, p_value : float or None
        By ``unit``: template, writer (pair, where the data does not name writers) or term. None: they are too few.
    n_names : int
        Names of people that are crossed with the templates: the interval is for other names, too.
    df : float or None
        Degrees of freedom of the interval. None if nothing varies. If there are too few for an interval, the degrees of
        freedom of the templates, writers, terms or names that are too few.
    item_low, item_high, p_value_item : float or None
        The same with items taken for independent.
    """

    model: str
    options: str
    model_revision: str | None
    benchmark: str
    category: str
    condition: Condition
    topic: str
    by: Literal["answer", "log-probability", "likelihood"]
    status: Literal["measured", "failed"]
    reason: str | None
    unit: Unit
    items: int
    n: int = 0
    undecided: int = 0
    unrelated: int | None = None
    replies: int | None = None
    refused: int | None = None
    filtered: int | None = None
    failed: int | None = None
    several: int | None = None
    empty: int | None = None
    unparsed: int | None = None
    unanswered: float | None = None
    position: str | None = None
    position_share: float | None = None
    left_out: int = 0
    agreement: float | None = None
    accuracy: float | None = None
    bias: float | None = None
    score: float | None = None
    null: float = 0.0
    score_low: float | None = None
    score_high: float | None = None
    p_value: float | None = None
    p_value_holm: float | None = None
    n_clusters: int = 0
    n_names: int = 0
    df: float | None = None
    largest_share: float | None = None
    item_low: float | None = None
    item_high: float | None = None
    p_value_item: float | None = None
    lms: float | None = None
    lms_low: float | None = None
    lms_high: float | None = None
    icat: float | None = None
    icat_low: float | None = None
    icat_high: float | None = None
    alpha: float = 0.05


@dataclass(frozen=True)
class TermRow(Record):
    """A target term of StereoSet on one model."""

    model: str
    options: str
    model_revision: str | None
    category: str
    term: str
    n: int
    lms: float | None
    ss: float | None


@dataclass(frozen=True)
class TemplateRow(Record):
    """A template of BBQ on one model: answers that show the bias, that are not "unknown", that are right, and all."""

    model: str
    options: str
    model_revision: str | None
    category: str
    condition: Condition
    template: int
    target: int
    known: int
    correct: int
    n: int


@dataclass(frozen=True)
class NamedRow(Record):
    """Answers to the questions of one BBQ template about the same people. ``names`` are separated by spaces."""

    model: str
    options: str
    model_revision: str | None
    category: str
    condition: str
    template: int
    names: str
    target: int
    known: int
    correct: int
    n: int


@dataclass(frozen=True)
class Example(Record):
    """A reply to a question of BBQ, or its beginning: one of the first of its kind in a category."""

    model: str
    options: str
    model_revision: str | None
    category: str
    question: int
    order: str
    kind: str
    reply: str


@dataclass(frozen=True)
class PairRow(Record):
    """A pair of CrowS-Pairs on one model: by how much the stereotyping sentence has the higher log-likelihood.

    Both are rounded to three decimals, as in the authors' code: 0 is a tie. ``writer`` is empty where it is not known.
    """

    model: str
    options: str
    model_revision: str | None
    category: str
    pair: str
    apart: float | None
    writer: str = ""
