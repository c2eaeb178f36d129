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
from biassay.cli.studies import make_command
from biassay.errors import UnknownNameError, UsageError
from biassay.runs import api
from biassay.studies.registry import get_study, study_names
from biassay.studies.settings import MAX_DRAWS, get_setting_specs, setting, validate_settings

HOW = {"models", "out", "cache", "engine", "listener", "budget"}
NAMES = {
    "associations": "run",
    "discovery": "discover",
    "word_association": "ask",
    "benchmarks": "benchmark",
    "debiasing": "debias",
}
COMMANDS = {"prompt_robustness": "robustness"}
"""Commands that are not named after their function."""


@dataclasses.dataclass(frozen=True)
class Sample:
    share: float = setting(0.5, "A share.", low=0.0, high=1.0)
    level: float = setting(0.05, "A level.", low=0.0, high=1.0, exclusive=True)
    size: float = setting(0.1, "A size.", low=0.0, exclusive=True)
    count: int | None = setting(None, "A number.", low=3)
    draws: int = setting(10, "Draws.", low=0, high=MAX_DRAWS)
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
    validate_settings(Sample(**given))


def test_settings_are_stored_in_one_form() -> None:
    given = validate_settings(Sample(count=np.int64(4), share=1, kinds=["a"]))  # type: ignore[arg-type]
    assert (type(given.count), given.kinds) == (int, ("a",))
    assert validate_settings(Sample(kinds="a")).kinds == ("a",)  # type: ignore[arg-type]


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
        ({"draws": MAX_DRAWS + 1}, UsageError, "at most 1,000,000, got 1,000,001"),
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
        validate_settings(Sample(**given))
    assert next(iter(given)) in str(refused.value)
    assert value in str(refused.value)


@pytest.mark.parametrize("study", [name for name in study_names() if get_study(name).package == "biassay"])
def test_keywords_options_and_settings_are_the_same(study: str) -> None:
    """So that a choice has one name, one default and one help, wherever it is made."""
    settings = get_study(study).schema.settings
    name = NAMES.get(study, study)
    hidden = {n for n, rule in get_setting_specs(settings).items() if rule.hidden}
    function: Callable[..., Any] = getattr(biassay, name)
    own_module = name in ("discover", "stereotypes")
    command = import_module(f"biassay.cli.{name}").command if own_module else make_command(COMMANDS.get(name, name))
    keywords = {
        n: p.default for n, p in inspect.signature(function).parameters.items() if n not in HOW and n not in hidden
    }
    options = {option.name: option for option in command.params}
    rules = {name: rule for name, rule in get_setting_specs(settings).items() if not rule.hidden}
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(settings)}
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
        assert set(option.opts) == {rule.option or f"--{name.replace('_', '-')}"}


@pytest.mark.parametrize("name", ["run", "audit", "discover", "stereotypes", "ask", "benchmark", "robustness"])
def test_public_functions_pass_on_every_parameter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    def measure(_: str, models: object, settings: dict[str, Any], **options: Any) -> None:
        calls.append({"models": models, **settings, **options})

    monkeypatch.setattr(api, "measure", measure)
    function = getattr(api, name)
    given = {parameter: f"value of {parameter}" for parameter in inspect.signature(function).parameters}
    function(**given)
    assert {parameter: calls[0][parameter] for parameter in given} == given


@pytest.mark.parametrize("study", [name for name in study_names() if get_study(name).package == "biassay"])
def test_help_starts_with_a_capital_and_every_parameter_is_documented(study: str) -> None:
    name = NAMES.get(study, study)
    document = inspect.getdoc(getattr(biassay, name)) or ""
    parameters = document.partition("Parameters\n----------\n")[2].partition("\nReturns\n")[0]
    listed = {
        part.strip()
        for line in parameters.splitlines()
        if line[:1].strip()
        for part in line.partition(" : ")[0].split(",")
    }
    assert listed == set(inspect.signature(getattr(biassay, name)).parameters)
    for spec in get_setting_specs(get_study(study).schema.settings).values():
        assert spec.help[0].isupper()
