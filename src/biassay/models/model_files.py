"""Fingerprint the files of a Hugging Face model: its folder, or its snapshot in the cache of the hub.

Every file counts unless it is known to be a document: loaders read more files with every release, and a file that is
hashed without need costs a second measurement at most.
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
from biassay.files import check_digest, content_digest, default_cache, json_with_digest, read_json, write_atomically
from biassay.models.base import Identity

__all__ = ["changed_files", "digest_of", "file_digests", "named_elsewhere"]

_DOCUMENT_SUFFIXES = (".md", ".rst", ".html", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pyc")
_DOCUMENT_NAMES = re.compile(
    r"(readme|licen[cs]e|notice|copying|authors|changelog|citation)([._-][\w.-]*)?", re.IGNORECASE
)
_TEXT_SUFFIXES = ("", ".txt", ".cff")
_IGNORED_FILES = (".gitattributes", ".gitignore", ".DS_Store", "Thumbs.db", "desktop.ini")
_IGNORED_FOLDERS = (".git", ".hg", ".svn", ".ipynb_checkpoints")
_DOWNLOAD_STATE = Path(".cache", "huggingface")  # `hf download --local-dir` writes times into it
_RUN_FILES = ("manifest.json", "results.json", "results.tsv", "report.html", "arrays")
_CODE = re.compile(r"[^\s\"]+--[\w.]+")
_OTHER_MODELS = ("base_model_name_or_path", "tokenizer_name_or_path", "processor_name")
_LARGEST_CONFIG = 64 * 2**20  # bytes
_UNREADABLE = "unreadable"


def file_digests(folder: Path) -> dict[str, str]:
    """Hash every file that a loader could read from a model's folder.

    Links to files are followed, wherever they lead. Links to folders are followed within the folder; one that leads
    out of it is an error, because what lies there may be anything.

    Returns
    -------
    dict
        Path within the folder -> SHA-256 of the content, in order of the paths. A folder that is reached twice, by its
        name and by a link, is hashed once; the second path maps to the first.
    """
    found = _Walk(folder)
    found.enter(Path())
    for path in sorted(found.files):
        for named in _named_files(folder, path):
            if (folder / named).is_dir():
                found.enter(named)
            elif (folder / named).exists() and not (folder / named).is_file():
                raise ModelError(f"{folder / path} names {str(named)!r}, which is a pipe or a device and not a file")
            elif (folder / named).is_file():
                found.files.add(named)
    digests = {path.as_posix(): _digest(folder / path) for path in found.files}
    return dict(sorted((digests | found.repeated).items()))


def digest_of(*parts: object) -> str:
    """Hash anything that can be written as JSON."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def changed_files(snapshot: Path) -> dict[str, str]:
    """Find the files of a hub snapshot that are not what its commit holds.

    The cache of the hub names a file by its SHA-256, or by its SHA-1 as a Git blob. A file whose content has another
    digest was edited. A commit never changes, so a path that led to another file earlier was replaced. Files that are
    not links to such a blob cannot be checked and count as changed.

    Returns
    -------
    dict
        Path within the snapshot -> SHA-256 of the content; empty for an untouched snapshot.
    """
    known = _seen_blobs(snapshot)
    seen, changed = dict(known), {}
    for name, digest in file_digests(snapshot).items():
        path = snapshot / name
        blob = Path(os.path.realpath(path)).name if path.is_symlink() else ""
        if _holds_blob(path, blob, digest) and seen.setdefault(name, blob) == blob:
            continue
        changed[name] = digest
    if seen != known:
        with suppress(OSError):  # a cache that cannot be written only costs this check
            _seen_path(snapshot).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(_seen_path(snapshot), json_with_digest(seen).encode())
    return changed


def named_elsewhere(folder: Path, files: Sequence[str], *, code: bool) -> list[str]:
    """List the other models, tokenizers and (if ``code``) code repositories that a model's configuration names."""
    found: set[str] = set()
    for name in files:
        if not name.endswith(".json"):
            continue
        content = _read_config(folder / name)
        if not isinstance(content, dict):
            continue
        other = (content.get(key) for key in _OTHER_MODELS)
        found.update(value for value in other if isinstance(value, str) and value)
        paths = (value for key, value in content.items() if key.endswith("_file") and "tokenizer" in name)
        found.update(value for value in paths if isinstance(value, str) and os.path.isfile(value))
        if code:
            classes = re.findall(_CODE, json.dumps(content.get("auto_map")))
            found.update(one.partition("--")[0] for one in classes)
    return sorted(found)


