"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import biassay  # noqa: E402
from docs_reference import explained_members, write_pages  # noqa: E402

write_pages()

project = "biassay"
author = "the authors of biassay"
version = release = biassay.__version__
html_title = "biassay"
html_theme = "pydata_sphinx_theme"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"generated/catalogue/*": [], "generated/gallery": []}  # nothing to list, or one step away
html_theme_options = {"show_toc_level": 2, "navigation_depth": 2, "header_links_before_dropdown": 6}

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/extra"]  # pages of the gallery, as they are
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
smartquotes = False  # "--tests" is no dash
autodoc_typehints = "none"  # the docstrings state types in words
default_role = "py:obj"
numpydoc_show_class_members = False  # the template of classes lists them


autosummary_context = {"explained": explained_members()}


def setup(app: Any) -> None:
    """Links to files of the repository outside docs/, which are no part of the site, become their names."""

    def name_files(_app: object, page: str, source: list[str]) -> None:
        folder = (ROOT / "docs" / page).parent

        def named(link: re.Match[str]) -> str:
            inside = (folder / link[2]).resolve().is_relative_to(ROOT / "docs")
            return link[0] if inside else f"{link[1]} (`{link[2].lstrip('./')}` in the repository)"

        source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)]+)\)", named, source[0])

    app.connect("source-read", name_files)
