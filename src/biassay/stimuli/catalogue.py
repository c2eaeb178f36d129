"""All known tests: those shipped, those of other packages, and those in a user's files and dicts of words."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.stimuli.document import Document, read_document
from biassay.stimuli.fields import kind
from biassay.stimuli.groups import Grouping
from biassay.stimuli.mappings import read_mapping
from biassay.stimuli.model import Test
from biassay.stimuli.packages import with_packages
from biassay.stimuli.resolve import Catalogue, resolve

__all__ = [
    "Catalogue",
    "catalogue",
    "load_file",
    "load_grouping",
    "load_tests",
    "select_grouping",
    "select_tests",
    "tests_of",
]

_NO_YEAR = "9999"  # files that are not named after a paper come last
_FILE_ENDINGS = (".json", ".jsonl", ".toml")


@cache
def catalogue() -> Catalogue:
    """The catalogue shipped with the package, and what other packages add to it."""
    data = Path(str(resources.files("biassay.stimuli") / "data"))
    files = [file for room in ("concepts", "templates", "tests", "groups") for file in (data / room).glob("*.toml")]
    by_year = sorted(files, key=lambda path: ("".join(filter(str.isdigit, path.stem)) or _NO_YEAR, path.stem))
    return with_packages(resolve([read_document(path) for path in by_year], Catalogue({}, {}, {}, {})))


def load_file(path: Path) -> tuple[tuple[Test, ...], Grouping | None]:
    """Tests and groups of a user's file; they may refer to concepts, templates and tests of the catalogue."""
    document = read_document(path)
    found = resolve([document], catalogue())
    return _own(document, found), None if document.grouping is None else found.groupings[document.source.name]


def load_tests(path: Path) -> tuple[Test, ...]:
    """The tests of a user's file."""
    tests, grouping = load_file(path)
    if not tests:
        what = "groups and no tests" if grouping else "no tests"
        raise StimulusError(f"{path}: the file defines {what}; expected at least one table [tests.NAME]")
    return tests


def load_grouping(path: Path) -> Grouping:
    """The groups of a user's file."""
    _, grouping = load_file(path)
    if grouping is None:
        raise StimulusError(f"{path}: the file defines no groups; expected at least two tables [groups.NAME]")
    return grouping


def select_grouping(name: str) -> Grouping:
    """Groups by the name of their collection or by their file."""
    known = catalogue().groupings
    if name in known:
        return known[name]
    if name.lower().endswith(".toml"):
        return load_grouping(Path(name))
    raise UnknownNameError("grouping", name, known, f"(groupings: {', '.join(known)}; a file ends in .toml)")


def tests_of(content: Mapping[str, Any]) -> tuple[Test, ...]:
    """Tests given as a dict: X, Y, A and B with their words, or such dicts by the names of the tests.

    Each of the four is a list of words, a dict with ``words`` and ``label``, or the name of a concept of the catalogue.
    ``name``, ``title``, ``about``, ``topic``, ``direction``, ``language`` and ``templates`` (the name of a template
    set) are optional. The sent-bias form, with targ1, targ2, attr1 and attr2, is accepted too.
    """
    return tuple(test for d in read_mapping(content) for test in _own(d, resolve([d], catalogue())))


def _own(document: Document, found: Catalogue) -> tuple[Test, ...]:
    return tuple(found.tests[entry.name] for entry in document.tests)


def select_tests(patterns: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = ()) -> tuple[Test, ...]:
    """Choose association tests from the catalogue, from files, or from dicts of words.

    Parameters
    ----------
    patterns : str, dict of words, or list of them
        Names (``weat6``), patterns (``sent-*``), collections (``may2019``), topics (``gender``), files, or dicts with
        the words of X, Y, A and B. By default the tests of the main collections.

    Returns
    -------
    tuple of Test

    Notes
    -----
    Collections and topics leave out aliases (C1 for weat1), so that nothing is run twice. Supplementary collections and
    those of other packages are taken when named, so that they change neither a default run nor its correction for many
    tests; a topic has them only where the main collections have no test of it.

    Examples
    --------
    >>> import biassay
    >>> [test.title for test in biassay.select_tests("weat1")]
    ['Flowers or insects, pleasant or unpleasant']
    """
    known = catalogue()
    patterns = (patterns,) if isinstance(patterns, str | Mapping) else tuple(patterns)
    if not patterns:
        return known.main
    chosen: dict[str, Test] = {}
    for pattern in patterns:
        for test in _matching(pattern, known):
            if chosen.setdefault(test.name, test) != test:
                of = f"in {pattern}" if isinstance(pattern, str) else "given as a dict"
                raise StimulusError(f"two tests of the name {test.name!r} are asked for; rename the one {of}")
    return tuple(chosen.values())


def _matching(pattern: object, known: Catalogue) -> tuple[Test, ...]:
    if isinstance(pattern, Mapping):
        return tests_of(pattern)
    if not isinstance(pattern, str):
        raise UsageError(f"expected the name of a test, a pattern, a file or a dict of words, got {kind(pattern)}")
    pattern = _as_spelt(pattern, known)
    if pattern in known.tests:
        return (known.tests[pattern],)
    if pattern in known.collections:
        return tuple(t for t in known.tests.values() if t.source.name == pattern and t.alias_of is None)
    if pattern in known.topics:
        return known.about(pattern)
    if pattern.lower().endswith(_FILE_ENDINGS):
        return load_tests(Path(pattern))
    found = tuple(known.tests[name] for name in fnmatch.filter(known.tests, pattern))
    if not found:
        raise _unknown(pattern, known)
    return found


def _as_spelt(pattern: str, known: Catalogue) -> str:
    """The name of a test, collection or topic that differs in case only, if there is just one."""
    names = dict.fromkeys((*known.tests, *known.collections, *known.topics))
    same = [name for name in names if name.casefold() == pattern.casefold()]
    return same[0] if pattern not in names and len(same) == 1 else pattern


def _unknown(pattern: str, known: Catalogue) -> UnknownNameError:
    """Offers the pattern where the name is how several tests begin, and else near names and files beside it."""
    longer = [name for name in known.tests if name.casefold().startswith(pattern.casefold())]
    if pattern and longer:
        like = f"{longer[0][: len(pattern)]}*" if len(longer) > 1 else longer[0]
        hint = f"({len(longer)} tests begin so)" if len(longer) > 1 else ""
        return UnknownNameError("test", pattern, [like], hint, like=like)
    if pattern.casefold().startswith("wat-"):
        hint = "(word association tests are put to chat or instruct models: 'biassay ask MODEL --tests ...')"
        return UnknownNameError("test", pattern, (), hint)
    names = [*known.tests, *known.collections, *known.topics, *_files_beside(pattern)]
    hint = "('biassay tests list' shows all; a file ends in .json or .toml; models are named before --tests)"
    return UnknownNameError("test", pattern, names, hint)


def _files_beside(pattern: str) -> list[str]:
    """Files of tests in the folder that is named, as they would be typed."""
    folder = Path(pattern).parent
    try:
        files = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in _FILE_ENDINGS)
    except (OSError, ValueError):
        return []
    front = pattern[: len(pattern) - len(Path(pattern).name)]
    return [f"{front}{name}" for name in files]
