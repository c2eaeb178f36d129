"""``biassay ceat``"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from biassay.cli.common import TestsTakeMany, engine_options, listener_for, open_engine
from biassay.cli.run import show
from biassay.errors import BiassayError
from biassay.pipeline.contextual import resume_ceat, run_ceat
from biassay.pipeline.planning import MODES
from biassay.results.run import MANIFEST, Run

__all__ = ["command"]


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
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Level of significance.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draws.")
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for the run.")
@click.option(
    "--resume", "resumed", type=click.Path(path_type=Path), metavar="RUN", help="Go on with an interrupted run."
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Where vectors are kept.  [default: $BIASSAY_CACHE or the user's cache]",
)
@click.option(
    "--vectors", type=click.Path(path_type=Path), help="A folder for the vectors of this run instead of the cache."
)
@engine_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
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
    context = click.get_current_context()
    settings = ("models", "contexts", "tests", "out", "samples", "draw", "window", "dtype", "min_contexts", "max_lost")
    given = [n for n in (*settings, "alpha", "seed") if context.get_parameter_source(n) is ParameterSource.COMMANDLINE]
    if resumed is not None and given:
        names = ("MODEL" if name == "models" else f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--resume takes everything from the run; leave out {', '.join(names)}")
    if resumed is None and (not models or contexts is None):
        raise click.UsageError("name at least one MODEL and the contexts: biassay ceat hf:NAME --contexts FILE")
    where: dict[str, Any] = {"cache": cache, "vectors": vectors, "engine": open_engine(engine, address)}
    try:
        with listener_for(quiet=quiet) as listener:
            if resumed is not None:
                found = resume_ceat(resumed, listener=listener, **where)
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
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        folder = resumed or out
        if folder is not None and _is_unfinished(folder):
            kept = "".join(f" --{name} {path}" for name, path in (("cache", cache), ("vectors", vectors)) if path)
            error.add_note(f"go on with: biassay ceat --resume {folder}{kept}")
        raise
    show(found, resumed or out, quiet=quiet, as_json=as_json)
    if not any(r.status == "measured" for r in found.results) or any(r.status == "failed" for r in found.results):
        sys.exit(1)


def _is_unfinished(folder: Path) -> bool:
    if not (folder / MANIFEST).exists():
        return False
    manifest = Run.load(folder).manifest
    return manifest.status == "running" and manifest.contexts is not None
