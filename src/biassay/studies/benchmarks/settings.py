"""What can be chosen for benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from biassay.studies.settings import setting

__all__ = ["BENCHMARKS", "BY", "ORDERS", "SCORES", "Benchmark", "By", "Scored", "Settings"]

Benchmark = Literal["bbq", "crows-pairs", "stereoset"]
BENCHMARKS: tuple[Benchmark, ...] = get_args(Benchmark)
By = Literal["answer", "log-probability"]
BY: tuple[By, ...] = get_args(By)
Scored = Literal["shared", "sentence"]
SCORES: tuple[Scored, ...] = get_args(Scored)
ORDERS = 6  # of three options


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole run of a benchmark."""

    benchmark: str = setting("bbq", "Which benchmark.", choices=BENCHMARKS, hidden=True)
    data: str | None = setting(
        None, "Where the benchmark is: a file, a folder, or an installed package that holds it.", metavar="PLACE"
    )
    flagged: str | None = setting(
        None, "Items to leave out of CrowS-Pairs or StereoSet: a file with their ids.", metavar="FILE"
    )
    categories: tuple[str, ...] = setting(
        (), "Categories, or bias types.  [default: all]", many=True, option="category", metavar="NAME"
    )
    by: str | None = setting(
        None,
        "How BBQ is answered: in words, or by the likelihoods of options.  [default: by log-probability where the "
        "model gives that of any text, else by answer]",
        choices=BY,
    )
    score: str = setting(
        "shared",
        "What CrowS-Pairs compares: the tokens that both sentences share, as its authors do, or whole sentences, as "
        "lm-evaluation-harness does.",
        choices=SCORES,
    )
    limit: int | None = setting(
        None, "Draw at most this many items per category, balanced over templates.  [default: all]", low=1
    )
    orders: int = setting(ORDERS, "Orders in which the options of BBQ are shown; fewer are drawn.", low=1, high=ORDERS)
    alpha: float = setting(0.05, "Level of significance.", low=0.0, high=1.0, open=True)
    seed: int = setting(0, "Random seed.", low=0)
