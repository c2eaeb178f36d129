"""``biassay tests``: the catalogue and a user's own files."""

from __future__ import annotations

import fnmatch
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from biassay.cli.commands import Commands
from biassay.cli.common import check_new_file, console_for_tables
from biassay.cli.listing import print_lines
from biassay.cli.tests_asked import about_asked, asked_of, print_asked, show_asked, sum_up_asked, validate_asked
from biassay.cli.tests_power import show_power
from biassay.cli.tests_search import search, show_concepts
from biassay.errors import UsageError
from biassay.files import write_atomically
from biassay.pages.formats import counted
from biassay.stimuli.catalogue import catalogue, load_file, load_tests, select_tests
from biassay.stimuli.description import description_of
from biassay.stimuli.export import to_sent_bias, to_toml
from biassay.stimuli.groups import Grouping
from biassay.stimuli.model import ROLES, Concept, Test
from biassay.studies.associations.words_lost import assumption
from biassay.texts.sentences import assumed_words, digest_of, given_texts, guessed_sentences, texts_of

__all__ = ["command"]

_DIRECTIONS = {
    "positive": "positive (the stereotype associates X with A)",
    "negative": "negative (the stereotype associates X with B)",
    None: "not stated",
}
_ROLE_NAMES = {"X": "first targets", "Y": "second targets", "A": "first attributes", "B": "second attributes"}


@click.group("tests", cls=Commands)
def command() -> None:
    """List, find, show, check and export the tests, and say what they can detect."""


for _one in (search, show_concepts, show_power):
    command.add_command(_one)


@command.command("list")
@click.argument("patterns", nargs=-1, metavar="[TOPIC|PATTERN ...]")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_tests(patterns: tuple[str, ...], as_json: bool) -> None:
    """All tests, or those of a topic (gender), a collection (may2019) or a file, or that match a pattern (sent-*).

    Without patterns, the table sums up supplementary collections in a line each. Tests for chat or instruct models
    (wat-*) are listed when they are named.
    """
    asked = tuple(dict.fromkeys(test for pattern in patterns for test in asked_of(pattern)))
    others = [pattern for pattern in patterns if not asked_of(pattern) or fnmatch.filter(catalogue().tests, pattern)]
    chosen = tuple(catalogue().tests.values()) if not patterns else select_tests(others) if others else ()
    if as_json:
        listed = [*map(_about, chosen), *map(about_asked, asked)]
        click.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        return
    if chosen:
        _print_tests(test for test in chosen if patterns or not test.source.supplementary)
    if asked:
        print_asked(asked)
    sum_up_asked(patterns)
    summed_up = Counter(test.source.name for test in chosen if not patterns and test.source.supplementary)
    for name, count in summed_up.items():
        click.echo(f"{name}: {counted(count, 'more test')}, run when asked for: 'biassay tests list {name}'")


def _print_tests(tests: Iterable[Test]) -> None:
    rows = [
        (
            test.name,
            f"same as {test.alias_of}" if test.alias_of else test.title,
            test.topic,
            f"{sum(1 for _ in texts_of(test)):,}",
            test.source.name,
        )
        for test in tests
    ]
    print_lines(("test", "asks", "topic", "texts", "source"), rows, right={"texts"})


