"""Tables of numbers: how they are written, and what differs between two.

A key is (model, item, quantity): the model as it was typed; what was measured of it (a test, a group, a word of a
group); the name of the number. A value is a number, a text, or a list or mapping of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Table = dict[tuple[str, str, str], Any]


def to_text(table: Table, digits: int) -> str:
    """Format one line per number, sorted, floats to some significant digits."""
    lines = (json.dumps([*key, _rounded(value, digits)], ensure_ascii=False) for key, value in sorted(table.items()))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, list):
        return [_rounded(part, digits) for part in value]
    return {name: _rounded(part, digits) for name, part in value.items()} if isinstance(value, dict) else value


def from_text(text: str) -> Table:
    return {(model, item, quantity): value for model, item, quantity, value in json.loads(text)}


@dataclass(frozen=True)
class Tolerance:
    """Floats may differ by ``relative`` of their size or by ``absolute``; all else is equal or differs.

    They are recorded to this number of significant ``digits``.
    """

    relative: float
    absolute: float
    digits: int

    def allows(self, one: float, other: float) -> bool:
        return math.isclose(one, other, rel_tol=self.relative, abs_tol=self.absolute)


def differences(recorded: Table, found: Table, tolerance: Tolerance) -> Iterator[str]:
    """What differs, path by path. A quantity that was not recorded is none: a run may say more than it did."""
    before, now = ({key[:2] for key in table} for table in (recorded, found))
    yield from (f"{_path(*item)}: recorded, and not found" for item in sorted(before - now))
    yield from (f"{_path(*item)}: found, and not recorded" for item in sorted(now - before))
    for (model, item, quantity), value in sorted(recorded.items()):
        if (model, item) in now:
            path = f"{_path(model, item)}.{quantity}"
            if (model, item, quantity) not in found:
                yield f"{path}: recorded, and not found"
            else:
                yield from _unlike(path, value, found[model, item, quantity], tolerance)


def _path(model: str, item: str) -> str:
    return f"[{model}][{item}]"


def _unlike(path: str, one: Any, other: Any, tolerance: Tolerance) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        for name in one:
            yield from _unlike(f"{path}.{name}", one[name], other[name], tolerance)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _unlike(f"{path}[{place}]", a, b, tolerance)
    elif isinstance(one, float) and isinstance(other, float):
        if not tolerance.allows(one, other):
            yield f"{path}: {one!r} != {other!r}"
    elif type(one) is not type(other) or one != other:
        yield f"{path}: {one!r} != {other!r}"
