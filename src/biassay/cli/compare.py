"""Command `biassay compare`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from biassay.cli.options import settings_options
from biassay.cli.progress import make_listener
from biassay.cli.report import print_files, report_options
from biassay.errors import UsageError
from biassay.io import make_printable, write_atomically
from biassay.reporting.comparison import gate_junit, gate_markdown
from biassay.reporting.terminal import WIDTH, make_console, print_report
from biassay.results.comparison import (
    ALPHA,
    FAIL_IF,
    MARGIN,
    MIN_POWER,
    PowerGap,
    Verdict,
    check_limits,
    list_unmeasured_models,
    summarize_verdicts,
)
from biassay.runs.compare import compare_runs, spend_alpha, take_look
from biassay.runs.reports import get_presenter
from biassay.studies.settings import setting

GATE_FAILED = 3


@dataclass(frozen=True)
class CompareOptions:
    """Options of `biassay compare`."""

    baseline: str | None = setting(None, "Compare the others with this model.  [default: the first]", metavar="MODEL")
    fail_if: str | None = setting(
        None,
        "Exit with 3 if a question is worse (worse), or also if one is inconclusive (inconclusive).",
        choices=FAIL_IF,
    )
    margin: float | None = setting(
        None,
        "Ignore growth towards the stereotype up to this margin, in SDs of cosines between frequent words; for shares "
        f"and scores, as a share of the largest possible effect.  [default: {MARGIN:g}]",
        metavar="SIGMAS",
    )
    alpha: float = setting(ALPHA, "Set the probability that any interval of the comparison misses.", metavar="P")
    min_power: float = setting(
        MIN_POWER,
        "Exit with 3 if no question of a topic detects a growth of twice the margin with this power. Use 0 to skip the "
        "check. Only with --fail-if.",
        metavar="P",
    )
    always_valid: bool = setting(
        False,
        "Limit false alarms over all comparisons with this baseline: look k gets 0.8 alpha / (k (k + 1)). biassay "
        "counts looks in looks.json in the run folder OLD.",
    )
    series: bool = setting(
        False, "Judge the trend over at least three checkpoints in the order given, instead of every model."
    )
    junit: Path | None = setting(None, "Write the verdicts as JUnit XML.", metavar="FILE")
    markdown: Path | None = setting(None, "Write the verdicts as Markdown, for a pull request.", metavar="FILE")
    out: Path | None = setting(None, "Write a report with the comparison and the runs.")
    cache: str | None = setting(None, "Cache directory or URL (s3://BUCKET/DIR).", metavar="PATH")


@click.command("compare")
@click.argument("given", nargs=-1, required=True, metavar="OLD NEW ...")
@settings_options(CompareOptions)
@report_options
def command(
    given: tuple[str, ...],
    baseline: str | None,
    fail_if: str | None,
    margin: float | None,
    alpha: float,
    min_power: float,
    always_valid: bool,
    junit: Path | None,
    markdown: Path | None,
    published: Path | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Check whether NEW is worse than OLD, that is, closer to the stereotype.

    OLD and NEW are run folders or models (`glove`, `hf:NAME`, ...). biassay measures models first, with the tests of
    the other run, those of --tests, or the collection `gate`. More models are all compared with the first,
    or with --series seen as checkpoints of one model in order.
    Runs that differ in protocol or stimuli need --mixed. Exit codes: 0 done, 1 measurement
    failed, 2 usage error, 3 gate failed.
    """
    check_limits(MARGIN if margin is None else margin, alpha, min_power)
    for file in (junit, markdown):
        if file is not None and not file.parent.is_dir():
            raise UsageError(f"{file}: the folder {file.parent} does not exist")
    if always_valid:
        if len(given) != 2 or baseline is not None:
            raise UsageError("--always-valid compares one new model with one baseline: biassay compare BASELINE NEW")
        look = take_look(given[0], given[1], options["tests"])
        alpha = spend_alpha(alpha, look)
        click.echo(f"look {look} at this baseline: alpha {alpha:.3g}", err=True)
    with make_listener(quiet=quiet or as_json) as listener:
        found, made = compare_runs(
            given,
            baseline=baseline,
            published=published,
            margin=margin,
            alpha=alpha,
            listener=listener,
            **options,
        )
    gated = bool(fail_if or junit or markdown)
    failed = found.failed(fail_if or FAIL_IF[0]) if gated else ()
    gaps = found.power_gaps(min_power) if gated else ()
    if junit is not None:
        write_atomically(junit, gate_junit(found.verdicts, failed, gaps).encode())
    if markdown is not None:
        write_atomically(markdown, gate_markdown(found.verdicts, gaps).encode())
    if as_json:
        click.echo(found.to_json(fail_if, min_power), nl=False)
    elif not quiet:
        console = make_console()
        console.width = min(console.width, WIDTH)
        print_report(get_presenter(found.study).comparison_report(found), console, max_lines=None)
        print_files(made, published, console)
    if fail_if and (failed or gaps):
        for line in _reasons(found.verdicts, failed, gaps):
            click.echo(f"the gate fails: {make_printable(line)}", err=True)
        sys.exit(GATE_FAILED)
    if found.missing or list_unmeasured_models(found.verdicts):
        sys.exit(1)


def _reasons(verdicts: Sequence[Verdict], failed: Sequence[Verdict], gaps: Sequence[PowerGap]) -> Iterator[str]:
    if failed:
        models = {verdict.model for verdict in failed}
        yield summarize_verdicts([verdict for verdict in verdicts if verdict.model in models])
    yield from map(str, gaps)
