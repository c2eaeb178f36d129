"""Settings of robustness runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biassay.stats.association import SIMILARITIES
from biassay.studies.settings import (
    MAX_DRAWS,
    level_setting,
    list_setting,
    seed_setting,
    setting,
    share_setting,
    statistic_setting,
    to_stored_test,
)


@dataclass(frozen=True)
class RobustnessSettings:
    """Settings of a robustness run."""

    tests: tuple[str | dict[str, Any], ...] = list_setting(
        "Select tests by name, pattern (sent-*), topic (gender), collection (may2019) or file. For models that respond "
        "to prompts, select tests such as wat-racism.  [default: the main collections]",
        "PATTERN[,...]",
        convert=to_stored_test,
    )
    representations: tuple[str, ...] = list_setting(
        "Use these layers and poolings, such as layer=3&pool=mean.  [default: up to 8 layers, and every pooling of the "
        "model's own layer]",
        "REPRESENTATION[,...]",
    )
    similarities: tuple[str, ...] = setting(
        tuple(SIMILARITIES),
        f"Compare vectors in these ways, besides cosine: {', '.join(SIMILARITIES)}.  [default: all]",
        choices=tuple(SIMILARITIES),
        many=True,
        metavar="NAME[,...]",
    )
    n_subsets: int = statistic_setting(20, "Draw this many random halves of the words.", low=0, high=MAX_DRAWS)
    alpha: float = level_setting()
    max_unknown: float = share_setting(0.2, "Skip a test if more than this share of a word set is out of vocabulary.")
    seed: int = seed_setting()
