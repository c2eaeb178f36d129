"""Entry points that cannot be used are named and left out; names that exist are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import biassay
from biassay import packages
from biassay.datasets.catalogue import load_catalogue
from biassay.errors import PluginWarning, RunFolderError, UnknownNameError
from biassay.models import registry
from biassay.runs.run import Run
from biassay.studies.associations.metrics import get_metric, metric_names
from biassay.studies.benchmarks.tasks import get_task, list_benchmarks
from biassay.studies.registry import get_study, study_names

Cli = Callable[..., tuple[int, str, str]]
Add = Callable[..., None]
GROUPS: dict[str, tuple[Callable[[], Sequence[str]], Callable[[str], Any]]] = {
    "biassay.studies": (study_names, get_study),
    "biassay.metrics": (metric_names, get_metric),
    "biassay.benchmarks": (list_benchmarks, get_task),
}
OWN = {"biassay.studies": "associations", "biassay.metrics": "cosine", "biassay.benchmarks": "bbq"}
GOOD = {
    "biassay.studies": "biassay_example.pronouns.study:STUDY",
    "biassay.metrics": "biassay_example.angular:METRIC",
    "biassay.benchmarks": "biassay_example.who_was_late:TASK",
}


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Pretends that only such entry points are installed: group, then name and value."""
    monkeypatch.setitem(sys.modules, "another_package", ModuleType("another_package"))
    sys.modules["another_package"].__dict__.update(number=3, path=Path("relative.toml"))

    def forget() -> None:
        packages._get_entry_points.cache_clear()
        registry._load_plugin_backends.cache_clear()
        load_catalogue.cache_clear()

    def add(group: str = "", **values: str) -> None:
        points = [EntryPoint(name, value, group) for name, value in values.items()]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [p for p in points if p.group == group])
        forget()

    yield add
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package_here:it", "no_such_package_here"),
        ("another_package:nothing", "nothing"),
        ("another_package:number", "int, not"),
    ],
)
def test_one_that_cannot_be_used_is_named_and_left_out(add: Add, group: str, value: str, reason: str) -> None:
    names, named = GROUPS[group]
    add(group, broken=value)
    with pytest.warns(PluginWarning, match=f"'broken'.*{reason}"):
        assert "broken" not in names()
    with pytest.raises(UnknownNameError):  # it is imported, and named, once
        named("broken")
    assert named(OWN[group]).name == OWN[group]


@pytest.mark.parametrize("group", GROUPS)
def test_one_that_calls_itself_otherwise_is_left_out(add: Add, group: str) -> None:
    add(group, other=GOOD[group])
    with pytest.warns(PluginWarning, match="has the name"):
        assert "other" not in GROUPS[group][0]()


@pytest.mark.parametrize("group", GROUPS)
def test_a_name_of_biassays_own_is_refused(add: Add, group: str) -> None:
    names, named = GROUPS[group]
    add(group, **{OWN[group]: "another_package:number"})
    with pytest.warns(PluginWarning, match=f"'{OWN[group]}'"):
        assert names().count(OWN[group]) == 1
    assert named(OWN[group]).name == OWN[group]


def test_tests_that_cannot_be_used_are_left_out(add: Add) -> None:
    add("biassay.tests", broken="no_such_package_here:it", odd="another_package:path")
    with pytest.warns(PluginWarning) as warned:
        known = load_catalogue()
    assert sorted(str(one.message).partition(" ")[0] for one in warned) == ["'broken'", "'odd'"]
    assert "weat6" in known.tests
    assert "workplaces" not in known.collections


@pytest.mark.filterwarnings("always::biassay.errors.PluginWarning")
def test_the_command_of_a_broken_study_says_so(add: Add, cli: Cli) -> None:
    add("biassay.studies", broken="no_such_package_here:it")
    code, stdout, stderr = cli("broken", "letters:x")
    assert (code, stdout) == (2, "")
    assert "no_such_package_here" in stderr
    assert "Traceback" not in stderr


def test_a_study_with_the_name_of_a_command_does_not_replace_it(add: Add, cli: Cli) -> None:
    add("biassay.studies", models="no_such_package_here:it")
    assert cli("models", "--json")[0] == 0


def test_a_run_of_a_study_that_is_not_installed_says_what_it_needs(
    add: Add, cli: Cli, measured: Run, tmp_path: Path
) -> None:
    folder = measured.save(tmp_path / "run")
    add()
    with pytest.raises(RunFolderError, match=r"'pronouns'.*'biassay-example'"):
        biassay.load(folder)
    for command in ("report", "compare", "resume"):
        code, _, stderr = cli(command, folder)
        assert (code, "biassay-example" in stderr) == (2, True)


def test_the_list_of_commands_imports_no_package() -> None:
    script = (
        "import sys\nfrom biassay.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n"
        "    print([name for name in sys.modules if name in ('biassay_example', 'importlib.metadata', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pronouns" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
