"""Records to JSON and TSV, and back."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from cattrs import transform_error
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import JsonConverter, make_converter

from biassay.errors import RunFolderError
from biassay.files import check_digest, harmless_cell, json_with_digest, read_json
from biassay.results.intervals import interval_of
from biassay.results.records import PAPER_COLUMNS, Contextual, Result

__all__ = ["cells", "columns", "from_json", "structured", "to_file", "to_json", "to_tsv", "tsv_lines"]

_T = TypeVar("_T")
_BY_NAME = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# What taking JSON apart raises where it is not of the shape that is expected.
_WRONG = (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
_NOT_IN_TSV = ("leaning", "contextual", "too_rare")
_CONTEXTUAL = tuple(field.name for field in dataclasses.fields(Contextual) if field.name != "num_contexts")
_INTERVAL = ("interval_low", "interval_high", "confidence")


@cache
def _converter() -> JsonConverter:
    converter = make_converter()
    converter.register_unstructure_hook(float, _float_out)
    converter.register_structure_hook(float, lambda value, _: _float_in(value))
    converter.register_structure_hook(float | None, lambda value, _: None if value is None else _float_in(value))
    return converter


def _float_out(value: float) -> float | str:
    """JSON has no word for these three; strings are what every reader can take."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _float_in(value: Any) -> float:
    if isinstance(value, str):
        return _BY_NAME[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


def to_json(record: Any) -> str:
    return json.dumps(_converter().unstructure(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_file(record: Any) -> bytes:
    """A record as the JSON of a file: with a digest, so that damage is found when it is read."""
    return json_with_digest(_converter().unstructure(record)).encode()


def from_json(
    path: Path, kind: type[_T], version: int, holds: str | None = None, older: Callable[[Any], None] | None = None
) -> _T:
    """Read a file of records of a format version; an error names the file.

    ``holds`` is the kind of run that a manifest must be of, where only one kind will do; ``older`` brings the parsed
    content of an older biassay up to date.
    """
    content = read_json(path)
    found = content.get("format_version") if isinstance(content, dict) else None
    if found != version:
        raise RunFolderError(f"{path}: the run has format version {found}, this biassay reads {version}")
    found_kind = content.get("kind", "associations")
    if holds not in (None, found_kind):
        raise RunFolderError(
            f"{path}: the folder holds a run of kind {found_kind!r}; a run of {holds!r} is needed here"
        )
    if check_digest(content) is False:
        raise RunFolderError(
            f"{path}: damaged: not what was written (the digest differs); restore it from a copy or make the run "
            "again; if it was changed on purpose, remove its field 'digest'"
        )
    return structured(content, kind, str(path), older)


def structured(content: object, kind: type[_T], where: str, older: Callable[[Any], None] | None = None) -> _T:
    """A record from parsed JSON; an error says where it came from and what is wrong with it."""
    try:
        if older is not None:
            older(content)
        return _converter().structure(content, kind)
    except (
        BaseValidationError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        faults = "; ".join(transform_error(error)) if isinstance(error, BaseValidationError) else str(error)
        raise RunFolderError(f"{where}: not a record of biassay: {faults}") from error


def columns(results: tuple[Result, ...]) -> list[str]:
    """The columns of the table, the papers' nine first; those of tests over contexts only where there are such."""
    names = [field.name for field in dataclasses.fields(Result)]
    own = [name for name in names if name not in (*PAPER_COLUMNS, *_NOT_IN_TSV)]
    rare = ["too_rare"] if any(r.too_rare is not None for r in results) else []
    return [*PAPER_COLUMNS, *own, *rare, *(_CONTEXTUAL if any(r.contextual for r in results) else _INTERVAL)]


def cells(result: Result, names: Sequence[str]) -> list[Any]:
    """What stands in these columns of the table."""
    more = _of_contexts_or_words(result)
    return [more[name] if name in more else getattr(result, name) for name in names]


def _of_contexts_or_words(result: Result) -> dict[str, Any]:
    """The numbers of a test over contexts; of any other the interval over its words, where there is one."""
    if result.contextual is not None:
        return {name: getattr(result.contextual, name) for name in _CONTEXTUAL}
    found = interval_of(result)
    ends = (None, None, None) if found is None or found.low is None else (found.low, found.high, found.confidence)
    return dict.fromkeys(_CONTEXTUAL) | dict(zip(_INTERVAL, ends, strict=True))


def to_tsv(results: tuple[Result, ...]) -> str:
    """The papers' nine columns first and in order, then the project's own. An empty cell was not computed."""
    names = columns(results)
    return tsv_lines([names, *(cells(result, names) for result in results)])


def tsv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Rows of values as lines of cells."""
    return "".join("\t".join(map(_cell, row)) + "\n" for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        parts = (f"{key}: {', '.join(v) if isinstance(v, tuple) else v}" for key, v in value.items() if v)
        return _clean("; ".join(parts))
    return repr(value) if isinstance(value, float) else _clean(str(value))


def _clean(text: str) -> str:
    return harmless_cell(" ".join(text.split()))
