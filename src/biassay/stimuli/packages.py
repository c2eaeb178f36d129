"""Collections of tests that other packages add, by entry points of the group ``biassay.tests``.

An entry point gives the path of a TOML file of tests, or of a folder of such files. Its collections are supplementary,
whatever they state, so that no default run changes because a package is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from biassay.errors import UsageError
from biassay.plugins import load_plugins
from biassay.stimuli.description import topics
from biassay.stimuli.document import UNKNOWN_SOURCE, Document, read_document
from biassay.stimuli.fields import kind
from biassay.stimuli.resolve import Catalogue, resolve

__all__ = ["GROUP", "with_packages"]

GROUP = "biassay.tests"
_SELECTED = "test or collection"  # one name chooses either, so they have no name in common


def with_packages(known: Catalogue) -> Catalogue:
    """The catalogue with the collections of other packages behind its own; what cannot be used is left out."""
    growing = _Growing(known)
    load_plugins(GROUP, (), use=growing.add)
    return growing.known


class _Growing:
    """A catalogue, and who gives each name in it."""

    def __init__(self, known: Catalogue) -> None:
        self.known = known
        selected = (*known.tests, *known.collections, *known.groupings, *topics())
        names = [(_SELECTED, selected), ("concept", known.concepts), ("template set", known.sets)]
        self.owners = {(what, name): "biassay" for what, given in names for name in given}

    def add(self, given: object) -> None:
        """Add the files of one entry point, all or none."""
        documents = [_document(file) for file in _files(given)]
        collections = list(dict.fromkeys(document.source.name for document in documents))
        defined = [(_SELECTED, name) for name in collections]
        defined += [names for document in documents for names in _names(document)]
        for what, name in defined:
            if (what, name) in self.owners:
                raise UsageError(f"the {what} {name!r} is given by {self.owners[what, name]} too; rename it")
            if defined.count((what, name)) > 1:
                raise UsageError(f"it defines the {what} {name!r} twice; rename one of them")
        self.known = resolve(documents, self.known)
        self.owners |= dict.fromkeys(defined, f"the collection {collections[0]!r}")


def _names(document: Document) -> Iterator[tuple[str, str]]:
    yield from ((_SELECTED, entry.name) for entry in document.tests)
    yield from (("concept", name) for name in document.concepts)
    yield from (("template set", name) for name in document.sets)


def _files(given: object) -> list[Traversable]:
    place = Path(given) if isinstance(given, str) else given
    if not isinstance(place, Traversable) or (isinstance(place, Path) and not place.is_absolute()):
        raise UsageError(f"expected an absolute path or importlib.resources.files(...), got {kind(given)}")
    files = sorted(place.iterdir(), key=lambda file: file.name) if place.is_dir() else [place]
    found = [file for file in files if file.name.lower().endswith(".toml")]
    if not found:
        raise UsageError(f"{place}: expected a TOML file, or a folder that holds one")
    return found


def _document(file: Traversable) -> Document:
    with resources.as_file(file) as path:
        document = read_document(path)
    if document.source == UNKNOWN_SOURCE:
        raise UsageError(f"{file}: the table [source] is missing; its name is that of the collection")
    return replace(document, source=replace(document.source, supplementary=True))
