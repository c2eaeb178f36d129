"""What the rows of all benchmarks share."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from biassay.answers.answers import Answers
from biassay.stats.clusters import ClusterEstimate
from biassay.studies.benchmarks.records import Result

__all__ = ["Named", "found_by", "nothing_counts", "unanswered", "who", "with_score"]

_NO_CHOICE = ("refused", "filtered", "failed", "several", "empty", "unparsed")

Named = tuple[str, str, str | None]
"""Of a model: its name, its settings as rows write them, and its revision."""


def who(model: Answers) -> Named:
    return model.identity.name, model.identity.options, model.identity.revision


def found_by(value: float) -> float | None:
    """A number; None where there is none."""
    return None if math.isnan(value) else float(value)


def unanswered(kinds: Counter[str]) -> dict[str, Any]:
    """Return the fields of a row that count answers by kind."""
    replies = kinds.total()
    lost = sum(kinds[kind] for kind in _NO_CHOICE)
    share = lost / replies if replies else None
    return {"replies": replies, **{kind: kinds[kind] for kind in _NO_CHOICE}, "unanswered": share}


def with_score(row: Result, score: ClusterEstimate, by_item: ClusterEstimate) -> Result:
    """The row with its score; without one it failed, and says what was counted instead."""
    if math.isnan(score.value):
        return replace(row, status="failed", reason=nothing_counts(row), null=score.null)
    return replace(
        row,
        score=score.value,
        null=score.null,
        score_low=found_by(score.interval[0]),
        score_high=found_by(score.interval[1]),
        p_value=found_by(score.p_value),
        n_clusters=score.n_clusters,
        n_names=score.n_names,
        df=found_by(score.df),
        largest_share=found_by(score.largest_share),
        item_low=found_by(by_item.interval[0]),
        item_high=found_by(by_item.interval[1]),
        p_value_item=found_by(by_item.p_value),
    )


def nothing_counts(row: Result) -> str:
    """Why there is no score."""
    if row.n:
        return f"of {row.n:,} answers that count, all are 'unknown'"
    counts = {
        "answers refused": row.refused,
        "filtered by the endpoint": row.filtered,
        "failed after retries": row.failed,
        "that choose several options": row.several,
        "empty": row.empty,
        "unparsed": row.unparsed,
        "undecided": row.undecided,
        "that choose the unrelated sentence": row.unrelated,
        "without a likelihood": row.left_out,
    }
    told = [f"{count:,} {name}" for name, count in counts.items() if count]
    return f"no item counts: {', '.join(told) or 'there is none'}"
