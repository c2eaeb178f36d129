"""What a search for the words of groups shows, as records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.studies.discovery.records import GroupRow
from biassay.studies.discovery.settings import Settings
from biassay.studies.discovery.view import GroupView, groups_of

__all__ = ["at_the_floor", "findings_of", "permutations_wanted"]

_WORDS = 5
_TOGETHER = 5  # words at the smallest p-value; if more are needed there, a few permutations decide
_CLEARED = 10  # times as many found: the last has a p-value of as many permutations, which hardly hangs on the seed


def findings_of(run: RunData) -> Sequence[Finding]:
    """One finding per model and group."""
    return [_finding(view, run.manifest.settings) for view in groups_of(run)]


def _finding(view: GroupView, settings: Settings) -> Finding:
    best = view.best_words(emergent=False, top=_WORDS)
    return Finding(
        model=view.model,
        item=view.row.group,
        title=view.row.label,
        topic=", ".join(view.row.belongs),
        about="people",
        standing=_standing(view.row, settings),
        direction=_direction(view.row, settings),
        effect=float(view.row.num_associated),
        unit="words",
        p_values={"corrected": _least(view, "q_value"), "excess, corrected": _least(view, "q_value_excess")},
        evidence=tuple(word.word for word in best),
        notes=tuple(_beside(view.row, settings)),
    )


def _direction(row: GroupRow, settings: Settings) -> str:
    """How many words go with the names of the group, more than with those of one other group or of every one."""
    goes = "goes" if row.num_associated <= 1 else "go"
    of = f"{_how_many(row.num_associated)} of {row.num_words:,} words {goes} with the names of {row.label}"
    return f"{of} more than with those of {'another' if settings.compare == 'any' else 'every other'} group"


def _beside(row: GroupRow, settings: Settings) -> Iterator[str]:
    """How many of them differ from every group, and how many are emergent."""
    if row.num_associated:
        if settings.compare == "any":
            yield f"{_how_many(row.num_every)} of them more than with those of every other group"
        yield f"{_how_many(row.num_emergent)} of them emergent"


def _how_many(number: int) -> str:
    return f"{number:,}" if number else "none"


def _least(view: GroupView, name: str) -> float | None:
    known = (getattr(word, name) for word in view.words)
    return min((value for value in known if value is not None), default=None)


def _standing(row: GroupRow, settings: Settings) -> Standing:
    if row.num_associated:
        return "significant"
    return "inconclusive" if permutations_wanted(row, settings) is None else "not_testable"


def at_the_floor(row: GroupRow, settings: Settings) -> int:
    """How many words must have the smallest p-value together before the correction lets any of them be found."""
    return math.ceil(row.num_words / ((settings.n_permutations + 1) * settings.alpha))


def permutations_wanted(row: GroupRow, settings: Settings) -> int | None:
    """With how many permutations findings would not hang on the seed; None where there are enough."""
    together = at_the_floor(row, settings)
    if together <= _TOGETHER or row.num_associated >= _CLEARED * together:
        return None
    return math.ceil(row.num_words / (_TOGETHER * settings.alpha)) - 1
