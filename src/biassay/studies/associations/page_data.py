"""What the page's script shows a part at a time: the matrix, all numbers, and the words behind a result.

Every number is written as it is to be shown; the script only sorts, filters and pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from biassay.pages.formats import concept, shown, size_word
from biassay.studies.associations.columns import COLUMNS
from biassay.studies.associations.intervals import contributions
from biassay.studies.associations.marks import mark_of, p_by_text, p_by_word
from biassay.studies.associations.records import Result
from biassay.studies.associations.view import RunView

__all__ = ["data_of", "shows_words"]

_MOST_WITH_WORDS = 3000
_ROLES = ("X", "Y", "A", "B")
_COLUMNS = {column.name: column for column in COLUMNS}
_Shown = tuple[str, str, Callable[[Result], str]]


def data_of(view: RunView) -> dict[str, Any]:
    """Models, tests, and a row a result: its model, its test, its two marks, then what stands in the columns."""
    models = {label: place for place, label in enumerate(view.models)}
    tests = {test.test: place for place, test in enumerate(view.tests)}
    columns = _shown_columns(view)
    data: dict[str, Any] = {
        "models": view.models,
        "tests": [[t.test, t.title, *map(concept, (t.targ1, t.targ2, t.attr1, t.attr2))] for t in view.tests],
        "columns": [[label, help] for label, help, _ in columns],
        "rows": [
            [
                models[view.label(r)],
                tests[r.test],
                mark_of(r, "word"),
                mark_of(r, "text"),
                *([r.status] if r.effect_size is None else [cell(r) for _, _, cell in columns]),
            ]
            for r in view.run.results
        ],
        "reasons": {str(i): r.reason for i, r in enumerate(view.run.results) if r.reason},
    }
    if shows_words(view):
        words, shares = _words(view)
        data |= {"words": words, "shares": shares}
    return data


def _is_detailed(view: RunView) -> bool:
    return len(view.run.results) <= _MOST_WITH_WORDS


def shows_words(view: RunView) -> bool:
    """Are the words behind the results known, and few enough to be put on a page?"""
    return _is_detailed(view) and any(contributions(r) is not None for r in view.run.results)


def _shown_columns(view: RunView) -> list[_Shown]:
    """Label, help and cell of every column; those of results.tsv are taken from there."""
    whole = [
        _column("effect_size"),
        ("size", "By convention: small from 0.2, medium from 0.5, large from 0.8.", _size),
        _column("effect_size_by_word"),
        ("95% over words", "The effect to be expected of other words of the same kinds.", view.interval),
        _column("p_value", p_by_text, "p, paper's" if view.over_contexts else None),
        _column("p_value_by_word", p_by_word),
        _column("p_value_by_word_holm"),
    ]
    return whole if _is_detailed(view) else [whole[place] for place in (0, 4, 5)]


def _column(name: str, cell: Callable[[Result], str] | None = None, label: str | None = None) -> _Shown:
    column = _COLUMNS[name]
    return label or column.label, column.help, cell or (lambda row: shown(column.format, column.value(row)))


def _size(result: Result) -> str:
    return size_word(result.effect_size or 0.0)


def _rounded(share: float) -> float | None:
    return round(share, 3) if math.isfinite(share) else None


def _words(view: RunView) -> tuple[list[list[list[str]]], list[list[list[float | None]] | None]]:
    """The words of every test by role, and for every result what they add, in the same order; None: not known."""
    of_test: dict[str, list[dict[str, None]]] = {test.test: [{} for _ in _ROLES] for test in view.tests}
    for r in view.run.results:
        for place, role in enumerate(_ROLES):
            of_test[r.test][place] |= dict.fromkeys(r.associations.get(role, {}))
    shares: list[list[list[float | None]] | None] = []
    for r in view.run.results:
        found = contributions(r)
        if found is None:
            shares.append(None)
            continue
        known = {**found.targets, **found.attributes}
        shares.append(
            [
                [_rounded(known[role].get(word, math.nan)) for word in words]
                for role, words in zip(_ROLES, of_test[r.test], strict=True)
            ]
        )
    return [[list(words) for words in of_test[test.test]] for test in view.tests], shares
