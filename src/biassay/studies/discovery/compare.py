"""Which words several models tie to a group, and which one only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_unlike
from biassay.results.discovery import KIND, Discovery
from biassay.results.gathering import Gathered
from biassay.results.records import Record

__all__ = ["SharedWords", "compare_discoveries"]


@dataclass(frozen=True)
class SharedWords(Record):
    """A group: words that both models tie to it, and words that one of them does."""

    group: str
    baseline: str
    model: str
    both: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_model: tuple[str, ...]


def compare_discoveries(found: Mapping[str, Discovery], *, baseline: str | None, mixed: bool) -> Comparison:
    """The words of every group that both runs searched."""
    notes = find_unlike(
        {n: one.manifest for n, one in found.items()},
        {
            "groups": "grouping_digest",
            "words": "vocabulary_digest",
            "threshold": "threshold",
            "rule": "rule",
            "comparison": "compare",
            "alpha": "alpha",
            "permutations": "permutations",
            "positive only": "positive_only",
        },
        mixed=mixed,
    )
    names = [one.manifest.models[0].name for one in found.values()]
    labels = {
        f"{model} [{name}]" if names.count(model) > 1 else model: one
        for model, (name, one) in zip(names, found.items(), strict=True)
    }
    first = choose_baseline(list(labels), baseline)
    rows = [
        _shared(group.group, first, label, labels[first], one)
        for label, one in labels.items()
        if label != first
        for group in labels[first].results
        if any(group.group == other.group for other in one.results)
    ]
    if not rows:
        raise UsageError("the runs have no group in common")
    return Comparison(
        KIND,
        first,
        {"words": tuple(rows)},
        notes,
        gathered=tuple(Gathered(one, {name: one}) for name, one in found.items()),
    )


def _shared(group: str, first: str, label: str, one: Discovery, other: Discovery) -> SharedWords:
    for name, found in ((first, one), (label, other)):
        kept = sum(word.associated for word in found.of(group).words)
        if kept < found.of(group).num_associated:
            raise UsageError(
                f"{name}: of {found.of(group).num_associated:,} words tied to {group} {kept:,} were kept; "
                "discover them again with a larger --keep"
            )
    mine, theirs = ([w.word for w in found.of(group).words if w.associated] for found in (one, other))
    in_mine, in_theirs = set(mine), set(theirs)
    return SharedWords(
        group,
        first,
        label,
        both=tuple(word for word in mine if word in in_theirs),
        only_baseline=tuple(word for word in mine if word not in in_theirs),
        only_model=tuple(word for word in theirs if word not in in_mine),
    )
