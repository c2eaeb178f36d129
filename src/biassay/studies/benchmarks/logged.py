"""Benchmarks from logs of other tools: the same rows as of models that are asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from biassay.answers.logs.records import Log, LoggedChoice, LoggedFilling, LoggedPair
from biassay.stats.benchmark_scores import UNPARSED
from biassay.stimuli.benchmarks.bbq import BbqItem
from biassay.studies.benchmarks.numbers import Named
from biassay.studies.benchmarks.questions import Chosen, bbq_rows
from biassay.studies.benchmarks.sentences import ALL, crows_rows, stereoset_rows
from biassay.studies.benchmarks.settings import By, Settings
from biassay.studies.study import Row
from biassay.texts.choices import Choice

__all__ = ["rows_of_log"]


def rows_of_log(log: Log, settings: Settings, named: Named) -> Iterator[Row]:
    """The rows of one log. A question that was answered several times has the answer that was given most often."""
    if log.benchmark == "bbq":
        yield from _bbq(log, settings, named)
    elif log.benchmark == "crows-pairs":
        pairs = [one for one in log.answers if isinstance(one, LoggedPair)]
        for category, own in _with_all([(one.pair.bias_type, one) for one in pairs]):
            values = np.array([(one.more, one.less) for one in own])
            yield from crows_rows(settings, named, category, [one.pair.id for one in own], values)
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
        cells.setdefault((item.category, not item.ambiguous), []).append((item, _most_often(choices[key])))
    for category, clear in sorted(cells):
        yield from bbq_rows(settings, named, category, by, cells[category, clear])


def _most_often(choices: Sequence[Choice]) -> Chosen:
    kinds = Counter[str](choice.kind for choice in choices)
    counts = Counter(choice.option for choice in choices if choice.option is not None).most_common()
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return Chosen(UNPARSED, math.nan, kinds)
    return Chosen(counts[0][0], counts[0][1] / sum(count for _, count in counts), kinds)


def _stereoset(settings: Settings, named: Named, category: str, own: Sequence[LoggedFilling]) -> Iterator[Row]:
    """One sentence of three is chosen: the meaningless one, or one of the others, which says nothing of the third."""
    told = [one for one in own if one.label is not None]
    pro = [math.nan if one.label == "unrelated" else float(one.label == "stereotype") for one in told]
    related = [float(one.label != "unrelated") for one in told]
    terms = [one.target for one in told]
    preferred = np.array(pro), np.array(related)
    yield from stereoset_rows(settings, named, category, terms, preferred, len(own) - len(told))


def _with_all(named: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Answers by category, and all of them where there are several."""
    found: dict[str, list[Any]] = {}
    for category, one in named:
        found.setdefault(category, []).append(one)
    yield from found.items()
    if len(found) > 1:
        yield ALL, [one for _, one in named]
