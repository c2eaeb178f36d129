"""``biassay resume``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import engine_options, listener_for, open_engine
from biassay.cli.running import finish, shown_options, telling_how_to_go_on, vectors_option
from biassay.pipeline.resuming import resume

__all__ = ["command"]


@click.command("resume")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--model", "models", multiple=True, metavar="MODEL", help="A model of the run, given again.")
@vectors_option
@engine_options
@shown_options
def command(
    folder: Path,
    models: tuple[str, ...],
    vectors: Path | None,
    engine: str,
    address: str | None,
    cache: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Go on with an interrupted run of `biassay run` or `biassay ceat`.

    What runs code (`python:`, `trust_remote_code=`) or sends texts away (`api:`) is not taken from the folder: give
    such a model again with --model, and a folder of vectors with --vectors.
    """
    kept = {"cache": cache, "vectors": vectors}
    with telling_how_to_go_on(None, folder, kept), listener_for(quiet=quiet) as listener:
        where = open_engine(engine, address)
        found = resume(folder, models or None, cache=cache, vectors=vectors, engine=where, listener=listener)
    finish(found, folder, quiet=quiet, as_json=as_json)
