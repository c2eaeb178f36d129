"""Command `biassay tests`."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from biassay.cli import SuggestingGroup
from biassay.cli.listings import print_json, print_lines, print_records, print_rows
from biassay.cli.options import check_new_file, json_option
from biassay.cli.tests_power import show_power
from biassay.cli.word_association_tests import (
    match_word_association_tests,
    print_source,
    print_word_association_summary,
    print_word_association_test,
    print_word_association_tests,
    source_to_json,
    validate_word_association_file,
    word_association_test_to_json,
)
from biassay.datasets.catalogue import load_catalogue, load_file, load_tests, select_tests
from biassay.datasets.groups import Grouping
from biassay.datasets.languages import load_language_tests, load_languages
from biassay.datasets.linter import FAULTS, check_collections, lint_test
from biassay.datasets.schema import ROLES, Concept, Test, describe_test
from biassay.datasets.search import find_tests_using, search_tests, select_concepts
from biassay.datasets.stimulus_files import to_sent_bias, to_toml
from biassay.errors import UsageError
from biassay.io import write_atomically
from biassay.prompts.sentences import (
    get_assumed_words,
    get_given_texts,
    hash_texts,
    make_inflected_examples,
    make_texts,
)
from biassay.reporting.formats import format_count
from biassay.reporting.terminal import make_console
from biassay.studies.associations.findings import describe_assumption

_MAX_LISTED = 2


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD ...")
@json_option
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Find the tests that contain all words in name, title, topic, collection, labels or stimuli."""
    matches = search_tests(words, load_catalogue())
    rows = [{"name": m.test.name, "title": m.test.title, "found": m.matches} for m in matches]
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo(f"no test contains {' and '.join(map(repr, words))}; list all: biassay tests list")
    else:
        columns = ("test", "asks", "found in")
        where = ["; ".join(f"{place}: {', '.join(texts)}" for place, texts in m.matches.items()) for m in matches]
        print_lines(columns, [(m.test.name, m.test.title, of) for m, of in zip(matches, where, strict=True)], share=0.6)


@click.command("concepts")
@click.argument("name", required=False, metavar="[NAME|PATTERN]")
@json_option
def show_concepts(name: str | None, as_json: bool) -> None:
    """List word sets with their words and tests. Your own test file may use them by name."""
    known = load_catalogue()
    chosen = select_concepts(name, known)
    records = [
        {
            "concept": concept.name,
            "label": concept.label,
            "words": concept.words,
            "tests": find_tests_using(concept, known),
        }
        for concept in chosen
    ]
    if as_json or len(chosen) == 1:
        print_records(records, as_json=as_json)
        return
    rows = [
        (concept.name, ", ".join(concept.words), str(len(concept.words)), _join_few(find_tests_using(concept, known)))
        for concept in chosen
    ]
    print_lines(("concept", "for example", "words", "tests"), rows, right={"words"}, share=0.75)


def _join_few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


_DIRECTIONS = {
    "positive": "positive (the stereotype associates X with A)",
    "negative": "negative (the stereotype associates X with B)",
    None: "not stated",
}
_ROLE_NAMES = {"X": "first targets", "Y": "second targets", "A": "first attributes", "B": "second attributes"}


@click.group("tests", cls=SuggestingGroup)
def command() -> None:
    """List, search, show, check and export tests, and compute their power."""


for _command in (search, show_concepts, show_power):
    command.add_command(_command)


@command.command("list")
@click.argument("patterns", nargs=-1, metavar="[TOPIC|PATTERN ...]")
@json_option
def list_tests(patterns: tuple[str, ...], as_json: bool) -> None:
    """List all tests, or those of a topic (gender), collection (may2019), file or pattern (sent-*).

    Without patterns, supplementary collections are summarized. Tests for chat or instruct models (wat-*) are listed if
    you name them.
    """
    asked = tuple(dict.fromkeys(test for pattern in patterns for test in match_word_association_tests(pattern)))
    others = [
        pattern
        for pattern in patterns
        if not match_word_association_tests(pattern) or fnmatch.filter(load_catalogue().tests, pattern)
    ]
    chosen = tuple(load_catalogue().tests.values()) if not patterns else select_tests(others) if others else ()
    if as_json:
        listed = [*map(_test_to_json, chosen), *map(word_association_test_to_json, asked)]
        print_json(listed)
        return
    if chosen:
        _print_tests(test for test in chosen if patterns or not test.source.supplementary)
    if asked:
        print_word_association_tests(asked)
    print_word_association_summary(patterns)
    summed_up = Counter(test.source.name for test in chosen if not patterns and test.source.supplementary)
    for name, count in summed_up.items():
        click.echo(f"{name}: {format_count(count, 'more test')}, not run by default: biassay tests list {name}")
    if not patterns:
        languages = load_languages()
        count = sum(len(load_language_tests(code)) for code in languages)
        names = ", ".join(f"{name} ({code})" for code, name in languages.items())
        click.echo(f"weathub-CODE: {count} more tests, not run by default, in {names}: biassay tests list weathub-de")


