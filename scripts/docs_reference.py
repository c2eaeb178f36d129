"""Write the generated pages of the docs: functions, commands, the catalogue of tests and the gallery.

Every build of the site (docs/conf.py) writes them to docs/generated, which Git ignores.
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
from docs_criticism import list_criticism
from docs_gallery import make_site_gallery, write_reports
from docs_word_associations import escape_markdown, make_word_association_list, make_word_association_pages

PAGES = Path(__file__).resolve().parents[1] / "docs" / "generated"
ROLE_NAMES = {"X": "first targets", "Y": "second targets", "A": "first attributes", "B": "second attributes"}


def make_pages() -> dict[str, str]:
    """Return every page by its name under docs/generated."""
    pages = {"functions.md": list_functions(), "commands.md": list_commands(), "gallery.md": make_site_gallery()}
    return pages | make_catalogue_pages()


def write_pages(folder: Path = PAGES) -> None:
    """Write all pages into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "catalogue").mkdir(parents=True)
    for name, content in make_pages().items():
        (folder / name).write_text(content, encoding="utf-8")
    write_reports(folder / "extra" / "gallery")


def list_functions() -> str:
    """List the public names of biassay: functions, then classes."""
    by_kind: dict[str, list[str]] = {"Functions": [], "Classes": []}
    for name in sorted(biassay.__all__, key=str.lower):
        by_kind["Classes" if inspect.isclass(getattr(biassay, name)) else "Functions"].append(name)
    parts = [
        "# Functions\n",
        "`import biassay` is fast: each name is imported on first use.\n",
    ]
    for kind, names in by_kind.items():
        listed = "\n".join(f"   {name}" for name in names)
        directives = f".. currentmodule:: biassay\n\n.. autosummary::\n   :toctree: api\n   :nosignatures:\n\n{listed}"
        parts.append(f"## {kind}\n\n```{{eval-rst}}\n{directives}\n```\n")
    return "\n".join(parts)


def list_documented_members() -> dict[str, dict[str, str]]:
    """Map each public class to its documented members and their autodoc directives."""
    members: dict[str, dict[str, str]] = {}
    for name in biassay.__all__:
        if inspect.isclass(made := getattr(biassay, name)):
            named = {key: value for key, value in vars(made).items() if key[0] != "_" and inspect.getdoc(value)}
            kinds = {key: _kind(value) for key, value in named.items()}
            members[name] = {key: f"auto{kind}" for key, kind in kinds.items() if kind}
    return members


def _kind(member: object) -> str:
    if isinstance(member, property | cached_property):
        return "property"
    return "method" if isinstance(member, FunctionType | classmethod | staticmethod) else ""


def list_commands() -> str:
    """List every command with its arguments and options, from its help."""
    top = click.Context(command_line, info_name="biassay")
    parts = ["# Commands\n", "The help of all commands. On the command line: `biassay COMMAND --help`.\n"]
    for context in _list_contexts(top):
        command, path = context.command, context.command_path
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        text = "\n\n".join(map(_format_help, (command.help or "").split("\n\n"))).strip()
        parts.append(f"{'##' if context.parent is top else '###'} {path}\n\n{text}\n\n```text\n{usage}\n```\n")
        records = (record for p in command.params if (record := p.get_help_record(context)) and record[1])
        parts.extend(f"`{name}`\n: {_format_help(text)}\n" for name, text in records)
    return "\n".join(parts)


