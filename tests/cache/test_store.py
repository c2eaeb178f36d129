"""Vectors are found by content, and damaged files are found out."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from biassay.cache.responses import TEXTS as CODEC
from biassay.cache.responses import ModelCache, ResponseCache, get_file_name
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


# Content addressing


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


def test_unknown_places_survive(tmp_path: Path) -> None:
    unknown = ((), ((0, 3),), ((0, 2), (5, 9)), ())
    store = open_store(tmp_path)
    store.add(TEXTS, TextEmbeddings.from_vectors(vectors_of(TEXTS), unknown))
    for later in (store, open_store(tmp_path)):
        assert later.get(TEXTS).unknown == unknown
        assert later.get([TEXTS[2], TEXTS[0], TEXTS[2]]).unknown == (unknown[2], unknown[0], unknown[2])


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


# Damage


def test_any_single_flipped_byte_is_found_out(tmp_path: Path) -> None:
    open_store(tmp_path).add(TEXTS, encoded(TEXTS))
    (file,) = files_in(tmp_path)
    content = file.read_bytes()
    for place in range(0, len(content), 13):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        assert open_store(tmp_path).missing(TEXTS) == TEXTS, place


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["other keys", "compressed"])
def test_a_file_that_no_store_writes_is_left_alone(save: Callable[..., None], tmp_path: Path) -> None:
    """A compressed file could unpack to gigabytes, and malformed keys stopped every run."""
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
