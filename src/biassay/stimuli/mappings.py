"""Tests given as a dict of words, checked by the code that checks files. An error names the test and the role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError
from biassay.stimuli.document import SENT_BIAS_ROLES, Document, DocumentReader
from biassay.stimuli.fields import FieldReader, kind
from biassay.stimuli.model import ROLES

__all__ = ["concept_of", "plain", "read_mapping"]

_ROLE_KEYS = {*ROLES, *SENT_BIAS_ROLES}
_DESCRIBING = ("title", "about", "topic", "direction", "language")
_UNNAMED = "test"
_LABEL_WORDS = 2


def plain(content: Any) -> Any:
    """The same content as plain JSON data, which a manifest can keep: tuples, arrays and series become lists."""
    if isinstance(content, Mapping):
        for key in content:
            if not isinstance(key, str):
                raise StimulusError(f"expected texts as the keys of a dict of words, got {kind(key)}")
        return {str(key): plain(value) for key, value in content.items()}
    value = content.tolist() if hasattr(content, "tolist") else content
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def read_mapping(content: Mapping[str, Any]) -> Iterator[Document]:
    """A document for each test; concepts that tests do not share need no names of their own."""
    given = plain(content)
    if not isinstance(given, dict) or not given:
        raise StimulusError(f"expected a dict with X, Y, A and B, each a list of words, got {kind(content)}")
    is_one = _is_test(given) and not all(map(_is_test, given.values()))
    for name, fields in [(given.pop("name", _UNNAMED), given)] if is_one else given.items():
        yield _Reader(name).document(fields)


def _is_test(value: object) -> bool:
    return isinstance(value, dict) and bool(_ROLE_KEYS & value.keys())


class _Reader(DocumentReader):
    """Turns the dict of one test into what a file of that test would hold."""

    def __init__(self, name: Any) -> None:
        super().__init__(Path(), "")
        self.name = name
        self.string(name, "name")

    def place(self, where: str) -> str:
        field = where.removeprefix("concepts.").removeprefix(f"tests.{self.name}").removeprefix(".")
        return f"test {self.name!r}{f': field {field}' if field else ''}"

    def document(self, value: Any) -> Document:
        if not _is_test(value):
            self.fail("", f"expected a dict with X, Y, A and B, each a list of words, got {kind(value)}")
        if not value.keys() & set(ROLES):
            return self.sent_bias(self.name, value)
        fields = self.table(value, "", {*ROLES, *_DESCRIBING, "templates"})
        missing = [role for role in ROLES if role not in fields]
        if missing:
            self.fail("", f"a test has X, Y, A and B; {', '.join(missing)} missing")
        test = {key: fields[key] for key in _DESCRIBING if key in fields}
        if "templates" in fields:
            test |= dict.fromkeys(("targets", "attributes"), self.string(fields["templates"], "templates"))
        test |= {role: fields[role] if isinstance(fields[role], str) else role for role in ROLES}
        own = [role for role in ROLES if not isinstance(fields[role], str)]
        concepts = dict(zip(own, self.each(lambda role: concept_of(self, fields[role], role), own), strict=True))
        return self.own({"concepts": concepts, "tests": {self.name: test}})


def concept_of(reader: FieldReader, value: Any, role: str) -> dict[str, Any]:
    """What a concept of a file would hold; without a label, its first words are the label."""
    if not isinstance(value, list | dict):
        reader.fail(role, f"expected a list of words, got {kind(value)}")
    concept = {"words": value} if isinstance(value, list) else value
    words = concept.get("words", concept.get("examples"))
    first = words[:_LABEL_WORDS] if isinstance(words, list) else []
    label = ", ".join(map(str, first)) + (" ..." if first != words else "")
    return {"label": label if label.strip() else role, **concept}
