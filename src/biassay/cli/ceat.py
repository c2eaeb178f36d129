"""``biassay ceat``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from biassay.cli.common import TestsTakeMany, engine_options, listener_for, open_engine
from biassay.cli.running import finish, refuse_beside_resume, run_options, telling_how_to_go_on, vectors_option
from biassay.pipeline.contextual import run_ceat
from biassay.pipeline.planning import MODES
from biassay.pipeline.resuming import resume

__all__ = ["command"]

_OF_THE_RUN = (
    *("contexts", "tests", "out", "samples", "draw", "window", "dtype", "min_contexts", "max_lost", "alpha"),
    "seed",
)


@click.command("ceat", cls=TestsTakeMany)
@click.argument("models", nargs=-1, metavar="MODEL ...")
@click.option("--contexts", type=click.Path(path_type=Path), help="A file made by `biassay contexts`.")
@click.option(
    "--tests",
    multiple=True,
    metavar="PATTERN ...",
    help="Names, patterns, collections or files; by default those the contexts were collected for.",
)
@click.option("--samples", type=int, default=10_000, show_default=True, help="Samples of one context per word (N).")
@click.option(
    "--draw",
    type=click.Choice(MODES),
    default="random",
    show_default=True,
    help="Every model its own contexts, or the same for all.",
)
@click.option("--window", type=int, help="Words kept around the stimulus (9 in the paper's code).  [default: sentence]")
@click.option(
    "--dtype",
    type=click.Choice(("float16", "float32")),
    default="float16",
    show_default=True,
    help="In which vectors are stored.",
)
@click.option(
    "--min-contexts", type=int, default=5, show_default=True, help="A word with fewer contexts counts as lost."
)
@click.option(
    "--max-lost",
    type=float,
    default=0.2,
    show_default=True,
    help="Largest share of a concept's words that may be lost.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draws.")
@vectors_option
@engine_options
@run_options
def command(
    models: tuple[str, ...],
    contexts: Path | None,
    tests: tuple[str, ...],
    samples: int,
    draw: str,
    window: int | None,
    dtype: str,
    min_contexts: int,
    max_lost: float,
    alpha: float,
    seed: int,
    out: Path | None,
    resumed: Path | None,
    cache: Path | None,
    vectors: Path | None,
    engine: str,
    address: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run association tests over the contexts in which words occur (CEAT).

    A MODEL is `hf:NAME` or `elmo:DIR`: a model that gives a word a vector in its context. Models come before --tests.
    """
    if resumed is not None:
        refuse_beside_resume(_OF_THE_RUN)
    if resumed is None and (not models or contexts is None):
        raise click.UsageError("name at least one MODEL and the contexts: biassay ceat hf:NAME --contexts FILE")
    kept = {"cache": cache, "vectors": vectors}
    where: dict[str, Any] = {**kept, "engine": open_engine(engine, address)}
    with telling_how_to_go_on(out, resumed, kept), listener_for(quiet=quiet) as listener:
        if resumed is not None:
            found = resume(resumed, models or None, listener=listener, **where)
        else:
            assert contexts is not None
            found = run_ceat(
                models,
                contexts,
                tests,
                n_samples=samples,
                mode=draw,
                window=window,
                dtype=dtype,
                min_contexts=min_contexts,
                alpha=alpha,
                max_lost=max_lost,
                seed=seed,
                out=out,
                listener=listener,
                **where,
            )
    finish(found, resumed or out, quiet=quiet, as_json=as_json)
