"""How many contexts the words of a test had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from biassay.results.data import RunData
from biassay.studies.associations.records import Result

__all__ = ["Found", "context_range", "contexts_found"]


@dataclass(frozen=True)
class Found:
    """Contexts of a test on a model: words kept of all words, the counts, and the words lost."""

    test: str
    model: str
    kept: int
    words: int
    range: str
    lost: str


def context_range(result: Result) -> str:
    """Fewest, median and most contexts of the words that were measured."""
    if result.contextual is None:
        return ""
    counts = [
        count
        for role, words in result.contextual.num_contexts.items()
        for word, count in words.items()
        if word not in result.lost[role]
    ]
    return f"{min(counts):,} / {median(counts):,.0f} / {max(counts):,}" if counts else ""


def contexts_found(run: RunData, labels: Mapping[tuple[str, str, str | None], str]) -> list[Found]:
    """A row for every test and model."""
    rows = []
    for r in run.results:
        counts = r.contextual.num_contexts if r.contextual else {}
        lost = "; ".join(
            ", ".join(f"{w} {counts[role][w]}{_unplaced(r, role, w)}" if counts else w for w in words)
            for role, words in r.lost.items()
            if words
        )
        kept = sum(r.num_words.values())
        total = kept + sum(map(len, r.lost.values()))
        label = labels[r.model, r.options, r.model_revision]
        rows.append(Found(r.test, label, kept, total, context_range(r), lost))
    return rows


def _unplaced(result: Result, role: str, word: str) -> str:
    return " (the model could not place more)" if result.too_rare and word not in result.too_rare.get(role, ()) else ""
