"""Optional libraries and entry points of other packages.

biassay loads an entry point when it is needed. It warns about one that it cannot use and skips it.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from biassay.errors import MissingExtraError, PluginWarning, UsageError

if TYPE_CHECKING:
    from importlib import metadata


def load_plugins(
    group: str, builtin_names: Collection[str], kind: type = object, convert: Callable[[Any], Any] = lambda value: value
) -> dict[str, Any]:
    """Load the entry points of a group, once per process.

    Parameters
    ----------
    group : str
        Entry point group.
    builtin_names : collection of str
        Names that biassay uses itself; an entry point with such a name is skipped.
    kind : type
        Expected class. An object of it with an attribute ``name`` must be registered under that name.
    convert : callable
        Function from the loaded object to the returned one. An entry point for which it fails is skipped.

    Returns
    -------
    dict
        Objects by name.
    """
    points = _get_entry_points(group)
    if group not in _loaded or _loaded[group][0] is not points:
        _loaded[group] = points, dict(_load_all(group, builtin_names, kind, convert))
    return _loaded[group][1]


_loaded: dict[str, tuple[object, dict[str, Any]]] = {}
"""Loaded objects by group, so that a failing package is imported and reported once."""


def _load_all(
    group: str, builtin_names: Collection[str], kind: type, convert: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    for point in _get_entry_points(group):
        try:
            if point.name in builtin_names:
                raise UsageError(f"biassay defines {point.name!r} itself")
            check_unique_name(group, point.name)
            yield point.name, convert(_load(point, kind))
        except Exception as error:  # code of another package may raise anything
            reason = str(error) if isinstance(error, UsageError) else f"it cannot be loaded: {error!r}"
            origin = f"{point.name!r} of {_get_package_name(point)} ({point.group})"
            warnings.warn(f"{origin} is skipped: {reason}", PluginWarning, stacklevel=3)


def get_plugin_names(group: str) -> dict[str, str]:
    """Return the names of the entry points of a group with their packages, without importing them."""
    return {point.name: _get_package_name(point) for point in _get_entry_points(group)}


def find_package(group: str, name: str) -> str:
    """Return the distribution that registers a name, or "biassay" if none does."""
    return next((point.dist.name for point in _get_entry_points(group) if point.name == name and point.dist), "biassay")


def check_unique_name(group: str, name: str) -> None:
    """Raise UsageError if two packages register the same name."""
    owners = [_get_package_name(point) for point in _get_entry_points(group) if point.name == name]
    if len(owners) > 1:
        raise UsageError(f"{name!r} is registered by {' and '.join(owners)} ({group}); uninstall one of them")


def list_names_fast(group: str) -> dict[str, str]:
    """Return the result of `get_plugin_names` in a tenth of the time, for the list of commands.

    Importing `importlib.metadata` takes 30 ms, so this reads the metadata of installed packages as text.
    """
    names: dict[str, str] = {}
    for folder in _iter_metadata_folders():
        with suppress(OSError), open(f"{folder}/entry_points.txt", encoding="utf-8", errors="replace") as file:
            section = file.read().partition(f"[{group}]")[2].partition("\n[")[0]
            package = os.path.basename(folder).partition("-")[0].replace("_", "-")
            lines = (line.partition("=") for line in section.splitlines())
            names |= {name.strip(): f"the package {package}" for name, separator, _ in lines if separator}
    return names


def _iter_metadata_folders() -> Iterator[str]:
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as entries:
            yield from (entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))


@cache
def _get_entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))


def _load(point: metadata.EntryPoint, kind: type) -> object:
    loaded: object = point.load()
    if not isinstance(loaded, kind):
        raise UsageError(f"{point.value} is of type {type(loaded).__name__}, not {kind.__name__}")
    name = point.name if kind is object else getattr(loaded, "name", point.name)
    if name != point.name:
        raise UsageError(f"{point.value} has the name {name!r}")
    return loaded


def _get_package_name(point: metadata.EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else point.value


def import_object(path: str) -> Any:
    """Import an object by its path, MODULE:NAME."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def require(module: str) -> Any:
    """Import a module of an optional dependency.

    Raises
    ------
    MissingExtraError
        If the package is not installed; the message names the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise  # the package is installed, but one of its dependencies is missing
        raise MissingExtraError(f"reading contexts from a corpus uses {error.name} and", "contexts") from None
