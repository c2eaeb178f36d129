"""A run of stereotypes as it is shown, model by model and measure by measure."""

from __future__ import annotations

from biassay.results.slices import Slice
from biassay.results.slices import by_model as models_of
from biassay.studies.stereotypes.records import AlignmentRow, GroupAlignmentRow

__all__ = ["by_group", "closest", "measure_name", "measures_of", "models_of", "overall", "pilot_of"]

_NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT", "ceat": "CEAT"}


def measure_name(measure: str) -> str:
    return _NAMES.get(measure, measure)


def measures_of(model: Slice) -> list[Slice]:
    """All rows about a measure, each with the row of the measure itself."""
    return model.each("measures", "measure")


def overall(measure: Slice) -> AlignmentRow | None:
    """Agreement with all people, which comes before that with some of them."""
    return measure.first("alignments")


def closest(model: Slice) -> Slice | None:
    """The measure that agrees best with people: of equals, and where none has a tau, the first."""
    measures = measures_of(model)
    taus = [None if (found := overall(measure)) is None else found.tau for measure in measures]
    best = max((tau for tau in taus if tau is not None), default=None)
    return measures[taus.index(best)] if taus else None


def by_group(measure: Slice) -> list[GroupAlignmentRow]:
    """Agreement of every group with all people."""
    found = overall(measure)
    return [row for row in measure["group_alignments"] if found is not None and row.annotators == found.annotators]


def pilot_of(measure: Slice) -> frozenset[str]:
    """The groups on which templates were chosen."""
    return frozenset(row.group for row in measure["group_alignments"] if row.pilot)
