"""Test what association tests print in the terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from tests.reporting.many_models import with_models

import biassay
from biassay.reporting.findings import SANITY_CHECKS
from biassay.reporting.formats import format_decimal, format_interval
from biassay.runs.reports import print_run
from biassay.runs.run import Run
from biassay.studies.associations.findings import format_main_p


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All fifty tests."""
    return biassay.run("glove", cache=tmp_path_factory.mktemp("vectors"))


def printed(run: Run, width: int = 100, *, everything: bool = False, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    print_run(run, Console(file=file, width=width, emoji=False), everything=everything)
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize("width", [60, 100, 140])
@pytest.mark.parametrize("models", [1, 3, 15])
def test_no_line_is_wider_than_the_terminal_or_a_hundred_columns(whole: Run, width: int, models: int) -> None:
    run = with_models(whole, models)
    for everything in (False, True):
        assert max(map(len, printed(run, width, everything=everything))) <= min(width, 100)


def test_the_table_of_all_tests_has_the_numbers_of_each_test(measured: Run) -> None:
    lines = printed(measured, everything=True)
    lines = lines[lines.index("All tests") :]
    for result in measured.results:
        (line,) = (one for one in lines if one.startswith(f"  {result.test} "))
        if result.status == "measured":
            interval = format_interval(result.ci_low, result.ci_high)
            numbers = [format_decimal(result.effect_size), interval, format_main_p(result)]
            assert re.split(r" {2,}", line)[-4:-1] == numbers
        else:
            assert result.status in line


def test_questions_are_grouped_by_topic_with_sanity_checks_last(whole: Run) -> None:
    lines = printed(whole, everything=True)
    topics = ["Gender", "Race", "Several groups at once", "Age", "Health", SANITY_CHECKS]
    start = lines.index("All tests")
    assert [line for line in lines[start:] if line in topics] == topics


def test_a_pipe_that_knows_no_such_letters_gets_others(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    command = [sys.executable, "-m", "biassay", "run", "glove", "--tests", "weat6,I1", "--cache", str(tmp_path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert b"1.72" in done.stdout
    assert done.stdout.isascii()
