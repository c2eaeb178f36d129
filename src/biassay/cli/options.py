"""Command options: those of a study's settings, and those that commands share."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import UnionType
from typing import Any

import click

from biassay.engines.base import Executor
from biassay.errors import UsageError
from biassay.object_storage import is_url
from biassay.studies.settings import SettingSpec, get_setting_specs

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_SECTIONS = ("basics", "corpus", "statistics", "gate", "contexts", "execution")


class SectionedOption(click.Option):
    """Option that belongs to a section of the help.

    Parameters
    ----------
    *args
        Arguments of `click.Option`.
    section : str
        Name of the section.
    **attributes
        Other attributes of `click.Option`.
    """

    def __init__(self, *args: Any, section: str = "basics", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.section = section


def sectioned_option(section: str, *names: str, **attributes: Any) -> Decorator:
    """Create an option that belongs to a section of the help.

    Parameters
    ----------
    section : str
        Name of the section.
    *names : str
        Names of the option, as for `click.option`.
    **attributes
        Other attributes of `click.option`.
    """
    return click.option(*names, cls=SectionedOption, section=section, **attributes)


class SectionedCommand(click.Command):
    """Command whose help lists its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section; --help comes last."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in _SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections[getattr(parameter, "section", "basics")].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name.capitalize()):
                    formatter.write_dl(records)


class PathOrUrl(click.ParamType):  # type: ignore[type-arg]  # click below 8.2 has no type argument
    """Accept a folder or a URL of object storage."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Return a URL unchanged and a folder as a path; see `click.ParamType.convert`."""
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
    sectioned_option(
        "execution",
        "--engine",
        type=click.Choice(("local", "ray")),
        default="local",
        show_default=True,
        help="Run on this machine or on a Ray cluster.",
    ),
    sectioned_option(
        "execution",
        "--address",
        metavar="HOST:PORT",
        help="Connect to this Ray cluster.  [default: start Ray on this machine]",
    ),
)
RUN_OPTIONS = (
    sectioned_option(
        "execution",
        "--cache",
        type=PathOrUrl(),
        help="Cache directory or URL (s3://BUCKET/DIR).  [default: $BIASSAY_CACHE or your own cache]",
    ),
    *engine_options,
    sectioned_option(
        "execution",
        "--gpus",
        type=click.FloatRange(0, min_open=True),
        metavar="NUMBER",
        help="Give each Ray worker this many GPUs; 0.5 puts two workers on one GPU.  [default: 1, if there are any]",
    ),
    click.option("--all", "everything", is_flag=True, help="Print all tests, rows and columns."),
    quiet_option,
    json_option,
)
"""Options of commands that start or resume a run."""
OUTPUT_OPTIONS = (
    click.option("--out", type=click.Path(path_type=Path), help="Write the run to this new folder."),
    sectioned_option(
        "execution",
        "--resume",
        "resumed",
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Continue an interrupted run.",
    ),
)
budget_option = sectioned_option(
    "execution",
    "--budget",
    type=int,
    metavar="TOKENS",
    help="Stop before the run, including the parts before a resume, uses more endpoint tokens than this.",
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


def open_engine(engine: str, address: str | None, gpus: float | None = None) -> Executor | None:
    """Open the engine that the options name; return None for this machine.

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
    name = spec.option or f"--{field.name.replace('_', '-')}"
    attributes: dict[str, Any] = {"help": spec.help, "metavar": spec.metavar, "default": field.default}
    attributes |= {"cls": SectionedOption, "section": spec.section}
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
    """Return the type of a value: int for ``int | None``, float for ``tuple[float, ...]``."""
    if typing.get_origin(annotation) is tuple:
        annotation = typing.get_args(annotation)[0]
    if isinstance(annotation, UnionType) or typing.get_origin(annotation) is typing.Union:
        annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
    return annotation if annotation in (int, float) else str


_MIN_PREFIX = 2  # letters


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
