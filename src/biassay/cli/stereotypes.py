"""``biassay stereotypes``"""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.options import how_options, settings_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.stereotypes import stereotypes
from biassay.studies.stereotypes.settings import Settings

__all__ = ["command"]


@click.command("stereotypes")
@click.argument("models", nargs=-1, metavar="MODEL ...")
@settings_options(Settings)
@how_options
def command(models: tuple[str, ...], annotators: tuple[str, ...], **given: Any) -> None:
    """What language models associate with social groups along agency, beliefs and communion (the ABC model).

    A MODEL is a masked or causal language model, `hf:NAME`. For --measure ceat alone it may be any model that gives a
    word a vector in its context, `hf:NAME` or `elmo:DIR`.
    """
    how = How.taken_from(given)
    if not models and how.resumed is None:
        raise click.UsageError("name at least one MODEL: biassay stereotypes hf:NAME")
    for pair in annotators:
        if "=" not in pair:
            raise click.UsageError(f"--annotators is written FIELD=VALUE, got {pair!r}")
    given["annotators"] = [(field, value) for field, _, value in (pair.partition("=") for pair in annotators)]
    finish(carried_out(stereotypes, models, given, how), how)
