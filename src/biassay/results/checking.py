"""Checks of a run that was read: rows that name something which is not there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from biassay.results.codec import shown_value
from biassay.results.data import RunData, rows_by_model
from biassay.results.storage import RESULTS_JSON, Fault

__all__ = ["find_models_without", "find_orphans", "find_unknown", "row_fault"]


def row_fault(table: str, number: int, field: str, text: str) -> Fault:
    """Return a fault of one field of a row."""
    return Fault(RESULTS_JSON, f"tables.{table}[{number}].{field}: {text}")


def find_unknown(run: RunData, table: str, field: str, known: Collection[str]) -> Iterator[Fault]:
    """Yield values of a field, or of a list or the keys of a dict in it, that are not among the known names."""
    for number, row in enumerate(run.tables.get(table, ())):
        value = getattr(row, field)
        for name in (value,) if isinstance(value, str) else value or ():
            if name not in known:
                yield row_fault(table, number, field, f"unknown name {shown_value(name)}")


def find_orphans(run: RunData, tables: Sequence[str], parent: str, fields: Sequence[str]) -> Iterator[Fault]:
    """Yield rows of tables whose model has no row with the same fields in a parent table."""
    known = {_key(row, fields) for row in run.tables.get(parent, ())}
    for table in tables:
        for number, row in enumerate(run.tables.get(table, ())):
            if _key(row, fields) not in known:
                values = ", ".join(f"{field} {shown_value(getattr(row, field))}" for field in fields)
                yield row_fault(table, number, fields[-1], f"{values} is not in the table {parent!r} for this model")


def find_models_without(run: RunData, table: str) -> Iterator[Fault]:
    """Yield measured models that have no row in a table which every model has a row in."""
    rows = rows_by_model(run.manifest.models, run.tables.get(table, ()))
    for index, (record, own) in enumerate(zip(run.manifest.models, rows, strict=True)):
        if record.measured and record.refused is None and not own:
            yield Fault(
                RESULTS_JSON, f"tables.{table}: no row of the model {shown_value(record.name)} (models[{index}])"
            )


def _key(row: Any, fields: Sequence[str]) -> tuple[Any, ...]:
    return row.model, row.options, *(getattr(row, field) for field in fields)
