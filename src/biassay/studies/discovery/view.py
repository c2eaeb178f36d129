"""A run of discovery as it is shown: every group of every model, its words, and how well they are detected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError
from biassay.results.data import RunData
from biassay.results.slices import by_model as models_of
from biassay.studies.discovery.records import CurveRow, GroupRow, ValidatedRow, WordRow

__all__ = ["GroupView", "group_of", "groups_of", "models_of"]

_RATED = {"ibd": "of_group", "eibd": "emergent_of_group"}
_DETECTED = {"ibd": "detected", "eibd": "detected_emergent"}


@dataclass(frozen=True, eq=False)
class GroupView:
    """A group in one model. ``title`` names the model too where there are several."""

    model: str
    title: str
    row: GroupRow
    words: tuple[WordRow, ...]
    validated: tuple[ValidatedRow, ...]
    curves: tuple[CurveRow, ...]
    arrays: Mapping[str, NDArray[np.float64]]

    def best_words(self, *, emergent: bool, top: int | None) -> Sequence[WordRow]:
        """The words that rank highest among those associated, or emergent."""
        return [word for word in self.words if (word.emergent if emergent else word.associated)][:top]

    def num_rated(self, curve: CurveRow) -> int:
        """Rated words that belong to the group, by the rule of a curve."""
        return sum(getattr(word, _RATED[curve.task]) for word in self.validated)

    def detected(self, curve: CurveRow) -> str:
        """Rated words of the group, and others, that are detected at the threshold in use."""
        rated, mark = _RATED[curve.task], _DETECTED[curve.task]
        found = [getattr(word, rated) for word in self.validated if getattr(word, mark)]
        return f"{sum(found)} of {self.num_rated(curve)}, and {len(found) - sum(found)} others"


def groups_of(run: RunData) -> list[GroupView]:
    """All groups of all models, in the order of the tables."""
    several = len(run.manifest.models) > 1
    return [
        GroupView(
            model.label,
            f"{one.row.label} in {model.label}" if several else one.row.label,
            one.row,
            one["results"],
            one["validated"],
            one["curves"],
            one.arrays,
        )
        for model in models_of(run)
        for one in model.each("groups", "group")
    ]


def group_of(run: RunData, group: str, model: str | None = None) -> GroupView:
    """One group, of the first model or of one by its label."""
    known = {view.row.group: view for view in reversed(groups_of(run)) if model in (None, view.model)}
    if group not in known:
        raise UnknownNameError("group", group, known, f"(groups that were looked at: {', '.join(known)})")
    return known[group]
