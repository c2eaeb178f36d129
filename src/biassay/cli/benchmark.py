"""``biassay benchmark``"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from biassay.cli.common import TakesMany
from biassay.cli.options import budget_option, how_options, settings_options, several_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.benchmarks import benchmark as measured
from biassay.studies.benchmarks.settings import BENCHMARKS, Settings

__all__ = ["command"]


@click.command("benchmark", cls=TakesMany, several=several_options(Settings))
@click.argument("benchmark", type=click.Choice(BENCHMARKS), required=False)
@click.argument("models", nargs=-1, metavar="MODEL ...")
@settings_options(Settings)
@budget_option
@how_options
def command(benchmark: str | None, models: tuple[str, ...], **given: Any) -> None:
    """Scores of a published benchmark, with intervals for other templates, writers or target terms.

    For bbq a MODEL answers questions: `chat:NAME`, `completions:NAME` or `hf:NAME`. For crows-pairs and stereoset it
    gives likelihoods of sentences: `hf:NAME`, masked or causal, or `completions:NAME`. The data is read from where you
    have it. Models come before options that take several values.
    """
    how = How.taken_from(given)
    if how.resumed is None and (benchmark is None or not models):
        raise click.UsageError("name a benchmark and at least one MODEL: biassay benchmark bbq MODEL --data PLACE")
    if how.resumed is None and given["data"] is None:
        raise click.UsageError(f"say where the data of {benchmark} is: --data FILE, FOLDER or PACKAGE")
    finish(carried_out(partial(measured, benchmark or ""), models, given, how), how)
