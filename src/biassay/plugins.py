"""What other packages add to biassay, by entry points. Nothing is read before it is needed.

An entry point that cannot be used is named in a warning and left out; the rest goes on.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from biassay.errors import PluginWarning, UsageError

if TYPE_CHECKING:
    from importlib import metadata

__all__ = ["load_plugins", "package_of", "plugin_names", "refuse_clash", "skim_names"]


def load_plugins(
    group: str, builtin_names: Collection[str], kind: type = object, use: Callable[[Any], Any] = lambda given: given
) -> dict[str, Any]:
    """What the entry points of a group give, by name; a name of biassay's own or of two packages is left out.

    ``kind`` is the class of what is expected; an object of it that has a ``name`` is registered under that name.
    ``use`` turns what is given into what is kept; if it fails, that is left out too.
    """
    points = _points(group)
    if group not in _loaded or _loaded[group][0] is not points:
        _loaded[group] = points, dict(_load_all(group, builtin_names, kind, use))
    return _loaded[group][1]


_loaded: dict[str, tuple[object, dict[str, Any]]] = {}
"""What was loaded, so that a package that fails is imported, and named, once."""


def _load_all(
    group: str, builtin_names: Collection[str], kind: type, use: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    for point in _points(group):
        try:
            if point.name in builtin_names:
                raise UsageError(f"biassay has a {point.name!r} of its own")
            refuse_clash(group, point.name)
            yield point.name, use(_load(point, kind))
        except Exception as error:  # a module of somebody else fails in every way there is
            reason = str(error) if isinstance(error, UsageError) else f"it cannot be loaded: {error!r}"
            warnings.warn(f"{_who(point)} is left out: {reason}", PluginWarning, stacklevel=3)


def plugin_names(group: str) -> dict[str, str]:
    """The names that entry points of a group have, each with who gives it. Nothing is imported."""
    return {point.name: _package(point) for point in _points(group)}


def package_of(group: str, name: str) -> str:
    """The distribution that registers a name; "biassay" where none does."""
    return next((point.dist.name for point in _points(group) if point.name == name and point.dist), "biassay")


def refuse_clash(group: str, name: str) -> None:
    """Refuse a name that two packages register: it is not clear which is meant. Nothing is imported."""
    owners = [_package(point) for point in _points(group) if point.name == name]
    if len(owners) > 1:
        raise UsageError(f"{name!r} is given by {' and by '.join(owners)} ({group}); uninstall one of them")


def skim_names(group: str) -> dict[str, str]:
    """The same as `plugin_names` in a tenth of the time, for a list that is only looked at.

    Files of packages that lie in folders are read as text; `importlib.metadata` takes 30 ms to be imported.
    """
    found: dict[str, str] = {}
    for place in _metadata_folders():
        with suppress(OSError), open(f"{place}/entry_points.txt", encoding="utf-8", errors="replace") as file:
            section = file.read().partition(f"[{group}]")[2].partition("\n[")[0]
            package = os.path.basename(place).partition("-")[0].replace("_", "-")
            lines = (line.partition("=") for line in section.splitlines())
            found |= {name.strip(): f"the package {package}" for name, given, _ in lines if given}
    return found


def _metadata_folders() -> Iterator[str]:
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as entries:
            yield from (entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))


@cache
def _points(group: str) -> tuple[metadata.EntryPoint, ...]:
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))


def _load(point: metadata.EntryPoint, kind: type) -> object:
    given = point.load()
    if not isinstance(given, kind):
        raise UsageError(f"{point.value} is of type {type(given).__name__}, not {kind.__name__}")
    called = point.name if kind is object else getattr(given, "name", point.name)
    if called != point.name:
        raise UsageError(f"{point.value} has the name {called!r}")
    return given


def _package(point: metadata.EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else point.value


def _who(point: metadata.EntryPoint) -> str:
    return f"{point.name!r} of {_package(point)} ({point.group})"
