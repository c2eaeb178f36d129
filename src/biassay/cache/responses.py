"""Cache the outputs of each model by request.

A file is named by the hash of its bytes, keyed with the model, so that a truncated or altered file, or one of another
model, is detected and never used. It appears under its name only when it is complete, and is never rewritten. Two
processes that fetch the same outputs write two files, which agree; there are no locks. Opening a cache reads only the
keys of its files; the hash of a file is checked when one of its keys is first wanted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.cache.files import RemoteCache, SyncedFolder, make_cache_folder, remove_stale_files, write_to_cache
from biassay.cache_usage import record_use
from biassay.errors import MeasurementError, VectorError
from biassay.io import open_file, remove_damaged
from biassay.models.base import (
    BLANK_COLUMNS,
    FINISH_REASONS,
    BlankScores,
    Identity,
    Reply,
    Span,
    TextEmbeddings,
    TokenLikelihoods,
)
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt

_KEY_BYTES = 16
Request = TypeVar("Request")
Request_contra = TypeVar("Request_contra", contravariant=True)
Outputs = TypeVar("Outputs")
Item = TypeVar("Item")
Arrays = Mapping[str, NDArray[Any]]


class Codec(Protocol[Request_contra, Outputs]):
    """Convert one kind of request and its outputs."""

    def key(self, request: Request_contra) -> str:
        """Return a string that is equal for equal requests only."""

    def pack(self, outputs: Outputs) -> Arrays:
        """Convert the outputs of a batch to arrays."""

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> Outputs:
        """Convert some rows of a batch back to outputs, in the given order."""

    def join(self, parts: Iterable[Outputs], positions: NDArray[np.intp]) -> Outputs:
        """Concatenate outputs and move each to its position."""


class _TextCodec:
    """Vectors of texts with the spans of unknown words and the positions of truncation."""

    def key(self, request: str) -> str:
        return request

    def pack(self, outputs: TextEmbeddings) -> Arrays:
        notes = json.dumps(list(zip(outputs.unknown, outputs.truncated_at, strict=True))).encode()
        return {"vectors": outputs.vectors, "notes": np.frombuffer(notes, dtype=np.uint8)}

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> TextEmbeddings:
        notes = json.loads(arrays["notes"].tobytes())
        selected = [notes[row] for row in rows.tolist()]
        unknown = [tuple((start, end) for start, end in spans) for spans, _ in selected]
        return TextEmbeddings.from_vectors(arrays["vectors"][rows], unknown, [cut for _, cut in selected])

    def join(self, parts: Iterable[TextEmbeddings], positions: NDArray[np.intp]) -> TextEmbeddings:
        vectors, start = np.zeros((len(positions), 0), dtype=np.float32), 0
        unknown: list[tuple[Span, ...]] = [()] * len(positions)
        cut: list[int | None] = [None] * len(positions)
        for part in parts:
            dimension = part.vectors.shape[1]  # 0 if all texts of the batch are out of vocabulary
            if dimension and not vectors.shape[1]:
                vectors = np.zeros((len(positions), dimension), dtype=np.float32)
            targets = positions[start : start + len(part.vectors)]
            if dimension:
                vectors[targets] = part.vectors
            for position, spans, end in zip(targets.tolist(), part.unknown, part.truncated_at, strict=True):
                unknown[position], cut[position] = spans, end
            start += len(targets)
        return TextEmbeddings.from_vectors(vectors, unknown, cut)


class _NumberCodec:
    """One number per text: its number of tokens, or its rank in a vocabulary."""

    def __init__(self, name: str, dtype: type[np.number[Any]]) -> None:
        self._name, self._dtype = name, dtype

    def key(self, request: str) -> str:
        return json.dumps([self._name, request])

    def pack(self, outputs: NDArray[Any]) -> Arrays:
        return {self._name: outputs}

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> NDArray[Any]:
        return arrays[self._name][rows]

    def join(self, parts: Iterable[NDArray[Any]], positions: NDArray[np.intp]) -> NDArray[Any]:
        joined = np.empty(len(positions), dtype=self._dtype)
        joined[positions] = np.concatenate([np.empty(0, dtype=self._dtype), *parts])
        return joined


class _ListCodec(Generic[Item]):
    """Outputs in a list."""

    def key(self, request: Blank | Prompt | LikelihoodRequest) -> str:
        return request.key

    def join(self, parts: Iterable[Sequence[Item]], positions: NDArray[np.intp]) -> list[Item]:
        joined: list[Any] = [None] * len(positions)
        for position, output in zip(positions.tolist(), chain.from_iterable(parts), strict=True):
            joined[position] = output
        return joined


class _BlankCodec(_ListCodec[BlankScores]):
    """Scores of all words of all blanks in one array; ``counts`` holds the numbers of words and pieces per blank."""

    def pack(self, outputs: Sequence[BlankScores]) -> Arrays:
        counts = [(len(blank.lengths), len(blank.pieces), blank.unknown, blank.passes) for blank in outputs]
        columns = [blank.columns.reshape(-1, len(BLANK_COLUMNS)) for blank in outputs]
        return {
            "counts": np.array(counts, dtype=np.int32).reshape(-1, 4),
            "lengths": np.concatenate([blank.lengths for blank in outputs]).astype(np.int32),
            "pieces": np.concatenate([blank.pieces for blank in outputs]).astype(np.int32),
            "columns": np.concatenate(columns).astype(np.float32),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[BlankScores]:
        counts, lengths, pieces, columns = (arrays[name] for name in ("counts", "lengths", "pieces", "columns"))
        ends = np.cumsum(counts[:, :2], axis=0)
        blanks = []
        for row in rows.tolist():
            n_words, n_pieces, unknown, passes = counts[row].tolist()
            words_end, pieces_end = ends[row].tolist()
            own_words, own_pieces = slice(words_end - n_words, words_end), slice(pieces_end - n_pieces, pieces_end)
            blanks.append(BlankScores(lengths[own_words], pieces[own_pieces], columns[own_pieces], unknown, passes))
        return blanks


class _ReplyCodec(_ListCodec[Reply]):
    """UTF-8 of all replies in one array; ``counts`` holds the number of bytes and of options per reply.

    In ``tokens`` and ``ended``, -1 is unknown; otherwise ``ended`` is an index into `FINISH_REASONS`.
    """

    def pack(self, outputs: Sequence[Reply]) -> Arrays:
        texts = [reply.text.encode("utf-8", "surrogatepass") for reply in outputs]
        counts = [(len(text), len(reply.log_p)) for text, reply in zip(texts, outputs, strict=True)]
        tokens = [[-1 if n is None else n for n in (reply.tokens_in, reply.tokens_out)] for reply in outputs]
        ended = [-1 if reply.finish_reason is None else FINISH_REASONS.index(reply.finish_reason) for reply in outputs]
        return {
            "counts": np.array(counts, dtype=np.int64).reshape(-1, 2),
            "texts": np.frombuffer(b"".join(texts), dtype=np.uint8),
            "ended": np.array(ended, dtype=np.int8),
            "tokens": np.array(tokens, dtype=np.int64).reshape(-1, 2),
            "log_p": np.array([number for reply in outputs for number in reply.log_p], dtype=np.float64),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[Reply]:
        counts, ended, tokens, log_p = (arrays[name] for name in ("counts", "ended", "tokens", "log_p"))
        texts, ends, replies = arrays["texts"].tobytes(), np.cumsum(counts, axis=0), []
        for row in rows.tolist():
            (n_bytes, n_options), (text_end, options_end) = counts[row].tolist(), ends[row].tolist()
            reason, (tokens_in, tokens_out) = int(ended[row]), (None if n < 0 else n for n in tokens[row].tolist())
            replies.append(
                Reply(
                    text=texts[text_end - n_bytes : text_end].decode("utf-8", "surrogatepass"),
                    finish_reason=None if reason < 0 else FINISH_REASONS[reason],
                    tokens_in=tokens_in,
                    tokens_out=tokens_out,
                    log_p=tuple(log_p[options_end - n_options : options_end].tolist()),
                )
            )
        return replies


class _LikelihoodCodec(_ListCodec[TokenLikelihoods]):
    """Tokens of all texts in one array; ``counts`` holds the number of tokens per text."""

    def pack(self, outputs: Sequence[TokenLikelihoods]) -> Arrays:
        spans = [text.spans.reshape(-1, 2) for text in outputs]
        return {
            "counts": np.array([len(text.log_p) for text in outputs], dtype=np.int64),
            "spans": np.concatenate([np.empty((0, 2)), *spans]).astype(np.int32),
            "log_p": np.concatenate([np.empty(0), *(text.log_p for text in outputs)]).astype(np.float64),
            "tokens": np.concatenate([np.empty(0, dtype=np.int64), *(text.tokens for text in outputs)]),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[TokenLikelihoods]:
        counts, spans, log_p, tokens = (arrays[name] for name in ("counts", "spans", "log_p", "tokens"))
        ends = np.cumsum(counts)
        slices = [slice(int(ends[row] - counts[row]), int(ends[row])) for row in rows.tolist()]
        return [TokenLikelihoods(log_p[part], spans[part], tokens[part]) for part in slices]


TEXTS: Codec[str, TextEmbeddings] = _TextCodec()
TOKENS: Codec[str, NDArray[np.int64]] = _NumberCodec("tokens", np.int64)
RANKS: Codec[str, NDArray[np.float64]] = _NumberCodec("ranks", np.float64)
BLANKS: Codec[Blank, Sequence[BlankScores]] = _BlankCodec()
REPLIES: Codec[Prompt, Sequence[Reply]] = _ReplyCodec()
LIKELIHOODS: Codec[LikelihoodRequest, Sequence[TokenLikelihoods]] = _LikelihoodCodec()


def hash_requests(requests: Iterable[str]) -> NDArray[np.uint8]:
    """Return a hash of every request, as an array (n, 16)."""
    hashes = b"".join(hashlib.blake2b(request.encode(), digest_size=_KEY_BYTES).digest() for request in requests)
    return np.frombuffer(hashes, dtype=np.uint8).reshape(-1, _KEY_BYTES)


class KeyIndex:
    """Find the file and row of every request. New keys are sorted in at the next search."""

    def __init__(self) -> None:
        self._keys: NDArray[Any] = np.empty(0, dtype=f"S{_KEY_BYTES}")
        self._files = np.empty(0, dtype=np.int32)
        self._rows = np.empty(0, dtype=np.int32)
        self._added: list[tuple[NDArray[Any], int]] = []

    def add(self, keys: NDArray[Any], file: int) -> None:
        """Add the keys (n, 16) of a file, in the order of its rows."""
        if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != _KEY_BYTES:
            raise VectorError(f"keys must be an array (n, {_KEY_BYTES}) of bytes, got {keys.dtype} {keys.shape}")
        self._added.append((_to_byte_strings(keys), file))

    def find(self, keys: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the file and row of every key (n, 16); -1 for unknown keys."""
        self._sort_in()
        if not len(self._keys):
            return np.full(len(keys), -1), np.full(len(keys), -1)
        wanted = _to_byte_strings(keys)
        positions = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        is_known = self._keys[positions] == wanted
        return np.where(is_known, self._files[positions], -1), np.where(is_known, self._rows[positions], -1)

    def drop(self, files: Sequence[int]) -> None:
        """Remove all keys of some files."""
        self._sort_in()
        remaining = ~np.isin(self._files, files)
        self._keys, self._files, self._rows = self._keys[remaining], self._files[remaining], self._rows[remaining]

    def _sort_in(self) -> None:
        if not self._added:
            return
        sizes = [len(keys) for keys, _ in self._added]
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._added)])
        files = np.repeat(np.array([file for _, file in self._added], dtype=np.int32), sizes)
        rows = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._files = np.concatenate([self._files, files])[order]
        self._rows = np.concatenate([self._rows, rows])[order]
        self._added = []


