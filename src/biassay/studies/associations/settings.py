"""Settings of association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from biassay.stats.permutation import PROTOCOLS, Alternative, Protocol
from biassay.studies.settings import (
    MAX_DRAWS,
    file_setting,
    level_setting,
    list_setting,
    seed_setting,
    setting,
    share_setting,
    statistic_setting,
    to_absolute_path,
    to_stored_test,
)

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

    tests: tuple[str | dict[str, Any], ...] = list_setting(
        "Select tests by name, pattern (sent-*), topic (gender), collection (may2019) or file.  [default: the main "
        "collections; with --contexts, the tests of the contexts]",
        "PATTERN[,...]",
        convert=to_stored_test,
    )
    language: tuple[str, ...] = list_setting(
        "Run the tests of these languages (de,fr or all): all tests of WEATHub, or those that --tests names (weat6).",
        "CODE[,...]",
    )
    contexts: str | None = file_setting(
        "Measure words in these contexts (CEAT), from a file that `biassay contexts` wrote.", section="contexts"
    )
    metric: str = setting(
        "cosine",
        "Choose the metric of association, or all: cosine, and every other measure beside it (`biassay metrics`).",
        metavar="NAME",
    )
    protocol: Protocol = statistic_setting(
        "exact",
        "Compute p-values by this protocol: exact is recommended, the others are those of the papers.",
        choices=PROTOCOLS,
    )
    alternative: Alternative = statistic_setting(
        "greater", "Direction of the permutation tests. The main p-value is always two-sided.", choices=ALTERNATIVES
    )
    alpha: float | None = level_setting(
        None, "Set the significance level.  [default: 0.05; 0.01 under the papers' protocols]"
    )
    family: tuple[str, ...] = statistic_setting(
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
    equivalence: float | None = statistic_setting(
        None,
        "Also test whether the difference of mean cosines is smaller than this, a number below 2.",
        low=0.0,
        exclusive=True,
        metavar="DELTA",
    )
    random_sets: int = statistic_setting(
        1000, "Number of random word sets for the random baseline. Use 0 to skip it.", low=0, high=MAX_DRAWS
    )
    max_unknown: float = share_setting(0.2, "Skip a test if more than this share of a word set is out of vocabulary.")
    max_tokens: float = statistic_setting(
        5.0,
        "Skip a test in another language than English if its words have more tokens than this on average, because the "
        "model does not know the language.",
        low=1.0,
    )
    seed: int = seed_setting()
    n_samples: int = setting(
        10_000,
        "Draw this many samples of one context per word. Only with --contexts.",
        low=3,
        high=MAX_DRAWS,
        section="contexts",
    )
    mode: Literal["random", "fixed"] = setting(
        "random",
        "How to sample contexts: independently per model, or the same for all models.",
        choices=MODES,
        section="contexts",
    )
    window: int | None = setting(
        None,
        "Keep this many words around a word. Only with --contexts.  [default: the whole sentence]",
        low=1,
        section="contexts",
    )
    dtype: Literal["float16", "float32"] = setting(
        "float16", "Store context vectors as numbers of this type.", choices=DTYPES, section="contexts"
    )
    min_contexts: int = setting(5, "Drop words that occur in fewer contexts.", low=1, section="contexts")
    vectors: str | None = setting(
        None,
        "Store context vectors in this folder instead of the cache.",
        convert=to_absolute_path,
        reenter_on_resume=True,
        metavar="DIR",
        section="contexts",
    )

    @property
    def is_paper_protocol(self) -> bool:
        """If True, the primary outcome is that of a paper."""
        return self.protocol in PAPER_PROTOCOLS

    @property
    def alpha_or_default(self) -> float:
        """Significance level, or the default of the protocol."""
        return self.alpha if self.alpha is not None else 0.01 if self.is_paper_protocol else 0.05
