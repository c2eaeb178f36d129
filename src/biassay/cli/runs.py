"""Start, resume and print runs, and the command `biassay resume`."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from biassay.cli.common import make_console, make_listener, suggest_tests
from biassay.cli.options import (
    OUTPUT_OPTIONS,
    RUN_OPTIONS,
    SectionedCommand,
    apply_options,
    budget_option,
    open_engine,
    settings_options,
)
from biassay.errors import BiassayError, UnknownNameError, UsageError
from biassay.io import make_printable
from biassay.reporting.html import REPORT_FILE
from biassay.results.run_folder import MANIFEST_JSON, read_models, read_run_json
from biassay.runs.api import measure, resume
from biassay.runs.folders import is_unfinished
from biassay.runs.models import requires_user_input
from biassay.runs.reports import print_run
from biassay.runs.run import Run


@dataclass(frozen=True)
class CliRunOptions:
    """Options of every command that measures."""

    out: Path | None = None
    resumed: Path | None = None
    cache: Path | str | None = None
    engine: str = "local"
    address: str | None = None
    gpus: float | None = None
    everything: bool = False
    quiet: bool = False
    as_json: bool = False

    @classmethod
    def pop_from(cls, given: dict[str, Any]) -> CliRunOptions:
        """Move the options out of all arguments of a command."""
        return cls(**{field.name: given.pop(field.name) for field in dataclasses.fields(cls) if field.name in given})

    @property
    def folder(self) -> Path | None:
        """Folder of the run, if it has one."""
        return self.resumed or self.out


_RESUME_OPTION_NAMES = {field.name for field in dataclasses.fields(CliRunOptions)} - {"out"} | {
    *("models", "folder", "vectors", "budget")
}
"""Arguments that are accepted together with --resume."""
_REPEATED_OPTION_NAMES = ("cache", "vectors", "engine", "address", "gpus", "budget")
"""Arguments that a later `biassay resume` needs again."""


def study_options(settings: type, *, budget: bool = False, models: str = "MODEL ...") -> Callable[..., Any]:
    """Create a decorator that adds the argument MODEL and all options of a study to a command.

    Parameters
    ----------
    settings : type
        Settings class of the study.
    budget : bool
        If True, add ``--budget``.
    models : str
        How the help shows the argument.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = apply_options((*OUTPUT_OPTIONS, *RUN_OPTIONS), command)
        command = budget_option(command) if budget else command
        argument = click.argument("models", nargs=-1, metavar=models)
        decorated: Callable[..., Any] = argument(settings_options(settings)(command))
        return decorated

    return decorate


def measure_and_print(
    study: str, models: tuple[str, ...], given: dict[str, Any], *, usage: str = "", default: tuple[str, ...] = ()
) -> None:
    """Run a study, or resume a run of it, and print the results.

    Parameters
    ----------
    study : str
        Name of the study.
    models : tuple of str
        Models that the user named.
    given : dict
        All other arguments of the command.
    usage : str
        Usage line for the error if no model is given.
    default : tuple of str
        Models to measure if the user named none.
    """
    options = CliRunOptions.pop_from(given)
    if not models and options.resumed is None:
        if not default:
            raise click.UsageError(f"no model given; write {usage}")
        models = default
    finish_run(run_or_resume(study, models, given, options), options)


def run_or_resume(study: str, models: tuple[str, ...], given: dict[str, Any], options: CliRunOptions) -> Run:
    """Run a study, or resume an interrupted run.

    Parameters
    ----------
    study : str
        Name of the study.
    models : tuple of str
        Models to measure.
    given : dict
        Settings of the study, and ``budget``.
    options : CliRunOptions
        Options that do not belong to a study.
    """
    if options.resumed is not None:
        _check_resume_options()
    engine = open_engine(options.engine, options.address, options.gpus)
    budget = given.pop("budget", None)
    with (
        _suggest_tests_option(given.get("tests")),
        _hint_resume(options),
        make_listener(quiet=options.quiet) as listener,
    ):
        common = {"cache": options.cache, "engine": engine, "listener": listener, "budget": budget}
        if options.resumed is not None:
            return resume(options.resumed, models or None, vectors=given.get("vectors"), **common)
        return measure(study, models, given, out=options.out, **common)


