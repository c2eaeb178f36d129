"""Answers to BBQ as its authors released them: preds_CATEGORY.jsonl, questions with answers of models beside them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from biassay.answers.logs.records import Log, LoggedChoice, Unmapped
from biassay.errors import StimulusError, UsageError
from biassay.files import content_digest
from biassay.stimuli.benchmarks.bbq import bbq_item
from biassay.stimuli.benchmarks.rows import Row, read_rows
from biassay.texts.choices import Choice, authors_choice

__all__ = ["is_bbq_release", "read_bbq_release"]

_FILE = re.compile(r"preds_.+\.jsonl(\.gz)?")
_FIELD = re.compile(r"(?P<model>.+)_pred_(?P<format>[a-z]+)")
_NO_CONTEXT = "qonly"


def is_bbq_release(path: Path) -> bool:
    return _FILE.fullmatch(path.name) is not None


def read_bbq_release(paths: Sequence[Path]) -> tuple[Log, ...]:
    """Read the answers of all files, one log for each model and format.

    Answers are read by the authors' rules. Where the question was shown alone (format qonly), ambiguous contexts count
    and the others do not: their answer cannot be known without the context.
    """
    rows = [row for path in paths for row in read_rows(path)]
    fields = {name: named for row in rows for name in row.values if (named := _FIELD.fullmatch(name))}
    if not fields:
        raise UsageError(f"{paths[0]}: no released answers to BBQ: no line has a field MODEL_pred_FORMAT")
    digests = [content_digest(path) for path in paths]
    digest = digests[0] if len(paths) == 1 else hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
    path = paths[0] if len(paths) == 1 else paths[0].parent
    logs = []
    for field, parts in fields.items():
        answers, unmapped = _answers(rows, field, parts["format"] == _NO_CONTEXT)
        if not answers:
            raise UsageError(f"{path}: no answer of {field} can be used; the first: {unmapped[0].reason}")
        logs.append(
            Log(
                path=path,
                digest=digest,
                tool="answers released with BBQ",
                version="",
                benchmark="bbq",
                task=parts["format"],
                model=parts["model"],
                method="answer",
                answers=tuple(answers),
                unmapped=tuple(unmapped),
            )
        )
    return tuple(logs)


def _answers(rows: Sequence[Row], field: str, alone: bool) -> tuple[list[LoggedChoice], list[Unmapped]]:
    answers, unmapped = [], []
    for row in rows:
        try:
            item, reply = bbq_item(row), row.text(field)
        except StimulusError as error:
            unmapped.append(Unmapped(row.place, str(error).removeprefix(f"{row.path}: {row.place}: ")))
            continue
        if alone and not item.ambiguous:
            unmapped.append(Unmapped(row.place, "the question was shown without the context that answers it"))
            continue
        option = authors_choice(reply, item.options, item.info)
        answers.append(LoggedChoice(item, Choice("unparsed") if option is None else Choice("chosen", option)))
    return answers, unmapped
