"""Convert records to JSON and back."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from biassay.errors import RunFolderError
from biassay.io import dump_json_with_digest

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter


_T = TypeVar("_T")
_MAX_INT = 2**63 - 1
_MAX_FLOAT = 1e150  # squares of larger numbers overflow
_MAX_FAULTS = 3  # faults that an error lists
DAMAGE_HINT = "copy the whole folder of the run again, or make the run again"
"""Advice for missing or damaged files of a run."""
_SHORT_REPR = reprlib.Repr()
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@cache
def _make_converter() -> JsonConverter:
    from cattrs.preconf.json import make_converter  # imported only when a run is read

    converter = make_converter()
    converter.register_structure_hook(float, lambda value, _: _load_float(value))
    converter.register_structure_hook(int, lambda value, _: _load_int(value))
    converter.register_structure_hook(bool, lambda value, _: _load_bool(value))
    converter.register_structure_hook(str, lambda value, _: _load_text(value))
    converter.register_structure_hook(str | dict[str, Any], lambda value, _: _load_text_or_dict(value))
    converter.register_structure_hook(float | None, lambda value, _: None if value is None else _load_float(value))
    converter.register_structure_hook_func(lambda kind: _get_origin(kind) is Literal, _load_literal)
    converter.register_structure_hook_func(lambda kind: _get_origin(kind) is tuple, _load_tuple)
    converter.register_structure_hook_factory(
        lambda kind: _get_origin(kind) is dict, lambda kind: _make_dict_loader(converter, kind)
    )
    return converter


def _get_origin(kind: Any) -> Any:
    return get_origin(kind)


def _dump_float(value: float) -> float | str:
    """Convert NaN and infinities, which JSON cannot express, to strings."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _load_float(value: Any) -> float:
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MAX_FLOAT:
        raise ValueError(f"expected a number within ±{_MAX_FLOAT:g}, got {format_stored_value(value)}")
    return float(value)


def _load_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_INT:
        raise ValueError(f"expected a whole number below 2^63, got {format_stored_value(value)}")
    return value


def _load_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {format_stored_value(value)}")
    return value


def _load_text(value: Any) -> str:
    """Check that a text can be written as UTF-8, which half of a surrogate pair cannot."""
    if not isinstance(value, str) or not (value.isascii() or value.isprintable() or _is_utf8(value)):
        raise ValueError(f"expected a text, got {format_stored_value(value)}")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _load_text_or_dict(value: Any) -> Any:
    if not isinstance(value, dict):
        return _load_text(value)
    if not _is_utf8(json.dumps(value, ensure_ascii=False)):
        raise ValueError("expected a dict of texts that can be written as UTF-8")
    return value


def _load_literal(value: Any, kind: Any) -> str:
    if not isinstance(value, str) or value not in get_args(kind):
        raise ValueError(f"expected {' or '.join(map(repr, get_args(kind)))}, got {format_stored_value(value)}")
    return value


def _load_tuple(value: Any, kind: Any) -> tuple[Any, ...]:
    parts = get_args(kind)
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, got {format_stored_value(value)}")
    if parts[-1] is ...:
        return tuple(_make_converter().structure(value, list[parts[0]]))  # type: ignore[valid-type]
    if len(value) != len(parts):
        raise ValueError(f"expected {len(parts)} values, got {len(value)}")
    return tuple(_make_converter().structure(one, part) for one, part in zip(value, parts, strict=True))


def _make_dict_loader(converter: JsonConverter, kind: Any) -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_mapping_structure_fn

    structure = make_mapping_structure_fn(kind, converter)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected names and values, got {format_stored_value(value)}")
        return structure(value, kind)

    return read


def format_stored_value(value: Any) -> str:
    """Return a value as an error shows it, shortened."""
    return _SHORT_REPR.repr(value)


def unstructure_record(record: Any) -> Any:
    """Return a record as plain data that JSON can hold."""
    if isinstance(record, float):
        return _dump_float(record)
    if record is None or isinstance(record, str | int):
        return record
    if isinstance(record, Mapping):
        return {key: unstructure_record(value) for key, value in record.items()}
    if isinstance(record, list | tuple | Set):
        return [unstructure_record(value) for value in record]
    if is_dataclass(record):
        return {field.name: unstructure_record(getattr(record, field.name)) for field in fields(record)}
    return record


def to_json(record: Any) -> str:
    """Return a record as JSON."""
    return json.dumps(unstructure_record(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_json_bytes(record: Any) -> bytes:
    """Return a record as JSON with a digest, so that damage is detected."""
    return dump_json_with_digest(unstructure_record(record)).encode()


def structure_record(content: object, kind: type[_T], where: str) -> _T:
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
        Names the file, the field, and the error in its value.
    """
    from cattrs import transform_error
    from cattrs.errors import BaseValidationError

    try:
        return _make_converter().structure(content, kind)
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
            raise RunFolderError(
                f"{where}: not a record of biassay: {_format_fault(error, None)}; {DAMAGE_HINT}"
            ) from error
        told = [line.rpartition(" @ ") for line in transform_error(error, path="", format_exception=_format_fault)]
        faults = [f"{field.removeprefix('.')}: {fault}" if field else fault for fault, _, field in told]
        more = f"; and {len(faults) - _MAX_FAULTS} more" if len(faults) > _MAX_FAULTS else ""
        listed = f"{'; '.join(faults[:_MAX_FAULTS])}{more}"
        raise RunFolderError(f"{where}: not a record of biassay: {listed}; {DAMAGE_HINT}") from error


def _format_fault(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return "missing"
    if isinstance(error, RecursionError):
        return "brackets are nested too deeply"
    return str(error) if isinstance(error, ValueError) else f"not as expected ({type(error).__name__})"
