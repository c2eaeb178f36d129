"""What the commands that show runs share: their options, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group

from biassay.pages.charts.drawing import can_draw
from biassay.pages.formats import counted
from biassay.pages.plain_tables import WIDTH, said
from biassay.pages.publish.files import FIGURE_FORMATS
from biassay.pages.sentences import statements
from biassay.runs.reporting import Report
from biassay.runs.showing import presented
from biassay.studies.registry import study_named

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


def print_run(report: Report, console: Console, *, everything: bool = False, brief: bool = False) -> None:
    """Tables and findings in words, as after each run; or in ``brief`` a sentence or two a model."""
    for presenter, gathered in presented(report.gathered):
        for difference in gathered.differences:
            console.print(f"not alike: {difference}", style="yellow", markup=False)
        if not brief:
            presenter.print(gathered, console, everything=everything)
            continue
        found = statements(study_named(gathered.run.manifest.study).findings(gathered.run))
        lines = said(replace(one, points=(), names=()) for one in found)
        console.print(Group(*lines), width=min(WIDTH, console.width))


def print_files(report: Report, folder: Path | None, console: Console) -> None:
    """Where the page and the published files are."""
    lines = [] if report.page is None else [f"open {report.page}"]
    if folder is not None:
        hidden = {path.parent.name for path in report.published if path.parent.name.startswith(".")}
        also = f", also to the hidden folder {', '.join(sorted(hidden))} in it" if hidden else ""
        lines.append(f"{counted(len(report.published), 'file')} written to {folder}{also}")
        if not can_draw():
            lines.append('figures were left out; they need: pip install "biassay[figures]"')
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
