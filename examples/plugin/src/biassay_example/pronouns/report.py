"""A report with a section of its own: the occupations with the largest log-odds.

To use it, set `presenter_path = "biassay_example.pronouns.report:PronounsPresenter"` in the study.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from biassay.plugin import Column, DefaultPresenter, Report, RunGroup, Section, make_table

COLUMNS = (Column("occupation", "Occupation", ""), Column("log_odds", "Log-odds", "", "number"))


class PronounsPresenter(DefaultPresenter):
    """Add the largest log-odds to the default report."""

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        report = super().report(gathered, **options)
        rows = sorted(gathered.run.tables["occupations"], key=lambda row: -abs(row.log_odds))[:5]
        table = make_table("", COLUMNS, rows)
        return replace(report, sections=[Section("largest", "Largest log-odds", (table,)), *report.sections])
