"""Benchmark rows from logs of other evaluation tools."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from biassay.datasets.bbq import BbqItem
from biassay.prompts.choices import ParsedChoice
from biassay.stats.benchmark_scores import UNPARSED
from biassay.studies.benchmarks.likelihood_pairs import make_crows_rows, make_stereoset_rows
from biassay.studies.benchmarks.logs import EvaluationLog, LoggedChoice, LoggedPair, LoggedStereoSetItem
from biassay.studies.benchmarks.results import ALL_CATEGORIES, ModelId, TermRow, complete_row, count_unanswered
from biassay.studies.benchmarks.settings import BenchmarkSettings, By
from biassay.studies.benchmarks.tasks.bbq import CombinedChoice, make_bbq_rows
from biassay.studies.study import Row

__all__ = ["make_log_rows"]


def make_log_rows(log: EvaluationLog, settings: BenchmarkSettings, named: ModelId) -> Iterator[Row]:
    """Yield the rows of one log. A question that was answered several times counts with its most frequent answer.

    Parameters
    ----------
    log : EvaluationLog
    settings : BenchmarkSettings
    named : ModelId
        The log as a model.
    """
    if log.benchmark == "bbq":
        yield from _make_bbq_log_rows(log, settings, named)
    elif log.benchmark == "crows-pairs":
        pairs = [one for one in log.answers if isinstance(one, LoggedPair)]
        for category, own in _add_all([(one.pair.bias_type, one) for one in pairs]):
            values = np.array([(one.more, one.less) for one in own])
            yield from make_crows_rows(settings, named, category, [one.pair for one in own], values)
    else:
        fillings = [one for one in log.answers if isinstance(one, LoggedStereoSetItem)]
        for category, own in _add_all([(one.bias_type, one) for one in fillings]):
            yield from _make_stereoset_log_rows(settings, named, category, own)


def _make_bbq_log_rows(log: EvaluationLog, settings: BenchmarkSettings, named: ModelId) -> Iterator[Row]:
    by: By = "answer" if log.method == "answer" else "log-probability"
    choices: dict[tuple[str, int], list[ParsedChoice]] = {}
    items: dict[tuple[str, int], BbqItem] = {}
    for one in log.answers:
        if isinstance(one, LoggedChoice) and one.item.target is not None:
            key = (one.item.category, one.item.example)
            items[key] = one.item
            choices.setdefault(key, []).append(one.choice)
    cells: dict[tuple[str, bool], list[tuple[BbqItem, CombinedChoice]]] = {}
    for key, item in items.items():
        chosen = _combine_epochs(choices[key], shown=log.method == "answer")
        cells.setdefault((item.category, not item.ambiguous), []).append((item, chosen))
    for category, clear in sorted(cells):
        yield from make_bbq_rows(settings, named, category, by, cells[category, clear])


def _combine_epochs(choices: Sequence[ParsedChoice], *, shown: bool) -> CombinedChoice:
    """Return the choice over all epochs. If `shown`, the model read the options in their order in the data."""
    kinds = Counter[str](choice.kind for choice in choices)
    places = Counter(choice.option for choice in choices if choice.option is not None)
    counts = places.most_common()
    told = places if shown else Counter[int]()
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return CombinedChoice(UNPARSED, math.nan, kinds, told)
    return CombinedChoice(counts[0][0], counts[0][1] / places.total(), kinds, told)


def _make_stereoset_log_rows(
    settings: BenchmarkSettings, named: ModelId, category: str, own: Sequence[LoggedStereoSetItem]
) -> Iterator[Row]:
    """Yield the rows of a bias type from choices of one sentence out of three.

    A choice of three is meaningful by chance in 2 of 3 cases, and lms compares two sentences, so there is neither lms
    nor icat.
    """
    items: dict[tuple[str, str], list[LoggedStereoSetItem]] = {}
    for one in own:
        items.setdefault((one.bias_type, one.id), []).append(one)
    labels = [_find_majority_label(same) for same in items.values()]
    decided = [(same[0].target, label) for same, label in zip(items.values(), labels, strict=True) if label]
    pro = np.array([math.nan if label == "unrelated" else float(label == "stereotype") for _, label in decided])
    counts = count_unanswered(Counter[str](one.choice.kind for one in own))
    for row in make_stereoset_rows(settings, named, category, [term for term, _ in decided], (pro, 0.0 * pro), 0):
        if isinstance(row.record, TermRow):
            yield Row(row.table, replace(row.record, lms=None))
            continue
        told = {"items": len(items), "undecided": labels.count(None), "unrelated": labels.count("unrelated")}
        alternatives = {name: one for name, one in row.record.alternatives.items() if name == "items"}
        record = replace(row.record, by="answer", alternatives=alternatives, **counts, **told)
        yield Row(row.table, complete_row(record))


def _find_majority_label(same: Sequence[LoggedStereoSetItem]) -> str | None:
    """Return the label chosen most often, or None in case of a tie or without a choice."""
    counts = Counter(one.label for one in same if one.label is not None).most_common(2)
    return None if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]) else counts[0][0]


def _add_all(named: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the answers by category, and all of them if there are several categories."""
    found: dict[str, list[Any]] = {}
    for category, one in named:
        found.setdefault(category, []).append(one)
    yield from found.items()
    if len(found) > 1:
        yield ALL_CATEGORIES, [one for _, one in named]
