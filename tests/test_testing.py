"""The fixture ``biassay_check``, in a test as a user writes it: two small files of vectors, one made biased."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.small_tests import write_test, write_vectors

EXAMPLE = """
def test_the_same_vectors_pass(biassay_check):
    found = biassay_check("old=vectors:old.txt", "new=vectors:same.txt", tests="own.json", fail_if="inconclusive")
    assert [verdict.outcome for verdict in found.verdicts] == ["no_worse"]


def test_biased_vectors_fail(biassay_check):
    biassay_check("old=vectors:old.txt", "new=vectors:biased.txt", tests="own.json")


def test_a_gate_that_could_not_fail_fails(biassay_check):
    biassay_check("old=vectors:old.txt", "new=vectors:unlike.txt", tests="own.json")


def test_a_missing_model_fails_with_the_message_alone(biassay_check):
    biassay_check("old=vectors:old.txt", "new=vectors:nowhere.txt", tests="own.json")


def test_a_wrong_rule_fails_before_anything_is_measured(biassay_check):
    biassay_check("old=vectors:nowhere.txt", "new=vectors:nowhere.txt", tests="own.json", fail_if="better")
"""


def test_a_worse_model_fails_a_test(tmp_path: Path) -> None:
    write_test(tmp_path / "own.json", 16)
    for name, lean in (("old", 0.0), ("same", 0.0), ("biased", 2.0)):
        write_vectors(tmp_path / f"{name}.txt", 16, lean, frequent=True)
    write_vectors(tmp_path / "unlike.txt", 16, seed=6, frequent=True)
    (tmp_path / "test_gate.py").write_text(EXAMPLE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "biassay.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    done = subprocess.run(
        [*command, "--rootdir", ".", "test_gate.py"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "4 failed, 1 passed" in done.stdout
    assert "Traceback" not in done.stdout
    assert "testing.py" not in done.stdout
    assert re.search(r"VectorFileError: .*nowhere\.txt", done.stdout)
    assert re.search(r"UsageError: fail_if must be 'worse' or 'inconclusive', got 'better'", done.stdout)
    assert "the gate could not have failed on the topic other (own)" in done.stdout
    assert re.search(r"new is worse \(stronger association\) than old: 1 of 1 question worse \(own\)", done.stdout)


def test_the_plugin_loads_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "rich", "click")
    asked = f"import sys, biassay.pytest_plugin; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
