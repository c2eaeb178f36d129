"""A file of vectors that has changed is another one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from biassay.models.registry import open_encoder
from biassay.models.vector_files import file_fingerprint

from .vector_forms import matrix_of, write, write_bytes


def _write_at(path: Path, offset: int, content: bytes) -> None:
    """Change a file in place and set its time back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_fingerprint_changes_with_any_byte(tmp_path: Path) -> None:
    size = 1 << 20
    path = write_bytes(tmp_path, "v.bin", bytes(size))
    assert file_fingerprint(path) == file_fingerprint(path)
    seen = {file_fingerprint(path)}
    for offset in (0, 1, 65_536, 100_000, size // 2 - 1, size // 2, size - 65_537, size - 1):
        _write_at(path, offset, b"x")
        seen.add(file_fingerprint(path))
    path.write_bytes(path.read_bytes() + b"x")
    assert len({*seen, file_fingerprint(path)}) == 10


def test_a_copy_under_another_name_and_date_is_the_same_model(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2 3\n")
    before = open_encoder(f"vectors:{path}").identity
    copy = Path(shutil.copyfile(path, tmp_path / "copy.txt"))
    os.utime(copy, ns=(1, 1))
    copy.chmod(0o400)
    after = open_encoder(f"vectors:{copy}").identity
    assert (after.key, after.revision) == (before.key, before.revision)


def test_model_is_another_when_the_words_beside_an_npy_change(tmp_path: Path) -> None:
    """Otherwise stored vectors of the old words would be used."""
    path = write(tmp_path, "matrix.npy", ["cat", "dog"], matrix_of(["cat", "dog"]))
    before = open_encoder(f"vectors:{path}").identity.key
    (tmp_path / "words.txt").write_text("dog\ncat\n")
    assert open_encoder(f"vectors:{path}").identity.key != before
