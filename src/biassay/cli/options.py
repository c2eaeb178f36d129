"""Command options: those of a study's settings, and those that commands share."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

import click

from biassay.engines.base import Executor
from biassay.errors import UsageError
from biassay.studies.settings import SettingSpec, get_option_name, get_setting_specs, setting, validate_settings

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


class _CommaSeparated(click.ParamType):  # type: ignore[type-arg]  # click below 8.2 has no type argument
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


_QUIET, _JSON = "Print errors only.", "Print JSON instead of tables."
quiet_option = click.option("--quiet", is_flag=True, help=_QUIET)
json_option = click.option("--json", "as_json", is_flag=True, help=_JSON)


@dataclass(frozen=True)
class CliRunOptions:
    """Options of every command that measures."""

    budget: int | None = setting(
        None,
        "Stop before the run, including the parts before a resume, uses more endpoint tokens than this.",
        metavar="TOKENS",
        section="execution",
    )
    out: Path | None = setting(None, "Write the run to this new folder.")
    resumed: Path | None = setting(
        None, "Continue an interrupted run.", metavar="RUN", option="--resume", section="execution"
    )
    cache: str | None = setting(
        None,
        "Cache directory or URL (s3://BUCKET/DIR).  [default: $BIASSAY_CACHE or your own cache]",
        metavar="PATH",
        section="execution",
    )
    engine: str = setting(
        "local", "Run on this machine or on a Ray cluster.", choices=("local", "ray"), section="execution"
    )
    address: str | None = setting(
        None,
        "Connect to this Ray cluster.  [default: start Ray on this machine]",
        metavar="HOST:PORT",
        section="execution",
    )
    gpus: float | None = setting(
        None,
        "Give each Ray worker this many GPUs; 0.5 puts two workers on one GPU.  [default: 1, if there are any]",
        low=0.0,
        exclusive=True,
        metavar="NUMBER",
        section="execution",
    )
    everything: bool = setting(False, "Print all tests, rows and columns.", option="--all")
    quiet: bool = setting(False, _QUIET)
    as_json: bool = setting(False, _JSON, option="--json")

    @classmethod
    def pop_from(cls, given: dict[str, Any]) -> CliRunOptions:
        """Remove the run options from the arguments of a command and return them, validated."""
        options = cls(**{field.name: given.pop(field.name) for field in dataclasses.fields(cls) if field.name in given})
        checked: CliRunOptions = validate_settings(options)
        return checked

    @property
    def folder(self) -> Path | None:
        """Folder of the run, if it has one."""
        return self.resumed or self.out


def apply_options(options: Iterable[Decorator], command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with options, so that its help lists them in the given order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def settings_options(settings: type, names: Collection[str] | None = None) -> Decorator:
    """Create a decorator that adds one option per field of a settings class, or per field in `names`."""
    types = typing.get_type_hints(settings)
    options = [
        _make_option(field, spec, types[field.name])
        for field, spec in zip(dataclasses.fields(settings), get_setting_specs(settings).values(), strict=True)
        if not spec.hidden and (names is None or field.name in names)
    ]
    return lambda command: apply_options(options, command)


def add_validated_options(settings: type) -> Decorator:
    """Create a decorator that adds one option per field of a settings class and validates the values."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def check(*args: Any, **given: Any) -> Any:
            values = {field.name: given[field.name] for field in dataclasses.fields(settings)}
            return command(*args, **given | vars(validate_settings(settings(**values))))

        decorated: Callable[..., Any] = settings_options(settings)(check)
        return decorated

    return decorate


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
    names = get_option_name(field.name, spec).split()
    attributes: dict[str, Any] = {"help": spec.help, "metavar": spec.metavar, "default": field.default}
    attributes |= {"cls": SectionedOption, "section": spec.section}
    if annotation is bool:
        names[-1] += f"/--{spec.negated_flag}" if spec.negated_flag else ""
        return click.option(*names, field.name, is_flag=True, show_default=bool(spec.negated_flag), **attributes)
    item = click.Choice(spec.choices) if spec.choices else _get_value_type(annotation)
    if spec.many and spec.split:
        return multi_option(*names, field.name, item=item, **attributes)
    if spec.many:
        return click.option(*names, field.name, multiple=True, type=item, **attributes)
    return click.option(*names, field.name, type=item, show_default=field.default is not None, **attributes)


def _get_value_type(annotation: Any) -> Any:
    """Return the click type for an annotation, such as int for ``int | None``."""
    if typing.get_origin(annotation) is tuple:
        annotation = typing.get_args(annotation)[0]
    if isinstance(annotation, UnionType) or typing.get_origin(annotation) is typing.Union:
        annotation = next(part for part in typing.get_args(annotation) if part is not type(None))
    if annotation is Path:
        return click.Path(path_type=Path)
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
