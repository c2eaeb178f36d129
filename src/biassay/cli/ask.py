"""Command `biassay ask`."""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.runs import measure_and_print, study_options
from biassay.studies.word_association.settings import WordAssociationSettings

__all__ = ["command"]


@click.command("ask")
@study_options(WordAssociationSettings, budget=True)
def command(models: tuple[str, ...], **given: Any) -> None:
    """Ask chat or instruct models which of two group words they associate with each word (word association tests).

    A MODEL responds to prompts: `chat:NAME` or `completions:NAME` behind an endpoint, or `hf:NAME`.

    Without --tests, biassay runs the published tests that can be significant. Tests with too few pairs of group words
    are descriptive: name them, or use --tests all, to run them too.
    """
    measure_and_print("word_association", models, given, usage="biassay ask chat:NAME")
