"""Write and read the array files of a run."""

from __future__ import annotations

import hashlib
import io
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from biassay.cache.files import make_npy_header
from biassay.errors import RunFolderError
from biassay.io import atomic_writer, open_file

__all__ = [
    "ARRAYS_FOLDER",
    "DAMAGE_ERRORS",
    "DAMAGE_HINT",
    "ArrayFile",
    "array_path",
    "load_arrays",
    "pack_arrays",
    "save_arrays",
]

ARRAYS_FOLDER = "arrays"
DAMAGE_HINT = "copy the whole folder of the run again, or make the run again"
"""What helps where a file of a run is missing or damaged."""
_Array = NDArray[np.float64]
_MAX_OVERHEAD = (
    1_024  # bytes per array, beyond its values and twice its name: the header and two entries of the archive
)
_MAX_LENGTH = 2**40  # of an array, along any of its dimensions
_CHUNK_BYTES = 1 << 24  # bytes
# What zipfile raises when an archive was altered, the last two for a method of compression that there is not and for a
# flag that says it is encrypted. All of them become one error that names the file.
DAMAGE_ERRORS = (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class ArrayFile:
    """What results.json says about the arrays of one model.

    Attributes
    ----------
    sha256 : str
        Digest of the file.
    shapes : dict
        The shape of every array, by name.
    """

    sha256: str
    shapes: dict[str, tuple[int, ...]]


def array_path(model_index: str) -> str:
    """Return the path of a model's arrays, relative to the folder of the run."""
    return f"{ARRAYS_FOLDER}/{model_index}.npz"


def save_arrays(folder: Path, model_index: str, arrays: Mapping[str, _Array]) -> ArrayFile:
    """Write the array file of one model and return its description."""
    (folder / ARRAYS_FOLDER).mkdir(exist_ok=True)
    with atomic_writer(folder / array_path(model_index)) as file:
        return pack_arrays(arrays, file)


def pack_arrays(arrays: Mapping[str, _Array], file: BinaryIO | None = None) -> ArrayFile:
    """Write arrays to a file and return its description. Equal arrays give equal bytes.

    Parameters
    ----------
    arrays : mapping
        Arrays by name.
    file : binary file, optional
        If None, nothing is written.
    """
    sink = _DigestWriter(file)
    with zipfile.ZipFile(sink, "w") as archive:
        for name, array in arrays.items():
            dtype = "<f4" if array.dtype == np.float32 else "<f8"
            values = np.ascontiguousarray(array, dtype=dtype)
            header = make_npy_header(values.shape, dtype)
            info = zipfile.ZipInfo(f"{name}.npy")
            info.file_size = len(header) + values.nbytes  # decides before the first byte whether sizes need 64 bits
            with archive.open(info, "w") as member:
                member.write(header)
                for block in _iter_bytes(values):
                    member.write(block)
    return ArrayFile(sink.sha256.hexdigest(), {name: array.shape for name, array in arrays.items()})


class _DigestWriter(io.RawIOBase):
    """Pass bytes on to a file and hash them. It cannot seek, so every byte is written once."""

    def __init__(self, file: BinaryIO | None) -> None:
        self.sha256 = hashlib.sha256()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.sha256.update(content)
        if self._file is not None:
            self._file.write(content)
        return len(content)


def _iter_bytes(values: NDArray[np.floating]) -> Iterator[memoryview]:
    """Yield the bytes of an array, some at a time: zipfile would copy them all."""
    content = memoryview(values.data).cast("B") if values.size else memoryview(b"")
    for start in range(0, len(content), _CHUNK_BYTES):
        yield content[start : start + _CHUNK_BYTES]


def load_arrays(folder: Path, files: Mapping[str, ArrayFile]) -> dict[str, _Array]:
    """Read the arrays of every model, checked against their digests and shapes.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    files : mapping
        Descriptions of the array files, by the index of the model.

    Returns
    -------
    dict
        Arrays by "INDEX/NAME".

    Raises
    ------
    RunFolderError
        If a file is missing, or is not the one that the run wrote.
    """
    arrays: dict[str, _Array] = {}
    for model_index, described in files.items():
        path = folder / array_path(model_index)
        try:
            own = _unpack(_read_checked(path, described), described.shapes)
        except FileNotFoundError as error:
            raise RunFolderError(f"{path}: the file is missing; {DAMAGE_HINT}") from error
        except DAMAGE_ERRORS as error:
            raise RunFolderError(f"{path}: not the arrays of this run: {error}; {DAMAGE_HINT}") from error
        arrays |= {f"{model_index}/{name}": array for name, array in own.items()}
    return arrays


def _read_checked(path: Path, described: ArrayFile) -> bytes:
    """Read a file whose digest is as described. A file larger than arrays of these shapes is not read."""
    if any(not 0 <= length <= _MAX_LENGTH for shape in described.shapes.values() for length in shape):
        raise ValueError("a shape in results.json is negative or too large")
    most = 22 + sum(
        8 * math.prod(shape) + 2 * len(name.encode(errors="surrogatepass")) + _MAX_OVERHEAD
        for name, shape in described.shapes.items()
    )
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ValueError(f"the file has {size:,} bytes, and arrays of these shapes take at most {most:,}")
        content = file.read(size + 1)
    if hashlib.sha256(content).hexdigest() != described.sha256:
        raise ValueError("the digest of the file differs from the one in results.json")
    return content


def _unpack(content: bytes, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, _Array]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(archive.getinfo(f"{name}.npy").file_size for name in shapes) > len(content):
            raise ValueError("its arrays overlap")
        return {name: _read_array(archive, name, shape) for name, shape in shapes.items()}


def _read_array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> _Array:
    """An array of the archive. Memory is taken for the bytes that are there, whatever size they declare."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed; biassay writes it as it is")
    content = archive.read(info)
    for dtype in ("<f8", "<f4"):
        header = make_npy_header(shape, dtype)
        if content.startswith(header) and len(content) == len(header) + int(dtype[2]) * math.prod(shape):
            return np.frombuffer(content, dtype, offset=len(header)).reshape(shape).copy()
    raise ValueError(f"{info.filename} is not an array {shape} in the form that biassay writes")
