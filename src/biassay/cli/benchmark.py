"""Command `biassay benchmark`."""

from __future__ import annotations

from typing import Any

import click

from biassay.cli.runs import measure_and_print, study_options
from biassay.studies.benchmarks.settings import BENCHMARKS, BenchmarkSettings

__all__ = ["command"]


@click.command("benchmark")
@click.argument("benchmark", type=click.Choice(BENCHMARKS), required=False)
@study_options(BenchmarkSettings, budget=True)
def command(benchmark: str | None, models: tuple[str, ...], **given: Any) -> None:
    """Score models on a published benchmark, with intervals over templates, writers or target terms.

    For bbq, a MODEL answers questions: `chat:NAME`, `completions:NAME` or `hf:NAME`. For crows-pairs and stereoset, it
    provides likelihoods of sentences: `hf:NAME`, masked or causal, or `completions:NAME`. biassay does not download
    the data.
    """
    usage = "biassay benchmark bbq MODEL --data PATH"
    if given["resumed"] is None and benchmark is None:
        raise click.UsageError(f"no benchmark given; write {usage}")
    if given["resumed"] is None and models and given["data"] is None:
        raise click.UsageError(f"no data given for {benchmark}; add --data FILE, FOLDER or PACKAGE")
    measure_and_print("benchmarks", models, {"benchmark": benchmark, **given}, usage=usage)
