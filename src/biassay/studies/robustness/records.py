"""The records of robustness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.results.data import Record, TestRecord
from biassay.stimuli.model import About, Direction

__all__ = ["KINDS", "InputsRecord", "Kind", "Result", "Specification"]

Kind = Literal["model", "template", "word", "subset", "matched"]
KINDS: tuple[Kind, ...] = ("model", "template", "word", "subset", "matched")
"""What a specification changes: how the model is read and vectors are compared; the template; one word left out; half
of the words; words of equal frequency or number of tokens."""


@dataclass(frozen=True)
class Specification(Record):
    """One way to measure a test: what was chosen, and what came of it.

    ``words`` says which words were taken; empty: all of them. ``d`` is None where vectors have no direction, or all
    target words one association.
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
    d: float | None
    d_low: float | None
    d_high: float | None
    p_value_crossed: float | None
    num_words: dict[str, int]


@dataclass(frozen=True)
class Result(Record):
    """One test on one model over all its specifications.

    ``d``, its interval and ``p_value_crossed`` are of the first specification, the model as it is by cosine: the same
    as in association tests, and corrected in the same families. ``choices`` are the specifications that use all words
    and have a number, of the kinds model and template; none gives the same cosines as another. ``same_sign`` of them
    have the sign of the first, and ``significant`` have it and a crossed p of at most alpha. ``p_joint`` is of their
    median effect, under a common relabelling of target words: it speaks of these attribute words. ``without_word`` is
    the word without which the effect is nearest to zero, or crosses it most, and ``d_without_word`` what is left of it.
    """

    model: str
    options: str
    model_revision: str | None
    test: str
    title: str
    status: Literal["measured", "refused", "failed"]
    reason: str | None
    about: About
    topic: str
    targ1: str
    targ2: str
    attr1: str
    attr2: str
    d: float | None = None
    d_low: float | None = None
    d_high: float | None = None
    p_value_crossed: float | None = None
    p_value_crossed_holm: float | None = None
    family: int | None = None
    choices: int = 0
    d_median: float | None = None
    d_smallest: float | None = None
    d_largest: float | None = None
    same_sign: int | None = None
    significant: int | None = None
    p_joint: float | None = None
    without_word: str | None = None
    d_without_word: float | None = None
    share_sign_words: float | None = None
    share_sign_subsets: float | None = None
    d_equal_tokens: float | None = None
    d_equal_frequency: float | None = None
    alpha: float = 0.05
    direction: Direction | None = None
    variant_of: str | None = None
    form_of: str | None = None


@dataclass(frozen=True)
class InputsRecord:
    """What robustness was measured with."""

    tests: tuple[TestRecord, ...]
