"""What the commands that make a run share: its options, how to go on after an interruption, how it is shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from biassay.cli.common import console_for_tables
from biassay.errors import BiassayError, UsageError
from biassay.pipeline.models import to_give_again
from biassay.report.html import REPORT
from biassay.results.codec import from_json
from biassay.results.making import is_of
from biassay.results.records import FORMAT_VERSION, Provenance
from biassay.results.run import MANIFEST, Run, read_manifest
from biassay.studies.associations.terminal import print_run

__all__ = ["finish", "refuse_beside_resume", "run_options", "shown_options", "telling_how_to_go_on", "vectors_option"]

_OF_A_RUN = (
    click.option("--alpha", type=float, default=0.01, show_default=True, help="Level of significance."),
    click.option("--out", type=click.Path(path_type=Path), help="A new folder for the run."),
    click.option(
        "--resume", "resumed", type=click.Path(path_type=Path), metavar="RUN", help="Go on with an interrupted run."
    ),
)
_SHOWN = (
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
    return _decorated(_OF_A_RUN, shown_options(command))


def shown_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--cache``, ``--quiet`` and ``--json``."""
    return _decorated(_SHOWN, command)


def vectors_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--vectors``."""
    about = "A folder for the vectors of a run over contexts instead of the cache."
    decorated: Callable[..., Any] = click.option("--vectors", type=click.Path(path_type=Path), help=about)(command)
    return decorated


def _decorated(options: Sequence[Callable[..., Any]], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def refuse_beside_resume(names: Sequence[str]) -> None:
    """Refuse settings that the run itself has; to be ignored in silence would be worse."""
    context = click.get_current_context()
    given = [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--resume takes its settings from the run; leave out {options}")


@contextmanager
def telling_how_to_go_on(out: Path | None, resumed: Path | None, kept: Mapping[str, Path | None]) -> Iterator[None]:
    """If a run is left unfinished, say with what it goes on; ``kept`` holds options that it needs again."""
    try:
        yield
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        folder = resumed or out
        refused = resumed is not None and isinstance(error, UsageError)  # the same command would be refused again
        if folder is not None and not refused and _is_unfinished(folder):
            models = {f"--model {shlex.quote(record.text)}" for record in to_give_again(read_manifest(folder).models)}
            again = [f"--{name} {shlex.quote(str(path))}" for name, path in kept.items() if path is not None]
            error.add_note(" ".join(["go on with: biassay resume", shlex.quote(str(folder)), *sorted(models), *again]))
        raise


def _is_unfinished(folder: Path) -> bool:
    if not (folder / MANIFEST).exists():
        return False
    made = from_json(folder / MANIFEST, Provenance, FORMAT_VERSION)
    return (made.kind, made.status) == ("associations", "running")


def finish(found: Run, folder: Path | None, *, quiet: bool, as_json: bool) -> None:
    """Print a run as a table and in words, or as JSON.

    The exit code is 1 if nothing could be measured of a model, or a test failed.
    """
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_run(found, console)
        if folder is not None:
            console.print(f"written to {folder}; open {folder / REPORT}", markup=False, highlight=False, soft_wrap=True)
    states = [{r.status for r in found.results if is_of(r, record)} for record in found.manifest.models]
    if any("measured" not in of or "failed" in of for of in states):
        sys.exit(1)
