"""How the user learns how far the work is."""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any, Protocol

from biassay.runs.pace import Clock, step_of

__all__ = ["InNotebook", "Listener", "PathLike", "Silent", "begin", "own_listener"]

PathLike = str | os.PathLike[str]
_SECONDS_BETWEEN = 0.5


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


class InNotebook:
    """One line of a notebook's output, written anew as the work goes on; nothing of what is done at once."""

    def __init__(self) -> None:
        self._line: Any = None
        self._last = time.monotonic()
        self._clock = Clock()

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        amount, left = self._clock.said(who, unit, done, total)
        now, is_last = time.monotonic(), done == total and self._line is not None
        if is_last or now - self._last >= _SECONDS_BETWEEN:
            self._last = now
            self._say(f"{step_of(who, unit)}: {amount}{f', {left}' if left else ''}")

    def notice(self, message: str) -> None:
        print(message)

    def _say(self, text: str) -> None:
        display: Any = importlib.import_module("IPython.display").display  # it has no types
        shown = {"text/plain": text}
        if self._line is None:
            self._line = display(shown, raw=True, display_id=True)
        else:
            self._line.update(shown, raw=True)


def own_listener() -> Listener:
    """Who listens where the user names nobody: a line in a notebook, and else no one."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    return InNotebook() if getattr(shell, "kernel", None) is not None else Silent()
