"""The command of a study without a module of its own here: its options are the settings of the study."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from biassay.cli.common import TakesMany
from biassay.cli.options import how_options, settings_options, several_options
from biassay.cli.running import How, carried_out, finish
from biassay.runs.functions import measure
from biassay.runs.run import Run
from biassay.studies.registry import study_named

__all__ = ["command_of"]

_MODELS = (
    "A MODEL is a string such as hf:NAME: `biassay models` lists them all. A name of your own may stand in front: "
    "NAME=MODEL. Models come before options that take several values."
)


def command_of(name: str) -> click.Command:
    """``biassay NAME MODEL ...``"""
    study = study_named(name)

    @settings_options(study.types.settings)
    @how_options
    def command(models: tuple[str, ...], **given: Any) -> None:
        how = How.taken_from(given)
        if not models and how.resumed is None:
            raise click.UsageError(f"name at least one MODEL: biassay {name} MODEL")
        finish(carried_out(partial(_measured, name), models, given, how), how)

    models = click.argument("models", nargs=-1, metavar="MODEL ...")
    text = f"{study.title} (from the package {study.package}).\n\n{_MODELS}"
    several = several_options(study.types.settings)
    made: click.Command = click.command(name, TakesMany, help=text, several=several)(models(command))
    return made


def _measured(name: str, models: tuple[str, ...], **given: Any) -> Run:
    how = {key: given.pop(key) for key in ("out", "cache", "engine", "listener")}
    return measure(name, models, given, vectors=given.get("vectors"), **how)
