"""What the commands that make a run share: its options, how to go on after an interruption, how it is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from biassay.cli.common import console_for_tables
from biassay.errors import BiassayError
from biassay.report.html import REPORT
from biassay.report.terminal import print_run
from biassay.results.codec import from_json
from biassay.results.records import FORMAT_VERSION, Provenance
from biassay.results.run import MANIFEST, Run

__all__ = ["finish", "refuse_beside_resume", "run_options", "telling_how_to_go_on"]

_OPTIONS = (
    click.option("--alpha", type=float, default=0.01, show_default=True, help="Level of significance."),
    click.option("--out", type=click.Path(path_type=Path), help="A new folder for the run."),
    click.option(
        "--resume", "resumed", type=click.Path(path_type=Path), metavar="RUN", help="Go on with an interrupted run."
    ),
    click.option(
        "--cache",
        type=click.Path(path_type=Path),
        help="Where vectors are kept.  [default: $BIASSAY_CACHE or the user's cache]",
    ),
    click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table."),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--alpha``, ``--out``, ``--resume``, ``--cache``, ``--quiet`` and ``--json``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_beside_resume(names: Sequence[str]) -> None:
    """Refuse what the run itself says; to be ignored in silence would be worse."""
    context = click.get_current_context()
    given = [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        options = ("MODEL" if name == "models" else f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--resume takes everything from the run; leave out {', '.join(options)}")


@contextmanager
def telling_how_to_go_on(command: str, folder: Path | None, kept: Mapping[str, Path | None]) -> Iterator[None]:
    """If a run is left unfinished, say with what it goes on; ``kept`` holds options that it needs again."""
    try:
        yield
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        if folder is not None and _is_unfinished(folder, over_contexts=command == "ceat"):
            options = "".join(f" --{name} {path}" for name, path in kept.items() if path is not None)
            error.add_note(f"go on with: biassay {command} --resume {folder}{options}")
        raise


def _is_unfinished(folder: Path, *, over_contexts: bool) -> bool:
    if not (folder / MANIFEST).exists():
        return False
    if from_json(folder / MANIFEST, Provenance, FORMAT_VERSION).kind != "associations":
        return False
    manifest = Run.load(folder).manifest
    return manifest.status == "running" and (manifest.contexts is not None) == over_contexts


def finish(found: Run, folder: Path | None, *, quiet: bool, as_json: bool) -> None:
    """Print a run as a table and in words, or as JSON; the exit code is 1 if nothing was measured, or a test failed."""
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_run(found, console)
        if folder is not None:
            console.print(f"written to {folder}; open {folder / REPORT}", markup=False, highlight=False, soft_wrap=True)
    states = {result.status for result in found.results}
    if "measured" not in states or "failed" in states:
        sys.exit(1)
