"""Settings of association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from biassay.stats.permutation import PROTOCOLS, Alternative, Protocol
from biassay.studies.settings import MAX_DRAWS, setting, to_absolute_path, to_stored_test

__all__ = ["ALTERNATIVES", "DEFAULT_FAMILY", "DTYPES", "MODES", "PAPER_PROTOCOLS", "RUN_FAMILY", "AssociationSettings"]

MODES = ("random", "fixed")
DTYPES = ("float16", "float32")
ALTERNATIVES = ("greater", "two-sided")
PAPER_PROTOCOLS = ("may2019", "caliskan2017")
"""Protocols of the papers: the one-sided sentence-level p is the main one."""
RUN_FAMILY = ("run",)
DEFAULT_FAMILY = "default"


@dataclass(frozen=True)
class AssociationSettings:
    """Settings of a run of association tests."""

    tests: tuple[str | dict[str, Any], ...] = setting(
        (),
        "Select tests by name, pattern (sent-*), topic (gender), collection (may2019) or file.  [default: the main "
        "collections; with --contexts, the tests of the contexts]",
        many=True,
        convert=to_stored_test,
        metavar="PATTERN[,...]",
    )
    contexts: str | None = setting(
        None,
        "Measure words in these contexts (CEAT), from a file that `biassay contexts` wrote.",
        convert=to_absolute_path,
        metavar="FILE",
    )
    metric: str = setting("cosine", "Choose how vectors become associations. Other packages may add metrics.")
    protocol: Protocol = setting("exact", "Choose how p-values are computed.", choices=PROTOCOLS)
    alternative: Alternative = setting(
        "greater",
        "Direction of the permutation tests. The main p-value is always two-sided.",
        choices=ALTERNATIVES,
    )
    alpha: float | None = setting(
        None,
        "Set the significance level.  [default: 0.05; 0.01 under the papers' protocols]",
        low=0.0,
        high=1.0,
        exclusive=True,
    )
    family: tuple[str, ...] = setting(
        RUN_FAMILY,
        "Correct for all social-bias questions of this run (run), or for tests declared in advance (default, or names, "
        "patterns, topics, collections, files). Declared questions count even if they are not run; tests outside the "
        "family are exploratory.  [default: run]",
        many=True,
        metavar="PATTERN[,...]",
    )
    declared: dict[str, tuple[str, ...]] = setting(
        {}, "Questions of a declared family and their forms, resolved when the run starts.", hidden=True
    )
    equivalence: float | None = setting(
        None,
        "Also test whether D is smaller than this negligible difference of mean cosines, below 2.",
        low=0.0,
        exclusive=True,
        metavar="DELTA",
    )
    random_sets: int = setting(
        1000, "Number of random word sets for the random baseline. Use 0 to skip it.", low=0, high=MAX_DRAWS
    )
    max_unknown: float = setting(
        0.2, "Skip a test if more than this share of a word set is out of vocabulary.", low=0.0, high=1.0
    )
    seed: int = setting(0, "Random seed.", low=0)
    n_samples: int = setting(
        10_000, "Draw this many samples of one context per word. Only with --contexts.", low=3, high=MAX_DRAWS
    )
    mode: Literal["random", "fixed"] = setting(
        "random",
        "How to sample contexts: independently per model, or the same for all models.",
        choices=MODES,
    )
    window: int | None = setting(
        None,
        "Keep this many words around a word. Only with --contexts.  [default: the whole sentence]",
        low=1,
    )
    dtype: Literal["float16", "float32"] = setting("float16", "Store context vectors in this type.", choices=DTYPES)
    min_contexts: int = setting(5, "Drop words that occur in fewer contexts.", low=1)
    vectors: str | None = setting(
        None,
        "Store context vectors in this folder instead of the cache.",
        convert=to_absolute_path,
        reenter_on_resume=True,
        metavar="DIR",
    )

    @property
    def is_paper_protocol(self) -> bool:
        """Whether the protocol is one of the papers', whose numbers then lead."""
        return self.protocol in PAPER_PROTOCOLS

    @property
    def alpha_or_default(self) -> float:
        """Significance level, or the default of the protocol."""
        return self.alpha if self.alpha is not None else 0.01 if self.is_paper_protocol else 0.05
