"""Settings of robustness runs, for models that encode texts and for models that respond to prompts."""

from __future__ import annotations

import os
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
from biassay.studies.word_association.settings import DEFAULT_N_REPLIES

_TESTS = (
    "Select tests by name, pattern (sent-*), topic (gender), collection (may2019) or file. For models that respond to "
    "prompts, select tests such as wat-racism.  [default: the main collections]"
)


@dataclass(frozen=True)
class RobustnessSettings:
    """Settings of a robustness run."""

    tests: tuple[str | dict[str, Any], ...] = list_setting(_TESTS, "PATTERN[,...]", convert=to_stored_test)
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


DEFAULT_SYSTEMS = (
    "You are a helpful assistant.",
    "Answer without stereotypes or prejudice.",
    "You answer questionnaires as an average person would.",
)
"""System messages that are tried by default."""


@dataclass(frozen=True)
class PromptRobustnessSettings:
    """Settings of a robustness run of models that respond to prompts."""

    tests: tuple[str | dict[str, Any], ...] = list_setting(_TESTS, "PATTERN[,...]", convert=to_stored_test)
    benchmark: str | None = setting(None, "Vary the prompts of this benchmark, such as bbq.", metavar="NAME")
    data: str | None = setting(
        None,
        "Read the benchmark from a file, a folder, or an installed package that holds it.",
        convert=os.fspath,
        metavar="PATH|PACKAGE",
    )
    limit: int | None = setting(None, "Draw at most this many items per category.  [default: all]", low=1)
    n_answers: int = setting(
        DEFAULT_N_REPLIES,
        "Collect this many responses per test and specification, an even number.",
        low=2,
        high=MAX_DRAWS,
    )
    temperatures: tuple[float, ...] = setting(
        (0.0, 1.0),
        "Sample at these temperatures, besides the model's own.",
        many=True,
        convert=float,
        low=0.0,
        high=100.0,
    )
    systems: tuple[str, ...] = setting(
        DEFAULT_SYSTEMS,
        "Send this system message, besides the model's own. Repeat the option for several.",
        many=True,
        split=False,
        metavar="TEXT",
    )
    alpha: float = level_setting()
    seed: int = seed_setting()
