"""Settings of studies: dataclass fields that carry their help, their option and their checks."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal

import numpy as np

from biassay.datasets.stimulus_files import to_json_data
from biassay.errors import UnknownNameError, UsageError
from biassay.reporting.formats import format_value

MAX_DRAWS = 1_000_000
"""Largest number of random draws that a setting allows; more do not fit in memory or take days."""
_INT_LIMIT = 2**63
_DEFAULT_NOTE = re.compile(r"\s*\[default: [^\]]*\]$")
Section = Literal["basics", "statistics", "contexts", "execution"]
_STIMULUS_FILES = (".toml", ".json", ".jsonl")


@dataclass(frozen=True)
class SettingSpec:
    """Describe a setting: its help, its command option and the values it accepts.

    The option has the name of the setting, with dashes, unless `option` gives another one.

    Attributes
    ----------
    help : str
        Text that the command line shows.
    choices : tuple of str, optional
        Accepted values.
    low, high : float, optional
        Smallest and largest accepted value.
    exclusive : bool
        If True, `low` and `high` themselves are rejected, as 0 and 1 are for a significance level.
    many : bool
        If True, the setting is a tuple; its option takes commas or is repeated.
    split : bool
        If False, the option of a tuple does not take commas, because values may contain them.
    convert : callable, optional
        Applied to each value before it is checked and stored, for instance to make a path absolute.
    metavar : str, optional
        Name of the value in the help of the option.
    option : str
        Name of the option, such as ``--as``, if the setting cannot have it because Python reserves the word.
    negated_flag : str
        Name of the option that turns off a flag that is on by default.
    section : {"basics", "statistics", "contexts", "execution"}
        Section of the help that lists the option.
    hidden : bool
        If True, the setting has no option.
    reenter_on_resume : bool
        If True, a resumed run needs the value again: biassay never takes a folder to write to from a run folder.
    """

    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    exclusive: bool = False
    many: bool = False
    split: bool = True
    convert: Callable[[Any], Any] | None = None
    metavar: str | None = None
    option: str = ""
    negated_flag: str = ""
    section: Section = "basics"
    hidden: bool = False
    reenter_on_resume: bool = False


def setting(default: Any, help: str, **spec: Any) -> Any:
    """Declare a field of a settings dataclass.

    Parameters
    ----------
    default : object
        Default value.
    help : str
        Text that the command line shows: an imperative verb, the effect, and the default if it is not a plain value.
    **spec
        Other attributes of `SettingSpec`.
    """
    metadata = {"spec": SettingSpec(help, **spec)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def list_setting(help: str, metavar: str = "NAME[,...]", **spec: Any) -> Any:
    """Declare a setting that takes several values, by default none.

    Parameters
    ----------
    help, **spec
        See `setting`.
    metavar : str
        Name of the values in the help.
    """
    return setting((), help, many=True, metavar=metavar, **spec)


def file_setting(help: str, **spec: Any) -> Any:
    """Declare a setting that takes the path of a file, by default none; see `setting`."""
    return setting(None, help, convert=to_absolute_path, metavar="FILE", **spec)


def statistic_setting(default: Any, help: str, **spec: Any) -> Any:
    """Declare a setting in the statistics section of the help.

    Parameters
    ----------
    default, help, **spec
        See `setting`.
    """
    return setting(default, help, section="statistics", **spec)


def share_setting(default: float, help: str) -> Any:
    """Declare a setting that takes a share, from 0 to 1; see `setting`."""
    return statistic_setting(default, help, low=0.0, high=1.0)


def level_setting(default: float | None = 0.05, help: str = "Set the significance level.") -> Any:
    """Declare a setting that takes a level of significance, between 0 and 1; see `setting`."""
    return statistic_setting(default, help, low=0.0, high=1.0, exclusive=True)


def seed_setting() -> Any:
    """Declare the random seed."""
    return statistic_setting(0, "Random seed.", low=0)


def get_setting_specs(settings: type) -> Mapping[str, SettingSpec]:
    """Return the specification of every setting of a settings class, by name."""
    return {field.name: field.metadata["spec"] for field in dataclasses.fields(settings)}


def describe_settings(settings: Any, *, leave_out: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield every setting that has a value, with its option and its help.

    Parameters
    ----------
    settings : dataclass
        Settings of a run.
    leave_out : collection of str
        Names of settings, or of sections of the help, to leave out.
    """
    for name, spec in get_setting_specs(type(settings)).items():
        value = getattr(settings, name)
        if spec.hidden or {name, spec.section} & set(leave_out) or value is None or value is False or value in ((), ""):
            continue
        shown = "" if value is True else f" {format_value('text', value)}"
        yield f"{get_option_name(name, spec)}{shown}", _DEFAULT_NOTE.sub("", spec.help)


