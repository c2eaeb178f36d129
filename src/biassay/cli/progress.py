"""Progress bars and log lines."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from biassay.io import make_printable
from biassay.results.run_data import short_name
from biassay.runs.progress import Listener, NullListener, ProgressClock, describe_step, format_duration

_SECONDS_BETWEEN_LINES = 5.0


class _TimeColumn(ProgressColumn):
    """Column with the time left, or the elapsed time of a step that cannot be counted."""

    def render(self, task: Task) -> Text:
        return Text(format_duration(task.elapsed or 0.0) if task.fields["left"] is None else task.fields["left"])


class ProgressBars:
    """Listener that draws progress bars."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TextColumn("{task.fields[amount]}"))
        self._progress = Progress(*columns, _TimeColumn(), console=console)
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._begun: TaskID | None = None
        self._clock = ProgressClock()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_step()
        self._progress.stop()

    def begin(self, who: str, what: str) -> None:
        """Show that a step starts."""
        self._end_step()
        self._clock.begin(who)
        text = make_printable(f"{short_name(who)}: {what}")
        self._begun = self._progress.add_task(text, total=None, amount="", left=None)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """Show how far a step is; see `Listener.progress`."""
        self._end_step()
        key = who, unit
        if key not in self._tasks:
            text = make_printable(describe_step(who, unit))
            self._tasks[key] = self._progress.add_task(text, total=total or None, amount="", left="")
        amount, left = self._clock.format(who, unit, done, total)
        self._progress.update(self._tasks[key], completed=done, total=total or None, amount=amount, left=left)

    def notice(self, message: str) -> None:
        """Print a message."""
        self._progress.console.print(make_printable(message), markup=False, highlight=False)

    def _end_step(self) -> None:
        if self._begun is not None:
            self._progress.remove_task(self._begun)
            self._begun = None


class ProgressLog:
    """Listener that prints a line every few seconds, for logs."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, 0.0
        self._clock = ProgressClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, who: str, what: str) -> None:
        """Show that a step starts."""
        self._clock.begin(who)
        self._print(f"{short_name(who)}: {what}", last=True)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        """Show how far a step is; see `Listener.progress`."""
        amount, left = self._clock.format(who, unit, done, total)
        self._print(f"{describe_step(who, unit)}: {amount}{f', {left}' if left else ''}", last=done == total)

    def notice(self, message: str) -> None:
        """Print a message."""
        self._print(message, last=True)

    def _print(self, message: str, *, last: bool) -> None:
        if not (last or time.monotonic() - self._last > _SECONDS_BETWEEN_LINES):
            return
        self._last = time.monotonic()
        self._console.print(make_printable(message), markup=False, highlight=False, soft_wrap=True)


def make_listener(*, quiet: bool) -> AbstractContextManager[Listener]:
    """Create a listener: progress bars on a capable terminal, log lines elsewhere, nothing if `quiet`."""
    if quiet:
        return nullcontext(NullListener())
    errors = Console(stderr=True, emoji=False)  # "api:m: ..." is a model, not an emoji
    return ProgressBars(errors) if errors.is_terminal and not errors.is_dumb_terminal else ProgressLog(errors)
