"""For papers and model cards: tables in LaTeX and Markdown, citations, a section for a model card."""
