"""Progress of long steps: bars on a terminal, plain lines elsewhere, both with rate and time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from biassay.files import printable

__all__ = ["Bars", "Lines"]

_SECONDS_BETWEEN_LINES = 5.0
_BYTES = "bytes"


def _amount(number: float, unit: str) -> str:
    if unit != _BYTES:
        return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{number / 1e6:,.0f}" if number >= 10_000_000 else f"{number / 1e6:.2g}"


def _name(unit: str) -> str:
    return "MB" if unit == _BYTES else unit


class _Clock:
    """Rates of steps since each began; work done before that does not count."""

    def __init__(self) -> None:
        self._began: dict[tuple[str, str], tuple[float, int]] = {}

    def rate(self, who: str, unit: str, done: int) -> float:
        """Units per second; 0 where it is not known yet."""
        now = time.monotonic()
        began, before = self._began.setdefault((who, unit), (now, done))
        return (done - before) / (now - began) if now > began and done > before else 0.0


class Bars:
    """Progress bars."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[amount]}"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=console)
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._clock = _Clock()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        key = who, unit
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(printable(who), total=total or None, amount="")
        rate = self._clock.rate(who, unit, done)
        of = f"/{_amount(total, unit)}" if total else ""
        each = f", {_amount(rate, unit)}/s" if rate else ""
        amount = f"{_amount(done, unit)}{of} {_name(unit)}{each}"
        self._progress.update(self._tasks[key], completed=done, total=total or None, amount=amount)

    def notice(self, message: str) -> None:
        self._progress.console.print(printable(message), markup=False, highlight=False)


class Lines:
    """A line now and then, for logs; nothing at all if quiet."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._last = 0.0
        self._clock = _Clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        rate = self._clock.rate(who, unit, done)
        of = f" of {_amount(total, unit)}" if total else ""  # what is compressed has no known length
        pace = f", {_amount(rate, unit)}/s" if rate else ""
        left = f", {(total - done) / rate:,.0f} s left" if rate and done < total else ""
        self._say(f"{who}: {_amount(done, unit)}{of} {_name(unit)}{pace}{left}", last=done == total)

    def notice(self, message: str) -> None:
        self._say(message, last=True)

    def _say(self, message: str, *, last: bool) -> None:
        if self._quiet or not (last or time.monotonic() - self._last > _SECONDS_BETWEEN_LINES):
            return
        self._last = time.monotonic()
        self._console.print(printable(message), markup=False, highlight=False, soft_wrap=True)