def _check_resume_options() -> None:
    """Raise if settings are given with --resume, which takes them from the run."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _RESUME_OPTION_NAMES
        and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"--resume takes the settings of the run; leave out {', '.join(given)}")


@contextmanager
def _suggest_tests_option(tests: Sequence[str] | None) -> Iterator[None]:
    """Explain how to name tests if a name given as a model is a test."""
    try:
        yield
    except UnknownNameError as error:
        if tests is not None and error.kind == "model" and (name := suggest_tests(error.name)):
            example = ",".join(dict.fromkeys((*tests, name)))
            raise UsageError(
                f"{error.name!r} is not a model; name tests with --tests and separate them by commas: --tests {example}"
            ) from error
        raise


@contextmanager
def _hint_resume(options: CliRunOptions) -> Iterator[None]:
    """Append a hint to an error: how to resume the unfinished run."""
    try:
        yield
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        rejected = options.resumed is not None and isinstance(error, UsageError)  # would be rejected again
        if options.folder is not None and not rejected and is_unfinished(options.folder):
            error.add_note(f"to continue: {_format_resume_command(options.folder)}")
        raise


def _format_resume_command(folder: Path) -> str:
    """Return the command that continues a run with the options of this command."""
    models = [(str(model.get("name")), str(model.get("text"))) for model in read_models(folder)]
    texts = [text for _, text in models]
    again = sorted(
        f"--model {shlex.quote(f'{name}={text}' if texts.count(text) > 1 else text)}"
        for name, text in models
        if requires_user_input(text)
    )
    settings = read_run_json(folder / MANIFEST_JSON).get("settings")
    judge = settings.get("judge") if isinstance(settings, dict) else None
    if isinstance(judge, str) and judge not in texts and requires_user_input(judge):
        again.append(f"--model {shlex.quote(judge)}")
    context = click.get_current_context()
    given = [
        name for name in _REPEATED_OPTION_NAMES if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    options = [f"--{name} {shlex.quote(str(context.params[name]))}" for name in given]
    return " ".join(["biassay resume", shlex.quote(str(folder)), *again, *options])


def finish_run(run: Run, options: CliRunOptions, **shown: Any) -> None:
    """Print a run as tables or as JSON; exit with 1 if a measurement failed.

    Parameters
    ----------
    run : Run
        The complete run.
    options : CliRunOptions
        Options of the command.
    **shown
        Options of the study for `print_run`.
    """
    if options.as_json:
        click.echo(run.to_json(), nl=False)
    elif not options.quiet:
        console = make_console()
        print_run(run, console, everything=options.everything, **shown)
        if options.folder is not None:
            line = f"Report  {options.folder / REPORT_FILE}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    records = run.manifest.models
    failed = [record for record in records if record.failed]
    for record in failed:
        click.echo(make_printable(f"error: {record.name}: {record.failed}"), err=True)
    if failed:
        measured = sum(not record.failed and not record.skipped for record in records)
        retry = f"; to retry the others: {_format_resume_command(options.folder)}" if options.folder else ""
        click.echo(f"measured {measured} of {len(records)} models{retry}", err=True)
    if failed or run.study.has_failures(run) or any(record.skipped for record in records):
        sys.exit(1)


@click.command("resume", cls=SectionedCommand)
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[LABEL=]MODEL",
    help="Give a model of the run again. May be repeated.",
)
@click.option(
    "--vectors", type=click.Path(path_type=Path), help="Use this folder of context vectors, if the run had one."
)
@budget_option
@partial(apply_options, RUN_OPTIONS)
def command(folder: Path, models: tuple[str, ...], **given: Any) -> None:
    """Continue an interrupted run of any study.

    biassay does not take models from the folder that run code (`python:`, `trust_remote_code=`) or send texts away
    (`api:`, `chat:`, `completions:`): give such a model again with --model, and a folder of context vectors with
    --vectors. The judge of an audit counts as a model.
    """
    options = CliRunOptions.pop_from({**given, "resumed": folder})
    settings = {name: given[name] for name in ("vectors", "budget")}
    finish_run(run_or_resume("", models, settings, options), options)