def get_option_name(name: str, spec: SettingSpec) -> str:
    """Return the option of a setting."""
    return spec.option or f"--{name.replace('_', '-')}"


def to_absolute_path(value: Any) -> Any:
    """Make a path absolute, so that a run can be resumed from another folder."""
    return os.path.abspath(value) if isinstance(value, str | os.PathLike) else value


def to_absolute_file(value: Any) -> Any:
    """Make the path of a TOML or JSON file absolute; return other names unchanged."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    is_file = isinstance(text, str) and text.lower().endswith(_STIMULUS_FILES)
    return os.path.abspath(text) if is_file else text


def to_stored_test(value: Any) -> Any:
    """Convert the words of a test to plain JSON data, which a manifest can hold; return names unchanged."""
    if isinstance(value, Mapping):
        return to_json_data(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def validate_settings(settings: Any) -> Any:
    """Return settings in the form in which a run stores them; raise if a value is not accepted."""
    types = typing.get_type_hints(type(settings))
    values = {}
    for name, spec in get_setting_specs(type(settings)).items():
        value = values[name] = _normalize(getattr(settings, name), spec)
        _check_type(name, value, types[name], spec)
        for item in value if spec.many else (value,):
            if item is not None:
                _check_value(name, item, spec)
    return dataclasses.replace(settings, **values)


def _normalize(value: Any, spec: SettingSpec) -> Any:
    if spec.many:
        single = isinstance(value, str | os.PathLike | Mapping) or not isinstance(value, Iterable)
        items = (value,) if single else tuple(value)
        return items if spec.convert is None else tuple(map(spec.convert, items))
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or spec.convert is None else spec.convert(value)


def _check_type(name: str, value: Any, annotation: Any, spec: SettingSpec) -> None:
    """Check the types that are clear without doubt: missing values, booleans, numbers and strings."""
    types = typing.get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    if spec.many or (value is None and type(None) in types):
        return
    for expected, accepted, description in (
        (bool, (bool,), "true or false"),
        (int, (int,), "a whole number"),
        (float, (int, float), "a number"),
        (str, (str,), "a string"),
    ):
        is_number = expected is not bool and isinstance(value, bool)
        if expected in types and (is_number or not isinstance(value, accepted)):
            raise UsageError(f"{name} must be {description}, got {value!r}")
    if value is None:
        raise UsageError(f"{name} is required, got None")


def _check_value(name: str, value: Any, spec: SettingSpec) -> None:
    if spec.choices and value not in spec.choices:
        raise UnknownNameError(name, str(value), spec.choices, f"(one of {', '.join(spec.choices)})")
    if isinstance(value, int) and abs(value) >= _INT_LIMIT:
        raise UsageError(f"{name} must be below 2^63")  # too long to print
    if not isinstance(value, int | float):
        return
    low, high = (-math.inf if spec.low is None else spec.low), (math.inf if spec.high is None else spec.high)
    inside = low < value < high if spec.exclusive else low <= value <= high
    if inside and math.isfinite(value):
        return
    at_least, at_most = ("above", "below") if spec.exclusive else ("at least", "at most")
    bounds = [f"{at_least} {low:,g}"] if spec.low is not None else []
    bounds += [f"{at_most} {high:,.15g}"] if spec.high is not None else []
    raise UsageError(f"{name} must be {' and '.join(bounds) or 'finite'}, got {value:,}")
