"""``biassay compare``"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from biassay.cli.common import TakesMany, console_for_tables, listener_for
from biassay.cli.options import Place
from biassay.cli.reporting import print_files, report_options
from biassay.errors import UsageError
from biassay.files import printable, write_atomically
from biassay.pages.gate import gate_junit, gate_markdown, gate_statements
from biassay.pages.plain_tables import WIDTH, said
from biassay.results.verdicts import FAIL_IF, LEVEL, MARGIN, unmeasured, verdict_sentence
from biassay.runs.reporting import compare_runs
from biassay.runs.showing import presenter_of

__all__ = ["GATE_FAILED", "command"]

GATE_FAILED = 3
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("compare", cls=TakesMany)
@click.argument("given", nargs=-1, required=True, metavar="OLD NEW ...")
@click.option("--baseline", metavar="MODEL", help="With which model the others are compared.  [default: the first]")
@click.option(
    "--fail-if", type=click.Choice(FAIL_IF), help="Exit with 3 if a test is worse, or not shown to be no worse."
)
@click.option(
    "--margin",
    type=float,
    default=MARGIN,
    show_default=True,
    metavar="D",
    help="Growth of |d| that would not matter; of shares and scores, as a part of the largest that there can be.",
)
@click.option(
    "--level", type=float, default=LEVEL, show_default=True, metavar="P", help="Probability that any verdict is wrong."
)
@click.option("--junit", type=_FILE, metavar="FILE", help="The verdicts as JUnit XML.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="The verdicts as Markdown, for a pull request.")
@click.option("--out", type=click.Path(path_type=Path), help="A page with the comparison and the runs.")
@click.option("--cache", type=Place(), help="Where answers of models are kept: a folder, or an address.")
@report_options
def command(
    given: tuple[str, ...],
    baseline: str | None,
    fail_if: str | None,
    margin: float,
    level: float,
    junit: Path | None,
    markdown: Path | None,
    out: Path | None,
    cache: Path | str | None,
    published: Path | None,
    formats: tuple[str, ...],
    tests: tuple[str, ...],
    mixed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Is NEW worse than OLD? How models differ, with intervals that take into account that the words are the same.

    OLD and NEW are run folders or models (`glove`, `hf:NAME`, ...); a model is measured first, by the tests of the
    other run or those of --tests. Of more models, all are compared with the first. Runs that differ in protocol or
    stimuli are refused unless --mixed is given. With --fail-if the exit code is 3 if the gate fails.
    """
    for file in (junit, markdown):
        if file is not None and not file.parent.is_dir():
            raise UsageError(f"{file}: the folder {file.parent} does not exist")
    with listener_for(quiet=quiet or as_json) as listener:
        found, made = compare_runs(
            given,
            baseline=baseline,
            out=out,
            published=published,
            formats=formats,
            tests=tests,
            mixed=mixed,
            margin=margin,
            level=level,
            cache=cache,
            listener=listener,
        )
    failed = found.failed(fail_if or FAIL_IF[0]) if fail_if or junit or markdown else ()
    if junit is not None:
        write_atomically(junit, gate_junit(found.verdicts, failed).encode())
    if markdown is not None:
        write_atomically(markdown, gate_markdown(found.verdicts).encode())
    if as_json:
        click.echo(found.to_json(fail_if), nl=False)
    elif not quiet:
        console = console_for_tables()
        console.width = min(console.width, WIDTH)
        presenter_of(found.study).print_comparison(found, console)
        console.print(*said(replace(one, points=()) for one in gate_statements(found.verdicts)), sep="\n")
        print_files(made, published, console)
    if fail_if and failed:
        own = [verdict for verdict in found.verdicts if verdict.model in {one.model for one in failed}]
        click.echo(f"the gate fails: {printable(verdict_sentence(own))}", err=True)
        sys.exit(GATE_FAILED)
    if found.missing or unmeasured(found.verdicts):
        sys.exit(1)
