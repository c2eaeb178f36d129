"""Command `biassay import`."""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import make_listener
from biassay.cli.options import json_option, quiet_option
from biassay.cli.runs import CliRunOptions, finish_run
from biassay.runs.log_import import import_logs

__all__ = ["command"]


@click.command("import")
@click.argument("logs", nargs=-1, required=True, metavar="LOG ...", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Set the significance level.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the run to this new folder.")
@click.option("--all", "everything", is_flag=True, help="Print all rows and columns.")
@quiet_option
@json_option
def command(
    logs: tuple[Path, ...], alpha: float, out: Path | None, everything: bool, quiet: bool, as_json: bool
) -> None:
    """Score BBQ, CrowS-Pairs or StereoSet from responses that another tool logged.

    A LOG is a sample log of lm-evaluation-harness (samples_TASK_DATE.jsonl, made with --log_samples), a log of Inspect
    (.eval or .json), or a file of responses that the authors of BBQ released (preds_CATEGORY.jsonl). Neither tool needs
    to be installed.
    """
    with make_listener(quiet=quiet) as listener:
        run = import_logs(logs, alpha=alpha, out=out, listener=listener)
    finish_run(run, CliRunOptions(out=out, everything=everything, quiet=quiet, as_json=as_json))
