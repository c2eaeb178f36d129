"""What can be chosen for word association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biassay.studies.settings import MOST_DRAWS, setting
from biassay.texts.association_prompts import ANSWERS

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole run."""

    tests: tuple[str | dict[str, Any], ...] = setting(
        (),
        "Names (wat-racism), patterns (wat-*), topics (gender), association tests (weat6), files, or all.  [default: "
        "the published data sets that can be significant, 10 of 21; the others are descriptive]",
        many=True,
        metavar="PATTERN ...",
    )
    n_answers: int = setting(
        ANSWERS, "Answers to each test; an even number.", low=2, high=MOST_DRAWS, option="n-answers"
    )
    wordings: tuple[str, ...] = setting(
        (), "Wordings of the prompts.  [default: all, the published one among them]", many=True, metavar="NAME ..."
    )
    read: str = setting(
        "auto",
        "What is read: words (replies), or the log-odds of the two group words; auto takes log-odds where a model "
        "gives them.",
        choices=("auto", "replies", "log-odds"),
    )
    decisions: bool = setting(False, "Ask also who of two people gets which of two tasks.")
    alpha: float = setting(0.05, "Level of significance.", low=0.0, high=1.0, open=True)
    seed: int = setting(0, "Of the orders of words and pairs.", low=0)
