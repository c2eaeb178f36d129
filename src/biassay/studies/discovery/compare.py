"""Compare the words that several models associate with a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.results.comparison import Comparison, choose_baseline, find_setting_differences, read_compared
from biassay.results.run_data import BaseRecord, RunData, group_each, label_models
from biassay.results.tables import column, table_row
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


_MAX_LISTED = 30


def _declare_words(name: str, label: str, text: str) -> Any:
    """Declare a column that shows the number of words and the first ones."""

    def format_words(row: SharedWords) -> str:
        words: tuple[str, ...] = getattr(row, name)
        return f"{len(words):,}: {', '.join(words[:_MAX_LISTED])}" if words else "none"

    return column(
        label, f"Words that are associated with the group {text}: their number, and examples.", get=format_words
    )


@table_row
class SharedWords(BaseRecord):
    """Words that both models associate with a group, and words that only one of them does."""

    group: str = column("group", "The group.")
    baseline: str
    model: str = column("model", "The model that is compared.")
    both: tuple[str, ...] = _declare_words("both", "by both", "by both models")
    only_baseline: tuple[str, ...] = _declare_words("only_baseline", "by the first only", "by the first model only")
    only_model: tuple[str, ...] = _declare_words("only_model", "by the model only", "by the model only")


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
    views = {name: group_pairs((view.model, view) for view in list_group_views(run)) for name, run in runs.items()}
    found = {label: {view.row.group: view for view in own} for label, own in label_models(views).items()}
    first = choose_baseline(list(found), baseline)
    rows = tuple(
        _compare_group(first, view, label, own[group])
        for label, own in found.items()
        if label != first
        for group, view in found[first].items()
        if group in own
    )
    if not rows:
        raise UsageError("the runs have no group in common")
    return Comparison("discovery", first, {"words": rows}, notes, gathered=group_each(runs))


def _compare_group(baseline: str, old: GroupView, model: str, new: GroupView) -> SharedWords:
    mine, theirs = (_list_associated(name, view) for name, view in ((baseline, old), (model, new)))
    return SharedWords(
        old.row.group,
        baseline,
        model,
        both=tuple(word for word in mine if word in theirs),
        only_baseline=tuple(word for word in mine if word not in theirs),
        only_model=tuple(word for word in theirs if word not in mine),
    )


def _list_associated(name: str, view: GroupView) -> dict[str, None]:
    words = {word.word: None for word in view.best_words()}
    if len(words) < view.row.n_associated:
        raise UsageError(
            f"{name}: only {len(words):,} of {view.row.n_associated:,} words associated with {view.row.group} were "
            "kept; discover them again with a larger --keep"
        )
    return words
