"""``biassay import``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import listener_for
from biassay.cli.running import How, finish
from biassay.runs.importing import import_logs

__all__ = ["command"]


@click.command("import")
@click.argument("logs", nargs=-1, required=True, metavar="LOG ...", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of significance.")
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for the run.")
@click.option("--all", "everything", is_flag=True, help="Print all rows, and further columns.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of tables.")
def command(
    logs: tuple[Path, ...], alpha: float, out: Path | None, everything: bool, quiet: bool, as_json: bool
) -> None:
    """Scores of BBQ, CrowS-Pairs or StereoSet from answers that another tool logged.

    A LOG is a sample log of lm-evaluation-harness (samples_TASK_DATE.jsonl, made with --log_samples) or a log of
    Inspect (.eval or .json). Neither needs to be installed. Answers as the authors of BBQ released them
    (preds_CATEGORY.jsonl) are read too.
    """
    how = How(out, None, None, "local", None, None, everything, quiet, as_json)
    with listener_for(quiet=quiet) as listener:
        found = import_logs(logs, alpha=alpha, out=out, listener=listener)
    finish(found, how)
