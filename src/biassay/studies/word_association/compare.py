"""Compare word associations of models by word, pair of group words and block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.reporting.formats import format_count
from biassay.results.comparison import EffectDifference
from biassay.results.paired_comparison import (
    MAX_REFUSAL_SHARE,
    CombinedEffect,
    PairedItem,
    measure_slack,
    models_by_label,
    pair_records,
)
from biassay.results.run_data import RunData, RunSlice
from biassay.stats.word_association import (
    CrossedResponses,
    WordsOnlyResult,
    crossed_response_test,
    pool_blocks,
    words_only_test,
)
from biassay.studies.word_association.results import WordAssociationResult, WordResult

_Floats = NDArray[np.float64]


def describe_compared(runs: Mapping[str, RunData]) -> dict[str, dict[str, object]]:
    """Describe the data and settings that compared runs must share, for the tests that all runs have."""
    shared = set[str].intersection(*({row.test for row in run.tables["results"]} for run in runs.values()))
    described: dict[str, dict[str, object]] = {}
    for name, run in runs.items():
        inputs, settings = run.manifest.inputs, run.manifest.settings
        words = sorted(f"{test.name} {test.digest}" for test in inputs.tests if test.name in shared)
        described[name] = {
            "words of tests": ", ".join(words),
            "wordings": ", ".join(inputs.wordings),
            "answers": settings.n_answers,
            "seed": settings.seed,
        }
    return described


def pair_tests(runs: Mapping[str, RunData], baseline: str) -> list[PairedItem]:
    """Pair every test on the baseline and on every other model."""
    models = models_by_label(runs)
    return [_pair_test(models, (baseline, label), old, new) for label, old, new in pair_records(models, baseline)]


def _pair_test(
    models: Mapping[str, RunSlice],
    labels: tuple[str, str],
    old: WordAssociationResult,
    new: WordAssociationResult | None,
) -> PairedItem:
    rows = dict(zip(labels, (old, new), strict=True))
    effects = old.outcome.effect_size, None if new is None else new.outcome.effect_size
    missing = [name for name, effect in zip(labels, effects, strict=True) if effect is None]
    reasons = [f"not measured on {' and '.join(missing)}"] if missing else []
    if new is not None and new.outcome.scale != old.outcome.scale:
        reasons.append("shares on one model, log-odds on the other")
    plain = EffectDifference(
        old.test,
        old.title,
        *labels,
        old.outcome.scale,
        *effects,
        "; ".join(reasons) or None,
        about=old.about,
        topic=old.topic,
    )
    measured = effects[0] is not None, effects[1] is not None
    log_odds = old.outcome.scale == "log-odds"
    limit = None if log_odds else 1.0
    if reasons or new is None:
        return PairedItem(plain, limit, measured)
    words = [{row.word: row for row in models[label]["words"] if row.test == old.test} for label in labels]
    doubt = "; ".join(text for name, row in rows.items() if row for text in _list_doubts(name, row))
    combine = partial(_combine_effects, words[0], words[1], log_odds)
    return PairedItem(plain, limit, measured, combine, doubt, slack=measure_slack(old.outcome, new.outcome))


def _list_doubts(name: str, row: WordAssociationResult) -> Iterator[str]:
    """Yield reasons why a difference near 0 cannot be judged."""
    if row.follows_order:
        yield f"{name} follows the order of the group words"
    none = sum(count or 0 for count in (row.refused, row.filtered, row.failed, row.unparsed))
    if none > MAX_REFUSAL_SHARE * row.answers:
        share = f"{none:,} of {row.answers:,} responses, more than {MAX_REFUSAL_SHARE:.0%}"
        yield f"{name} refused, did not respond or could not be parsed in {share}"


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
    first, second = (np.array([of[word].value for word in shared], dtype=np.float64) for of in (new, old))
    values = first + weight * second
    alone, over = words_only_test(values, negative, confidence), format_count(len(shared), "word")
    value = float("nan") if alone is None else alone.difference
    if all(np.array_equal(first, second, equal_nan=True) for first, second in tables.values()):
        return CombinedEffect(value, None, None, None, same=True, over=over)
    last = CombinedEffect(value, None, None, None, over=over, missing_reason=f"{over} are too few")
    for name, what in _COLUMNS.items():
        first, second = tables[name]
        if first.shape == second.shape and len(first) > 1:
            summed = first + weight * second
            columns = pool_blocks(summed) if name == "by_block" else summed
            crossed_result = crossed_response_test(columns, negative, 2.0 if not log_odds else np.inf, confidence)
            last = _make_estimate(value, crossed_result, f"{over} and {len(columns):,} {what}", confidence)
            if last.low is not None:
                return last
    if log_odds:
        return _make_estimate(value, alone, over, confidence)
    return last


def _make_estimate(
    value: float, test_result: CrossedResponses | WordsOnlyResult | None, over: str, confidence: float
) -> CombinedEffect:
    """Return the estimate; if nothing varies, `crossed_response_test` bounds it, and log-odds have no bounds."""
    if test_result is None:
        return CombinedEffect(value, None, None, None, over=over, missing_reason=f"{over} are too few")
    enough = test_result.smallest_p_value <= 1.0 - confidence
    if test_result.interval is not None and np.isfinite(test_result.interval).all():
        alike = ", all alike" if test_result.is_flat else ""
        return CombinedEffect(value, *test_result.interval, test_result.p_value, over=f"{over}{alike}")
    missing_reason = f"{over} are too few"
    if test_result.is_flat:
        missing_reason = (
            "log-odds that do not vary have no bounds" if enough else f"nothing varies, but {missing_reason}"
        )
    return CombinedEffect(value, None, None, test_result.p_value, over=over, missing_reason=missing_reason)


_COLUMNS: Mapping[Literal["by_pair", "by_block"], str] = {
    "by_pair": "pairs of group words",
    "by_block": "blocks of answers",
}


def _make_table(words: Sequence[WordResult], name: Literal["by_pair", "by_block"]) -> _Floats:
    """Return a table of columns x words."""
    columns = [getattr(word, name) for word in words]
    if len({len(column) for column in columns}) != 1:
        return np.zeros((0, len(words)))
    return np.array(columns, dtype=np.float64).T.reshape(-1, len(words))
