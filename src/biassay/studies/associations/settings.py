"""What can be chosen for association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from biassay.stats.permutation import PROTOCOLS, Alternative, Protocol
from biassay.studies.settings import MOST_DRAWS, setting

__all__ = ["ALTERNATIVES", "DEFAULT_FAMILY", "DTYPES", "MODES", "PAPERS", "RUN_FAMILY", "Settings"]

MODES = ("random", "fixed")
DTYPES = ("float16", "float32")
ALTERNATIVES = ("greater", "two-sided")
PAPERS = ("may2019", "caliskan2017")
"""Protocols of the papers: their p-value by text leads, one-sided."""
RUN_FAMILY = ("run",)
DEFAULT_FAMILY = "default"


@dataclass(frozen=True)
class Settings:
    """Choices that hold for a whole run of association tests."""

    tests: tuple[str | dict[str, Any], ...] = setting(
        (),
        "Names, patterns (sent-*), topics (gender), collections (may2019) or files.  [default: the main collections; "
        "with contexts, the tests they were collected for]",
        many=True,
        metavar="PATTERN ...",
    )
    contexts: str | None = setting(
        None, "A file made by `biassay contexts`: words are measured in these contexts (CEAT).", metavar="FILE"
    )
    metric: str = setting("cosine", "How vectors become associations; packages may add others.")
    protocol: Protocol = setting("exact", "How p-values are found.", choices=PROTOCOLS)
    alternative: Alternative = setting(
        "greater",
        "Of the p-values for these attribute words and by text: whether associations count in the tested direction or "
        "in either one. The crossed p is always two-sided.",
        choices=ALTERNATIVES,
    )
    alpha: float | None = setting(
        None,
        "Level of significance.  [default: 0.05; 0.01 under the papers' protocols]",
        low=0.0,
        high=1.0,
        open=True,
    )
    family: tuple[str, ...] = setting(
        RUN_FAMILY,
        "Questions to correct for: all social-bias questions of this run (run), or tests declared beforehand (default, "
        "or names, patterns, topics, collections, files). Declared questions count whether or not they are run; tests "
        "outside the family are exploratory.  [default: run]",
        many=True,
        metavar="PATTERN ...",
    )
    declared: dict[str, tuple[str, ...]] = setting(
        {}, "Questions of a declared family and their forms, resolved when the run starts.", hidden=True
    )
    equivalence: float | None = setting(
        None,
        "Also test that D is smaller than this: a difference of mean cosines, below 2, that would not matter.",
        low=0.0,
        open=True,
        metavar="DELTA",
    )
    random_sets: int = setting(
        1000,
        "Random attribute sets that an effect is compared with; 0: none.",
        low=0,
        high=MOST_DRAWS,
        option="random-sets",
    )
    max_lost: float = setting(0.2, "Largest share of a concept's words that a model may not know.", low=0.0, high=1.0)
    seed: int = setting(0, "For what is drawn: protocols that sample, and contexts.", low=0)
    n_samples: int = setting(
        10_000,
        "With contexts: samples of one context per word.",
        low=3,
        high=MOST_DRAWS,
        option="n-samples",
        aliases=("samples",),
    )
    mode: Literal["random", "fixed"] = setting(
        "random",
        "With contexts: each model draws its own, or all models get the same.",
        choices=MODES,
        aliases=("draw",),
    )
    window: int | None = setting(None, "With contexts: words kept around a word.  [default: the whole sentence]", low=1)
    dtype: Literal["float16", "float32"] = setting(
        "float16", "With contexts: in which vectors are kept.", choices=DTYPES
    )
    min_contexts: int = setting(5, "With contexts: a word with fewer is lost.", low=1)
    vectors: str | None = setting(
        None, "With contexts: a folder for the vectors, instead of the cache.", again=True, metavar="DIR"
    )

    @property
    def of_papers(self) -> bool:
        """Whether numbers are shown as the papers do."""
        return self.protocol in PAPERS

    @property
    def level(self) -> float:
        """Alpha, also where it was not given."""
        return self.alpha if self.alpha is not None else 0.01 if self.of_papers else 0.05
