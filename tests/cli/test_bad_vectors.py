"""Damaged files of vectors and objects that give bad vectors are refused, and the place is named."""

from __future__ import annotations

import errno
import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
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


def test_a_file_of_vectors_that_may_not_be_read(
    tmp_path: Path, test_file: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    path = tmp_path / "v.txt"
    path.write_text("\n".join(lines))
    opened = Path.open

    def forbidden(self: Path, *args: Any, **settings: Any) -> Any:
        if self == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(self, *args, **settings)

    monkeypatch.setattr(Path, "open", forbidden)
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert str(path) in said
    assert "Permission denied" in said


def with_line(lines: list[str], number: int, line: str) -> str:
    return "\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n"


def test_a_line_with_too_few_values(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 7, "y2 1 2 3"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert f"{tmp_path}/v.txt: line 7: expected 5 values, got 3" in said


def test_a_word_of_another_test_is_checked_for_its_dimension(
    tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.txt").write_text(with_line([*lines, "other 1 2 3 4 5"], len(lines) + 1, "other 1 2 3 4"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert f"line {len(lines) + 1}: expected 5 values, got 4" in said


def test_a_value_that_is_not_a_number(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 3, "x2 1 2 three 4 5"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert "line 3" in said
    assert "'x2'" in said


def test_a_file_that_ends_before_its_header_says(
    tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.vec").write_text("\n".join(["900 5", *lines]) + "\n")
    said = refused(f"vectors:{tmp_path}/v.vec", "--tests", test_file)
    assert re.search(r"line 1[78]\b", said)  # the last line, or the one that should come next
    assert "900" in said
    assert "truncated" in said


def test_a_compressed_file_that_is_cut_off(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    path = tmp_path / "v.txt.gz"
    whole = gzip.compress(("\n".join(lines) + "\n").encode())
    path.write_bytes(whole[: len(whole) // 2])
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert str(path) in said
    assert "truncated" in said or "damaged" in said


def test_a_long_compressed_file_that_is_cut_off_names_the_line(
    tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    rng = np.random.default_rng(0)
    more = [f"w{i} " + " ".join(f"{v:.6f}" for v in rng.normal(size=5)) for i in range(20_000)]
    path = tmp_path / "v.txt.gz"
    whole = gzip.compress(("\n".join([*lines, *more]) + "\n").encode())
    path.write_bytes(whole[: len(whole) // 2])
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert "truncated" in said
    number = int(said.partition("line ")[2].partition(":")[0])
    assert 5_000 < number < 15_000


def test_a_binary_file_that_is_cut_off(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    path = tmp_path / "v.bin"
    rows = [f"w{i} ".encode() + np.full(5, 0.1 + i, "<f4").tobytes() + b"\n" for i in range(10)]
    path.write_bytes(b"10 5\n" + b"".join(rows)[:-30])
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert f"{path}: word 9 of 10" in said
    assert "truncated" in said


@pytest.mark.parametrize("damaged", [b"", b"\x93NUMPY", b"not an array at all"])
def test_an_npy_file_that_is_damaged(damaged: bytes, tmp_path: Path, test_file: Path, refused: Refused) -> None:
    (tmp_path / "words.txt").write_text("x0\nx1\n")
    (tmp_path / "v.npy").write_bytes(damaged)
    said = refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    assert f"{tmp_path}/v.npy" in said


def test_an_npy_file_that_is_cut_off(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    (tmp_path / "words.txt").write_text("x0\nx1\n")
    np.save(tmp_path / "v.npy", np.ones((2, 400), np.float32))
    (tmp_path / "v.npy").write_bytes((tmp_path / "v.npy").read_bytes()[:-1000])
    assert f"{tmp_path}/v.npy" in refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)


def test_an_npy_file_without_its_words(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    np.save(tmp_path / "v.npy", np.ones((2, 4), np.float32))
    assert str(tmp_path / "words.txt") in refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    (tmp_path / "words.txt").write_text("x0\nx1\nx2\n")
    said = refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    assert "(2, 4)" in said
    assert "3 words" in said


def test_words_beside_an_npy_file_that_are_not_utf8(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    np.save(tmp_path / "v.npy", np.ones((2, 4), np.float32))
    (tmp_path / "words.txt").write_bytes("x0\nna\xefve\n".encode("latin-1"))
    said = refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    assert str(tmp_path / "words.txt") in said
    assert "UTF-8" in said


def test_an_npy_file_that_holds_no_numbers(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    np.save(tmp_path / "v.npy", np.array([["a", "b"], ["c", "d"]]))
    (tmp_path / "words.txt").write_text("x0\nx1\n")
    assert f"{tmp_path}/v.npy" in refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)


def test_an_empty_file_of_vectors(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    (tmp_path / "v.txt").write_text("")
    assert f"{tmp_path}/v.txt: line 1" in refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)


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


@pytest.mark.parametrize("name", ["Flat", "Short", "Ragged", "Texts"])
def test_an_object_that_returns_the_wrong_shape(name: str, test_file: Path, encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:{name}", "--tests", test_file)
    assert f"{encoders}:{name}" in said
    assert "encode()" in said
    if name in ("Flat", "Short"):
        assert "(16, d)" in said


def test_an_object_whose_batches_differ_in_dimension(encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:Growing", "--tests", "sent-weat6")
    assert f"{encoders}:Growing" in said
    assert re.search(r"\b9\b", said)
    assert re.search(r"\b10\b", said)
