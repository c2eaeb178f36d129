"""The tables of a run put together again, model by model and measure by measure, for those who show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.results.data import Manifest, ModelRecord, RunData, is_of
from biassay.results.labels import numbered
from biassay.studies.stereotypes.records import (
    AlignmentRow,
    ContextsRow,
    DominanceRow,
    EmergentRow,
    GroupAlignmentRow,
    InputsRecord,
    MeasureRow,
    ModelRow,
    OrderRow,
    ProfileRow,
    RatedRow,
)
from biassay.studies.stereotypes.settings import Settings

__all__ = ["CrossedView", "MeasureView", "ModelView", "View"]

_NOT_SHOWN = "head"  # which of a model's heads fills blanks follows from its kind


@dataclass(frozen=True, eq=False)
class MeasureView:
    """One measure of one model.

    ``alignments`` are those with all annotators first, ``by_group`` the same for every group.
    """

    row: MeasureRow
    scores: NDArray[np.float64] | None
    profiles: tuple[ProfileRow, ...]
    alignments: tuple[AlignmentRow, ...]
    by_group: tuple[GroupAlignmentRow, ...]

    @property
    def measure(self) -> str:
        return self.row.measure

    @property
    def templates(self) -> tuple[str, ...]:
        return self.row.templates

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.row.chosen

    @property
    def overall(self) -> AlignmentRow | None:
        """Agreement with all people."""
        return self.alignments[0] if self.alignments else None

    @property
    def pilot(self) -> frozenset[str]:
        """The groups on which templates were chosen."""
        return frozenset(row.group for row in self.by_group if row.pilot)

    def groups_of(self, alignment: AlignmentRow) -> tuple[GroupAlignmentRow, ...]:
        """Every group, rated by the same annotators."""
        return tuple(row for row in self.by_group if row.annotators == alignment.annotators)


@dataclass(frozen=True, eq=False)
class CrossedView:
    """Paired groups under one measure."""

    order: OrderRow
    dominance: tuple[DominanceRow, ...]
    emergent: tuple[EmergentRow, ...]
    rated: RatedRow | None

    @property
    def measure(self) -> str:
        return self.order.measure


@dataclass(frozen=True, eq=False)
class ModelView:
    """Everything of one model; ``contexts`` and ``standard_errors`` where CEAT was measured."""

    label: str
    row: ModelRow
    measures: tuple[MeasureView, ...]
    intersections: tuple[CrossedView, ...]
    contexts: ContextsRow | None
    standard_errors: NDArray[np.float64] | None

    @property
    def closest(self) -> MeasureView | None:
        """The measure that agrees best with people: of equals, and where none has a tau, the first."""
        taus = [None if found.overall is None else found.overall.tau for found in self.measures]
        best = max((tau for tau in taus if tau is not None), default=None)
        return self.measures[taus.index(best)] if taus else None


@dataclass(frozen=True, eq=False)
class View:
    """A run as it is shown."""

    run: RunData

    @property
    def manifest(self) -> Manifest:
        return self.run.manifest

    @property
    def settings(self) -> Settings:
        settings: Settings = self.run.manifest.settings
        return settings

    @property
    def inputs(self) -> InputsRecord:
        inputs: InputsRecord = self.run.manifest.inputs
        return inputs

    @cached_property
    def models(self) -> tuple[ModelView, ...]:
        """The models that were measured, each with a label of its own."""
        views: list[ModelView] = []
        for place, record in enumerate(self.manifest.models):
            rows = {name: [row for row in table if is_of(row, record)] for name, table in self.run.tables.items()}
            if rows.get("models"):
                label = numbered(_label(record), {view.label for view in views})
                views.append(_model(label, rows, self.run.arrays_of(place)))
        return tuple(views)


def _label(record: ModelRecord) -> str:
    settings = ";".join(f"{name}={value}" for name, value in record.settings.items() if name != _NOT_SHOWN)
    return f"{record.name} ({settings})" if settings else record.name


def _model(label: str, rows: dict[str, list[Any]], arrays: dict[str, NDArray[np.float64]]) -> ModelView:
    return ModelView(
        label,
        rows["models"][0],
        tuple(_measure(row, rows, arrays) for row in rows.get("measures", ())),
        tuple(_crossed(row, rows) for row in rows.get("orders", ())),
        next(iter(rows.get("contexts", ())), None),
        arrays.get("ceat/standard_errors"),
    )


def _measure(row: MeasureRow, rows: dict[str, list[Any]], arrays: dict[str, NDArray[np.float64]]) -> MeasureView:
    profiles, alignments, by_group = (
        _of(rows.get(name, ()), row.measure) for name in ("profiles", "alignments", "group_alignments")
    )
    return MeasureView(row, arrays.get(f"{row.measure}/scores"), profiles, alignments, by_group)


def _crossed(order: OrderRow, rows: dict[str, list[Any]]) -> CrossedView:
    found, emergent, rated = (_of(rows.get(name, ()), order.measure) for name in ("dominance", "emergent", "rated"))
    return CrossedView(order, found, emergent, rated[0] if rated else None)


def _of(rows: Sequence[Any], measure: str) -> tuple[Any, ...]:
    return tuple(row for row in rows if row.measure == measure)
