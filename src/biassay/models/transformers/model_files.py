"""Fingerprint the files of a Hugging Face model in a folder or a hub snapshot.

Every file counts unless it is known to be a document: loaders read more files with every release, and an unnecessary
hash costs at most one repeated measurement.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from biassay.errors import ModelError, RunFolderError
from biassay.io import check_digest, content_digest, default_cache, dump_json_with_digest, read_json, write_atomically
from biassay.models.base import Identity

__all__ = ["find_changed_files", "hash_files", "hash_json", "list_external_references"]

_DOCUMENT_SUFFIXES = (".md", ".rst", ".html", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pyc")
_DOCUMENT_NAMES = re.compile(
    r"(readme|licen[cs]e|notice|copying|authors|changelog|citation)([._-][\w.-]*)?", re.IGNORECASE
)
_TEXT_SUFFIXES = ("", ".txt", ".cff")
_IGNORED_FILES = (".gitattributes", ".gitignore", ".DS_Store", "Thumbs.db", "desktop.ini")
_IGNORED_FOLDERS = (".git", ".hg", ".svn", ".ipynb_checkpoints")
_DOWNLOAD_STATE = Path(".cache", "huggingface")  # `hf download --local-dir` writes times into it
_RUN_FILES = ("manifest.json", "results.json", "results.tsv", "report.html", "arrays")
_CODE_REFERENCE = re.compile(r"[^\s\"]+--[\w.]+")
_REFERENCE_FIELDS = ("base_model_name_or_path", "tokenizer_name_or_path", "processor_name")
_LARGEST_CONFIG = 64 * 2**20  # bytes
_UNREADABLE = "unreadable"


def hash_files(folder: Path) -> dict[str, str]:
    """Hash every file that a loader could read from a model's folder.

    Links to files are followed. Links to folders are followed within the folder; a link that leads out of it raises
    ModelError.

    Returns
    -------
    dict of str to str
        SHA-256 by path within the folder, sorted by path. A folder that is reached twice, by its name and by a link, is
        hashed once; the second path maps to the first.
    """
    walk = _FolderWalk(folder)
    walk.enter(Path())
    for path in sorted(walk.files):
        for reference in _list_references(folder, path):
            target = folder / reference
            if target.is_dir():
                walk.enter(reference)
            elif target.is_file():
                walk.files.add(reference)
            elif target.exists():
                raise ModelError(f"{folder / path} names {str(reference)!r}, which is a pipe or a device, not a file")
    digests = {path.as_posix(): _hash_file(folder / path) for path in walk.files}
    return dict(sorted((digests | walk.repeated).items()))


def hash_json(*parts: object) -> str:
    """Hash values that can be written as JSON."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def find_changed_files(snapshot: Path) -> dict[str, str]:
    """Find the files of a hub snapshot that differ from its commit.

    The hub's cache names a file by its SHA-256, or by its SHA-1 as a Git blob. A file whose content has another digest
    was edited. A commit never changes, so a path that pointed to another blob earlier was replaced. Files that are not
    links to a blob cannot be checked and count as changed.

    Returns
    -------
    dict of str to str
        SHA-256 by path within the snapshot; empty if nothing changed.
    """
    known = _read_seen_blobs(snapshot)
    seen, changed = dict(known), {}
    for name, digest in hash_files(snapshot).items():
        path = snapshot / name
        blob = Path(os.path.realpath(path)).name if path.is_symlink() else ""
        if _holds_blob(path, blob, digest) and seen.setdefault(name, blob) == blob:
            continue
        changed[name] = digest
    if seen != known:
        with suppress(OSError):  # a cache that cannot be written only costs this check
            _get_seen_path(snapshot).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(_get_seen_path(snapshot), dump_json_with_digest(seen).encode())
    return changed


def list_external_references(folder: Path, files: Sequence[str], *, code: bool) -> list[str]:
    """List the other models, tokenizers and code repositories that a model's configuration names.

    Parameters
    ----------
    folder : Path
        The model's folder.
    files : sequence of str
        Files to read, as paths within the folder.
    code : bool
        If True, include code repositories.
    """
    references: set[str] = set()
    for name in files:
        if not name.endswith(".json"):
            continue
        content = _read_config(folder / name)
        if not isinstance(content, dict):
            continue
        values = (content.get(key) for key in _REFERENCE_FIELDS)
        references.update(value for value in values if isinstance(value, str) and value)
        paths = (value for key, value in content.items() if key.endswith("_file") and "tokenizer" in name)
        references.update(value for value in paths if isinstance(value, str) and os.path.isfile(value))
        if code:
            classes = re.findall(_CODE_REFERENCE, json.dumps(content.get("auto_map")))
            references.update(name.partition("--")[0] for name in classes)
    return sorted(references)


