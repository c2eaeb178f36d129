"""Command `biassay models`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from biassay.cli.common import make_console
from biassay.cli.options import json_option
from biassay.models.backend import ModelBackend
from biassay.models.registry import get_backends
from biassay.reporting.terminal import WIDTH

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["command"]

_MAX_WIDTHS = {"what it is": None, "can do": 24}  # of the columns that wrap


@click.command("models")
@json_option
def command(as_json: bool) -> None:
    """List the kinds of models: how to name one, what it can do, its settings, and whether it is usable.

    Models encode texts (WEAT, SEAT, discovery), encode words in context (CEAT), fill blanks (stereotypes), respond to
    prompts (replies), or provide likelihoods of texts (likelihoods).
    """
    known = get_backends()
    if as_json:
        click.echo(json.dumps([*map(_describe_backend, known.values())], indent=1, ensure_ascii=False))
        return
    console = make_console()
    console.print(_make_table(known.values()), width=min(WIDTH, console.width))
    for family in known.values():
        if family.missing:
            click.echo(f"{family.syntax} needs: {family.install}")
    click.echo("Settings follow the name: hf:NAME?pool=mean&layer=-2")
    for family in known.values():
        if family.settings:
            click.echo(f"\n{family.syntax}")
        for name, about in family.settings.items():
            click.echo(textwrap.fill(about, WIDTH, initial_indent=f"  {name:<18} ", subsequent_indent=" " * 21))


def _make_table(known: Iterable[ModelBackend]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("model", "what it is", "can do", "usable"):
        table.add_column(column, no_wrap=column not in _MAX_WIDTHS, overflow="fold", max_width=_MAX_WIDTHS.get(column))
    for family in known:
        usable = "no" if family.missing else "yes"
        table.add_row(*map(escape, (family.syntax, family.description, ", ".join(family.capabilities), usable)))
    return table


def _describe_backend(family: ModelBackend) -> dict[str, object]:
    return {
        "family": family.name,
        "form": family.syntax,
        "about": family.description,
        "abilities": family.capabilities,
        "settings": dict(family.settings),
        "usable": not family.missing,
        "needs": family.needs,
        "missing": family.missing,
        "install": family.install,
    }