def _print_tests(tests: Iterable[Test]) -> None:
    rows = [
        (
            test.name,
            f"same as {test.alias_of}" if test.alias_of else test.title,
            test.topic,
            f"{sum(1 for _ in make_texts(test)):,}",
            test.source.name,
        )
        for test in tests
    ]
    print_lines(("test", "asks", "topic", "texts", "source"), rows, right={"texts"})


@command.command("show")
@click.argument("name")
@click.option("--texts", "with_texts", is_flag=True, help="Print every text, not only the words.")
@json_option
def show_test(name: str, with_texts: bool, as_json: bool) -> None:
    """Show the words, sentences and source of a test. NAME may also be a file or a grouping."""
    if name in load_catalogue().groupings:
        _show_grouping(load_catalogue().groupings[name], as_json=as_json)
        return
    asked = match_word_association_tests(name)
    chosen = () if asked else select_tests([name])
    if as_json:
        found = [*map(word_association_test_to_json, asked)]
        found += [_test_to_json(test) | {"texts": _make_texts(test)} for test in chosen]
        print_json(found if len(found) > 1 else found[0])
        return
    for one in asked:
        print_word_association_test(one)
    for test in chosen:
        _print_test(test, with_texts)


@command.command("validate")
@click.argument("patterns", nargs=-1, metavar="[FILE|TEST|COLLECTION ...]")
@click.option("--all", "show_all", is_flag=True, help="List every fault, not only the counts per collection.")
@json_option
def validate(patterns: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    """Check your own file, or find faults in the word lists of tests and collections, by default of all.

    A file is sent-bias JSON, or TOML with tests, groups or word association tests. Faults of word lists are repeated
    words, words in two sets, opposed sets of unequal size, words in another script, and similarly
    spelled words without a common cluster.
    """
    files = [Path(pattern) for pattern in patterns if pattern.lower().endswith((".json", ".jsonl", ".toml"))]
    for file in files:
        _validate_file(file)
    if files and len(files) == len(patterns):
        return
    checked = list(check_collections([pattern for pattern in patterns if Path(pattern) not in files]))
    faults = [fault for _, _, found in checked for fault in found]
    if as_json:
        print_json([asdict(fault) for fault in faults])
        return
    if show_all or len(checked) == 1:
        rows = [(fault.test, fault.kind, fault.roles, ", ".join(fault.words)) for fault in faults]
        print_rows(("test", "fault", "sets", "words"), rows)
    else:
        counts = [[len({f.test for f in found if f.kind == kind}) for kind in FAULTS] for _, _, found in checked]
        counted = [
            [name, str(n_tests), *(str(count or "") for count in by_kind)]
            for (name, n_tests, _), by_kind in zip(checked, counts, strict=True)
        ]
        print_rows(("collection", "tests", *FAULTS), counted, right={"tests", *FAULTS})
        click.echo("Tests with a fault, by kind. List the faults: biassay tests validate COLLECTION")
    for kind, meaning in FAULTS.items():
        click.echo(f"  {kind}: {meaning}")


def _validate_file(file: Path) -> None:
    """Check a file and print what it holds."""
    if validate_word_association_file(file):
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
        for fault in lint_test(test):
            click.echo(f"  note: {FAULTS[fault.kind]} ({fault.roles}): {', '.join(fault.words)}")
        if assumed := get_assumed_words(test):
            click.echo(f"{file}: {test.name}: {describe_assumption(assumed)}; 'biassay tests show' lists all")
        if guessed := make_inflected_examples(test):
            click.echo(
                f"{file}: {test.name}: articles and plurals made by rule; read these, and list those that are wrong"
            )
            click.echo("under 'articles' or 'plurals' of the template set (docs/tests.md, Articles and plurals):")
            for word, sentences in guessed.items():
                click.echo(f"  {word}: {' '.join(sentences)}")


def _describe_sets(test: Test) -> dict[str, tuple[str, str]]:
    """Return the label of each word set, padded to one width, with its numbers of words, clusters and texts."""
    texts, assumed = make_texts(test), get_assumed_words(test)
    width = max(len(test.concept(role).label) for role in ROLES)
    sets: dict[str, tuple[str, str]] = {}
    for role in ROLES:
        concept = test.concept(role)
        words = assumed.get(role, concept.words)
        clusters = len({concept.cluster_labels.get(word, word) for word in words})
        counts = f"{format_count(len(words), 'word')} in {format_count(clusters, 'cluster')}"
        counts += f", {format_count(len(texts.role(role)), 'text')}" if test.level == "sentence" else ""
        sets[role] = concept.label.ljust(width), counts
    return sets


@command.command("export")
@click.argument("name")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["sent-bias", "toml"]),
    default="sent-bias",
    show_default=True,
    help="Write all texts (sent-bias), or words and templates (toml).",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write to this new file instead of printing.")
