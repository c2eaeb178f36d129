"""``biassay resume``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from biassay.cli.options import budget_option, resume_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.associations import run

__all__ = ["command"]


@click.command("resume")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--model", "models", multiple=True, metavar="[NAME=]MODEL", help="A model of the run, given again.")
@click.option("--vectors", type=click.Path(path_type=Path), help="The folder of vectors, where the run had one.")
@budget_option
@resume_options
def command(folder: Path, models: tuple[str, ...], vectors: Path | None, budget: int | None, **given: Any) -> None:
    """Continue an interrupted run of any study.

    What runs code (`python:`, `trust_remote_code=`) or sends texts away (`api:`, `chat:`, `completions:`) is not taken
    from the folder: give such a model again with --model, and a folder of vectors with --vectors.
    """
    how = How.taken_from({**given, "out": None, "resumed": folder})
    finish(carried_out(run, models, {"vectors": vectors, "budget": budget}, how), how)
