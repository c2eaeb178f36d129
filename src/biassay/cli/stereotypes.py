"""Command `biassay stereotypes`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from biassay.cli.options import SectionedCommand
from biassay.cli.studies import measure_and_print, study_options
from biassay.datasets.abc_model import load_abc, pair_groups, select_groups, select_templates
from biassay.studies.stereotypes.settings import StereotypeSettings

_LISTS = ("groups", "templates", "traits")


@click.command("stereotypes", cls=SectionedCommand)
@study_options(StereotypeSettings, budget=True)
@click.option(
    "--list",
    "listed",
    type=click.Choice((*_LISTS, "all")),
    is_flag=False,
    flag_value="all",
    help="List groups, templates and traits, and exit.",
)
def command(models: tuple[str, ...], listed: str | None, **given: Any) -> None:
    """Measure what language models associate with social groups: agency, beliefs, communion (the ABC model).

    A MODEL is a masked or causal language model, `hf:NAME`. For --measures ilps,ilps-star it may be `completions:NAME`
    behind an endpoint that returns log-probabilities of texts; for --measures ceat alone, any model of words in context
    (`hf:NAME`, `elmo:DIR`).
    """
    if listed is not None:
        from biassay.cli.listings import print_lists  # not needed to measure

        names = [name for name in _LISTS if listed in (name, "all")]
        print_lists({name: _list_choices(name, given) for name in names}, as_json=given["as_json"])
        return
    measure_and_print("stereotypes", models, given, usage="biassay stereotypes hf:NAME")


def _list_choices(listed: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List groups, templates or traits, including those of --files, as --groups and --templates select them."""
    abc = load_abc([Path(file) for file in given["files"]])
    if listed == "templates":
        return [
            {"template": template.name, "kind": template.kind, "text": template.text}
            for template in select_templates(abc, given["templates"])
        ]
    if listed == "traits":
        return [
            {
                "pair": pair.name,
                "dimension": pair.dimension,
                "left": pair.left_adjectives,
                "right": pair.right_adjectives,
            }
            for pair in abc.pairs
        ]
    groups = select_groups(abc, given["groups"])
    pairs = pair_groups(abc, groups) if given["intersections"] else ()
    return [
        {
            "group": group.name,
            "domain": group.domain,
            "one": group.singular,
            "several": group.plural,
            "rated": bool(group.human),
        }
        for group in (*groups, *pairs)
    ]
