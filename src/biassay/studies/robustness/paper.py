"""Robustness as a table of a paper: a line a test, and the numbers of every model beside each other."""

from __future__ import annotations

from biassay.pages.formats import clean, shown
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.studies.robustness.columns import NUMBERS

__all__ = ["paper_table"]

_HEADS = {"same_sign": "same", "significant": "signif.", "p_joint": "joint p"}


def paper_table(run: RunData) -> Table:
    """What the tests survive."""
    labels = model_labels(run)
    heads = tuple(_HEADS.get(column.name, column.label) for column in NUMBERS)
    found = {
        (row.test, labels[model_key(row)]): tuple(Cell(shown(column.format, column.value(row))) for column in NUMBERS)
        for row in run.results
    }
    names = list(dict.fromkeys(label for _, label in found))
    none = (Cell("–"),) * len(NUMBERS)
    rows = tuple(
        Row((clean(test),), tuple(cell for name in names for cell in found.get((test, name), none)))
        for test in dict.fromkeys(test for test, _ in found)
    )
    told = (f"{head}: {column.help}" for head, column in zip(heads, NUMBERS, strict=True))
    spans = tuple(Span(clean(name), heads) for name in names)
    caption = clean(" ".join(["What the tests survive.", *told]))
    return Table(caption, ("test",), spans, (Group("", rows),), spare=("same", "signif.", "joint p"))
