"""How word associations differ between models: by word, and by pair of group words or by block of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.pages.formats import counted
from biassay.results.comparison import Comparison, find_unlike
from biassay.results.data import RunData
from biassay.results.differences import EffectDifference
from biassay.results.slices import Slice
from biassay.stats.crossed_answers import CrossedAnswers, WordsAlone, crossed_answers, pooled_blocks, words_alone
from biassay.studies.paired import MOST_REFUSALS, Estimate, Paired, compared, models_of
from biassay.studies.word_association.records import Result, WordResult

__all__ = ["compare_word_associations", "pairs_of"]

_ALIKE = {"words of tests": "tests", "wordings": "wordings", "answers": "answers", "seed": "seed"}
_Floats = NDArray[np.float64]


def compare_word_associations(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Differences of all models from one of them, in the tests that both were given."""
    shared = set.intersection(*({row.test for row in run.results} for run in runs.values())) if runs else set()
    notes = find_unlike({name: _asked(run, shared) for name, run in runs.items()}, _ALIKE, mixed=mixed)
    return compared("word_association", runs, pairs_of, baseline=baseline, notes=notes, what="test")


def _asked(run: RunData, shared: set[str]) -> object:
    inputs, settings = run.manifest.inputs, run.manifest.settings
    tests = ", ".join(sorted(f"{test.name} {test.digest}" for test in inputs.tests if test.name in shared))
    wordings = ", ".join(inputs.wordings)
    return SimpleNamespace(tests=tests, wordings=wordings, answers=settings.n_answers, seed=settings.seed)


def pairs_of(runs: Mapping[str, RunData], baseline: str) -> list[Paired]:
    """Every test of the first model, on it and on another."""
    models = models_of(runs)
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
    plain = EffectDifference(
        old.test, old.title, first, label, old.unit, *effects, reason or None, about=old.about, topic=old.topic
    )
    measured = effects[0] is not None, effects[1] is not None
    limit = 1.0 if old.unit == "share" else None
    if reason:
        return Paired(plain, limit, measured)
    words = _words(one, old.test), _words(other, old.test)
    doubt = "; ".join(text for name, row in ((first, old), (label, new)) if row for text in _doubts(name, row))
    return Paired(plain, limit, measured, partial(_sum, words[0], words[1], old.unit == "log-odds"), doubt)


def _doubts(name: str, row: Result) -> Iterator[str]:
    """Warn of what changes the reading of a difference near 0."""
    if row.follows_order:
        yield f"{name} follows the order of the group words"
    none = sum(count or 0 for count in (row.refused, row.filtered, row.failed, row.unparsed))
    if none > MOST_REFUSALS * row.answers:
        share = f"{none:,} of {row.answers:,} responses, more than {MOST_REFUSALS:.0%}"
        yield f"{name} refused, did not answer or could not be read in {share}"


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
    """Crossed with pairs of group words, where that can give an interval of this confidence; else with answers, or, of
    log-odds, which do not vary from answer to answer, by word alone."""
    shared = [word for word in old if word in new]
    negative = np.array([old[word].pole == "negative" for word in shared])
    tables = {name: tuple(_table([of[word] for word in shared], name) for of in (new, old)) for name in _COLUMNS}
    values = np.array([_value(new[word].value) + weight * _value(old[word].value) for word in shared])
    alone, over = words_alone(values, negative, confidence), counted(len(shared), "word")
    value = float("nan") if alone is None else alone.difference
    if all(np.array_equal(first, second, equal_nan=True) for first, second in tables.values()):
        return Estimate(value, None, None, None, same=True, over=over)
    last = Estimate(value, None, None, None, over=over, lacking=f"{over} are too few")
    for name, what in _COLUMNS.items():
        first, second = tables[name]
        if first.shape == second.shape and len(first) > 1:
            summed = first + weight * second
            columns = pooled_blocks(summed) if name == "by_block" else summed
            found = crossed_answers(columns, negative, 2.0 if not log_odds else np.inf, confidence)
            last = _estimate(value, found, f"{over} and {len(columns):,} {what}", confidence)
            if last.low is not None:
                return last
    if log_odds:
        return _estimate(value, alone, over, confidence)
    return last


def _estimate(value: float, found: CrossedAnswers | WordsAlone | None, over: str, confidence: float) -> Estimate:
    """Where nothing varies, the exact p-value decides whether the words and columns are enough."""
    if found is None:
        return Estimate(value, None, None, None, over=over, lacking=f"{over} are too few")
    enough = found.floor <= 1.0 - confidence
    if found.flat and enough:
        ends = sorted((value, found.difference))
        return Estimate(value, ends[0], ends[1], found.p_value, over=f"{over}, all alike")
    low, high = found.interval or (None, None)
    lacking = f"nothing varies, but {over} are too few" if found.flat else f"{over} are too few"
    return Estimate(value, low, high, found.p_value, over=over, lacking=lacking if low is None else "")


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
