"""The contexts of groups and traits, as ``biassay contexts --abc`` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.markup import escape
from rich.table import Table

from biassay.texts.group_coverage import AbcCoverage

__all__ = ["coverage_as_json", "coverage_table"]


def coverage_table(covered: AbcCoverage) -> Table:
    """One row for the groups, one for the pairs of traits."""
    table = Table()
    for name in ("", "measurable", "contexts: fewest, median, most", "too few or none"):
        table.add_column(name, overflow="fold")
    groups, adjectives = dict(covered.groups), covered.adjectives
    lost = ", ".join(f"{name} {groups[name]}" for name in covered.few_groups)
    rows = (
        ("groups", len(covered.measurable_groups), len(groups), groups, lost),
        ("pairs of traits", len(covered.measurable_pairs), len(covered.pairs), adjectives, _few_of_pairs(covered)),
    )
    for name, able, total, counts, lacking in rows:
        table.add_row(name, f"{able} of {total}", _spread(list(counts.values()), covered.least), escape(lacking))
    return table


def _few_of_pairs(covered: AbcCoverage) -> str:
    """Pairs that cannot be measured, each with what it lacks, then what the others lack."""
    parts, rest = [], []
    for pair in covered.pairs:
        few = [f"{word} {count}" for word, count in (*pair.left, *pair.right) if count < covered.least]
        if pair.measurable:
            rest += few
        else:
            parts.append(f"{pair.pair}: {', '.join(few)}")
    return "; ".join([*parts, *([", ".join(rest)] if rest else [])])


def _spread(counts: Sequence[int], least: int) -> str:
    enough = [count for count in counts if count >= least]
    return f"{min(enough):,} / {median(enough):,.0f} / {max(enough):,}" if enough else ""


def coverage_as_json(covered: AbcCoverage) -> dict[str, Any]:
    """Contexts of groups and pairs by name, and which can be measured."""
    measurable = set(covered.measurable_groups)
    return {
        "groups": [
            {"group": name, "measurable": name in measurable, "contexts": count} for name, count in covered.groups
        ],
        "pairs": [
            {
                "pair": pair.pair,
                "measurable": pair.measurable,
                "contexts": {"left": dict(pair.left), "right": dict(pair.right)},
            }
            for pair in covered.pairs
        ],
    }
