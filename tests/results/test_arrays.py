"""Arrays of a run, one file a model: bit for bit as they were, and nothing that is not as declared."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.damage import damages

from biassay.errors import RunFolderError
from biassay.results.arrays import load_arrays, save_arrays

SHAPES = {"0/t/samples": (3,), "0/t/grid": (2, 3)}
GIVEN = {"t/samples": np.array([math.nan, -0.0, 1e-320]), "t/grid": np.arange(6.0).reshape(2, 3)}


def whole(folder: Path) -> Path:
    save_arrays(folder, 0, GIVEN)
    return folder / "arrays" / "0.npz"


def assert_same(found: dict[str, np.ndarray]) -> None:
    assert set(found) == set(SHAPES)
    for name, array in GIVEN.items():
        assert (found[f"0/{name}"].shape, found[f"0/{name}"].tobytes()) == (array.shape, array.tobytes())


def test_arrays_come_back_bit_for_bit_and_numpy_reads_them(tmp_path: Path) -> None:
    path = whole(tmp_path)
    assert_same(load_arrays(tmp_path, SHAPES))
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive.files) == ["t/grid", "t/samples"]


def test_names_of_tests_are_no_paths(tmp_path: Path) -> None:
    names = ("C1", "own/test", "<script>alert(1)</script>", "prénoms ☃", "../up", "file", "a.npy")
    save_arrays(tmp_path, 12, {name: np.array([float(i)]) for i, name in enumerate(names)})
    found = load_arrays(tmp_path, {f"12/{name}": (1,) for name in names})
    assert [array[0] for array in found.values()] == list(range(len(names)))
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")] == ["arrays/12.npz"]


def test_nothing_is_written_where_there_is_nothing_and_what_a_killed_run_left_is_replaced(tmp_path: Path) -> None:
    save_arrays(tmp_path, 0, {})
    assert not list(tmp_path.iterdir())
    path = whole(tmp_path)
    content = path.read_bytes()
    path.write_bytes(b"left by another attempt")
    save_arrays(tmp_path, 0, GIVEN)
    assert path.read_bytes() == content


def archive(header: str, data: bytes = b"", method: int = zipfile.ZIP_STORED) -> bytes:
    """Arrays with a header as given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for part in GIVEN:
            content = header.ljust(117).encode() + b"\n"
            made.writestr(f"{part}.npy", b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content + data)
    return buffer.getvalue()


def of(shape: str, kind: str = "<f8") -> str:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(archive(of("(100000000000,)")), id="absurd size"),
        pytest.param(archive(of("(-1,)")), id="negative size"),
        pytest.param(archive(of("(1,)", "<U999999999")), id="absurd type"),
        pytest.param(archive(of("(3,)", "|O"), bytes(24)), id="objects"),
        pytest.param(archive(of("(3,)"), bytes(24)), id="another shape"),
        pytest.param(archive(of("(3,)"), bytes(24), zipfile.ZIP_DEFLATED), id="compressed"),
        pytest.param(archive("-" * 9000 + "1"), id="header of many characters"),
        pytest.param(b"not an archive", id="something else"),
        pytest.param(b"", id="empty"),
    ],
)
def test_what_is_not_as_declared_is_refused(tmp_path: Path, content: bytes) -> None:
    path = whole(tmp_path)
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"arrays/0\.npz"):
        load_arrays(tmp_path, SHAPES)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"arrays/0\.npz"):
        load_arrays(tmp_path, SHAPES)


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_damaged_arrays_are_refused_or_read_as_they_were(tmp_path: Path) -> None:
    path = whole(tmp_path)
    taken, content = 0, path.read_bytes()
    for damaged in (*damages(content, 150), content[: len(content) // 2]):
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, module="zipfile")
            try:
                found = load_arrays(tmp_path, SHAPES)
            except RunFolderError:
                continue
        assert_same(found)
        taken += 1
    assert 0 < taken < 100
