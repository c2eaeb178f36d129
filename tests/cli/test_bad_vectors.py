"""Damaged files of vectors and objects that give bad vectors are refused, and the place is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Cli, Refused


def test_the_good_file_of_these_tests_is_good(tmp_path: Path, test_file: Path, lines: list[str], cli: Cli) -> None:
    for name, header in (("v.txt", []), ("v.vec", ["16 5"])):
        (tmp_path / name).write_text("\n".join([*header, *lines]) + "\n")
        code, _, stderr = cli("run", f"vectors:{tmp_path / name}", "--tests", test_file)
        assert code == 0, stderr


def test_no_such_file_of_vectors(tmp_path: Path, refused: Refused) -> None:
    assert f"{tmp_path}/none.txt: no such file" in refused(f"vectors:{tmp_path}/none.txt")
    assert f"{tmp_path}: no such file" in refused(f"vectors:{tmp_path}")


def with_line(lines: list[str], number: int, line: str) -> str:
    return "\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n"


@pytest.mark.parametrize(("values", "problem"), [("0 0 0 0 0", "is zero"), ("1 nan 3 4 5", "not finite")])
def test_a_zero_or_nan_vector_in_a_file_names_the_word(
    values: str, problem: str, tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 7, f"y2 {values}"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert "line 7" in said
    assert "'y2'" in said
    assert problem in said


@pytest.mark.parametrize(("name", "problem"), [("Zero", "is zero"), ("Nan", "not finite")])
def test_a_zero_or_nan_vector_of_an_object_names_the_word(
    name: str, problem: str, test_file: Path, encoders: str, refused: Refused
) -> None:
    said = refused(f"{encoders}:{name}", "--tests", test_file)
    assert f"{encoders}:{name}" in said
    assert "'y2'" in said
    assert problem in said


def test_vectors_that_know_no_word_suggest_folding(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "v.txt").write_text("john 1 2 3\namy 3 2 1\n")
    code, stdout, _ = cli("run", f"vectors:{tmp_path}/v.txt", "--tests", "weat6")
    said = " ".join(stdout.split())
    assert code == 1
    assert "does not know 8 of 8 words of MaleNames (John, Paul" in said
    assert "?case=fold" in said
    folded = " ".join(cli("run", f"vectors:{tmp_path}/v.txt?case=fold", "--tests", "weat6")[1].split())
    assert "does not know 7 of 8 words of MaleNames (Paul" in folded
    assert "?case=fold" not in folded


def test_an_object_whose_batches_differ_in_dimension(encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:Growing", "--tests", "sent-weat6")
    assert f"{encoders}:Growing" in said
    assert re.search(r"\b9\b", said)
    assert re.search(r"\b10\b", said)
