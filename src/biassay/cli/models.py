"""``biassay models``: the families of models, and which can be used now."""

from __future__ import annotations

import json

import click
from rich.markup import escape
from rich.table import Table

from biassay.cli.common import console_for_tables
from biassay.encoders.registry import FAMILIES, Family

__all__ = ["command"]


@click.command("models")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """The families of models: how to name a model, its settings, and whether it can be used now."""
    if as_json:
        content = [_about(name, family) for name, family in FAMILIES.items()]
        click.echo(json.dumps(content, indent=1, ensure_ascii=False))
        return
    table = Table()
    # A command to copy must not be broken over lines.
    for column, whole in {"model": True, "what it is": False, "settings": False, "usable": True}.items():
        table.add_column(column, no_wrap=whole, overflow="fold")
    for family in FAMILIES.values():
        usable = f"no: {family.install}" if family.missing else "yes"
        table.add_row(*map(escape, (family.form, family.about, ", ".join(family.settings), usable)))
    console_for_tables().print(table)
    click.echo("Settings are written behind the name: hf:NAME?pool=mean&layer=-2")


def _about(name: str, family: Family) -> dict[str, object]:
    return {
        "family": name,
        "form": family.form,
        "about": family.about,
        "settings": family.settings,
        "usable": not family.missing,
        "needs": family.needs,
        "missing": family.missing,
        "install": family.install,
    }
