"""Lazy imports of the names that the type stub of a module lists."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\w+) as \w+$", re.MULTILINE)


def attach_stub(module: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module, so that each name is imported on first use.

    Parameters
    ----------
    module : str
        Name of the module.
    file : str
        File of the module, beside its stub ``.pyi`` with a line ``from MODULE import NAME as NAME`` per name.
    """
    homes = {name: home for home, name in _IMPORT.findall(Path(file).with_suffix(".pyi").read_text("utf-8"))}

    def get_attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get_attribute, lambda: sorted({*homes, *vars(import_module(module))}), sorted(homes)
