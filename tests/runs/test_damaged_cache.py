"""A damaged, deleted or read-only cache: runs recompute missing data or suggest a remedy."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli import main
from biassay.errors import StorageError

from .test_engine import assert_same, write_test, write_vectors

pytestmark = pytest.mark.usefixtures("measured_once")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def put_folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "flipped": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"garbage" * 99),
    "folder": put_folder,
    "unreadable": lambda path: path.chmod(0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_file_of_the_cache_may_be_damaged(tmp_path: Path, own_cache: Path, damage: str) -> None:
    vectors, test = write_vectors(tmp_path / "own.txt"), write_test(tmp_path / "own.json")
    os.utime(tmp_path / "own.txt", (1, 1))
    first = biassay.run(vectors, tests=test)
    kinds = {path.relative_to(own_cache).parts[0] for path in own_cache.rglob("*") if path.is_file()}
    assert "measured" in kinds
    for path in sorted(path for path in own_cache.rglob("*") if path.is_file()):
        if not path.exists():  # a damaged measurement is removed as a whole
            continue
        DAMAGES[damage](path)
        again = biassay.run(vectors, tests=test)
        assert_same(first, again)


def test_a_cache_deleted_while_a_model_is_asked_is_created_again(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from biassay.models import word_vectors

    vectors, test = write_vectors(tmp_path / "own.txt"), write_test(tmp_path / "own.json")
    expected = biassay.run(vectors, tests=test, cache=tmp_path / "other")
    real, asked = word_vectors.WordVectorEncoder.encode, list[int]()

    def encode(encoder: Any, texts: Sequence[str]) -> Any:
        asked.append(len(texts))
        if len(asked) == 2:
            shutil.rmtree(own_cache)
        return real(encoder, texts)

    monkeypatch.setattr(word_vectors.WordVectorEncoder, "encode", encode)
    monkeypatch.setattr(word_vectors.WordVectorEncoder, "batch_size", 4)
    assert biassay.run(vectors, tests=test).tables == expected.tables
    assert len(asked) > 2
    assert list(own_cache.rglob("*.npz"))


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace", "mkdir"])
def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    vectors, test = write_vectors(tmp_path / "own.txt"), write_test(tmp_path / "own.json")
    break_calls(monkeypatch, call, own_cache, number)
    with pytest.raises(StorageError) as caught:
        biassay.run(vectors, tests=test)
    message = str(caught.value)
    assert message.startswith(f"{own_cache}{os.sep}")
    assert f"cannot write to the cache: {os.strerror(number)}; " in message
    assert message.endswith("choose another folder with --cache DIR (cache=) or BIASSAY_CACHE")
    assert ("free some space" in message) == (number in (errno.ENOSPC, errno.EDQUOT))


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
@pytest.mark.parametrize("call", ["fsync", "replace", "mkdir"])
def test_an_output_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, call: str
) -> None:
    vectors, test = write_vectors(tmp_path / "own.txt"), write_test(tmp_path / "own.json")
    out = tmp_path / "runs" / "one"
    break_calls(monkeypatch, call, out, number)
    with pytest.raises(SystemExit) as stopped:
        main(["run", str(vectors), "--tests", str(test), "--out", str(out)])
    shown = capsys.readouterr().err
    assert stopped.value.code in (1, 2)
    assert f"error: {out}" in shown
    assert os.strerror(number) in shown
    assert "choose another folder with --out DIR (out=)" in shown
    assert not out.exists()


def break_calls(monkeypatch: pytest.MonkeyPatch, call: str, folder: Path, number: int) -> None:
    """Let a call of the system fail within a folder."""
    real, names = getattr(os, call), dict[int, str]()
    real_open = Path.open

    def is_inside(argument: Any) -> bool:
        path = names.get(argument, "") if isinstance(argument, int) else os.fspath(argument)
        return Path(path).is_relative_to(folder)

    def opened(path: Path, *args: Any, **named: Any) -> Any:
        file = real_open(path, *args, **named)
        names[file.fileno()] = str(path)
        return file

    def failing(argument: Any, *args: Any, **named: Any) -> Any:
        if is_inside(argument):
            raise OSError(number, os.strerror(number), *(() if isinstance(argument, int) else (str(argument),)))
        return real(argument, *args, **named)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, call, failing)
