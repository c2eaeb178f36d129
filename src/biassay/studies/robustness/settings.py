"""Settings of robustness runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biassay.stats.association import SIMILARITIES
from biassay.studies.settings import MAX_DRAWS, setting, to_stored_test

__all__ = ["RobustnessSettings"]


@dataclass(frozen=True)
class RobustnessSettings:
    """Settings of a robustness run."""

    tests: tuple[str | dict[str, Any], ...] = setting(
        (),
        "Select tests by name, pattern (sent-*), topic (gender), collection (may2019) or file.  [default: the main "
        "collections]",
        many=True,
        convert=to_stored_test,
        metavar="PATTERN[,...]",
    )
    readings: tuple[str, ...] = setting(
        (),
        "Use these layers and poolings, such as layer=3&pool=mean.  [default: up to 8 layers, and every pooling of the "
        "model's own layer]",
        many=True,
        metavar="READING[,...]",
    )
    similarities: tuple[str, ...] = setting(
        tuple(SIMILARITIES),
        f"Compare vectors in these ways, besides cosine: {', '.join(SIMILARITIES)}.  [default: all]",
        choices=tuple(SIMILARITIES),
        many=True,
        metavar="NAME[,...]",
    )
    n_subsets: int = setting(20, "Draw this many random halves of the words.", low=0, high=MAX_DRAWS)
    alpha: float = setting(0.05, "Set the significance level.", low=0.0, high=1.0, exclusive=True)
    max_unknown: float = setting(
        0.2, "Skip a test if more than this share of a word set is out of vocabulary.", low=0.0, high=1.0
    )
    seed: int = setting(0, "Random seed.", low=0)
