"""Shards of vectors: round trip, resumption after interruptions, and detection of damage."""

from __future__ import annotations

import dataclasses
import errno
import io
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.damage import damages

from biassay.cache.context_vectors import ShardStore, StoreMetadata
from biassay.errors import MeasurementError, RunFolderError, StorageError, VectorError

ROWS, D = 23, 5
ABOUT = StoreMetadata(
    contexts="0123abcd",
    rows=ROWS,
    model="hf:tiny",
    backend="hf",
    revision="revision 1",
    settings=(("word", "last"), ("layer", "-1")),
    window="9",
    dtype="float32",
    shard_rows=10,
)


def all_vectors() -> NDArray[np.float32]:
    vectors = np.random.default_rng(1).normal(size=(ROWS, D)).astype(np.float32)
    vectors[[3, 22]] = np.nan
    return vectors


def fill(store: ShardStore) -> None:
    for number in store.missing():
        store.write(number, all_vectors()[store.get_rows(number)])


def filled(folder: Path, **changes: Any) -> ShardStore:
    store = ShardStore.open(folder, dataclasses.replace(ABOUT, **changes))
    fill(store)
    return store


def shard_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npy"))


# Written and read


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_was_written_is_read_back_by_another_process(tmp_path: Path, dtype: Any) -> None:
    filled(tmp_path, dtype=dtype)
    store = ShardStore.open(tmp_path, dataclasses.replace(ABOUT, dtype=dtype))
    assert (store.missing(), store.verify()) == ((), ())
    read = store.read(slice(None))
    assert read.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(read, all_vectors().astype(dtype))
    assert np.flatnonzero(np.isnan(read).all(axis=1)).tolist() == [3, 22]


# What is refused


def test_a_number_too_large_for_float16_is_refused(tmp_path: Path) -> None:
    store = ShardStore.open(tmp_path, dataclasses.replace(ABOUT, dtype="float16"))
    vectors = all_vectors()[10:20]
    vectors[4, 2] = -70_000
    with pytest.raises(VectorError, match=r"row 14 has the number 70000, too large for float16; .* as float32"):
        store.write(1, vectors)
    assert store.missing() == (0, 1, 2)
    assert not shard_files(tmp_path)
    vectors[4, 2] = -65_504
    store.write(1, vectors)
    assert store.read(slice(14, 15))[0, 2] == -65_504


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_vector_that_is_partly_not_finite_is_refused(tmp_path: Path, value: float) -> None:
    vectors = all_vectors()[10:20]
    vectors[7, 0] = value
    with pytest.raises(VectorError, match="row 17 is not finite"):
        ShardStore.open(tmp_path, ABOUT).write(1, vectors)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"contexts": "ffff", "rows": 24}, ["contexts was '0123abcd', now 'ffff'", "rows was 23, now 24"]),
        ({"revision": None}, ["revision was 'revision 1', now None"]),
        (
            {"settings": (("word", "mean"), ("layer", "-1"))},
            ["settings was {'word': 'last'.*}, now {'word': 'mean'.*}"],
        ),
        ({"window": "sentence"}, ["window was '9', now 'sentence'"]),
        ({"dtype": "float16"}, ["dtype was 'float32', now 'float16'"]),
        ({"shard_rows": 5}, ["shard_rows was 10, now 5"]),
    ],
)
def test_a_store_of_something_else_is_refused(tmp_path: Path, changes: dict[str, Any], named: list[str]) -> None:
    filled(tmp_path)
    with pytest.raises(RunFolderError, match=f"holds other vectors: {'; '.join(named)}; choose another folder"):
        ShardStore.open(tmp_path, dataclasses.replace(ABOUT, **changes))
    assert ShardStore.open(tmp_path, ABOUT).missing() == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"9" * 5000])
def test_a_description_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    filled(tmp_path)
    (tmp_path / "about.json").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"about\.json.*choose another folder"):
        ShardStore.open(tmp_path, ABOUT)
    assert len(shard_files(tmp_path)) == 3


# Interrupted, damaged


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_a_store_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    store = ShardStore.open(tmp_path, ABOUT)
    store.write(0, all_vectors()[:10])

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        with pytest.raises(StorageError, match=r"No space left .*; free some space, or .* --vectors DIR"):
            store.write(1, all_vectors()[10:20])
    assert store.missing() == (1, 2)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npy"]
    again = ShardStore.open(tmp_path, ABOUT)
    assert (again.missing(), again.damaged) == ((1, 2), [])
    fill(store)
    np.testing.assert_array_equal(store.read(slice(None)), all_vectors())


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)