@command.command("show")
@click.argument("name")
@click.option("--texts", "with_texts", is_flag=True, help="Show every text, not only the words.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def show_test(name: str, with_texts: bool, as_json: bool) -> None:
    """One test: its words, its sentences, where it comes from. NAME may be a file, or the name of a grouping."""
    if name in catalogue().groupings:
        _show_grouping(catalogue().groupings[name], as_json=as_json)
        return
    if asked := asked_of(name):
        if as_json:
            found = [*map(about_asked, asked)]
            click.echo(json.dumps(found if len(found) > 1 else found[0], indent=1, ensure_ascii=False))
            return
        for one in asked:
            show_asked(one)
        return
    chosen = select_tests([name])
    if as_json:
        content = [_about(test) | {"texts": _texts(test)} for test in chosen]
        click.echo(json.dumps(content if len(content) > 1 else content[0], indent=1, ensure_ascii=False))
        return
    for test in chosen:
        _show(test, with_texts)


@command.command("validate")
@click.argument("file", type=click.Path(path_type=Path))
def validate_file(file: Path) -> None:
    """Check a file of your own: sent-bias JSON, or TOML with tests, groups or word association tests."""
    if validate_asked(file):
        return
    tests, grouping = load_file(file)
    if grouping is not None:
        names = ", ".join(f"{group.name} {len(group.names)}" for group in grouping.groups)
        words = f"{len(grouping.validation_words)} rated words"
        click.echo(f"{file}: groups: valid, names: {names}; {words}")
    for test in tests if tests or grouping is not None else load_tests(file):
        direction = _DIRECTIONS[test.direction]
        click.echo(f"{file}: {test.name}: valid, {test.level} level; question: {test.question}; direction: {direction}")
        for role, (label, counts) in _describe_sets(test).items():
            click.echo(f"  {role}  {label}  {counts}")
        if assumed := assumed_words(test):
            click.echo(f"{file}: {test.name}: {assumption(assumed)}; 'biassay tests show' lists all")
        if guessed := guessed_sentences(test):
            click.echo(
                f"{file}: {test.name}: articles and plurals made by rule; read these, and list those that are wrong"
            )
            click.echo("under 'articles' or 'plurals' of the template set (docs/tests.md, Articles and plurals):")
            for word, sentences in guessed.items():
                click.echo(f"  {word}: {' '.join(sentences)}")


def _describe_sets(test: Test) -> dict[str, tuple[str, str]]:
    """Return the label of each word set, padded to one width, with its numbers of words, clusters and texts."""
    texts, assumed = texts_of(test), assumed_words(test)
    width = max(len(test.concept(role).label) for role in ROLES)
    sets: dict[str, tuple[str, str]] = {}
    for role in ROLES:
        concept = test.concept(role)
        words = assumed.get(role, concept.words)
        clusters = len({concept.cluster_labels.get(word, word) for word in words})
        counts = f"{counted(len(words), 'word')} in {counted(clusters, 'cluster')}"
        counts += f", {counted(len(texts.role(role)), 'text')}" if test.level == "sentence" else ""
        sets[role] = concept.label.ljust(width), counts
    return sets


@command.command("export")
@click.argument("name")
@click.option(
    "--format", "file_format", type=click.Choice(["sent-bias", "toml"]), default="sent-bias", show_default=True
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write to a file that does not exist yet, instead of printing."
)
def export_test(name: str, file_format: str, out: Path | None) -> None:
    """Write a test to a file: all its texts (sent-bias), or its words and templates (toml)."""
    chosen = select_tests([name])
    if len(chosen) != 1:
        raise UsageError(f"{name!r} matches {len(chosen)} tests; name one")
    test = chosen[0]
    content = to_toml(test) if file_format == "toml" else to_sent_bias(test, given_texts(test))
    if out is None:
        click.echo(content, nl=False)
        return
    check_new_file(out)
    write_atomically(out, content.encode())
    click.echo(f"written to {out}")


def _texts(test: Test) -> dict[str, list[str]]:
    asked = texts_of(test)
    return {role: [text.text for text in asked.role(role)] for role in ROLES}


def _about(test: Test) -> dict[str, object]:
    return {
        "name": test.name,
        "title": test.title,
        "level": test.level,
        **description_of(test),
        "alias_of": test.alias_of,
        "concepts": {role: _about_concept(test.concept(role)) for role in ROLES},
        "source": test.source.name,
        "citation": test.source.citation,
        "licence": test.source.licence,
        "version": test.source.version,
        "supplementary": test.source.supplementary,
        "digest": digest_of(test),
        "assumed": assumed_words(test),
    }


def _show(test: Test, with_texts: bool) -> None:
    console = console_for_tables()
    console.print(f"[bold]{escape(test.name)}[/bold]  {escape(test.title)}")
    asked, assumed = texts_of(test), assumed_words(test)
    for role in ROLES:
        concept = test.concept(role)
        texts, words = asked.role(role), assumed.get(role, concept.words)
        how = ", as assumed" if role in assumed else ""
        clusters = f", {counted(len(set(concept.cluster_labels.values())), 'cluster')}" if concept.clusters else ""
        counts = f"({counted(len(words), 'word')}{how}{clusters}, {counted(len(texts), 'text')})"
        name = "" if concept.name == concept.label else f", concept {concept.name}"
        console.print(f"\n{_ROLE_NAMES[role]}: [bold]{escape(concept.label)}[/bold]{escape(name)} {counts}")
        console.print(escape(", ".join(_by_cluster(concept, words))), highlight=False)
        if concept.source:
            console.print(escape(f"source: {concept.source}"), highlight=False, style="dim")
        if with_texts and test.level == "sentence":
            for text in texts:
                console.print(escape(f"  {text.text}"), highlight=False)
        elif test.templates(role) is not None or concept.given:
            first = [text.text for text in texts if text.stimulus == concept.words[0]]
            console.print(escape(f"for example: {' '.join(first)}"), highlight=False, style="dim")
    console.print(f"\n{escape(_described(test))}", highlight=False)
    console.print(f"from: {escape(test.source.citation)} (version {escape(test.source.version)})", highlight=False)
    console.print(f"licence: {escape(test.source.licence)}", highlight=False)


def _about_concept(concept: Concept) -> dict[str, Any]:
    about: dict[str, Any] = {"label": concept.label, "words": concept.words}
    stated = {"clusters": concept.clusters, "source": concept.source}
    return about | {key: value for key, value in stated.items() if value}


def _by_cluster(concept: Concept, words: Sequence[str]) -> list[str]:
    """List the words, with the words of one cluster joined: he/him/his."""
    joined: dict[str, list[str]] = {}
    for word in words:
        joined.setdefault(concept.cluster_labels.get(word, word), []).append(word)
    return ["/".join(cluster) for cluster in joined.values()]


def _described(test: Test) -> str:
    fields = {key: value for key, value in description_of(test).items() if value is not None}
    return ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in fields.items())


def _show_grouping(grouping: Grouping, *, as_json: bool) -> None:
    if as_json:
        groups = {
            g.name: {
                "names": g.names,
                "clusters": g.clusters,
                "belongs": g.belongs,
                "biases": g.biases,
                "emergent": g.emergent,
            }
            for g in grouping.groups
        }
        click.echo(
            json.dumps(
                {"name": grouping.name, "groups": groups, "others": grouping.others}, indent=1, ensure_ascii=False
            )
        )
        return
    console = console_for_tables()
    console.print(f"[bold]{escape(grouping.name)}[/bold]  {escape(grouping.title)}")
    for group in grouping.groups:
        console.print(f"\n[bold]{escape(group.name)}[/bold] ({escape(', '.join(group.belongs.values()))})")
        lists = {"names": group.names, "rated": group.biases, "emergent": group.emergent}
        if group.clusters:
            lists["clusters"] = tuple(" = ".join(cluster) for cluster in group.clusters)
        for what, words in lists.items():
            console.print(escape(f"{what}: {', '.join(words)}"), highlight=False)
    console.print(f"\nof no group: {escape(', '.join(grouping.others))}", highlight=False)
    console.print(
        f"\nfrom: {escape(grouping.source.citation)} (version {escape(grouping.source.version)})", highlight=False
    )
