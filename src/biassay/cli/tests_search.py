"""``biassay tests search`` and ``biassay tests concepts``: what there is, by what stands in it."""

from __future__ import annotations

import json

import click

from biassay.cli.listing import print_lines, print_records
from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.searching import concepts_named, search_tests, tests_with

__all__ = ["search", "show_concepts"]

_FEW = 2


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD ...")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def search(words: tuple[str, ...], as_json: bool) -> None:
    """The tests in which all words stand: in the name, title, topic, collection, labels or stimuli, and where."""
    matches = search_tests(words, catalogue())
    rows = [{"name": m.test.name, "title": m.test.title, "found": m.found} for m in matches]
    if as_json:
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    elif not rows:
        click.echo(f"no test holds {' and '.join(map(repr, words))}; 'biassay tests list' shows all")
    else:
        columns = ("test", "asks", "found in")
        where = ["; ".join(f"{place}: {', '.join(texts)}" for place, texts in m.found.items()) for m in matches]
        print_lines(columns, [(m.test.name, m.test.title, of) for m, of in zip(matches, where, strict=True)], share=0.6)


@click.command("concepts")
@click.argument("name", required=False, metavar="[NAME|PATTERN]")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def show_concepts(name: str | None, as_json: bool) -> None:
    """All concepts, or those of a name: their words, and the tests they are in. Your own file may use them by name."""
    known = catalogue()
    chosen = concepts_named(name, known)
    records = [
        {"concept": one.name, "label": one.label, "words": one.words, "tests": tests_with(one, known)} for one in chosen
    ]
    if as_json or len(chosen) == 1:
        print_records(records, as_json=as_json)
        return
    rows = [(one.name, ", ".join(one.words), str(len(one.words)), _few(tests_with(one, known))) for one in chosen]
    print_lines(("concept", "for example", "words", "tests"), rows, right={"words"}, share=0.75)


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
