"""How the user learns how far the work is."""

from __future__ import annotations

import os
from typing import Protocol

__all__ = ["Listener", "PathLike", "Silent", "begin"]

PathLike = str | os.PathLike[str]


class Listener(Protocol):
    """Learns how far the work is; one that has a method ``begin(who, what)``, also what begins."""

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """So many ``unit`` of all are done of ``who``: a model, a corpus, a page. A total of 0 is not known."""
        ...

    def notice(self, message: str) -> None: ...


def begin(listener: Listener, who: str, what: str) -> None:
    """Tell a listener that has a method ``begin(who, what)`` that something begins of which nothing can be counted."""
    told = getattr(listener, "begin", None)
    if callable(told):
        told(who, what)


class Silent:
    """Learns it and says nothing."""

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        pass

    def notice(self, message: str) -> None:
        pass
