"""List the content of a cache by model, and remove parts of it.

Only files that biassay recognises as its own are listed and removed. Symbolic links below the cache are never followed.
"""

from __future__ import annotations

import os
import re
import stat
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biassay.cache.context_vectors import METADATA_FILE
from biassay.cache.files import STALE_SECONDS
from biassay.cache.responses import get_file_name
from biassay.cache_usage import get_start_of_oldest_run
from biassay.errors import RunFolderError, UsageError
from biassay.io import open_file, read_json
from biassay.models.base import Identity

__all__ = ["KINDS", "CacheEntry", "CacheListing", "list_cache", "remove_entries", "select_entries"]

KINDS = {
    "embeddings": "vectors of texts and of words in contexts, with token counts",
    "responses": "replies of chat and instruct models",
    "likelihoods": "probabilities of words and sentences",
    "measurements": "results per model and study",
    "models": "dequantised GGUF models",
    "digests": "digests of model files and properties of models",
    "leftovers": "damaged files, and files of interrupted runs that are older than a day",
}
UNKNOWN_MODEL = "(unknown)"
ALL_MODELS = "(all models)"
_KEY = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BATCH = re.compile(r"[0-9a-f]{32}\.npz")
_SHARD = re.compile(r"\d{6,}-[0-9a-f]{16}\.npy")
_TEMPORARY = re.compile(r"\..*\.tmp")
_TEMPORARY_MODEL = re.compile(r"\.[a-z0-9_]{8}")
_ARRAYS = re.compile(r"\d+\.npz")
_PROPERTIES = re.compile(r"(snapshot-)?[0-9a-f]{32}\.json")
_KIND_OF_ARRAY = (
    ("vectors", "embeddings"),
    ("texts", "responses"),
    ("columns", "likelihoods"),
    ("spans", "likelihoods"),
)
_GGUF_NAMES = re.compile(r"gguf-[0-9a-f]{64}\.json")
_MAX_DESCRIPTION_BYTES = 64 * 2**20


@dataclass(frozen=True)
class CacheEntry:
    """Cached files of one kind for one model under one set of settings.

    Attributes
    ----------
    model : str
        Name under which the model was last used.
    names : tuple of str
        All its names, the latest first: copies of a model share a cache.
    kind : str
        One of `KINDS`.
    settings : dict
        Settings of the model, as strings.
    folder : Path
    files : tuple of Path
    size : int
        Bytes of the files.
    last_used : float
        Seconds since the epoch.
    """

    model: str
    names: tuple[str, ...]
    kind: str
    settings: Mapping[str, str]
    folder: Path
    files: tuple[Path, ...] = field(repr=False)
    size: int
    last_used: float


@dataclass(frozen=True)
class CacheListing:
    """Content of a cache.

    Attributes
    ----------
    folder : Path
    entries : tuple of CacheEntry
    other_files : int
        Number of files and links that are not biassay's, which are never removed.
    """

    folder: Path
    entries: tuple[CacheEntry, ...]
    other_files: int

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size for entry in self.entries)


def list_cache(folder: Path) -> CacheListing:
    """List a cache. A folder that does not exist is an empty cache; a folder with other content is an error."""
    if not folder.exists():
        return CacheListing(folder, (), 0)
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder; give the cache folder as --cache DIR")
    scanner = _CacheScanner(folder)
    try:
        scanner.scan()
    except PermissionError as error:
        raise RunFolderError(f"{error.filename}: cannot be read: {error.strerror}") from error
    if (scanner.entries or scanner.others) and not scanner.is_proven:
        raise UsageError(f"{folder}: not a biassay cache; give the cache folder as --cache DIR")
    return CacheListing(folder, tuple(scanner.entries), scanner.others)


