"""``biassay discover``"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from biassay.cli.common import TakesMany, check_new_file
from biassay.cli.listing import print_records
from biassay.cli.options import how_options, settings_options, several_options
from biassay.cli.running import How, carried_out, finish
from biassay.files import write_atomically
from biassay.models.registry import open_encoder
from biassay.runs.discovery import discover
from biassay.runs.run import Run
from biassay.stimuli.catalogue import select_grouping
from biassay.stimuli.export import to_toml
from biassay.stimuli.groups import Grouping
from biassay.studies.discovery.settings import Settings
from biassay.studies.discovery.word_tests import CIRCULAR, add_fingerprint, against_of, check_size, make_tests

__all__ = ["command"]


@click.command("discover", cls=TakesMany, several=several_options(Settings))
@click.argument("models", nargs=-1, metavar="[MODEL ...]")
@settings_options(Settings)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Words shown of each list.")
@click.option(
    "--write-test",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the words found as a test for 'biassay run' and 'biassay ceat'.",
)
@click.option("--against", metavar="NAME", help="The second group of that test.  [default: what the grouping says]")
@click.option("--test-words", type=int, default=12, show_default=True, help="Words a side of that test, at most.")
@click.option(
    "--list",
    "listed",
    type=click.Choice(("groups",)),
    is_flag=False,
    flag_value="groups",
    help="Show the groups that can be named, and stop.",
)
@how_options
def command(
    models: tuple[str, ...],
    top: int,
    write_test: Path | None,
    against: str | None,
    test_words: int,
    listed: str | None,
    **given: Any,
) -> None:
    """Find the words that models associate with people of several groups at once (IBD, EIBD).

    A MODEL is `glove` (the default), `vectors:PATH`, `use`, `hf:NAME`, ...: `biassay models` lists them all. Models
    come before --group, which takes one group or several.
    """
    how, asked = How.taken_from(given), given["group"]
    if listed is not None:
        print_records(_known(select_grouping(given["groups"])), as_json=how.as_json)
        return
    if write_test is not None:
        other = _second_group(models, how, given, against)
        check_size(test_words)
        check_new_file(write_test)
        given["group"] = (*asked, other)
    elif against is not None:
        raise click.UsageError("--against is for --write-test")
    default = () if how.resumed is not None else ("glove",)
    found = carried_out(discover, models or default, given, how)
    finish(found, how, top=top, only=asked or None)
    if write_test is not None:
        _write(found, write_test, test_words, quiet=how.quiet)


def _known(grouping: Grouping) -> list[dict[str, Any]]:
    return [
        {"group": one.name, "label": one.label, **one.belongs, "names": one.names, "rated_words": len(one.biases)}
        for one in grouping.groups
    ]


def _second_group(models: tuple[str, ...], how: How, given: dict[str, Any], against: str | None) -> str:
    """The group whose names and words stand on the other side of the test."""
    if how.resumed is not None:
        raise click.UsageError("--write-test is for a new search, which takes its vectors from the cache")
    if len(given["group"]) != 1 or len(models) > 1:
        raise click.UsageError("--write-test takes one --group and one MODEL")
    return against_of(select_grouping(given["groups"]), given["group"][0], against)


def _write(found: Run, path: Path, size: int, *, quiet: bool) -> None:
    group, other = found.manifest.settings.group
    tests = add_fingerprint(make_tests(found, group, other, size), open_encoder(found.manifest.models[0].text))
    write_atomically(path, to_toml(*tests).encode())
    if not quiet:
        names = ", ".join(test.name for test in tests)
        click.echo(f"written to {path}: {names}. {CIRCULAR}", err=True)
