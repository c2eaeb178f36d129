"""Large tables, read in blocks of rows so that no temporary array is as large as the table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BLOCK", "as_table", "fits_one_block", "largest_value", "product", "row_blocks"]

BLOCK = 1 << 19
"""Cells of a block. A table with at most so many cells is one block, and is kept in float64."""


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield the rows of consecutive blocks of a table."""
    rows, columns = shape
    step = max(1, BLOCK // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def fits_one_block(table: NDArray[np.floating]) -> bool:
    return table.size <= BLOCK


def as_table(values: ArrayLike) -> NDArray[np.floating]:
    """Return values as float64. A large table in float32 stays as it is, because its copy would be twice as large."""
    table = np.asarray(values)
    if table.dtype == np.float32 and not fits_one_block(table):
        return table
    return np.asarray(table, dtype=np.float64)


def largest_value(table: NDArray[np.floating]) -> float:
    """Return the largest absolute value; NaN if a value is NaN, 0 for an empty table."""
    return max(float(table.max()), -float(table.min())) if table.size else 0.0


def product(rows: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.floating]:
    """Return the products of all rows (n, d) with all columns (m, d).

    Returns
    -------
    (n, m) float64, or float32 if there are more than `BLOCK` of them
        Each is computed in float64.
    """
    if len(rows) * len(columns) <= BLOCK:
        return np.asarray(rows @ columns.T)
    table = np.empty((len(rows), len(columns)), dtype=np.float32)
    for block in row_blocks(table.shape):
        table[block] = rows[block] @ columns.T
    return table
