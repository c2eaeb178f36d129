"""Tables of the terminal: whatever their width, every cell is there and no line is too wide."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from biassay.reporting.terminal import printed
from biassay.results.tables import Column


def lines_of(columns: int, rows: int, width: int, most: int | None = 30) -> list[str]:
    made = [Column(f"c{i}", f"head{i}", "A column.", get=lambda row, i=i: f"cell{row}x{i}") for i in range(columns)]
    out = io.StringIO()
    Console(file=out, width=width).print(printed("Title", made, range(rows), most))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("columns", [1, 4, 20])
@pytest.mark.parametrize("rows", [1, 3, 12])
def test_wide_tables_are_turned_or_split(columns: int, rows: int, width: int) -> None:
    lines = lines_of(columns, rows, width)
    assert max(map(len, lines)) <= width
    found = re.findall(r"cell\d+x\d+|head\d+", " ".join(lines))
    assert set(found) == {
        *(f"cell{row}x{column}" for row in range(rows) for column in range(columns)),
        *(f"head{column}" for column in range(columns)),
    }


def test_a_narrow_table_has_a_line_a_row() -> None:
    lines = lines_of(3, 12, 100)
    assert sum("cell" in line for line in lines) == 12
    assert [line.split() for line in lines if "cell5x0" in line] == [["cell5x0", "cell5x1", "cell5x2"]]


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    lines = lines_of(2, 2000, 80)
    assert sum("cell" in line for line in lines) == 30
    assert "1,970" in lines[-1]
    assert sum("cell" in line for line in lines_of(2, 2000, 80, None)) == 2000
