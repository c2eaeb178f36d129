"""``biassay run``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import TestsTakeMany, listener_for
from biassay.cli.running import finish, refuse_beside_resume, run_options, telling_how_to_go_on
from biassay.pipeline.associations import run
from biassay.pipeline.resuming import resume
from biassay.stats.permutation import PROTOCOLS

__all__ = ["command"]

_OF_THE_RUN = ("tests", "out", "protocol", "two_sided", "max_lost", "alpha", "seed")


@click.command("run", cls=TestsTakeMany)
@click.argument("models", nargs=-1, metavar="[MODEL ...]")
@click.option(
    "--tests",
    multiple=True,
    metavar="PATTERN ...",
    help="Names, patterns (sent-*), topics (gender), collections (may2019) or files; the main collections by default.",
)
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS), default="exact", show_default=True, help="How p-values are found."
)
@click.option("--two-sided", is_flag=True, help="Count associations in either direction.")
@click.option(
    "--max-lost", type=float, default=0.2, show_default=True, help="Largest share of a concept a model may not know."
)
@click.option("--seed", type=int, default=0, show_default=True, help="For the protocols that draw.")
@run_options
def command(
    models: tuple[str, ...],
    tests: tuple[str, ...],
    protocol: str,
    two_sided: bool,
    alpha: float,
    max_lost: float,
    seed: int,
    out: Path | None,
    resumed: Path | None,
    cache: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run association tests on models.

    A MODEL is `use` (the default), `glove`, `vectors:PATH`, `hf:NAME`, ...: `biassay models` lists them all. Models
    come before --tests.
    """
    if resumed is not None:
        refuse_beside_resume(_OF_THE_RUN)
    with telling_how_to_go_on(out, resumed, {"cache": cache}), listener_for(quiet=quiet) as listener:
        if resumed is not None:
            found = resume(resumed, models or None, cache=cache, listener=listener)
        else:
            found = run(
                models or ("use",),
                tests,
                protocol=protocol,
                alternative="two-sided" if two_sided else "greater",
                alpha=alpha,
                max_lost=max_lost,
                seed=seed,
                out=out,
                cache=cache,
                listener=listener,
            )
    finish(found, resumed or out, quiet=quiet, as_json=as_json)
