"""``biassay compare``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import TakesMany, console_for_tables, listener_for
from biassay.cli.reporting import print_files, report_options
from biassay.runs.reporting import compare_runs
from biassay.runs.showing import presenter_of

__all__ = ["command"]


@click.command("compare", cls=TakesMany)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN RUN ...")
@click.option("--baseline", metavar="MODEL", help="With which model the others are compared.  [default: the first]")
@click.option("--out", type=click.Path(path_type=Path), help="A page with the comparison and the runs.")
@report_options
def command(
    runs: tuple[Path, ...],
    baseline: str | None,
    out: Path | None,
    published: Path | None,
    formats: tuple[str, ...],
    tests: tuple[str, ...],
    mixed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """How models differ, with intervals that take into account that the words are the same.

    Compares all models of the runs with one of them. Runs that differ in protocol or stimuli are refused unless --mixed
    is given.
    """
    with listener_for(quiet=quiet or as_json) as listener:
        found, made = compare_runs(
            runs,
            baseline=baseline,
            out=out,
            published=published,
            formats=formats,
            tests=tests,
            mixed=mixed,
            listener=listener,
        )
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        presenter_of(found.study).print_comparison(found, console)
        print_files(made, published, console)
