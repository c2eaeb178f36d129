"""The store of answers: a folder for every model, in it one file for every batch that was asked.

A file is named by the hash of its own bytes, so that a truncated or altered one is seen and never used. It appears
under its name only when it is complete. Nothing is ever rewritten; two processes that ask the same write two files,
which agree. There is no lock to leave behind. Opening reads the keys of every file and nothing else; the hash of a file
is checked when one of its keys is first wanted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import time
import zipfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.answers.codecs import Codec
from biassay.answers.keys import KeyIndex, keys_of
from biassay.answers.npy import npz_bytes
from biassay.answers.sharing import Beyond
from biassay.answers.writing import make_cache_folder, write_to_cache
from biassay.cache_usage import record_use
from biassay.errors import MeasurementError
from biassay.files import discard, open_file
from biassay.models.base import Encoded, Identity

__all__ = ["AnswerStore", "ModelStore", "ReadingStores"]

Request = TypeVar("Request")
Answers = TypeVar("Answers")
_STALE_SECONDS = 24 * 3600


class AnswerStore:
    """All kept answers, by model. Without a root, or for a model of unknown revision, they are kept in memory."""

    def __init__(self, root: Path | None, beyond: Beyond | None = None) -> None:
        self.root, self.beyond = root, beyond

    def of(self, identity: Identity, codec: Codec[Request, Answers]) -> ModelStore[Request, Answers]:
        """The answers of one kind that one model gave under its settings."""
        if self.root is None or identity.key is None:
            return ModelStore(None, codec)
        folder = self.root / identity.key
        about = folder / "model.json"
        make_cache_folder(folder)
        description = {"family": identity.family, "revision": identity.revision, "settings": dict(identity.settings)}
        if not about.exists():
            write_to_cache(about, json.dumps({**description, "names": [identity.name]}, indent=1).encode())
        record_use(about, identity.name, description)
        return ModelStore(folder, codec, self.beyond)


@dataclass
class _File:
    """A batch: its name, its content if it is in memory only, and whether its bytes were compared with its name."""

    name: str
    content: bytes | None = None
    checked: bool = False


class ModelStore(Generic[Request, Answers]):
    """Answers of one model, by the content of the requests.

    Attributes
    ----------
    damaged : list of str
        Names of the files that were found damaged and removed; their requests count as missing.
    """

    def __init__(self, folder: Path | None, codec: Codec[Request, Answers], beyond: Beyond | None = None) -> None:
        self._folder, self._codec = folder, codec
        self._shared = None if beyond is None or folder is None else beyond.of(folder, _is_named, ".npz")
        self.damaged: list[str] = []
        self._files: list[_File] = []
        self._used: set[str] = set()
        self._index = KeyIndex()
        if folder is not None:
            _remove_stale(folder)
            if self._shared is not None:
                self._shared.meet()
            self._read_new()

    @property
    def used(self) -> Set[str] | None:
        """Names of the files that answer what was asked for since the store was opened; None: they are in memory."""
        return None if self._folder is None else self._used

    def offer(self) -> None:
        """Put what is new into object storage, if there is any behind the folder."""
        if self._shared is not None:
            self._shared.offer()

    def _read_new(self) -> None:
        """Note what files hold that were not seen before."""
        known = {file.name for file in self._files}
        for path in sorted(self._folder.glob("*.npz")) if self._folder is not None else ():
            if path.name not in known:
                self._read_keys(path)

    def _read_keys(self, path: Path) -> None:
        """Note what a file holds; one that cannot be read is removed if it is not what its name says."""
        file = _File(path.name)
        keys = _keys_in(path)
        if keys is None and self._is_whole(file):
            keys = _keys_in(path)  # it was fetched anew; if not it is not ours, and left alone
        if keys is not None:
            self._index.add(keys, len(self._files))
            self._files.append(file)

    def _is_whole(self, file: _File) -> bool:
        """Are the bytes of a file those that its name says? One that is damaged is fetched anew, or removed."""
        if file.checked:
            return True
        try:
            with self._opened(file) as stream:
                file.checked = _is_named(file.name, stream.read())
        except FileNotFoundError:  # another process found it damaged first
            return False
        except OSError:  # a folder in its place, or it may not be read
            file.checked = False
        if not file.checked:
            discard(self._path(file))
            file.checked = self._shared is not None and bool(self._shared.fetch([file.name]))
        if not file.checked:
            self.damaged.append(file.name)
        return file.checked

    def drop_lost(self) -> bool:
        """Forget files that were deleted since they were written or checked; return whether there were any."""
        if self._folder is None:
            return False
        used = [number for number, file in enumerate(self._files) if file.content is None and file.name in self._used]
        lost = [number for number in used if not self._path(self._files[number]).exists()]
        self._index.drop(lost)
        self._used -= {self._files[number].name for number in lost}
        return bool(lost)

    def _path(self, file: _File) -> Path:
        return (self._folder or Path()) / file.name

    def _opened(self, file: _File) -> BinaryIO:
        return open_file(self._path(file)) if file.content is None else io.BytesIO(file.content)

    def missing(self, requests: Sequence[Request]) -> list[Request]:
        """The distinct requests without a kept answer, in order."""
        distinct = list(dict.fromkeys(requests))
        files, _ = self._places(distinct)
        return [distinct[place] for place in np.flatnonzero(files < 0).tolist()]

    def _places(self, requests: Sequence[Request]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The file and the row of every request, the file being whole; a file of -1: there is none."""
        keys = keys_of(map(self._codec.key, requests))
        while True:
            files, rows = self._index.find(keys)
            wanted = np.unique(files[files >= 0]).tolist()
            damaged = [number for number in wanted if not self._is_whole(self._files[number])]
            if not damaged:
                self._used |= {self._files[number].name for number in wanted}
                return files, rows
            self._index.drop(damaged)  # another file may hold the same,
            self._read_new()  # also one that another process put it into just now

    def add(
        self,
        requests: Sequence[Request],
        answers: Answers,
        *,
        for_now: bool = False,
        in_memory: bool = False,
        durable: bool = True,
    ) -> None:
        """Keep the answers of a batch, all or none.

        Parameters
        ----------
        requests : sequence
        answers : sequence or arrays
            One answer per request.
        for_now : bool
            If True, the answers will be merged with others and are not shared yet.
        in_memory : bool
            If True, the answers are kept for this process only.
        durable : bool
            If True, wait until the disk has the file. Otherwise a power failure may damage it, which is noticed, and
            the requests are asked again.
        """
        keys = keys_of(map(self._codec.key, requests))
        content = npz_bytes({"keys": keys, **self._codec.pack(answers)})
        file = _File(_name_of(content), checked=True)
        if self._folder is None or in_memory:
            file.content = content
        else:
            write_to_cache(self._path(file), content, durable=durable)
        if self._shared is not None and not (for_now or in_memory):
            self._shared.put(file.name, content)
        self._index.add(keys, len(self._files))
        self._files.append(file)
        self._used.add(file.name)

    def merge(self, requests: Sequence[Request], answers: Answers) -> None:
        """Put the answers to requests, which lie in small files of their own, into one; then the small ones go."""
        files, _ = self._places(requests)
        small = np.unique(files).tolist()
        self.add(requests, answers)
        self._index.drop(small)
        for file in (self._files[number] for number in small):
            self._used.discard(file.name)
            file.content = None if self._folder else b""
            self._path(file).unlink(missing_ok=True)

    def get(self, requests: Sequence[Request]) -> Answers:
        """Answers to requests that are all kept, in order; repeated requests are answered again."""
        files, rows = self._places(requests)
        if (files < 0).any():
            lacking = requests[int(np.argmax(files < 0))]
            raise MeasurementError(f"no answer is kept to {lacking!r}; run again to ask it")
        order = np.argsort(files, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(files[order])) + 1) if len(order) else []
        found = (self._read(self._files[int(files[part[0]])], rows[part]) for part in parts)
        return self._codec.join(found, order)

    def _read(self, file: _File, rows: NDArray[np.intp]) -> Answers:
        try:
            with self._opened(file) as stream, np.load(stream, allow_pickle=False) as archive:
                return self._codec.unpack(archive, rows)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise MeasurementError(f"{self._path(file)}: changed while in use; run again to ask once more") from error


