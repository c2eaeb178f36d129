"""Each text is encoded once, whatever happens in between."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.cache.handlers import ProgressCallback, RepresentationHandler, fetch_missing
from biassay.cache.responses import TEXTS as CODEC
from biassay.cache.responses import ModelCache, RepresentationCaches, ResponseCache
from biassay.models.base import Encoder, Identity, Span, TextEmbeddings

TEXTS = [f"text number {i}" for i in range(60)]
MANY = [f"text number {i}" for i in range(400)]
BATCH = 4


def vectors_of(texts: Sequence[str]) -> NDArray[np.float32]:
    """Numbers that depend on the text alone."""
    digests = (hashlib.blake2b(text.encode(), digest_size=32).digest() for text in texts)
    return np.array([list(digest) for digest in digests], dtype=np.float32) + 1


class Counting:
    """An encoder that records its requests."""

    batch_size = BATCH

    def __init__(self, revision: str | None = "1") -> None:
        self.identity = Identity("counting", "test", revision)
        self.prepared: list[list[str]] = []
        self.batches: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    def prepare(self, texts: Sequence[str]) -> None:
        self.prepared.append(list(texts))

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        self.batches.append(list(texts))
        return TextEmbeddings.from_vectors(vectors_of(texts))


class Announcing(Counting):
    """A slow encoder that prints the batch that it starts."""

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        print(len(self.batches), flush=True)
        time.sleep(0.01)
        return super().encode(texts)


class Giving(Counting):
    """An encoder that returns given vectors."""

    def __init__(self, vectors: object, unknown: tuple[tuple[Span, ...], ...] | None = None) -> None:
        super().__init__()
        self._given = np.array(vectors, dtype=np.float32)
        self._unknown = unknown

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        super().encode(texts)
        return TextEmbeddings.from_vectors(self._given, self._unknown)


def store_in(root: Path | None, encoder: Counting) -> ModelCache[str, TextEmbeddings]:
    return ResponseCache(root).for_model(encoder.identity, CODEC)


def encode_missing(
    encoder: Encoder,
    texts: Sequence[str],
    store: ModelCache[str, TextEmbeddings],
    progress: ProgressCallback | None = None,
) -> int:
    return fetch_missing(
        RepresentationHandler(encoder, [""]), texts, RepresentationCaches({"": store}, texts), progress
    )


def fill(root: Path, texts: Sequence[str]) -> list[str]:
    """Return the texts that a new process encodes, and check the vectors."""
    encoder = Counting()
    store = store_in(root, encoder)
    encode_missing(encoder, texts, store)
    np.testing.assert_array_equal(store.get(texts).vectors, vectors_of(texts))
    return encoder.texts


# Once


def test_each_distinct_text_is_encoded_once_in_batches(tmp_path: Path) -> None:
    encoder = Counting()
    texts = [*TEXTS[:6], *TEXTS[:6], TEXTS[3], TEXTS[6]]
    assert encode_missing(encoder, texts, store_in(tmp_path, encoder)) == 7
    assert encoder.batches == [TEXTS[:4], TEXTS[4:7]]
    assert len(encoder.prepared) == 1
    assert set(encoder.prepared[0]) == set(TEXTS[:7])


# Refused


def test_vectors_whose_squares_are_too_large_or_too_small_for_single_precision_are_kept(tmp_path: Path) -> None:
    encoder = Giving([[1e30, 1e30], [1e-30, 0], [3, 4]])
    store = store_in(tmp_path, encoder)
    assert encode_missing(encoder, TEXTS[:3], store) == 3
    np.testing.assert_array_equal(
        store.get(TEXTS[:3]).vectors, np.array([[1e30, 1e30], [1e-30, 0], [3, 4]], dtype=np.float32)
    )


# Damage and interruption


def _start(root: Path, count: int) -> subprocess.Popen[str]:
    """Run this file as a process that encodes the first of MANY slowly after a line on standard input."""
    command = [sys.executable, __file__, str(root), str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_kill_loses_at_most_the_batch_in_flight(tmp_path: Path) -> None:
    """When batch 7 begins, the seven before it are in the store."""
    with _start(tmp_path, len(MANY)) as process:
        _wait_until_ready(process)
        _go(process)
        assert process.stdout is not None
        begun = [int(line) for _, line in zip(range(8), process.stdout, strict=False)]
        process.send_signal(signal.SIGKILL)
        begun += [int(line) for line in process.stdout]  # begun between the line that was read and the signal
    assert process.returncode == -signal.SIGKILL
    encoder = Counting()
    store = store_in(tmp_path, encoder)
    missing = store.missing(MANY)
    assert store.damaged == []
    assert missing in (MANY[begun[-1] * BATCH :], MANY[(begun[-1] + 1) * BATCH :])
    assert missing
    assert fill(tmp_path, MANY) == missing


@pytest.mark.slow
def test_two_processes_at_once_give_a_usable_store(tmp_path: Path) -> None:
    with _start(tmp_path, len(TEXTS)) as one, _start(tmp_path, len(TEXTS)) as two:
        for process in (one, two):
            _wait_until_ready(process)
        for process in (one, two):
            _go(process)
        said = [process.communicate(timeout=60)[0] for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0)
    assert [len(lines.split()) for lines in said] == [len(TEXTS) // BATCH] * 2  # neither found the other's done
    encoder = Counting()
    store = store_in(tmp_path, encoder)
    assert (store.damaged, store.missing(TEXTS)) == ([], [])
    np.testing.assert_array_equal(store.get(TEXTS).vectors, vectors_of(TEXTS))
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


def main(root: Path, count: int) -> None:
    encoder = Announcing()
    store = store_in(root, encoder)
    print("ready", flush=True)
    sys.stdin.readline()
    encode_missing(encoder, MANY[:count], store)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
