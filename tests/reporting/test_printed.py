"""Terminal tables: at any width every cell is present and no line is too wide."""

from __future__ import annotations

import re
from functools import partial

import pytest

from biassay.reporting.document import make_table
from biassay.reporting.terminal import render_table
from biassay.results.tables import Column


def _format_cell(column: int, row: int) -> str:
    return f"cell{row}x{column}"


def lines_of(columns: int, rows: int, width: int, most: int | None = 30) -> list[str]:
    made = [Column(f"c{i}", f"head{i}", "A column.", get=partial(_format_cell, i)) for i in range(columns)]
    return [line.plain for line in render_table(make_table("", made, range(rows), most), width)]


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("columns", [1, 4, 20])
@pytest.mark.parametrize("rows", [1, 3, 12])
def test_wide_tables_are_split(columns: int, rows: int, width: int) -> None:
    lines = lines_of(columns, rows, width)
    assert max(map(len, lines)) <= width
    found = re.findall(r"cell\d+x\d+|head\d+", " ".join(lines))
    assert set(found) == {
        *(f"cell{row}x{column}" for row in range(rows) for column in range(columns)),
        *(f"head{column}" for column in range(columns)),
    }


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    lines = lines_of(2, 2000, 80)
    assert sum("cell" in line for line in lines) == 30
    assert "1,970" in lines[-1]
    assert sum("cell" in line for line in lines_of(2, 2000, 80, None)) == 2000
