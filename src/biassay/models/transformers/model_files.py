"""Fingerprint the files of a Hugging Face model in a folder.

Every file counts unless it is known to be a document: loaders read more files with every release, and an unnecessary
hash costs at most one repeated measurement.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from biassay.cache_usage import is_cache
from biassay.io import content_digest

_DOCUMENT_SUFFIXES = (".md", ".rst", ".html", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pyc")
_DOCUMENT_NAMES = re.compile(
    r"(readme|licen[cs]e|notice|copying|authors|changelog|citation)([._-][\w.-]*)?", re.IGNORECASE
)
_TEXT_SUFFIXES = ("", ".txt", ".cff")
_IGNORED_FILES = (".gitattributes", ".gitignore", ".DS_Store", "Thumbs.db", "desktop.ini")
_IGNORED_FOLDERS = (".git", ".hg", ".svn", ".ipynb_checkpoints")
_DOWNLOAD_STATE = ".cache/huggingface"  # `hf download --local-dir` writes times into it
_CODE_REFERENCE = re.compile(r"[^\s\"]+--[\w.]+")
_REFERENCE_FIELDS = ("base_model_name_or_path", "tokenizer_name_or_path", "processor_name")
_LARGEST_CONFIG = 64 * 2**20  # bytes
_UNREADABLE = "unreadable"


def hash_files(folder: Path) -> dict[str, str]:
    """Hash every file that a loader could read from a model's folder, links included; return SHA-256 by path."""
    digests = {}
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not _is_ignored_folder(Path(parent, name))]
        for path in (Path(parent, name) for name in names):
            if path.is_file() and not _is_document(path.name):
                digests[path.relative_to(folder).as_posix()] = _hash_file(path)
    return dict(sorted(digests.items()))


def hash_json(*parts: object) -> str:
    """Hash values that can be written as JSON."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


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


def _is_document(name: str) -> bool:
    suffix = Path(name).suffix.lower()
    is_named = suffix in _TEXT_SUFFIXES and _DOCUMENT_NAMES.fullmatch(name) is not None
    return is_named or suffix in _DOCUMENT_SUFFIXES or name in _IGNORED_FILES


def _is_ignored_folder(path: Path) -> bool:
    """Return True for the state of Git or a download, a cache or run of biassay, and a link to a folder above."""
    if path.name in _IGNORED_FOLDERS or path.match(_DOWNLOAD_STATE) or is_cache(path):
        return True
    manifest = _read_config(path / "manifest.json")
    is_run = isinstance(manifest, dict) and {"format_version", "run_id"} <= manifest.keys()
    return is_run or path.parent.resolve().is_relative_to(path.resolve())


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
