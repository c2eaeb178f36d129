"""The tools of the corpus scan, imported when they are first needed: `biassay --help` does without them."""

from __future__ import annotations

import importlib
from typing import Any

from biassay.errors import MissingExtraError

__all__ = ["tool"]


def tool(name: str) -> Any:
    """A module of the extra ``contexts``, by name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:  # it is there, and something it needs is not: that is another story
            raise
        raise MissingExtraError(f"reading contexts from a corpus uses {error.name} and", "contexts") from None
