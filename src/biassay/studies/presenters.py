"""Who shows the runs of which study; and what is done with runs of any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from biassay.errors import UsageError
from biassay.files import write_atomically
from biassay.report.html import REPORT, render_page
from biassay.report.presenter import Presenter, Shown
from biassay.results.comparison import Comparison
from biassay.results.gathering import AnyRun, Gathered, check_distinct

__all__ = ["compare", "gather", "presented", "presenter_of", "render_report", "write_report"]

_PRESENTERS = {
    "associations": "biassay.studies.associations.presenter:AssociationPresenter",
    "discovery": "biassay.studies.discovery.presenter:DiscoveryPresenter",
    "stereotypes": "biassay.studies.stereotypes.presenter:StereotypePresenter",
}


@cache
def presenter_of(study: str) -> Presenter[Any]:
    """The presenter of a study, imported when it is first asked for."""
    module, _, name = _PRESENTERS[study].partition(":")
    made: Presenter[Any] = getattr(import_module(module), name)()
    return made


def presented(gathered: Iterable[Gathered[Any]]) -> list[Shown]:
    """Each with its presenter."""
    return [(presenter_of(one.run.manifest.kind), one) for one in gathered]


def gather(runs: Mapping[str, AnyRun], *, mixed: bool = False) -> list[Gathered[Any]]:
    """What is shown of runs: first of studies that put runs together, then of all others in the order given.

    Runs of one study that cannot be put together are refused unless ``mixed``.
    """
    check_distinct(runs)
    by_study: dict[str, dict[str, AnyRun]] = {}
    for name, run in runs.items():
        by_study.setdefault(run.manifest.kind, {})[name] = run
    found = [one for study, of in by_study.items() for one in presenter_of(study).gather(of, mixed=mixed)]
    names = list(runs)

    def place(one: Gathered[Any]) -> int:
        return -1 if presenter_of(one.run.manifest.kind).joins_runs else names.index(next(iter(one.parts)))

    return sorted(found, key=place)


def compare(runs: Mapping[str, AnyRun], *, baseline: str | None = None, mixed: bool = False) -> Comparison:
    """Compare the models of runs of one study with one of them, by default the first.

    Runs that differ in protocol or stimuli are refused unless ``mixed``.
    """
    studies = {run.manifest.kind for run in runs.values()}
    if len(studies) != 1:
        raise UsageError(
            f"runs of different kinds cannot be compared: {', '.join(sorted(studies))}; `biassay report` shows them on "
            "one page"
        )
    check_distinct(runs)
    return presenter_of(studies.pop()).compare(runs, baseline=baseline, mixed=mixed)


def render_report(run: AnyRun) -> str:
    """The page of one run."""
    return render_page(presented(gather({"": run})))


def write_report(run: AnyRun, folder: Path) -> Path:
    """Write the page of a run into its folder."""
    path = folder / REPORT
    write_atomically(path, render_report(run).encode())
    return path
