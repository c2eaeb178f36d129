"""Records to JSON and TSV, and back."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any, TypeVar

from cattrs import transform_error
from cattrs.errors import BaseValidationError
from cattrs.preconf.json import JsonConverter, make_converter

from biassay.errors import RunFolderError
from biassay.files import json_with_digest

__all__ = ["structured", "to_file", "to_json", "unstructured"]

_T = TypeVar("_T")
_BY_NAME = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@cache
def _converter() -> JsonConverter:
    converter = make_converter()
    converter.register_unstructure_hook(float, _float_out)
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
    return _converter().unstructure(record)


def to_json(record: Any) -> str:
    return json.dumps(_converter().unstructure(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_file(record: Any) -> bytes:
    """A record as the JSON of a file: with a digest, so that damage is found when it is read."""
    return json_with_digest(_converter().unstructure(record)).encode()


def structured(content: object, kind: type[_T], where: str) -> _T:
    """A record from parsed JSON; an error says where it came from and what is wrong with it."""
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
