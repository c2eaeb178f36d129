"""For papers and model cards: tables in LaTeX and Markdown, citations, a section for a model card, the nine columns."""

from __future__ import annotations

from biassay.report.publish.citations import Citation, citations, to_bibtex, to_text
from biassay.report.publish.latex import to_latex
from biassay.report.publish.layout import Table
from biassay.report.publish.markdown import to_markdown
from biassay.report.publish.model_card import model_card
from biassay.report.publish.tables import associations_table, contexts_table
from biassay.report.publish.tsv import nine_columns

__all__ = [
    "Citation",
    "Table",
    "associations_table",
    "citations",
    "contexts_table",
    "model_card",
    "nine_columns",
    "to_bibtex",
    "to_latex",
    "to_markdown",
    "to_text",
]
