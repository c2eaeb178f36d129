"""Compare the words that several models associate with a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_setting_differences, read_compared
from biassay.results.run_data import BaseRecord, RunData, group_each, label_models
from biassay.studies.discovery.results import GroupView, list_group_views

_COMPARED_SETTINGS = {
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
class SharedWords(BaseRecord):
    """Words that both models associate with a group, and words that only one of them does."""

    group: str
    baseline: str
    model: str
    both: tuple[str, ...]
    only_baseline: tuple[str, ...]
    only_model: tuple[str, ...]


def compare_discoveries(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Compare the words of every group that was searched for in both models.

    Parameters
    ----------
    runs : dict of str to RunData
        Runs by name.
    baseline : str or None
        Label of the model that others are compared with; None for the first.
    mixed : bool
        If True, compare runs with different settings.
    """
    described = {name: read_compared(run, _COMPARED_SETTINGS) for name, run in runs.items()}
    notes = find_setting_differences(described, mixed=mixed)
    found = label_models({name: _get_group_views(run) for name, run in runs.items()})
    first = choose_baseline(list(found), baseline)
    rows = [
        _compare_group(group, (first, found[first][group]), (label, views[group]))
        for label, views in found.items()
        if label != first
        for group in found[first]
        if group in views
    ]
    if not rows:
        raise UsageError("the runs have no group in common")
    return Comparison("discovery", first, {"words": tuple(rows)}, notes, gathered=group_each(runs))


def _get_group_views(run: RunData) -> dict[str, dict[str, GroupView]]:
    """Return groups by model and name."""
    views: dict[str, dict[str, GroupView]] = {}
    for view in list_group_views(run):
        views.setdefault(view.model, {})[view.row.group] = view
    return views


def _compare_group(group: str, first: tuple[str, GroupView], second: tuple[str, GroupView]) -> SharedWords:
    mine, theirs = (_list_associated(name, group, view) for name, view in (first, second))
    in_mine, in_theirs = set(mine), set(theirs)
    return SharedWords(
        group,
        first[0],
        second[0],
        both=tuple(word for word in mine if word in in_theirs),
        only_baseline=tuple(word for word in mine if word not in in_theirs),
        only_model=tuple(word for word in theirs if word not in in_mine),
    )


def _list_associated(name: str, group: str, view: GroupView) -> list[str]:
    words = [word.word for word in view.words if word.associated]
    if len(words) < view.row.n_associated:
        raise UsageError(
            f"{name}: of {view.row.n_associated:,} words associated with {group} {len(words):,} were kept; "
            "discover them again with a larger --keep"
        )
    return words
