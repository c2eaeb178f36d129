"""How runs are shown, whatever they measured: each by the presenter of its study."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import MeasurementError, UsageError
from biassay.files import write_atomically
from biassay.pages.charts.drawing import Figure
from biassay.pages.charts.style import PRINT
from biassay.pages.html import REPORT, render_page
from biassay.pages.presenter import Presenter, Shown
from biassay.results.data import RunData
from biassay.results.gathering import Gathered, check_distinct
from biassay.results.labels import record_labels, short_name
from biassay.results.slices import labelled, run_of_model
from biassay.results.verdicts import ALPHA, all_missing
from biassay.studies.registry import study_named

if TYPE_CHECKING:
    from rich.console import Console

    from biassay.results.comparison import Comparison

__all__ = ["compared", "figures_of", "gather", "presented", "presenter_of", "print_run", "render_report", "write_page"]


def presenter_of(study: str) -> Presenter:
    """The presenter of a study, imported when it is first asked for."""
    return study_named(study).presenter


def presented(gathered: Iterable[Gathered]) -> list[Shown]:
    """Each with its presenter."""
    return [(presenter_of(one.run.manifest.study), one) for one in gathered]


def gather(runs: Mapping[str, RunData], *, mixed: bool = False) -> list[Gathered]:
    """What is shown of runs: first of studies that put runs together, then of all others in the order given.

    Runs of one study that cannot be put together are refused unless ``mixed``.
    """
    check_distinct(runs)
    by_study: dict[str, dict[str, RunData]] = {}
    for name, run in runs.items():
        by_study.setdefault(run.manifest.study, {})[name] = run
    found = [one for study, of in by_study.items() for one in presenter_of(study).gather(of, mixed=mixed)]
    names = list(runs)

    def place(one: Gathered) -> int:
        return -1 if presenter_of(one.run.manifest.study).joins_runs else names.index(next(iter(one.parts)))

    return sorted(found, key=place)


def compared(
    runs: Mapping[str, RunData],
    *,
    baseline: str | None = None,
    mixed: bool = False,
    margin: float | None = None,
    alpha: float = ALPHA,
) -> Comparison:
    """Compare the models of runs of one study with one of them, by default the first, and judge them.

    Runs that differ in protocol or stimuli are refused unless ``mixed``. On a model that failed every test is missing.
    """
    studies = {run.manifest.study for run in runs.values()}
    if len(studies) != 1:
        raise UsageError(
            f"runs of different kinds cannot be compared: {', '.join(sorted(studies))}; `biassay report` shows them on "
            "one page"
        )
    check_distinct(runs)
    presenter = presenter_of(studies.pop())
    kept, remarks = _one_old(runs, baseline)
    missing = _missing(kept, baseline)
    remarks += [f"{label}: {why}" for label, why in missing.items()]
    found = presenter.compare(kept, baseline=baseline, mixed=mixed)
    remarks += [f"{name} is not finished: what is there is compared" for name, run in runs.items() if _begun(run)]
    verdicts = presenter.verdicts(found, margin=margin, alpha=alpha)
    verdicts += tuple(one for label, why in missing.items() for one in all_missing(label, why, verdicts))
    return dataclasses.replace(found, verdicts=verdicts, remarks=(*found.remarks, *remarks), missing=missing)


def _missing(runs: Mapping[str, RunData], baseline: str | None) -> dict[str, str]:
    """Models that failed or were refused, and why; the one that others are compared with must not be among them."""
    models = labelled(
        {name: dict(zip(record_labels(run), run.manifest.models, strict=True)) for name, run in runs.items()}
    )
    missing = {label: f"failed: {one.failed}" for label, one in models.items() if one.failed}
    missing |= {label: f"not measured: {one.refused}" for label, one in models.items() if one.refused}
    wanted = [next(iter(models))] if baseline is None else [baseline, short_name(baseline)]
    first = next((label for label in wanted if label in models), None)
    if first in missing:
        raise MeasurementError(
            f"{first}, the model to compare with, has no results: {missing[first]}; --baseline names another"
        )
    if missing and len(models) - len(missing) < 2:
        told = "; ".join(f"{label}: {why}" for label, why in missing.items())
        raise MeasurementError(f"no model is left to compare: {told}")
    return missing


def _begun(run: RunData) -> bool:
    return run.manifest.status != "complete"


def _one_old(runs: Mapping[str, RunData], baseline: str | None) -> tuple[Mapping[str, RunData], list[str]]:
    """Where a new run stands beside an old one with several models: one of them is the old model, and it is said."""
    name, old = next(iter(runs.items()))
    labels = record_labels(old)
    if len(runs) == 1 or len(labels) == 1 or baseline not in (None, *labels):
        return runs, []
    place = 0 if baseline is None else labels.index(baseline)
    said = f"{name} holds several models ({', '.join(labels)}): compared with {labels[place]}; --baseline names another"
    return {**runs, name: run_of_model(old, place)}, [said]


def render_report(run: RunData) -> str:
    """The page of one run."""
    return render_page(presented(gather({"": run})))


def figures_of(run: RunData) -> dict[str, Figure]:
    """The figures of one run by name, as they are printed."""
    made = [make(PRINT) for presenter, one in presented(gather({"": run})) for make in presenter.figures(one)]
    return {figure.name: figure for figure in made}


def write_page(run: RunData, folder: Path) -> Path:
    """Write the page of a run into its folder."""
    path = folder / REPORT
    write_atomically(path, render_report(run).encode())
    return path


def print_run(run: RunData, console: Console, **shown: Any) -> None:
    """A run in the terminal."""
    for presenter, one in presented(gather({"": run})):
        presenter.print(one, console, **shown)
