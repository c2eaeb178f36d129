"""``biassay run`` and ``biassay ceat``"""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.common import TakesMany
from biassay.cli.options import how_options, settings_options
from biassay.cli.running import How, carried_out, finish
from biassay.errors import MissingExtraError
from biassay.runs.associations import run
from biassay.studies.associations.settings import Settings

__all__ = ["command"]


@click.command("run", cls=TakesMany)
@click.argument("models", nargs=-1, metavar="[MODEL ...]")
@settings_options(Settings)
@click.option("--two-sided", is_flag=True, help="The same as --alternative two-sided, of the same p-values.")
@how_options
def command(models: tuple[str, ...], two_sided: bool, **given: Any) -> None:
    """Run association tests on models; with --contexts, over the contexts of words in a corpus (CEAT).

    A MODEL is `use` (the default), `glove`, `vectors:PATH`, `hf:NAME`, ...: `biassay models` lists them all. A name
    of your own may stand in front: NAME=MODEL. Models come before --tests.
    """
    how = How.taken_from(given)
    if two_sided:
        given["alternative"] = "two-sided"
    contextual = click.get_current_context().info_name == "ceat"
    if contextual and how.resumed is None and (not models or given["contexts"] is None):
        raise click.UsageError("name at least one MODEL and the contexts: biassay ceat hf:NAME --contexts FILE")
    default = () if how.resumed is not None else ("use",)
    try:
        found = carried_out(run, models or default, given, how)
    except MissingExtraError as error:
        if not models:
            error.add_note("without it, the vectors that come with biassay can be measured: biassay run glove")
        raise
    finish(found, how)
