"""``biassay run``"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from biassay.cli.common import TestsTakeMany, console_for_tables, listener_for
from biassay.errors import BiassayError
from biassay.pipeline import associations
from biassay.report.html import REPORT
from biassay.report.terminal import print_run
from biassay.results.run import MANIFEST, Run
from biassay.stats.permutation import PROTOCOLS

__all__ = ["command", "show"]


@click.command("run", cls=TestsTakeMany)
@click.argument("models", nargs=-1, metavar="[MODEL ...]")
@click.option(
    "--tests",
    multiple=True,
    metavar="PATTERN ...",
    help="Names, patterns (sent-*), collections (may2019) or files; the main collections by default.",
)
@click.option(
    "--protocol", type=click.Choice(PROTOCOLS), default="exact", show_default=True, help="How p-values are found."
)
@click.option("--two-sided", is_flag=True, help="Count associations in either direction.")
@click.option("--alpha", type=float, default=0.01, show_default=True, help="Level of significance.")
@click.option(
    "--max-lost", type=float, default=0.2, show_default=True, help="Largest share of a concept a model may not know."
)
@click.option("--seed", type=int, default=0, show_default=True, help="For the protocols that draw.")
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for the run.")
@click.option(
    "--resume", "resumed", type=click.Path(path_type=Path), metavar="RUN", help="Go on with an interrupted run."
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Where vectors are kept.  [default: $BIASSAY_CACHE or the user's cache]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
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
    listener = listener_for(quiet=quiet)
    if resumed is not None and (models or tests or out):
        raise click.UsageError("--resume takes its models, tests and folder from the run; name none of them")
    try:
        with listener:
            if resumed is not None:
                found = associations.resume(resumed, cache=cache, listener=listener)
            else:
                found = associations.run(
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
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        folder = resumed or out
        if folder is not None and (folder / MANIFEST).exists() and Run.load(folder).manifest.status == "running":
            kept = f" --cache {cache}" if cache is not None else ""
            error.add_note(f"go on with: biassay run --resume {folder}{kept}")
        raise
    show(found, resumed or out, quiet=quiet, as_json=as_json)
    measured = [r for r in found.results if r.status == "measured"]
    if not measured or any(r.status == "failed" for r in found.results):
        sys.exit(1)


def show(found: Run, folder: Path | None, *, quiet: bool, as_json: bool) -> None:
    """Print a run as a table and in words, or as JSON."""
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_run(found, console)
        if folder is not None:
            console.print(f"written to {folder}; open {folder / REPORT}", markup=False, highlight=False, soft_wrap=True)
