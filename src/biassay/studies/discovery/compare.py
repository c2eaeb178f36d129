"""Which words several models associate with a group, and which only one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_unlike
from biassay.results.data import Record, RunData
from biassay.results.gathering import Gathered
from biassay.results.slices import labelled
from biassay.studies.discovery.view import GroupView, groups_of

__all__ = ["SharedWords", "compare_discoveries"]

_ALIKE = {
    "groups": "grouping_digest",
    "words": "vocabulary_digest",
    "threshold": "threshold",
    "rule": "rule",
    "comparison": "compare",
    "alpha": "alpha",
    "permutations": "n_permutations",
    "positive only": "positive_only",
}


@dataclass(frozen=True)
class SharedWords(Record):
    """A group: words that both models associate with it, and words that only one does."""

    group: str
    baseline: str
    model: str
    both: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_model: tuple[str, ...]


def compare_discoveries(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """The words of every group that was searched for in both models."""
    notes = find_unlike({name: _choices(run) for name, run in runs.items()}, _ALIKE, mixed=mixed)
    found = labelled({name: _groups(run) for name, run in runs.items()})
    first = choose_baseline(list(found), baseline)
    rows = [
        _shared(group, (first, found[first][group]), (label, views[group]))
        for label, views in found.items()
        if label != first
        for group in found[first]
        if group in views
    ]
    if not rows:
        raise UsageError("the runs have no group in common")
    gathered = tuple(Gathered(run, {name: run}) for name, run in runs.items())
    return Comparison("discovery", first, {"words": tuple(rows)}, notes, gathered=gathered)


def _choices(run: RunData) -> object:
    return SimpleNamespace(**{**vars(run.manifest.inputs), **vars(run.manifest.settings)})


def _groups(run: RunData) -> dict[str, dict[str, GroupView]]:
    """Groups by name, by the model that they were searched in."""
    views: dict[str, dict[str, GroupView]] = {}
    for view in groups_of(run):
        views.setdefault(view.model, {})[view.row.group] = view
    return views


def _shared(group: str, first: tuple[str, GroupView], second: tuple[str, GroupView]) -> SharedWords:
    mine, theirs = (_associated(name, group, view) for name, view in (first, second))
    in_mine, in_theirs = set(mine), set(theirs)
    return SharedWords(
        group,
        first[0],
        second[0],
        both=tuple(word for word in mine if word in in_theirs),
        only_baseline=tuple(word for word in mine if word not in in_theirs),
        only_model=tuple(word for word in theirs if word not in in_mine),
    )


def _associated(name: str, group: str, view: GroupView) -> list[str]:
    words = [word.word for word in view.words if word.associated]
    if len(words) < view.row.num_associated:
        raise UsageError(
            f"{name}: of {view.row.num_associated:,} words associated with {group} {len(words):,} were kept; "
            "discover them again with a larger --keep"
        )
    return words
