"""Command line: load commands lazily and report errors."""

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

from biassay.errors import BiassayError, PluginWarning, explain_memory_errors, find_nearest_names
from biassay.packages import get_plugin_names, list_names_fast
from biassay.studies.registry import study_commands


class SuggestingGroup(click.Group):
    """Group of commands that suggests a name for an unknown command."""

    def has_command(self, name: str) -> bool:
        """Return whether there is a command of this name."""
        return name in self.commands

    def suggest(self, name: str) -> str | None:  # noqa: ARG002
        """Return a better suggestion than the nearest command, or None."""
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command by name, or raise an error with a suggestion."""
        if args and not self.has_command(args[0]):
            known = self.list_commands(ctx)
            near = self.suggest(args[0]) or next(iter(find_nearest_names(args[0], known)), None)
            hint = f"; did you mean {near!r}?" if near else f"; commands: {', '.join(known)}"
            raise click.UsageError(f"unknown command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all commands with their whole summaries."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [(name, command.get_short_help_str(_WHOLE)) for name, command in commands.items() if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_STUDIES = "biassay.studies"
_WHOLE = 1000  # letters of a summary
_COMMANDS = {
    "run": ("studies", "Run association tests on models (WEAT, SEAT, CEAT)."),
    "audit": ("studies", "Test whether scores or selection change when only the name in a document changes."),
    "contexts": ("contexts", "Find the contexts of test words in a corpus."),
    "resume": ("studies", "Continue an interrupted run."),
    "discover": ("discover", "Find the words that models associate with intersectional groups (IBD, EIBD)."),
    "stereotypes": ("stereotypes", "Measure which traits language models associate with social groups (ABC model)."),
    "robustness": ("studies", "Measure results under many analysis choices or prompts."),
    "debias": ("studies", "Erase a concept from models, and measure what is gone, what is left and what is lost."),
    "ask": (
        "studies",
        "Ask chat or instruct models which words they associate with groups (word association tests).",
    ),
    "benchmark": ("studies", "Score models on BBQ, WinoBias or another benchmark, with intervals."),
    "import": ("studies", "Score benchmarks from logs of lm-evaluation-harness or Inspect."),
    "report": ("report", "Write one report from run folders, and files for a paper."),
    "relate": ("relate", "Test whether one measure predicts another over models."),
    "compare": ("compare", "Compare models or runs, and fail if the new one is worse."),
    "survey": ("survey", "Run a survey of how people see groups."),
    "tests": ("tests", "List, search, show, check and export tests."),
    "models": ("catalogues", "List the model backends, or show the settings of one."),
    "metrics": ("catalogues", "List the metrics of association tests, or show one."),
    "outcomes": ("catalogues", "List the outcomes of responses, or show one."),
    "erasure": ("catalogues", "List the methods and concepts of erasure, or show one."),
    "cache": ("cache", "List cached outputs by model, and remove them."),
    "doctor": ("doctor", "Check versions, device, cache and every model backend."),
}
COMMAND_SUMMARIES = {name: summary for name, (_, summary) in _COMMANDS.items()}
_ASCII_SUBSTITUTES = {
    "–": "-",
    "−": "-",
    "…": "~",
    "•": "-",
    "█": "#",
    "░": "-",
    "─": "-",
    "━": "-",
    "†": "+",
    "‡": "++",
}


class _LazyCommands(SuggestingGroup):
    """Root group: knows the names and summaries of all commands and imports a command only to run it.

    A study without a module of its own, also one of another package, is a command of its name.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        added = (*study_commands(), *get_plugin_names(_STUDIES))
        return [*_COMMANDS, *(name for name in added if name not in _COMMANDS)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        module = import_module(f"biassay.cli.{_COMMANDS.get(name, ('studies',))[0]}")
        command: click.Command = module.command if hasattr(module, "command") else module.make_command(name)
        return command

    def has_command(self, name: str) -> bool:
        return name in _COMMANDS or name in study_commands() or name in get_plugin_names(_STUDIES)

    def suggest(self, name: str) -> str | None:
        tests = import_module("biassay.cli.options").suggest_tests(name)
        return tests and f"biassay run --tests {tests}"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMAND_SUMMARIES.items()))
        if added := [
            (name, f"Run this study of {package}.")
            for name, package in list_names_fast(_STUDIES).items()
            if name not in _COMMANDS
        ]:
            with formatter.section("Studies of other packages"):
                formatter.write_dl(added)


@click.group(cls=_LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="biassay", prog_name="biassay")
def _biassay() -> None:
    """Measure social bias and stereotypes in text encoders and language models."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; print an error as one sentence and exit with its code."""
    _configure_encoding()
    try:
        with _shorten_warnings(), explain_memory_errors():
            code = _biassay.main(args=args, standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        _print_error("interrupted", error)
        code = 1
    except click.MissingParameter as error:
        context = error.ctx or click.Context(_biassay)
        message = error.format_message().rstrip(".")
        _print_error(f"error: {message[0].lower()}{message[1:]}; see {context.command_path} --help", error)
        code = 2
    except click.ClickException as error:
        (_narrow_suggestions(error) if isinstance(error, click.NoSuchOption) else error).show()
        code = 2
    except BiassayError as error:
        _print_error(f"error: {error}", error)
        code = error.exit_code
    except ImportError as error:  # installed but broken
        _print_error(f"error: cannot import a required package: {error}", error)
        code = 1
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _print_error(f"error: {where}{error.strerror or error}", error)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _narrow_suggestions(error: click.NoSuchOption) -> click.NoSuchOption:
    """Keep the suggestions that start with the given name, if there are any."""
    name, known = error.option_name, error.possibilities or ()
    near = [option for option in known if option.startswith(name)] or known
    return click.NoSuchOption(name, possibilities=near, ctx=error.ctx)


def _configure_encoding() -> None:
    """Replace characters that the terminal or pipe cannot encode by similar ones, or by a question mark."""
    codecs.register_error("biassay", _substitute_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="biassay")


def _substitute_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(
        _ASCII_SUBSTITUTES.get(character, "?") for character in error.object[error.start : error.end]
    ), error.end


@contextmanager
def _shorten_warnings() -> Iterator[None]:
    """Print a warning about a broken plugin as one line; leave other warnings as they are."""
    with warnings.catch_warnings():
        show_default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
            if issubclass(category, PluginWarning):
                click.echo(f"warning: {message}", err=True)
            else:
                show_default(message, category, *rest, **named)

        warnings.showwarning = show
        yield


def _print_error(message: str, error: BaseException) -> None:
    """Print the message and its notes; for click's own Abort, the notes of the interrupt that caused it."""
    from biassay.io import make_printable  # names from outside may hold control characters

    first = error.__cause__ if isinstance(error, click.Abort) else error
    for text in (message, *getattr(first, "__notes__", ())):
        for line in text.splitlines():
            click.echo(make_printable(line), err=True)
