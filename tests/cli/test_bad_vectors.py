"""Damaged vector files and objects with invalid vectors: errors that name the location."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import bad_tests
from .conftest import Cli, Refused
from .small_tests import measured


def test_no_such_file_of_vectors(tmp_path: Path, refused: Refused) -> None:
    for path in (f"{tmp_path}/none.txt", f"{tmp_path}"):
        assert f"model 'vectors:{path}': there is no file {path}; check the path" in refused(f"vectors:{path}")


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


def test_a_vector_of_an_object_that_is_not_finite_names_the_word(
    test_file: Path, encoders: str, refused: Refused
) -> None:
    said = refused(f"{encoders}:Nan", "--tests", test_file)
    assert f"model '{encoders}:Nan': the vector of 'y2' is not finite" in said


def test_a_zero_vector_of_an_object_names_the_word_and_what_to_return(test_file: Path, encoders: str, cli: Cli) -> None:
    code, stdout, stderr = cli("run", f"{encoders}:Zero", "--tests", test_file)
    assert (code, stdout) == (1, "")
    assert f"model '{encoders}:Zero': encode() returned a zero vector for 'y2'" in stderr
    assert "return None or a row of NaN" in stderr


@pytest.mark.parametrize("name", ["NoneRow", "NanRow"])
def test_an_object_says_that_a_word_is_out_of_vocabulary(
    name: str, test_file: Path, encoders: str, cli: Cli, lines: list[str], tmp_path: Path
) -> None:
    (tmp_path / "v.txt").write_text("\n".join(line for line in lines if not line.startswith("y2 ")) + "\n")
    asked = ("--tests", test_file, "--max-unknown", 0.5, "--json")
    code, stdout, stderr = cli("run", f"{encoders}:{name}", *asked)
    assert code == 0, stderr
    (row,) = measured(stdout).values()
    (expected,) = measured(cli("run", f"vectors:{tmp_path}/v.txt", *asked)[1]).values()
    assert row["status"] == "measured"
    assert row["oov_words"] == expected["oov_words"]
    assert row["oov_words"]["Y"] == ["y2"]
    # Beyond --max-unknown the test is skipped, as it is on a file of vectors.
    code, stdout, _ = cli("run", f"{encoders}:{name}", "--tests", test_file, "--max-unknown", 0.2, "--json")
    (row,) = measured(stdout).values()
    assert (code, row["status"]) == (1, "skipped")
    assert "1 of 4 words of TARG2 are out of vocabulary" in row["reason"]


def test_a_batch_without_a_known_word_is_cached_and_read(
    test_file: Path, encoders: str, cli: Cli, tmp_path: Path
) -> None:
    """All other words are cached, so that the model is asked about one word, which it lacks."""
    others = bad_tests.content()
    others["targ2"]["examples"].remove("y2")
    cached = ("--cache", tmp_path / "cache", "--random-sets", 0, "--json")
    first = cli("run", f"{encoders}:Cached", "--tests", bad_tests.write_test(tmp_path / "o.json", others), *cached)
    assert first[0] == 0, first[2]
    code, stdout, stderr = cli("run", f"{encoders}:Cached", "--tests", test_file, "--max-unknown", 0.5, *cached)
    assert code == 0, stderr
    before, after = (next(iter(measured(one).values())) for one in (first[1], stdout))
    assert (after["oov_words"]["Y"], after["effect_size"]) == (["y2"], before["effect_size"])


def test_an_object_whose_batches_differ_in_dimension(encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:Growing", "--tests", "sent-weat6")
    assert f"{encoders}:Growing" in said
    assert re.search(r"\b9\b", said)
    assert re.search(r"\b10\b", said)
