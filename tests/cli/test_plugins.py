"""Plugins by entry points: working ones are used, broken ones are skipped with a warning."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from biassay import packages
from biassay.errors import UsageError
from biassay.models import registry
from biassay.models.backend import ERASE, ERASE_HELP, ModelBackend
from biassay.models.python_object import wrap_object
from biassay.models.registry import GROUP, get_backends, open_model, parse_model
from biassay.models.selftest import VowelEncoder

Cli = Callable[..., tuple[int, str, str]]
OWN = ModelBackend(
    name="own",
    syntax="own:NAME",
    description="letters",
    settings={"upper": "count capitals"},
    texts=lambda _: wrap_object(VowelEncoder()),
)


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Pretends that packages are installed that have such entry points: name and value."""
    module = ModuleType("another_package")
    module.__dict__.update(family=OWN, number=3)
    monkeypatch.setitem(sys.modules, "another_package", module)

    def forget() -> None:
        packages._get_entry_points.cache_clear()
        registry._load_plugin_backends.cache_clear()

    def add(**values: str) -> None:
        points = [EntryPoint(name.rstrip("_"), value, GROUP) for name, value in values.items()]
        monkeypatch.setattr(
            "importlib.metadata.entry_points", lambda *, group: [point for point in points if point.group == group]
        )
        forget()

    yield add
    forget()


def test_a_family_of_another_package_is_one_like_the_others(add: Callable[..., None], cli: Cli) -> None:
    add(own="another_package:family")
    assert list(get_backends()) == [*registry._BUILTIN, "own"]
    assert parse_model("own:x?upper=1").settings == {"upper": "1"}
    assert open_model("own:x", "texts").encode(["a"]).vectors.tolist() == [[1, 0, 0, 0, 0]]
    with pytest.raises(UsageError, match="hf:NAME"):
        open_model("own:x", "words")
    code, stdout, _ = cli("models", "--json")
    assert (code, json.loads(stdout)[-1]["settings"]) == (0, {"upper": "count capitals", ERASE: ERASE_HELP})


@pytest.mark.filterwarnings("always::biassay.errors.PluginWarning")
def test_the_command_says_so_in_one_line(add: Callable[..., None], cli: Cli) -> None:
    add(broken="no_such_package_here:family")
    code, stdout, stderr = cli("models", "--json")
    assert (code, len(json.loads(stdout))) == (0, len(registry._BUILTIN))
    assert stderr.startswith("warning: 'broken'")
    assert stderr.count("\n") == 1


def test_a_family_of_biassays_own_imports_no_other_package(add: Callable[..., None]) -> None:
    add(broken="no_such_package_here:family")
    assert open_model("glove", "texts").identity.backend == "glove"
