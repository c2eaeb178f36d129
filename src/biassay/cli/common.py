"""Helpers that commands share: progress listeners, consoles and checks."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from biassay.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from biassay.runs.progress import Listener


_MIN_WIDTH, _DEFAULT_WIDTH = 60, 100  # columns
_MIN_PREFIX = 2  # letters


def make_listener(*, quiet: bool) -> AbstractContextManager[Listener]:
    """Create a listener: progress bars on a capable terminal, log lines elsewhere, nothing if `quiet`."""
    from biassay.runs.progress import NullListener

    if quiet:
        return nullcontext(NullListener())
    from rich.console import Console  # quiet commands start faster without it

    from biassay.cli.progress import ProgressBars, ProgressLog

    errors = Console(stderr=True, emoji=False)  # "api:m: ..." is a model, not an emoji
    return ProgressBars(errors) if errors.is_terminal and not errors.is_dumb_terminal else ProgressLog(errors)


def make_console() -> Console:
    """Create a console for standard output; in a pipe it is as wide as $COLUMNS, or else wide enough for tables."""
    from rich.console import Console

    console = Console(emoji=False)
    width = _MIN_WIDTH if os.environ.get("COLUMNS", "").isdigit() else _DEFAULT_WIDTH
    return console if console.is_terminal else Console(width=max(console.width, width), emoji=False)


def suggest_tests(name: str) -> str | None:
    """Return how to select the tests with this name or prefix, or None if there are none."""
    from biassay.datasets.catalogue import select_tests  # needed for a mistake only

    for pattern, suggestion in ((name, name), (f"{name}*", f'"{name}*"')):
        with suppress(UsageError):
            if len(name) >= _MIN_PREFIX and select_tests(pattern):
                return suggestion
    return None


def check_new_file(path: Path) -> None:
    """Raise if a file exists, or if its folder does not."""
    if path.exists():
        raise UsageError(f"{path} exists; choose another file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist")
