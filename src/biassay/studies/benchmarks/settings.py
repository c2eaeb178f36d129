"""Settings of benchmarks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from biassay.studies.settings import setting, to_absolute_path

__all__ = ["BENCHMARKS", "BY", "ORDERS", "SCORES", "Benchmark", "BenchmarkSettings", "By", "Scored"]

Benchmark = Literal["bbq", "crows-pairs", "stereoset"]
BENCHMARKS: tuple[Benchmark, ...] = get_args(Benchmark)
By = Literal["answer", "log-probability"]
BY: tuple[By, ...] = get_args(By)
Scored = Literal["shared", "sentence"]
SCORES: tuple[Scored, ...] = get_args(Scored)
ORDERS = 6  # of three options


@dataclass(frozen=True)
class BenchmarkSettings:
    """Settings of a run of a benchmark."""

    benchmark: str = setting("bbq", "Name of the benchmark.", choices=BENCHMARKS, hidden=True)
    data: str | None = setting(
        None,
        "Read the benchmark from a file, a folder, or an installed package that holds it.",
        convert=os.fspath,
        metavar="PATH|PACKAGE",
    )
    flagged: str | None = setting(
        None,
        "Leave out the items of CrowS-Pairs or StereoSet whose ids are in this file.",
        convert=to_absolute_path,
        metavar="FILE",
    )
    categories: tuple[str, ...] = setting(
        (), "Select categories, or bias types.  [default: all]", many=True, metavar="NAME[,...]"
    )
    by: str | None = setting(
        None,
        "Choose how models respond to BBQ: in words, or by the likelihoods of the options.  [default: log-probability "
        "if the model provides that of any text, else answer]",
        choices=BY,
    )
    score: str = setting(
        "shared",
        "Compare the tokens that both sentences of CrowS-Pairs share, as its authors do, or whole sentences, as "
        "lm-evaluation-harness does.",
        choices=SCORES,
    )
    limit: int | None = setting(
        None, "Draw at most this many items per category, balanced over templates.  [default: all]", low=1
    )
    orders: int = setting(
        ORDERS, "Show the options of BBQ in this many orders, drawn at random if fewer than 6.", low=1, high=ORDERS
    )
    alpha: float = setting(0.05, "Set the significance level.", low=0.0, high=1.0, exclusive=True)
    seed: int = setting(0, "Random seed.", low=0)
