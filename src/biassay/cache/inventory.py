"""List the content of a cache by model, and remove parts of it.

Only files that biassay recognizes as its own are listed and removed. Symbolic links below the cache are never followed.
"""

from __future__ import annotations

import os
import re
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from biassay.cache.context_vectors import METADATA_FILE
from biassay.cache.files import STALE_SECONDS
from biassay.cache_usage import CACHE_TAG, get_start_of_oldest_run, is_cache, read_description, read_names
from biassay.errors import RunFolderError, UsageError
from biassay.grouping import group_pairs

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
_TEMPORARY = re.compile(r"\..*\.tmp|\.run-[0-9a-f]{32}\.lock")
_OWN_FILES = {  # by folder of the cache, as paths below an entry; model.json, about.json and gguf-*.json describe it
    "": re.compile(r"[0-9a-f]{32}\.npz"),
    "contexts": re.compile(r"\d{6,}-[0-9a-f]{16}\.npy"),
    "measured": re.compile(r"(manifest|results)\.json|arrays/\d+\.npz"),
    "gguf": re.compile(r".*"),
    "models": re.compile(r"(snapshot-)?[0-9a-f]{32}\.json"),
    "digests": _KEY,
}
_DESCRIPTIONS = re.compile(r"model\.json|about\.json|gguf-[0-9a-f]{64}\.json")
_KIND_OF_ARRAY = (
    ("vectors", "embeddings"),
    ("texts", "responses"),
    ("columns", "likelihoods"),
    ("spans", "likelihoods"),
)


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
    try:
        if any(folder.iterdir()) and not is_cache(folder):
            raise UsageError(f"{folder}: not a biassay cache; give the cache folder as --cache DIR")
        scanner = _CacheScanner(folder)
        scanner.scan()
    except PermissionError as error:
        raise RunFolderError(f"{error.filename}: cannot be read: {error.strerror}") from error
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
    """Find the entries of a cache."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.entries: list[CacheEntry] = []
        self.others = 0
        self._now = time.time()
        self._names: dict[tuple[object, object], list[str]] = {}

    def scan(self) -> None:
        """Scan models first, because their names are needed for measurements."""
        folders = [path for path in sorted(self._root.iterdir()) if path.is_dir() and not path.is_symlink()]
        models = [path for path in folders if _KEY.fullmatch(path.name)]
        parts = [path for path in folders if path.name in _OWN_FILES]
        for path in models:
            self._add_model(path)
        for path in parts:
            if path.name in ("models", "digests"):
                self._add("digests", [ALL_MODELS], {}, path, self._collect(path, path.name))
                continue
            for folder in sorted(path.iterdir()):
                pattern = _SHA256 if path.name == "gguf" else _KEY
                if folder.is_dir() and not folder.is_symlink() and pattern.fullmatch(folder.name):
                    {"contexts": self._add_contexts, "measured": self._add_measured, "gguf": self._add_gguf}[path.name](
                        folder
                    )
                else:
                    self._count_others(folder)
        for path in sorted(self._root.iterdir()):
            if path not in models and path not in parts and path.name != CACHE_TAG and not _is_temporary(path):
                self._count_others(path)

    def _add_model(self, folder: Path) -> None:
        """Add the batches of a model, by kind."""
        content = read_description(folder / "model.json")
        settings, names = _as_settings(content.get("settings")), read_names(content)
        if names:
            self._names.setdefault((content.get("backend"), content.get("revision")), names)
        batches = self._collect(folder, "", names, settings)
        for kind, files in group_pairs((_get_kind(path), path) for path in batches).items():
            self._add(kind, names, settings, folder, files, _get_modification_time(folder / "model.json"))

    def _add_contexts(self, folder: Path) -> None:
        content = read_description(folder / METADATA_FILE)
        names = [str(content["model"])] if "model" in content else []
        settings, shards = _as_settings(content.get("settings")), self._collect(folder, "contexts", names)
        described = [path for path in (folder / METADATA_FILE,) if path.is_file() and (shards or self._is_stale(path))]
        self._add("embeddings" if shards else "leftovers", names, settings, folder, [*shards, *described])

    def _add_measured(self, folder: Path) -> None:
        manifest = read_description(folder / "manifest.json")
        models = manifest.get("models")
        record = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
        known = self._names.get((record.get("backend"), record.get("revision")), [])
        labels = [record.get("name"), str(record.get("text", "")).partition("?")[0]]
        names = list(dict.fromkeys([*known, *(label for label in labels if label and isinstance(label, str))]))
        files, is_run = self._collect(folder, "measured", names), manifest.get("run_id") == folder.name
        if is_run or all(map(self._is_stale, files)):
            kind = "measurements" if is_run else "leftovers"
            self._add(kind, names, _as_settings(record.get("settings")), folder, files)

    def _add_gguf(self, folder: Path) -> None:
        description = self._root / "models" / f"gguf-{folder.name}.json"
        names = read_names(read_description(description)) or [f"hf:{UNKNOWN_MODEL}.gguf"]
        described = [description] if description.is_file() else []
        self._add("models", names, {}, folder, [*self._collect(folder, "gguf"), *described])

    def _is_stale(self, path: Path) -> bool:
        return self._now - _get_modification_time(path) > STALE_SECONDS

    def _collect(
        self, folder: Path, part: str, names: Sequence[str] = (), settings: Mapping[str, str] | None = None
    ) -> list[Path]:
        """List the files below a folder that biassay wrote; add stale temporary files, and count all others.

        Parameters
        ----------
        folder : Path
        part : str
            Key of `_OWN_FILES`.
        names, settings
            Those of the model, for stale files.
        """
        files, leftovers = list[Path](), list[Path]()
        for path in _walk_files(folder):
            if path.is_symlink():
                self.others += 1
            elif _OWN_FILES[part].fullmatch(path.relative_to(folder).as_posix()):
                files.append(path)
            elif _TEMPORARY.fullmatch(path.name):
                leftovers += [path] * self._is_stale(path)
            elif not _DESCRIPTIONS.fullmatch(path.name):
                self.others += 1
        self._add("leftovers", names, settings or {}, folder, leftovers)
        return files

    def _count_others(self, path: Path) -> None:
        is_folder = path.is_dir() and not path.is_symlink()
        self.others += sum(1 for _ in _walk_files(path)) if is_folder else 1

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


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder; links are not followed."""
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        yield from (Path(parent, name) for name in sorted([*names, *links]))


def _is_temporary(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _TEMPORARY.fullmatch(path.name) is not None


def _get_modification_time(path: Path) -> float:
    with suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _get_kind(path: Path) -> str:
    """Return the kind of a batch, which follows from the arrays in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return "leftovers"
    return next((kind for array, kind in _KIND_OF_ARRAY if array in arrays), "embeddings")


def _as_settings(content: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in content.items()} if isinstance(content, dict) else {}
