"""Arrays of a run, one file per model: the same bits come back, and files that were altered are refused."""

from __future__ import annotations

import copy
import hashlib
import io
import math
import os
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.damage import damages

from biassay.errors import RunFolderError
from biassay.results.run_folder import ArrayFile, load_arrays, save_arrays

SHAPES = {"t/samples": (3,), "t/grid": (2, 3)}
GIVEN = {"t/samples": np.array([math.nan, -0.0, 1e-320]), "t/grid": np.arange(6.0).reshape(2, 3)}


def pack(arrays: Mapping[str, Any]) -> tuple[bytes, ArrayFile]:
    """Return the content of an array file and its description."""
    with tempfile.TemporaryDirectory() as folder:
        described = save_arrays(Path(folder), "0", arrays)
        return (Path(folder) / "arrays" / "0.npz").read_bytes(), described


CONTENT, DESCRIBED = pack(GIVEN)


def whole(folder: Path) -> Path:
    assert save_arrays(folder, "0", GIVEN) == DESCRIBED
    return folder / "arrays" / "0.npz"


def as_described(content: bytes) -> ArrayFile:
    """Return the record of altered content, with a matching digest."""
    return ArrayFile(hashlib.sha256(content).hexdigest(), SHAPES)


def assert_same(found: dict[str, np.ndarray]) -> None:
    assert set(found) == {f"0/{name}" for name in SHAPES}
    for name, array in GIVEN.items():
        assert (found[f"0/{name}"].shape, found[f"0/{name}"].tobytes()) == (array.shape, array.tobytes())


def test_arrays_come_back_bit_for_bit_and_numpy_reads_them(tmp_path: Path) -> None:
    path = whole(tmp_path)
    assert DESCRIBED.shapes == SHAPES
    assert_same(load_arrays(tmp_path, {"0": DESCRIBED}))
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive.files) == ["t/grid", "t/samples"]


def test_names_of_tests_are_no_paths(tmp_path: Path) -> None:
    names = ("C1", "own/test", "<script>alert(1)</script>", "prénoms ☃", "../up", "file", "a.npy")
    described = save_arrays(tmp_path, "12", {name: np.array([float(i)]) for i, name in enumerate(names)})
    found = load_arrays(tmp_path, {"12": described})
    assert [array[0] for array in found.values()] == list(range(len(names)))
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")] == ["arrays/12.npz"]


def test_a_file_that_a_killed_run_left_is_replaced(tmp_path: Path) -> None:
    path = whole(tmp_path)
    path.write_bytes(b"left by another attempt")
    assert whole(tmp_path).read_bytes() == CONTENT


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
        pytest.param(CONTENT + bytes(10_000), id="larger than its arrays"),
        pytest.param(CONTENT[:-30], id="cut"),
    ],
)
def test_what_is_not_as_declared_is_refused(tmp_path: Path, content: bytes) -> None:
    path = whole(tmp_path)
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"arrays/0\.npz"):
        load_arrays(tmp_path, {"0": as_described(content)})


def test_arrays_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """A small archive whose entries all point to the same bytes would fill the memory."""
    values = np.zeros(2_000)
    names = [f"t/{number}" for number in range(50)]
    content, _ = pack({names[0]: values})
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        (info,) = made.infolist()
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as made:
        for name in names[1:]:
            entry = copy.copy(info)
            entry.filename = f"{name}.npy"
            made.filelist.append(entry)
            made.NameToInfo[entry.filename] = entry
        made._didModify = True  # type: ignore[attr-defined]  # write the directory again
    content = buffer.getvalue()
    whole(tmp_path).write_bytes(content)
    described = ArrayFile(hashlib.sha256(content).hexdigest(), dict.fromkeys(names, values.shape))
    with pytest.raises(RunFolderError, match="overlap"):
        load_arrays(tmp_path, {"0": described})


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = whole(tmp_path)
    os.truncate(path, 2**40)  # without any blocks
    with pytest.raises(RunFolderError, match=r"1,099,511,627,776 bytes"):
        load_arrays(tmp_path, {"0": DESCRIBED})


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_damaged_arrays_are_refused_or_read_as_they_were(tmp_path: Path) -> None:
    """Also where the digest is that of the damaged file."""
    path, taken = whole(tmp_path), 0
    for damaged in (*damages(CONTENT, 150), CONTENT[: len(CONTENT) // 2]):
        path.write_bytes(damaged)
        if damaged != CONTENT:
            with pytest.raises(RunFolderError, match=r"digest|bytes"):
                load_arrays(tmp_path, {"0": DESCRIBED})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, module="zipfile")
            try:
                found = load_arrays(tmp_path, {"0": as_described(damaged)})
            except RunFolderError:
                continue
        assert_same(found)
        taken += 1
    assert 0 < taken < 100


@pytest.mark.parametrize("shape", [(-1,), (-1, -3), (0, 10**30), (10**30,), (2**62, 4)])
def test_shapes_that_no_array_has_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    whole(tmp_path)
    with pytest.raises(RunFolderError, match=r"arrays/0\.npz"):
        load_arrays(tmp_path, {"0": ArrayFile(DESCRIBED.sha256, {"t/samples": shape})})
