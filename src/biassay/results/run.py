"""A run: its manifest and its results, in memory and in a folder."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from biassay.errors import MissingExtraError, RunFolderError
from biassay.files import write_atomically
from biassay.results.codec import cells, columns, from_json, to_file, to_json, to_tsv
from biassay.results.older import update_associations
from biassay.results.records import FORMAT_VERSION, Manifest, Result
from biassay.results.samples import Samples, load_samples, save_samples
from biassay.stats.multiple import holm

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MANIFEST",
    "RESULTS_JSON",
    "RESULTS_TSV",
    "Run",
    "make_folder",
    "read_manifest",
    "to_frame_of",
    "with_corrections",
]

MANIFEST, RESULTS_JSON, RESULTS_TSV = "manifest.json", "results.json", "results.tsv"


@dataclass(frozen=True)
class _ResultsFile:
    format_version: int
    results: tuple[Result, ...]


@dataclass(frozen=True, repr=False)
class Run:
    """Everything a run found and how it was made.

    ``samples`` holds what tests over contexts were pooled from, by the place of the model in the manifest and the name
    of the test.
    """

    manifest: Manifest
    results: tuple[Result, ...] = field(default=())
    samples: Mapping[tuple[int, str], Samples] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        models = ", ".join(record.text for record in self.manifest.models)
        return (
            f"Run({len(self.results)} results of {models}; protocol {self.manifest.protocol}, {self.manifest.status})"
        )

    def to_frame(self) -> pd.DataFrame:
        """The results as a data frame, one row a test and model, columns as in results.tsv.

        What was not computed is ``pandas.NA``, which NaN is not.
        """
        names = columns(self.results)
        rows = [cells(result, names) for result in self.results]
        return to_frame_of({name: [row[place] for row in rows] for place, name in enumerate(names)})

    def to_json(self) -> str:
        """Manifest and results as JSON."""
        return to_json({"manifest": self.manifest, "results": self.results})

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write manifest.json, results.json and results.tsv, each whole or not at all.

        Another run in the folder is an error; an earlier state of the same run is brought up to date.
        """
        folder = Path(folder)
        if (folder / MANIFEST).exists() and read_manifest(folder).run_id != self.manifest.run_id:
            raise RunFolderError(f"{folder} holds another run; choose another folder")
        make_folder(folder)
        contents = {
            RESULTS_JSON: to_file(_ResultsFile(FORMAT_VERSION, self.results)),
            RESULTS_TSV: to_tsv(self.results).encode(),
            MANIFEST: to_file(self.manifest),
        }
        save_samples(folder, self.samples)
        # A manifest that says "complete" is written last; one that says "running" first, so that a run can be resumed.
        names = list(contents) if self.manifest.status == "complete" else [MANIFEST, RESULTS_JSON, RESULTS_TSV]
        for name in names:
            write_atomically(folder / name, contents[name])
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Run:
        """Read a run folder back; the result equals what was saved."""
        folder = Path(folder)
        manifest = read_manifest(folder)
        if manifest.status == "running" and not (folder / RESULTS_JSON).exists():
            return cls(manifest)
        results = from_json(folder / RESULTS_JSON, _ResultsFile, FORMAT_VERSION, older=update_associations).results
        return cls(manifest, results, load_samples(folder))


def read_manifest(folder: Path) -> Manifest:
    """How the run in a folder was made, without its results."""
    if not (folder / MANIFEST).is_file():
        raise RunFolderError(f"{folder}: no run there ({MANIFEST} is missing)")
    return from_json(folder / MANIFEST, Manifest, FORMAT_VERSION, "associations")


def make_folder(folder: Path) -> None:
    """The folder of a run, or an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder}: the folder cannot be made: {error.strerror}") from error


def to_frame_of(content: Mapping[str, list[Any]]) -> pd.DataFrame:
    """A data frame from its columns; what was not computed is ``pandas.NA``, which NaN is not."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_frame()", "frame") from error
    return pd.DataFrame({name: _column(pd, values) for name, values in content.items()})


def _column(pd: ModuleType, values: list[Any]) -> Any:
    """Numbers and truth values with a mask for those that are missing; anything else as it is."""
    missing = np.array([value is None for value in values], dtype=bool)
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, float) for value in present):
        return pd.arrays.FloatingArray(np.array([0.0 if v is None else v for v in values], dtype=float), missing)
    if present and all(isinstance(value, bool) for value in present):
        return pd.arrays.BooleanArray(np.array([bool(v) for v in values], dtype=bool), missing)
    return values


def with_corrections(results: tuple[Result, ...], alpha: float) -> tuple[Result, ...]:
    """Fill in what depends on the whole table: significance before and after Holm's correction over all its rows."""
    over_texts = holm([_or_nan(r.p_value) for r in results], alpha)
    over_words = holm([_or_nan(r.p_value_by_word) for r in results], alpha)
    return tuple(
        dataclasses.replace(
            result,
            p_value_holm=_given(over_texts.adjusted[i]),
            significant=None if result.p_value is None else result.p_value <= alpha,
            significant_holm=None if result.p_value is None else bool(over_texts.rejected[i]),
            p_value_by_word_holm=_given(over_words.adjusted[i]),
            significant_by_word=None if result.p_value_by_word is None else result.p_value_by_word <= alpha,
            significant_by_word_holm=None if result.p_value_by_word is None else bool(over_words.rejected[i]),
        )
        for i, result in enumerate(results)
    )


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _given(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
