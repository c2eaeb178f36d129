"""Progress of long steps: bars on a terminal, plain lines elsewhere, both with rate and time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from biassay.files import printable
from biassay.results.labels import short_name

__all__ = ["Bars", "Lines", "duration"]

_SECONDS_BETWEEN_LINES = 5.0
_BYTES = "bytes"
_STEPS = {  # what is done with a unit, in plain words, and what its number is called
    "texts asked": ("encoding", "texts"),
    "blanks asked": ("filling in blanks", "blanks"),
    "contexts asked": ("encoding", "contexts"),
    "tests": ("measuring", "tests"),
    "measures": ("measuring", "measures"),
    "readings": ("reading layers", "readings"),
    "words": ("searching", "words"),
    "figures": ("drawing", "figures"),
    _BYTES: ("reading", "MB"),
}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(seconds: float) -> str:
    """A time as a person says it: 45 s, 1 min 20 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    for size, large, small, part in ((_DAY, "d", "h", _HOUR), (_HOUR, "h", "min", _MINUTE), (_MINUTE, "min", "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def _amount(number: float, unit: str) -> str:
    if unit != _BYTES:
        return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{number / 1e6:,.0f}" if number >= 10_000_000 else f"{number / 1e6:.2g}"


def _step(who: str, unit: str) -> str:
    """Whose step it is, and what is done."""
    return f"{short_name(who)}: {_STEPS[unit][0]}" if unit in _STEPS else short_name(who)


def _pace(rate: float, unit: str) -> str:
    """Units in a second; of slow ones, how long each takes."""
    if not rate:
        return ""
    if unit == _BYTES:
        return f", {_amount(rate, unit)} MB/s"
    return f", {_amount(rate, unit)}/s" if rate >= 1.0 else f", {duration(1.0 / rate)} each"


class _Clock:
    """Rates of steps since each began; work done before that does not count."""

    def __init__(self) -> None:
        self._began: dict[tuple[str, str], tuple[float, int]] = {}

    def rate(self, who: str, unit: str, done: int) -> float:
        """Units per second; 0 where it is not known yet."""
        now = time.monotonic()
        began, before = self._began.setdefault((who, unit), (now, done))
        return (done - before) / (now - began) if now > began and done > before else 0.0

    def said(self, who: str, unit: str, done: int, total: int) -> tuple[str, str]:
        """How much is done and how fast, and how long the rest will take; a total of 0 is not known."""
        rate = self.rate(who, unit, done)
        of = f" of {_amount(total, unit)}" if total else ""
        name = _STEPS[unit][1] if unit in _STEPS else unit
        left = f"{duration((total - done) / rate)} left" if rate and done < total else ""
        return f"{_amount(done, unit)}{of} {name}{_pace(rate, unit)}", left


class _Time(ProgressColumn):
    """The time left, and of what cannot be counted the time since it began."""

    def render(self, task: Task) -> Text:
        return Text(duration(task.elapsed or 0.0) if task.fields["left"] is None else task.fields["left"])


class Bars:
    """Progress bars."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TextColumn("{task.fields[amount]}"))
        self._progress = Progress(*columns, _Time(), console=console)
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._begun: TaskID | None = None
        self._clock = _Clock()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_step()
        self._progress.stop()

    def begin(self, who: str, what: str) -> None:
        self._end_step()
        text = printable(f"{short_name(who)}: {what}")
        self._begun = self._progress.add_task(text, total=None, amount="", left=None)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        self._end_step()
        key = who, unit
        if key not in self._tasks:
            text = printable(_step(who, unit))
            self._tasks[key] = self._progress.add_task(text, total=total or None, amount="", left="")
        amount, left = self._clock.said(who, unit, done, total)
        self._progress.update(self._tasks[key], completed=done, total=total or None, amount=amount, left=left)

    def notice(self, message: str) -> None:
        self._progress.console.print(printable(message), markup=False, highlight=False)

    def _end_step(self) -> None:
        if self._begun is not None:
            self._progress.remove_task(self._begun)
            self._begun = None


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

    def begin(self, who: str, what: str) -> None:
        self._say(f"{short_name(who)}: {what}", last=True)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        amount, left = self._clock.said(who, unit, done, total)
        self._say(f"{_step(who, unit)}: {amount}{f', {left}' if left else ''}", last=done == total)

    def notice(self, message: str) -> None:
        self._say(message, last=True)

    def _say(self, message: str, *, last: bool) -> None:
        if self._quiet or not (last or time.monotonic() - self._last > _SECONDS_BETWEEN_LINES):
            return
        self._last = time.monotonic()
        self._console.print(printable(message), markup=False, highlight=False, soft_wrap=True)
