"""Write the pages of the docs that are made from code: functions, commands, one page for every test, a gallery.

They are made anew whenever the site is built (docs/conf.py), and are not kept in the repository.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import FunctionType

import click

import biassay
from biassay.cli import _biassay as command_line
from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES, Concept, Test, load_topics
from biassay.datasets.variance_priors import list_measured_models
from biassay.prompts.sentences import make_texts
from docs_asked import asked_pages, asked_section, escaped
from docs_criticism import criticism_of
from docs_gallery import gallery, write_gallery

PAGES = Path(__file__).resolve().parents[1] / "docs" / "generated"
CRITICISM = "[what is said against these measures](../../explanation/criticism.md)"
ROLE_NAMES = {"X": "first targets", "Y": "second targets", "A": "first attributes", "B": "second attributes"}


def made_pages() -> dict[str, str]:
    """Every page by its name under docs/generated."""
    return {"functions.md": functions(), "commands.md": commands(), "gallery.md": gallery(), **catalogue_pages()}


def write_pages(folder: Path = PAGES) -> None:
    """All pages, in place of what the folder held."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "catalogue").mkdir(parents=True)
    for name, content in made_pages().items():
        (folder / name).write_text(content, encoding="utf-8")
    write_gallery(folder / "extra" / "gallery")


def functions() -> str:
    """What ``import biassay`` offers: functions first, then what they return."""
    by_kind: dict[str, list[str]] = {"Functions": [], "Records and errors": []}
    for name in sorted(biassay.__all__, key=str.lower):
        by_kind["Records and errors" if inspect.isclass(getattr(biassay, name)) else "Functions"].append(name)
    parts = [
        "# Functions\n",
        "Importing the package loads nothing heavy; each name is imported when it is first used.\n",
    ]
    for kind, names in by_kind.items():
        listed = "\n".join(f"   {name}" for name in names)
        directives = f".. currentmodule:: biassay\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}"
        parts.append(f"## {kind}\n\n```{{eval-rst}}\n{directives}\n```\n")
    return "\n".join(parts)


def explained_members() -> dict[str, dict[str, str]]:
    """By public class: methods and properties that it defines and explains, each with the directive that shows it."""
    found: dict[str, dict[str, str]] = {}
    for name in biassay.__all__:
        if inspect.isclass(made := getattr(biassay, name)):
            named = {key: value for key, value in vars(made).items() if key[0] != "_" and inspect.getdoc(value)}
            kinds = {key: _kind(value) for key, value in named.items()}
            found[name] = {key: f"auto{kind}" for key, kind in kinds.items() if kind}
    return found


def _kind(member: object) -> str:
    if isinstance(member, property | cached_property):
        return "property"
    return "method" if isinstance(member, FunctionType | classmethod | staticmethod) else ""


def commands() -> str:
    """Every command with its arguments and options, as ``--help`` has them."""
    top = click.Context(command_line, info_name="biassay")
    parts = ["# Commands\n", "What `biassay COMMAND --help` says, of all commands.\n"]
    for context in _contexts(top):
        command, path = context.command, context.command_path
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        text = "\n\n".join(map(_plain, (command.help or "").split("\n\n"))).strip()
        parts.append(f"{'##' if context.parent is top else '###'} {path}\n\n{text}\n\n```text\n{usage}\n```\n")
        records = (record for p in command.params if (record := p.get_help_record(context)) and record[1])
        parts.extend(f"`{name}`\n: {_plain(does)}\n" for name, does in records)
    return "\n".join(parts)


def _contexts(parent: click.Context) -> Iterator[click.Context]:
    """Of all commands below a group, depth first."""
    assert isinstance(parent.command, click.Group)
    for name in parent.command.list_commands(parent):
        command = parent.command.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield context
        if isinstance(command, click.Group):
            yield from _contexts(context)


