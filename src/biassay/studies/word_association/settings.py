"""Settings of word association tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from biassay.studies.settings import MAX_DRAWS, setting, to_absolute_file, to_stored_test
from biassay.studies.word_association.prompts import DEFAULT_N_REPLIES

__all__ = ["WordAssociationSettings"]


def _to_stored_test(value: Any) -> Any:
    return to_absolute_file(to_stored_test(value))


@dataclass(frozen=True)
class WordAssociationSettings:
    """Settings of a run of word association tests."""

    tests: tuple[str | dict[str, Any], ...] = setting(
        (),
        "Select tests by name (wat-racism), pattern (wat-*), topic (gender), association test (weat6) or file; all "
        "selects all.  [default: the published data sets that can be significant, 10 of 21; the others are "
        "descriptive]",
        many=True,
        convert=_to_stored_test,
        metavar="PATTERN[,...]",
    )
    n_answers: int = setting(
        DEFAULT_N_REPLIES, "Collect this many responses per test, an even number.", low=2, high=MAX_DRAWS
    )
    wordings: tuple[str, ...] = setting(
        (),
        "Use these wordings of the prompts.  [default: all, including the published one]",
        many=True,
        metavar="NAME[,...]",
    )
    read: str = setting(
        "auto",
        "Read words (replies), or the log-odds of the two group words; auto reads log-odds if a model provides them.",
        choices=("auto", "replies", "log-odds"),
    )
    decisions: bool = setting(False, "Also ask which of two people gets which of two tasks.")
    alpha: float = setting(0.05, "Set the significance level.", low=0.0, high=1.0, exclusive=True)
    seed: int = setting(0, "Random seed.", low=0)
