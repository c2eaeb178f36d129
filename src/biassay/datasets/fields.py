"""Check values of TOML and JSON files, and report errors with file, line and field."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from biassay.errors import StimulusError, find_nearest_names
from biassay.io import read_text

DATA = Path(__file__).with_name("data")
"""Folder of the bundled data."""
Item = TypeVar("Item")
Result = TypeVar("Result")
Readers = Mapping[str, Callable[[Any, str], Any]]
"""Functions from a value and its place in a file to the result, by field."""
_P = ParamSpec("_P")
_MOST_LISTED = 50  # looking up the line of a mistake reads the whole file
_NEW_PART = re.compile(r"\s*\[|\s*\"(targ|attr)[12]\"")  # a TOML table, or one of the four sets


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Parse TOML. Raise StimulusError with the file name if it is invalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise StimulusError(f"{path}: not valid TOML: {error}") from error


def parse_json(path: Path, text: str) -> Any:
    """Parse JSON. Raise StimulusError if it is invalid or if an object repeats a key."""
    try:
        return json.loads(text, object_pairs_hook=_no_repeated_keys)
    except json.JSONDecodeError as error:
        raise StimulusError(f"{path}: line {error.lineno}: not valid JSON: {error.msg}") from error
    except StimulusError as error:
        raise StimulusError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, thousands of brackets
        raise StimulusError(f"{path}: not valid JSON: {error}") from error


def _no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        repeated = find_repeated(name for name, _ in pairs)
        raise StimulusError(f"the field {repeated!r} appears twice in one object")
    return seen


def find_repeated(names: Iterable[Item]) -> Item | None:
    """Return the first name that occurs a second time."""
    seen: set[Item] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def raise_problems(problems: Sequence[str]) -> None:
    """Raise one error that lists the problems, if there are any."""
    if problems:
        lines = "\n".join(problems).split("\n")
        more = ["further mistakes are not listed"] if len(lines) > _MOST_LISTED else []
        raise StimulusError("\n".join([*lines[:_MOST_LISTED], *more]))


@contextmanager
def collect_problems(problems: list[str]) -> Iterator[None]:
    """Add a mistake to `problems` and continue after the block."""
    try:
        yield
    except StimulusError as error:
        problems.append(str(error))


def attempt(
    problems: list[str], default: Result, read: Callable[_P, Result], *args: _P.args, **kwargs: _P.kwargs
) -> Result:
    """Return the result of a function that reads a field. Add a mistake to `problems` and return the default."""
    try:
        return read(*args, **kwargs)
    except StimulusError as error:
        problems.append(str(error))
        return default


def bundled_names(folder: str) -> tuple[str, ...]:
    """Return the names of the TOML files in a folder of the bundled data, sorted."""
    return tuple(sorted(path.stem for path in (DATA / folder).glob("*.toml")))


def read_definition(folder: str, source: str | Path) -> tuple[str, Path, str]:
    """Return name, path and text of a bundled TOML file by its name, or of a user's file."""
    if str(source) in bundled_names(folder):
        return str(source), Path(f"{source}.toml"), (DATA / folder / f"{source}.toml").read_text("utf-8")
    path = Path(source).expanduser()
    return path.stem, path, read_text(path)


@dataclass(frozen=True)
class Location:
    """A field of a data file. Its line is looked up only when an error message needs it."""

    reader: FieldReader
    field: str

    def __str__(self) -> str:
        return self.reader.format_location(self.field)


