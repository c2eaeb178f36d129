"""Texts for users follow the style guide: patterns that it bans are in no help, message, docstring or template."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from biassay.cli import _biassay
from biassay.studies.registry import study_commands

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "biassay"

BANNED = {
    r"\banew\b": "again",
    r"\b(is|are) told\b(?! apart)": "report, print, warn",
    r"\b(stands?|stood) (outside|beside)\b": "exclude, appear",
    r", for (it|they|this|that|there) (is|are|has|have)\b|\bfor it is\b": "because",
    r"\bof a model's\b": "a noun",
    r"\b(tests?|questions?|items?|associations?) about people\b|^About people\b": "social-bias",
    r"\bnot (established|shown to be)\b": "inconclusive",
    r"\bholds? after correction\b": "significant",
    r"\bin \d+ of 100 cases\b": "percent",
    r"\bno people\b": "not people",
    r"\bso many\b": "a number",
    r"\bwhoever\b": "anyone who",
    r"\b(tests?|groups?) (is|are|was|were) refused\b|\brefused tests?\b": "skipped",
    r"\b(endpoint|bucket|s3|http)\S* address": "URL",
    r"\b(answers?|responses?|vectors|outputs?) (is|are|was|were) kept\b|\bkept (answers|responses)\b": "cached",
    r"\bcached answers\b|\banswers? (is|are|was|were) cached\b": "cached responses",
    r"\bone page of (it all|all runs)\b|\bpage of the run\b": "report",
    r"\bdoes not know \d|\bwords lost\b": "out of vocabulary",
    r"\b(black|white) (people|men|women|names|americans?|males?|females?)\b": "Black, White",
}
"""Patterns of the old dialect, with what to write instead."""
BANNED_FOR_USERS = {
    r"\bstands? for\b": "represent, be",
    r"\bspeaks? of\b": "describe, be about",
    r"\bless the\b": "minus",
    r"\bis no virtue\b": "is not a merit",
    r"\bthese very\b": "these",
    r"\bwhat is drawn\b": "a noun",
    r"\b(words|names|texts|contexts|pages|groups|annotations) an? (set|side|group|word|participant|minute)\b": "per",
    r"\blabels of people\b": "human labels",
    r"\bmended\b": "fixed",
}
"""Patterns banned from everything but docstrings."""
CASE_SENSITIVE = tuple(pattern for pattern in BANNED if "black|white" in pattern or "^About" in pattern)


def find_banned(text: str, banned: Mapping[str, str] = BANNED) -> list[str]:
    flat = " ".join(text.split())
    return [
        f"{match[0]!r} in {flat[max(match.start() - 40, 0) : match.end() + 40]!r}; write: {better}"
        for pattern, better in banned.items()
        for match in re.finditer(pattern, flat, 0 if pattern in CASE_SENSITIVE else re.IGNORECASE)
    ]


def list_strings(path: Path) -> list[str]:
    """Return all string constants of a module, docstrings included; parts of an f-string are joined."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    whole = [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values) for node in joined
    ]
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in parts]
    return [*whole, *(node.value for node in constants if isinstance(node.value, str))]


def list_user_strings(path: Path) -> list[str]:
    """Return the string constants of a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [text for text in list_strings(path) if text not in docstrings]


def list_sentences(node: object) -> Iterator[str]:
    """Yield the sentences of a TOML file: all texts of several words. Words of tests are lists of texts."""
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(value, str) and isinstance(node, dict) and " " in value:
            yield value
        yield from list_sentences(value)


def list_commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from list_commands(found, f"{name} {child}")


COMMANDS = dict(list_commands(_biassay, "biassay"))
MODULES = sorted(SOURCES.rglob("*.py"))
TEMPLATES = sorted(path for ending in ("html", "js", "txt", "tex", "md") for path in SOURCES.rglob(f"*.{ending}"))
TABLES = sorted(SOURCES.rglob("*.toml"))
DOCS = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "action.yml",
    *sorted(path for ending in ("md", "toml") for path in (ROOT / "docs").rglob(f"*.{ending}")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted(path for ending in ("md", "yml") for path in (ROOT / ".github").rglob(f"*.{ending}")),
]


def test_banned_patterns_are_found() -> None:
    assert find_banned("Everything is measured\n anew, and the result is told.")
    assert find_banned("The tests were refused.")
    assert find_banned("names of black women")
    assert all(map(find_banned, ("It stands beside it.", "Stop, for it is late", "so many words", "Whoever reads it")))
    assert not find_banned("Black women; black coffee; a new report; renewable; refused by the model")


def test_strings_of_a_module_are_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('def f(x):\n    """Measure anew."""\n    raise E(f"{x} is " "told", \'plain\')\n')
    assert {"Measure anew.", "0 is told", "plain"} <= set(list_strings(file))


def test_sentences_of_a_table_are_found() -> None:
    table = tomllib.loads('a = "measured anew"\nb = ["black women", "it is told"]\n[[c]]\nd = "no people"\n')
    assert list(list_sentences(table)) == ["measured anew", "no people"]


def test_all_commands_are_seen() -> None:
    assert {"biassay run", "biassay tests power", "biassay survey serve", "biassay cache prune"} <= set(COMMANDS)
    assert {f"biassay {name}" for name in study_commands()} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_no_banned_pattern(name: str) -> None:
    command = COMMANDS[name]
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])  # click remembers them
    assert not find_banned(command.get_help(context))


NOT_IMPERATIVE = ("of", "for", "with", "without", "what", "which", "whether", "that", "where", "when", "the", "a", "an")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lines_start_with_a_verb_or_a_noun(name: str) -> None:
    command = COMMANDS[name]
    lines = [option.help for option in command.params if isinstance(option, click.Option)]
    for line in [command.help, *lines]:
        assert line, f"{name}: no help"
        first = line.split()[0]
        assert first[0].isupper(), line
        assert first.lower() not in NOT_IMPERATIVE, line
        assert line.rstrip().endswith((".", "]", ")")), line


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_strings_have_no_banned_pattern(path: Path) -> None:
    found = [line for text in list_strings(path) for line in find_banned(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_user_facing_strings_have_no_banned_pattern(path: Path) -> None:
    found = [line for text in list_user_strings(path) for line in find_banned(text, BANNED_FOR_USERS)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_sentences_of_tables_have_no_banned_pattern(path: Path) -> None:
    sentences = list_sentences(tomllib.loads(path.read_text(encoding="utf-8")))
    found = [line for text in sentences for line in find_banned(text, BANNED | BANNED_FOR_USERS)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_templates_have_no_banned_pattern(path: Path) -> None:
    found = find_banned(path.read_text(encoding="utf-8"), BANNED | BANNED_FOR_USERS)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docs_have_no_banned_pattern(path: Path) -> None:
    published_words = re.compile(r"(black|white) female, (black|white) woman")  # listed in the catalogue
    found = find_banned(published_words.sub("", path.read_text(encoding="utf-8")), BANNED | BANNED_FOR_USERS)
    assert not found, "\n".join(found)