def _to_byte_strings(keys: NDArray[np.uint8]) -> NDArray[Any]:
    """Convert keys (n, 16) to byte strings, which can be sorted and compared."""
    return np.ascontiguousarray(keys).view(f"S{_KEY_BYTES}").reshape(-1)


class ResponseCache:
    """Cached outputs of all models.

    Parameters
    ----------
    root : Path or None
        The cache directory. If None, outputs are cached in memory, like those of a model of unknown revision.
    remote_cache : RemoteCache, optional
        Object storage that the directory is synchronised with.
    """

    def __init__(self, root: Path | None, remote_cache: RemoteCache | None = None) -> None:
        self.root, self.remote_cache = root, remote_cache

    def for_model(self, identity: Identity, codec: Codec[Request, Outputs]) -> ModelCache[Request, Outputs]:
        """Return the cache of one kind of output of one model with its settings."""
        if self.root is None or identity.key is None:
            return ModelCache(None, codec)
        folder = self.root / identity.key
        path = folder / "model.json"
        make_cache_folder(folder)
        description = {"backend": identity.backend, "revision": identity.revision, "settings": dict(identity.settings)}
        if not path.exists():
            write_to_cache(path, json.dumps({**description, "names": [identity.name]}, indent=1).encode())
        record_use(path, identity.name, description)
        return ModelCache(folder, codec, self.remote_cache)


