"""Settings of word association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biassay.studies.settings import (
    MAX_DRAWS,
    level_setting,
    list_setting,
    seed_setting,
    setting,
    to_absolute_file,
    to_stored_test,
)

DEFAULT_N_REPLIES = 50


def _to_stored_test(value: Any) -> Any:
    return to_absolute_file(to_stored_test(value))


@dataclass(frozen=True)
class WordAssociationSettings:
    """Settings of a run of word association tests."""

    tests: tuple[str | dict[str, Any], ...] = list_setting(
        "Select tests by name (wat-racism), pattern (wat-*), topic (gender), association test (weat6) or file; all "
        "selects all.  [default: the published data sets that can be significant, 10 of 21; the others are "
        "descriptive]",
        "PATTERN[,...]",
        convert=_to_stored_test,
    )
    n_answers: int = setting(
        DEFAULT_N_REPLIES, "Collect this many responses per test, an even number.", low=2, high=MAX_DRAWS
    )
    wordings: tuple[str, ...] = list_setting(
        "Use these wordings of the prompts.  [default: all, including the published one]"
    )
    read: str = setting(
        "auto",
        "Read words (replies), or the log-odds of the two group words; auto reads log-odds if a model provides them.",
        choices=("auto", "replies", "log-odds"),
    )
    decisions: bool = setting(False, "Also ask which of two people gets which of two tasks.")
    alpha: float = level_setting()
    seed: int = seed_setting()
