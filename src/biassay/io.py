"""Read and write files: atomic writes, digests, JSON and the cache location."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from biassay.errors import RunFolderError, StimulusError, UsageError
from biassay.redaction import redact_url

_DIGEST = "digest"
_ITEMS_PER_CHUNK = 1_000
_STALE_SECONDS = 24 * 3600
_RECENT = 2.0  # seconds; within one tick of the file system's clock a file may change and keep its date
# Also after quotes, which spreadsheets strip, and after the apostrophe that `escape_formula` adds.
_FORMULA = re.compile(r"""["']*[=+\-@\t\r\n＝＋－＠]""")
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def default_cache() -> Path:
    """Return the cache directory: $BIASSAY_CACHE, or the user's cache folder."""
    import platformdirs

    folder = os.environ.get("BIASSAY_CACHE")
    if folder and "://" in folder:
        raise UsageError(
            f"$BIASSAY_CACHE must be a folder on this machine, got {redact_url(folder)!r}; pass a URL with --cache"
        )
    return Path(folder or platformdirs.user_cache_path("biassay"))


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    biassay caches the digest by path, device, inode, size and times of the file. The inode change time is one of them,
    because a program can restore the modification time but not that one.
    """
    status, resolved = path.stat(), str(path.resolve())
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    state = f"{resolved} {status.st_dev} {status.st_ino} {status.st_size} {times}"
    cached = default_cache() / "digests" / hashlib.sha256(resolved.encode(errors="surrogateescape")).hexdigest()[:32]
    with suppress(OSError, ValueError):
        digest, _, _ = (text := cached.read_text(encoding="ascii")).partition(" ")
        if text == _seal_digest(digest, state):
            return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time() - max(status.st_mtime, status.st_ctime) > _RECENT:
        with suppress(OSError):  # a cache that cannot be written only costs time
            cached.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(cached, _seal_digest(digest, state).encode())
    return digest


def _seal_digest(digest: str, state: str) -> str:
    """Append a hash of digest and file state, so that a damaged or outdated cache entry is ignored."""
    return f"{digest} {hashlib.sha256(f'{state} {digest}'.encode(errors='surrogateescape')).hexdigest()}"


def escape_formula(text: str) -> str:
    """Prefix a table cell with an apostrophe if a spreadsheet would run it as a formula. Numbers stay as they are.

    The change is reversible: a cell with an apostrophe before a formula was written without it.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that is either complete or missing, even if the process is killed.

    Parameters
    ----------
    path : Path
        File to write.
    content : bytes
        Content of the file.
    durable : bool
        If True, wait until the file is on the disk, so that it survives a power failure.
    """
    with atomic_writer(path, durable=durable) as file:
        file.write(content)


def write_chunks(path: Path, chunks: Iterable[str]) -> None:
    """Write a text atomically from chunks."""
    with atomic_writer(path) as file:
        file.writelines(map(str.encode, chunks))


@contextmanager
def atomic_writer(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # not the temporary name
    finally:
        temporary.unlink(missing_ok=True)


def remove_damaged(path: Path) -> bool:
    """Remove a damaged file or folder of the cache. Return whether it is gone."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` when the block ends without an error.

    A killed process leaves only the temporary folder. A later call removes it after a day.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{folder.name}."
    for leftover in folder.parent.glob(f"{glob.escape(prefix)}*.tmp"):
        if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(leftover, ignore_errors=True)
    working = folder.parent / f"{prefix}{uuid.uuid4().hex}.tmp"
    working.mkdir()
    try:
        yield working
        if folder.is_dir() and any(folder.iterdir()):  # the report was written into it
            for path in working.iterdir():
                os.replace(path, folder / path.name)
        else:
            os.replace(working, folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raise OSError for a pipe or a device, which may block forever."""
    file = open(path, "rb", opener=_open_nonblocking)  # noqa: SIM115  (closed by the caller)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file but a pipe or a device", str(path))
    return file


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_text(path: Path) -> str:
    """Read a user's text file in UTF-8, with or without a byte order mark."""
    try:
        with open_file(path) as file:
            return file.read().decode("utf-8-sig")
    except OSError as error:
        raise StimulusError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StimulusError(f"{path}: not UTF-8 text (byte {error.start})") from error


def read_json(path: Path) -> Any:
    """Read a JSON file. Raise RunFolderError with the file name if anything is wrong."""
    try:
        with open_file(path) as file:
            return json.loads(file.read().decode())
    except FileNotFoundError as error:
        raise RunFolderError(f"{path}: the file is missing") from error
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RunFolderError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise RunFolderError(f"{path}: line {error.lineno}: not valid JSON: {error.msg}") from error
    except ValueError as error:
        raise RunFolderError(f"{path}: not valid JSON: a number has thousands of digits") from error
    except RecursionError as error:
        raise RunFolderError(f"{path}: not valid JSON: brackets are nested too deeply") from error


def dump_json_with_digest(content: Mapping[str, Any]) -> str:
    """Serialize content to JSON with a digest that reveals later changes."""
    return "".join(iter_json_chunks(content))


def iter_json_chunks(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of `dump_json_with_digest` in chunks. Iterators in `content` are consumed and become lists."""
    digest = hashlib.blake2b(b"{", digest_size=16)
    yield "{"
    for compact, lines in _iter_members(content, "\n "):
        digest.update(compact.encode())
        yield lines
    digest.update(b"}")
    yield f'{"," if content else ""}\n "{_DIGEST}": "{digest.hexdigest()}"\n}}\n'


def _iter_members(content: Mapping[str, Any], line: str) -> Iterator[tuple[str, str]]:
    """Yield the members of an object twice: compact, for the digest, and indented by `line`, for the file."""
    comma = ""
    for name, value in content.items():
        yield f"{comma}{_dump_compact(str(name))}:", f"{comma}{line}{_dump_indented(str(name), line)}: "
        comma = ","
        if isinstance(value, dict) and _holds_iterator(value):
            yield "{", "{"
            yield from _iter_members(value, f"{line} ")
            yield "}", f"{line}}}"
        elif isinstance(value, Iterator):
            yield "[", "["
            separator = ""
            while items := list(islice(value, _ITEMS_PER_CHUNK)):
                yield (
                    separator + _dump_compact(items)[1:-1],
                    separator + _dump_indented(items, line)[1 : -len(line) - 1],
                )
                separator = ","
            yield "]", f"{line if separator else ''}]"
        else:
            yield _dump_compact(value), _dump_indented(value, line)


def _holds_iterator(content: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, Iterator) or (isinstance(value, dict) and _holds_iterator(value))
        for value in content.values()
    )


def _dump_compact(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))


def _dump_indented(content: Any, line: str) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).replace("\n", line)


def check_digest(content: dict[str, Any]) -> bool | None:
    """Remove the digest from parsed JSON. Return whether the rest is unchanged, or None without a digest."""
    if _DIGEST not in content:
        return None
    try:
        digest = content.pop(_DIGEST)
        return bool(digest == hashlib.blake2b(_dump_compact(content).encode(), digest_size=16).hexdigest())
    except RecursionError:
        return False


def make_printable(text: str) -> str:
    """Replace characters that are not printable, such as terminal control sequences."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def replace_controls(line: str) -> str:
    """Replace characters that would control the terminal or the direction of the text after them."""
    return line.translate(_CONTROLS)
