"""Command options: those of a study's settings, and those that commands share."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from types import UnionType
from typing import Any

import click

from biassay.engines.base import Executor
from biassay.object_storage import is_url
from biassay.studies.settings import SettingSpec, get_setting_specs

__all__ = [
    "PathOrUrl",
    "apply_options",
    "budget_option",
    "engine_options",
    "json_option",
    "multi_option",
    "open_engine",
    "quiet_option",
    "resume_options",
    "run_options",
    "settings_options",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class PathOrUrl(click.ParamType):  # type: ignore[type-arg]  # click below 8.2 has no type argument
    """Accept a folder or a URL of object storage."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Return a URL unchanged and a folder as a path."""
        return value if not value or isinstance(value, Path) or is_url(value) else Path(value)


class _CommaSeparated(click.ParamType):  # type: ignore[type-arg]
    """Accept values separated by commas."""

    def __init__(self, item: click.ParamType) -> None:  # type: ignore[type-arg]
        self.item, self.name = item, item.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else [value]
        return tuple(self.item.convert(part, param, ctx) for part in parts if part or len(parts) == 1)

    def get_metavar(self, *args: Any, **kwargs: Any) -> str | None:
        return self.item.get_metavar(*args, **kwargs)


def multi_option(*names: str, item: Any = str, **attributes: Any) -> Decorator:
    """Create an option whose values are separated by commas; it may also be repeated.

    Parameters
    ----------
    *names : str
        Names of the option, as for `click.option`.
    item : click type
        Type of one value.
    **attributes
        Other attributes of `click.option`.
    """

    def flatten(_: click.Context, __: click.Parameter, values: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
        return tuple(value for group in values for value in group)

    kind = _CommaSeparated(click.types.convert_type(item))
    return click.option(*names, multiple=True, type=kind, callback=flatten, **attributes)


quiet_option = click.option("--quiet", is_flag=True, help="Print errors only.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
engine_options = (
    click.option(
        "--engine",
        type=click.Choice(("local", "ray")),
        default="local",
        show_default=True,
        help="Run on this machine or on a Ray cluster.",
    ),
    click.option("--address", help="Connect to the Ray cluster at HOST:PORT.  [default: start Ray on this machine]"),
)
_RUN_OPTIONS = (
    click.option(
        "--cache",
        type=PathOrUrl(),
        help="Cache directory or URL (s3://BUCKET/DIR).  [default: $BIASSAY_CACHE or the user's cache]",
    ),
    *engine_options,
    click.option(
        "--gpus",
        type=click.FloatRange(0, min_open=True),
        metavar="NUMBER",
        help="Give each Ray worker this many GPUs; 0.5 puts two workers on one GPU.  [default: 1, if there are any]",
    ),
    click.option("--all", "everything", is_flag=True, help="Print all tests, rows and columns."),
    quiet_option,
    json_option,
)
_OUTPUT_OPTIONS = (
    click.option("--out", type=click.Path(path_type=Path), help="Write the run to this new folder."),
    click.option(
        "--resume", "resumed", type=click.Path(path_type=Path), metavar="RUN", help="Continue an interrupted run."
    ),
)
budget_option = click.option(
    "--budget",
    type=int,
    metavar="TOKENS",
    help="Stop before endpoints use more tokens than this. Counts the whole run; a resumed run keeps its budget.",
)


def apply_options(options: Iterable[Decorator], command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with options, so that its help lists them in the given order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def settings_options(settings: type) -> Decorator:
    """Create a decorator that adds an option for every setting of a study."""
    types = typing.get_type_hints(settings)
    options = [
        _make_option(field, spec, types[field.name])
        for field, spec in zip(dataclasses.fields(settings), get_setting_specs(settings).values(), strict=True)
        if not spec.hidden
    ]
    return lambda command: apply_options(options, command)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that starts a run."""
    return apply_options((*_OUTPUT_OPTIONS, *_RUN_OPTIONS), command)


def resume_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that continues a run."""
    return apply_options(_RUN_OPTIONS, command)


def open_engine(engine: str, address: str | None, gpus: float | None = None) -> Executor | None:
    """Open the engine that the options name; None stands for this machine.

    Parameters
    ----------
    engine : {"local", "ray"}
        Value of ``--engine``.
    address : str or None
        Value of ``--address``.
    gpus : float, optional
        Value of ``--gpus``.
    """
    if engine == "local":
        for value, option in ((address, "--address"), (gpus, "--gpus")):
            if value is not None:
                raise click.UsageError(f"{option} requires --engine ray")
        return None
    from biassay.engines.ray_cluster import RayExecutor

    return RayExecutor(address) if gpus is None else RayExecutor(address, gpus=gpus)


def _make_option(field: dataclasses.Field[Any], spec: SettingSpec, annotation: Any) -> Decorator:
    name = f"--{field.name.replace('_', '-')}"
    attributes: dict[str, Any] = {"help": spec.help, "metavar": spec.metavar, "default": field.default}
    if annotation is bool:
        name += f"/--{spec.negated_flag}" if spec.negated_flag else ""
        return click.option(name, field.name, is_flag=True, show_default=bool(spec.negated_flag), **attributes)
    item = click.Choice(spec.choices) if spec.choices else _get_value_type(annotation)
    if spec.many and spec.split:
        return multi_option(name, field.name, item=item, **attributes)
    if spec.many:
        return click.option(name, field.name, multiple=True, type=item, **attributes)
    return click.option(name, field.name, type=item, show_default=field.default is not None, **attributes)


def _get_value_type(annotation: Any) -> Any:
    """Return the type of a value: int for ``int | None``."""
    if isinstance(annotation, UnionType) or typing.get_origin(annotation) is typing.Union:
        annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
    return annotation if annotation in (int, float) else str
