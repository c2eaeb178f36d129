"""The samples behind a pooled effect size, kept beside the results: one file a model."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.errors import RunFolderError
from biassay.files import open_file, write_atomically
from biassay.vectors.npy import npy_header

__all__ = ["SAMPLES", "Samples", "load_samples", "save_samples"]

SAMPLES = "samples"
# What zipfile raises when an archive was altered, the last for a method of compression that there is not. All of them
# become one error that names the file.
_DAMAGE = (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError, NotImplementedError)
_PARTS = ("effect_sizes", "variances", "p_values")


@dataclass(frozen=True, eq=False)
class Samples:
    """Effect sizes of a test on samples of contexts, their variances, and the one-sided p-value of each, (n,)."""

    effect_sizes: NDArray[np.float64]
    variances: NDArray[np.float64]
    p_values: NDArray[np.float64]


def save_samples(folder: Path, samples: Mapping[tuple[int, str], Samples]) -> None:
    """Write samples/MODEL.npz for every model that has samples and no file yet."""
    for place in sorted({place for place, _ in samples}):
        path = folder / SAMPLES / f"{place}.npz"
        if path.exists():
            continue
        path.parent.mkdir(exist_ok=True)
        arrays = {
            f"{test}/{part}": getattr(kept, part)
            for (of, test), kept in samples.items()
            if of == place
            for part in _PARTS
        }
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        write_atomically(path, buffer.getvalue())


def load_samples(folder: Path) -> dict[tuple[int, str], Samples]:
    """All samples of a run folder."""
    found = {}
    for path in sorted((folder / SAMPLES).glob("*.npz")):
        try:
            with open_file(path) as file, zipfile.ZipFile(file) as archive:
                arrays = {info.filename.removesuffix(".npy"): _array(archive, info) for info in archive.infolist()}
            for test in dict.fromkeys(name.rpartition("/")[0] for name in arrays):
                parts = [arrays[f"{test}/{part}"] for part in _PARTS]
                if len({part.shape for part in parts}) > 1:
                    raise ValueError(f"the arrays of {test} have different shapes")
                found[int(path.stem), test] = Samples(*parts)
        except _DAMAGE as error:
            raise RunFolderError(f"{path}: not a file of samples: {error}") from error
    return found


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[np.float64]:
    """An array of the archive. Memory is taken for the bytes that are there, whatever size they declare."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed; biassay writes it as it is")
    content = archive.read(info)
    length, rest = divmod(len(content) - len(npy_header((0,), "<f8")), np.float64().itemsize)
    header = npy_header((max(length, 0),), "<f8")
    if rest or not content.startswith(header):
        raise ValueError(f"{info.filename} is not {max(length, 0):,} numbers in the form that biassay writes")
    return np.frombuffer(content, np.float64, offset=len(header)).copy()
