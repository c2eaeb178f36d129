"""The results in the columns of the published ones, and no others."""

from __future__ import annotations

from biassay.results.codec import tsv_lines
from biassay.results.records import PAPER_COLUMNS
from biassay.results.run import Run

__all__ = ["nine_columns"]


def nine_columns(run: Run) -> str:
    """results.tsv with the papers' nine columns. An empty cell was not computed."""
    return tsv_lines([PAPER_COLUMNS, *([getattr(result, name) for name in PAPER_COLUMNS] for result in run.results)])