class FieldReader:
    """Check parsed values of a file. Errors name the file, the line and the field.

    Parameters
    ----------
    path : Path
        File of the values.
    text : str
        Content of the file.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()
        self._line_numbers: dict[str, int | None] = {}

    def fail(self, where: str, problem: str) -> NoReturn:
        """Raise StimulusError for the field `where`."""
        raise StimulusError(f"{self.format_location(where)}: {problem}")

    def read_each(self, read: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Read all items. Raise one error for the mistakes of all of them."""
        results, problems = list[Result](), list[str]()
        for item in items:
            with collect_problems(problems):
                results.append(read(item))
        raise_problems(problems)
        return results

    def format_location(self, where: str) -> str:
        """Return the file, and the line and field if they are known."""
        field = re.sub(r"\[\d+\]", "", where)
        if field not in self._line_numbers and len(self._line_numbers) < _MOST_LISTED:
            self._line_numbers[field] = self.line(field)
        line = self._line_numbers.get(field)
        return f"{self.path}{f': line {line}' if line else ''}{f': field {where}' if where else ''}"

    def line(self, where: str) -> int | None:
        """Return the line of the last part of `where` in the file, searching each part inside the previous one."""
        parts = [part for part in where.split(".") if part]
        line, n_found = self._find_header(parts)
        for part in parts[n_found:]:
            key = re.escape(part)
            assignment = rf"""^\s*["']?{key}["']?\s*="""
            found = self._find_line(assignment, line) or self._find_line(
                rf"""(^|["'\[.\s]){key}(["'\]\s=:.]|$)""", line
            )
            line = found or line
        return line

    def _find_line(self, pattern: str, start: int | None) -> int | None:
        """Return the first line from `start` on that matches a pattern and is in the same part of the file."""
        for number in range((start or 1) - 1, len(self.lines)):
            if re.search(pattern, self.lines[number]):
                return number + 1
            if start is not None and number >= start and _NEW_PART.match(self.lines[number]):
                return None
        return None

    def _find_header(self, parts: list[str]) -> tuple[int | None, int]:
        """Return the line of the TOML table with the longest name that `parts` starts with, and its number of parts."""
        for n in range(len(parts), 0, -1):
            name = r"\s*\.\s*".join(rf"""["']?{re.escape(part)}["']?""" for part in parts[:n])
            header = re.compile(rf"\s*\[+\s*{name}\s*\]")
            for number, line in enumerate(self.lines, start=1):
                if header.match(line):
                    return number, n
        return None, 0

    def table(self, value: Any, where: str, allowed: set[str] | None = None) -> dict[str, Any]:
        """Return a table. Raise StimulusError if it has fields that are not allowed.

        Parameters
        ----------
        value : object
            Value as read.
        where : str
            Place in the file, for messages.
        allowed : set of str, optional
            Allowed fields. If None, any.
        """
        if not isinstance(value, dict):
            self.fail(where, f"expected a table of fields, got {describe_type(value)}")
        if allowed is not None and value.keys() - allowed:
            self.read_each(partial(self._fail_unknown, where, allowed), (key for key in value if key not in allowed))
        return value

    def _fail_unknown(self, where: str, allowed: set[str], key: str) -> NoReturn:
        similar = find_nearest_names(key, allowed)
        hint = f"did you mean {similar[0]!r}?" if similar else f"allowed: {', '.join(sorted(allowed))}"
        self.fail(f"{where}.{key}" if where else key, f"unknown field; {hint}")

    def read_fields(
        self,
        value: Any,
        where: str,
        readers: Readers,
        problems: list[str],
        required: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Read the valid fields of a table and add the errors of the others to `problems`.

        Parameters
        ----------
        value : object
            Value as read.
        where : str
            Place in the file, for messages.
        readers : mapping
            Function per allowed field, from a value and its place in the file to the result.
        problems : list of str
            Error messages. New ones are appended.
        required : iterable of str
            Fields that must not be missing.

        Returns
        -------
        dict
            Valid fields by name.
        """
        fields: dict[str, Any] = {}
        with collect_problems(problems):
            self.table(value, where, set(readers))
        present = value if isinstance(value, dict) else {}
        for key in (key for key in present if key in readers):
            with collect_problems(problems):
                fields[key] = readers[key](present[key], f"{where}.{key}" if where else key)
        if isinstance(value, dict):
            missing = [key for key in required if key not in value]
            problems += [f"{self.format_location(where)}: the field {key!r} is missing" for key in missing]
        return fields

    def record(self, value: Any, where: str, readers: Readers, required: Iterable[str] = ()) -> dict[str, Any]:
        """Read the fields of a table. Raise one StimulusError that lists all errors.

        Parameters
        ----------
        value : object
            Value as read.
        where : str
            Place in the file, for messages.
        readers, required
            As for `read_fields`.
        """
        problems: list[str] = []
        fields = self.read_fields(value, where, readers, problems, required)
        raise_problems(problems)
        return fields

    def items(self, value: Any, where: str, read: Callable[[Any, str], Result], kind: str) -> tuple[Result, ...]:
        """Read every item of a list.

        Parameters
        ----------
        value : object
            Value as read.
        where : str
            Place in the file, for messages.
        read : callable
            Function from an item and its place to the result.
        kind : str
            What the items are, for messages.
        """
        if not isinstance(value, list):
            self.fail(where, f"expected a list of {kind}, got {describe_type(value)}")
        return tuple(self.read_each(lambda item: read(item[1], f"{where}[{item[0]}]"), enumerate(value)))

    def raw_value(self, value: Any, _where: str) -> Any:
        """Return the value without checking it."""
        return value

    def string(self, value: Any, where: str) -> str:
        """Return a text that is not empty."""
        if not isinstance(value, str) or not value.strip():
            self.fail(where, f"expected a text that is not empty, got {describe_type(value)}")
        return value

    def choice(self, value: Any, where: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed values.

        Parameters
        ----------
        value : object
            Value as read.
        where : str
            Place in the file, for messages.
        allowed : sequence of str
            Allowed values.
        """
        if value not in allowed:
            self.fail(where, f"expected one of {', '.join(allowed)}, got {describe_type(value)}")
        return str(value)

    def strings(self, value: Any, where: str) -> tuple[str, ...]:
        """Return a list of texts that is not empty."""
        if value == []:
            self.fail(where, "the list is empty")
        return self.items(value, where, self.string, "texts")

    def distinct_words(self, value: Any, where: str) -> tuple[str, ...]:
        """Return a list of words without repetitions."""
        words = self.strings(value, where)
        padded = [i for i, word in enumerate(words) if word != word.strip()]
        mistakes = [(f"{where}[{i}]", f"the word {words[i]!r} begins or ends with a blank") for i in padded]
        repeated = [word for word, count in Counter(words).items() if count > 1]
        mistakes += [(where, f"the word {word!r} appears twice") for word in repeated]
        self.read_each(lambda mistake: self.fail(*mistake), mistakes)
        return words

    def texts_by_name(self, value: Any, where: str) -> tuple[tuple[str, str], ...]:
        """Return the names and texts of a table."""
        return tuple((key, self.string(text, f"{where}.{key}")) for key, text in self.table(value, where).items())

    def flag(self, value: Any, where: str) -> bool:
        """Return True or False."""
        if not isinstance(value, bool):
            self.fail(where, f"expected true or false, got {describe_type(value)}")
        return value


def describe_type(value: Any) -> str:
    """Return type and value for an error message."""
    if value is None:
        return "nothing"
    return f"{type(value).__name__} {value!r}"[:60]
