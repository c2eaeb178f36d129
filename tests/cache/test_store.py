"""Vectors are found by content, and damaged files are found out."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from biassay.cache.codecs import TEXTS as CODEC
from biassay.cache.responses import ModelCache, ResponseCache, get_file_name
from biassay.errors import StorageError
from biassay.models.base import Identity, TextEmbeddings

IDENTITY = Identity("model", "family", "revision 1", (("case", "keep"),))
TEXTS = ["cat", "dog", "日本", "This is a cat."]


def vectors_of(texts: list[str], dimension: int = 6) -> np.ndarray:
    """Numbers that depend on the text alone."""
    digests = (hashlib.blake2b(text.encode(), digest_size=dimension).digest() for text in texts)
    return np.array([list(digest) for digest in digests], dtype=np.float32) + 1


def encoded(texts: list[str]) -> TextEmbeddings:
    return TextEmbeddings.from_vectors(vectors_of(texts))


def open_store(root: Path, identity: Identity = IDENTITY) -> ModelCache[str, TextEmbeddings]:
    return ResponseCache(root).for_model(identity, CODEC)


def files_in(root: Path, pattern: str = "*.npz") -> list[Path]:
    return sorted(root.rglob(pattern))


def leftovers_in(root: Path) -> list[str]:
    return [path.name for path in root.rglob("*") if path.name.endswith(".tmp")]


# Content addressing


def test_vectors_are_kept_for_the_next_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store.missing(TEXTS) == TEXTS
    store.add(TEXTS, encoded(TEXTS))
    for later in (store, open_store(tmp_path)):
        assert later.missing(TEXTS) == []
        assert later.damaged == []
        found = later.get(TEXTS)
        np.testing.assert_array_equal(found.vectors, vectors_of(TEXTS))
        assert found.vectors.dtype == np.float32


def test_vectors_come_in_the_order_asked_for_with_repeats(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.add(TEXTS[:2], encoded(TEXTS[:2]))
    store.add(TEXTS[2:], encoded(TEXTS[2:]))
    asked = [TEXTS[3], TEXTS[0], TEXTS[3], TEXTS[1]]
    np.testing.assert_array_equal(open_store(tmp_path).get(asked).vectors, vectors_of(asked))


def test_missing_texts_are_distinct_and_in_order(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.add(["dog"], encoded(["dog"]))
    assert store.missing(["fox", "dog", "cat", "fox", "dog", "cat"]) == ["fox", "cat"]


@pytest.mark.parametrize("other", ["Cat", "cat ", "cat.", "ca", "", "cafe\u0301", "caf\u00e9"])
def test_texts_are_told_apart_to_the_letter(other: str, tmp_path: Path) -> None:
    stored = ["cat", *({"cafe\u0301", "caf\u00e9"} - {other} if other.startswith("caf") else ())]
    store = open_store(tmp_path)
    store.add(stored, encoded(stored))
    assert store.missing([other]) == [other]


@pytest.mark.parametrize(
    "other",
    [
        Identity("model", "other", "revision 1", (("case", "keep"),)),
        Identity("model", "family", "revision 2", (("case", "keep"),)),
        Identity("model", "family", "revision 1", (("case", "fold"),)),
        Identity("model", "family", "revision 1", (("pool", "keep"),)),
        Identity("model", "family", "revision 1"),
    ],
)
def test_models_and_settings_are_told_apart(other: Identity, tmp_path: Path) -> None:
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    assert open_store(tmp_path, other).missing(TEXTS) == TEXTS


def test_name_of_a_model_does_not_matter(tmp_path: Path) -> None:
    """The same weights under another path are the same model."""
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    renamed = Identity("another name", IDENTITY.family, IDENTITY.revision, IDENTITY.settings)
    assert open_store(tmp_path, renamed).missing(TEXTS) == []


def test_parts_of_an_identity_do_not_run_together() -> None:
    keys = {
        Identity("m", "ab", "c").key,
        Identity("m", "a", "bc").key,
        Identity("m", "a", "b", (("c", ""),)).key,
        Identity("m", "a", "b", (("", "c"),)).key,
        Identity("m", "a", "b", (("c", "d;e=f"),)).key,
        Identity("m", "a", "b", (("c", "d"), ("e", "f"))).key,
    }
    assert len(keys) == 6


def test_store_describes_its_model(tmp_path: Path) -> None:
    open_store(tmp_path)
    (about,) = files_in(tmp_path, "model.json")
    for part in ("family", "revision 1", "keep"):
        assert part in about.read_text()


def test_unknown_places_survive(tmp_path: Path) -> None:
    unknown = ((), ((0, 3),), ((0, 2), (5, 9)), ())
    store = open_store(tmp_path)
    store.add(TEXTS, TextEmbeddings.from_vectors(vectors_of(TEXTS), unknown))
    for later in (store, open_store(tmp_path)):
        assert later.get(TEXTS).unknown == unknown
        assert later.get([TEXTS[2], TEXTS[0], TEXTS[2]]).unknown == (unknown[2], unknown[0], unknown[2])


def test_unknown_places_survive_in_memory() -> None:
    unknown = ((), ((0, 3),), ((0, 2), (5, 9)), ())
    store = ResponseCache(None).for_model(IDENTITY, CODEC)
    store.add(TEXTS, TextEmbeddings.from_vectors(vectors_of(TEXTS), unknown))
    assert store.get(TEXTS[::-1]).unknown == unknown[::-1]


# In memory only


@pytest.mark.parametrize("revision", ["revision 1", None])
def test_without_a_folder_or_a_revision_nothing_is_written(revision: str | None, tmp_path: Path) -> None:
    root = tmp_path / "store"
    stores = ResponseCache(None if revision else root)
    identity = Identity("model", "family", revision)
    store = stores.for_model(identity, CODEC)
    store.add(TEXTS, encoded(TEXTS))
    assert store.missing(TEXTS) == []
    np.testing.assert_array_equal(store.get(TEXTS[::-1]).vectors, vectors_of(TEXTS[::-1]))
    assert list(tmp_path.rglob("*")) == []
    assert ResponseCache(root).for_model(identity, CODEC).missing(TEXTS) == TEXTS


def test_vectors_in_memory_are_the_stores_own() -> None:
    """An encoder may fill the same array again for its next batch."""
    store = ResponseCache(None).for_model(IDENTITY, CODEC)
    reused = np.empty((2, 6), dtype=np.float32)
    for batch in (TEXTS[:2], TEXTS[2:]):
        reused[:] = vectors_of(batch)
        store.add(batch, TextEmbeddings.from_vectors(reused))
    np.testing.assert_array_equal(store.get(TEXTS).vectors, vectors_of(TEXTS))


# Damage


def _truncated(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def _short_of_one(content: bytes) -> bytes:
    return content[:-1]


def _garbage(content: bytes) -> bytes:
    return np.random.default_rng(1).bytes(len(content))


def _empty(_: bytes) -> bytes:
    return b""


def _of_a_vector(content: bytes) -> bytes:
    """One bit of one number, which no reader of numbers would notice."""
    place = content.index(vectors_of(TEXTS).tobytes()) + 9
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def _of_a_key(content: bytes) -> bytes:
    place = content.index(hashlib.blake2b(TEXTS[0].encode(), digest_size=16).digest())
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def _lengthened(content: bytes) -> bytes:
    return content + b"\0"


DAMAGES = [_truncated, _short_of_one, _garbage, _empty, _of_a_vector, _of_a_key, _lengthened]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_removed_reported_and_not_used(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    (file,) = files_in(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    store = open_store(tmp_path)
    assert store.missing(TEXTS) == TEXTS
    assert store.damaged == [file.name]
    assert not file.exists()
    store.add(TEXTS, encoded(TEXTS))
    again = open_store(tmp_path)
    assert (again.damaged, again.missing(TEXTS)) == ([], [])
    np.testing.assert_array_equal(again.get(TEXTS).vectors, vectors_of(TEXTS))


def test_any_single_flipped_byte_is_found_out(tmp_path: Path) -> None:
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    (file,) = files_in(tmp_path)
    content = file.read_bytes()
    for place in range(0, len(content), 13):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        assert open_store(tmp_path).missing(TEXTS) == TEXTS, place


def test_damage_to_one_file_leaves_the_others(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.add(TEXTS[:2], encoded(TEXTS[:2]))
    (first,) = files_in(tmp_path)
    store.add(TEXTS[2:], encoded(TEXTS[2:]))
    first.write_bytes(_truncated(first.read_bytes()))
    later = open_store(tmp_path)
    assert later.missing(TEXTS) == TEXTS[:2]
    assert later.damaged == [first.name]
    np.testing.assert_array_equal(later.get(TEXTS[2:]).vectors, vectors_of(TEXTS[2:]))


def test_stray_file_is_not_taken_for_vectors(tmp_path: Path) -> None:
    """Named by its own hash, but not written by a store."""
    open_store(tmp_path)
    (about,) = files_in(tmp_path, "model.json")
    content = b"not an archive"
    name = get_file_name(content, about.parent.name)
    (about.parent / name).write_bytes(content)
    assert open_store(tmp_path).damaged == []
    assert (about.parent / name).read_bytes() == content  # whole, and perhaps of use to somebody else


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["other keys", "compressed"])
def test_a_file_that_no_store_writes_is_left_alone(save: Callable[..., None], tmp_path: Path) -> None:
    """A compressed one could unpack to gigabytes; keys of another form ended every run."""
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    (about,) = files_in(tmp_path, "model.json")
    (own,) = files_in(tmp_path)
    buffer = io.BytesIO()
    with np.load(own) as archive:
        arrays = dict(archive)
    if save is np.savez:
        arrays["keys"] = np.zeros(4, dtype="V16")
    save(buffer, **arrays)
    own.unlink()
    foreign = about.parent / get_file_name(buffer.getvalue(), about.parent.name)
    foreign.write_bytes(buffer.getvalue())
    store = open_store(tmp_path)
    assert (store.missing(TEXTS), store.damaged) == (TEXTS, [])
    assert foreign.exists()


def test_a_file_of_another_model_is_not_used(tmp_path: Path) -> None:
    other = dataclasses.replace(IDENTITY, revision="revision 2")
    open_store(tmp_path, other).add(TEXTS, encoded(TEXTS))
    (file,) = files_in(tmp_path)
    own = tmp_path / str(IDENTITY.key)
    own.mkdir()
    shutil.copy(file, own)
    store = open_store(tmp_path)
    assert store.missing(TEXTS) == TEXTS
    assert store.damaged == [file.name]
    assert open_store(tmp_path, other).missing(TEXTS) == []


# Temporary files


def test_stale_temporary_files_are_removed(tmp_path: Path) -> None:
    open_store(tmp_path)
    (about,) = files_in(tmp_path, "model.json")
    old, new = about.parent / ".a.npz.123.tmp", about.parent / ".b.npz.456.tmp"
    for file, days in ((old, 2), (new, 0)):
        file.write_bytes(b"half")
        then = time.time() - days * 24 * 3600
        os.utime(file, (then, then))
    assert open_store(tmp_path).damaged == []
    assert not old.exists()
    assert new.exists()  # another process may be writing it


def test_temporary_file_may_vanish_while_the_store_is_opened(tmp_path: Path) -> None:
    """Another process gives its file the final name just then: it was listed, and is gone. So is this link's target."""
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    (about,) = files_in(tmp_path, "model.json")
    (about.parent / ".c.npz.789.tmp").symlink_to(about.parent / "gone")
    assert open_store(tmp_path).missing(TEXTS) == []


def _no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_batch_that_cannot_be_written_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    store.add(TEXTS[:2], encoded(TEXTS[:2]))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _no_space)
        with pytest.raises(StorageError, match=r"No space left .*; free some space, or choose another folder"):
            store.add(TEXTS[2:], encoded(TEXTS[2:]))
    for later in (store, open_store(tmp_path)):
        assert later.missing(TEXTS) == TEXTS[2:]
        assert later.damaged == []
    assert leftovers_in(tmp_path) == []


def test_a_cache_where_nobody_may_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot write to the cache: .*; choose another folder with --cache DIR"):
        open_store(tmp_path / "file")
    store = open_store(tmp_path)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("biassay.cache.files.write_atomically", refused)
    with pytest.raises(StorageError, match=str(tmp_path)):
        store.add(TEXTS, encoded(TEXTS))
