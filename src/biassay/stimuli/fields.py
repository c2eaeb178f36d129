"""A data file parsed, and its values checked one by one, each with the field and, where it is known, the line."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from biassay.errors import StimulusError, nearest_names

__all__ = [
    "FieldReader",
    "Location",
    "collect_problems",
    "find_repeated",
    "kind",
    "parse_json",
    "parse_toml",
    "raise_problems",
]

Item = TypeVar("Item")
Result = TypeVar("Result")
_NEW_PART = re.compile(r"\s*\[|\s*\"(targ|attr)[12]\"")  # a TOML table, or one of the four sets


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise StimulusError(f"{path}: not valid TOML: {error}") from error


def parse_json(path: Path, text: str, make_object: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The content of a JSON file; a key that appears twice in an object is an error unless ``make_object`` takes it."""
    try:
        return json.loads(text, object_pairs_hook=make_object or _no_repeated_keys)
    except json.JSONDecodeError as error:
        raise StimulusError(f"{path}: line {error.lineno}: not valid JSON: {error.msg}") from error
    except StimulusError as error:
        raise StimulusError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise StimulusError(f"{path}: not valid JSON: {error}") from error


def _no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        repeated = find_repeated(name for name, _ in pairs)
        raise StimulusError(f"the field {repeated!r} appears twice in one object")
    return seen


def find_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def raise_problems(problems: Sequence[str]) -> None:
    """Raise one error that lists all problems, if there are any."""
    if problems:
        raise StimulusError("\n".join(problems))


@contextmanager
def collect_problems(problems: list[str]) -> Iterator[None]:
    """Add a mistake to `problems` and continue after the block."""
    try:
        yield
    except StimulusError as error:
        problems.append(str(error))


@dataclass(frozen=True)
class Location:
    """A field of a data file. Its line is looked up only when an error message needs it."""

    reader: FieldReader
    field: str

    def __str__(self) -> str:
        return self.reader.place(self.field)


class FieldReader:
    """Takes tables, texts and flags from parsed values, knowing the file they came from."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def fail(self, where: str, problem: str) -> NoReturn:
        raise StimulusError(f"{self.place(where)}: {problem}")

    def each(self, read: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Read all items; one error reports the mistakes of all of them."""
        results, problems = list[Result](), list[str]()
        for item in items:
            with collect_problems(problems):
                results.append(read(item))
        raise_problems(problems)
        return results

    def place(self, where: str) -> str:
        """The file, and the line and the field where they are known."""
        line = self.line(where)
        return f"{self.path}{f': line {line}' if line else ''}{f': field {where}' if where else ''}"

    def line(self, where: str) -> int | None:
        """Line of the last part of ``where`` that stands in the file, each part sought within the one before it."""
        parts = [part for part in re.sub(r"\[\d+\]", "", where).split(".") if part]
        found, named = self._header(parts)
        for part in parts[named:]:
            name = re.compile(rf"""(^|["'\[.\s]){re.escape(part)}(["'\]\s=:.]|$)""")
            for number in range((found or 1) - 1, len(self.lines)):
                if name.search(self.lines[number]):
                    found = number + 1
                    break
                if found is not None and number >= found and _NEW_PART.match(self.lines[number]):
                    break
        return found

    def _header(self, parts: list[str]) -> tuple[int | None, int]:
        """Line of the TOML table with the longest name that ``parts`` begins with, and how many parts that has."""
        for n in range(len(parts), 0, -1):
            name = r"\s*\.\s*".join(rf"""["']?{re.escape(part)}["']?""" for part in parts[:n])
            header = re.compile(rf"\s*\[+\s*{name}\s*\]")
            for number, line in enumerate(self.lines, start=1):
                if header.match(line):
                    return number, n
        return None, 0

    def table(self, value: Any, where: str, allowed: set[str] | None = None) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(where, f"expected a table of fields, got {kind(value)}")
        if allowed is not None and value.keys() - allowed:
            self.each(partial(self._unknown, where, allowed), (key for key in value if key not in allowed))
        return value

    def _unknown(self, where: str, allowed: set[str], key: str) -> NoReturn:
        near = nearest_names(key, allowed)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(sorted(allowed))}"
        self.fail(f"{where}.{key}" if where else key, f"unknown field; {hint}")

    def known_fields(self, value: Any, where: str, allowed: set[str], problems: list[str]) -> dict[str, Any]:
        """Return the fields of a table that may be there; the others are added to `problems`."""
        with collect_problems(problems):
            self.table(value, where, allowed)
        return {key: value[key] for key in value if key in allowed} if isinstance(value, dict) else {}

    def string(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value.strip():
            self.fail(where, f"expected a text that is not empty, got {kind(value)}")
        return value

    def choice(self, value: Any, where: str, allowed: Sequence[str]) -> str:
        if value not in allowed:
            self.fail(where, f"expected one of {', '.join(allowed)}, got {kind(value)}")
        return str(value)

    def strings(self, value: Any, where: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.fail(where, f"expected a list of texts, got {kind(value)}")
        if not value:
            self.fail(where, "the list is empty")
        return tuple(self.each(lambda item: self.string(item[1], f"{where}[{item[0]}]"), enumerate(value)))

    def distinct(self, value: Any, where: str) -> tuple[str, ...]:
        """Words, none of them twice."""
        words = self.strings(value, where)
        padded = [i for i, word in enumerate(words) if word != word.strip()]
        mistakes = [(f"{where}[{i}]", f"the word {words[i]!r} begins or ends with a blank") for i in padded]
        repeated = [word for word, count in Counter(words).items() if count > 1]
        mistakes += [(where, f"the word {word!r} appears twice") for word in repeated]
        self.each(lambda mistake: self.fail(*mistake), mistakes)
        return words

    def texts_by_name(self, value: Any, where: str) -> tuple[tuple[str, str], ...]:
        return tuple((key, self.string(text, f"{where}.{key}")) for key, text in self.table(value, where).items())

    def flag(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            self.fail(where, f"expected true or false, got {kind(value)}")
        return value


def kind(value: Any) -> str:
    """What a value is, for a message that expected something else."""
    if value is None:
        return "nothing"
    return f"{type(value).__name__} {value!r}"[:60]
