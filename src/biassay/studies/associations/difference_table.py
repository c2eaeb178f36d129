"""Differences between models as a table."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import clean, decimals, interval_text
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table
from biassay.results.comparison import Comparison
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.differences import CHECKS, apart, family_of, parted, rows_of
from biassay.studies.associations.marks import SIGNS

__all__ = ["difference_table"]


def difference_table(found: Comparison) -> Table:
    """Tests down, models across: the difference from the first model and its interval."""
    people, checks = parted(rows_of(found))
    groups = [Group("", _rows(people, found.models)), Group(CHECKS, _rows(checks, found.models))]
    caption = (
        f"Differences of calibrated differences from {found.baseline}, over the words that both models know, with "
        "paired 95% intervals over target and attribute words. * the interval leaves out zero; ** so does the "
        f"simultaneous one. {family_of(found)} An interval that holds zero does not show that two models are equal."
    )
    spans = tuple(Span(clean(model), ("difference", "95%")) for model in found.models)
    return Table(clean(caption), ("Test",), spans, tuple(group for group in groups if group.rows))


def _rows(rows: Sequence[AssociationDifference], models: Sequence[str]) -> tuple[Row, ...]:
    cells = {(row.test, row.model): row for row in rows}
    return tuple(
        Row((clean(test),), tuple(cell for model in models for cell in _cells(cells.get((test, model)))))
        for test in dict.fromkeys(row.test for row in rows)
    )


def _cells(row: AssociationDifference | None) -> tuple[Cell, Cell]:
    if row is None:
        return Cell(""), Cell("")
    if row.difference is None or row.interval_low is None or row.interval_high is None:
        return Cell(decimals(row.difference)), Cell("–")
    interval = interval_text(row.interval_low, row.interval_high).replace("-", "−")
    return Cell(decimals(row.difference), SIGNS[apart(row)]), Cell(interval)
