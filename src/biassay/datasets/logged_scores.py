"""Read scores that a system logged for documents with different names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.data_rows import DataRow, read_rows
from biassay.datasets.fields import raise_problems
from biassay.errors import StimulusError, find_nearest_names
from biassay.grouping import group_pairs

_HINT = "expected columns document, name, group and score, and optionally query, unit and selected (0 or 1)"
_COLUMNS = ("document", "name", "group", "score")
_Cell = tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class LoggedScores:
    """Scores by name, document and query.

    Attributes
    ----------
    names, groups, units : tuple of str
        Names with the group and the unit of each. Names with one unit count as one observation.
    documents, queries : tuple of str
        Ids of the documents and queries; one query with an empty id if the file has no column query.
    scores : ndarray, shape (n_names, n_documents, n_queries)
        Scores, NaN where the file has none.
    selected : ndarray, shape (n_names, n_documents, n_queries), or None
        1 for selected, 0 for others, NaN where the file has none; None without a column selected.
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    units: tuple[str, ...]
    documents: tuple[str, ...]
    queries: tuple[str, ...]
    scores: NDArray[np.float64]
    selected: NDArray[np.float64] | None


def read_logged_scores(path: Path | str) -> LoggedScores:
    """Read a table with the columns document, name, group and score, and optionally query, unit and selected.

    Parameters
    ----------
    path : Path or str
        CSV, TSV, JSON lines or Parquet file with one row per name, document and query. Cells may be missing.

    Returns
    -------
    LoggedScores
        Names sorted by group and name; documents and queries in the order of the file.
    """
    path = Path(path).expanduser()
    lines = dict[_Cell, str]()
    people = dict[str, tuple[str, str, str]]()
    scores, selected = dict[_Cell, float](), dict[_Cell, float]()
    for row in read_rows(path, _HINT):
        row.require_columns(*_COLUMNS)
        name, group, document = (_read_id(row, column) for column in ("name", "group", "document"))
        unit = _read_id(row, "unit") if "unit" in row.values else name
        cell = (name, document, _read_id(row, "query") if "query" in row.values else "")
        if cell in lines:
            row.fail("", f"a score of {name!r} for the document {document!r} is also in {lines[cell]}; remove one")
        first = people.setdefault(name, (group, unit, row.location))
        for column, value, other in zip(("group", "unit"), (group, unit), first, strict=False):
            if value != other:
                row.fail(column, f"the name {name!r} has the {column} {value!r}, but {other!r} in {first[2]}; use one")
        lines[cell], scores[cell] = row.location, _read_number(row, "score")
        if "selected" in row.values:
            selected[cell] = _read_number(row, "selected")
            if selected[cell] not in (0.0, 1.0):
                row.fail("selected", f"expected 0 or 1, got {row.values['selected']!r}")
    if not scores:
        raise StimulusError(f"{path}: no score in it; {_HINT}")
    _check_groups(path, people)
    names = sorted(people, key=lambda name: (people[name][0], name))
    return LoggedScores(
        tuple(names),
        tuple(people[name][0] for name in names),
        tuple(people[name][1] for name in names),
        documents := tuple(dict.fromkeys(cell[1] for cell in scores)),
        queries := tuple(dict.fromkeys(cell[2] for cell in scores)),
        _fill_array(scores, names, documents, queries),
        _fill_array(selected, names, documents, queries) if selected else None,
    )


def _read_id(row: DataRow, column: str) -> str:
    value = str("" if row.values[column] is None else row.values[column]).strip()
    if not value:
        row.fail(column, "the cell is empty")
    return value


def _read_number(row: DataRow, column: str) -> float:
    value = row.values[column]
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        row.fail(column, f"expected a finite number, got {value!r}; leave out rows without one")
    return number


def _check_groups(path: Path, people: dict[str, tuple[str, str, str]]) -> None:
    members = group_pairs((group, name) for name, (group, _, _) in people.items())
    problems = []
    for group, names in members.items():
        if len(names) == 1:
            similar = find_nearest_names(group, members.keys() - {group})
            hint = f"did you mean {similar[0]!r}?" if similar else "add names"
            problems.append(
                f"{path}: {people[names[0]][2]}: the group {group!r} has only one name, {names[0]!r}; {hint}"
            )
    raise_problems(problems)
    if len(members) < 2:
        raise StimulusError(f"{path}: all names are in the group {next(iter(members))!r}; an audit needs two groups")


def _fill_array(
    values: dict[_Cell, float], names: Iterable[str], documents: Iterable[str], queries: Iterable[str]
) -> NDArray[np.float64]:
    places = [{name: i for i, name in enumerate(axis)} for axis in (names, documents, queries)]
    array = np.full([len(axis) for axis in places], np.nan)
    indices = tuple([axis[cell[k]] for cell in values] for k, axis in enumerate(places))
    array[indices] = list(values.values())
    return array
