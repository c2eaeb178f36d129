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
from biassay.files import write_atomically

__all__ = ["SAMPLES", "Samples", "load_samples", "save_samples"]

SAMPLES = "samples"
# What np.load and zipfile raise when single bytes of an archive are altered (a test alters each of them), the last for
# a method of compression that there is not. All of them become one error that names the file.
_DAMAGE = (ValueError, KeyError, OSError, EOFError, TypeError, NotImplementedError)
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
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                for test in dict.fromkeys(name.rpartition("/")[0] for name in archive.files):
                    arrays = [archive[f"{test}/{part}"] for part in _PARTS]
                    if arrays[0].ndim != 1 or len({array.shape for array in arrays}) > 1:
                        raise ValueError(f"the arrays of {test} have different shapes")
                    found[int(path.stem), test] = Samples(*arrays)
        except (*_DAMAGE, zipfile.BadZipFile) as error:
            raise RunFolderError(f"{path}: not a file of samples: {error}") from error
    return found
