"""The records of robustness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.results.data import Record
from biassay.stimuli.model import About
from biassay.studies.associations.records import TestRecord

__all__ = ["KINDS", "InputsRecord", "Kind", "Result", "Specification"]

Kind = Literal["model", "template", "word", "subset", "matched"]
KINDS: tuple[Kind, ...] = ("model", "template", "word", "subset", "matched")
"""What a specification changes: how the model is read and vectors are compared; the template; one word left out; half
of the words; words of equal frequency or number of tokens."""


@dataclass(frozen=True)
class Specification(Record):
    """One way to measure a test: what was chosen, and what came of it.

    ``words`` says which words were taken; empty: all of them.
    """

    model: str
    options: str
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

    ``choices`` are the specifications that use all words: of the kinds model and template. ``share_sign`` of them have
    the sign of the first, which is the model as it is by cosine; ``share_significant`` have it and are significant
    (crossed). ``p_joint`` is of their median effect, under a common relabelling of target words; ``p_joint_holm`` after
    Holm's correction over the tests about people of the model. ``without_word`` is the word without which the effect is
    nearest to zero, or crosses it most, and ``d_without_word`` what is left of it.
    """

    model: str
    options: str
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
    choices: int = 0
    d_median: float | None = None
    d_smallest: float | None = None
    d_largest: float | None = None
    share_sign: float | None = None
    share_significant: float | None = None
    p_joint: float | None = None
    p_joint_holm: float | None = None
    family: int | None = None
    without_word: str | None = None
    d_without_word: float | None = None
    share_sign_words: float | None = None
    share_sign_subsets: float | None = None
    d_equal_tokens: float | None = None
    d_equal_frequency: float | None = None
    alpha: float = 0.05


@dataclass(frozen=True)
class InputsRecord:
    """What robustness was measured with."""

    tests: tuple[TestRecord, ...]
