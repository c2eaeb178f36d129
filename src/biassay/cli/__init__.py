"""The front door: one module per command, loaded when the command is used."""

from __future__ import annotations

import codecs
import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from biassay.cli.commands import Commands
from biassay.errors import BiassayError, PluginWarning, explaining_memory
from biassay.plugins import plugin_names, skim_names
from biassay.studies.registry import study_commands

__all__ = ["main"]

_STUDIES = "biassay.studies"
_COMMANDS = {
    "run": ("biassay.cli.run", "Run association tests (WEAT, SEAT) on models."),
    "contexts": ("biassay.cli.contexts", "Find the contexts of stimuli in a corpus."),
    "ceat": ("biassay.cli.run", "The same over contexts (CEAT)."),
    "resume": ("biassay.cli.resume", "Continue an interrupted run."),
    "discover": ("biassay.cli.discover", "Find the words a model associates with groups of people (IBD, EIBD)."),
    "stereotypes": ("biassay.cli.stereotypes", "What language models associate with social groups (the ABC model)."),
    "robustness": (
        "biassay.cli.robustness",
        "What associations survive: layers, poolings, similarities, templates, words.",
    ),
    "ask": (
        "biassay.cli.ask",
        "Ask chat or instruct models which group goes with which words (word association tests).",
    ),
    "benchmark": ("biassay.cli.benchmark", "BBQ, CrowS-Pairs and StereoSet, with intervals by template."),
    "import": ("biassay.cli.import_logs", "The same from logs of lm-evaluation-harness or Inspect."),
    "report": ("biassay.cli.report", "One page from run folders, and files for a paper."),
    "compare": ("biassay.cli.compare", "How the models of runs differ."),
    "survey": ("biassay.cli.survey", "Ask people how groups are seen: the human study."),
    "tests": ("biassay.cli.tests", "List, find, show, check and export the tests."),
    "models": ("biassay.cli.models", "Families of models, and which can be used now."),
    "cache": ("biassay.cli.cache", "List what is cached, by model, and remove parts of it."),
    "doctor": ("biassay.cli.doctor", "Versions, device, cache, and a self-test of every family."),
}
_ALIKE = {"–": "-", "−": "-", "…": "~", "•": "-", "█": "#", "░": "-", "─": "-", "━": "-", "†": "+", "‡": "++"}


class _Commands(Commands):
    """Knows every command's name and summary, and imports a command only to run it.

    A study without a module here is a command of its name; so is a study of another package.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        added = (*study_commands(), *plugin_names(_STUDIES))
        return [*_COMMANDS, *(name for name in added if name not in _COMMANDS)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in _COMMANDS:
            made: click.Command = import_module("biassay.cli.study").command_of(name)
            return made
        command: click.Command = import_module(_COMMANDS[name][0]).command
        return command

    def has_command(self, name: str) -> bool:
        return name in _COMMANDS or name in study_commands() or name in plugin_names(_STUDIES)

    def meant(self, name: str) -> str | None:
        tests = import_module("biassay.cli.common").tests_meant(name)
        return tests and f"biassay run --tests {tests}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])
        if added := [(name, f"From {of}.") for name, of in skim_names(_STUDIES).items() if name not in _COMMANDS]:
            with formatter.section("Studies of other packages"):
                formatter.write_dl(added)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="biassay", prog_name="biassay")
def _biassay() -> None:
    """Measure social bias and stereotypes in text encoders and language models."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; an error becomes one plain sentence and an exit code."""
    _write_any_text()
    try:
        with _plain_warnings(), explaining_memory():
            code = _biassay.main(args=args, standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        _say("interrupted", error)
        code = 1
    except click.ClickException as error:
        (_nearest_only(error) if isinstance(error, click.NoSuchOption) else error).show()
        code = 2
    except BiassayError as error:
        _say(f"error: {error}", error)
        code = error.exit_code
    except ImportError as error:  # a package that is installed and broken
        _say(f"error: a package that is needed cannot be imported: {error}", error)
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"error: {where}{error.strerror or error}", error)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _nearest_only(error: click.NoSuchOption) -> click.NoSuchOption:
    """Of the options that are like what was written, those that begin so, if any does."""
    name, known = error.option_name, error.possibilities or ()
    near = [option for option in known if option.startswith(name)] or known
    return click.NoSuchOption(name, possibilities=near, ctx=error.ctx)


def _write_any_text() -> None:
    """A terminal or a pipe that lacks a character gets one that is like it, or a question mark."""
    codecs.register_error("biassay", _alike)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="biassay")


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ALIKE.get(one, "?") for one in error.object[error.start : error.end]), error.end


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Of what other packages add and cannot be used, one line; other warnings as ever."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PluginWarning):
                click.echo(f"warning: {message}", err=True)
            else:
                shown(message, category, *rest, **named)

        warnings.showwarning = show
        yield


def _say(message: str, error: BaseException) -> None:
    """The message and what to do next; click raises its own error from an interrupt, which holds the notes."""
    from biassay.files import printable  # names come from outside, and a terminal obeys what it is sent

    first = error.__cause__ if isinstance(error, click.Abort) else error
    for text in (message, *getattr(first, "__notes__", ())):
        for line in text.splitlines():
            click.echo(printable(line), err=True)