@dataclass
class _BatchFile:
    """A file of the cache, with its content if it is in memory only, and whether its hash was checked."""

    name: str
    content: bytes | None = None
    is_checked: bool = False


class ModelCache(Generic[Request, Outputs]):
    """Cached outputs of one model, by the content of the requests.

    Attributes
    ----------
    damaged : list of str
        Names of damaged files that were removed; their requests are missing.
    """

    def __init__(
        self, folder: Path | None, codec: Codec[Request, Outputs], remote_cache: RemoteCache | None = None
    ) -> None:
        self._folder, self._codec = folder, codec
        self._synced: SyncedFolder | None = None
        self.damaged: list[str] = []
        self._files: list[_BatchFile] = []
        self._used: set[str] = set()
        self._index = KeyIndex()
        if folder is not None:
            remove_stale_files(folder)
            if remote_cache is not None:
                self._synced = remote_cache.folder_for(folder, self._is_named, ".npz")
                self._synced.sync()
            self._index_new_files()

    @property
    def used(self) -> Set[str] | None:
        """Names of the files with outputs that were requested since the cache was opened; None if in memory."""
        return None if self._folder is None else self._used

    def push(self) -> None:
        """Upload new files to object storage, if there is any."""
        if self._synced is not None:
            self._synced.push()

    def _index_new_files(self) -> None:
        known = {file.name for file in self._files}
        for path in sorted(self._folder.glob("*.npz")) if self._folder is not None else ():
            if path.name not in known:
                self._index_file(path)

    def _index_file(self, path: Path) -> None:
        """Index a file. An unreadable one is removed if its hash is wrong, and left alone otherwise."""
        file = _BatchFile(path.name)
        keys = _load_keys(path)
        if keys is None and self._is_intact(file):
            keys = _load_keys(path)  # it may have been downloaded again
        if keys is not None:
            with contextlib.suppress(VectorError):  # keys of another form: not a file of biassay
                self._index.add(keys, len(self._files))
                self._files.append(file)

    def _is_intact(self, file: _BatchFile) -> bool:
        """Return whether a file has the hash in its name; otherwise download it again, or remove it."""
        if file.is_checked:
            return True
        try:
            with self._open(file) as stream:
                file.is_checked = self._is_named(file.name, stream.read())
        except FileNotFoundError:  # another process removed it as damaged
            return False
        except OSError:  # it is a folder, or may not be read
            file.is_checked = False
        if not file.is_checked:
            remove_damaged(self._get_path(file))
            file.is_checked = self._synced is not None and bool(self._synced.fetch([file.name]))
        if not file.is_checked:
            self.damaged.append(file.name)
        return file.is_checked

    def drop_deleted(self) -> bool:
        """Forget files that were deleted since they were written or checked; return whether there were any."""
        if self._folder is None:
            return False
        deleted = [
            number
            for number, file in enumerate(self._files)
            if file.content is None and file.name in self._used and not self._get_path(file).exists()
        ]
        self._index.drop(deleted)
        self._used -= {self._files[number].name for number in deleted}
        return bool(deleted)

    def _get_name(self, content: bytes) -> str:
        return get_file_name(content, "" if self._folder is None else self._folder.name)

    def _is_named(self, name: str, content: bytes) -> bool:
        return name == self._get_name(content)

    def _get_path(self, file: _BatchFile) -> Path:
        return (self._folder or Path()) / file.name

    def _open(self, file: _BatchFile) -> BinaryIO:
        return open_file(self._get_path(file)) if file.content is None else io.BytesIO(file.content)

    def missing(self, requests: Sequence[Request]) -> list[Request]:
        """Return the distinct requests that are not cached, in order."""
        distinct = list(dict.fromkeys(requests))
        files, _ = self._find(distinct)
        return [distinct[index] for index in np.flatnonzero(files < 0).tolist()]

    def _find(self, requests: Sequence[Request]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the file and row of every request, -1 if it is not cached. The files are intact."""
        keys = hash_requests(map(self._codec.key, requests))
        while True:
            files, rows = self._index.find(keys)
            wanted = np.unique(files[files >= 0]).tolist()
            damaged = [number for number in wanted if not self._is_intact(self._files[number])]
            if not damaged:
                self._used |= {self._files[number].name for number in wanted}
                return files, rows
            self._index.drop(damaged)  # another file may have the same outputs,
            self._index_new_files()  # perhaps one that another process has just written

    def add(
        self,
        requests: Sequence[Request],
        outputs: Outputs,
        *,
        merge_later: bool = False,
        in_memory: bool = False,
        durable: bool = True,
    ) -> None:
        """Cache the outputs of a batch, all or none.

        Parameters
        ----------
        requests : sequence
        outputs : sequence or arrays
            One output per request.
        merge_later : bool
            If True, do not upload the file yet, because it will be merged with others.
        in_memory : bool
            If True, cache the outputs for this process only.
        durable : bool
            If True, wait until the disk has the file. Otherwise a power failure may damage it; then the outputs are
            fetched again.
        """
        keys = hash_requests(map(self._codec.key, requests))
        buffer = io.BytesIO()
        np.savez(buffer, keys=keys, **self._codec.pack(outputs))  # type: ignore[arg-type]
        content = buffer.getvalue()
        file = _BatchFile(self._get_name(content), is_checked=True)
        if self._folder is None or in_memory:
            file.content = content
        else:
            write_to_cache(self._get_path(file), content, durable=durable)
            if self._synced is not None and not merge_later:
                self._synced.put(file.name, content)
        self._index.add(keys, len(self._files))
        self._files.append(file)
        self._used.add(file.name)

    def merge(self, requests: Sequence[Request], outputs: Outputs) -> None:
        """Merge the small files with these outputs into one."""
        files, _ = self._find(requests)
        small = np.unique(files).tolist()
        self.add(requests, outputs)
        self._index.drop(small)
        for file in (self._files[number] for number in small):
            self._used.discard(file.name)
            file.content = None if self._folder else b""
            self._get_path(file).unlink(missing_ok=True)

    def get(self, requests: Sequence[Request]) -> Outputs:
        """Return the outputs of cached requests, in order. Requests may repeat."""
        files, rows = self._find(requests)
        if (files < 0).any():
            missing = requests[int(np.argmax(files < 0))]
            raise MeasurementError(f"no response is cached for {missing!r}; run again to fetch it")
        order = np.argsort(files, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(files[order])) + 1) if len(order) else []
        outputs = (self._read(self._files[int(files[part[0]])], rows[part]) for part in parts)
        return self._codec.join(outputs, order)

    def _read(self, file: _BatchFile, rows: NDArray[np.intp]) -> Outputs:
        try:
            with self._open(file) as stream, np.load(stream, allow_pickle=False) as archive:
                return self._codec.unpack(archive, rows)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise MeasurementError(f"{self._get_path(file)}: changed while in use; run again to fetch it") from error


class RepresentationCaches:
    """Caches of several representations, filled from the same batches of texts.

    The files of a batch are written one after the other. If that is interrupted, the texts are still missing, but
    vectors that are cached already are not written again.

    Attributes
    ----------
    names : tuple of str
        Representations with missing vectors.
    """

    def __init__(self, caches: Mapping[str, ModelCache[str, TextEmbeddings]], texts: Sequence[str]) -> None:
        missing = {name: frozenset(cache.missing(texts)) for name, cache in caches.items()}
        self._caches, self._missing = caches, {name: own for name, own in missing.items() if own}
        self.names = tuple(self._missing)

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the distinct texts that were missing in any cache at first, in order."""
        missing = frozenset().union(*self._missing.values())
        return [text for text in dict.fromkeys(texts) if text in missing]

    def add(self, texts: Sequence[str], outputs: Mapping[str, TextEmbeddings]) -> None:
        """Cache the missing vectors of every representation.

        Vectors are computed again within seconds if a power failure damages a file, so no batch waits for the disk.
        """
        for name, missing in self._missing.items():
            rows = [row for row, text in enumerate(texts) if text in missing]
            if len(rows) == len(texts):
                self._caches[name].add(texts, outputs[name], durable=False)
            elif rows:
                self._caches[name].add([texts[row] for row in rows], outputs[name].take(rows), durable=False)


def _load_keys(path: Path) -> NDArray[Any] | None:
    """Return the keys in a file, or None if it is unreadable or gone."""
    try:
        with open_file(path) as stream, np.load(stream, allow_pickle=False) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.zip.infolist()):
                return None  # biassay compresses nothing, and a small file could unpack to gigabytes
            keys: NDArray[Any] = archive["keys"]
            return keys
    except Exception:  # NumPy and zipfile raise arbitrary errors on a damaged file
        return None


def get_file_name(content: bytes, model_key: str) -> str:
    """Return the name of a file with this content in the folder of a model."""
    return f"{hashlib.blake2b(content, digest_size=16, key=model_key.encode()).hexdigest()}.npz"