class _Walk:
    """The files below a folder; every folder is entered once, however many links lead to it."""

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
                f"{self._folder / path} is a link to a folder outside of the model, {real}; "
                "copy what the model needs from there into its folder, or remove the link"
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
                own = entry.name not in _IGNORED_FOLDERS and below != _DOWNLOAD_STATE
                if (own or entry.is_symlink()) and not _is_cache(entry):
                    self.enter(below)
            elif entry.is_file() and not _is_document(entry.name):
                self.files.add(below)


def _is_document(name: str) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    titled = suffix in _TEXT_SUFFIXES and _DOCUMENT_NAMES.fullmatch(name) is not None
    return titled or suffix in _DOCUMENT_SUFFIXES or name in _IGNORED_FILES


def _is_run(names: Sequence[str], folder: Path) -> bool:
    """Whether biassay wrote a run here: people run `biassay run hf:.` inside a model's folder."""
    if "manifest.json" not in names:
        return False
    manifest = _read_config(folder / "manifest.json")
    return isinstance(manifest, dict) and {"format_version", "run_id"} <= manifest.keys()


def _is_cache(entry: os.DirEntry[str]) -> bool:
    """Whether a folder is a biassay cache: people run `biassay run hf:. --cache cache` inside a model's folder."""
    cache = default_cache()
    if cache.name == entry.name and os.path.realpath(entry.path) == os.path.realpath(cache):
        return True
    if entry.is_symlink():
        return False
    with os.scandir(entry.path) as entries:
        return any(map(_is_of_cache, entries))


def _is_of_cache(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a lock of a run, or the folder of a cached model under the name that its content gives."""
    if re.fullmatch(r"\.run-[0-9a-f]{32}\.lock", entry.name):
        return True
    if not re.fullmatch(r"[0-9a-f]{32}", entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    about = _read_config(Path(entry.path, "model.json"))
    if not isinstance(about, dict) or not isinstance(about.get("settings"), dict):
        return False
    settings = tuple((str(name), str(value)) for name, value in about["settings"].items())
    return Identity("", str(about.get("family")), str(about.get("revision")), settings).key == entry.name


def _named_files(folder: Path, path: Path) -> Iterator[Path]:
    """Paths that an index of shards or a list of modules names, within the model's folder."""
    names: list[object] = []
    if re.fullmatch(r".*\.index(\..*)?\.json", path.name):
        content = _read_config(folder / path)
        shards = content.get("weight_map") if isinstance(content, dict) else None
        names = [*shards.values()] if isinstance(shards, dict) else []
    elif path.name == "modules.json":
        content = _read_config(folder / path)
        names = [one.get("path") for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    elif path.name == "router_config.json":
        content = _read_config(folder / path)
        names = [*content["types"]] if isinstance(content, dict) and isinstance(content.get("types"), dict) else []
    elif path.name == "config.json":
        content = _read_config(folder / path)
        names = [content.get("transformers_weights")] if isinstance(content, dict) else []
    for name in sorted({name for name in names if isinstance(name, str) and name}):
        if _leaves(name):
            raise ModelError(
                f"{folder / path} names {name!r}, which is outside of the model's folder; "
                "put the file into the folder and name it by its path there"
            )
        if "\0" not in name:
            yield path.parent / name


def _leaves(name: str) -> bool:
    """Whether a path is absolute or goes up, on any system."""
    return any(kind(name).anchor or ".." in kind(name).parts for kind in (PurePosixPath, PureWindowsPath))


def _digest(path: Path) -> str:
    """SHA-256 of a file. One that may not be read cannot be loaded either."""
    try:
        return content_digest(path)
    except PermissionError:
        return _UNREADABLE


def _read_config(path: Path) -> Any:
    """Content of a JSON file; None where there is none: a damaged file is reported when it is loaded."""
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= _LARGEST_CONFIG:
            return json.loads(path.read_bytes())
    return None


def _holds_blob(path: Path, blob: str, digest: str) -> bool:
    if len(blob) != 40:
        return digest == blob
    with suppress(OSError):
        git = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        with path.open("rb") as file:
            while piece := file.read(2**20):
                git.update(piece)
        return git.hexdigest() == blob
    return False


def _seen_path(snapshot: Path) -> Path:
    return default_cache() / "models" / f"snapshot-{digest_of(os.path.realpath(snapshot))}.json"


def _seen_blobs(snapshot: Path) -> dict[str, str]:
    """Blobs of a snapshot's files, as they were when biassay first saw them."""
    with suppress(RunFolderError):
        kept = read_json(_seen_path(snapshot))
        if isinstance(kept, dict) and check_digest(kept):
            return kept
    return {}
