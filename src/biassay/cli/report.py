"""``biassay report``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import TakesMany, console_for_tables, listener_for
from biassay.cli.reporting import print_files, print_run, report_options
from biassay.runs.reporting import report_runs

__all__ = ["command"]


@click.command("report", cls=TakesMany)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN ...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The page.  [default: report.html in the RUN; of several in this folder]",
)
@click.option("--all", "everything", is_flag=True, help="Print all tests and rows, and further columns.")
@report_options
def command(
    runs: tuple[Path, ...],
    out: Path | None,
    everything: bool,
    published: Path | None,
    formats: tuple[str, ...],
    tests: tuple[str, ...],
    mixed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """One page from one or several run folders, to read and to print.

    Runs of all studies may be combined. Association tests of one model from several runs are one family and are
    corrected together. --tests selects what is shown and does not change the correction.
    """
    with listener_for(quiet=quiet or as_json) as listener:
        made = report_runs(
            runs, out=out, published=published, formats=formats, tests=tests, mixed=mixed, listener=listener
        )
    if as_json:
        click.echo(made.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_run(made, console, everything=everything, brief=published is not None and not everything)
        print_files(made, published, console)
