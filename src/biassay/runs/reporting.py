"""From run folders to a page, a comparison, and a folder for a paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from biassay.errors import UsageError
from biassay.files import complete_folder, write_atomically
from biassay.pages.html import REPORT, render_page
from biassay.pages.publish.files import FIGURE_FORMATS, publish
from biassay.results.codec import to_json
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.storage import as_json
from biassay.results.verdicts import ALPHA, MARGIN, check_limits
from biassay.runs.engine import How
from biassay.runs.listener import Listener, PathLike, begin, own_listener
from biassay.runs.loading import load_data, name_folders
from biassay.runs.showing import compared, gather, presented, presenter_of
from biassay.runs.sides import only_tests_of, sides
from biassay.studies.registry import study_named

__all__ = ["Report", "compare", "compare_runs", "report", "report_runs"]

_MARK = b"<title>biassay:"
_LOOKED_AT = 20_000


@dataclass(frozen=True)
class Report:
    """What was read, put together, and written: ``page`` is None where none was asked for."""

    gathered: Sequence[Gathered]
    page: Path | None
    published: Sequence[Path]

    def to_json(self) -> str:
        """Manifests, tables and findings of everything that is shown."""
        runs = [one.run for one in self.gathered]
        studies = [study_named(run.manifest.study) for run in runs]
        pairs = list(zip(studies, runs, strict=True))
        return to_json([as_json(run, study.types) | {"findings": study.findings(run)} for study, run in pairs])


def report_runs(
    folders: Sequence[PathLike],
    *,
    out: PathLike | None = None,
    published: PathLike | None = None,
    formats: Sequence[str] = FIGURE_FORMATS,
    tests: Sequence[str] = (),
    mixed: bool = False,
    listener: Listener | None = None,
) -> Report:
    """Make one page of one or several run folders, and a folder for a paper if ``published`` names one.

    Without ``out`` the page of a single run is its report.html, that of several report.html in the current folder.
    """
    found = _loaded(folders, tests)
    page = Path(out) if out is not None else Path(folders[0]) / REPORT if len(folders) == 1 else Path(REPORT)
    _check_page(page)
    _check_folder(published, page)
    gathered = gather(found, mixed=mixed)
    begin(listener or own_listener(), str(page), "making the page")
    write_atomically(page, render_page(presented(gathered)).encode())
    files = _published(published, gathered, None, formats, listener or own_listener())
    return Report(gathered, page, files)


def compare_runs(
    given: Sequence[str],
    *,
    baseline: str | None = None,
    out: PathLike | None = None,
    published: PathLike | None = None,
    formats: Sequence[str] = FIGURE_FORMATS,
    tests: Sequence[str] = (),
    mixed: bool = False,
    margin: float | None = None,
    alpha: float = ALPHA,
    cache: PathLike | None = None,
    listener: Listener | None = None,
) -> tuple[Comparison, Report]:
    """Compare models, and those of run folders, with the first of them; a page only if ``out`` names it."""
    if out is not None:
        _check_page(Path(out))
    _check_folder(published, None if out is None else Path(out))
    how = How(cache=cache, listener=listener or own_listener())
    comparison = _compared(given, baseline, tests, mixed, margin, alpha, how)
    if out is not None:
        begin(how.listener, str(out), "making the page")
        page = render_page(presented(comparison.gathered), (presenter_of(comparison.study), comparison))
        write_atomically(Path(out), page.encode())
    files = _published(published, comparison.gathered, comparison, formats, listener or own_listener())
    return comparison, Report(comparison.gathered, None if out is None else Path(out), files)


def _loaded(folders: Sequence[PathLike], tests: Sequence[str]) -> dict[str, RunData]:
    if not folders:
        raise UsageError("name at least one run folder")
    paths = [Path(folder) for folder in folders]
    return only_tests_of({name: load_data(path) for name, path in zip(name_folders(paths), paths, strict=True)}, tests)


def _check_page(page: Path) -> None:
    """A report may be made again; any other file is left alone."""
    if not page.parent.is_dir():
        raise UsageError(f"{page}: the folder {page.parent} does not exist")
    if page.is_dir():
        raise UsageError(f"{page} is a folder; name a file for the page")
    if page.exists() and not page.is_file():
        raise UsageError(f"{page} is a pipe or a device; name a file for the page")
    if page.exists():
        with page.open("rb") as file:
            if _MARK not in file.read(_LOOKED_AT):
                raise UsageError(f"{page} exists and is not a report of biassay; choose another file")


def _check_folder(folder: PathLike | None, page: Path | None) -> None:
    if folder is None:
        return
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} is not an empty folder; choose another")
    if page is not None and page.resolve() == path.resolve():
        raise UsageError(f"{path} is the page; choose another folder")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise UsageError(f"{path}: {above} is no folder")


def _published(
    folder: PathLike | None,
    gathered: Sequence[Gathered],
    comparison: Comparison | None,
    formats: Sequence[str],
    listener: Listener,
) -> list[Path]:
    if folder is None:
        return []
    shown = None if comparison is None else (presenter_of(comparison.study), comparison)
    with complete_folder(Path(folder)) as working:
        files = publish(working, presented(gathered), shown, formats=formats, progress=listener.progress)
    return [Path(folder) / file.relative_to(working) for file in files]


def report(runs: PathLike | RunData | Sequence[PathLike | RunData], out: PathLike = REPORT) -> Path:
    """Make one page of runs or run folders of any studies.

    Parameters
    ----------
    runs : run, path, or list of them
    out : path
        The page; another file of that name is not overwritten.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import biassay
    >>> biassay.report(biassay.run("glove", "weat6"), "page.html").name
    'page.html'
    """
    several = [runs] if isinstance(runs, str | os.PathLike | RunData) else list(runs)
    _check_page(Path(out))
    write_atomically(Path(out), render_page(presented(gather(_named(several)))).encode())
    return Path(out)


def compare(
    *runs: object,
    baseline: str | None = None,
    tests: str | Sequence[str] = (),
    mixed: bool = False,
    margin: float | None = None,
    alpha: float = ALPHA,
    cache: PathLike | None = None,
    listener: Listener | None = None,
) -> Comparison:
    """Compare the models of runs of one study with one of them, and say whether they are worse.

    Parameters
    ----------
    *runs : run, path of a run folder, or model
        A model, as in `biassay.run`, is measured first: with the tests of the first run, those that are named, or those
        of the collection ``gate``.
    baseline : str, optional
        The label of the model with which the others are compared; by default the first.
    tests : str or list of str
        Of association tests: names or patterns of those that are compared.
    mixed : bool
        Whether runs that differ in protocol or stimuli are compared all the same.
    margin : float, optional
        Growth towards the stereotype that does not matter, by default 0.2: in association tests, in standard deviations
        of cosines between frequent words; in other studies, as a share of the largest possible effect.
    alpha : float
        Probability that any interval of the verdicts misses.
    cache : path, optional
        Where answers of models are kept; by default the user's cache folder.
    listener : Listener, optional
        Gets progress and notices of models that are measured.

    Returns
    -------
    Comparison
        With ``verdicts``, ``verdict`` in a sentence, ``failed("worse")``, the tests that fail a gate, and
        ``power_gaps()``, the topics on which the gate could not have failed.

    Examples
    --------
    >>> import biassay
    >>> compared = biassay.compare(biassay.run(["glove", "use"], "weat6"))
    >>> [row.test for row in compared.verdicts]
    ['weat6']
    """
    how = How(cache=cache, listener=listener or own_listener())
    return _compared(runs, baseline, (tests,) if isinstance(tests, str) else tests, mixed, margin, alpha, how)


def _compared(
    given: Sequence[object],
    baseline: str | None,
    tests: Sequence[str],
    mixed: bool,
    margin: float | None,
    alpha: float,
    how: How,
) -> Comparison:
    check_limits(MARGIN if margin is None else margin, alpha)
    if not given:
        raise UsageError("name two runs or models to compare")
    return compared(sides(given, tests, how), baseline=baseline, mixed=mixed, margin=margin, alpha=alpha)


def _named(runs: Sequence[PathLike | RunData]) -> dict[str, RunData]:
    """Runs by the names of their folders, or by number."""
    folders = [Path(run) for run in runs if not isinstance(run, RunData)]
    names = iter(name_folders(folders))
    return dict(
        (f"run {place}", run) if isinstance(run, RunData) else (next(names), load_data(run))
        for place, run in enumerate(runs, start=1)
    )
