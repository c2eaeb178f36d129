"""Command `biassay contexts`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from biassay.cli.listings import make_table, print_json, print_table
from biassay.cli.options import (
    CliRunOptions,
    SectionedCommand,
    add_validated_options,
    json_option,
    open_engine,
    quiet_option,
    settings_options,
)
from biassay.cli.progress import make_listener
from biassay.corpus.contexts import AbcCoverage, TestCoverage, abc_coverage, abc_words, coverage
from biassay.corpus.files import FORMATS
from biassay.datasets.abc_model import load_abc
from biassay.errors import format_examples
from biassay.reporting.terminal import make_console
from biassay.runs.contexts import DEFAULT_TESTS, Scan, find_contexts
from biassay.studies.settings import list_setting, setting


def make_coverage_table(covered: AbcCoverage) -> Table:
    """Make a table with one row for the groups and one for the pairs of traits."""
    table = make_table("", "measurable", "contexts: min, median, max", "too few")
    groups, adjectives = dict(covered.groups), covered.adjectives
    scarce = format_examples([f"{name} {groups[name]}" for name in covered.few_groups])
    rows = (
        ("groups", len(covered.measurable_groups), len(groups), groups, scarce),
        ("pairs of traits", len(covered.measurable_pairs), len(covered.pairs), adjectives, _list_scarce_pairs(covered)),
    )
    for name, able, total, counts, lacking in rows:
        table.add_row(name, f"{able} of {total}", _format_range(list(counts.values()), covered.least), escape(lacking))
    return table


def _list_scarce_pairs(covered: AbcCoverage) -> str:
    """List the pairs that cannot be measured with their scarce adjectives, then those of the other pairs."""
    parts, rest = [], []
    for pair in covered.pairs:
        few = [f"{word} {count}" for word, count in (*pair.left, *pair.right) if count < covered.least]
        if pair.measurable:
            rest += few
        else:
            parts.append(f"{pair.pair}: {', '.join(few)}")
    return "; ".join([*parts, *([", ".join(rest)] if rest else [])])


def _format_range(counts: Sequence[int], least: int) -> str:
    enough = [count for count in counts if count >= least]
    return f"{min(enough):,} / {median(enough):,.0f} / {max(enough):,}" if enough else ""


def coverage_to_json(covered: AbcCoverage) -> dict[str, Any]:
    """Return the numbers of contexts of groups and pairs, and which can be measured."""
    measurable = set(covered.measurable_groups)
    return {
        "groups": [
            {"group": name, "measurable": name in measurable, "contexts": count} for name, count in covered.groups
        ],
        "pairs": [
            {
                "pair": pair.pair,
                "measurable": pair.measurable,
                "contexts": {"left": dict(pair.left), "right": dict(pair.right)},
            }
            for pair in covered.pairs
        ],
    }


@dataclass(frozen=True)
class ContextsOptions:
    """Options of `biassay contexts`."""

    tests: tuple[str, ...] = list_setting(
        "Search for the words of these tests.  [default: C1-C10, I1-I4; none with --abc]", metavar="PATTERN[,...]"
    )
    with_abc: bool = setting(
        False, "Search for groups and traits, as `biassay stereotypes --measures ceat` needs them.", option="--abc"
    )
    files: tuple[Path, ...] = list_setting(
        "Add groups and traits from your own file. May be repeated. Only with --abc.", metavar="FILE", split=False
    )
    all_adjectives: bool = setting(False, "Search for all adjectives of a trait, not only the first. Only with --abc.")
    per_stimulus: int = setting(1000, "Keep at most this many contexts per word.", low=1, option="-k --per-stimulus")
    seed: int = setting(0, "Random seed.", low=0)
    field: str | None = setting(
        None, "Read the text from this field or column.  [default: body, text, content or sentence]", section="corpus"
    )
    format: str | None = setting(
        None, "Set the file format.  [default: from the file name]", choices=FORMATS, section="corpus"
    )
    document: str = setting(
        "line",
        "Split plain text into documents by line or by paragraph.",
        choices=("line", "paragraph"),
        section="corpus",
    )
    html: bool = setting(False, "Remove tags and resolve entities.", section="corpus")
    language: str = setting("en", "Split sentences by the rules of this language.", section="corpus")
    openings: bool = setting(False, "Also match a capitalized word at the start of a sentence.", section="corpus")
    ignore_case: bool = setting(False, "Match words in any case, for a corpus in lower case.", section="corpus")
    max_bad: float = setting(
        0.1, "Stop if more than this share of documents is unreadable.", low=0.0, high=1.0, section="corpus"
    )
    min_contexts: int = setting(5, "Count words with fewer contexts as missing in the table.", low=1)
    workers: int | None = setting(None, "Use this many processes.  [default: one per core]", low=1, section="execution")


@click.command("contexts", cls=SectionedCommand)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS ...")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Write the contexts to this Parquet file.")
@add_validated_options(ContextsOptions)
@settings_options(CliRunOptions, ("engine", "address"))
@quiet_option
@json_option
def command(
    corpus: tuple[str, ...],
    out: Path,
    tests: tuple[str, ...],
    with_abc: bool,
    files: tuple[Path, ...],
    all_adjectives: bool,
    min_contexts: int,
    engine: str,
    address: str | None,
    quiet: bool,
    as_json: bool,
    **scan_options: Any,
) -> None:
    """Find the contexts of test words in a corpus and draw a random sample of them.

    A CORPUS is a file, a folder or a pattern: plain text, JSON lines, CSV or Parquet, also compressed (.gz, .bz2,
    .zst). biassay matches whole words in the given case. Repeat the command to continue an interrupted scan.
    """
    for value, option in ((files, "--files"), (all_adjectives, "--all-adjectives")):
        if value and not with_abc:
            raise click.UsageError(f"{option} requires --abc")
    abc = load_abc(files) if with_abc else None
    with make_listener(quiet=quiet) as listener:
        scan = find_contexts(
            corpus,
            out,
            tests or (DEFAULT_TESTS if abc is None else ()),
            words=() if abc is None else abc_words(abc, all_adjectives=all_adjectives),
            engine=open_engine(engine, address),
            listener=listener,
            **scan_options,
        )
    count = scan.contexts.count
    covered = coverage(count, scan.tests, min_contexts)
    covered_abc = (
        None if abc is None else abc_coverage(count, abc.groups, abc.pairs, min_contexts, all_adjectives=all_adjectives)
    )
    if as_json:
        content = _scan_to_json(scan, covered) | ({} if covered_abc is None else coverage_to_json(covered_abc))
        print_json(content)
    elif not quiet:
        options = "".join(f" --files {file}" for file in files) + (" --all-adjectives" if all_adjectives else "")
        commands = [f"biassay run hf:NAME --contexts {out}"] if covered else []
        commands += [f"biassay stereotypes hf:NAME --measures ceat --contexts {out}{options}"] if abc else []
        tables = [_make_table(covered, min_contexts)] if covered else []
        tables += [make_coverage_table(covered_abc)] if covered_abc is not None else []
        _print_scan(scan, tables, f"written to {out}; next: {' or '.join(commands)}")
    for name, reason in scan.progress.damaged.items():
        click.echo(f"error: {name}: {reason}; biassay used what it could read", err=True)
    if scan.progress.damaged:
        sys.exit(1)


def _make_table(covered: tuple[TestCoverage, ...], least: int) -> Table:
    table = make_table("test", "measurable", "words with contexts", "contexts per word: min, median, max", "too few")
    for test in covered:
        counts = [count for concept in test.concepts for _, count in concept.counts]
        enough = [count for count in counts if count >= least]
        scarce = [f"{word} {count}" for concept in test.concepts for word, count in concept.counts if count < least]
        lacking = ", ".join(c.label for c in test.concepts if c.lack(test.max_unknown) is not None)
        measurable = f"[yellow]no: {escape(lacking)}[/yellow]" if lacking else "yes"
        table.add_row(
            escape(test.test),
            measurable,
            f"{len(enough)} of {len(counts)}",
            _format_range(counts, least),
            escape(format_examples(scarce)),
        )
    return table


def _print_scan(scan: Scan, tables: Sequence[Table], last: str) -> None:
    console = make_console()
    for table in tables:
        print_table(table)
        console.print()
    tally = scan.progress
    lines = [f"{len(scan.contexts):,} contexts from {tally.documents:,} documents, {tally.bytes / 1e6:,.1f} MB"]
    if tally.bad or tally.undecodable:
        lines.append(f"{tally.bad + tally.undecodable:,} unreadable documents: {'; '.join(tally.examples)}")
    lines.append(last)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _scan_to_json(scan: Scan, covered: tuple[TestCoverage, ...]) -> dict[str, object]:
    tally = scan.progress
    return {
        "contexts": len(scan.contexts),
        "documents": tally.documents,
        "bytes": tally.bytes,
        "bad": tally.bad,
        "undecodable": tally.undecodable,
        "examples": tally.examples,
        "damaged": tally.damaged,
        "tests": [
            {
                "test": test.test,
                "measurable": test.measurable,
                "contexts": {concept.role: dict(concept.counts) for concept in test.concepts},
            }
            for test in covered
        ],
        "found": scan.contexts.metadata["found"],
    }
