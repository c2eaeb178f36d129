"""The vector store: a folder for every model, in it one file for every batch that was encoded.

A file is named by the hash of its own bytes, so that a truncated or altered one is seen and never used. It appears
under its name only when it is complete. Nothing is ever rewritten; two processes that encode the same texts write two
files, which agree. There is no index to corrupt and no lock to leave behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Encoded, Identity, Span
from biassay.errors import MeasurementError
from biassay.files import open_file, write_atomically

__all__ = ["ModelStore", "VectorStore"]

_STALE_SECONDS = 24 * 3600


def _text_key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


@dataclass(frozen=True)
class _Notes:
    """What the model did not know of a text, and where it stopped reading."""

    unknown: tuple[Span, ...]
    cut: int | None


@dataclass(frozen=True)
class _Place:
    """Where a vector lies."""

    file: Path
    row: int


class VectorStore:
    """All stored vectors, by model. Without a root, or for a model of unknown revision, they are kept in memory."""

    def __init__(self, root: Path | None) -> None:
        self.root = root

    def of(self, identity: Identity) -> ModelStore:
        """The part of the store that belongs to one model and its settings."""
        if self.root is None or identity.key is None:
            return ModelStore(None)
        folder = self.root / identity.key
        folder.mkdir(parents=True, exist_ok=True)
        about = folder / "model.json"
        if not about.exists():
            described = {"family": identity.family, "revision": identity.revision, "settings": dict(identity.settings)}
            write_atomically(about, json.dumps(described, indent=1).encode())
        return ModelStore(folder)


class ModelStore:
    """Stored vectors of one model.

    Attributes
    ----------
    damaged : list of str
        Names of the files that were found damaged and removed; their texts count as not stored.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._notes: dict[bytes, _Notes] = {}
        self._places: dict[bytes, _Place] = {}
        self._memory: dict[bytes, NDArray[np.float32]] = {}
        self.damaged: list[str] = []
        if folder is not None:
            self._open(folder)

    def _open(self, folder: Path) -> None:
        for leftover in folder.glob(".*.tmp"):
            with contextlib.suppress(FileNotFoundError):  # its process may have finished in between
                if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                    leftover.unlink()
        for file in sorted(folder.glob("*.npz")):
            if not self._index(file):
                self.damaged.append(file.name)
                file.unlink(missing_ok=True)

    def _index(self, file: Path) -> bool:
        """Note what a file holds; False if it is not what its name says."""
        try:
            with open_file(file) as stream:
                content = stream.read()
        except FileNotFoundError:  # another process found it damaged first
            return True
        if hashlib.blake2b(content, digest_size=16).hexdigest() != file.stem:
            return False
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                keys = archive["keys"]
                notes = json.loads(archive["notes"].tobytes())
        except (ValueError, KeyError, zipfile.BadZipFile):
            return True  # whole, but not ours: leave it alone
        for row, (key, (spans, cut)) in enumerate(zip(keys, notes, strict=True)):
            self._places[key.tobytes()] = _Place(file, row)
            self._notes[key.tobytes()] = _Notes(tuple((a, b) for a, b in spans), cut)
        return True

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts without a stored vector, in order."""
        return [text for text in dict.fromkeys(texts) if _text_key(text) not in self._notes]

    def add(self, texts: Sequence[str], encoded: Encoded) -> None:
        """Keep the vectors of a batch, all or none."""
        keys = [_text_key(text) for text in texts]
        notes = list(zip(encoded.unknown, encoded.cut, strict=True))
        if self._folder is None:
            self._memory.update(zip(keys, encoded.vectors.copy(), strict=True))
            self._notes.update((key, _Notes(*note)) for key, note in zip(keys, notes, strict=True))
            return
        buffer = io.BytesIO()
        np.savez(
            buffer,
            keys=np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 16),
            vectors=encoded.vectors,
            notes=np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8),
        )
        content = buffer.getvalue()
        file = self._folder / f"{hashlib.blake2b(content, digest_size=16).hexdigest()}.npz"
        write_atomically(file, content)
        self._places.update((key, _Place(file, row)) for row, key in enumerate(keys))
        self._notes.update((key, _Notes(*note)) for key, note in zip(keys, notes, strict=True))

    def get(self, texts: Sequence[str]) -> Encoded:
        """Vectors of texts that are all stored, in order; repeated texts are repeated."""
        keys = [_text_key(text) for text in texts]
        rows = self._rows(set(keys))
        notes = [self._notes[key] for key in keys]
        return Encoded.of(np.stack([rows[key] for key in keys]), [n.unknown for n in notes], [n.cut for n in notes])

    def _rows(self, keys: set[bytes]) -> dict[bytes, NDArray[np.float32]]:
        rows = {key: self._memory[key] for key in keys if key in self._memory}
        by_file: dict[Path, list[bytes]] = {}
        for key in keys - rows.keys():
            by_file.setdefault(self._places[key].file, []).append(key)
        for file, wanted in by_file.items():
            try:
                with np.load(file, allow_pickle=False) as archive:
                    vectors = archive["vectors"]
            except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
                raise MeasurementError(f"{file}: changed while in use; run again to encode its texts anew") from error
            rows.update((key, vectors[self._places[key].row]) for key in wanted)
        return rows
