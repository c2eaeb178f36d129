"""Write docs/plugin.md: the names of biassay.plugin, from their docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from biassay import plugin

PAGE = Path(__file__).resolve().parents[1] / "docs" / "plugin.md"
_TOPICS = {
    "studies": "Studies, metrics and outcomes of responses",
    "results": "Results",
    "reporting": "Reports",
    "models": "Models",
    "prompts": "Requests",
    "cache": "Outputs of models",
    "datasets": "Association tests",
    "stats": "Statistics",
    "io": "Files",
    "errors": "Errors, shown as one line",
}
# Names without a docstring of their own.
_MEANINGS = {
    "BLANK_COLUMNS": "Names of the columns of `BlankScores`.",
    "Capability": "A capability of models: texts, words, blanks, replies or likelihoods.",
    "DECISIONS": "The table `decisions`. With it, biassay corrects p-values over the questions of each model.",
    "Event": "Event of `Study.measure`: rows, arrays, progress, warnings and unknown words.",
    "Evidence": "Grades of evidence: significant, uncorrected, inconclusive, not_testable, descriptive, skipped.",
    "MODEL_COLUMNS": "Columns of the model's name and settings.",
    "Tables": "Tables of a run by name.",
}
_HEAD = """# Names of biassay.plugin

`python scripts/docs_plugin.py` writes this page from the code; `help(biassay.plugin.Study)` prints a full
description. [Extending biassay](extending.md) shows how to use the names.
"""


def make_page() -> str:
    """Return the page: a table of names for every topic."""
    stub = Path(plugin.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    packages = {name: package for package, name in re.findall(r"^from biassay\.(\w+)\S* import (\w+)", stub, re.M)}
    parts = [_HEAD]
    for package, title in _TOPICS.items():
        rows = [f"| `{name}` | {_describe(name)} |\n" for name in sorted(packages) if packages[name] == package]
        parts.append(f"## {title}\n\n| name | meaning |\n|---|---|\n{''.join(rows)}")
    return "\n".join(parts)


def _describe(name: str) -> str:
    if name in _MEANINGS:
        return _MEANINGS[name]
    first = (inspect.getdoc(getattr(plugin, name)) or "").partition("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
