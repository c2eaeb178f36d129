"""Progress listeners, rates and remaining time."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from typing import Any, Protocol

from biassay.results.run_data import short_name

PathLike = str | os.PathLike[str]
_BYTES = "bytes"
_VERBS = {
    "texts": "encoding",
    "blanks": "filling in blanks",
    "prompts": "asking",
    "sentences": "reading",
    "contexts": "encoding",
    "tests": "measuring",
    "measures": "measuring",
    "layers and poolings": "measuring",
    "words": "searching",
    "figures": "drawing",
    _BYTES: "reading",
}
_LOADING_FIRST = frozenset({"contexts"})  # workers load the model after the step was announced
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SECONDS_BETWEEN_UPDATES = 0.5


def format_duration(seconds: float) -> str:
    """Format a duration with its two largest units: 45 s, 1 min 20 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    for size, large, small, part in ((_DAY, "d", "h", _HOUR), (_HOUR, "h", "min", _MINUTE), (_MINUTE, "min", "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def _format_amount(number: float, unit: str) -> str:
    if unit != _BYTES:
        return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{number / 1e6:,.0f}" if number >= 10_000_000 else f"{number / 1e6:.2g}"


def describe_step(who: str, unit: str) -> str:
    """Describe a step by its model and activity, such as "glove: encoding"."""
    return f"{short_name(who)}: {_VERBS[unit]}" if unit in _VERBS else short_name(who)


def _format_rate(rate: float, unit: str) -> str:
    """Format units per second, or seconds per unit if there is less than one per second."""
    if not rate:
        return ""
    if unit == _BYTES:
        return f", {_format_amount(rate, unit)} MB/s"
    return f", {_format_amount(rate, unit)}/s" if rate >= 1.0 else f", {format_duration(1.0 / rate)} each"


class ProgressClock:
    """Measure the rate of every step since it began; work done before that does not count."""

    def __init__(self) -> None:
        self._began: dict[tuple[str, str], tuple[float, int]] = {}
        self._announced: dict[str, float] = {}

    def begin(self, who: str) -> None:
        """Start the clock for the next step of a model. Without it, a step starts when it first reports progress."""
        self._announced[who] = time.monotonic()

    def _get_rate(self, who: str, unit: str, done: int) -> float:
        """Return units per second, or 0 if the rate is not known yet."""
        now = time.monotonic()
        if (who, unit) not in self._began:
            announced = self._announced.pop(who, None)
            if announced is None or unit in _LOADING_FIRST:
                self._began[who, unit] = now, done
            else:
                self._began[who, unit] = announced, 0
        began, before = self._began[who, unit]
        return (done - before) / (now - began) if now > began and done > before else 0.0

    def format(self, who: str, unit: str, done: int, total: int) -> tuple[str, str]:
        """Format the amount done with its rate, and the time left, which may be empty.

        Parameters
        ----------
        who : str
            The model, corpus or file.
        unit : str
            What is counted.
        done, total : int
            Counts; a total of 0 is unknown.
        """
        rate = self._get_rate(who, unit, done)
        of_total = f" of {_format_amount(total, unit)}" if total else ""
        name = "MB" if unit == _BYTES else unit
        left = f"{format_duration((total - done) / rate)} left" if rate and done < total else ""
        return f"{_format_amount(done, unit)}{of_total} {name}{_format_rate(rate, unit)}", left


class Listener(Protocol):
    """Receive progress and warnings.

    A listener may also have a method ``begin(who, what)``, which is called when a step begins that cannot be counted.
    """

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """Receive the progress of a step.

        Parameters
        ----------
        who : str
            Model, corpus or file.
        unit : str
            What is counted, in the plural.
        done, total : int
            Numbers of units; a total of 0 is unknown.
        """

    def notice(self, message: str) -> None:
        """Receive a warning or a remark."""


def announce_step(listener: Listener, who: str, what: str) -> None:
    """Announce a step that cannot be counted.

    Parameters
    ----------
    listener : Listener
        Ignored if it has no method ``begin(who, what)``.
    who : str
        The model, corpus or file.
    what : str
        The step, such as "loading the model".
    """
    begin = getattr(listener, "begin", None)
    if callable(begin):
        begin(who, what)


class NullListener:
    """Ignore all progress and warnings."""

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """Ignore progress; see `Listener.progress`."""

    def notice(self, message: str) -> None:
        """Ignore a warning."""


class SynchronizedListener:
    """Pass calls from several threads to a listener, one at a time."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._lock = listener, threading.Lock()

    def begin(self, who: str, what: str) -> None:
        """Announce a step."""
        with self._lock:
            announce_step(self._listener, who, what)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """Pass on progress; see `Listener.progress`."""
        with self._lock:
            self._listener.progress(who, unit, done, total)

    def notice(self, message: str) -> None:
        """Pass on a warning."""
        with self._lock:
            self._listener.notice(message)


class NotebookListener:
    """Update one line of a notebook's output; steps that take less than half a second are not shown."""

    def __init__(self) -> None:
        self._line: Any = None
        self._last = time.monotonic()
        self._clock = ProgressClock()

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """Show progress, at most twice a second; see `Listener.progress`."""
        amount, left = self._clock.format(who, unit, done, total)
        now, is_last = time.monotonic(), done == total and self._line is not None
        if is_last or now - self._last >= _SECONDS_BETWEEN_UPDATES:
            self._last = now
            self._display(f"{describe_step(who, unit)}: {amount}{f', {left}' if left else ''}")

    def notice(self, message: str) -> None:
        """Print a warning."""
        print(message)

    def _display(self, text: str) -> None:
        display: Any = importlib.import_module("IPython.display").display  # it has no types
        content = {"text/plain": text}
        if self._line is None:
            self._line = display(content, raw=True, display_id=True)
        else:
            self._line.update(content, raw=True)


def default_listener() -> Listener:
    """Return a listener that shows progress in a notebook, and one that ignores it elsewhere."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    return NotebookListener() if getattr(shell, "kernel", None) is not None else NullListener()
