"""Benchmarks from logs of other tools: the same rows as of models that are asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from biassay.answers.logs.records import Log, LoggedChoice, LoggedFilling, LoggedPair
from biassay.stats.benchmark_scores import UNPARSED
from biassay.stimuli.benchmarks.bbq import BbqItem
from biassay.studies.benchmarks.numbers import Named, nothing_counts, unanswered
from biassay.studies.benchmarks.questions import Chosen, bbq_rows
from biassay.studies.benchmarks.sentences import ALL, crows_rows, stereoset_rows
from biassay.studies.benchmarks.settings import By, Settings
from biassay.studies.study import Row
from biassay.texts.choices import Choice

__all__ = ["rows_of_log"]

_NOT_LOGGED = {"lms", "lms_low", "lms_high", "icat", "icat_low", "icat_high"}


def rows_of_log(log: Log, settings: Settings, named: Named) -> Iterator[Row]:
    """The rows of one log. A question that was answered several times has the answer that was given most often."""
    if log.benchmark == "bbq":
        yield from _bbq(log, settings, named)
    elif log.benchmark == "crows-pairs":
        pairs = [one for one in log.answers if isinstance(one, LoggedPair)]
        for category, own in _with_all([(one.pair.bias_type, one) for one in pairs]):
            values = np.array([(one.more, one.less) for one in own])
            yield from crows_rows(settings, named, category, [one.pair for one in own], values)
    else:
        fillings = [one for one in log.answers if isinstance(one, LoggedFilling)]
        for category, own in _with_all([(one.bias_type, one) for one in fillings]):
            yield from _stereoset(settings, named, category, own)


def _bbq(log: Log, settings: Settings, named: Named) -> Iterator[Row]:
    by: By = "answer" if log.method == "answer" else "log-probability"
    choices: dict[tuple[str, int], list[Choice]] = {}
    items: dict[tuple[str, int], BbqItem] = {}
    for one in log.answers:
        if isinstance(one, LoggedChoice) and one.item.target is not None:
            key = (one.item.category, one.item.example)
            items[key] = one.item
            choices.setdefault(key, []).append(one.choice)
    cells: dict[tuple[str, bool], list[tuple[BbqItem, Chosen]]] = {}
    for key, item in items.items():
        chosen = _most_often(choices[key], shown=log.method == "answer")
        cells.setdefault((item.category, not item.ambiguous), []).append((item, chosen))
    for category, clear in sorted(cells):
        yield from bbq_rows(settings, named, category, by, cells[category, clear])


def _most_often(choices: Sequence[Choice], *, shown: bool) -> Chosen:
    """Return the choice over all epochs. If `shown`, the model read the options in their order in the data."""
    kinds = Counter[str](choice.kind for choice in choices)
    places = Counter(choice.option for choice in choices if choice.option is not None)
    counts = places.most_common()
    told = places if shown else Counter[int]()
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return Chosen(UNPARSED, math.nan, kinds, told)
    return Chosen(counts[0][0], counts[0][1] / places.total(), kinds, told)


def _stereoset(settings: Settings, named: Named, category: str, own: Sequence[LoggedFilling]) -> Iterator[Row]:
    """One sentence of three is chosen: the unrelated one, or one of the others, which says nothing of the third.

    By chance that is a meaningful one in 2 of 3 cases, not in 1 of 2 as lms has it: there is neither lms nor icat.
    """
    items: dict[tuple[str, str], list[LoggedFilling]] = {}
    for one in own:
        items.setdefault((one.bias_type, one.id), []).append(one)
    labels = [_label(same) for same in items.values()]
    decided = [(same[0].target, label) for same, label in zip(items.values(), labels, strict=True) if label]
    pro = np.array([math.nan if label == "unrelated" else float(label == "stereotype") for _, label in decided])
    counts = unanswered(Counter[str](one.choice.kind for one in own))
    for row in stereoset_rows(settings, named, category, [term for term, _ in decided], (pro, 0.0 * pro), 0):
        record = replace(row.record, **dict.fromkeys(_NOT_LOGGED & row.record.__dict__.keys()))
        if row.table == "results":
            told = {"items": len(items), "undecided": labels.count(None), "unrelated": labels.count("unrelated")}
            record = replace(record, by="answer", **counts, **told)
            record = record if record.score is not None else replace(record, reason=nothing_counts(record))
        yield Row(row.table, record)


def _label(same: Sequence[LoggedFilling]) -> str | None:
    """What is chosen most often; None: nothing is."""
    counts = Counter(one.label for one in same if one.label is not None).most_common(2)
    return None if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]) else counts[0][0]


def _with_all(named: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Answers by category, and all of them where there are several."""
    found: dict[str, list[Any]] = {}
    for category, one in named:
        found.setdefault(category, []).append(one)
    yield from found.items()
    if len(found) > 1:
        yield ALL, [one for _, one in named]
