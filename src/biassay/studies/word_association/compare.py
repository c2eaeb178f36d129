"""How word associations differ between models: by word, and by pair of group words or by block of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.pages.formats import counted
from biassay.pages.paired_differences import DIFFERENCES
from biassay.results.comparison import Comparison, choose_baseline, find_unlike
from biassay.results.data import RunData
from biassay.results.differences import EffectDifference
from biassay.results.gathering import Gathered
from biassay.results.slices import Slice, by_model, labelled
from biassay.stats.crossed_answers import crossed_answers, exchanged_words, pooled_blocks
from biassay.studies.paired import Estimate, Paired, differences_of
from biassay.studies.word_association.records import Result, WordResult

__all__ = ["compare_word_associations", "pairs_of"]

_ALIKE = {"words of tests": "tests", "wordings": "wordings", "answers": "answers", "seed": "seed"}
_Floats = NDArray[np.float64]


def compare_word_associations(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Differences of all models from one of them, in the tests that both were given."""
    shared = set.intersection(*({row.test for row in run.results} for run in runs.values())) if runs else set()
    notes = find_unlike({name: _asked(run, shared) for name, run in runs.items()}, _ALIKE, mixed=mixed)
    first = choose_baseline(list(_models(runs)), baseline)
    rows = differences_of(pairs_of(runs, first))
    if not rows:
        raise UsageError("the models have no test in common")
    gathered = tuple(Gathered(run, {name: run}) for name, run in runs.items())
    results = tuple(row for run in runs.values() for row in run.results)
    return Comparison("word_association", first, {DIFFERENCES: rows}, notes, results, gathered)


def _asked(run: RunData, shared: set[str]) -> object:
    inputs, settings = run.manifest.inputs, run.manifest.settings
    tests = ", ".join(sorted(f"{test.name} {test.digest}" for test in inputs.tests if test.name in shared))
    wordings = ", ".join(inputs.wordings)
    return SimpleNamespace(tests=tests, wordings=wordings, answers=settings.n_answers, seed=settings.seed)


def _models(runs: Mapping[str, RunData]) -> dict[str, Slice]:
    return labelled({name: {one.label: one for one in by_model(run)} for name, run in runs.items()})


def pairs_of(runs: Mapping[str, RunData], baseline: str) -> list[Paired]:
    """Every test of the first model, on it and on another."""
    models = _models(runs)
    return [
        _paired(baseline, label, models[baseline], model, row, new.get(row.test))
        for label, model in models.items()
        if label != baseline
        for new in [{row.test: row for row in model["results"]}]
        for row in models[baseline]["results"]
    ]


def _paired(first: str, label: str, one: Slice, other: Slice, old: Result, new: Result | None) -> Paired:
    reason = "; ".join(_lacking({first: old, label: new}))
    effects = old.difference, None if new is None else new.difference
    plain = EffectDifference(old.test, old.title, first, label, old.unit, *effects, reason or None, about=old.about)
    measured = effects[0] is not None, effects[1] is not None
    limit = 1.0 if old.unit == "share" else None
    if reason:
        return Paired(plain, limit, measured)
    words = _words(one, old.test), _words(other, old.test)
    return Paired(plain, limit, measured, partial(_sum, words[0], words[1], old.unit == "log-odds"))


def _lacking(rows: Mapping[str, Result | None]) -> Iterator[str]:
    missing = [name for name, row in rows.items() if row is None or row.difference is None]
    if missing:
        yield f"not measured on {' and '.join(missing)}"
    if len({row.unit for row in rows.values() if row is not None}) > 1:
        yield "shares on one model, log-odds on the other"


def _words(model: Slice, test: str) -> dict[str, WordResult]:
    return {row.word: row for row in model["words"] if row.test == test}


def _sum(
    old: Mapping[str, WordResult], new: Mapping[str, WordResult], log_odds: bool, weight: float, confidence: float
) -> Estimate:
    """Crossed with pairs of group words, where that can give an interval of this confidence; else with answers."""
    shared = [word for word in old if word in new]
    negative = np.array([old[word].pole == "negative" for word in shared])
    most = np.inf if log_odds else 2.0
    values = np.array([_value(new[word].value) + weight * _value(old[word].value) for word in shared])
    exact = exchanged_words(values, negative)
    poles = [values[part & ~np.isnan(values)] for part in (negative, ~negative)]
    value = float(poles[0].mean() - poles[1].mean()) if exact is not None else float("nan")
    over = counted(len(shared), "word")
    last = Estimate(value, None, None, exact.value if exact is not None and log_odds else None, over=over)
    for name, what in _COLUMNS.items():
        first, second = (_table([of[word] for word in shared], name) for of in (new, old))
        if first.shape != second.shape or len(first) < 2:
            continue
        same = bool(np.array_equal(first, second, equal_nan=True))
        summed = first + weight * second
        columns = pooled_blocks(summed) if name == "by_block" else summed
        found = crossed_answers(columns, negative, most, confidence)
        low, high = (None, None) if found is None or found.interval is None else found.interval
        p_value = None if found is None else found.p_value
        last = Estimate(value, low, high, p_value, same, f"{over} and {len(summed):,} {what}")
        if same or last.low is not None:
            return last
    return last


_COLUMNS: Mapping[Literal["by_pair", "by_block"], str] = {
    "by_pair": "pairs of group words",
    "by_block": "blocks of answers",
}


def _table(words: Sequence[WordResult], name: Literal["by_pair", "by_block"]) -> _Floats:
    """Columns x words."""
    columns = [getattr(word, name) for word in words]
    if len({len(column) for column in columns}) != 1:
        return np.zeros((0, len(words)))
    return np.array([[_value(value) for value in column] for column in columns]).T.reshape(-1, len(words))


def _value(number: float | None) -> float:
    return float("nan") if number is None else number
