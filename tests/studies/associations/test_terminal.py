"""Association tests in the terminal: a line a test with its numbers, by topic, never too wide, the summary last."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from tests.reporting.many_models import with_models
from tests.results.made_runs import with_rows

import biassay
from biassay.reporting.findings import SANITY_CHECKS
from biassay.reporting.formats import format_decimal, format_interval, shorten
from biassay.reporting.terminal import BAR, draw_bar
from biassay.runs.reports import print_run
from biassay.runs.run import Run
from biassay.studies.associations.findings import leading, left_out
from biassay.studies.associations.signs import format_main_p, get_mark


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All fifty tests."""
    return biassay.run("glove", cache=tmp_path_factory.mktemp("vectors"))


def printed(run: Run, width: int = 100, *, everything: bool = False, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    print_run(run, Console(file=file, width=width, emoji=False), everything=everything)
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("models", [1, 2, 3, 7, 15])
def test_no_line_is_wider_than_the_terminal_or_a_hundred_columns(whole: Run, width: int, models: int) -> None:
    run = with_models(whole, models)
    for everything in (False, True):
        assert max(map(len, printed(run, width, everything=everything))) <= min(width, 100)


def test_a_line_holds_the_numbers_of_its_test(measured: Run) -> None:
    lines = printed(measured)
    for result in measured.results:
        (line,) = (one for one in lines if re.search(rf"  {re.escape(result.test)} {{2,}}", one))
        if result.status == "measured":
            interval = format_interval(result.ci_low, result.ci_high)
            numbers = [format_decimal(result.effect_size), interval, format_main_p(result)]
            assert re.split(r" {2,}", line)[-3:] == numbers
        else:
            assert line.endswith(result.status)


def test_people_stand_first_by_topic_and_checks_last(whole: Run) -> None:
    heads = [line for line in printed(whole, everything=True) if re.fullmatch(r"[A-Z][a-z ,]{1,40}", line)]
    assert heads == ["Gender", "Race", "Several groups at once", "Age", "Health", SANITY_CHECKS]


def test_of_many_tests_those_are_shown_that_hold_and_the_others_counted(whole: Run) -> None:
    shown = leading(whole.results)
    assert shown == [r.test for r in whole.results if r.about == "people" and get_mark(r) in (1, 2)]
    first, *parts = (int(number) for number in re.findall(r"\d+", left_out(whole.results, shown)))
    assert (first, sum(parts)) == (len(whole.results) - len(shown),) * 2
    assert left_out(whole.results, [r.test for r in whole.results]) == ""
    few = whole.results[:12]
    assert leading(few) == [r.test for r in few]
    assert all(f"  {r.test}" in "\n".join(printed(whole, everything=True)) for r in whole.results)


def test_where_nothing_holds_the_smallest_p_values_are_shown(whole: Run) -> None:
    silent = with_rows(whole, [r for r in whole.results if get_mark(r) == 0 and r.about == "people"])
    assert set(leading(silent.results)) == {r.test for r in sorted(silent.results, key=lambda r: r.p_value or 2.0)[:5]}


def test_many_models_are_summed_up_in_a_line(whole: Run) -> None:
    run = with_models(whole, 15)
    test = next(test for test in leading(run.results) if re.fullmatch(r"weat\d", test))
    (line,) = (one for one in printed(run) if f"  {test}  " in one)
    own = [r for r in run.results if r.test == test]
    marks = [get_mark(r) for r in own]
    sizes = sorted(r.effect_size or 0.0 for r in own)
    numbers = [f"{marks.count(2)} of 15", str(marks.count(1)), *map(format_decimal, (sizes[7], sizes[0], sizes[-1]))]
    assert re.split(r" {2,}", line)[-5:] == numbers


def test_the_star_of_a_sanity_check_means_that_it_passed() -> None:
    said = " ".join(" ".join(printed(biassay.run("glove", ["weat1", "weat6"]))).split())
    assert "5.9e-5*" in said
    assert "* p at most 0.05 before correction only: a lead, not a finding; on a sanity check, which is not" in said
    assert "passed" not in " ".join(" ".join(printed(biassay.run("glove", "weat6"))).split())


def test_the_summary_comes_last(measured: Run) -> None:
    lines = printed(measured)
    place = next(i for i, line in enumerate(lines) if line.startswith("glove: "))
    assert max(i for i, line in enumerate(lines) if not line) == place - 1


def test_a_run_without_colours_has_no_escape_codes(measured: Run) -> None:
    assert "\x1b" not in "".join(printed(measured))
    assert "█" not in "".join(printed(measured, encoding="ascii"))


@pytest.mark.parametrize(("value", "eighths"), [(2.0, 48), (1.0, 24), (0.0, 0), (9.0, 48), (0.25, 6)])
def test_a_bar_is_as_long_as_the_effect(value: float, eighths: int) -> None:
    drawn = draw_bar(value, 2.0)
    assert sum("▏▎▍▌▋▊▉█".index(one) + 1 for one in drawn) == eighths
    assert len(draw_bar(value, 2.0, plain=True)) == round(eighths / 8)
    assert draw_bar(value, 2.0, plain=True).isascii()
    assert "█" not in draw_bar(-value, 2.0)
    assert len(drawn) <= BAR


def test_what_is_cut_keeps_its_beginning_or_both_ends() -> None:
    assert shorten("abcdefgh", 8) == "abcdefgh"
    assert shorten("abcdefgh", 5) == "abcd…"
    assert shorten("abcdefgh", 5, middle=True) == "ab…gh"


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
