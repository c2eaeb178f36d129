"""What the commands that measure share: they start or resume a run, and show its results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from biassay.cli.common import console_for_tables, listener_for, open_engine, tests_meant
from biassay.errors import BiassayError, UnknownNameError, UsageError
from biassay.files import printable
from biassay.pages.html import REPORT
from biassay.results.storage import read_models
from biassay.runs.folders import is_unfinished
from biassay.runs.functions import resume
from biassay.runs.models import must_be_given
from biassay.runs.run import Run
from biassay.runs.showing import print_run

__all__ = ["How", "carried_out", "finish"]

_HOW = ("out", "resumed", "cache", "engine", "address", "gpus", "everything", "quiet", "as_json")
_AGAIN = {*_HOW, "models", "folder", "vectors", "budget"} - {"out"}
"""What may be given to go on with a run."""
_KEPT = ("cache", "vectors", "engine", "address", "gpus", "budget")
"""What has to be given again."""


@dataclass(frozen=True)
class How:
    """The options of every command that measures."""

    out: Path | None
    resumed: Path | None
    cache: Path | str | None
    engine: str
    address: str | None
    gpus: float | None
    everything: bool
    quiet: bool
    as_json: bool

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> How:
        """Take the options out of all that were given."""
        return cls(**{name: given.pop(name) for name in _HOW})

    @property
    def folder(self) -> Path | None:
        return self.resumed or self.out


def carried_out(measure: Callable[..., Run], models: tuple[str, ...], given: Mapping[str, Any], how: How) -> Run:
    """Measure, or resume an interrupted run."""
    if how.resumed is not None:
        _refuse_beside_resume()
    engine = open_engine(how.engine, how.address, how.gpus)
    with _telling_tests("tests" in given), _hinting_resume(how), listener_for(quiet=how.quiet) as listener:
        if how.resumed is not None:
            again = {name: given.get(name) for name in ("vectors", "budget")}
            return resume(how.resumed, models or None, cache=how.cache, engine=engine, listener=listener, **again)
        return measure(models, **given, out=how.out, cache=how.cache, engine=engine, listener=listener)


def _refuse_beside_resume() -> None:
    """Refuse settings beside --resume, which takes them from the run."""
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _AGAIN and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"--resume takes its settings from the run; leave out {', '.join(given)}")


@contextmanager
def _telling_tests(has_tests: bool) -> Iterator[None]:
    """If what stands where models stand is no model but names tests, say so."""
    try:
        yield
    except UnknownNameError as error:
        if has_tests and error.kind == "model" and (tests := tests_meant(error.name)):
            raise UsageError(
                f"{error.name!r} is no model; tests follow the models: MODEL ... --tests {tests}"
            ) from error
        raise


@contextmanager
def _hinting_resume(how: How) -> Iterator[None]:
    """If a run is left unfinished, say how to resume it."""
    try:
        yield
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        refused = how.resumed is not None and isinstance(error, UsageError)  # it would be refused again
        if how.folder is not None and not refused and is_unfinished(how.folder):
            error.add_note(f"go on with: {_command(how.folder)}")
        raise


def _command(folder: Path) -> str:
    """How to go on with a run, with the options that this command was given."""
    models = [(str(model.get("name")), str(model.get("text"))) for model in read_models(folder)]
    texts = [text for _, text in models]
    again = sorted(
        f"--model {shlex.quote(f'{name}={text}' if texts.count(text) > 1 else text)}"
        for name, text in models
        if must_be_given(text)
    )
    context = click.get_current_context()
    given = [name for name in _KEPT if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    options = [f"--{name} {shlex.quote(str(context.params[name]))}" for name in given]
    return " ".join(["biassay resume", shlex.quote(str(folder)), *again, *options])


def finish(found: Run, how: How, **shown: Any) -> None:
    """Print a run as tables and in words, or as JSON; the exit code is 1 if something could not be measured."""
    if how.as_json:
        click.echo(found.to_json(), nl=False)
    elif not how.quiet:
        console = console_for_tables()
        print_run(found, console, everything=how.everything, **shown)
        if how.folder is not None:
            page = f"written to {how.folder}; open {how.folder / REPORT}"
            console.print(page, markup=False, highlight=False, soft_wrap=True)
    failed = [record for record in found.manifest.models if record.failed]
    for record in failed:
        click.echo(printable(f"error: {record.name}: {record.failed}"), err=True)
    if failed:
        measured = sum(not record.failed and not record.refused for record in found.manifest.models)
        again = f"; to try those again that failed: {_command(how.folder)}" if how.folder else ""
        click.echo(f"measured {measured} of {len(found.manifest.models)} models{again}", err=True)
    if failed or found.study.failed(found) or any(record.refused for record in found.manifest.models):
        sys.exit(1)
