"""Command `biassay report`, and options shared with `biassay compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group

from biassay.cli.options import apply_options, json_option, quiet_option, settings_options
from biassay.cli.progress import make_listener
from biassay.errors import format_install_command
from biassay.reporting.charts.base import can_draw
from biassay.reporting.findings import make_statements
from biassay.reporting.formats import format_count
from biassay.reporting.publication import FIGURE_FORMATS
from biassay.reporting.terminal import WIDTH, make_console, render_statements
from biassay.runs.compare import WrittenReport, report_runs
from biassay.runs.reports import print_group, with_presenters
from biassay.studies.registry import get_study
from biassay.studies.settings import list_setting, setting


@dataclass(frozen=True)
class ReportOptions:
    """Options that `biassay report` and `biassay compare` share."""

    published: Path | None = setting(
        None,
        "Write LaTeX and Markdown tables, figures, citations and model cards to this new folder.",
        metavar="DIR",
        option="--publish",
    )
    formats: tuple[str, ...] = setting(
        FIGURE_FORMATS,
        f"Draw published figures in these formats.  [default: {', '.join(FIGURE_FORMATS)}]",
        choices=FIGURE_FORMATS,
        many=True,
        option="--format",
    )
    tests: tuple[str, ...] = list_setting(
        "Show these association tests only, by name or pattern.", metavar="PATTERN[,...]"
    )
    mixed: bool = setting(False, "Combine runs that differ in protocol or stimuli.")


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `biassay report` and `biassay compare` share."""
    return apply_options((settings_options(ReportOptions), quiet_option, json_option), command)


def print_report(report: WrittenReport, console: Console, *, everything: bool = False, brief: bool = False) -> None:
    """Print tables and findings as after each run, or one or two sentences per model.

    Parameters
    ----------
    report : WrittenReport
        The report.
    console : Console
        Where to print.
    everything : bool
        If True, print all tests, rows and columns.
    brief : bool
        If True, print sentences only.
    """
    for presenter, gathered in with_presenters(report.groups):
        for difference in gathered.differences:
            console.print(f"runs differ: {difference}", style="yellow", markup=False)
        if not brief:
            print_group(presenter, gathered, console, everything=everything)
            continue
        statements = make_statements(get_study(gathered.run.manifest.study).findings(gathered.run))
        lines = render_statements(replace(statement, points=(), names=()) for statement in statements)
        console.print(Group(*lines), width=min(WIDTH, console.width))


def print_files(report: WrittenReport, folder: Path | None, console: Console) -> None:
    """Print where the report and the published files are.

    Parameters
    ----------
    report : WrittenReport
        The report.
    folder : path or None
        Folder of the published files.
    console : Console
        Where to print.
    """
    lines = [] if report.path is None else [f"Report  {report.path}"]
    if folder is not None:
        hidden = {path.parent.name for path in report.published if path.parent.name.startswith(".")}
        also = f" (some in the hidden folder {', '.join(sorted(hidden))})" if hidden else ""
        lines.append(f"{format_count(len(report.published), 'file')} written to {folder}{also}")
        if not can_draw():
            lines.append(f"no figures were drawn; install: {format_install_command('figures')}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN ...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the report to this file.  [default: report.html in the RUN; for several runs, in this folder]",
)
@click.option("--all", "everything", is_flag=True, help="Print all tests, rows and columns.")
@report_options
def command(
    runs: tuple[Path, ...], everything: bool, published: Path | None, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Write one report from one or several run folders.

    Runs of all studies may be combined. Association tests of one model from several runs are one family and are
    corrected together. --tests selects what the report shows and does not change the correction.
    """
    with make_listener(quiet=quiet or as_json) as listener:
        made = report_runs(runs, published=published, listener=listener, **options)
    if as_json:
        click.echo(made.to_json(), nl=False)
    elif not quiet:
        console = make_console()
        print_report(made, console, everything=everything, brief=published is not None and not everything)
        print_files(made, published, console)
