"""``biassay ask``"""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.common import TakesMany
from biassay.cli.options import budget_option, how_options, settings_options, several_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.word_association import ask
from biassay.studies.word_association.settings import Settings

__all__ = ["command"]


@click.command("ask", cls=TakesMany, several=several_options(Settings))
@click.argument("models", nargs=-1, metavar="MODEL ...")
@settings_options(Settings)
@budget_option
@how_options
def command(models: tuple[str, ...], **given: Any) -> None:
    """Ask chat or instruct models which of two group words goes with each word (word association tests).

    A MODEL is one that answers prompts: `chat:NAME` or `completions:NAME` behind an endpoint, or `hf:NAME`. Models come
    before options that take several values.

    Without --tests it runs the published tests that can be significant. Tests with too few pairs of group words are
    descriptive: name them, or use --tests all, to run them too.
    """
    how = How.taken_from(given)
    if not models and how.resumed is None:
        raise click.UsageError("name at least one MODEL: biassay ask chat:NAME")
    finish(carried_out(ask, models, given, how), how)
