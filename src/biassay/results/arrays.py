"""Arrays of a run, kept beside its tables: one file a model."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.answers.npy import npy_header
from biassay.errors import RunFolderError
from biassay.files import open_file, written_whole

__all__ = ["ARRAYS", "DAMAGE", "IF_DAMAGED", "load_arrays", "save_arrays"]

ARRAYS = "arrays"
IF_DAMAGED = "copy the whole folder of the run again, or make the run again"
"""What helps where a file of a run is missing or damaged."""
_Array = NDArray[np.float64]
_PIECE = 1 << 24  # bytes
# What zipfile raises when an archive was altered, the last two for a method of compression that there is not and for a
# flag that says it is encrypted. All of them become one error that names the file.
DAMAGE = (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError, NotImplementedError, RuntimeError)


def save_arrays(folder: Path, place: int, arrays: Mapping[str, _Array]) -> None:
    """Write arrays/PLACE.npz, unless there is nothing to write."""
    path = folder / ARRAYS / f"{place}.npz"
    if not arrays:
        return
    path.parent.mkdir(exist_ok=True)
    with written_whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            dtype = "<f4" if array.dtype == np.float32 else "<f8"
            values = np.ascontiguousarray(array, dtype=dtype)
            header = npy_header(values.shape, dtype)
            info = zipfile.ZipInfo(f"{name}.npy")
            info.file_size = len(header) + values.nbytes  # decides before the first byte whether sizes need 64 bits
            with archive.open(info, "w") as member:
                member.write(header)
                for block in _pieces(values):
                    member.write(block)


def _pieces(values: NDArray[np.floating]) -> Iterator[memoryview]:
    """Yield the bytes of an array, some at a time: zipfile would copy them all."""
    content = memoryview(values.data).cast("B") if values.size else memoryview(b"")
    for start in range(0, len(content), _PIECE):
        yield content[start : start + _PIECE]


def load_arrays(folder: Path, shapes: Mapping[str, Sequence[int]]) -> dict[str, _Array]:
    """The arrays that a run says it has, by "PLACE/NAME" and with their shapes."""
    arrays: dict[str, _Array] = {}
    for place in dict.fromkeys(name.partition("/")[0] for name in shapes):
        path = folder / ARRAYS / f"{place}.npz"
        own = {name.partition("/")[2]: tuple(shape) for name, shape in shapes.items() if name.startswith(f"{place}/")}
        try:
            with open_file(path) as file, zipfile.ZipFile(file) as archive:
                arrays |= {f"{place}/{name}": _array(archive, name, shape) for name, shape in own.items()}
        except FileNotFoundError as error:
            raise RunFolderError(f"{path}: the file is missing; {IF_DAMAGED}") from error
        except DAMAGE as error:
            raise RunFolderError(f"{path}: not the arrays of this run: {error}; {IF_DAMAGED}") from error
    return arrays


def _array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> _Array:
    """An array of the archive. Memory is taken for the bytes that are there, whatever size they declare."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed; biassay writes it as it is")
    content = archive.read(info)
    for dtype in ("<f8", "<f4"):
        header = npy_header(shape, dtype)
        if content.startswith(header) and len(content) == len(header) + int(dtype[2]) * math.prod(shape):
            return np.frombuffer(content, dtype, offset=len(header)).reshape(shape).copy()
    raise ValueError(f"{info.filename} is not an array {shape} in the form that biassay writes")
