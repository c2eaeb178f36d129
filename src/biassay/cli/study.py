"""Create the command of a study from its settings."""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.runs import measure_and_print, study_options
from biassay.studies.registry import get_study

__all__ = ["make_command"]

_MODELS_HELP = "A MODEL is a string such as hf:NAME, or LABEL=MODEL. List them with `biassay models`."


def make_command(name: str) -> click.Command:
    """Create the command ``biassay NAME MODEL ...`` of a study."""
    study = get_study(name)

    @study_options(study.schema.settings)
    def command(models: tuple[str, ...], **given: Any) -> None:
        measure_and_print(name, models, given, usage=f"biassay {name} MODEL")

    source = "" if study.package == "biassay" else f" (from the package {study.package})"
    created: click.Command = click.command(name, help=f"{study.title}{source}.\n\n{_MODELS_HELP}")(command)
    return created
