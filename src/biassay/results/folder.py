"""The folder of a run that is written when all is done: how it was made, what was found, and the table of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from biassay.errors import RunFolderError
from biassay.files import write_atomically
from biassay.results.codec import from_json, to_file, tsv_lines
from biassay.results.records import FORMAT_VERSION, Provenance
from biassay.results.run import MANIFEST, RESULTS_JSON, RESULTS_TSV, make_folder, to_frame_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "frame_of_table", "load_folder", "save_folder"]

Table = list[list[Any]]
"""Rows of cells, the first of them the names of the columns."""
_Manifest = TypeVar("_Manifest", bound=Provenance)
_Results = TypeVar("_Results")


def save_folder(folder: str | os.PathLike[str], manifest: Provenance, results: object, table: Table) -> Path:
    """Write manifest.json, results.json and results.tsv, each whole or not at all; another run is not overwritten."""
    folder = Path(folder)
    if (folder / MANIFEST).exists():
        raise RunFolderError(f"{folder} holds another run; choose another folder")
    make_folder(folder)
    write_atomically(folder / RESULTS_JSON, to_file(results))
    write_atomically(folder / RESULTS_TSV, tsv_lines(table).encode())
    write_atomically(folder / MANIFEST, to_file(manifest))  # last: it says that all is there
    return folder


def load_folder(
    folder: str | os.PathLike[str],
    manifest: type[_Manifest],
    results: type[_Results],
    kind: str,
    older: Callable[[_Manifest, Any], None],
) -> tuple[_Manifest, _Results]:
    """Read back what was saved; a run of another kind is an error that names it.

    ``older`` brings the parsed results of an older biassay up to date.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise RunFolderError(f"{folder}: no run there ({MANIFEST} is missing)")
    made = from_json(folder / MANIFEST, manifest, FORMAT_VERSION, kind)
    return made, from_json(folder / RESULTS_JSON, results, FORMAT_VERSION, older=partial(older, made))


def frame_of_table(table: Table) -> pd.DataFrame:
    """A data frame with the columns of the table."""
    header, *rows = table
    return to_frame_of({name: [row[i] for row in rows] for i, name in enumerate(header)})
