"""Write the columns of tables into docs/results.md, from their definitions."""

from __future__ import annotations

import re
from pathlib import Path

from biassay.studies.registry import get_study

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"
SECTION = re.compile(
    r"(<!-- columns of (?P<study>\w+), (?P<table>\w+): scripts/results_columns\.py -->\n)"
    r".*?(<!-- end of columns -->\n)",
    re.DOTALL,
)


def with_columns(page: str) -> str:
    """The page with a table of columns between each pair of marks."""
    return SECTION.sub(lambda mark: f"{mark[1]}\n{_columns(mark['study'], mark['table'])}\n{mark[4]}", page)


def _columns(study: str, table: str) -> str:
    (spec,) = (one for one in get_study(study).schema.tables if one.name == table)
    assert not callable(spec.columns)
    rows = "".join(f"| `{column.name}` | {column.help} |\n" for column in spec.columns)
    return f"| column | holds |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PAGE.write_text(with_columns(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
