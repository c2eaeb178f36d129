"""What several commands share: options that take several values, progress, the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from biassay.engines.base import Engine
from biassay.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from biassay.runs.listener import Listener

__all__ = [
    "TakesMany",
    "check_new_file",
    "console_for_tables",
    "engine_options",
    "listener_for",
    "open_engine",
    "tests_meant",
]


_NARROWEST, _WIDE = 60, 100  # columns
_LEAST_BEGINNING = 2  # letters


class TakesMany(click.Command):
    """Lets ``--tests``, or the options that are named, take all words up to the next option."""

    def __init__(self, *args: Any, several: Collection[str] = ("--tests",), **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._several = several

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        taking = ""
        for i, arg in enumerate(args):
            if arg.startswith("-"):
                name = arg.partition("=")[0]
                taking = name if name in self._several else ""
                if arg != taking or i + 1 == len(args) or args[i + 1].startswith("-"):
                    spread.append(arg)
            elif taking:
                spread += [taking, arg]
            else:
                spread.append(arg)
        return super().parse_args(ctx, spread)


def listener_for(*, quiet: bool) -> AbstractContextManager[Listener]:
    """Bars on a terminal that can draw them, lines elsewhere, nothing at all if quiet."""
    from biassay.runs.listener import Silent

    if quiet:
        return nullcontext(Silent())
    from rich.console import Console  # what shows no progress need not wait for it

    from biassay.cli.progress import Bars, Lines

    errors = Console(stderr=True, emoji=False)  # "api:m: ..." is a name
    return Bars(errors) if errors.is_terminal and not errors.is_dumb_terminal else Lines(errors)


def console_for_tables() -> Console:
    """Standard output; where it is no terminal, as wide as $COLUMNS says, and by default wide enough for a table."""
    from rich.console import Console

    console = Console(emoji=False)
    least = _NARROWEST if os.environ.get("COLUMNS", "").isdigit() else _WIDE
    return console if console.is_terminal else Console(width=max(console.width, least), emoji=False)


def tests_meant(name: str) -> str | None:
    """How tests are named that somebody meant who wrote their name, or its beginning, elsewhere; None: none."""
    from biassay.stimuli.catalogue import select_tests  # only a mistake waits for it

    for pattern, written in ((name, name), (f"{name}*", f'"{name}*"')):
        with suppress(UsageError):
            if len(name) >= _LEAST_BEGINNING and select_tests(pattern):
                return written
    return None


def check_new_file(path: Path) -> None:
    """Refuse a file that exists, or whose folder does not."""
    if path.exists():
        raise UsageError(f"{path} exists; choose another file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist")


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--engine`` and ``--address``."""
    address = click.option(
        "--address", help="Address of the Ray cluster (host:port); without it Ray runs on this machine."
    )
    choice = click.Choice(("local", "ray"))
    engine = click.option("--engine", type=choice, default="local", show_default=True, help="Where the work runs.")
    decorated: Callable[..., Any] = engine(address(command))
    return decorated


def open_engine(engine: str, address: str | None, gpus: float | None = None) -> Engine | None:
    """The engine that was asked for; None: this machine."""
    if engine == "local":
        for value, option in ((address, "--address"), (gpus, "--gpus")):
            if value is not None:
                raise click.UsageError(f"{option} is for --engine ray")
        return None
    from biassay.engines.ray_engine import RayEngine

    return RayEngine(address) if gpus is None else RayEngine(address, gpus=gpus)