def select_entries(
    listing: CacheListing,
    *,
    is_model: Callable[[CacheEntry], bool] | None = None,
    kinds: Sequence[str] = (),
    older_than: float | None = None,
    max_size: int | None = None,
) -> list[CacheEntry]:
    """Select the entries that match all criteria, the least recently used first.

    Parameters
    ----------
    listing : CacheListing
    is_model : callable, optional
        Whether an entry belongs to a wanted model.
    kinds : sequence of str
        Kinds to select; by default all but digests.
    older_than : float, optional
        Select entries that were not used for this many seconds.
    max_size : int, optional
        Stop when the rest of the cache has at most this many bytes.
    """
    chosen = [
        entry
        for entry in sorted(listing.entries, key=lambda entry: entry.last_used)
        if (entry.kind in kinds if kinds else entry.kind != "digests")
        and (is_model is None or is_model(entry))
        and (older_than is None or time.time() - entry.last_used > older_than)
    ]
    if max_size is None:
        return chosen
    left, selected = listing.size, []
    for entry in chosen:
        if left <= max_size:
            break
        selected.append(entry)
        left -= entry.size
    return selected


def remove_entries(
    listing: CacheListing, entries: Iterable[CacheEntry]
) -> tuple[list[CacheEntry], list[CacheEntry], list[OSError]]:
    """Remove entries, except those that a run in progress may be using.

    Returns
    -------
    removed, in_use : list of CacheEntry
    errors : list of OSError
        Files that could not be removed.
    """
    removed, in_use, errors = list[CacheEntry](), list[CacheEntry](), list[OSError]()
    for entry in entries:
        start = get_start_of_oldest_run(listing.folder)
        if start is not None and _get_last_use(entry) >= start:
            in_use.append(entry)
            continue
        try:
            for file in entry.files:
                file.unlink(missing_ok=True)
        except OSError as error:
            errors.append(error)
            continue
        removed.append(entry)
        _remove_empty_folders(entry, listing.folder)
    return removed, in_use, errors


def _get_last_use(entry: CacheEntry) -> float:
    """Return when an entry was last used, by the present state of its files."""
    latest = entry.last_used
    for file in (*entry.files, entry.folder / "model.json"):
        with suppress(OSError):
            latest = max(latest, file.lstat().st_mtime)
    return latest


def _remove_empty_folders(entry: CacheEntry, root: Path) -> None:
    """Remove the folders of an entry, and its description, if they hold nothing else."""
    if entry.folder.parent == root and _KEY.fullmatch(entry.folder.name):
        with suppress(OSError):
            if os.listdir(entry.folder) == ["model.json"]:
                (entry.folder / "model.json").unlink()
    folders = {parent for file in entry.files for parent in file.parents if parent.is_relative_to(entry.folder)}
    for folder in sorted({*folders, entry.folder} - {root}, key=lambda path: -len(path.parts)):
        with suppress(OSError):  # it is not empty
            folder.rmdir()


