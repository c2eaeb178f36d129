"""``biassay robustness``"""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.common import TestsTakeMany
from biassay.cli.options import how_options, settings_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.robustness import robustness
from biassay.studies.robustness.settings import Settings

__all__ = ["command"]


@click.command("robustness", cls=TestsTakeMany)
@click.argument("models", nargs=-1, metavar="[MODEL ...]")
@settings_options(Settings)
@how_options
def command(models: tuple[str, ...], **given: Any) -> None:
    """Measure association tests over layers, poolings, similarities, templates and words: what survives?

    A MODEL is `use` (the default), `glove`, `vectors:PATH`, `hf:NAME`, ...: `biassay models` lists them all. A name
    of your own may stand in front: NAME=MODEL. Models come before --tests.
    """
    how = How.taken_from(given)
    default = () if how.resumed is not None else ("use",)
    finish(carried_out(robustness, models or default, given, how), how)
