"""Compare word associations of models by word, pair of group words and block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.reporting.formats import format_count
from biassay.results.comparison import Comparison, find_setting_differences
from biassay.results.differences import EffectDifference
from biassay.results.run_data import RunData
from biassay.results.views import RunSlice
from biassay.stats.crossed_responses import (
    CrossedResponses,
    WordsOnlyResult,
    crossed_response_test,
    pool_blocks,
    words_only_test,
)
from biassay.studies.paired_comparison import (
    MAX_REFUSAL_SHARE,
    CombinedEffect,
    PairedItem,
    compare_paired_items,
    models_by_label,
)
from biassay.studies.word_association.results import WordAssociationResult, WordResult

__all__ = ["compare_word_associations", "pair_tests"]

_COMPARED_DATA = {"words of tests": "tests", "wordings": "wordings", "answers": "answers", "seed": "seed"}
_Floats = NDArray[np.float64]


def compare_word_associations(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Compare all models with the baseline, in the tests that both were given."""
    shared = (
        set.intersection(*({row.test for row in run.tables["results"]} for run in runs.values())) if runs else set()
    )
    notes = find_setting_differences(
        {name: _get_comparable_data(run, shared) for name, run in runs.items()}, _COMPARED_DATA, mixed=mixed
    )
    return compare_paired_items("word_association", runs, pair_tests, baseline=baseline, notes=notes, what="test")


def _get_comparable_data(run: RunData, shared: set[str]) -> object:
    inputs, settings = run.manifest.inputs, run.manifest.settings
    tests = ", ".join(sorted(f"{test.name} {test.digest}" for test in inputs.tests if test.name in shared))
    wordings = ", ".join(inputs.wordings)
    return SimpleNamespace(tests=tests, wordings=wordings, answers=settings.n_answers, seed=settings.seed)


def pair_tests(runs: Mapping[str, RunData], baseline: str) -> list[PairedItem]:
    """Every test of the first model, on it and on another."""
    models = models_by_label(runs)
    return [
        _pair_test(baseline, label, models[baseline], model, row, new.get(row.test))
        for label, model in models.items()
        if label != baseline
        for new in [{row.test: row for row in model["results"]}]
        for row in models[baseline]["results"]
    ]


def _pair_test(
    first: str,
    label: str,
    one: RunSlice,
    other: RunSlice,
    old: WordAssociationResult,
    new: WordAssociationResult | None,
) -> PairedItem:
    reason = "; ".join(_explain_missing({first: old, label: new}))
    effects = old.outcome.effect_size, None if new is None else new.outcome.effect_size
    plain = EffectDifference(
        old.test, old.title, first, label, old.outcome.scale, *effects, reason or None, about=old.about, topic=old.topic
    )
    measured = effects[0] is not None, effects[1] is not None
    log_odds = old.outcome.scale == "log-odds"
    limit = None if log_odds else 1.0
    if reason:
        return PairedItem(plain, limit, measured)
    words = _get_words(one, old.test), _get_words(other, old.test)
    doubt = "; ".join(text for name, row in ((first, old), (label, new)) if row for text in _list_doubts(name, row))
    return PairedItem(plain, limit, measured, partial(_combine_effects, words[0], words[1], log_odds), doubt)


def _list_doubts(name: str, row: WordAssociationResult) -> Iterator[str]:
    """Warn of what changes the reading of a difference near 0."""
    if row.follows_order:
        yield f"{name} follows the order of the group words"
    none = sum(count or 0 for count in (row.refused, row.filtered, row.failed, row.unparsed))
    if none > MAX_REFUSAL_SHARE * row.answers:
        share = f"{none:,} of {row.answers:,} responses, more than {MAX_REFUSAL_SHARE:.0%}"
        yield f"{name} refused, did not answer or could not be read in {share}"


def _explain_missing(rows: Mapping[str, WordAssociationResult | None]) -> Iterator[str]:
    missing = [name for name, row in rows.items() if row is None or row.outcome.effect_size is None]
    if missing:
        yield f"not measured on {' and '.join(missing)}"
    if len({row.outcome.scale for row in rows.values() if row is not None}) > 1:
        yield "shares on one model, log-odds on the other"


def _get_words(model: RunSlice, test: str) -> dict[str, WordResult]:
    return {row.word: row for row in model["words"] if row.test == test}


def _combine_effects(
    old: Mapping[str, WordResult], new: Mapping[str, WordResult], log_odds: bool, weight: float, confidence: float
) -> CombinedEffect:
    """Estimate the new effect plus `weight` times the old one, over the words that both models share.

    Words are crossed with pairs of group words if that gives an interval of this confidence, otherwise with answers.
    Log-odds do not vary between answers, so they are tested by word alone.
    """
    shared = [word for word in old if word in new]
    negative = np.array([old[word].pole == "negative" for word in shared])
    tables = {name: tuple(_make_table([of[word] for word in shared], name) for of in (new, old)) for name in _COLUMNS}
    values = np.array([_nan_if_none(new[word].value) + weight * _nan_if_none(old[word].value) for word in shared])
    alone, over = words_only_test(values, negative, confidence), format_count(len(shared), "word")
    value = float("nan") if alone is None else alone.difference
    if all(np.array_equal(first, second, equal_nan=True) for first, second in tables.values()):
        return CombinedEffect(value, None, None, None, same=True, over=over)
    last = CombinedEffect(value, None, None, None, over=over, lacking=f"{over} are too few")
    for name, what in _COLUMNS.items():
        first, second = tables[name]
        if first.shape == second.shape and len(first) > 1:
            summed = first + weight * second
            columns = pool_blocks(summed) if name == "by_block" else summed
            found = crossed_response_test(columns, negative, 2.0 if not log_odds else np.inf, confidence)
            last = _make_estimate(value, found, f"{over} and {len(columns):,} {what}", confidence)
            if last.low is not None:
                return last
    if log_odds:
        return _make_estimate(value, alone, over, confidence)
    return last


def _make_estimate(
    value: float, found: CrossedResponses | WordsOnlyResult | None, over: str, confidence: float
) -> CombinedEffect:
    """Where nothing varies, the exact p-value decides whether the words and columns are enough."""
    if found is None:
        return CombinedEffect(value, None, None, None, over=over, lacking=f"{over} are too few")
    enough = found.smallest_p_value <= 1.0 - confidence
    if found.is_flat and enough:
        ends = sorted((value, found.difference))
        return CombinedEffect(value, ends[0], ends[1], found.p_value, over=f"{over}, all alike")
    low, high = found.interval or (None, None)
    lacking = f"nothing varies, but {over} are too few" if found.is_flat else f"{over} are too few"
    return CombinedEffect(value, low, high, found.p_value, over=over, lacking=lacking if low is None else "")


_COLUMNS: Mapping[Literal["by_pair", "by_block"], str] = {
    "by_pair": "pairs of group words",
    "by_block": "blocks of answers",
}


def _make_table(words: Sequence[WordResult], name: Literal["by_pair", "by_block"]) -> _Floats:
    """Columns x words."""
    columns = [getattr(word, name) for word in words]
    if len({len(column) for column in columns}) != 1:
        return np.zeros((0, len(words)))
    return np.array([[_nan_if_none(value) for value in column] for column in columns]).T.reshape(-1, len(words))


def _nan_if_none(number: float | None) -> float:
    return float("nan") if number is None else number
