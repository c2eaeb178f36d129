"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import biassay  # noqa: E402
from docs_reference import list_documented_members, write_pages  # noqa: E402

write_pages()

project = "biassay"
author = "the authors of biassay"
version = release = biassay.__version__
html_title = "biassay"
html_theme = "pydata_sphinx_theme"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"generated/catalogue/*": [], "generated/gallery": []}  # they have nothing to list
html_theme_options = {"show_toc_level": 2, "navigation_depth": 2, "header_links_before_dropdown": 6}

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/extra"]  # the reports of the gallery
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
smartquotes = False  # "--tests" is no dash
autodoc_typehints = "none"  # the docstrings state types in words
default_role = "py:obj"
numpydoc_show_class_members = False  # the template of classes lists them


autosummary_context = {"explained": list_documented_members()}


def setup(app: Any) -> None:
    """Adapt pages that also work on GitHub: comments become directives, links out of docs/ become file names."""

    def adapt_page(_app: object, page: str, source: list[str]) -> None:
        folder = (ROOT / "docs" / page).parent

        def name_file(link: re.Match[str]) -> str:
            inside = (folder / link[2]).resolve().is_relative_to(ROOT / "docs")
            return link[0] if inside else f"{link[1]} (`{link[2].lstrip('./')}` in the repository)"

        text = re.sub(r"^<!-- toctree\n(.*?)^-->", r"```{toctree}\n\1```", source[0], flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"^<!-- include (\S+) -->", r"```{raw} html\n:file: \1\n```", text, flags=re.MULTILINE)
        source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)]+)\)", name_file, text)

    app.connect("source-read", adapt_page)
