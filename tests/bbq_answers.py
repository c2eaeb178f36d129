"""The released answers to BBQ in tests/reference/bbq."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.prompts.choices import parse_choice_as_bbq

__all__ = ["CELLS", "FOLDER", "answers", "template_counts"]

FOLDER = Path(__file__).parent / "reference" / "bbq"
FORMATS = {"format_race": "race", "format_arc": "arc", "baseline_qonly": "qonly"}
CELLS = tuple(json.loads((FOLDER / "expected.json").read_text()))


@cache
def _targets() -> dict[tuple[str, int], int]:
    with (FOLDER / "target_loc.csv").open(newline="") as file:
        return {(row["category"], int(row["example_id"])): int(row["target_loc"]) for row in csv.DictReader(file)}


@cache
def questions(category: str) -> tuple[dict[str, Any], ...]:
    with gzip.open(FOLDER / f"preds_{category}.jsonl.gz", "rt", encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


def answers(cell: str) -> dict[str, Any]:
    """Return the columns of one cell of expected.json in the form of `bbq_score`."""
    category, condition, format_ = cell.split("|")
    rows = list(_rows(category, condition, f"unifiedqa-t5-11b_pred_{FORMATS[format_]}"))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _rows(category: str, condition: str, field: str) -> Iterator[dict[str, Any]]:
    for row in questions(category):
        if row["context_condition"] == condition:
            info = [row["answer_info"][f"ans{i}"] for i in range(3)]
            choice = parse_choice_as_bbq(row[field], [row[f"ans{i}"] for i in range(3)], [texts[0] for texts in info])
            yield {
                "choices": -1 if choice is None else choice,
                "correct": row["label"],
                "target": _targets()[category, row["example_id"]],
                "unknown": [texts[1] for texts in info].index("unknown"),
                "templates": row["question_index"],
            }


def template_counts(cell: str) -> NDArray[np.int64]:
    """Count biased, opposite and "unknown" responses of every template, (templates, 3)."""
    found = answers(cell)
    kinds = np.where(found["choices"] == found["unknown"], 2, np.where(found["choices"] == found["target"], 0, 1))
    _, at = np.unique(found["templates"], return_inverse=True)
    counts = np.zeros((at.max() + 1, 3), dtype=np.int64)
    np.add.at(counts, (at, kinds), 1)
    return counts