def _list_contexts(parent: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of all commands below a group, depth first."""
    assert isinstance(parent.command, click.Group)
    for name in parent.command.list_commands(parent):
        command = parent.command.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield context
        if isinstance(command, click.Group):
            yield from _list_contexts(context)


def make_catalogue_pages() -> dict[str, str]:
    """Return a page for every test except aliases, and an index."""
    catalogue = load_catalogue().tests.values()
    tests = [test for test in catalogue if test.alias_of is None]
    aliases = {test.alias_of: test.name for test in catalogue if test.alias_of is not None}
    pages = {f"catalogue/{test.name}.md": _make_test_page(test, aliases) for test in tests}
    parts = [
        "# Catalogue of tests\n",
        f"{len(tests)} association tests, each with its words, source and detectable effect. To write your own "
        "test, see [tests and files](../../tests.md).\n",
    ]
    for topic, description in load_topics().items():
        if rows := [test for test in tests if test.topic == topic]:
            listed = "".join(f"- [{escape_markdown(t.title)}](<{t.name}.md>) (`{t.name}`)\n" for t in rows)
            head = f"## {topic.capitalize()}\n\n{description[0].upper()}{escape_markdown(description[1:])}."
            parts.append(f"{head}\n\n{listed}")
    parts.append(make_word_association_list())
    pages |= make_word_association_pages()
    names = "\n".join(page.removeprefix("catalogue/").removesuffix(".md") for page in pages)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```\n")
    return {"catalogue/index.md": "\n".join(parts), **pages}


def _make_test_page(test: Test, aliases: Mapping[str, str]) -> str:
    words = "\n".join(
        f"- **{escape_markdown(concept.label)}** ({ROLE_NAMES[role]}, {role}{_concept_name(concept)}): "
        f"{escape_markdown(', '.join(concept.words))}"
        for role in ROLES
        for concept in [test.concept(role)]
    )
    source = test.source
    doi = f" [doi:{source.doi}](https://doi.org/{source.doi})" if source.doi else ""
    facts = {
        "topic": f"{test.topic}: {load_topics()[test.topic]}",
        "kind": "social-bias test" if test.about == "people" else "sanity check",
        "texts": "single words" if test.level == "word" else f"sentences, {test.template}",
        "word test": f"[{escape_markdown(test.variant_of)}](<{test.variant_of}.md>)" if test.variant_of else "",
        "alias": f"`{aliases[test.name]}`" if test.name in aliases else "",
        "source": escape_markdown(source.citation) + doi,
        "note": escape_markdown(source.note),
        "licence": escape_markdown(source.licence),
        "version": source.version,
        "run": "only if you name it or its collection" if source.supplementary else "by default",
    }
    rows = "".join(f"| {name} | {value} |\n" for name, value in facts.items() if value)
    title = f"# {escape_markdown(test.title)}\n"
    parts = [
        title,
        f"| test | `{test.name}` |\n|---|---|\n{rows}",
        f"## Words\n\n{words}\n",
    ]
    if test.level == "sentence":
        parts.append(f"## Example\n\n{_example(test)}\n")
    command = f"```text\nbiassay run MODEL --tests {test.name}\n```\n"
    sections = {
        "What it can detect": _describe_power(test),
        "Known criticism": f"{list_criticism(test)}\n\n[How biassay responds](../../explanation/criticism.md).",
        "Run it": command,
    }
    return "\n".join([*parts, *(f"## {head}\n\n{content}\n" for head, content in sections.items())])


def _concept_name(concept: Concept) -> str:
    return "" if concept.name == concept.label else f"; concept `{concept.name}`"


def _example(test: Test) -> str:
    """Show texts of the first word of every set."""
    test_texts = make_texts(test)
    words = {test.concept(role).words[0]: role for role in ROLES}
    texts = {
        word: [text.text for text in test_texts.role(role) if text.stimulus == word] for word, role in words.items()
    }
    return "\n".join(f"- {escape_markdown(word)}: {escape_markdown(' '.join(t[:3]))}" for word, t in texts.items())


def _describe_power(test: Test) -> str:
    power = biassay.power(test.name)
    sizes = ", ".join(str(size) for size in power.sizes)
    if power.smallest_d is None:
        return f"With {sizes} words in X, Y, A and B, there is no p-value, so the test cannot detect any effect."
    return (
        f"With {sizes} words in X, Y, A and B, the test has {power.wanted:.0%} power for a true d of "
        f"**{power.smallest_d:.2f}** (alpha {power.alpha:g}, two-sided) on a typical model, the median of "
        f"{', '.join(list_measured_models())}. With this number of target words, d cannot exceed "
        f"{power.largest_d:.2f}. See [null results](../../explanation/null-results.md)."
    )


def _format_help(text: str) -> str:
    """Format a paragraph of help as Markdown; text between backticks is code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if i % 2 else escape_markdown(part) for i, part in enumerate(parts))


if __name__ == "__main__":
    write_pages()