def catalogue_pages() -> dict[str, str]:
    """A page for every test but for those that are other names of one, and a page that lists them."""
    known = load_catalogue()
    tests = [test for test in known.tests.values() if test.alias_of is None]
    aliases = {test.alias_of: test.name for test in known.tests.values() if test.alias_of is not None}
    pages = {f"catalogue/{test.name}.md": _test_page(test, aliases) for test in tests}
    parts = [
        "# Catalogue of tests\n",
        f"{len(tests)} association tests, each with its words, its source and what it can detect. A test of your own "
        "is a file: [tests and files](../../tests.md).\n",
    ]
    for topic, stands_for in load_topics().items():
        if rows := [test for test in tests if test.topic == topic]:
            listed = "".join(f"- [{escaped(t.title)}](<{t.name}.md>) (`{t.name}`)\n" for t in rows)
            head = f"## {topic.capitalize()}\n\n{escaped(stands_for).capitalize()}."
            parts.append(f"{head}\n\n{listed}")
    parts.append(asked_section())
    pages |= asked_pages()
    names = "\n".join(page.removeprefix("catalogue/").removesuffix(".md") for page in pages)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    return {"catalogue/index.md": "\n".join(parts), **pages}


def _test_page(test: Test, aliases: Mapping[str, str]) -> str:
    words = "\n".join(
        f"- **{escaped(concept.label)}** ({ROLE_NAMES[role]}, {role}{_concept_name(concept)}): "
        f"{escaped(', '.join(concept.words))}"
        for role in ROLES
        for concept in [test.concept(role)]
    )
    source = test.source
    doi = f" [doi:{source.doi}](https://doi.org/{source.doi})" if source.doi else ""
    facts = {
        "topic": f"{test.topic}: {load_topics()[test.topic]}",
        "about": "people" if test.about == "people" else "no people: it checks that the method works on a model",
        "texts": "words by themselves" if test.level == "word" else f"sentences, {test.template}",
        "in words": f"[{escaped(test.variant_of)}](<{test.variant_of}.md>)" if test.variant_of else "",
        "other name": f"`{aliases[test.name]}`" if test.name in aliases else "",
        "source": escaped(source.citation) + doi,
        "note": escaped(source.note),
        "licence": escaped(source.licence),
        "version": source.version,
        "run": "only when it or its collection is named" if source.supplementary else "by default",
    }
    rows = "".join(f"| {name} | {value} |\n" for name, value in facts.items() if value)
    title = f"# {escaped(test.title)}\n"
    parts = [
        title,
        f"| test | `{test.name}` |\n|---|---|\n{rows}",
        f"## Words\n\n{words}\n",
    ]
    if test.level == "sentence":
        parts.append(f"## For example\n\n{_example(test)}\n")
    command = f"```text\nbiassay run MODEL --tests {test.name}\n```\n"
    sections = {
        "What it can detect": _detects(test),
        "What is said against it": f"{criticism_of(test)}\n\nThe papers, and what is done about it: {CRITICISM}.",
        "Run it": command,
    }
    return "\n".join([*parts, *(f"## {head}\n\n{content}\n" for head, content in sections.items())])


def _concept_name(concept: Concept) -> str:
    return "" if concept.name == concept.label else f"; concept `{concept.name}`"


def _example(test: Test) -> str:
    """The texts of the first word of every set."""
    asked = make_texts(test)
    firsts = ((role, test.concept(role).words[0]) for role in ROLES)
    texts = {word: [text.text for text in asked.role(role) if text.stimulus == word][:3] for role, word in firsts}
    return "\n".join(f"- {escaped(word)}: {escaped(' '.join(found))}" for word, found in texts.items())


def _detects(test: Test) -> str:
    found = biassay.power(test.name)
    sizes = ", ".join(str(size) for size in found.sizes)
    if found.smallest_d is None:
        return f"With so few words ({sizes} in X, Y, A and B) there is no crossed p-value: no effect is found."
    return (
        f"With {sizes} words in X, Y, A and B a true d of **{found.smallest_d:.2f}** is found in {found.wanted:.0%} of "
        f"cases (crossed test, alpha {found.alpha:g}, two-sided), on a typical model: the median of "
        f"{', '.join(list_measured_models())}. d stays below {found.largest_d:.2f} with so many "
        f"target words. What this "
        "means: [null results](../../explanation/null-results.md)."
    )


def _plain(text: str) -> str:
    """A paragraph of help as Markdown; what stands between backticks is code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if i % 2 else escaped(part) for i, part in enumerate(parts))


if __name__ == "__main__":
    write_pages()
