"""``biassay stereotypes``"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from biassay.cli.common import TakesMany
from biassay.cli.options import budget_option, how_options, settings_options, several_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.stereotypes import stereotypes
from biassay.stimuli.abc import groups_named, load_abc, paired_among, pairs_named, templates_named
from biassay.studies.stereotypes.settings import Settings

__all__ = ["command"]

_LISTS = ("groups", "templates", "traits")


@click.command("stereotypes", cls=TakesMany, several=several_options(Settings))
@click.argument("models", nargs=-1, metavar="MODEL ...")
@settings_options(Settings)
@click.option(
    "--list",
    "listed",
    type=click.Choice((*_LISTS, "all")),
    is_flag=False,
    flag_value="all",
    help="Show what can be named, and stop.",
)
@budget_option
@how_options
def command(models: tuple[str, ...], annotators: tuple[str, ...], listed: str | None, **given: Any) -> None:
    """What language models associate with social groups along agency, beliefs and communion (the ABC model).

    A MODEL is a masked or causal language model, `hf:NAME`, or one behind an endpoint that gives log-probabilities of
    texts, `completions:NAME`, which --measure ilps ilps-star can be asked of. For --measure ceat alone it may be any
    model that gives a word a vector in its context, `hf:NAME` or `elmo:DIR`. Models come before options that take
    several values.
    """
    how = How.taken_from(given)
    if listed is not None:
        from biassay.cli.listing import print_lists  # what measures need not wait for it

        print_lists({name: _known(name, given) for name in _LISTS if listed in (name, "all")}, as_json=how.as_json)
        return
    if not models and how.resumed is None:
        raise click.UsageError("name at least one MODEL: biassay stereotypes hf:NAME")
    for pair in annotators:
        if "=" not in pair:
            raise click.UsageError(f"--annotators is written FIELD=VALUE, got {pair!r}")
    given["annotators"] = [(field, value) for field, _, value in (pair.partition("=") for pair in annotators)]
    finish(carried_out(stereotypes, models, given, how), how)


def _known(listed: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Groups, templates or traits, those of the user's files too; --group and --template choose among them."""
    abc = load_abc([Path(file) for file in given["files"]])
    if listed == "templates":
        return [
            {"template": one.name, "kind": one.kind, "text": one.text}
            for one in templates_named(abc, given["templates"])
        ]
    if listed == "traits":
        return [
            {"pair": one.name, "dimension": one.dimension, "left": one.left_adjectives, "right": one.right_adjectives}
            for one in pairs_named(abc)
        ]
    groups = groups_named(abc, given["groups"])
    pairs = paired_among(abc, groups) if given["intersections"] else ()
    return [
        {"group": one.name, "domain": one.domain, "one": one.singular, "several": one.plural, "rated": bool(one.human)}
        for one in (*groups, *pairs)
    ]
