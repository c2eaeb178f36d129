"""A run as its user holds it: every method hands over to the study, the folder or the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import UsageError
from biassay.pages.formats import counted
from biassay.results.codec import to_json
from biassay.results.data import RunData
from biassay.results.frames import to_frame_of
from biassay.results.labels import ModelKey, model_key, model_labels, record_labels
from biassay.results.storage import as_json, write_run
from biassay.runs.listener import PathLike
from biassay.runs.loading import load_data
from biassay.runs.table import Table
from biassay.studies.registry import study_named
from biassay.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from biassay.pages.charts.drawing import Figure
    from biassay.results.comparison import Comparison
    from biassay.results.findings import Finding

__all__ = ["Run", "load"]


class Run(RunData):
    """Everything a run measured and how it was made, whatever was measured."""

    @classmethod
    def of(cls, data: RunData) -> Run:
        return cls(data.manifest, data.tables, data.arrays)

    @classmethod
    def load(cls, folder: PathLike) -> Run:
        """Read a run folder back; the result equals what was saved."""
        return cls.of(load_data(folder))

    @property
    def study(self) -> Study:
        return study_named(self.manifest.study)

    @property
    def results(self) -> tuple[Any, ...]:
        """The rows of the main table."""
        return tuple(self.study.types.tables[0].rows_of(self))

    def __repr__(self) -> str:
        models = ", ".join(record_labels(self))
        return f"Run({self.manifest.study} of {models}; {counted(len(self.results), 'row')}, {self.manifest.status})"

    def __getitem__(self, item: str) -> Run:
        """The run of one part only: a model, a test, a group, a measure. Corrections stay those over the whole run."""
        if not isinstance(item, str):
            raise UsageError(f"a part of a run is named by a text, such as run['weat6']; got {item!r}")
        keys = {key for key, label in model_labels(self).items() if item in (label, key[0])}
        is_model = keys or item in {record.name for record in self.manifest.models}
        part = self._of_models(keys) if is_model else self.study.only(self, item)
        manifest = dataclasses.replace(part.manifest, run_id=f"{self.manifest.run_id}/{item}")  # no state of the run
        return Run(manifest, part.tables, part.arrays)

    def _of_models(self, keys: Collection[ModelKey]) -> RunData:
        tables = {name: tuple(row for row in rows if model_key(row) in keys) for name, rows in self.tables.items()}
        return dataclasses.replace(self, tables=tables)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def table(self, name: str | None = None) -> Table:
        """A table of the run, the main one by default; it shows itself in a terminal and in a notebook."""
        return Table.of(self, self.study.types, name)

    def findings(self) -> Sequence[Finding]:
        """What the run shows, as records."""
        return self.study.findings(self)

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """A table as a data frame. What was not computed is ``pandas.NA``, which NaN is not."""
        return to_frame_of(self.table(name).content)

    def to_json(self) -> str:
        """Manifest, tables and findings as JSON."""
        return to_json({**as_json(self, self.study.types), "findings": self.findings()})

    def save(self, folder: PathLike) -> Path:
        """Write the run to a folder; an earlier state of the same run is brought up to date."""
        write_run(Path(folder), self, self.study.types)
        return Path(folder)

    def report(self, out: PathLike) -> Path:
        """Write the page of the run."""
        from biassay.runs.reporting import report

        return report(self, out)

    def compare(self, other: RunData | PathLike | None = None, *, baseline: str | None = None) -> Comparison:
        """Compare the models of this run, or of this and another one."""
        from biassay.runs.reporting import compare

        return compare(*(self,) if other is None else (self, other), baseline=baseline)

    def figures(self) -> dict[str, Figure]:
        """Its figures by name: each shows itself in a notebook, and can be saved or made a chart of Altair."""
        from biassay.runs.showing import figures_of

        return figures_of(self)

    def _repr_html_(self) -> str:
        from biassay.pages.notebook import run_html

        return run_html(self, self.findings())


def load(folder: PathLike) -> Run:
    """Read a run folder, whatever it measured and whichever version of biassay wrote it.

    Parameters
    ----------
    folder : path

    Returns
    -------
    Run

    Examples
    --------
    >>> import biassay
    >>> _ = biassay.run("glove", "weat6", out="kept-run")
    >>> round(biassay.load("kept-run").results[0].effect_size, 2)
    1.72
    """
    return Run.load(folder)
