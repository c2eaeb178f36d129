"""``biassay report``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import TestsTakeMany, console_for_tables, listener_for
from biassay.cli.reporting import print_found, report_options, tell_published
from biassay.runs.reporting import report_runs

__all__ = ["command"]


@click.command("report", cls=TestsTakeMany)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN ...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The page.  [default: report.html in the RUN; of several in this folder]",
)
@report_options
def command(
    runs: tuple[Path, ...],
    out: Path | None,
    published: Path | None,
    formats: tuple[str, ...],
    tests: tuple[str, ...],
    mixed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """One page from one or several run folders, to read and to print.

    Runs of all kinds may stand side by side. Association tests of several runs are put together, and the correction for
    the number of tests is made anew over all that is shown.
    """
    with listener_for(quiet=quiet or as_json) as listener:
        made = report_runs(
            runs, out=out, published=published, formats=formats, tests=tests, mixed=mixed, listener=listener
        )
    if as_json:
        click.echo(made.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_found(made, console)
        tell_published(made, published, console)
