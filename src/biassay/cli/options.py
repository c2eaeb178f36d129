"""Options made from the settings of a study: their names, types, defaults and help are those of the dataclass."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

import click

from biassay.remote import is_address
from biassay.studies.settings import Rule, rules_of

__all__ = [
    "Place",
    "budget_option",
    "gpus_option",
    "how_options",
    "resume_options",
    "settings_options",
    "several_options",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Place(click.ParamType):  # type: ignore[type-arg]  # (older ones take none)
    """A folder, or an address in object storage."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        return value if not value or isinstance(value, Path) or is_address(value) else Path(value)


gpus_option = click.option(
    "--gpus",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="For --engine ray: GPUs of each worker; 0.5 puts two on one GPU.  [default: 1, if there are any]",
)

_NEW = (
    click.option("--out", type=click.Path(path_type=Path), help="A new folder for the run."),
    click.option(
        "--resume", "resumed", type=click.Path(path_type=Path), metavar="RUN", help="Continue an interrupted run."
    ),
)
_HOW = (
    click.option(
        "--cache",
        type=Place(),
        help="Where answers are kept: a folder, or an address such as s3://BUCKET/DIR behind the default.  "
        "[default: $BIASSAY_CACHE or the user's cache]",
    ),
    click.option(
        "--engine", type=click.Choice(("local", "ray")), default="local", show_default=True, help="Where models run."
    ),
    click.option("--address", help="Address of the Ray cluster (host:port); without it Ray runs on this machine."),
    gpus_option,
    click.option("--all", "everything", is_flag=True, help="Print all tests and rows, and further columns."),
    click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of tables."),
)


budget_option = click.option(
    "--budget",
    type=int,
    metavar="TOKENS",
    help="Stop before endpoints use more tokens than this. Counts the whole run; a resumed run keeps its budget.",
)


def settings_options(settings: type, *, but: tuple[str, ...] = ()) -> Decorator:
    """All options of a study's settings, but for some."""
    kinds = typing.get_type_hints(settings)
    options = [
        _option(field, rule, kinds[field.name])
        for field, rule in zip(dataclasses.fields(settings), rules_of(settings).values(), strict=True)
        if not rule.hidden and field.name not in but
    ]
    return lambda command: _decorated(options, command)


def several_options(settings: type) -> tuple[str, ...]:
    """The names of those options that hold several values."""
    return tuple(name for setting, rule in rules_of(settings).items() if rule.many for name in _names(setting, rule))


def how_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--out`` and ``--resume``, and where and how it runs."""
    return _decorated((*_NEW, *_HOW), command)


def resume_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--cache``, ``--engine``, ``--address``, ``--all``, ``--quiet`` and ``--json``."""
    return _decorated(_HOW, command)


def _decorated(options: Any, command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


def _option(field: dataclasses.Field[Any], rule: Rule, kind: Any) -> Decorator:
    names = _names(field.name, rule)
    shown: Mapping[str, Any] = {"help": rule.help, "metavar": rule.metavar}
    if kind is bool:
        names[0] += f"/--{rule.off}" if rule.off else ""
        return click.option(
            *names, field.name, is_flag=True, default=field.default, show_default=bool(rule.off), **shown
        )
    if rule.many:
        choice = click.Choice(rule.choices) if rule.choices else str
        return click.option(*names, field.name, multiple=True, type=choice, default=field.default, **shown)
    default = field.default
    return click.option(
        *names,
        field.name,
        type=click.Choice(rule.choices) if rule.choices else _plain(kind),
        default=default,
        show_default=default is not None,
        **shown,
    )


def _names(setting: str, rule: Rule) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in (rule.option or setting, *rule.aliases)]


def _plain(kind: Any) -> Any:
    """The type of a value that is given: of ``int | None``, int."""
    if isinstance(kind, UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    return kind if kind in (int, float) else str
