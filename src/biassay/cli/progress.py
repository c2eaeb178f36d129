"""How a long step shows itself: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

__all__ = ["Bars", "Lines"]

_SECONDS_BETWEEN_LINES = 5.0


def _in_mb(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size >= 10_000_000 else f"{size / 1e6:.2g}"


class Bars:
    """Progress bars."""

    def __init__(self, console: Console) -> None:
        what = TextColumn("{task.description}", markup=False)
        self._progress = Progress(what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def scanning(self, what: str, done: int, total: int) -> None:
        self._update(f"{what} (MB)", done // 1_000_000, total // 1_000_000 or None)

    def encoding(self, model: str, done: int, total: int) -> None:
        self._update(f"{model}: encoding texts", done, total)

    def measuring(self, model: str, done: int, total: int) -> None:
        self._update(f"{model}: measuring tests", done, total)

    def searching(self, model: str, done: int, total: int) -> None:
        self._update(f"{model}: searching words (%)", 100 * done // max(total, 1), 100)

    def asking(self, model: str, done: int, total: int) -> None:
        self._update(f"{model}: asking questions", done, total)

    def drawing(self, what: str, done: int, total: int) -> None:
        self._update(f"drawing {what}", done, total)

    def notice(self, message: str) -> None:
        self._progress.console.print(message, markup=False, highlight=False)

    def _update(self, what: str, done: int, total: int | None) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done)


class Lines:
    """A line now and then, for logs; nothing at all if quiet."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def scanning(self, what: str, done: int, total: int) -> None:
        of = f" of {_in_mb(total)}" if total else ""  # what is compressed has no known length
        self._say(f"{what} {_in_mb(done)}{of} MB", last=done == total)

    def encoding(self, model: str, done: int, total: int) -> None:
        self._say(f"{model}: encoded {done} of {total} texts", last=done == total)

    def measuring(self, model: str, done: int, total: int) -> None:
        self._say(f"{model}: {done} of {total} tests done", last=done == total)

    def searching(self, model: str, done: int, total: int) -> None:
        self._say(f"{model}: searched {100 * done // max(total, 1)} % of the words", last=done == total)

    def asking(self, model: str, done: int, total: int) -> None:
        self._say(f"{model}: answered {done} of {total} questions", last=done == total)

    def drawing(self, what: str, done: int, total: int) -> None:
        self._say(f"drawn {done} of {total} {what}", last=done == total)

    def notice(self, message: str) -> None:
        self._say(message, last=True)

    def _say(self, message: str, *, last: bool) -> None:
        if self._quiet or not (last or time.monotonic() - self._last > _SECONDS_BETWEEN_LINES):
            return
        self._last = time.monotonic()
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)
