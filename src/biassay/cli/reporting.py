"""What the commands that show runs share: their options, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from biassay.pages.charts.drawing import can_draw
from biassay.pages.publish.files import FIGURE_FORMATS
from biassay.runs.reporting import Report
from biassay.runs.showing import presented

__all__ = ["print_files", "print_run", "report_options"]

_OPTIONS = (
    click.option(
        "--publish",
        "published",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="A new folder for LaTeX and Markdown tables, figures, citations, model cards.",
    ),
    click.option(
        "--format",
        "formats",
        multiple=True,
        type=click.Choice(FIGURE_FORMATS),
        default=FIGURE_FORMATS,
        show_default=True,
        help="Format of published figures; may be repeated.",
    ),
    click.option(
        "--tests", multiple=True, metavar="PATTERN ...", help="Only these association tests: names, patterns."
    ),
    click.option("--mixed", is_flag=True, help="Put runs together that differ in protocol or stimuli."),
    click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("--json", "as_json", is_flag=True, help="Print what is shown as JSON instead of tables."),
)


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--publish``, ``--format``, ``--tests``, ``--mixed``, ``--quiet`` and ``--json``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def print_run(report: Report, console: Console, *, everything: bool = False) -> None:
    """Tables and findings in words, as after each run."""
    for presenter, gathered in presented(report.gathered):
        for difference in gathered.differences:
            console.print(f"not alike: {difference}", style="yellow", markup=False)
        presenter.print(gathered, console, everything=everything)


def print_files(report: Report, folder: Path | None, console: Console) -> None:
    """Where the page and the published files are."""
    lines = [] if report.page is None else [f"open {report.page}"]
    if folder is not None:
        lines.append(f"{len(report.published)} files written to {folder}")
        if not can_draw():
            lines.append('figures were left out; they need: pip install "biassay[figures]"')
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
