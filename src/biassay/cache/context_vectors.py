"""Cache vectors of words in context, by row of a contexts file.

The rows are split into shards, one file each. A file is named by the number of its shard and a hash of its bytes, this
number and the metadata of the store. It appears under its name only when it is complete, so that an interrupted run
resumes where it stopped. Damaged files, and files of another store or shard, are detected, removed and computed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.cache.files import (
    CACHE_OPTION,
    RemoteCache,
    SyncedFolder,
    make_cache_folder,
    make_npy_header,
    remove_stale_files,
    write_to_cache,
)
from biassay.errors import MeasurementError, RunFolderError, VectorError
from biassay.io import open_file, read_json, remove_damaged

METADATA_FILE = "about.json"
VECTORS_OPTION = "--vectors DIR (vectors=)"
StoredDtype = Literal["float16", "float32"]
_FORMAT = 1
_SHARD_NAME = re.compile(r"(\d{6,})-([0-9a-f]{16})\.npy")
_CHUNK_BYTES = 1 << 22  # hashed at a time, because a shard need not fit into memory


@dataclass(frozen=True)
class StoreMetadata:
    """Description of the vectors in a store.

    Attributes
    ----------
    contexts : str
        Digest of the contexts file.
    rows : int
        Number of contexts in it.
    model, backend, revision, settings
        As in `Identity`.
    window : str
        Part of a context that the model encodes.
    dtype : {"float16", "float32"}
    shard_rows : int
        Largest number of rows per file.
    """

    contexts: str
    rows: int
    model: str
    backend: str
    revision: str | None
    settings: tuple[tuple[str, str], ...]
    window: str
    dtype: StoredDtype
    shard_rows: int

    @property
    def key(self) -> str:
        """Digest of everything but the name of the model, because a copy is the same model."""
        content = {name: value for name, value in asdict(self).items() if name != "model"}
        return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()

    def to_json_data(self) -> dict[str, Any]:
        """Return the content of about.json."""
        return {"format": _FORMAT, **asdict(self), "settings": dict(self.settings)}

    def check_file(self, path: Path) -> None:
        """Raise RunFolderError unless about.json describes the same vectors."""
        try:
            stored = read_json(path)
        except RunFolderError as error:
            raise RunFolderError(f"{error}; choose another folder or delete it") from error
        if not isinstance(stored, dict):
            raise RunFolderError(f"{path} does not describe a store of vectors; choose another folder")
        differences = [
            f"{name} was {stored.get(name)!r}, now {value!r}"
            for name, value in self.to_json_data().items()
            if name != "model" and stored.get(name) != value
        ]
        if differences:
            raise RunFolderError(f"{path.parent} holds other vectors: {'; '.join(differences)}; choose another folder")


class ShardStore:
    """Vectors by row, stored in shards; some shards may be missing.

    Use `ShardStore.open` to create or open a store.

    Attributes
    ----------
    metadata : StoreMetadata
    damaged : list of str
        Names of damaged files that were removed; their shards are missing.
    """

    def __init__(
        self, folder: Path, metadata: StoreMetadata, starts: NDArray[np.int64], option: str = VECTORS_OPTION
    ) -> None:
        self.metadata = metadata
        self.damaged: list[str] = []
        self._folder, self._starts, self._option = folder, starts, option
        self._synced: SyncedFolder | None = None
        self._files: dict[int, Path] = {}
        self._arrays: dict[int, NDArray[Any]] = {}
        self._checked: set[int] = set()
        self._dimension: int | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        metadata: StoreMetadata,
        breaks: Sequence[int] = (),
        remote_cache: RemoteCache | None = None,
        *,
        in_cache: bool = False,
    ) -> ShardStore:
        """Create a store, or open one with the same metadata.

        Parameters
        ----------
        folder : Path
        metadata : StoreMetadata
        breaks : sequence of int
            A shard begins at each of these rows, so that the contexts of one word can be computed without those of its
            neighbours.
        remote_cache : RemoteCache, optional
            Object storage that the folder is synchronised with.
        in_cache : bool
            If True, the name of the folder is the key of the metadata, so that a damaged or missing about.json is
            written again. If False, the user chose the folder, and other content is an error.
        """
        starts = _make_shard_starts(metadata.rows, metadata.shard_rows, breaks)
        store = cls(folder, metadata, starts, CACHE_OPTION if in_cache else VECTORS_OPTION)
        if in_cache:
            if not folder.is_dir():
                remove_damaged(folder)
            make_cache_folder(folder)
        else:
            _make_user_folder(folder)
        remove_stale_files(folder)
        store._check_metadata(in_cache=in_cache)
        if remote_cache is not None:
            store._synced = remote_cache.folder_for(folder, store._is_named, ".npy")
            store._synced.sync()
        store._index()
        return store

    def _check_metadata(self, *, in_cache: bool) -> None:
        """Check about.json, or write it if it is missing or, in the cache, damaged."""
        path = self._folder / METADATA_FILE
        if in_cache or path.exists():
            try:
                self.metadata.check_file(path)
                return
            except RunFolderError:
                if not in_cache:
                    raise
                if path.is_dir():
                    remove_damaged(path)
        else:
            names = sorted(file.name for file in self._folder.iterdir() if not file.name.endswith(".tmp"))
            if names:
                raise RunFolderError(
                    f"{self._folder} is not a store of vectors and not empty (it holds {names[0]}); choose another"
                )
        self._write_metadata()

    def _write_metadata(self) -> None:
        content = json.dumps(self.metadata.to_json_data(), indent=1).encode()
        write_to_cache(self._folder / METADATA_FILE, content, self._option)

    def _index(self) -> None:
        candidates: dict[int, list[Path]] = {}
        for file in sorted(self._folder.iterdir()):
            if match := _SHARD_NAME.fullmatch(file.name):
                candidates.setdefault(int(match[1]), []).append(file)
        for number, files in sorted(candidates.items()):
            intact = [file for file in files if self._fits(number, file) or self._remove(file)]
            if len(intact) > 1:  # two processes wrote the shard
                intact = [file for file in intact if self._is_intact(file) or self._remove(file)]
            for duplicate in intact[1:]:
                remove_damaged(duplicate)
            if intact:
                self._files[number] = intact[0]

    def _fits(self, number: int, file: Path) -> bool:
        """Return whether a file has the expected size and header. Its content is checked when it is first read."""
        if number >= self.shards:
            return False
        dimension = _infer_dimension(file, len(self.get_rows(number)), self.metadata.dtype)
        if self._dimension is None:
            self._dimension = dimension
        return dimension is not None and dimension == self._dimension

    def _remove(self, file: Path) -> bool:
        """Remove a damaged file; always return False."""
        if file.exists():  # otherwise another process or the user deleted it
            self.damaged.append(file.name)
            remove_damaged(file)
        return False

    @property
    def used(self) -> set[str]:
        """Names of the files."""
        return {file.name for file in self._files.values()}

    @property
    def shards(self) -> int:
        """Number of shards of a complete store."""
        return len(self._starts)

    def missing(self) -> tuple[int, ...]:
        """Return the numbers of the missing shards."""
        return tuple(number for number in range(self.shards) if number not in self._files)

    def get_rows(self, number: int) -> range:
        """Return the rows of a shard."""
        end = self._starts[number + 1] if number + 1 < self.shards else self.metadata.rows
        return range(int(self._starts[number]), int(end))

    def find_shards(self, rows: slice) -> range:
        """Return the numbers of the shards that hold some rows."""
        if rows.start >= rows.stop:
            return range(0)
        first, last = np.searchsorted(self._starts, [rows.start, rows.stop - 1], side="right") - 1
        return range(int(first), int(last) + 1)

    def write(self, number: int, vectors: NDArray[np.float32]) -> None:
        """Store the vectors (n, d) of a shard, all or none. A row of NaN is a word without a vector."""
        self._check_vectors(number, vectors)
        buffer = io.BytesIO()
        np.save(buffer, self._convert(number, vectors), allow_pickle=False)
        content = buffer.getvalue()
        file = self._folder / f"{number:06d}-{self._make_digest(number, [content])}.npy"
        write_to_cache(file, content, self._option)
        if not (self._folder / METADATA_FILE).exists():  # the folder was deleted in the meantime
            self._write_metadata()
        if self._synced is not None:
            self._synced.put(file.name, content)
        self._files[number] = file
        self._checked.add(number)
        self._dimension = vectors.shape[1]

    def _check_vectors(self, number: int, vectors: NDArray[np.float32]) -> None:
        rows = self.get_rows(number)
        if vectors.ndim != 2 or len(vectors) != len(rows) or vectors.shape[1] < 1:
            raise VectorError(f"shard {number} takes {len(rows)} vectors, got an array of the shape {vectors.shape}")
        if self._dimension not in (None, vectors.shape[1]):
            raise VectorError(
                f"shard {number}: vectors of {vectors.shape[1]} numbers, those in {self._folder} have {self._dimension}"
            )
        invalid = ~np.isfinite(vectors).all(axis=1) & ~np.isnan(vectors).all(axis=1)
        if invalid.any():
            raise VectorError(f"the vector of row {rows[int(np.argmax(invalid))]} is not finite")

    def _convert(self, number: int, vectors: NDArray[np.float32]) -> NDArray[Any]:
        """Convert vectors to the stored type."""
        with np.errstate(over="ignore"):  # an error below
            converted = np.ascontiguousarray(vectors, dtype=self.metadata.dtype)
        overflows = np.isinf(converted).any(axis=1)
        if overflows.any():
            row = int(np.argmax(overflows))
            raise VectorError(
                f"the vector of row {self.get_rows(number)[row]} has the number {np.abs(vectors[row]).max():g}, "
                f"too large for {self.metadata.dtype}; store the vectors as float32"
            )
        return converted

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the vectors (n, d) of some rows, as stored. A row of NaN is a word without a vector."""
        start, stop, _ = rows.indices(self.metadata.rows)
        parts = [np.empty((0, self._dimension or 0), dtype=self.metadata.dtype)]
        for number in self.find_shards(slice(start, stop)):
            first = self.get_rows(number).start
            parts.append(self._load_shard(number)[max(start - first, 0) : stop - first])
        return np.concatenate(parts)

    def _load_shard(self, number: int) -> NDArray[Any]:
        """Map a shard into memory. Its hash is checked the first time."""
        if number not in self._arrays:
            file = self._files.get(number)
            if file is None:
                raise MeasurementError(f"{self._folder}: shard {number} is missing; run again to compute it")
            if not self._verify(number):
                raise MeasurementError(f"{file}: damaged and removed; run again to compute it")
            shape = (len(self.get_rows(number)), self._dimension or 0)
            start = len(make_npy_header(shape, self.metadata.dtype))
            try:
                self._arrays[number] = np.memmap(file, self.metadata.dtype, "r", start, shape)
            except (OSError, ValueError) as error:
                raise MeasurementError(f"{file}: changed while in use; run again to compute it") from error
        return self._arrays[number]

    def verify(self, numbers: Iterable[int] | None = None) -> tuple[int, ...]:
        """Compare files with the hashes in their names.

        Parameters
        ----------
        numbers : iterable of int, optional
            Shards to check unless they were checked before. By default, all are checked.

        Returns
        -------
        tuple of int
            Shards that were damaged or deleted. They are missing from now on.
        """
        if numbers is None:
            self._checked.clear()
        selected = self._files.keys() if numbers is None else self._files.keys() & set(numbers)
        return tuple(number for number in sorted(selected) if not self._verify(number))

    def _verify(self, number: int) -> bool:
        """Return whether a shard is intact; otherwise remove it."""
        file = self._files[number]
        if file.exists() if number in self._checked else self._is_intact(file):
            self._checked.add(number)
            return True
        del self._files[number]
        self._arrays.pop(number, None)
        self._checked.discard(number)
        return self._remove(file)

    def _is_intact(self, file: Path) -> bool:
        """Return whether a file has the hash in its name."""
        match = _SHARD_NAME.fullmatch(file.name)
        try:
            with open_file(file) as stream:
                chunks = iter(lambda: stream.read(_CHUNK_BYTES), b"")
                return match is not None and self._make_digest(int(match[1]), chunks) == match[2]
        except OSError:
            return False

    def _is_named(self, name: str, content: bytes) -> bool:
        match = _SHARD_NAME.fullmatch(name)
        return match is not None and self._make_digest(int(match[1]), [content]) == match[2]

    def _make_digest(self, number: int, chunks: Iterable[bytes]) -> str:
        """Return the hash in the name of a file, which differs between shards and stores."""
        digest = hashlib.blake2b(f"{self.metadata.key} {number} ".encode(), digest_size=8)
        for chunk in chunks:
            digest.update(chunk)
        return digest.hexdigest()


def _make_user_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(
            f"{folder}: cannot create the folder: {error.strerror}; choose another folder with {VECTORS_OPTION}"
        ) from error


def _make_shard_starts(rows: int, max_rows: int, breaks: Sequence[int]) -> NDArray[np.int64]:
    """Return the first rows of all shards: at every break, and where a shard would be too large."""
    edges = sorted({0, rows, *(row for row in breaks if row < rows)})
    starts = [start for left, right in pairwise(edges) for start in range(left, right, max_rows)]
    return np.array(starts, dtype=np.int64)


def _infer_dimension(file: Path, rows: int, dtype: str) -> int | None:
    """Infer the length of the vectors from the size of a file; None if size or header are wrong."""
    start = len(make_npy_header((rows, 1), dtype))
    try:
        with open_file(file) as stream:
            size, header = os.fstat(stream.fileno()).st_size, stream.read(start)
    except OSError:
        return None
    dimension, rest = divmod(size - start, rows * np.dtype(dtype).itemsize)
    return dimension if dimension > 0 and not rest and header == make_npy_header((rows, dimension), dtype) else None
