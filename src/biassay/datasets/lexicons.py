"""Word lists that outcomes of responses count: bundled ones and the user's own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from biassay.datasets.fields import FieldReader, bundled_names, parse_toml, read_definition
from biassay.datasets.schema import Source, read_source
from biassay.errors import UnknownNameError
from biassay.io import read_text

_TEXT_FIELDS = ("title", "measures", "weakness", "language")


@dataclass(frozen=True)
class Lexicon:
    """A list of words.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    measures, weakness : str
        Meaning of the share of its words, and its known faults.
    language : str
        Language of the words, such as "en".
    words : tuple of str
        Words and phrases in lower case. A final star matches any ending: ``help*``.
    source : Source
        Origin and licence of the words.
    """

    name: str
    title: str
    measures: str
    weakness: str
    language: str
    words: tuple[str, ...]
    source: Source

    @cached_property
    def phrases(self) -> tuple[tuple[str, ...], ...]:
        """Words of every phrase of several words."""
        return tuple(tuple(word.split()) for word in self.words if " " in word)

    @cached_property
    def _whole(self) -> frozenset[str]:
        return frozenset(word for word in self.words if " " not in word and not word.endswith("*"))

    @cached_property
    def _stems(self) -> tuple[str, ...]:
        return tuple(word[:-1] for word in self.words if " " not in word and word.endswith("*"))

    def select(self, vocabulary: Collection[str]) -> frozenset[str]:
        """Return the words of a vocabulary in lower case that are in the list.

        A word with hyphens is in the list if it or one of its parts is.
        """
        return frozenset(word for word in vocabulary if any(map(self._has, {word, *word.split("-")})))

    def _has(self, word: str) -> bool:
        return word in self._whole or word.startswith(self._stems)


def lexicon_names() -> tuple[str, ...]:
    """Return the names of all bundled lexicons, sorted."""
    return bundled_names("lexicons")


@cache
def load_lexicon(name: str) -> Lexicon:
    """Load a bundled lexicon."""
    if name not in lexicon_names():
        raise UnknownNameError("lexicon", name, lexicon_names())
    return _parse_lexicon(*read_definition("lexicons", name))


def read_lexicon(path: Path | str) -> Lexicon:
    """Read a lexicon from a TOML file, which gives it its name.

    The file has the fields ``title``, ``measures``, ``weakness``, ``language`` and ``words``, and a table ``[source]``
    with ``name``, ``citation`` and ``version``, and optionally ``licence``, ``doi`` and ``note``.
    """
    path = Path(path).expanduser()
    return _parse_lexicon(path.stem, path, read_text(path))


def _parse_lexicon(name: str, path: Path, text: str) -> Lexicon:
    reader = FieldReader(path, text)
    readers: dict[str, Any] = {**dict.fromkeys(_TEXT_FIELDS, reader.string), "words": reader.distinct_words}
    readers["source"] = partial(read_source, reader)
    fields = reader.record(parse_toml(path, text), "", readers, readers)
    reader.read_each(lambda item: _check_word(reader, *item), enumerate(fields["words"]))
    return Lexicon(name, **fields)


def _check_word(reader: FieldReader, index: int, word: Any) -> None:
    where = f"words[{index}]"
    if word != word.casefold():
        reader.fail(where, f"the word {word!r} has capitals; write it in lower case, because case is ignored")
    if "*" in word[:-1] or word == "*":
        reader.fail(where, f"a star is allowed at the end of a word only, got {word!r}")
    if " " in word and word.endswith("*"):
        reader.fail(where, f"a phrase cannot have a star, got {word!r}; list its forms")
