"""List, show and validate word association tests for `biassay tests`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from biassay.cli.listings import print_lines
from biassay.datasets.schema import Source, load_topics
from biassay.datasets.word_associations import (
    WordAssociationTest,
    holds_word_associations,
    load_word_associations,
    select_published,
    select_word_associations,
)
from biassay.reporting.formats import format_count
from biassay.reporting.terminal import make_console


def match_word_association_tests(pattern: str) -> tuple[WordAssociationTest, ...]:
    """Return the tests that match a name, a pattern, a collection or a file; topics select tests of vectors only."""
    if pattern.lower().endswith(".toml") and holds_word_associations(Path(pattern)):
        return select_word_associations(pattern)
    return () if pattern.casefold() in load_topics() else select_published(pattern)


def print_word_association_summary(patterns: Sequence[str]) -> None:
    """Print a line about the tests for chat models, of the named topics or all."""
    named = [pattern.casefold() for pattern in patterns if pattern.casefold() in load_topics()]
    found = [test for topic in named or ["*"] * (not patterns) for test in select_published(topic)]
    if found:
        names = ", ".join(test.name for test in found) if patterns else "'biassay tests list bai2025'"
        descriptive = sum(test.is_descriptive() for test in found)
        note = f"; {descriptive} of them are descriptive and run only if named" if descriptive else ""
        click.echo(
            f"bai2025: {format_count(len(found), 'more test')}, for chat or instruct models "
            f"(biassay ask): {names}{note}"
        )


def print_word_association_tests(tests: Sequence[WordAssociationTest]) -> None:
    """Print one line per test."""
    rows = [
        (test.name, test.title, test.topic, str(len(test.pairs)), str(len(test.words)), _describe_scope(test)[0])
        for test in tests
    ]
    print_lines(("test", "asks", "topic", "pairs", "words", "can show"), rows, right={"pairs", "words"})
    if any(test.is_descriptive() for test in tests):
        click.echo(
            "descriptive: too few pairs of group words for a p-value of .05, for any responses; "
            "biassay ask runs these tests only if you name them, or with --tests all.",
            err=True,
        )


def _describe_scope(test: WordAssociationTest) -> tuple[str, str]:
    """Describe what a significant result generalizes to: briefly for the list, and in a sentence."""
    if test.is_descriptive():
        return (
            "descriptive",
            "Descriptive: too few pairs of group words for a p-value of .05, for any responses.",
        )
    if len(test.pairs) > 1:
        return "other pairs", "A result holds for other words and other pairs of group words."
    return (
        "this pair only",
        "One pair of group words: a result holds for other words with this pair, not for other pairs.",
    )


def source_to_json(source: Source) -> dict[str, object]:
    """Return the source of a test as JSON data."""
    return {
        "source": source.name,
        "citation": source.citation,
        "licence": source.licence,
        "version": source.version,
    }


def print_source(console: Console, source: Source) -> None:
    """Print the source of a test or grouping."""
    console.print(f"from: {escape(source.citation)} (version {escape(source.version)})", highlight=False)
    console.print(f"licence: {escape(source.licence)}", highlight=False)


def word_association_test_to_json(test: WordAssociationTest) -> dict[str, object]:
    """Return a test as JSON data."""
    return {
        "name": test.name,
        "title": test.title,
        "level": "answers",
        "about": test.about,
        "topic": test.topic,
        "alias_of": None,
        "published_as": test.published_as or None,
        "concepts": {role: {"label": of.label, "words": of.words} for role, of in test.concepts.items()},
        "pairs": test.pairs,
        "smallest_p_value": test.smallest_p_value,
        "descriptive": test.is_descriptive(),
        **source_to_json(test.source),
        "supplementary": True,
        "digest": test.digest,
    }


def validate_word_association_file(file: Path) -> bool:
    """Check a file of word association tests, if it is one."""
    if file.suffix.lower() != ".toml" or not holds_word_associations(file):
        return False
    tests, wordings, _ = load_word_associations(file)
    for test in tests.values():
        sizes = ", ".join(f"{role} {len(concept.words)}" for role, concept in test.concepts.items())
        pairs = format_count(len(test.pairs), "pair")
        click.echo(f"{file}: {test.name}: valid, for chat or instruct models (biassay ask), {pairs}, words: {sizes}")
    for wording in wordings.values():
        click.echo(f"{file}: {wording.name}: valid, a wording ({wording.form})")
    return True


def print_word_association_test(test: WordAssociationTest) -> None:
    """Print the words of a test and its pairs of group words."""
    console = make_console()
    console.print(f"[bold]{escape(test.name)}[/bold]  {escape(test.title)}")
    for role, concept in test.concepts.items():
        console.print(f"\n{role}: [bold]{escape(concept.label)}[/bold] ({format_count(len(concept.words), 'word')})")
        console.print(escape(", ".join(concept.words)), highlight=False)
    pairs = "; ".join(" or ".join(pair) for pair in test.pairs)
    console.print(f"\nasked about together: {escape(pairs)}", highlight=False)
    console.print(_describe_scope(test)[1], highlight=False)
    console.print(f"for chat or instruct models: biassay ask MODEL --tests {escape(test.name)}", highlight=False)
    console.print(f"\nabout: {test.about}, topic: {test.topic}", highlight=False)
    print_source(console, test.source)
