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
from biassay.runs.pace import Clock, duration, step_of

__all__ = ["Bars", "Lines"]

_SECONDS_BETWEEN_LINES = 5.0


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
        self._clock = Clock()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._endstep_of()
        self._progress.stop()

    def begin(self, who: str, what: str) -> None:
        self._endstep_of()
        self._clock.begin(who)
        text = printable(f"{short_name(who)}: {what}")
        self._begun = self._progress.add_task(text, total=None, amount="", left=None)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        self._endstep_of()
        key = who, unit
        if key not in self._tasks:
            text = printable(step_of(who, unit))
            self._tasks[key] = self._progress.add_task(text, total=total or None, amount="", left="")
        amount, left = self._clock.said(who, unit, done, total)
        self._progress.update(self._tasks[key], completed=done, total=total or None, amount=amount, left=left)

    def notice(self, message: str) -> None:
        self._progress.console.print(printable(message), markup=False, highlight=False)

    def _endstep_of(self) -> None:
        if self._begun is not None:
            self._progress.remove_task(self._begun)
            self._begun = None


class Lines:
    """A line now and then, for logs."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, 0.0
        self._clock = Clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, who: str, what: str) -> None:
        self._clock.begin(who)
        self._say(f"{short_name(who)}: {what}", last=True)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        amount, left = self._clock.said(who, unit, done, total)
        self._say(f"{step_of(who, unit)}: {amount}{f', {left}' if left else ''}", last=done == total)

    def notice(self, message: str) -> None:
        self._say(message, last=True)

    def _say(self, message: str, *, last: bool) -> None:
        if not (last or time.monotonic() - self._last > _SECONDS_BETWEEN_LINES):
            return
        self._last = time.monotonic()
        self._console.print(printable(message), markup=False, highlight=False, soft_wrap=True)
