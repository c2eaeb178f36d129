"""Write the columns of association tests into docs/results.md, from their definitions."""

from __future__ import annotations

from pathlib import Path

from biassay.studies.associations.columns import RESULTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"
BEGIN, END = "<!-- columns: scripts/results_columns.py -->\n", "<!-- end of columns -->\n"


def with_columns(page: str) -> str:
    """The page with the table of columns between its marks."""
    assert not callable(RESULTS.columns)
    rows = "".join(f"| `{column.name}` | {column.help} |\n" for column in RESULTS.columns)
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n| column | holds |\n|---|---|\n{rows}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_columns(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