def test_an_altered_file_is_found_out_when_it_is_read(tmp_path: Path) -> None:
    filled(tmp_path)
    altered = shard_files(tmp_path)[1]
    flip(altered)
    store = ShardStore.open(tmp_path, ABOUT)
    assert store.missing() == ()  # its size is right
    np.testing.assert_array_equal(store.read(slice(0, 10)), all_vectors()[:10])
    with pytest.raises(MeasurementError, match=f"{altered.name}: damaged and removed; run again"):
        store.read(slice(9, 11))
    assert (store.missing(), store.damaged, altered.exists()) == ((1,), [altered.name], False)
    fill(store)
    np.testing.assert_array_equal(store.read(slice(None)), all_vectors())


def test_damaged_shards_are_removed_or_read_as_they_were(tmp_path: Path) -> None:
    """Headers above all: they are looked at before anything is hashed."""
    filled(tmp_path)
    file = shard_files(tmp_path)[2]
    content = file.read_bytes()
    head = (damaged + content[128:] for damaged in damages(content[:128], 300))
    for damaged in (*head, *damages(content, 100)):
        file.write_bytes(damaged)
        store = ShardStore.open(tmp_path, ABOUT)
        store.verify()
        assert (store.missing(), store.damaged) == ((), []) if damaged == content else ((2,), [file.name])
        assert file.exists() == (damaged == content)
    fill(store)
    np.testing.assert_array_equal(store.read(slice(None)), all_vectors())


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 1}', None])
def test_a_store_of_the_cache_describes_itself_again(tmp_path: Path, damage: bytes | None) -> None:
    ShardStore.open(tmp_path / "kept", ABOUT, in_cache=True).write(0, all_vectors()[:10])
    about = tmp_path / "kept" / "about.json"
    content = about.read_bytes()
    about.unlink()
    if damage is None:
        about.mkdir()
    else:
        about.write_bytes(damage)
    assert ShardStore.open(tmp_path / "kept", ABOUT, in_cache=True).missing() == (1, 2)
    assert about.read_bytes() == content


def saved(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("number", "array"),
    [
        (1, np.zeros((10, D + 1), dtype=np.float32)),
        (1, np.zeros((9, D), dtype=np.float32)),
        (1, np.zeros((10, D), dtype=np.float64)),
        (1, np.zeros((10, D), dtype=np.float32, order="F")),
        (3, np.zeros((10, D), dtype=np.float32)),
    ],
)
def test_a_whole_file_that_does_not_belong_here_is_removed(tmp_path: Path, number: int, array: Any) -> None:
    filled(tmp_path)
    if number == 1:
        shard_files(tmp_path)[1].unlink()
    name = f"{number:06d}-{ShardStore.open(tmp_path, ABOUT)._make_digest(number, [saved(array)])}.npy"
    (tmp_path / name).write_bytes(saved(array))
    store = ShardStore.open(tmp_path, ABOUT)
    assert store.damaged == [name]
    assert store.missing() == ((1,) if number == 1 else ())


@pytest.mark.parametrize("change", [{"revision": "revision 2"}, {"contexts": "4567"}, {"window": "sentence"}, {}])
def test_a_file_of_another_store_or_shard_is_not_used(tmp_path: Path, change: dict[str, Any]) -> None:
    filled(tmp_path / "own")
    filled(tmp_path / "other", **change)
    first, second = shard_files(tmp_path / "own")[0], shard_files(tmp_path / "other")[0 if change else 1]
    first.unlink()
    shutil.copy(second, first.with_name(f"000000{second.name[6:]}"))
    store = ShardStore.open(tmp_path / "own", ABOUT)
    assert store.verify() == (0,)
    assert store.missing() == (0,)


def test_of_two_files_of_one_shard_the_intact_one_stays(tmp_path: Path) -> None:
    filled(tmp_path)
    good = shard_files(tmp_path)[1]
    bad = [tmp_path / f"000001-{digit * 16}.npy" for digit in "0f"]
    for file in bad:
        file.write_bytes(good.read_bytes())
        flip(file)
    store = ShardStore.open(tmp_path, ABOUT)
    assert store.damaged == [file.name for file in bad]
    assert shard_files(tmp_path)[1] == good
    np.testing.assert_array_equal(store.read(slice(None)), all_vectors())


def test_a_folder_that_is_not_a_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"not empty \(it holds thesis\.txt\)"):
        ShardStore.open(tmp_path, ABOUT)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(RunFolderError, match="thesis"):
        ShardStore.open(tmp_path / "thesis.txt", ABOUT)


def test_a_store_that_was_deleted_is_created_again(tmp_path: Path) -> None:
    store = ShardStore.open(tmp_path / "kept", ABOUT, in_cache=True)
    store.write(0, all_vectors()[:10])
    shutil.rmtree(tmp_path / "kept")
    store.write(1, all_vectors()[10:20])
    assert (store.verify(), store.missing(), store.damaged) == ((0,), (0, 2), [])
    assert ShardStore.open(tmp_path / "kept", ABOUT).missing() == (0, 2)
