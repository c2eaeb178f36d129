"""What the page's script shows a part at a time: the matrix, all numbers, and the words behind a result.

Every number is written as it is to be shown; the script only sorts, filters and pages.
"""

from __future__ import annotations

import math
from typing import Any

from biassay.pages.formats import concept
from biassay.studies.associations.intervals import contributions
from biassay.studies.associations.lead import lead_of
from biassay.studies.associations.marks import mark_of
from biassay.studies.associations.page_columns import PageColumn, column_groups
from biassay.studies.associations.records import Result
from biassay.studies.associations.view import RunView

__all__ = ["data_of", "only_these_words", "shown_groups", "shows_words"]

_MOST_WITH_WORDS = 3000
_ROLES = ("X", "Y", "A", "B")


def data_of(view: RunView) -> dict[str, Any]:
    """Models, tests, and a row a result: model, test, mark, whether it holds for these words only, then its cells."""
    models = {label: place for place, label in enumerate(view.models)}
    tests = {test.test: place for place, test in enumerate(view.tests)}
    groups = shown_groups(view)
    columns = [column for group in groups.values() for column in group]
    data: dict[str, Any] = {
        "models": view.models,
        "tests": [[t.test, t.title, *map(concept, (t.targ1, t.targ2, t.attr1, t.attr2))] for t in view.tests],
        "columns": [[column.label, column.help] for column in columns],
        "groups": [[name, len(group)] for name, group in groups.items()],
        "rows": [
            [
                models[view.label(r)],
                tests[r.test],
                mark_of(r),
                int(only_these_words(r)),
                *([column.cell(r) for column in columns] if r.status == "measured" else [r.status]),
            ]
            for r in view.results
        ],
        "reasons": {str(i): r.reason for i, r in enumerate(view.results) if r.reason},
    }
    if shows_words(view):
        words, shares = _words(view)
        data |= {"words": words, "shares": shares}
    return data


def only_these_words(result: Result) -> bool:
    """Significant for these attribute words, or these texts, and not for the concepts."""
    narrow = result.significant if lead_of(result) == "text" else result.significant_by_word
    return result.D is not None and bool(narrow) and not result.significant_crossed


def shown_groups(view: RunView) -> dict[str, list[PageColumn]]:
    """The columns that the page has room for; of very many results only what leads."""
    groups = column_groups(view)
    return groups if _is_detailed(view) else dict(list(groups.items())[:1])


def _is_detailed(view: RunView) -> bool:
    return len(view.run.results) <= _MOST_WITH_WORDS


def shows_words(view: RunView) -> bool:
    """Are the words behind the results known, and few enough to be put on a page?"""
    return _is_detailed(view) and any(contributions(r) is not None for r in view.run.results)


def _rounded(share: float) -> float | None:
    return round(share, 3) if math.isfinite(share) else None


def _words(view: RunView) -> tuple[list[list[list[str]]], list[list[list[float | None]] | None]]:
    """The words of every test by role, and for every result what they add, in the same order; None: not known."""
    of_test: dict[str, list[dict[str, None]]] = {test.test: [{} for _ in _ROLES] for test in view.tests}
    for r in view.results:
        for place, role in enumerate(_ROLES):
            of_test[r.test][place] |= dict.fromkeys(r.associations.get(role, {}))
    shares: list[list[list[float | None]] | None] = []
    for r in view.results:
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
