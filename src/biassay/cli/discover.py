"""Command `biassay discover`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from biassay.cli.listings import print_records
from biassay.cli.options import CliRunOptions, SectionedCommand, add_validated_options, check_new_file
from biassay.cli.studies import finish_run, run_or_resume, study_options
from biassay.datasets.catalogue import select_grouping
from biassay.datasets.groups import Grouping
from biassay.datasets.stimulus_files import to_toml
from biassay.io import write_atomically
from biassay.models.registry import open_encoder
from biassay.runs.run import Run
from biassay.studies.discovery.settings import DiscoverySettings
from biassay.studies.discovery.word_tests import (
    CIRCULAR,
    add_fingerprint,
    check_size,
    choose_opposing_group,
    make_tests,
)
from biassay.studies.settings import setting


@dataclass(frozen=True)
class DiscoverOptions:
    """Options of `biassay discover` that are not settings of the study."""

    top: int = setting(10, "Print this many words per list.", low=1)
    write_test: Path | None = setting(None, "Write the words as a test for 'biassay run'.", metavar="FILE")
    against: str | None = setting(
        None, "Oppose this group in the test.  [default: the opposite in the grouping]", metavar="NAME"
    )
    test_words: int = setting(12, "Use at most this many words per side.")


@click.command("discover", cls=SectionedCommand)
@study_options(DiscoverySettings, models="[MODEL ...]")
@add_validated_options(DiscoverOptions)
@click.option(
    "--list",
    "listed",
    type=click.Choice(("groups",)),
    is_flag=False,
    flag_value="groups",
    help="List the groups of the grouping and exit.",
)
def command(
    models: tuple[str, ...],
    top: int,
    write_test: Path | None,
    against: str | None,
    test_words: int,
    listed: str | None,
    **given: Any,
) -> None:
    """Find the words that models associate with intersectional groups (IBD, EIBD).

    A MODEL is `glove` (the default), `vectors:PATH`, `use`, `hf:NAME`, ...: `biassay models` lists them all.
    """
    options, groups = CliRunOptions.pop_from(given), given["groups"]
    if listed is not None:
        print_records(_describe_groups(select_grouping(given["grouping"])), as_json=options.as_json)
        return
    if write_test is not None:
        opposing = _choose_opposing_group(models, options, given, against)
        check_size(test_words)
        check_new_file(write_test)
        given["groups"] = (*groups, opposing)
    elif against is not None:
        raise click.UsageError("--against requires --write-test")
    default = () if options.resumed is not None else ("glove",)
    run = run_or_resume("discovery", models or default, given, options)
    finish_run(run, options, top=top, only=groups or None, max_lines=None)
    if write_test is not None:
        _write_test(run, write_test, test_words, quiet=options.quiet)


def _describe_groups(grouping: Grouping) -> list[dict[str, Any]]:
    return [
        {
            "group": group.name,
            "label": group.label,
            **group.belongs,
            "names": group.names,
            "rated_words": len(group.biases),
        }
        for group in grouping.groups
    ]


def _choose_opposing_group(
    models: tuple[str, ...], options: CliRunOptions, given: dict[str, Any], against: str | None
) -> str:
    """Return the group on the other side of the test."""
    if options.resumed is not None:
        raise click.UsageError("--write-test requires a new search; leave out --resume")
    if len(given["groups"]) != 1 or len(models) > 1:
        raise click.UsageError("--write-test requires one group and one MODEL")
    return choose_opposing_group(select_grouping(given["grouping"]), given["groups"][0], against)


def _write_test(run: Run, path: Path, size: int, *, quiet: bool) -> None:
    group, opposing = run.manifest.settings.groups
    tests = add_fingerprint(make_tests(run, group, opposing, size), open_encoder(run.manifest.models[0].text))
    write_atomically(path, to_toml(*tests).encode())
    if not quiet:
        names = ", ".join(test.name for test in tests)
        click.echo(f"written to {path}: {names}. {CIRCULAR}", err=True)
