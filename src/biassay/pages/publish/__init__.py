"""For papers and model cards: tables in LaTeX and Markdown, citations, a section for a model card."""

from __future__ import annotations

from biassay.pages.publish.citations import Citation, citations, to_bibtex, to_text
from biassay.pages.publish.latex import to_latex
from biassay.pages.publish.layout import Table
from biassay.pages.publish.markdown import to_markdown
from biassay.pages.publish.model_card import model_card

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
