"""For papers and model cards: tables in LaTeX and Markdown, citations, a section for a model card."""

from __future__ import annotations

from biassay.report.publish.citations import Citation, citations, to_bibtex, to_text
from biassay.report.publish.latex import to_latex
from biassay.report.publish.layout import Table
from biassay.report.publish.markdown import to_markdown
from biassay.report.publish.model_card import model_card

__all__ = [
    "Citation",
    "Table",
    "citations",
    "model_card",
    "to_bibtex",
    "to_latex",
    "to_markdown",
    "to_text",
]
