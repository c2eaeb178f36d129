"""``biassay discover``"""

from __future__ import annotations

from pathlib import Path

import click

from biassay.cli.common import check_new_file, console_for_tables, listener_for
from biassay.files import write_atomically
from biassay.pipeline.discovery import GROUPS, MAX_LOST, PERMUTATIONS, discover
from biassay.pipeline.found_tests import CIRCULAR, against_of, check_size, found_tests
from biassay.report.html import REPORT
from biassay.results.discovery import Discovery
from biassay.stats.detection import COMPARES, RULES, Compare, Rule
from biassay.stimuli.catalogue import select_grouping
from biassay.stimuli.export import to_toml
from biassay.studies.discovery.terminal import print_discovery

__all__ = ["command"]


@click.command("discover")
@click.argument("model", default="glove", metavar="[MODEL]")
@click.option("--group", "group", multiple=True, metavar="NAME", help="A group to look at; may be given several times.")
@click.option(
    "--groups",
    default=GROUPS,
    show_default=True,
    metavar="NAME|FILE",
    help="The groups it is compared with: a grouping of the catalogue, or your own file.",
)
@click.option(
    "--words",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Words to search, one a line, instead of the whole vocabulary.",
)
@click.option("--threshold", type=float, help="Scores above it count.  [default: what fits the rated words best]")
@click.option(
    "--rule",
    type=click.Choice(RULES),
    default="any",
    show_default=True,
    help="A word is not emergent if any, or only if all, of the group's categories are above the threshold.",
)
@click.option(
    "--compare",
    type=click.Choice(COMPARES),
    default="any",
    show_default=True,
    help="A word is associated if it is above the threshold against any other group (IBD), or against every one.",
)
@click.option(
    "--positive-only/--either-sign",
    default=True,
    show_default=True,
    help="Whether the threshold that fits best must be positive.",
)
@click.option(
    "--permutations",
    type=int,
    default=PERMUTATIONS,
    show_default=True,
    help="Of names between groups, at most; words that chance explains easily are left earlier.",
)
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Share of false findings accepted among the words."
)
@click.option(
    "--max-lost",
    type=float,
    default=MAX_LOST,
    show_default=True,
    help="Largest share of a group's names the model may not know.",
)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Words shown of each list.")
@click.option("--keep", type=int, default=1000, show_default=True, help="Words kept of each list in the results.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the permutations.")
@click.option(
    "--write-test",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the words found as a test for 'biassay run' and 'biassay ceat'.",
)
@click.option("--against", metavar="NAME", help="The second group of that test.  [default: what the grouping says]")
@click.option("--test-words", type=int, default=12, show_default=True, help="Words a side of that test, at most.")
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for the findings.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Where vectors are kept.  [default: $BIASSAY_CACHE or the user's cache]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON instead of tables.")
def command(
    model: str,
    group: tuple[str, ...],
    groups: str,
    words: Path | None,
    threshold: float | None,
    rule: Rule,
    compare: Compare,
    positive_only: bool,
    permutations: int,
    alpha: float,
    max_lost: float,
    top: int,
    keep: int,
    seed: int,
    write_test: Path | None,
    against: str | None,
    test_words: int,
    out: Path | None,
    cache: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the words that a model ties to people of several groups at once (IBD, EIBD).

    A MODEL is `glove` (the default), `vectors:PATH`, `use`, `hf:NAME`, ...: `biassay models` lists them all.
    """
    other = None
    if write_test is not None:
        if len(group) != 1:
            raise click.UsageError("--write-test takes one --group")
        check_size(test_words)
        other = against_of(select_grouping(groups), group[0], against)
        check_new_file(write_test)
    elif against is not None:
        raise click.UsageError("--against is for --write-test")
    with listener_for(quiet=quiet) as listener:
        found = discover(
            model,
            group if other is None else (*group, other),
            groups=groups,
            words=words,
            threshold=threshold,
            rule=rule,
            compare=compare,
            positive_only=positive_only,
            permutations=permutations,
            alpha=alpha,
            max_lost=max_lost,
            keep=keep,
            seed=seed,
            out=out,
            cache=cache,
            listener=listener,
        )
    _show(found, out, group, top=top, quiet=quiet, as_json=as_json)
    if write_test is not None and other is not None:
        tests = found_tests(found, group[0], other, test_words)
        write_atomically(write_test, to_toml(*tests).encode())
        if not quiet:
            names = ", ".join(test.name for test in tests)
            click.echo(f"written to {write_test}: {names}. {CIRCULAR}", err=True)


def _show(found: Discovery, out: Path | None, group: tuple[str, ...], *, top: int, quiet: bool, as_json: bool) -> None:
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_discovery(found, console, top=top, only=group)
        if out is not None:
            console.print(f"written to {out}; open {out / REPORT}", markup=False, highlight=False, soft_wrap=True)
