"""Vectors of words in their contexts: a folder for a contexts file and a model, in it a file for every shard of rows.

A file is named by its number and the hash of its own bytes, and appears under its name only when it is complete. What
was interrupted continues where it stopped; damaged files are noticed, removed and computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.about import ABOUT, StoreAbout, StoredType, begin, check_same, describe
from biassay.answers.npy import npy_header
from biassay.answers.sharing import Beyond
from biassay.answers.writing import CACHE_OPTION, make_cache_folder, write_to_cache
from biassay.errors import MeasurementError, RunFolderError, VectorError
from biassay.files import discard, open_file

__all__ = ["ABOUT", "ShardStore", "StoreAbout", "StoredType"]

_NAME = re.compile(r"(\d{6,})-([0-9a-f]{16})\.npy")
VECTORS_OPTION = "--vectors DIR (vectors=)"
_STALE_SECONDS = 24 * 3600
_PIECE = 1 << 22  # bytes hashed at a time: a shard need not fit into memory


class ShardStore:
    """Vectors by row, of which some shards may not be there yet.

    Attributes
    ----------
    about : StoreAbout
    damaged : list of str
        Names of the files that were found damaged and removed; their shards count as missing.
    """

    def __init__(
        self,
        folder: Path,
        about: StoreAbout,
        starts: NDArray[np.int64],
        beyond: Beyond | None = None,
        option: str = VECTORS_OPTION,
    ) -> None:
        self.about = about
        self._option = option
        self._checked: set[int] = set()
        self._starts = starts
        self.damaged: list[str] = []
        self._folder = folder
        self._shared = None if beyond is None else beyond.of(folder, _is_named, ".npy")
        self._files: dict[int, Path] = {}
        self._arrays: dict[int, NDArray[Any]] = {}
        self._dimension: int | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        about: StoreAbout,
        breaks: Sequence[int] = (),
        beyond: Beyond | None = None,
        *,
        in_cache: bool = False,
    ) -> ShardStore:
        """Create a store, or open one with the same content.

        Parameters
        ----------
        folder : Path
        about : StoreAbout
        breaks : sequence of int
            A shard begins at each of these rows, so that the contexts of one word can be computed without those of its
            neighbours.
        beyond : Beyond, optional
            Object storage behind the folder.
        in_cache : bool
            If True, the name of the folder already states what the vectors are of, so that a damaged or missing
            about.json is written again. If False, the user chose the folder, and other content is an error.
        """
        option = CACHE_OPTION if in_cache else VECTORS_OPTION
        if in_cache:
            if not folder.is_dir():
                discard(folder)
            make_cache_folder(folder)
        else:
            _make_folder(folder)
        _remove_stale(folder)
        if in_cache:
            _mend(folder / ABOUT, about)
        elif (folder / ABOUT).exists():
            check_same(folder, about)
        else:
            begin(folder)
            write_to_cache(folder / ABOUT, describe(about), option)
        store = cls(folder, about, _shard_starts(about.rows, about.shard_rows, breaks), beyond, option)
        if store._shared is not None:
            store._shared.meet()
        store._index()
        return store

    def _index(self) -> None:
        found: dict[int, list[Path]] = {}
        for file in sorted(self._folder.iterdir()):
            if match := _NAME.fullmatch(file.name):
                found.setdefault(int(match[1]), []).append(file)
        for number, files in sorted(found.items()):
            whole = [file for file in files if self._fits(number, file) or self._remove(file)]
            if len(whole) > 1:  # two processes wrote it, or it was computed anew
                whole = [file for file in whole if _is_intact(file) or self._remove(file)]
            for superfluous in whole[1:]:
                discard(superfluous)
            if whole:
                self._files[number] = whole[0]

    def _fits(self, number: int, file: Path) -> bool:
        """Does a file have the expected size and header? Its content is checked when it is first read."""
        dimension = _dimension(file, len(self.rows_of(number)), self.about.dtype) if number < self.shards else None
        if self._dimension is None:
            self._dimension = dimension
        return dimension is not None and dimension == self._dimension

    def _remove(self, file: Path) -> bool:
        """Remove a damaged file; always False."""
        if file.exists():  # else another process, or a user, deleted it
            self.damaged.append(file.name)
            discard(file)
        return False

    @property
    def used(self) -> set[str]:
        """Names of the files."""
        return {file.name for file in self._files.values()}

    @property
    def shards(self) -> int:
        """How many shards a complete store has."""
        return len(self._starts)

    @property
    def complete(self) -> bool:
        return not self.missing()

    @property
    def dimension(self) -> int | None:
        """Length of a vector; None: there is none yet."""
        return self._dimension

    def missing(self) -> tuple[int, ...]:
        """Numbers of the shards that are not there."""
        return tuple(number for number in range(self.shards) if number not in self._files)

    def rows_of(self, number: int) -> range:
        """Rows of a shard."""
        if not 0 <= number < self.shards:
            raise VectorError(f"there is no shard {number}: {self._folder} has shards 0 to {self.shards - 1}")
        end = self._starts[number + 1] if number + 1 < self.shards else self.about.rows
        return range(int(self._starts[number]), int(end))

    def shards_of(self, rows: slice) -> range:
        """Numbers of the shards that hold some rows."""
        if rows.start >= rows.stop:
            return range(0)
        first, last = np.searchsorted(self._starts, [rows.start, rows.stop - 1], side="right") - 1
        return range(int(first), int(last) + 1)

    def write(self, number: int, vectors: NDArray[np.float32]) -> None:
        """Keep the vectors (n, d) of a shard, all or none. A row of NaN is a word without a vector."""
        if number in self._files:
            raise VectorError(f"shard {number} is in {self._folder} already")
        self._check(number, vectors)
        buffer = io.BytesIO()
        np.save(buffer, self._as_stored(number, vectors), allow_pickle=False)
        content = buffer.getvalue()
        file = self._folder / f"{number:06d}-{hashlib.blake2b(content).hexdigest()[:16]}.npy"
        write_to_cache(file, content, self._option)
        if not (self._folder / ABOUT).exists():  # the folder was deleted in the meantime
            write_to_cache(self._folder / ABOUT, describe(self.about), self._option)
        if self._shared is not None:
            self._shared.put(file.name, content)
        self._files[number] = file
        self._checked.add(number)
        self._dimension = vectors.shape[1]

    def _check(self, number: int, vectors: NDArray[np.float32]) -> None:
        rows = len(self.rows_of(number))
        if vectors.ndim != 2 or len(vectors) != rows or vectors.shape[1] < 1:
            raise VectorError(f"shard {number} takes {rows} vectors, got an array of the shape {vectors.shape}")
        if self._dimension not in (None, vectors.shape[1]):
            raise VectorError(
                f"shard {number}: vectors of {vectors.shape[1]} numbers, those in {self._folder} have {self._dimension}"
            )
        wrong = ~np.isfinite(vectors).all(axis=1) & ~np.isnan(vectors).all(axis=1)
        if wrong.any():
            raise VectorError(f"the vector of row {self.rows_of(number)[int(np.argmax(wrong))]} is not finite")

    def _as_stored(self, number: int, vectors: NDArray[np.float32]) -> NDArray[Any]:
        with np.errstate(over="ignore"):  # refused below
            stored = np.ascontiguousarray(vectors, dtype=self.about.dtype)
        over = np.isinf(stored).any(axis=1)
        if over.any():
            row = int(np.argmax(over))
            raise VectorError(
                f"the vector of row {self.rows_of(number)[row]} has the number {np.abs(vectors[row]).max():g}, "
                f"too large for {self.about.dtype}; store the vectors as float32"
            )
        return stored

    def read(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Vectors (n, d) of some rows, as stored; a row of NaN is a word without a vector."""
        wanted = np.arange(*rows.indices(self.about.rows)) if isinstance(rows, slice) else np.asarray(rows)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise VectorError(f"rows are a slice or an array (n,) of numbers, got {wanted.dtype} {wanted.shape}")
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < self.about.rows:
            raise VectorError(f"rows go from 0 to {self.about.rows - 1}, got {wanted.min()} to {wanted.max()}")
        numbers = np.searchsorted(self._starts, wanted, side="right") - 1
        places = wanted - self._starts[numbers]
        vectors = np.empty((len(wanted), self._dimension or 0), dtype=self.about.dtype)
        order = np.argsort(numbers, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            if len(part):
                vectors[part] = self._shard(int(numbers[part[0]]))[places[part]]
        return vectors

    def _shard(self, number: int) -> NDArray[Any]:
        """A shard, left on the disk until its rows are wanted; its hash is checked the first time."""
        if number not in self._arrays:
            file = self._files.get(number)
            if file is None:
                raise MeasurementError(f"{self._folder}: shard {number} is not there yet; run again to compute it")
            if not self._intact(number):
                raise MeasurementError(f"{file}: damaged and removed; run again to compute it")
            shape = (len(self.rows_of(number)), self._dimension or 0)
            start = len(npy_header(shape, self.about.dtype))
            try:
                self._arrays[number] = np.memmap(file, self.about.dtype, "r", start, shape)
            except (OSError, ValueError) as error:
                raise MeasurementError(f"{file}: changed while in use; run again to compute it") from error
        return self._arrays[number]

    def _intact(self, number: int) -> bool:
        file = self._files[number]
        if file.exists() if number in self._checked else _is_intact(file):
            self._checked.add(number)
            return True
        return self._forget(number) or self._remove(file)

    def _forget(self, number: int) -> bool:
        self._files.pop(number)
        self._arrays.pop(number, None)
        self._checked.discard(number)
        return False

    def verify(self, numbers: Iterable[int] | None = None) -> tuple[int, ...]:
        """Compare files with the digests in their names.

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
        chosen = self._files.keys() if numbers is None else self._files.keys() & set(numbers)
        return tuple(number for number in sorted(chosen) if not self._intact(number))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(
            f"{folder}: cannot create the folder: {error.strerror}; choose another folder with {VECTORS_OPTION}"
        ) from error


def _mend(path: Path, about: StoreAbout) -> None:
    """Write about.json if it is missing or differs."""
    try:
        check_same(path.parent, about)
    except RunFolderError:
        if path.is_dir():
            discard(path)
        write_to_cache(path, describe(about))


def _shard_starts(rows: int, most: int, breaks: Sequence[int]) -> NDArray[np.int64]:
    """First rows of all shards: at every break, and where a shard would have more than ``most`` rows."""
    edges = sorted({0, rows, *(row for row in breaks if row < rows)})
    starts = [start for left, right in pairwise(edges) for start in range(left, right, most)]
    return np.array(starts, dtype=np.int64)


def _dimension(file: Path, rows: int, dtype: str) -> int | None:
    """The length of the vectors by the size of a file; None where that, or the header, is not what we write."""
    start = len(npy_header((rows, 1), dtype))
    try:
        with open_file(file) as stream:
            size, header = os.fstat(stream.fileno()).st_size, stream.read(start)
    except OSError:
        return None
    dimension, rest = divmod(size - start, rows * np.dtype(dtype).itemsize)
    return dimension if dimension > 0 and not rest and header == npy_header((rows, dimension), dtype) else None


def _is_intact(file: Path) -> bool:
    """Are the bytes of a file those that its name says?"""
    digest = hashlib.blake2b()
    try:
        with open_file(file) as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
    except OSError:
        return False
    return file.stem.endswith(digest.hexdigest()[:16])


def _is_named(name: str, content: bytes) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and hashlib.blake2b(content).hexdigest().startswith(match[2])


def _remove_stale(folder: Path) -> None:
    """Remove what an interrupted process left; recent files may be another process's work in progress."""
    for leftover in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                leftover.unlink()