class _CacheScanner:
    """Find the entries of a cache, and whether one of them proves that the folder is a cache."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.entries: list[CacheEntry] = []
        self.others = 0
        self.is_proven = False
        self._now = time.time()
        self._names: dict[tuple[object, object], list[str]] = {}
        self._folders: dict[str, Callable[[Path], None]] = {
            "contexts": self._add_contexts,
            "measured": self._add_measured,
            "gguf": self._add_gguf,
            "models": self._add_properties,
            "digests": self._add_digests,
        }

    def scan(self) -> None:
        """Scan models first, because their names are needed for measurements."""
        others = []
        for item in _list_folder(self._root):
            if item.is_dir(follow_symlinks=False) and _KEY.fullmatch(item.name):
                self._add_model(Path(item.path))
            else:
                others.append(item)
        for item in others:
            if item.is_dir(follow_symlinks=False) and item.name in self._folders:
                self._folders[item.name](Path(item.path))
            elif not _is_own_temporary(item):
                self._count_other(item)

    def _add_model(self, folder: Path) -> None:
        """Add the batches of a model, by kind."""
        description = folder / "model.json"
        batches, leftovers = self._sort(folder, _BATCH, re.compile(r"model\.json"))
        content = _read_object(description)
        identity = _read_identity(content)
        self.is_proven |= identity is not None and identity.key == folder.name
        self.is_proven = self.is_proven or any(map(_is_named_by_content, batches[:3]))
        by_kind: dict[str, list[Path]] = {}
        for path in batches:
            by_kind.setdefault(_get_kind(path), []).append(path)
        names, settings = _read_names(content), dict(identity.settings) if identity is not None else {}
        if identity is not None:
            names = names or [f"{identity.family}:{UNKNOWN_MODEL}"]
            self._names.setdefault((identity.family, identity.revision), names)
        if not batches and self._is_stale(description):
            leftovers.append(description)
        for kind, files in by_kind.items():
            self._add(kind, names, settings, folder, files, _get_modification_time(description))
        self._add("leftovers", names, settings, folder, leftovers)

    def _add_contexts(self, parent: Path) -> None:
        for folder in self._subfolders(parent):
            description = folder / METADATA_FILE
            shards, leftovers = self._sort(folder, _SHARD, re.compile(re.escape(METADATA_FILE)))
            content = _read_object(description)
            name = content.get("model")
            self.is_proven |= isinstance(name, str) and "shard_rows" in content
            names = [name] if isinstance(name, str) else []
            described = [description] if description.is_file() else []
            if shards or (described and self._is_stale(description)):
                kind = "embeddings" if shards else "leftovers"
                self._add(kind, names, _as_settings(content.get("settings")), folder, [*shards, *described])
            self._add("leftovers", names, {}, folder, leftovers)

    def _add_measured(self, parent: Path) -> None:
        for folder in self._subfolders(parent):
            files, leftovers = self._sort(folder, re.compile(r"(manifest|results)\.json"), subfolder="arrays")
            arrays = folder / "arrays"
            if arrays.is_dir() and not arrays.is_symlink():
                more, stale = self._sort(arrays, _ARRAYS)
                files, leftovers = files + more, leftovers + stale
            manifest = _read_object(folder / "manifest.json")
            models = manifest.get("models")
            record = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
            is_run = manifest.get("run_id") == folder.name
            self.is_proven |= is_run
            known = self._names.get((record.get("family"), record.get("revision")), [])
            labels = [record.get("name"), str(record.get("text", "")).partition("?")[0]]
            names = list(dict.fromkeys([*known, *(label for label in labels if label and isinstance(label, str))]))
            if is_run or all(map(self._is_stale, files)):
                kind = "measurements" if is_run else "leftovers"
                self._add(kind, names, _as_settings(record.get("settings")), folder, files)
            self._add("leftovers", names, {}, folder, leftovers)

    def _add_gguf(self, parent: Path) -> None:
        for item in _list_folder(parent):
            path = Path(item.path)
            is_folder = item.is_dir(follow_symlinks=False)
            if is_folder and _SHA256.fullmatch(item.name) and (path / "config.json").is_file():
                self.is_proven = True
                description = self._root / "models" / f"gguf-{item.name}.json"
                names = _read_names(_read_object(description)) or [f"hf:{UNKNOWN_MODEL}.gguf"]
                files = [*_walk_files(path), *([description] if _is_plain(description) else [])]
                self._add("models", names, {}, path, files)
            elif is_folder and _TEMPORARY_MODEL.fullmatch(item.name):
                files = list(_walk_files(path))
                if all(map(self._is_stale, (path, *files))):
                    self._add("leftovers", [], {}, path, files)
            else:
                self._count_other(item)

    def _add_properties(self, folder: Path) -> None:
        files, leftovers = self._sort(folder, _PROPERTIES, _GGUF_NAMES)
        for path in folder.glob("gguf-*.json"):
            if _is_plain(path) and not (self._root / "gguf" / path.stem.removeprefix("gguf-")).is_dir():
                leftovers.append(path)
        self.is_proven |= any("digest" in _read_object(file) for file in files[:1])
        self._add("digests", [ALL_MODELS], {}, folder, files)
        self._add("leftovers", [ALL_MODELS], {}, folder, leftovers)

    def _add_digests(self, folder: Path) -> None:
        files, leftovers = self._sort(folder, _KEY)
        self.is_proven |= any(re.fullmatch(r"[0-9a-f]{64} [0-9a-f]{64}", _read_start(file)) for file in files[:1])
        self._add("digests", [ALL_MODELS], {}, folder, files)
        self._add("leftovers", [ALL_MODELS], {}, folder, leftovers)

    def _is_stale(self, path: Path) -> bool:
        return self._now - _get_modification_time(path) > STALE_SECONDS

    def _subfolders(self, parent: Path) -> Iterator[Path]:
        for item in _list_folder(parent):
            if item.is_dir(follow_symlinks=False) and _KEY.fullmatch(item.name):
                yield Path(item.path)
            else:
                self._count_other(item)

    def _sort(
        self, folder: Path, own: re.Pattern[str], ignored: re.Pattern[str] | None = None, subfolder: str | None = None
    ) -> tuple[list[Path], list[Path]]:
        """List the files of a folder that match `own`, and stale temporary files; count all others.

        Files that match `ignored` and the subfolder are neither listed nor counted.
        """
        files, leftovers = list[Path](), list[Path]()
        for item in _list_folder(folder):
            path = Path(item.path)
            if item.is_dir(follow_symlinks=False) and item.name == subfolder:
                continue
            if not item.is_file(follow_symlinks=False):
                self._count_other(item)
            elif own.fullmatch(item.name):
                files.append(path)
            elif _TEMPORARY.fullmatch(item.name):
                leftovers += [path] * self._is_stale(path)
            elif ignored is None or not ignored.fullmatch(item.name):
                self._count_other(item)
        return files, leftovers

    def _count_other(self, item: os.DirEntry[str]) -> None:
        if item.is_dir(follow_symlinks=False):
            self.others += sum(1 for _ in _walk_files(Path(item.path))) or 1
        else:
            self.others += 1

    def _add(
        self,
        kind: str,
        names: Sequence[str],
        settings: Mapping[str, str],
        folder: Path,
        files: Sequence[Path],
        used: float = 0.0,
    ) -> None:
        """Add an entry if it has files. It was last used at `used` or when a file last changed."""
        if not files:
            return
        size, latest = 0, used
        for file in files:
            with suppress(FileNotFoundError):  # a run in progress may merge files
                status = file.lstat()
                size += status.st_size
                latest = max(latest, status.st_mtime)
        names = tuple(names) or (UNKNOWN_MODEL,)
        self.entries.append(CacheEntry(names[0], names, kind, settings, folder, tuple(files), size, latest))


def _list_folder(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return sorted(items, key=lambda item: item.name)
    except FileNotFoundError:  # another process removed it
        return []


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder except folders; links are not followed."""
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in sorted(names))


