"""Files that other programs read: workflows, forms, citation and containers keep to their schemas."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from biassay.cli import main

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.extras
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-actions", "action.yml"),
        ("compose-spec", "compose.yaml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_files_keep_to_their_schemas(schema: str, files: str) -> None:
    from check_jsonschema import main as check
    from click.testing import CliRunner

    found = [str(path) for path in ROOT.glob(files)]
    done = CliRunner().invoke(check, ["--builtin-schema", f"vendor.{schema}", *found])
    assert done.exit_code == 0, done.output


@pytest.mark.extras
def test_workflows_have_no_known_weakness() -> None:
    """Permissions, untrusted text in scripts, kept credentials, poisoned caches and the like."""
    zizmor = Path(sys.executable).with_name("zizmor")
    files = [ROOT / "action.yml", *WORKFLOWS, ROOT / ".github" / "dependabot.yml"]
    settings: list[str | Path] = [
        "--offline",
        "--no-progress",
        "--min-severity",
        "medium",
        "--config",
        ROOT / ".github" / "zizmor.yml",
    ]
    done = subprocess.run([zizmor, *settings, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_what_there_is(path: Path) -> None:
    steps = re.findall(r"run: (.+)", path.read_text(encoding="utf-8"))
    made = re.findall(r"^([\w-]+(?: [\w-]+)*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = {target for line in made for target in line.split()}
    assert {step.split()[1] for step in steps if step.startswith("make ")} <= targets
    for step in steps:
        if step.startswith("biassay ") and "--version" not in step:
            with pytest.raises(SystemExit, match=r"^0$"):
                main([step.split()[1], "--help"])


def test_forms_ask_for_a_command_that_there_is() -> None:
    asked = set()
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        asked |= set(re.findall(r"`biassay (\w+)`", form.read_text(encoding="utf-8")))
    assert asked == {"doctor"}
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["doctor", "--help"])
