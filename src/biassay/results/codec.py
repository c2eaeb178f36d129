"""Records to JSON and TSV, and back."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from biassay.errors import RunFolderError
from biassay.files import json_with_digest
from biassay.results.arrays import IF_DAMAGED

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

__all__ = ["shown_value", "structured", "to_file", "to_json", "unstructured"]

_T = TypeVar("_T")
_LARGEST = 2**63 - 1
_LARGEST_FLOAT = 1e150  # squares of larger numbers overflow
_FAULTS = 3  # that an error lists
_SHORT = reprlib.Repr()
_BY_NAME = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@cache
def _converter() -> JsonConverter:
    from cattrs.preconf.json import make_converter  # only what reads a run waits for it

    converter = make_converter()
    converter.register_structure_hook(float, lambda value, _: _float_in(value))
    converter.register_structure_hook(int, lambda value, _: _int_in(value))
    converter.register_structure_hook(bool, lambda value, _: _bool_in(value))
    converter.register_structure_hook(str, lambda value, _: _text_in(value))
    converter.register_structure_hook(str | dict[str, Any], lambda value, _: _text_or_dict(value))
    converter.register_structure_hook(float | None, lambda value, _: None if value is None else _float_in(value))
    converter.register_structure_hook_func(lambda kind: _origin(kind) is Literal, _literal_in)
    converter.register_structure_hook_func(lambda kind: _origin(kind) is tuple, _tuple_in)
    converter.register_structure_hook_factory(
        lambda kind: _origin(kind) is dict, lambda kind: _dict_in(converter, kind)
    )
    return converter


def _origin(kind: Any) -> Any:
    return get_origin(kind)


def _float_out(value: float) -> float | str:
    """JSON has no word for these three; strings are what every reader can take."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _float_in(value: Any) -> float:
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_FLOAT:
        raise ValueError(f"expected a number within ±{_LARGEST_FLOAT:g}, got {shown_value(value)}")
    return float(value)


def _int_in(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        raise ValueError(f"expected a whole number below 2^63, got {shown_value(value)}")
    return value


def _bool_in(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown_value(value)}")
    return value


def _text_in(value: Any) -> str:
    """A text that can be written as UTF-8, which half of a surrogate pair cannot."""
    if not isinstance(value, str) or not (value.isascii() or value.isprintable() or _is_utf8(value)):
        raise ValueError(f"expected a text, got {shown_value(value)}")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text_or_dict(value: Any) -> Any:
    if not isinstance(value, dict):
        return _text_in(value)
    if not _is_utf8(json.dumps(value, ensure_ascii=False)):
        raise ValueError("expected a dict of texts that can be written as UTF-8")
    return value


def _literal_in(value: Any, kind: Any) -> str:
    if not isinstance(value, str) or value not in get_args(kind):
        raise ValueError(f"expected {' or '.join(map(repr, get_args(kind)))}, got {shown_value(value)}")
    return value


def _tuple_in(value: Any, kind: Any) -> tuple[Any, ...]:
    parts = get_args(kind)
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, got {shown_value(value)}")
    if parts[-1] is ...:
        return tuple(_converter().structure(value, list[parts[0]]))  # type: ignore[valid-type]
    if len(value) != len(parts):
        raise ValueError(f"expected {len(parts)} values, got {len(value)}")
    return tuple(_converter().structure(one, part) for one, part in zip(value, parts, strict=True))


def _dict_in(converter: JsonConverter, kind: Any) -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_mapping_structure_fn

    structure = make_mapping_structure_fn(kind, converter)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected names and values, got {shown_value(value)}")
        return structure(value, kind)

    return read


def shown_value(value: Any) -> str:
    """Return a value as an error shows it, shortened."""
    return _SHORT.repr(value)


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
    """Read a record from parsed JSON.

    Parameters
    ----------
    content : object
        Parsed JSON.
    kind : type
        The type to read.
    where : str
        The file, and the part of it that `content` is; every error begins with it.

    Raises
    ------
    RunFolderError
        Names the file, the field, and what is wrong with its value.
    """
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
        if not isinstance(error, BaseValidationError):
            raise RunFolderError(f"{where}: not a record of biassay: {_fault(error, None)}; {IF_DAMAGED}") from error
        told = [one.rpartition(" @ ") for one in transform_error(error, path="", format_exception=_fault)]
        faults = [f"{field.removeprefix('.')}: {fault}" if field else fault for fault, _, field in told]
        more = f"; and {len(faults) - _FAULTS} more" if len(faults) > _FAULTS else ""
        listed = f"{'; '.join(faults[:_FAULTS])}{more}"
        raise RunFolderError(f"{where}: not a record of biassay: {listed}; {IF_DAMAGED}") from error


def _fault(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return "missing"
    if isinstance(error, RecursionError):
        return "too many brackets inside each other"
    return str(error) if isinstance(error, ValueError) else f"not as expected ({type(error).__name__})"
