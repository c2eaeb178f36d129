"""Tests for chat or instruct models, as ``biassay tests`` lists and shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
from rich.markup import escape

from biassay.cli.common import console_for_tables
from biassay.cli.listing import print_lines
from biassay.pages.formats import counted
from biassay.stimuli.description import topics
from biassay.stimuli.word_associations import (
    WordAssociationTest,
    holds_word_associations,
    load_word_associations,
    published_word_associations,
    select_word_associations,
)

__all__ = ["about_asked", "asked_of", "print_asked", "show_asked", "sum_up_asked", "use_of", "validate_asked"]


def asked_of(pattern: str) -> tuple[WordAssociationTest, ...]:
    """Those that a name, a pattern, their collection or a file means; a topic means tests of vectors."""
    if pattern.lower().endswith(".toml") and holds_word_associations(Path(pattern)):
        return select_word_associations(pattern)
    return () if pattern.casefold() in topics() else published_word_associations(pattern)


def sum_up_asked(patterns: Sequence[str]) -> None:
    """A line that says which there are, of the topics that are named or at all."""
    named = [pattern.casefold() for pattern in patterns if pattern.casefold() in topics()]
    found = [test for topic in named or ["*"] * (not patterns) for test in published_word_associations(topic)]
    if found:
        names = ", ".join(test.name for test in found) if patterns else "'biassay tests list bai2025'"
        descriptive = sum(test.is_descriptive() for test in found)
        note = f"; {descriptive} of them are descriptive and run only if named" if descriptive else ""
        click.echo(
            f"bai2025: {counted(len(found), 'more test')}, for chat or instruct models (biassay ask): {names}{note}"
        )


def print_asked(tests: Sequence[WordAssociationTest]) -> None:
    rows = [
        (test.name, test.title, test.topic, str(len(test.pairs)), str(len(test.words)), _USES[use_of(test)])
        for test in tests
    ]
    print_lines(("test", "asks", "topic", "pairs", "words", "can show"), rows, right={"pairs", "words"})
    if any(test.is_descriptive() for test in tests):
        click.echo(
            "descriptive: too few pairs of group words for a p-value of .05, whatever a model responds; "
            "biassay ask runs these tests only if you name them, or with --tests all.",
            err=True,
        )


Use = Literal["this pair", "other pairs", "descriptive"]
_USES: dict[Use, str] = {
    "this pair": "this pair only",
    "other pairs": "other pairs",
    "descriptive": "descriptive",
}


def use_of(test: WordAssociationTest) -> Use:
    """Return what a significant result would hold for: the one pair of group words, or other pairs."""
    if test.is_descriptive():
        return "descriptive"
    return "other pairs" if len(test.pairs) > 1 else "this pair"


def about_asked(test: WordAssociationTest) -> dict[str, object]:
    source = test.source
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
        "source": source.name,
        "citation": source.citation,
        "licence": source.licence,
        "version": source.version,
        "supplementary": True,
        "digest": test.digest,
    }


def validate_asked(file: Path) -> bool:
    """Check a file of word association tests, if it is one."""
    if file.suffix.lower() != ".toml" or not holds_word_associations(file):
        return False
    tests, wordings = load_word_associations(file)
    for test in tests.values():
        sizes = ", ".join(f"{role} {len(concept.words)}" for role, concept in test.concepts.items())
        pairs = counted(len(test.pairs), "pair")
        click.echo(f"{file}: {test.name}: valid, for chat or instruct models (biassay ask), {pairs}, words: {sizes}")
    for wording in wordings.values():
        click.echo(f"{file}: {wording.name}: valid, a wording ({wording.form})")
    return True


_CAN_SHOW: dict[Use, str] = {
    "this pair": "One pair of group words: a result holds for other words with this pair, not for other pairs.",
    "other pairs": "A result holds for other words and other pairs of group words.",
    "descriptive": "Descriptive: too few pairs of group words for a p-value of .05, whatever a model responds.",
}


def show_asked(test: WordAssociationTest) -> None:
    """Its words, and which group words are asked about together."""
    console = console_for_tables()
    console.print(f"[bold]{escape(test.name)}[/bold]  {escape(test.title)}")
    for role, concept in test.concepts.items():
        console.print(f"\n{role}: [bold]{escape(concept.label)}[/bold] ({counted(len(concept.words), 'word')})")
        console.print(escape(", ".join(concept.words)), highlight=False)
    pairs = "; ".join(" or ".join(pair) for pair in test.pairs)
    console.print(f"\nasked about together: {escape(pairs)}", highlight=False)
    console.print(_CAN_SHOW[use_of(test)], highlight=False)
    console.print(f"for chat or instruct models: biassay ask MODEL --tests {escape(test.name)}", highlight=False)
    console.print(f"\nabout: {test.about}, topic: {test.topic}", highlight=False)
    source = test.source
    console.print(f"from: {escape(source.citation)} (version {escape(source.version)})", highlight=False)
    console.print(f"licence: {escape(source.licence)}", highlight=False)