class ReadingStores:
    """The stores of several readings, by name, filled from the same batches of texts.

    The files of a batch are written one after the other: where that was interrupted, its texts are missing still, and
    what is there of them is not written again.

    Attributes
    ----------
    names : tuple of str
        The readings that lack something.
    """

    def __init__(self, stores: Mapping[str, ModelStore[str, Encoded]], texts: Sequence[str]) -> None:
        lacking = {name: frozenset(store.missing(texts)) for name, store in stores.items()}
        self._stores, self._lacking = stores, {name: own for name, own in lacking.items() if own}
        self.names = tuple(self._lacking)

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts that a store lacked at first, in order."""
        anywhere = frozenset().union(*self._lacking.values())
        return [text for text in dict.fromkeys(texts) if text in anywhere]

    def add(self, texts: Sequence[str], answers: Mapping[str, Encoded]) -> None:
        """Keep of every reading what its store lacked.

        Vectors are computed again within seconds if a power failure damages a file, so no batch waits for the disk.
        """
        for name, lacking in self._lacking.items():
            rows = [row for row, text in enumerate(texts) if text in lacking]
            if len(rows) == len(texts):
                self._stores[name].add(texts, answers[name], durable=False)
            elif rows:
                self._stores[name].add([texts[row] for row in rows], answers[name].rows(rows), durable=False)


def _keys_in(path: Path) -> NDArray[Any] | None:
    """The keys that a file holds; None if it cannot be read, or is gone: another process found it damaged first."""
    try:
        with open_file(path) as stream, np.load(stream, allow_pickle=False) as archive:
            keys: NDArray[Any] = archive["keys"]
            return keys
    except Exception:  # NumPy and zipfile raise whatever they like when they parse a damaged file
        return None


def _name_of(content: bytes) -> str:
    return f"{hashlib.blake2b(content, digest_size=16).hexdigest()}.npz"


def _is_named(name: str, content: bytes) -> bool:
    return name == _name_of(content)


def _remove_stale(folder: Path) -> None:
    """Remove what an interrupted process left; recent files may be another process's work in progress."""
    for leftover in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                leftover.unlink()
