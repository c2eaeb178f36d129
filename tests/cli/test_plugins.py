"""What other packages add by entry points: used where it works, named and left out where it does not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from biassay import packages
from biassay.errors import PluginWarning, UnknownNameError, UsageError
from biassay.models import registry
from biassay.models.backend import ModelBackend
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
    assert (code, json.loads(stdout)[-1]["settings"]) == (0, {"upper": "count capitals"})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package_here:family", "no_such_package_here"),
        ("another_package:nothing", "nothing"),
        ("another_package:number", "int, not ModelBackend"),
        ("another_package:family", "has the name 'own'"),
    ],
)
def test_one_that_cannot_be_used_is_named_and_left_out(add: Callable[..., None], value: str, reason: str) -> None:
    add(own="another_package:family", broken=value)
    with pytest.warns(PluginWarning, match=f"'broken'.*{reason}"):
        assert list(get_backends()) == [*registry._BUILTIN, "own"]
    with pytest.raises(UnknownNameError):
        parse_model("broken:x")


@pytest.mark.filterwarnings("always::biassay.errors.PluginWarning")
def test_the_command_says_so_in_one_line(add: Callable[..., None], cli: Cli) -> None:
    add(broken="no_such_package_here:family")
    code, stdout, stderr = cli("models", "--json")
    assert (code, len(json.loads(stdout))) == (0, len(registry._BUILTIN))
    assert stderr.startswith("warning: 'broken'")
    assert stderr.count("\n") == 1


def test_a_name_of_biassays_own_is_refused(add: Callable[..., None]) -> None:
    add(glove="another_package:family")
    with pytest.warns(PluginWarning, match="'glove'"):
        assert list(get_backends()) == list(registry._BUILTIN)
    assert parse_model("glove").backend == "glove"
    assert get_backends()["glove"] is not sys.modules["another_package"].__dict__["family"]


def test_a_name_that_two_packages_give_is_refused(add: Callable[..., None]) -> None:
    add(own="another_package:family", own_="no_such_package_here:family")
    with pytest.warns(PluginWarning, match="'own'"):
        assert "own" not in get_backends()
    with pytest.raises(UsageError, match="another_package:family and no_such_package_here:family"):
        parse_model("own:x")


def test_a_family_of_biassays_own_imports_no_other_package(add: Callable[..., None]) -> None:
    add(broken="no_such_package_here:family")
    assert open_model("glove", "texts").identity.family == "glove"
