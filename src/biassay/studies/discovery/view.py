"""A run of discovery as it is shown: every group of every model with all that was found of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError
from biassay.results.data import ModelRecord, RunData, is_of
from biassay.studies.discovery.making import array_name
from biassay.studies.discovery.records import CurveRow, GroupRow, ModelRow, Task, ValidatedRow, WordRow

__all__ = ["GroupView", "TaskView", "group_of", "groups_of", "labels_of", "lost_of"]

_TASKS: Mapping[Task, str] = {"ibd": "associated (IBD)", "eibd": "EIBD"}


@dataclass(frozen=True, eq=False)
class TaskView:
    """How well IBD, or EIBD, detects the rated words of a group: a row of the table, and counts at every threshold."""

    row: CurveRow
    arrays: Mapping[str, NDArray[np.float64]]

    @property
    def name(self) -> str:
        return _TASKS[self.row.task]

    @property
    def thresholds(self) -> Sequence[float]:
        return [float(value) for value in self._array("thresholds")]

    @property
    def tp(self) -> Sequence[int]:
        return self._counts("tp")

    @property
    def fp(self) -> Sequence[int]:
        return self._counts("fp")

    @property
    def fn(self) -> Sequence[int]:
        return self._counts("fn")

    @property
    def tn(self) -> Sequence[int]:
        return self._counts("tn")

    @property
    def area(self) -> float:
        return self.row.area

    @property
    def chosen(self) -> float:
        return self.row.chosen

    @property
    def recall(self) -> float:
        return self.row.recall

    @property
    def false_positive_rate(self) -> float:
        return self.row.false_positive_rate

    @property
    def at(self) -> int:
        """The place of the threshold in use."""
        return self.thresholds.index(self.row.chosen)

    @property
    def num_true(self) -> int:
        """Rated words that belong to the group."""
        return self.tp[0] + self.fn[0]

    @property
    def found(self) -> str:
        """True and all words that are detected at the chosen threshold, and how many there are to detect."""
        tp, fp, fn = (counts[self.at] for counts in (self.tp, self.fp, self.fn))
        return f"{tp} of {tp + fn}, and {fp} others"

    @property
    def none_detected(self) -> float:
        """Accuracy of detecting nothing."""
        return 1.0 - self.row.chance

    def _array(self, name: str) -> NDArray[np.float64]:
        return self.arrays[array_name(self.row.group, self.row.task, name)]

    def _counts(self, name: str) -> list[int]:
        return [int(value) for value in self._array(name)]


@dataclass(frozen=True, eq=False)
class GroupView:
    """A group in one model.

    Attributes
    ----------
    model : str
        The model's label.
    title : str
        The label of the group, with that of the model where there are several.
    row : GroupRow
    others : group -> label
        The groups that it is compared with.
    words, validated, tasks
        Rows of the other tables about it.
    """

    model: str
    title: str
    row: GroupRow
    others: Mapping[str, str]
    words: tuple[WordRow, ...]
    validated: tuple[ValidatedRow, ...]
    tasks: tuple[TaskView, ...]

    def best_words(self, *, emergent: bool, top: int) -> Sequence[WordRow]:
        """The words that rank highest among those associated, or emergent."""
        return [word for word in self.words if (word.emergent if emergent else word.associated)][:top]

    def most_against(self, word: WordRow) -> str:
        """The label of the group that the score of a word comes from."""
        names = (name for name, score in word.scores.items() if score is not None and score == word.score)
        return next((self.others[name] for name in names), "")


def labels_of(run: RunData) -> list[str]:
    """What the models of a run are called: their names, with their settings where two have the same."""
    names = [record.name for record in run.manifest.models]
    return [
        f"{record.name} ({record.options})" if names.count(record.name) > 1 else record.name
        for record in run.manifest.models
    ]


def groups_of(run: RunData) -> list[GroupView]:
    """All groups of all models, in the order of the tables."""
    several = len(run.manifest.models) > 1
    found = []
    for place, (record, label) in enumerate(zip(run.manifest.models, labels_of(run), strict=True)):
        tables = {name: _of(rows, record) for name, rows in run.tables.items()}
        for row in tables.get("groups", ()):
            title = f"{row.label} in {label}" if several else row.label
            others = {name: run.manifest.inputs.labels[name] for name in row.other_groups}
            words, validated, curves = (_about(tables.get(t, ()), row) for t in ("results", "validated", "curves"))
            tasks = tuple(TaskView(curve, run.arrays_of(place)) for curve in curves)
            found.append(GroupView(label, title, row, others, words, validated, tasks))
    return found


def _of(rows: Sequence[Any], record: ModelRecord) -> tuple[Any, ...]:
    return tuple(row for row in rows if is_of(row, record))


def _about(rows: Sequence[Any], group: GroupRow) -> tuple[Any, ...]:
    return tuple(row for row in rows if row.group == group.group)


def group_of(run: RunData, group: str, model: str | None = None) -> GroupView:
    """One group, of the first model or of one by its label."""
    known = {view.row.group: view for view in reversed(groups_of(run)) if model in (None, view.model)}
    if group not in known:
        raise UnknownNameError("group", group, known, f"(groups that were looked at: {', '.join(known)})")
    return known[group]


def lost_of(run: RunData) -> dict[str, ModelRow]:
    """What was searched of every model and what it does not know, by the model's label."""
    pairs = zip(run.manifest.models, labels_of(run), strict=True)
    return {label: row for record, label in pairs for row in _of(run.tables.get("models", ()), record)}
