"""Records to JSON and TSV, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from biassay.errors import RunFolderError
from biassay.files import json_with_digest

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

__all__ = ["structured", "to_file", "to_json", "unstructured"]

_T = TypeVar("_T")
_BY_NAME = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@cache
def _converter() -> JsonConverter:
    from cattrs.preconf.json import make_converter  # only what reads a run waits for it

    converter = make_converter()
    converter.register_structure_hook(float, lambda value, _: _float_in(value))
    converter.register_structure_hook(str | dict[str, Any], lambda value, _: _text_or_dict(value))
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


def _text_or_dict(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError(f"expected a text or a dict, got {value!r}")
    return value


def unstructured(record: Any) -> Any:
    """A record as plain data that JSON can hold."""
    if isinstance(record, float):
        return _float_out(record)
    if record is None or isinstance(record, str | int):
        return record
    if isinstance(record, Mapping):
        return {key: unstructured(value) for key, value in record.items()}
    if isinstance(record, list | tuple | Set):
        return [unstructured(value) for value in record]
    if is_dataclass(record):
        return {field.name: unstructured(getattr(record, field.name)) for field in fields(record)}
    return record


def to_json(record: Any) -> str:
    return json.dumps(unstructured(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_file(record: Any) -> bytes:
    """A record as the JSON of a file: with a digest, so that damage is found when it is read."""
    return json_with_digest(unstructured(record)).encode()


def structured(content: object, kind: type[_T], where: str) -> _T:
    """A record from parsed JSON; an error says where it came from and what is wrong with it."""
    from cattrs import transform_error
    from cattrs.errors import BaseValidationError

    try:
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
