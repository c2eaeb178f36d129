"""What can be chosen for robustness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biassay.stats.similarities import SIMILARITIES
from biassay.studies.settings import MOST_DRAWS, setting

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole run."""

    tests: tuple[str | dict[str, Any], ...] = setting(
        (),
        "Names, patterns (sent-*), topics (gender), collections (may2019) or files.  [default: the main collections]",
        many=True,
        metavar="PATTERN ...",
    )
    readings: tuple[str, ...] = setting(
        (),
        "Layers and poolings, for instance layer=3&pool=mean.  [default: up to 8 layers, and every pooling of the "
        "model's own layer]",
        many=True,
        metavar="READING ...",
    )
    similarities: tuple[str, ...] = setting(
        tuple(SIMILARITIES),
        f"Ways to compare vectors, beside cosine: {', '.join(SIMILARITIES)}.  [default: all]",
        choices=tuple(SIMILARITIES),
        many=True,
        metavar="NAME ...",
    )
    n_subsets: int = setting(20, "Random halves of the words.", low=0, high=MOST_DRAWS, option="n-subsets")
    alpha: float = setting(0.05, "Level of significance.", low=0.0, high=1.0, open=True)
    max_lost: float = setting(0.2, "Largest share of a concept's words that a model may not know.", low=0.0, high=1.0)
    seed: int = setting(0, "For random subsets, and for relabellings where there are too many to try all.", low=0)
