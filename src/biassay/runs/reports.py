"""Group and compare loaded runs, and render their reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import MeasurementError, UsageError
from biassay.io import make_printable, write_atomically
from biassay.reporting.charts.base import PRINT, Figure
from biassay.reporting.formats import format_count
from biassay.reporting.html import REPORT_FILE, render_page
from biassay.reporting.presenter import Presenter, Shown
from biassay.reporting.terminal import MAX_LINES, print_report
from biassay.results.comparison import ALPHA, describe_departures, make_missing_verdicts
from biassay.results.run_data import (
    RunData,
    RunGroup,
    check_distinct_runs,
    label_models,
    record_labels,
    select_model,
    short_name,
)
from biassay.runs.progress import format_duration
from biassay.studies.registry import get_study

_MAX_LISTED_MODELS = 4
_LONG = 10.0  # seconds that need no decimals

if TYPE_CHECKING:
    from rich.console import Console

    from biassay.results.comparison import Comparison


def get_presenter(study: str) -> Presenter:
    """Return the presenter of a study, imported on first use."""
    return get_study(study).presenter


def with_presenters(groups: Iterable[RunGroup]) -> list[Shown]:
    """Pair every group of runs with its presenter."""
    return [(get_presenter(group.run.manifest.study), group) for group in groups]


def group_runs(runs: Mapping[str, RunData], *, mixed: bool = False) -> list[RunGroup]:
    """Group runs as a report shows them: studies that merge their runs first, then all others in the order given.

    Runs of one study that differ in protocol or stimuli raise an error unless `mixed` is True.
    """
    check_distinct_runs(runs)
    by_study: dict[str, dict[str, RunData]] = {}
    for name, run in runs.items():
        by_study.setdefault(run.manifest.study, {})[name] = run
    groups = [group for study, own in by_study.items() for group in get_presenter(study).gather(own, mixed=mixed)]
    names = list(runs)

    def order(group: RunGroup) -> int:
        return -1 if get_presenter(group.run.manifest.study).joins_runs else names.index(next(iter(group.parts)))

    return sorted(groups, key=order)


def compare_models(
    runs: Mapping[str, RunData],
    *,
    baseline: str | None = None,
    mixed: bool = False,
    margin: float | None = None,
    alpha: float = ALPHA,
    series: bool = False,
) -> Comparison:
    """Compare the models of runs of one study with a baseline, and judge them.

    Parameters
    ----------
    runs : mapping of str to RunData
    baseline : str, optional
        Label of the model to compare with; by default the first.
    mixed : bool
        If True, compare runs even if they differ in protocol or stimuli.
    margin : float, optional
        Largest growth towards the stereotype that is tolerated; by default that of the study.
    alpha : float
        Probability that any interval of the verdicts misses the true value.
    series : bool
        If True, the models are checkpoints in order, and the trend is judged instead of every model.

    Returns
    -------
    Comparison
        All tests of a model that failed are missing.
    """
    if series and baseline is not None:
        raise UsageError("a series has no --baseline: its first checkpoint is the baseline; change the order instead")
    studies = {run.manifest.study for run in runs.values()}
    if len(studies) != 1:
        raise UsageError(
            f"runs of different studies cannot be compared: {', '.join(sorted(studies))}; show them in one report "
            "with `biassay report`"
        )
    check_distinct_runs(runs)
    presenter = get_presenter(studies.pop())
    selected, remarks = (runs, []) if series else _select_one_baseline(runs, baseline)
    missing = _find_missing_models(selected, baseline)
    remarks += [f"{label}: {reason}" for label, reason in missing.items()]
    if series:
        comparison = presenter.compare_series(selected, mixed=mixed)
    else:
        comparison = presenter.compare(selected, baseline=baseline, mixed=mixed)
    remarks += [
        f"{name} is not finished; biassay compares only its results so far"
        for name, run in runs.items()
        if run.manifest.status != "complete"
    ]
    verdicts = presenter.verdicts(comparison, margin=margin, alpha=alpha)
    if series:
        comparison = dataclasses.replace(comparison, verdicts=verdicts)
        comparison = dataclasses.replace(comparison, points=presenter.series_points(comparison, alpha))
        remarks += describe_departures(comparison)
    for label, reason in missing.items():
        verdicts += tuple(make_missing_verdicts(label, reason, verdicts))
    return dataclasses.replace(comparison, verdicts=verdicts, remarks=(*comparison.remarks, *remarks), missing=missing)


def _find_missing_models(runs: Mapping[str, RunData], baseline: str | None) -> dict[str, str]:
    """Return models without results, with the reasons. Raise an error if the baseline is one of them."""
    models = label_models(
        {name: dict(zip(record_labels(run), run.manifest.models, strict=True)) for name, run in runs.items()}
    )
    missing = {label: f"failed: {record.failed}" for label, record in models.items() if record.failed}
    missing |= {label: f"not measured: {record.skipped}" for label, record in models.items() if record.skipped}
    wanted = [next(iter(models))] if baseline is None else [baseline, short_name(baseline)]
    first = next((label for label in wanted if label in models), None)
    if first in missing:
        raise MeasurementError(
            f"{first}, the model to compare with, has no results: {missing[first]}; choose another with --baseline"
        )
    if missing and len(models) - len(missing) < 2:
        reasons = "; ".join(f"{label}: {reason}" for label, reason in missing.items())
        raise MeasurementError(f"no model is left to compare: {reasons}")
    return missing


def _select_one_baseline(runs: Mapping[str, RunData], baseline: str | None) -> tuple[Mapping[str, RunData], list[str]]:
    """Select one model of the first of several runs as the baseline, and return a remark about it."""
    name, old = next(iter(runs.items()))
    labels = record_labels(old)
    if len(runs) == 1 or len(labels) == 1 or baseline not in (None, *labels):
        return runs, []
    index = 0 if baseline is None else labels.index(baseline)
    several = f"{name} has several models ({', '.join(labels)})"
    remark = f"{several}: compared with {labels[index]}; choose another with --baseline"
    return {**runs, name: select_model(old, index)}, [remark]


def render_report(run: RunData) -> str:
    """Render the HTML report of one run."""
    return render_page(with_presenters(group_runs({"": run})))


def make_figures(run: RunData) -> dict[str, Figure]:
    """Make the figures of one run in print style, by name."""
    shown = with_presenters(group_runs({"": run}))
    figures = [make(PRINT) for presenter, group in shown for make in presenter.figures(group)]
    return {figure.name: figure for figure in figures}


def write_report(run: RunData, folder: Path) -> Path:
    """Write the report of a run into its folder."""
    path = folder / REPORT_FILE
    write_atomically(path, render_report(run).encode())
    return path


def print_run(run: RunData, console: Console, **options: Any) -> None:
    """Print a run to the terminal.

    Parameters
    ----------
    run : RunData
    console : Console
    **options
        Options of `print_group`.
    """
    for presenter, group in with_presenters(group_runs({"": run})):
        print_group(presenter, group, console, **options)


def print_group(
    presenter: Presenter,
    group: RunGroup,
    console: Console,
    *,
    everything: bool = False,
    max_lines: int | None = MAX_LINES,
    **options: Any,
) -> None:
    """Print the models of a group of runs with their numbers of tests and times, then its report.

    Parameters
    ----------
    presenter : Presenter
    group : RunGroup
    console : Console
    everything : bool
        If True, print all sections of the report.
    max_lines : int or None
        Largest number of lines unless `everything` is True; None for no limit.
    **options
        Options of the study's report.
    """
    for line in _list_models(group.run):
        console.print(make_printable(line), markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
    console.print()
    print_report(presenter.report(group, **options), console, everything=everything, max_lines=max_lines)


def _list_models(run: RunData) -> list[str]:
    """List the measured models with their numbers of tests and times; of many models their sums."""
    tests = len(getattr(run.manifest.inputs, "tests", ()))
    count = f"  {format_count(tests, 'test')}" if tests else ""
    records = zip(record_labels(run), run.manifest.models, strict=True)
    seconds = {label: record.seconds for label, record in records if not (record.failed or record.skipped)}
    if len(seconds) > _MAX_LISTED_MODELS:
        seconds = {format_count(len(seconds), "model"): sum(seconds.values())}
    width = max(map(len, seconds), default=0)
    return [f"{label:<{width}}{count}  {_format_seconds(duration)}" for label, duration in seconds.items()]


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < _LONG else format_duration(seconds)
