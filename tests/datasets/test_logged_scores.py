"""Scores that a system logged: the table as arrays, and mistakes with their line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from biassay.datasets.logged_scores import read_logged_scores
from biassay.errors import StimulusError

HEADER = "document,name,group,score\n"
ROWS = "d1,Ann,a,0.5\nd1,Beth,a,0.25\nd1,Carl,b,-1\nd1,Dan,b,1e-3\nd2,Ann,a,2\n"


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_scores_by_name_and_document(tmp_path: Path) -> None:
    logged = read_logged_scores(write(tmp_path, HEADER + ROWS))
    assert logged.names == ("Ann", "Beth", "Carl", "Dan")
    assert logged.groups == ("a", "a", "b", "b")
    assert logged.units == logged.names
    assert (logged.documents, logged.queries) == (("d1", "d2"), ("",))
    nan = np.nan
    np.testing.assert_array_equal(logged.scores[:, :, 0], [[0.5, 2], [0.25, nan], [-1, nan], [0.001, nan]])
    assert logged.selected is None


def test_queries_units_and_selections(tmp_path: Path) -> None:
    rows = [
        {"document": "d", "name": name, "group": group, "query": query, "score": i, "selected": i % 2, "unit": unit}
        for i, (name, group, unit, query) in enumerate(
            (name, group, unit, query)
            for query in ("q2", "q1")
            for name, group, unit in (("Bo", "b", "Bo"), ("Ann", "a", "Ann"), ("Cy", "b", "Cy"), ("Anna", "a", "Ann"))
        )
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, rows)), "scores.jsonl")
    logged = read_logged_scores(path)
    assert logged.names == ("Ann", "Anna", "Bo", "Cy")
    assert logged.units == ("Ann", "Ann", "Bo", "Cy")
    assert logged.queries == ("q2", "q1")
    np.testing.assert_array_equal(logged.scores[:, 0], [[1, 5], [3, 7], [0, 4], [2, 6]])
    assert logged.selected is not None
    np.testing.assert_array_equal(logged.selected[:, 0], [[1, 1], [1, 1], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEADER + ROWS + "d2,Carl,b,high\n",
            "line 7: field score: expected a finite number, got 'high'; leave out rows",
        ),
        (HEADER + ROWS + "d2,Carl,b,\n", "line 7: field score: expected a finite number, got ''"),
        (HEADER + ROWS + "d2,Carl,b,nan\n", "line 7: field score: expected a finite number, got 'nan'"),
        (HEADER + ROWS + "d2,Carl,b,-inf\n", "line 7: field score: expected a finite number, got '-inf'"),
        (
            HEADER + ROWS + "d1,Dan,b,2\n",
            "line 7: a score of 'Dan' for the document 'd1' is also in line 5; remove one",
        ),
        (HEADER + ROWS + "d2,Dan,a,2\n", "line 7: field group: the name 'Dan' has the group 'a', but 'b' in line 5"),
        (HEADER + ROWS + "d2,Eve,bb,2\n", "line 7: the group 'bb' has only one name, 'Eve'; did you mean 'b'"),
        (HEADER + ROWS + "d2,,b,2\n", "line 7: field name: the cell is empty"),
        (HEADER + "d1,Ann,a,1\nd1,Beth,a,2\n", "all names are in the group 'a'; an audit needs two groups"),
        (HEADER, "no score in it; expected columns document, name, group and score"),
        ("document,name,groups,score\nd1,Ann,a,1\n", "line 2: the column 'group' is missing; rename 'groups'"),
        (
            "document,name,group,logit\nd1,Ann,a,1\n",
            "the column 'score' is missing; found document, name, group, logit",
        ),
        (HEADER + "d1,Ann,a\n", "line 2: expected 4 cells, as in the header"),
        ("document,name,group,score,selected\nd,Ann,a,1,yes\n", "line 2: field selected: expected a finite number"),
        ("document,name,group,score,selected\nd,Ann,a,1,2\n", "line 2: field selected: expected 0 or 1, got '2'"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(StimulusError, match=message) as caught:
        read_logged_scores(path)
    assert str(path) in str(caught.value)