def _is_own_temporary(item: os.DirEntry[str]) -> bool:
    own = re.fullmatch(r"\.run-[0-9a-f]{32}\.lock|\.[0-9a-f]{32}\.tmp", item.name)
    return own is not None and item.is_file(follow_symlinks=False)


def _is_plain(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _get_modification_time(path: Path) -> float:
    with suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _is_named_by_content(path: Path) -> bool:
    with suppress(OSError), open_file(path) as file:
        return path.name == get_file_name(file.read(), path.parent.name)
    return False


def _get_kind(path: Path) -> str:
    """Return the kind of a batch, which follows from the arrays in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return "leftovers"
    return next((kind for array, kind in _KIND_OF_ARRAY if array in arrays), "embeddings")


def _read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; return an empty one if the file is missing, damaged or a link."""
    with suppress(OSError, RunFolderError):
        if _is_plain(path) and path.lstat().st_size <= _MAX_DESCRIPTION_BYTES:
            content = read_json(path)
            return content if isinstance(content, dict) else {}
    return {}


def _read_start(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return file.read(200).decode("ascii", "replace")
    return ""


def _read_identity(content: Mapping[str, Any]) -> Identity | None:
    family, revision, settings = (content.get(name) for name in ("family", "revision", "settings"))
    if not (isinstance(family, str) and isinstance(revision, str) and isinstance(settings, dict)):
        return None
    return Identity("", family, revision, tuple(_as_settings(settings).items()))


def _read_names(content: Mapping[str, Any]) -> list[str]:
    names = content.get("names")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _as_settings(content: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in content.items()} if isinstance(content, dict) else {}
