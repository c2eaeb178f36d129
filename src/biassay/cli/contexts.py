"""``biassay contexts``"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import click
from rich.markup import escape
from rich.table import Table

from biassay.cli.common import TakesMany, console_for_tables, engine_options, listener_for, open_engine
from biassay.cli.group_coverage import coverage_as_json, coverage_table
from biassay.runs.corpus import DEFAULT_TESTS, Scan, find_contexts
from biassay.stimuli.abc import Abc, load_abc
from biassay.texts.contexts import TestCoverage, coverage
from biassay.texts.corpus import FORMATS
from biassay.texts.group_coverage import abc_coverage, abc_words

__all__ = ["command"]


@click.command("contexts", cls=TakesMany)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS ...")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The Parquet file to write.")
@click.option(
    "--tests",
    multiple=True,
    metavar="PATTERN ...",
    help="Tests whose stimuli are looked for.  [default: C1-C10, I1-I4; none with --abc]",
)
@click.option("--abc", "with_abc", is_flag=True, help="Look for groups and traits, for `stereotypes --measure ceat`.")
@click.option(
    "--with",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="For --abc: a file of your own groups and traits.",
)
@click.option("--all-adjectives", is_flag=True, help="For --abc: all adjectives of a trait, not its first only.")
@click.option(
    "-k",
    "--per-stimulus",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Most contexts per word.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the sample.")
@click.option("--field", help="Field or column that holds the text.  [default: body, text, content or sentence]")
@click.option("--format", type=click.Choice(FORMATS), help="Format of the files, where their names do not show it.")
@click.option(
    "--document",
    type=click.Choice(("line", "paragraph")),
    default="line",
    show_default=True,
    help="What a document is in plain text.",
)
@click.option("--html", is_flag=True, help="Take tags out and resolve entities.")
@click.option("--language", default="en", show_default=True, help="For cutting documents into sentences.")
@click.option("--openings", is_flag=True, help="Also take a word with a capital where it opens a sentence.")
@click.option("--ignore-case", is_flag=True, help="For a corpus in lower case: match words in any case.")
@click.option(
    "--max-bad",
    type=click.FloatRange(0.0, 1.0),
    default=0.1,
    show_default=True,
    help="Largest share of documents that may be unreadable.",
)
@click.option(
    "--min-contexts",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="For the table: contexts a word needs to count.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: one for every core]")
@engine_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the coverage as JSON.")
def command(
    corpus: tuple[str, ...],
    out: Path,
    tests: tuple[str, ...],
    with_abc: bool,
    files: tuple[Path, ...],
    all_adjectives: bool,
    per_stimulus: int,
    seed: int,
    field: str | None,
    format: str | None,
    document: str,
    html: bool,
    language: str,
    ignore_case: bool,
    openings: bool,
    max_bad: float,
    min_contexts: int,
    workers: int | None,
    engine: str,
    address: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Find the contexts of stimuli in a corpus, and keep a sample of them.

    A CORPUS is a file, a folder or a pattern: plain text, JSON lines, CSV or Parquet, each also as .gz, .bz2 or .zst. A
    word is found as a whole word, in the case in which it is written. Give the same command again to continue
    an interrupted scan.
    """
    abc = _abc(files, with_abc=with_abc, all_adjectives=all_adjectives)
    with listener_for(quiet=quiet) as listener:
        found = find_contexts(
            corpus,
            out,
            tests or (DEFAULT_TESTS if abc is None else ()),
            words=() if abc is None else abc_words(abc, all_adjectives=all_adjectives),
            per_stimulus=per_stimulus,
            seed=seed,
            field=field,
            format=format,
            document=document,
            html=html,
            language=language,
            ignore_case=ignore_case,
            openings=openings,
            max_bad=max_bad,
            workers=workers,
            engine=open_engine(engine, address),
            listener=listener,
        )
    count = found.contexts.count
    covered = coverage(count, found.tests, min_contexts)
    of_abc = None
    if abc is not None:
        of_abc = abc_coverage(count, abc.groups, abc.pairs, min_contexts, all_adjectives=all_adjectives)
    if as_json:
        content = _as_json(found, covered) | ({} if of_abc is None else coverage_as_json(of_abc))
        click.echo(json.dumps(content, indent=1, ensure_ascii=False))
    elif not quiet:
        options = "".join(f" --with {file}" for file in files) + (" --all-adjectives" if all_adjectives else "")
        following = [f"biassay ceat hf:NAME --contexts {out}"] if covered else []
        following += [f"biassay stereotypes hf:NAME --measure ceat --contexts {out}{options}"] if abc else []
        tables = [_table(covered, min_contexts)] if covered else []
        tables += [coverage_table(of_abc)] if of_abc is not None else []
        _print(found, tables, f"written to {out}; next: {' or '.join(following)}")
    for name, reason in found.tally.damaged.items():
        click.echo(f"error: {name}: {reason}; what could be read of it was used", err=True)
    if found.tally.damaged:
        sys.exit(1)


def _abc(files: tuple[Path, ...], *, with_abc: bool, all_adjectives: bool) -> Abc | None:
    for given, option in ((files, "--with"), (all_adjectives, "--all-adjectives")):
        if given and not with_abc:
            raise click.UsageError(f"{option} is for --abc")
    return load_abc(files) if with_abc else None


def _table(covered: tuple[TestCoverage, ...], least: int) -> Table:
    table = Table()
    for name in (
        "test",
        "measurable",
        "words with contexts",
        "contexts a word: fewest, median, most",
        "too few or none",
    ):
        table.add_column(name, overflow="fold")
    for test in covered:
        counts = [count for concept in test.concepts for _, count in concept.counts]
        enough = [count for count in counts if count >= least]
        spread = f"{min(enough):,} / {median(enough):,.0f} / {max(enough):,}" if enough else ""
        lost = [f"{word} {count}" for concept in test.concepts for word, count in concept.counts if count < least]
        lacking = ", ".join(c.label for c in test.concepts if c.lack(test.max_lost) is not None)
        measurable = f"[yellow]no: {escape(lacking)}[/yellow]" if lacking else "yes"
        table.add_row(escape(test.test), measurable, f"{len(enough)} of {len(counts)}", spread, escape(", ".join(lost)))
    return table


def _print(found: Scan, tables: Sequence[Table], last: str) -> None:
    console = console_for_tables()
    for table in tables:
        console.print(table)
    tally = found.tally
    lines = [f"{len(found.contexts):,} contexts from {tally.documents:,} documents, {tally.bytes / 1e6:,.1f} MB"]
    if tally.bad or tally.undecodable:
        lines.append(f"{tally.bad + tally.undecodable:,} documents could not be read: {'; '.join(tally.examples)}")
    lines.append(last)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _as_json(found: Scan, covered: tuple[TestCoverage, ...]) -> dict[str, object]:
    tally = found.tally
    return {
        "contexts": len(found.contexts),
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
        "found": found.contexts.metadata["found"],
    }
