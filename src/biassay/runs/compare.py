"""Compare and report runs. Measure models first if needed, and count the looks of a gate."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.datasets.catalogue import load_catalogue, select_tests
from biassay.datasets.schema import load_topics
from biassay.datasets.word_associations import select_published, select_word_associations
from biassay.errors import RunFolderError, UnknownNameError, UsageError
from biassay.io import atomic_folder, content_digest, write_atomically
from biassay.models.registry import get_capabilities, parse_model
from biassay.reporting.html import REPORT_FILE, render_page
from biassay.reporting.publication import FIGURE_FORMATS, publish
from biassay.results.comparison import ALPHA, GATE, MARGIN, Comparison, check_limits
from biassay.results.run_data import RunData, RunGroup, make_unique, record_labels, select_model
from biassay.results.run_folder import MANIFEST_JSON, RESULTS_JSON, to_json, to_json_data
from biassay.runs.fetch import RunOptions
from biassay.runs.folders import load_run_data, name_folders
from biassay.runs.models import check_unique_names, get_given_name, parse_model_specs
from biassay.runs.progress import Listener, PathLike, announce_step, default_listener
from biassay.runs.reports import compare_models, get_presenter, group_runs, with_presenters
from biassay.runs.runner import prepare_run
from biassay.studies.registry import get_study
from biassay.studies.settings import get_setting_specs


def load_or_measure_runs(given: Sequence[object], tests: Sequence[str], options: RunOptions) -> dict[str, RunData]:
    """Return runs by name: those given, and new runs of the models given.

    Parameters
    ----------
    given : sequence
        Runs, run folders and models. Models are measured like the first run. All of them are opened before the first
        is measured, so that a missing one is an error at once.
    tests : sequence of str
        Names or patterns of the tests to keep or measure.
    options : RunOptions
    """
    labels = {index: label for index, item in enumerate(given) if (label := get_given_name(item))}
    check_unique_names(list(labels.values()))
    folders = {index: _get_folder(item) for index, item in enumerate(given) if _is_run_folder(item)}
    folder_names = dict(zip(folders, name_folders(list(folders.values())), strict=True))
    runs = {index: _rename_model(load_run_data(path), labels.get(index), path) for index, path in folders.items()}
    runs |= {index: item for index, item in enumerate(given) if isinstance(item, RunData)}
    if len(given) == 1 and not runs:
        raise UsageError(f"only one model given ({given[0]}); name another model or run to compare it with")
    names: list[str] = []
    for index, item in enumerate(given):
        default = item if isinstance(item, str) else f"run {index + 1}"
        names.append(make_unique(folder_names.get(index) or default, names))
    loaded = restrict_to_tests({names[index]: run for index, run in sorted(runs.items())}, tests)
    first = next(iter(loaded.values()), None)
    prepared = {
        name: _prepare_model(given[index], first, tests, options)
        for index, name in enumerate(names)
        if name not in loaded
    }
    measured = {name: execute() for name, execute in prepared.items()}
    loaded |= measured if first is None else restrict_to_tests(measured, tests)
    return {name: loaded[name] for name in names}


def restrict_to_tests(runs: Mapping[str, RunData], tests: Sequence[str]) -> dict[str, RunData]:
    """Return runs with the named tests only. Raise an error if a run has none of them."""
    for name, run in runs.items():
        if not any(run.tables.values()):
            raise RunFolderError(f"{name}: no results yet; finish it with `biassay resume`, or leave it out")
    selected = {name: get_presenter(run.manifest.study).only(run, tests) for name, run in runs.items()}
    empty = [name for name, run in selected.items() if not any(run.tables.values())]
    if empty:
        raise UsageError(f"{', '.join(empty)}: no test is named {' or '.join(tests)}")
    return selected


def _get_folder(given: object) -> Path:
    """Return a run folder, without the label in front of it."""
    text = str(given)
    if get_given_name(given) and not (Path(text) / MANIFEST_JSON).is_file():
        text = text.partition("=")[2]
    return Path(text)


def _rename_model(run: RunData, label: str | None, folder: Path) -> RunData:
    if label is None:
        return run
    if len(run.manifest.models) != 1:
        labels = ", ".join(record_labels(run))
        raise UsageError(f"{folder} has several models ({labels}); only a run of one model can get the label {label!r}")
    return select_model(run, 0, label)


def _is_run_folder(given: object) -> bool:
    """Return whether something is a run folder; a string may also be a model."""
    if not isinstance(given, str):
        return isinstance(given, os.PathLike)
    if (_get_folder(given) / MANIFEST_JSON).is_file():
        return True
    try:
        parse_model(str(parse_model_specs(given)[0].model))
    except UnknownNameError as error:
        if Path(given).exists():
            return True
        if error.kind != "model":  # the model is known, but not one of its settings
            raise
        raise UsageError(f"{given}: no such folder; name a run folder or a model: {error}") from error
    return False


def _prepare_model(
    model: object, like: RunData | None, tests: Sequence[str], options: RunOptions
) -> Callable[[], RunData]:
    """Prepare a run of a model with the settings of another run, or of association tests."""
    if like is not None:
        return prepare_run(get_study(like.manifest.study), _copy_settings(like, tests), model, options)
    _check_gives_vectors(model, tests)
    study = get_study("associations")
    return prepare_run(study, study.schema.settings(tests=tuple(tests) or _choose_default_tests()), model, options)


def _choose_default_tests() -> tuple[str, ...]:
    """Return the collection `GATE` if it is installed, else the main collections."""
    return (GATE,) if any(test.source.name == GATE for test in load_catalogue().tests.values()) else ()


def _check_gives_vectors(model: object, tests: Sequence[str]) -> None:
    """Raise UsageError for chat models and their tests, because several studies could measure them."""
    name = parse_model_specs(model)[0].model
    is_encoder = not isinstance(name, str) or "texts" in get_capabilities(name)
    chat_tests = [test for test in tests if select_published(test) and test.casefold() not in load_topics()]
    if not is_encoder or chat_tests:
        reason = f"{chat_tests[0]} is a test of chat models" if is_encoder else f"model {name!r} gives no vectors"
        chosen = f" --tests {shlex.join(tests)}" if tests else ""
        raise UsageError(
            f"{reason}; measure the models first with `biassay ask MODEL MODEL{chosen} --out RUN`, then "
            "`biassay compare RUN`"
        )


def _copy_settings(like: RunData, tests: Sequence[str]) -> Any:
    """Copy the settings of a run with fewer tests and without its output folders."""
    settings = like.manifest.settings
    get_study(like.manifest.study).check_reuse(settings)
    specs = get_setting_specs(type(settings))
    changes: dict[str, Any] = {name: None for name, spec in specs.items() if spec.reenter_on_resume}
    if tests and hasattr(settings, "tests"):
        names = tuple(test.name for test in like.manifest.inputs.tests)
        with suppress(UsageError):  # tests from a file or given as words have no name: measure all of them
            select = select_word_associations if like.manifest.study == "word_association" else select_tests
            select(names)
            changes["tests"] = names
    return dataclasses.replace(settings, **changes)


_REPORT_MARK = b"<title>biassay:"
_INSPECTED_BYTES = 20_000


@dataclass(frozen=True)
class WrittenReport:
    """A report of one or several runs.

    Attributes
    ----------
    groups : sequence of RunGroup
        The runs it shows.
    path : Path or None
        The HTML file, if one was written.
    published : sequence of Path
        Files for a publication.
    """

    groups: Sequence[RunGroup]
    path: Path | None
    published: Sequence[Path]

    def to_json(self) -> str:
        """Return manifests, tables and findings of all runs as JSON."""
        pairs = [(get_study(group.run.manifest.study), group.run) for group in self.groups]
        return to_json([to_json_data(run, study.schema) | {"findings": study.findings(run)} for study, run in pairs])


def report_runs(
    given: Sequence[PathLike | RunData],
    *,
    out: PathLike | None = None,
    published: PathLike | None = None,
    formats: Sequence[str] = FIGURE_FORMATS,
    tests: Sequence[str] = (),
    mixed: bool = False,
    listener: Listener | None = None,
) -> WrittenReport:
    """Write one report of one or several runs.

    Parameters
    ----------
    given : sequence of path or run
    out : path, optional
        The HTML file. By default report.html in the run folder, or in the current folder if there are several runs.
    published : path, optional
        Folder for tables and figures of a publication.
    formats : sequence of str
        Formats of these figures.
    tests : sequence of str
        Names or patterns of the tests to report; by default all.
    mixed : bool
        If True, accept runs of one study that differ in protocol or stimuli.
    listener : Listener, optional
    """
    if not given:
        raise UsageError("no run folder given; name at least one")
    runs = restrict_to_tests(_name_runs(given), tests)
    folder = given[0] if len(given) == 1 and not isinstance(given[0], RunData) else "."
    path = Path(folder) / REPORT_FILE if out is None else Path(out)
    listener = listener or default_listener()
    _check_report_path(path)
    _check_publication_folder(published, path)
    groups = group_runs(runs, mixed=mixed)
    announce_step(listener, str(path), "writing the report")
    write_atomically(path, render_page(with_presenters(groups)).encode())
    return WrittenReport(groups, path, _publish_runs(published, groups, None, formats, listener))


def compare_runs(
    given: Sequence[str],
    *,
    out: PathLike | None = None,
    published: PathLike | None = None,
    formats: Sequence[str] = FIGURE_FORMATS,
    listener: Listener | None = None,
    **settings: Any,
) -> tuple[Comparison, WrittenReport]:
    """Compare models and run folders with the first of them, and write a report if `out` names a file.

    Parameters
    ----------
    given : sequence of str
        Models and run folders.
    out, published, formats, listener
        As in `report_runs`; by default nothing is written.
    **settings
        Other arguments of `compare`.
    """
    path = None if out is None else Path(out)
    if path is not None:
        _check_report_path(path)
    _check_publication_folder(published, path)
    listener = listener or default_listener()
    comparison = compare(*given, listener=listener, **settings)
    if path is not None:
        announce_step(listener, str(out), "writing the report")
        page = render_page(with_presenters(comparison.gathered), (get_presenter(comparison.study), comparison))
        write_atomically(path, page.encode())
    files = _publish_runs(published, comparison.gathered, comparison, formats, listener)
    return comparison, WrittenReport(comparison.gathered, path, files)


def _check_report_path(path: Path) -> None:
    """Raise UsageError unless a report can be written; only earlier reports are overwritten."""
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file for the report")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is a pipe or a device; name a file for the report")
    if path.exists():
        with path.open("rb") as file:
            if _REPORT_MARK not in file.read(_INSPECTED_BYTES):
                raise UsageError(f"{path} exists and is not a report of biassay; choose another file")


def _check_publication_folder(published: PathLike | None, report_path: Path | None) -> None:
    if published is None:
        return
    folder = Path(published)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder; choose another")
    if report_path is not None and report_path.resolve() == folder.resolve():
        raise UsageError(f"{folder} is the file of the report; choose another folder")
    parent = next(parent for parent in folder.absolute().parents if parent.exists())
    if not parent.is_dir():
        raise UsageError(f"{folder}: {parent} is not a folder")


def _publish_runs(
    folder: PathLike | None,
    groups: Sequence[RunGroup],
    comparison: Comparison | None,
    formats: Sequence[str],
    listener: Listener,
) -> list[Path]:
    if folder is None:
        return []
    shown = None if comparison is None else (get_presenter(comparison.study), comparison)
    with atomic_folder(Path(folder)) as working:
        files = publish(working, with_presenters(groups), shown, formats=formats, progress=listener.progress)
    return [Path(folder) / file.relative_to(working) for file in files]


def report(runs: PathLike | RunData | Sequence[PathLike | RunData], out: PathLike = REPORT_FILE) -> Path:
    """Write one report of runs or run folders of any studies.

    Parameters
    ----------
    runs : run, path, or list of them
    out : path
        The HTML file. An existing file is overwritten only if it is a report.

    Returns
    -------
    Path
        The HTML file.

    Examples
    --------
    >>> import biassay
    >>> biassay.report(biassay.run("glove", "weat6"), "page.html").name
    'page.html'
    """
    report_runs([runs] if isinstance(runs, str | os.PathLike | RunData) else list(runs), out=out)
    return Path(out)


def compare(
    *runs: object,
    baseline: str | None = None,
    tests: str | Sequence[str] = (),
    mixed: bool = False,
    margin: float | None = None,
    alpha: float = ALPHA,
    series: bool = False,
    cache: PathLike | None = None,
    listener: Listener | None = None,
) -> Comparison:
    """Compare the models of runs with a baseline, and judge whether they are worse.

    Parameters
    ----------
    *runs : run, path of a run folder, or model
        All runs are of one study. A model, as in `biassay.run`, is measured first: with the tests of the first run, the
        named tests, or those of the collection ``gate``.
    baseline : str, optional
        Label of the model to compare with; by default the first.
    tests : str or list of str
        Names or patterns of the association tests to compare; by default all.
    mixed : bool
        If True, compare runs even if they differ in protocol or stimuli.
    margin : float, optional
        Largest growth towards the stereotype that is tolerated, by default 0.2: in association tests, in standard
        deviations of cosines between frequent words; in other studies, as a share of the largest possible effect.
    alpha : float
        Probability that any interval of the verdicts misses the true value.
    series : bool
        If True, the models are checkpoints in the order given, at least three. The verdicts are then on the trend: on
        the last end of the least-squares line through all checkpoints, compared with the first. Association tests only.
    cache : path, optional
        Cache directory or URL; by default the user's.
    listener : Listener, optional
        Receives progress and warnings while models are measured.

    Returns
    -------
    Comparison
        Has ``verdicts``, ``verdict`` in a sentence, ``failed("worse")``, the tests that fail a gate, and
        ``power_gaps()``, the topics on which the gate could not have failed. A series also has ``points``, the growth
        at every checkpoint with its simultaneous interval.

    Examples
    --------
    >>> import biassay
    >>> compared = biassay.compare(biassay.run(["glove", "use"], "weat6"))
    >>> [row.test for row in compared.verdicts]
    ['weat6']
    """
    check_limits(MARGIN if margin is None else margin, alpha)
    if not runs:
        raise UsageError("nothing to compare; name two runs or models")
    options = RunOptions(cache=cache, listener=listener or default_listener())
    loaded = load_or_measure_runs(runs, (tests,) if isinstance(tests, str) else tests, options)
    return compare_models(loaded, baseline=baseline, mixed=mixed, margin=margin, alpha=alpha, series=series)


def _name_runs(runs: Sequence[PathLike | RunData]) -> dict[str, RunData]:
    """Name runs by their folders, or by number."""
    folders = [Path(run) for run in runs if not isinstance(run, RunData)]
    names = iter(name_folders(folders))
    return dict(
        (f"run {number}", run) if isinstance(run, RunData) else (next(names), load_run_data(run))
        for number, run in enumerate(runs, start=1)
    )


LOOKS_JSON = "looks.json"
_SHARE = 0.8
"""Share of alpha that all looks spend. A quarter of it is for false alarms (one side of the growth): with .05, 1%."""


def spend_alpha(alpha: float, look: int) -> float:
    """Return the part of alpha for look k: 0.8 alpha / (k (k + 1))."""
    return _SHARE * alpha / (look * (look + 1))


def take_look(baseline: str, new: str, tests: Sequence[str] = ()) -> int:
    """Record a look in the run folder of a baseline before it is made, and return its number, from 1.

    Simultaneous comparisons get different numbers. A comparison that stops with an error has used its look.

    Parameters
    ----------
    baseline : str
        Run folder of the old model.
    new : str
        New model or run folder. The same run folder, unchanged and with the same tests, is the same look.
    tests : sequence of str
        Patterns of the tests to compare.
    """
    folder = _strip_label(baseline)
    if not (folder / RESULTS_JSON).is_file():
        raise UsageError(
            f"--always-valid needs the run folder of the old model, got {baseline!r}; make one with "
            "biassay run OLD --out baseline"
        )
    results = _strip_label(new) / RESULTS_JSON
    key = " ".join([content_digest(results), *sorted(tests)]) if results.is_file() else ""
    with _lock(folder / RESULTS_JSON):
        looks = _read_looks(folder / LOOKS_JSON)
        if key and key in looks:
            return looks.index(key) + 1
        write_atomically(folder / LOOKS_JSON, json.dumps({"looks": [*looks, key]}, indent=1).encode())
        return len(looks) + 1


def _strip_label(given: str) -> Path:
    return Path(given) if Path(given).exists() else Path(given.partition("=")[2] or given)


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    with file.open("r+b") as opened:
        if os.name == "posix":
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _read_looks(file: Path) -> list[str]:
    if not file.exists():
        return []
    try:
        looks = json.loads(file.read_text("utf-8"))["looks"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: not a list of looks; restore it, or measure a new baseline") from error
    if not isinstance(looks, list) or not all(isinstance(look, str) for look in looks):
        raise UsageError(f"{file}: 'looks' is not a list of texts; restore it, or measure a new baseline")
    return looks
