"""Settings of benchmarks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from biassay.studies.settings import (
    file_setting,
    level_setting,
    list_setting,
    seed_setting,
    setting,
    statistic_setting,
)

By = Literal["answer", "log-probability"]
BY: tuple[By, ...] = get_args(By)
Scored = Literal["shared", "sentence"]
SCORES: tuple[Scored, ...] = get_args(Scored)
ORDERS = 6
"""Number of orders of three options."""


@dataclass(frozen=True)
class BenchmarkSettings:
    """Settings of a run of a benchmark."""

    benchmark: str = setting("bbq", "Name of the benchmark.", hidden=True)
    data: str | None = setting(
        None,
        "Read the benchmark from a file, a folder, or an installed package that holds it.",
        convert=os.fspath,
        metavar="PATH|PACKAGE",
    )
    flagged: str | None = file_setting("Leave out the items of CrowS-Pairs or StereoSet whose ids are in this file.")
    categories: tuple[str, ...] = list_setting("Select categories or bias types, by name or pattern.  [default: all]")
    by: str | None = setting(
        None,
        "Choose how models respond to questions: in words, or by the likelihoods of the options.  [default: "
        "log-probability if the model provides that of any text, else answer]",
        choices=BY,
    )
    score: str = statistic_setting(
        "shared",
        "Compare the tokens that both sentences of CrowS-Pairs share, as its authors do, or whole sentences, as "
        "lm-evaluation-harness does.",
        choices=SCORES,
    )
    limit: int | None = setting(
        None, "Draw at most this many items per category, balanced over templates.  [default: all]", low=1
    )
    orders: int = setting(
        ORDERS, "Show the options in this many orders, drawn at random if fewer than all.", low=1, high=ORDERS
    )
    alpha: float = level_setting()
    seed: int = seed_setting()
