"""Settings of studies: what a rule refuses, and that functions, options and settings are the same."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click
import numpy as np
import pytest

import biassay
from biassay.errors import UnknownNameError, UsageError
from biassay.studies.registry import study_named, study_names
from biassay.studies.settings import MOST_DRAWS, checked_settings, rules_of, setting

HOW = {"models", "out", "cache", "engine", "listener", "budget"}
NAMES = {"associations": "run", "discovery": "discover", "word_association": "ask", "benchmarks": "benchmark"}


@dataclasses.dataclass(frozen=True)
class Sample:
    share: float = setting(0.5, "A share.", low=0.0, high=1.0)
    level: float = setting(0.05, "A level.", low=0.0, high=1.0, open=True)
    size: float = setting(0.1, "A size.", low=0.0, open=True)
    count: int | None = setting(None, "A number.", low=3)
    draws: int = setting(10, "Draws.", low=0, high=MOST_DRAWS)
    mode: str = setting("one", "How.", choices=("one", "two"))
    kinds: tuple[str, ...] = setting((), "Which.", choices=("a", "b"), many=True)


@pytest.mark.parametrize(
    "given",
    [
        *({"share": 0.0}, {"share": 1.0}, {"level": 0.5}, {"count": 3}, {"count": None}, {"mode": "two"}),
        *({"kinds": ("a", "b")}, {"kinds": ()}, {}),
    ],
)
def test_what_a_rule_allows(given: dict[str, Any]) -> None:
    checked_settings(Sample(**given))


def test_settings_are_stored_in_one_form() -> None:
    given = checked_settings(Sample(count=np.int64(4), share=1, kinds=["a"]))
    assert (type(given.count), given.kinds) == (int, ("a",))
    assert checked_settings(Sample(kinds="a")).kinds == ("a",)


@pytest.mark.parametrize(
    ("given", "error", "value"),
    [
        ({"share": -0.1}, UsageError, "-0.1"),
        ({"share": 1.5}, UsageError, "1.5"),
        ({"share": float("nan")}, UsageError, "nan"),
        ({"level": 0.0}, UsageError, "above 0 and below 1, got 0.0"),
        ({"level": 1.0}, UsageError, "1.0"),
        ({"size": 0.0}, UsageError, "above 0, got 0.0"),
        ({"count": 2}, UsageError, "at least 3, got 2"),
        ({"count": 10**400}, UsageError, "below 2^63"),
        ({"draws": MOST_DRAWS + 1}, UsageError, "at most 1,000,000, got 1,000,001"),
        ({"mode": "tow"}, UnknownNameError, "tow"),
        ({"kinds": ("a", "c")}, UnknownNameError, "c"),
        ({"share": None}, UsageError, "None"),
        ({"share": "0.5"}, UsageError, "0.5"),
        ({"count": 3.5}, UsageError, "3.5"),
        ({"count": True}, UsageError, "True"),
    ],
)
def test_what_a_rule_refuses_is_named_with_its_value(given: dict[str, Any], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as refused:
        checked_settings(Sample(**given))
    assert next(iter(given)) in str(refused.value)
    assert value in str(refused.value)


@pytest.mark.parametrize("study", [name for name in study_names() if study_named(name).package == "biassay"])
def test_keywords_options_and_settings_are_the_same(study: str) -> None:
    """So that a choice has one name, one default and one help, wherever it is made."""
    settings = study_named(study).types.settings
    name = NAMES.get(study, study)
    hidden = {n for n, rule in rules_of(settings).items() if rule.hidden}
    function: Callable[..., Any] = getattr(biassay, name)
    command: click.Command = import_module(f"biassay.cli.{name}").command
    keywords = {
        n: p.default for n, p in inspect.signature(function).parameters.items() if n not in HOW and n not in hidden
    }
    options = {option.name: option for option in command.params}
    rules = {name: rule for name, rule in rules_of(settings).items() if not rule.hidden}
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    assert keywords.keys() == rules.keys()
    for name, rule in rules.items():
        option = options[name]
        assert isinstance(option, click.Option)
        allowed = [defaults[name], inspect.Parameter.empty]
        if isinstance(defaults[name], tuple) and len(defaults[name]) == 1:
            allowed.append(defaults[name][0])  # one value need not be a tuple
        assert keywords[name] in allowed, name
        assert (option.get_default(click.Context(command)) or None) == (defaults[name] or None), name
        assert option.help == rule.help
        assert rule.help.endswith((".", "]")), name
        assert set(option.opts) == {f"--{n.replace('_', '-')}" for n in (rule.option or name, *rule.aliases)}