def export_test(name: str, file_format: str, out: Path | None) -> None:
    """Export a test."""
    chosen = select_tests([name])
    if len(chosen) != 1:
        raise UsageError(f"{name!r} matches {len(chosen)} tests; name a single one")
    test = chosen[0]
    content = to_toml(test) if file_format == "toml" else to_sent_bias(test, get_given_texts(test))
    if out is None:
        click.echo(content, nl=False)
        return
    check_new_file(out)
    write_atomically(out, content.encode())
    click.echo(f"written to {out}")


def _make_texts(test: Test) -> dict[str, list[str]]:
    asked = make_texts(test)
    return {role: [text.text for text in asked.role(role)] for role in ROLES}


def _test_to_json(test: Test) -> dict[str, object]:
    return {
        "name": test.name,
        "title": test.title,
        "level": test.level,
        **describe_test(test),
        "alias_of": test.alias_of,
        "concepts": {role: _concept_to_json(test.concept(role)) for role in ROLES},
        **source_to_json(test.source),
        "supplementary": test.source.supplementary,
        "digest": hash_texts(test),
        "assumed": get_assumed_words(test),
    }


def _print_test(test: Test, with_texts: bool) -> None:
    console = make_console()
    console.print(f"[bold]{escape(test.name)}[/bold]  {escape(test.title)}")
    asked, assumed = make_texts(test), get_assumed_words(test)
    for role in ROLES:
        concept = test.concept(role)
        texts, words = asked.role(role), assumed.get(role, concept.words)
        how = ", as assumed" if role in assumed else ""
        clusters = f", {format_count(len(set(concept.cluster_labels.values())), 'cluster')}" if concept.clusters else ""
        counts = f"({format_count(len(words), 'word')}{how}{clusters}, {format_count(len(texts), 'text')})"
        name = "" if concept.name == concept.label else f", concept {concept.name}"
        console.print(f"\n{_ROLE_NAMES[role]}: [bold]{escape(concept.label)}[/bold]{escape(name)} {counts}")
        console.print(escape(", ".join(_join_clusters(concept, words))), highlight=False)
        if concept.source:
            console.print(escape(f"source: {concept.source}"), highlight=False, style="dim")
        if with_texts and test.level == "sentence":
            for text in texts:
                console.print(escape(f"  {text.text}"), highlight=False)
        elif test.templates(role) is not None or concept.given:
            first = [text.text for text in texts if text.stimulus == concept.words[0]]
            console.print(escape(f"for example: {' '.join(first)}"), highlight=False, style="dim")
    console.print(f"\n{escape(_format_description(test))}", highlight=False)
    print_source(console, test.source)


def _concept_to_json(concept: Concept) -> dict[str, Any]:
    about: dict[str, Any] = {"label": concept.label, "words": concept.words}
    stated = {"clusters": concept.clusters, "source": concept.source}
    return about | {key: value for key, value in stated.items() if value}


def _join_clusters(concept: Concept, words: Sequence[str]) -> list[str]:
    """List the words, with the words of one cluster joined: he/him/his."""
    joined: dict[str, list[str]] = {}
    for word in words:
        joined.setdefault(concept.cluster_labels.get(word, word), []).append(word)
    return ["/".join(cluster) for cluster in joined.values()]


def _format_description(test: Test) -> str:
    fields = {key: value for key, value in describe_test(test).items() if value is not None}
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
        print_json({"name": grouping.name, "groups": groups, "others": grouping.others})
        return
    console = make_console()
    console.print(f"[bold]{escape(grouping.name)}[/bold]  {escape(grouping.title)}")
    for group in grouping.groups:
        console.print(f"\n[bold]{escape(group.name)}[/bold] ({escape(', '.join(group.belongs.values()))})")
        lists = {"names": group.names, "rated": group.biases, "emergent": group.emergent}
        if group.clusters:
            lists["clusters"] = tuple(" = ".join(cluster) for cluster in group.clusters)
        for what, words in lists.items():
            console.print(escape(f"{what}: {', '.join(words)}"), highlight=False)
    console.print(f"\nin no group: {escape(', '.join(grouping.others))}", highlight=False)
    console.print()
    print_source(console, grouping.source)
