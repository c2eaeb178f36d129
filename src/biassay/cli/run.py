"""Command `biassay run`."""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.runs import measure_and_print, study_options
from biassay.errors import MissingExtraError
from biassay.studies.associations.settings import AssociationSettings

__all__ = ["command"]


@click.command("run")
@study_options(AssociationSettings, models="[MODEL ...]")
def command(models: tuple[str, ...], **given: Any) -> None:
    """Run association tests on models (WEAT, SEAT); with --contexts, on words in the contexts of a corpus (CEAT).

    A MODEL is `use` (the default), `glove`, `vectors:PATH`, `hf:NAME`, ..., or LABEL=MODEL. List them with
    `biassay models`.
    """
    try:
        measure_and_print("associations", models, given, default=("use",))
    except MissingExtraError as error:
        if not models:
            error.add_note("to measure the vectors that come with biassay instead: biassay run glove")
        raise
