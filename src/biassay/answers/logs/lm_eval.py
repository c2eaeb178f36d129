"""Sample logs of lm-evaluation-harness: samples_TASK_DATE.jsonl, one line for each item (option --log_samples)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from biassay.answers.logs.records import FORMS, Log, LoggedChoice, LoggedPair, Unmapped
from biassay.errors import StimulusError, UsageError
from biassay.files import content_digest
from biassay.stimuli.benchmarks.bbq import UNKNOWN_PHRASES, BbqItem, bbq_item
from biassay.stimuli.benchmarks.crows_pairs import crows_pair
from biassay.stimuli.benchmarks.rows import Row, read_rows
from biassay.texts.choices import Choice, read_choice

__all__ = ["read_lm_eval"]

_NAME = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)")
_TIE = 1e-9


def read_lm_eval(path: Path) -> Log:
    """Read a sample log of BBQ or CrowS-Pairs. A log of another task is refused."""
    rows = list(read_rows(path))
    named = _NAME.fullmatch(path.stem)
    task = named["task"] if named else ""
    benchmark = _benchmark(rows, path, task)
    answers: list[Any] = []
    unmapped = []
    for row in _first_filter(rows):
        try:
            answers.append(_choice(row) if benchmark == "bbq" else _pair(row))
        except StimulusError as error:
            reason = str(error).removeprefix(f"{path}: {row.place}: ")
            unmapped.append(Unmapped(row.place, reason, _item_name(row)))
    if not answers:
        raise UsageError(f"{path}: none of its {len(unmapped)} samples can be used; the first: {unmapped[0].reason}")
    model, version = _results(path, named["date"] if named else "")
    return Log(
        path=path,
        digest=content_digest(path),
        tool="lm-evaluation-harness",
        version=version,
        benchmark="bbq" if benchmark == "bbq" else "crows-pairs",
        task=task,
        model=model,
        method="answer" if benchmark == "bbq" and not _compared(rows[0]) else "likelihood",
        answers=tuple(answers),
        unmapped=tuple(unmapped),
    )


def _benchmark(rows: Sequence[Row], path: Path, task: str) -> str:
    docs = [row.values["doc"] for row in rows if isinstance(row.values.get("doc"), dict)]
    if not docs:
        raise UsageError(f"{path}: no sample log: no line has a field 'doc'; expected {FORMS}")
    for name, fields in (("bbq", {"answer_info", "example_id"}), ("crows-pairs", {"sent_more", "sent_less"})):
        if fields <= docs[0].keys():
            return name
    what = f"the task {task}" if task else f"another task (fields: {', '.join(docs[0])[:100]})"
    raise UsageError(f"{path}: a log of {what}; of lm-evaluation-harness, logs of bbq and crows_pairs are read")


def _item_name(row: Row) -> str:
    """Return the name of a question or pair in the data, if the log holds it."""
    doc = row.values.get("doc")
    values = doc if isinstance(doc, dict) else {}
    names = (values.get("category") or values.get("bias_type"), values.get("example_id", row.values.get("doc_id")))
    return " ".join(str(name) for name in names if name is not None)


def _first_filter(rows: Sequence[Row]) -> Iterator[Row]:
    """Each item once: a task with several filters logs every answer once for each."""
    return (row for row in rows if row.values.get("filter") == rows[0].values.get("filter"))


def _choice(row: Row) -> LoggedChoice:
    item = bbq_item(_doc(row))
    return LoggedChoice(item, _compared_choice(row, item) if _compared(row) else _written_choice(row, item))


def _pair(row: Row) -> LoggedPair:
    pair = crows_pair(_doc(row), row.whole("doc_id"))
    found = dict(_likelihoods(row))
    if found.keys() != {pair.more.strip(), pair.less.strip()}:
        row.fail("arguments", "the sentences asked about are not those of the item")
    return LoggedPair(pair, found[pair.more.strip()], found[pair.less.strip()])


def _doc(row: Row) -> Row:
    doc = row.value("doc")
    return Row(row.path, row.place, doc if isinstance(doc, dict) else {})


def _compared(row: Row) -> bool:
    return len(_arguments(row)) > 1


def _arguments(row: Row) -> list[Any]:
    """The last part of every request: a continuation, or how an answer was generated."""
    given = row.value("arguments")
    parts = list(given.values()) if isinstance(given, dict) else given
    if not isinstance(parts, list) or not parts:
        row.fail("arguments", "no request in it")
    requests = [list(part.values()) if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(request, list) and request for request in requests):
        row.fail("arguments", "a request that is not a list of its parts")
    return [request[-1] for request in requests]


def _likelihoods(row: Row) -> Iterator[tuple[str, float]]:
    """Every continuation and its log-likelihood."""
    continuations, given = _arguments(row), row.value("filtered_resps")
    if not isinstance(given, list) or len(given) != len(continuations):
        row.fail("filtered_resps", f"expected one answer for each of {len(continuations)} continuations")
    for continuation, answer in zip(continuations, given, strict=True):
        value = answer[0] if isinstance(answer, list) and answer else answer
        number = math.nan
        with suppress(TypeError, ValueError):
            number = float(value)
        if math.isnan(number):
            row.fail("filtered_resps", f"expected a log-likelihood, got {str(value)[:40]!r}")
        yield str(continuation).strip(), number


def _compared_choice(row: Row, item: BbqItem) -> Choice:
    """The likeliest continuation, as the log's own score takes it; all wordings of "unknown" are one option."""
    best: dict[int, float] = {}
    options = [option.strip() for option in item.options]
    for text, value in _likelihoods(row):
        option = options.index(text) if text in options else item.unknown if text in UNKNOWN_PHRASES else None
        if option is None:
            row.fail("arguments", f"the option {text[:60]!r} is none of the item's")
        best[option] = max(value, best.get(option, -math.inf))
    if len(best) != 3:
        row.fail("arguments", f"{len(best)} of 3 options were asked about")
    first, second = sorted(best, key=lambda option: -best[option])[:2]
    return Choice("several") if best[first] - best[second] <= _TIE else Choice("chosen", first)


def _written_choice(row: Row, item: BbqItem) -> Choice:
    given = row.value("filtered_resps")
    reply = given[0] if isinstance(given, list) and given else given
    if not isinstance(reply, str):
        row.fail("filtered_resps", "expected a written answer")
    return read_choice(reply, item.options, unknown=item.unknown, unknown_phrases=UNKNOWN_PHRASES)


def _results(path: Path, date: str) -> tuple[str, str]:
    """Model and version from results_DATE.json beside the log, where it is."""
    with suppress(OSError, ValueError):
        found = json.loads((path.parent / f"results_{date}.json").read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return str(found.get("model_name") or ""), str(found.get("lm_eval_version") or "")
    return "", ""
