"""Folders of association tests in older formats: parsed content in, the present form out."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.npy import npy_header
from biassay.errors import RunFolderError
from biassay.files import open_file
from biassay.results.arrays import DAMAGE
from biassay.results.storage import Older
from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.description import description_of
from biassay.texts.sentences import digest_of
from biassay.unpacking import UnpackLimit

__all__ = ["upgrade"]

_OF_CONTEXTS = ("n_samples", "mode", "window", "dtype", "min_contexts", "vectors")
_PARTS = {"effect_sizes": "samples", "variances": "variances", "p_values": "sample_p_values"}


def upgrade(folder: Path, manifest: dict[str, Any], results: dict[str, Any]) -> Older:
    """Format 1: settings stood in the manifest and beside the file of contexts, samples in files of their own.

    Associations of words were called leaning.
    """
    own = dict(manifest)
    contexts = own.pop("contexts", None)
    lost = own.pop("words_lost", {})
    settings = {name: own.pop(name) for name in ("protocol", "alternative", "alpha", "max_lost", "seed")}
    tests = own.pop("tests")
    settings["tests"] = list(dict.fromkeys(test["pattern"] for test in tests if test["pattern"]))
    if contexts is not None:
        contexts = dict(contexts)
        settings |= {name: contexts.pop(name, None) for name in _OF_CONTEXTS}
        settings |= {"contexts": contexts["file"], "protocol": "exact", "alternative": "greater"}
    models = [
        {**model, "measured": own["status"] == "complete", "words_lost": lost.get(model["text"], [])}
        for model in own.pop("models")
    ]
    own |= {
        "study": own.pop("kind", "associations"),
        "package": "biassay",
        "models": models,
        "settings": settings,
        "inputs": {"tests": tests, "contexts": contexts},
    }
    rows = [
        row if "about" in row else {**row, **_description(row["test"], row["test_digest"])}
        for row in results["results"]
    ]
    return Older(own, {"results": [_renamed(row) for row in rows]}, _samples(folder))


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    return {"associations" if name == "leaning" else name: value for name, value in row.items()}


@cache
def _description(name: str, digest: str) -> dict[str, str | None]:
    """What a test is about, if the catalogue has one of that name and texts."""
    test = catalogue().tests.get(name)
    return {} if test is None or digest_of(test) != digest else description_of(test)


def _numbers(content: bytes) -> NDArray[np.float64]:
    """Read an array in the one form that format 1 has: numbers in a row."""
    size = (len(content) - len(npy_header((0,), "<f8"))) // 8
    header = npy_header((max(size, 0),), "<f8")
    if not content.startswith(header) or len(content) != len(header) + 8 * size:
        raise ValueError("not an array of numbers")
    return np.frombuffer(content, "<f8", offset=len(header)).copy()


def _samples(folder: Path) -> dict[str, NDArray[np.float64]]:
    arrays = {}
    for path in sorted((folder / "samples").glob("*.npz")):
        try:
            with open_file(path) as file:
                content = file.read()
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                UnpackLimit(path).check(sum(info.file_size for info in archive.infolist()))
                for info in archive.infolist():
                    test, _, part = info.filename.removesuffix(".npy").rpartition("/")
                    arrays[f"{path.stem}/{test}/{_PARTS[part]}"] = _numbers(archive.read(info))
        except DAMAGE as error:
            raise RunFolderError(f"{path}: not a file of samples: {error}") from error
    return arrays
