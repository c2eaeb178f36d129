"""What the page's script shows a part at a time: the matrix, all numbers, and the words behind a result.

Every number is written as it is to be shown; the script only sorts, filters and pages.
"""

from __future__ import annotations

import math
from typing import Any

from biassay.pages.formats import decimals, format_plain_p, size_word
from biassay.studies.associations.intervals import contributions
from biassay.studies.associations.records import Result
from biassay.studies.associations.view import RunView, found_code
from biassay.studies.associations.words import concept, p_by_text, p_by_word

__all__ = ["data_of", "shows_words"]

_MOST_WITH_WORDS = 3000
_ROLES = ("X", "Y", "A", "B")


def data_of(view: RunView) -> dict[str, Any]:
    """Models, tests, and a row a result: its model, its test, its two marks, then what stands in the columns."""
    models = {label: place for place, label in enumerate(view.models)}
    tests = {test.test: place for place, test in enumerate(view.tests)}
    detailed = _is_detailed(view)
    data: dict[str, Any] = {
        "models": view.models,
        "tests": [[t.test, t.title, *map(concept, (t.targ1, t.targ2, t.attr1, t.attr2))] for t in view.tests],
        "columns": _columns(view, detailed=detailed),
        "rows": [
            [
                models[view.label(r)],
                tests[r.test],
                found_code(r, by_word=True),
                found_code(r, by_word=False),
                *_cells(view, r, detailed=detailed),
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


def _columns(view: RunView, *, detailed: bool) -> list[str]:
    first = "p, paper's" if view.over_contexts else "p by text"
    if not detailed:
        return ["effect", first, "p by word"]
    return ["effect", "size", "by word", "95% over words", first, "p by word", "after correction"]


def _cells(view: RunView, r: Result, *, detailed: bool) -> list[str]:
    if r.effect_size is None:
        return [r.status]
    if not detailed:
        return [decimals(r.effect_size), p_by_text(r), p_by_word(r)]
    return [
        decimals(r.effect_size),
        size_word(r.effect_size),
        "–" if r.effect_size_by_word is None else decimals(r.effect_size_by_word),
        view.interval(r),
        p_by_text(r),
        p_by_word(r),
        "–" if r.p_value_by_word_holm is None else format_plain_p(r.p_value_by_word_holm),
    ]


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
