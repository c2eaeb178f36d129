"""Files: digests of their content, kept where that is safe; pipes and devices in place of a file; written whole."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.datasets.abc_model import load_abc
from biassay.datasets.human_ratings import read_human_ratings
from biassay.datasets.stimulus_files import read_document
from biassay.errors import StimulusError
from biassay.io import (
    atomic_folder,
    check_digest,
    content_digest,
    dump_json_with_digest,
    iter_json_chunks,
    write_atomically,
)
from biassay.runs.compare import report_runs
from biassay.survey.study import read_study, read_texts

NOW = time.time


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute has passed since the files were written."""
    monkeypatch.setattr(time, "time", lambda: NOW() + 60)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def refuse() -> None:
        def read(*_: object) -> None:
            raise AssertionError("the file was read")

        monkeypatch.setattr(hashlib, "file_digest", read)

    return refuse


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.usefixtures("later")
def test_the_second_time_reads_nothing(tmp_path: Path, unread: Callable[[], None]) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one" * 1000)
    first = content_digest(path)
    assert first == sha256(path)
    unread()
    assert content_digest(path) == first
    (tmp_path / "link").symlink_to(path)
    assert content_digest(tmp_path / "link") == first


def test_a_file_that_was_just_written_is_not_kept(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    assert content_digest(path) == sha256(path)
    assert not (own_cache / "digests").exists()


@pytest.mark.usefixtures("later")
def test_a_damaged_note_is_not_believed(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    digest = content_digest(path)
    (kept,) = (own_cache / "digests").iterdir()
    whole = kept.read_bytes()
    for damaged in (b"", whole[:40], b"0" * 64 + whole[64:], b"\xff" + whole[1:], whole[::-1]):
        kept.write_bytes(damaged)
        assert content_digest(path) == digest


READERS: dict[str, Callable[[Path], object]] = {
    "tests": read_document,
    "groups": lambda path: load_abc([path]),
    "judgements": read_human_ratings,
    "words": lambda path: biassay.discover("glove", "mexican-american-females", words=path),
    "study": read_study,
    "texts of a study": lambda path: read_texts(path.name, path.parent),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_or_a_device_is_no_file(reader: str, tmp_path: Path) -> None:
    """A pipe would be waited for, and a device read, for ever."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    for name in ("pipe.toml", "device.toml"):
        with pytest.raises(StimulusError) as caught:
            READERS[reader](tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")


def _no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_leaves_nothing_behind(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, step, _no_space)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_leaves_the_old_file_as_it_was(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, step, _no_space)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old")]


def test_content_is_on_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, steps = tmp_path / "file", []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        steps.append(("fsync", os.fstat(descriptor).st_size, path.exists()))
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        steps.append(("replace", os.stat(source).st_size, path.exists()))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_atomically(path, b"content")
    assert steps[:2] == [("fsync", 7, False), ("replace", 7, False)]
    assert path.read_bytes() == b"content"


def lazy(content: Any) -> Any:
    """The same with iterators in the place of lists that are not inside others."""
    if isinstance(content, dict):
        return {name: lazy(value) for name, value in content.items()}
    return iter(content) if isinstance(content, list) else content


@pytest.mark.parametrize("rows", [0, 1, 1000, 2500])
def test_json_in_pieces_is_json_as_a_whole(rows: int) -> None:
    row = {"name": "é\n", "parts": [1, [], {}, {"p": 0.1}], "none": None, "yes": True}
    content = {"version": 1, "tables": {"rows": [row] * rows, "few": [3]}, "nothing": {}, "ü": {"a": {"b": [[1]]}}}
    digest = hashlib.blake2b(json.dumps(content, separators=(",", ":")).encode(), digest_size=16).hexdigest()
    whole = json.dumps({**content, "digest": digest}, indent=1, ensure_ascii=False) + "\n"
    assert dump_json_with_digest(content) == "".join(iter_json_chunks(lazy(content))) == whole
    assert check_digest(json.loads(whole)) is True


def test_json_of_a_long_list_is_not_in_memory_as_a_whole() -> None:
    made: list[int] = []
    pieces = iter_json_chunks({"rows": (made.append(i) or i for i in range(100_000))})  # type: ignore[func-returns-value]
    for _ in range(5):
        next(pieces)
    assert 0 < len(made) < 5_000
    assert json.loads("".join([*iter_json_chunks({"rows": iter(range(3))})]))["rows"] == [0, 1, 2]


KILLED = """
import os, sys
from pathlib import Path
import biassay
from biassay.runs import compare, log_import

def kill(*_, **__):
    os._exit(9)

if sys.argv[1] == "import":
    log_import.write_report = kill
    biassay.import_logs(sys.argv[2], out=sys.argv[3])
else:
    from biassay.reporting import publication
    publication.to_bibtex = kill
    compare.report_runs([sys.argv[2]], published=sys.argv[3], formats=["svg"])
"""


@pytest.mark.parametrize("command", ["import", "publish"])
def test_a_command_that_is_killed_leaves_a_free_folder(tmp_path: Path, command: str) -> None:
    """Neither a run that looks complete nor a folder that blocks the next attempt."""
    logs = Path(__file__).parent / "reference" / "logs"
    (log,) = logs.glob("samples_crows*")
    given = log if command == "import" else tmp_path / "run"
    if command == "publish":
        biassay.import_logs(log, out=given)
    folder = tmp_path / "new" / "folder"
    done = subprocess.run([sys.executable, "-c", KILLED, command, given, folder], check=False)
    assert done.returncode == 9
    assert not folder.exists()
    if command == "import":
        biassay.import_logs(log, out=folder)
        assert (folder / "report.html").exists()
    else:
        report_runs([given], published=folder, formats=["svg"])
        assert (folder / "references.bib").exists()


def test_leftovers_of_killed_processes_are_removed_after_a_day(tmp_path: Path) -> None:
    old, recent = tmp_path / ".new.1.tmp", tmp_path / ".new.2.tmp"
    for leftover in (old, recent):
        leftover.mkdir()
    os.utime(old, (0, 0))
    with atomic_folder(tmp_path / "new") as working:
        (working / "file").write_text("content")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".new.2.tmp", "new"]
    assert (tmp_path / "new" / "file").read_text() == "content"