class _FolderWalk:
    """Collect the files below a folder; every folder is entered once, however many links lead to it."""

    def __init__(self, folder: Path) -> None:
        self._root = Path(os.path.realpath(folder))
        self._folder = folder
        self._entered: dict[Path, Path] = {}
        self.files: set[Path] = set()
        self.repeated: dict[str, str] = {}

    def enter(self, path: Path) -> None:
        real = Path(os.path.realpath(self._folder / path))
        if not real.is_relative_to(self._root):
            raise ModelError(
                f"{self._folder / path} is a link to a folder outside of the model, {real}; copy the files that the "
                "model needs into its folder, or remove the link"
            )
        if real in self._entered:
            if self._entered[real] != path:
                self.repeated[path.as_posix()] = self._entered[real].as_posix()
            return
        self._entered[real] = path
        entries = sorted(os.scandir(self._folder / path), key=lambda entry: entry.name)
        is_run = path.parts and _is_run([entry.name for entry in entries], self._folder / path)
        for entry in entries:
            below = path / entry.name
            if is_run and (entry.name in _RUN_FILES or entry.name.endswith(".tmp")):
                continue
            if entry.is_dir():
                is_ignored = entry.name in _IGNORED_FOLDERS or below == _DOWNLOAD_STATE
                if (not is_ignored or entry.is_symlink()) and not _is_cache(entry):
                    self.enter(below)
            elif entry.is_file() and not _is_document(entry.name):
                self.files.add(below)


def _is_document(name: str) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    is_named = suffix in _TEXT_SUFFIXES and _DOCUMENT_NAMES.fullmatch(name) is not None
    return is_named or suffix in _DOCUMENT_SUFFIXES or name in _IGNORED_FILES


def _is_run(names: Sequence[str], folder: Path) -> bool:
    """Return True for a run folder of biassay, because users run `biassay run hf:.` inside a model's folder."""
    if "manifest.json" not in names:
        return False
    manifest = _read_config(folder / "manifest.json")
    return isinstance(manifest, dict) and {"format_version", "run_id"} <= manifest.keys()


def _is_cache(entry: os.DirEntry[str]) -> bool:
    """Return True for a cache of biassay, because users run `biassay run hf:. --cache cache` in a model's folder."""
    cache = default_cache()
    if cache.name == entry.name and os.path.realpath(entry.path) == os.path.realpath(cache):
        return True
    if entry.is_symlink():
        return False
    with os.scandir(entry.path) as entries:
        return any(map(_is_cache_entry, entries))


def _is_cache_entry(entry: os.DirEntry[str]) -> bool:
    """Return True for the lock of a run, and for a cached model whose folder name matches its content."""
    if re.fullmatch(r"\.run-[0-9a-f]{32}\.lock", entry.name):
        return True
    if not re.fullmatch(r"[0-9a-f]{32}", entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    metadata = _read_config(Path(entry.path, "model.json"))
    if not isinstance(metadata, dict) or not isinstance(metadata.get("settings"), dict):
        return False
    settings = tuple((str(name), str(value)) for name, value in metadata["settings"].items())
    return Identity("", str(metadata.get("family")), str(metadata.get("revision")), settings).key == entry.name


def _list_references(folder: Path, path: Path) -> Iterator[Path]:
    """List the paths within the model's folder that an index of shards or a list of modules names."""
    is_index = re.fullmatch(r".*\.index(\..*)?\.json", path.name) is not None
    if not is_index and path.name not in ("modules.json", "router_config.json", "config.json"):
        return
    content = _read_config(folder / path)
    names: list[object] = []
    if path.name == "modules.json" and isinstance(content, list):
        names = [module.get("path") for module in content if isinstance(module, dict)]
    elif path.name == "config.json" and isinstance(content, dict):
        names = [content.get("transformers_weights")]
    elif isinstance(content, dict):
        table = content.get("weight_map" if is_index else "types")
        names = [*(table.values() if is_index else table)] if isinstance(table, dict) else []
    for name in sorted({name for name in names if isinstance(name, str) and name}):
        if _leaves_folder(name):
            raise ModelError(
                f"{folder / path} names {name!r}, which is outside of the model's folder; "
                "put the file into the folder and name it by its path there"
            )
        if "\0" not in name:
            yield path.parent / name


def _leaves_folder(name: str) -> bool:
    """Return True if a path is absolute or contains "..", on any system."""
    return any(kind(name).anchor or ".." in kind(name).parts for kind in (PurePosixPath, PureWindowsPath))


def _hash_file(path: Path) -> str:
    """Hash a file; one without read permission cannot be loaded either and gets a constant."""
    try:
        return content_digest(path)
    except PermissionError:
        return _UNREADABLE


def _read_config(path: Path) -> Any:
    """Read a JSON file; return None if it is missing or damaged, which the loader reports."""
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= _LARGEST_CONFIG:
            return json.loads(path.read_bytes())
    return None


def _holds_blob(path: Path, blob: str, digest: str) -> bool:
    """Return True if a file has the content that the name of its blob promises: a SHA-256 or a Git SHA-1."""
    if len(blob) != 40:
        return digest == blob
    with suppress(OSError), path.open("rb") as file:
        git_blob = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        return hashlib.file_digest(file, lambda: git_blob).hexdigest() == blob
    return False


def _get_seen_path(snapshot: Path) -> Path:
    return default_cache() / "models" / f"snapshot-{hash_json(os.path.realpath(snapshot))}.json"


def _read_seen_blobs(snapshot: Path) -> dict[str, str]:
    """Read the blobs of a snapshot's files as biassay first saw them."""
    with suppress(RunFolderError):
        content = read_json(_get_seen_path(snapshot))
        if isinstance(content, dict) and check_digest(content):
            return content
    return {}
