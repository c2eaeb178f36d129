"""The records of a run. A number that was not computed is None; NaN is a number that was."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["FORMAT_VERSION", "PAPER_COLUMNS", "Manifest", "ModelRecord", "Result", "TestRecord"]

FORMAT_VERSION = 1
PAPER_COLUMNS = (
    "model",
    "options",
    "test",
    "p_value",
    "effect_size",
    "num_targ1",
    "num_targ2",
    "num_attr1",
    "num_attr2",
)


def _plain(value: Any) -> Any:
    """Python's own float, and one NaN for all, so that equal records are equal."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


class _Record:
    """Normalises the floats of a frozen dataclass."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))


@dataclass(frozen=True)
class Result(_Record):
    """One test on one model.

    The first nine fields are the columns of the published results. ``p_value`` is over texts under ``protocol``;
    ``p_value_by_word`` is exact and over words, whose texts move together; ``p_floor_by_word`` is the smallest it could
    be with so many words. ``significant`` and ``significant_holm`` compare ``p_value`` with the run's alpha, before and
    after Holm's correction over all rows of the run; ``..._by_word`` the same for ``p_value_by_word``.
    """

    model: str
    options: str
    test: str
    p_value: float | None
    effect_size: float | None
    num_targ1: int
    num_targ2: int
    num_attr1: int
    num_attr2: int
    status: Literal["measured", "refused", "failed"]
    reason: str | None
    title: str
    level: Literal["word", "sentence"]
    targ1: str
    targ2: str
    attr1: str
    attr2: str
    statistic: float | None
    log10_p_value: float | None
    p_route: str | None
    p_error: float | None
    effect_size_by_word: float | None
    p_value_by_word: float | None
    log10_p_value_by_word: float | None
    p_route_by_word: str | None
    p_error_by_word: float | None
    p_floor_by_word: float | None
    num_words: dict[str, int]
    num_cut: dict[str, int]
    p_value_holm: float | None
    significant: bool | None
    significant_holm: bool | None
    p_value_by_word_holm: float | None
    significant_by_word: bool | None
    significant_by_word_holm: bool | None
    protocol: str
    alternative: str
    alpha: float
    seed: int
    source: str
    test_version: str
    test_digest: str
    model_revision: str | None
    lost: dict[str, tuple[str, ...]]
    leaning: dict[str, dict[str, float]]


@dataclass(frozen=True)
class ModelRecord:
    """A model of a run, and what encoding it took."""

    text: str
    name: str
    family: str
    revision: str | None
    settings: dict[str, str]
    texts: int = 0
    encoded: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class TestRecord:
    """A test of a run: its name, what it was asked with, and where that came from."""

    __test__ = False

    name: str
    pattern: str
    digest: str
    source: str
    citation: str
    licence: str
    version: str


@dataclass(frozen=True)
class Manifest(_Record):
    """How a run was made."""

    format_version: int
    run_id: str
    status: Literal["running", "complete"]
    created: str
    finished: str | None
    versions: dict[str, str]
    models: tuple[ModelRecord, ...]
    tests: tuple[TestRecord, ...]
    protocol: str
    alternative: str
    alpha: float
    max_lost: float
    seed: int
    words_lost: dict[str, tuple[str, ...]]
