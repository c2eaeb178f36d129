"""Files: where they are kept, how to identify their content, how to write them atomically and read them safely."""

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

__all__ = [
    "check_digest",
    "complete_folder",
    "content_digest",
    "default_cache",
    "discard",
    "harmless_cell",
    "json_pieces",
    "json_with_digest",
    "open_file",
    "printable",
    "read_json",
    "read_text",
    "write_atomically",
    "write_pieces",
    "written_whole",
]

_DIGEST = "digest"
_TOGETHER = 1_000  # of a list, in one piece
_STALE_SECONDS = 24 * 3600
_RECENT = 2.0  # seconds: within the ticks of a file system's clock a file may change and keep its date
# Also behind quotes, which a spreadsheet takes off, and behind the apostrophe that is put before such a text here.
_FORMULA = re.compile(r"""["']*[=+\-@\t\r\n＝＋－＠]""")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def default_cache() -> Path:
    """Where vectors and converted models are kept: $BIASSAY_CACHE, or the user's cache folder."""
    import platformdirs

    given = os.environ.get("BIASSAY_CACHE")
    if given and "://" in given:
        raise UsageError(
            f"$BIASSAY_CACHE must be a folder on this machine, got {redact_url(given)!r}; give a URL as --cache"
        )
    return Path(given or platformdirs.user_cache_path("biassay"))


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    The digest is cached for the file's path, device, inode, size and times, so that the second time is quick. The time
    of the last change of the inode is among them: a program can restore the modification time, but not that one.
    """
    status, place = path.stat(), str(path.resolve())
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    state = f"{place} {status.st_dev} {status.st_ino} {status.st_size} {times}"
    kept = default_cache() / "digests" / hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:32]
    with suppress(OSError, ValueError):
        known, _, _ = (text := kept.read_text(encoding="ascii")).partition(" ")
        if text == _vouched(known, state):
            return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time() - max(status.st_mtime, status.st_ctime) > _RECENT:
        with suppress(OSError):  # a cache that cannot be written only costs time
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, _vouched(digest, state).encode())
    return digest


def _vouched(digest: str, state: str) -> str:
    """A digest and what ties it to the state of its file: of another state, or damaged, it is not believed."""
    return f"{digest} {hashlib.sha256(f'{state} {digest}'.encode(errors='surrogateescape')).hexdigest()}"


def harmless_cell(text: str) -> str:
    """A text for a table, with an apostrophe before what a spreadsheet would run; a number stays as it is.

    Nothing is lost: a cell that is an apostrophe and then something to run was written without that apostrophe.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write a file that is either complete or not there, whatever happens in between.

    Parameters
    ----------
    path : Path
    content : bytes
    durable : bool
        If True, the file also survives a power failure, which takes until the disk has it.
    """
    with written_whole(path, durable=durable) as file:
        file.write(content)


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """The same of a text that is made piece by piece."""
    with written_whole(path) as file:
        file.writelines(map(str.encode, pieces))


@contextmanager
def written_whole(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file to write in any way: it appears under its name when the block ends, and not if it fails."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the temporary name says nothing to anyone
    finally:
        temporary.unlink(missing_ok=True)


def discard(path: Path) -> bool:
    """Remove a damaged file of the cache, or whatever is in its place; return whether it is gone."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


@contextmanager
def complete_folder(folder: Path) -> Iterator[Path]:
    """Fill a new folder under a temporary name, and rename it when the block ends without an error.

    A process that is killed leaves only the temporary folder, which the next attempt removes after a day.
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
    """Open a file to read. A pipe or a device, which may never end or never begin, is an OSError."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115  (closed by the caller)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file but a pipe or a device", str(path))
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_text(path: Path) -> str:
    """The text of a file that a user wrote, without the mark that some editors begin it with."""
    try:
        with open_file(path) as file:
            return file.read().decode("utf-8-sig")
    except OSError as error:
        raise StimulusError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StimulusError(f"{path}: not UTF-8 text (byte {error.start})") from error


def read_json(path: Path) -> Any:
    """The content of a JSON file; whatever is wrong with it, the error names the file."""
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
        raise RunFolderError(f"{path}: not valid JSON: a number of thousands of digits") from error
    except RecursionError as error:
        raise RunFolderError(f"{path}: not valid JSON: too many brackets inside each other") from error


def json_with_digest(content: Mapping[str, Any]) -> str:
    """JSON with a digest of itself, so that a later change is noticed."""
    return "".join(json_pieces(content))


def json_pieces(content: Mapping[str, Any]) -> Iterator[str]:
    """The same piece by piece; an iterator that is a value of it, or of a dict in it, is used up and becomes a list."""
    digest = hashlib.blake2b(b"{", digest_size=16)
    yield "{"
    for compact, lines in _members(content, "\n "):
        digest.update(compact.encode())
        yield lines
    digest.update(b"}")
    yield f'{"," if content else ""}\n "{_DIGEST}": "{digest.hexdigest()}"\n}}\n'


def _members(content: Mapping[str, Any], line: str) -> Iterator[tuple[str, str]]:
    """What stands between the braces: as the digest is taken of it, and as it is written, each on a new ``line``."""
    comma = ""
    for name, value in content.items():
        yield f"{comma}{_compact(str(name))}:", f"{comma}{line}{_in_lines(str(name), line)}: "
        comma = ","
        if isinstance(value, dict) and _holds_iterator(value):
            yield "{", "{"
            yield from _members(value, f"{line} ")
            yield "}", f"{line}}}"
        elif isinstance(value, Iterator):
            yield "[", "["
            begun = ""
            while some := list(islice(value, _TOGETHER)):
                yield begun + _compact(some)[1:-1], begun + _in_lines(some, line)[1 : -len(line) - 1]
                begun = ","
            yield "]", f"{line if begun else ''}]"
        else:
            yield _compact(value), _in_lines(value, line)


def _holds_iterator(content: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, Iterator) or (isinstance(value, dict) and _holds_iterator(value))
        for value in content.values()
    )


def _compact(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))


def _in_lines(content: Any, line: str) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).replace("\n", line)


def check_digest(content: dict[str, Any]) -> bool | None:
    """Take the digest out of parsed JSON: is the rest what was written? None where there is no digest."""
    if _DIGEST not in content:
        return None
    try:
        return bool(content.pop(_DIGEST) == _digest(content))
    except RecursionError:
        return False


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.blake2b(_compact(content).encode(), digest_size=16).hexdigest()


def printable(text: str) -> str:
    """A text as it may be shown: what steers a terminal is not sent to it."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
