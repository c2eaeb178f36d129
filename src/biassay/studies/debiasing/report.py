"""Report of debiasing: the verdict on every model and method, and its four numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from biassay.grouping import group_pairs
from biassay.reporting.document import Cell, ColumnSpan, Report, RowGroup, Section, Statement, Table, TableRow, Text
from biassay.reporting.methods import CitationUse
from biassay.reporting.presenter import DefaultPresenter
from biassay.results.run_data import RunData, RunGroup, model_key, model_labels
from biassay.studies.debiasing.results import (
    AFTER,
    BEFORE,
    DebiasingResult,
    draw_conclusion,
    format_outcome,
)

_MEANING = (
    "Associations are calibrated differences; the probe is the share of held-out words that it classifies correctly; "
    "names differ in SD of documents; similarity is a rank correlation with people; neighbours is the share kept. "
    "Changes of shares are in percentage points. "
    "Detected means p <= alpha without correction, after erasure too, because missing what is left is the worse error."
)
_COLUMNS = {BEFORE: BEFORE, AFTER: AFTER, "change": ""}
"""Which number every column shows, by its heading."""


def _make_table(title: str, rows: list[DebiasingResult]) -> Table:
    """Make the table of one model and method."""
    body = tuple(
        TableRow((row.name,), tuple(Cell(format_outcome(row, when)) for when in _COLUMNS.values())) for row in rows
    )
    return Table(title, ("measure",), tuple(map(ColumnSpan, _COLUMNS)), (RowGroup("", body),))


class DebiasingPresenter(DefaultPresenter):
    """Verdict first, then the numbers before and after."""

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        run = gathered.run
        verdicts = list(self._conclude(run))
        tables = [_make_table(label, rows) for label, rows, _, _ in verdicts]
        tones = {tone for _, _, tone, _ in verdicts}
        statements = [Statement(f"{label}: {said}", (), label) for label, _, _, said in verdicts]
        skipped = (f"{label}, {row.name}: {row.reason}" for label, rows, _, _ in verdicts for row in rows if row.reason)
        report = super().report(gathered, **options)
        return dataclasses.replace(
            report,
            title=statements[0].text if len(statements) == 1 else f"{len(statements)} erasures compared",
            findings=(),
            statements=statements,
            details=[*map(Statement, skipped)],
            tables=tables,
            sections=[
                Section("numbers", "Before and after", (Text(_MEANING), *tables), collapsed=False),
                *report.sections,
            ],
            tone="bad" if "bad" in tones else "unsure",
        )

    def _get_meaning(self, run: RunData) -> str:  # noqa: ARG002
        return _MEANING

    def _conclude(self, run: RunData) -> Iterator[tuple[str, list[DebiasingResult], str, str]]:
        """Yield label, rows, tone and verdict of every model and method."""
        groups = group_pairs(((model_key(row), row.method), row) for row in run.tables.get("results", ()))
        labels = model_labels(run)
        for (key, method), rows in groups.items():
            yield f"{labels[key]}, {method}", rows, *draw_conclusion(rows, run.manifest.settings.alpha)

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
        from biassay.models.erasure import get_erasure_method

        for name in run.manifest.settings.method:
            method = get_erasure_method(name)
            yield CitationUse(f"erasure by {method.title}", text=method.source)
        yield from super().methods(run)
