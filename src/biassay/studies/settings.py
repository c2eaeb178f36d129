"""Settings of studies: frozen dataclasses whose fields carry their own help and checks."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any

import numpy as np

from biassay.errors import UnknownNameError, UsageError

__all__ = ["MOST_DRAWS", "Rule", "checked_settings", "rules_of", "setting"]

MOST_DRAWS = 1_000_000
"""The largest number of random draws that a setting allows: more do not fit in memory, or do not end."""
_TOO_LARGE = 2**63


@dataclass(frozen=True)
class Rule:
    """What a setting may be, and how the command line takes it.

    Attributes
    ----------
    help : str
    choices : tuple of str, optional
        The values that are allowed.
    low, high : float, optional
        The smallest and the largest value.
    open : bool
        Whether these two values themselves are refused, as 0 and 1 are for a level of significance.
    many : bool
        Whether the option may be given several times, or take several words.
    option, aliases : str, tuple of str
        The name of the option, by default that of the setting, and further names.
    off : str
        The name of the option that turns a setting off which is on by default.
    hidden : bool
        Whether there is no option for it.
    again : bool
        Whether it must be given again to resume a run: a folder to write to is not taken from a run folder.
    """

    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    open: bool = False
    many: bool = False
    option: str = ""
    aliases: tuple[str, ...] = ()
    metavar: str | None = None
    off: str = ""
    hidden: bool = False
    again: bool = False


def setting(default: Any, help: str, **rule: Any) -> Any:
    """A field of a settings dataclass."""
    rule_of_field = {"rule": Rule(help, **rule)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=rule_of_field)
    return dataclasses.field(default=default, metadata=rule_of_field)


def rules_of(settings: type) -> Mapping[str, Rule]:
    """The rules of all settings of a study, by name."""
    return {field.name: field.metadata["rule"] for field in dataclasses.fields(settings)}


def checked_settings(settings: Any) -> Any:
    """The settings in the form in which they are stored; values that a rule or a type does not allow are refused."""
    kinds = typing.get_type_hints(type(settings))
    values = {name: _normal(getattr(settings, name), rule) for name, rule in rules_of(type(settings)).items()}
    for name, rule in rules_of(type(settings)).items():
        _check_type(name, values[name], kinds[name], rule)
        for one in values[name] if rule.many else (values[name],):
            if one is not None:
                _check(name, one, rule)
    return dataclasses.replace(settings, **values)


def _normal(value: Any, rule: Rule) -> Any:
    """Numbers of NumPy as Python's own, several values as a tuple."""
    if rule.many:
        several = (value,) if isinstance(value, str) or not isinstance(value, Sequence) else value
        return tuple(several)
    return value.item() if isinstance(value, np.generic) else value


def _check_type(name: str, value: Any, kind: Any, rule: Rule) -> None:
    """Only what is told apart without doubt: missing values, flags, whole numbers, numbers and texts."""
    parts = typing.get_args(kind) if isinstance(kind, UnionType) else (kind,)
    if rule.many or (value is None and type(None) in parts):
        return
    for plain, wanted, words in ((bool, (bool,), "true or false"), (int, (int,), "a whole number"),
                                 (float, (int, float), "a number"), (str, (str,), "a text")):  # fmt: skip
        if plain in parts and (not isinstance(value, wanted) or (plain is not bool and isinstance(value, bool))):
            raise UsageError(f"{name} must be {words}, got {value!r}")
    if value is None:
        raise UsageError(f"{name} must be given, got None")


def _check(name: str, value: Any, rule: Rule) -> None:
    if rule.choices and value not in rule.choices:
        raise UnknownNameError(name, str(value), rule.choices, f"(one of {', '.join(rule.choices)})")
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise UsageError(f"{name} must be below 2^63")  # too long to print
    if rule.low is None and rule.high is None:
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{name} must be a finite number, got {value}")
        return
    low, high = (-math.inf if rule.low is None else rule.low), (math.inf if rule.high is None else rule.high)
    inside = low < value < high if rule.open else low <= value <= high
    if inside and math.isfinite(value):
        return
    least, most = ("above", "below") if rule.open else ("at least", "at most")
    if rule.high is None or (isinstance(value, int) and value < low):
        raise UsageError(f"{name} must be {least} {rule.low:g}, got {value}")
    if rule.low is None or (isinstance(value, int) and value > high):
        raise UsageError(f"{name} must be {most} {rule.high:,}, got {value:,}")
    if rule.open:
        raise UsageError(f"{name} must be above {rule.low:g} and below {rule.high:g}, got {value}")
    raise UsageError(f"{name} must lie between {rule.low:g} and {rule.high:g}, got {value}")
