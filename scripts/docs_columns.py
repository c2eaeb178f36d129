"""Write docs/columns.md: the columns of every table, from their definitions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from biassay.results.tables import Column, TableSpec
from biassay.studies.registry import get_study, study_names

PAGE = Path(__file__).resolve().parents[1] / "docs" / "columns.md"
# Every table begins with these columns; the page explains them once.
COMMON = ("model", "options", "model_revision")
_HEAD = """# Columns

`python scripts/docs_columns.py` writes this page from the code. [Results](results.md) explains the files.

Every table begins with `model` (name) and `options` (settings), and some have `model_revision` (fingerprint of the
weights).
"""


def make_page() -> str:
    """Return the page: a section per study, and the table `decisions`, which all share, once."""
    studies = [study for study in map(get_study, study_names()) if study.package == "biassay"]
    parts = [_HEAD]
    for study in studies:
        tables = [table for table in study.schema.tables if table.name != "decisions"]
        parts += [f"## {study.title}\n", *map(_describe_table, tables)]
    (decisions,) = (table for table in studies[0].schema.tables if table.name == "decisions")
    parts += ["## All studies\n", _describe_table(decisions)]
    return "\n".join(parts)


def _describe_table(table: TableSpec) -> str:
    head = f"### {table.title} (`{table.name}`)\n"
    if table.key:
        *first, last = ("model", *(name.replace("_", " ") for name in table.key))
        head += f"\nOne row per {', '.join(first)} and {last}.\n"
    if callable(table.columns):
        return f"{head}\nThe columns depend on the groups of the run: [discovery](discovery.md#from-python).\n"
    return f"{head}\n| column | meaning |\n|---|---|\n{''.join(_list_rows(table.columns))}"


def _list_rows(columns: Iterable[Column]) -> Iterable[str]:
    return (f"| `{column.name}` | {column.help} |\n" for column in columns if column.name not in COMMON)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
