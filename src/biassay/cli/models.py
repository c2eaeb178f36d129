"""``biassay models``: the families of models, and which can be used now."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from biassay.cli.common import console_for_tables
from biassay.models.family import Family
from biassay.models.registry import families
from biassay.pages.plain_tables import WIDTH

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["command"]

_LONG = {"what it is": None, "can do": 24}  # columns that go on in a second line, and how wide they are at most


@click.command("models")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """The families of models: how to name a model, what it can do, its settings, and whether it can be used now.

    Models encode texts (WEAT, SEAT, discovery), encode words in their contexts (CEAT), fill blanks (stereotypes),
    answer prompts (replies), or say how likely texts are (likelihoods).
    """
    known = families()
    if as_json:
        click.echo(json.dumps([*map(_about, known.values())], indent=1, ensure_ascii=False))
        return
    console = console_for_tables()
    console.print(_table(known.values()), width=min(WIDTH, console.width))
    for family in known.values():
        if family.missing:
            click.echo(f"{family.form} needs: {family.install}")
    click.echo("Settings follow the name: hf:NAME?pool=mean&layer=-2")
    for family in known.values():
        if family.settings:
            click.echo(f"\n{family.form}")
        for name, about in family.settings.items():
            click.echo(textwrap.fill(about, WIDTH, initial_indent=f"  {name:<18} ", subsequent_indent=" " * 21))


def _table(known: Iterable[Family]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("model", "what it is", "can do", "usable"):
        table.add_column(column, no_wrap=column not in _LONG, overflow="fold", max_width=_LONG.get(column))
    for family in known:
        usable = "no" if family.missing else "yes"
        table.add_row(*map(escape, (family.form, family.about, ", ".join(family.abilities), usable)))
    return table


def _about(family: Family) -> dict[str, object]:
    return {
        "family": family.name,
        "form": family.form,
        "about": family.about,
        "abilities": family.abilities,
        "settings": dict(family.settings),
        "usable": not family.missing,
        "needs": family.needs,
        "missing": family.missing,
        "install": family.install,
    }
