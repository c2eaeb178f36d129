"""A run: its manifest and its results, in memory and in a folder."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from biassay.errors import MissingExtraError, RunFolderError
from biassay.files import write_atomically
from biassay.results.codec import from_json, to_json, to_tsv
from biassay.results.records import FORMAT_VERSION, Manifest, Result
from biassay.stats.multiple import holm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MANIFEST", "RESULTS_JSON", "RESULTS_TSV", "Run", "with_corrections"]

MANIFEST, RESULTS_JSON, RESULTS_TSV = "manifest.json", "results.json", "results.tsv"


@dataclass(frozen=True)
class _ResultsFile:
    format_version: int
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Run:
    """Everything a run found and how it was made."""

    manifest: Manifest
    results: tuple[Result, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """The results as a data frame, one row a test and model, columns as in results.tsv."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_frame()", "frame") from error
        return pd.DataFrame([dataclasses.asdict(result) for result in self.results])

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write manifest.json, results.json and results.tsv, each whole or not at all."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"{folder}: the folder cannot be made: {error.strerror}") from error
        write_atomically(folder / RESULTS_JSON, to_json(_ResultsFile(FORMAT_VERSION, self.results)).encode())
        write_atomically(folder / RESULTS_TSV, to_tsv(self.results).encode())
        write_atomically(folder / MANIFEST, to_json(self.manifest).encode())
        return folder

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Run:
        """Read a run folder back; the result equals what was saved."""
        folder = Path(folder)
        if not (folder / MANIFEST).is_file():
            raise RunFolderError(f"{folder}: no run there ({MANIFEST} is missing)")
        manifest = from_json((folder / MANIFEST).read_text(encoding="utf-8"), Manifest, str(folder / MANIFEST))
        if manifest.format_version != FORMAT_VERSION:
            raise RunFolderError(
                f"{folder}: the run has format version {manifest.format_version}, this biassay reads {FORMAT_VERSION}"
            )
        path = folder / RESULTS_JSON
        if not path.is_file():
            return cls(manifest)
        return cls(manifest, from_json(path.read_text(encoding="utf-8"), _ResultsFile, str(path)).results)


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
