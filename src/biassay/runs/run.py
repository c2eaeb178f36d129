"""`Run`, the results of a study, and its tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import UnknownNameError, UsageError
from biassay.reporting.formats import format_count, format_value
from biassay.results.run_data import ModelKey, RunData, model_key, model_labels, record_labels
from biassay.results.run_folder import StudySchema, to_json, to_json_data, write_run
from biassay.results.tables import Column, format_tsv, render_html_table, to_data_frame
from biassay.runs.folders import load_run_data
from biassay.runs.progress import PathLike
from biassay.studies.registry import get_study
from biassay.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from biassay.reporting.charts.base import Figure
    from biassay.results.comparison import Comparison
    from biassay.results.outcomes import Finding


_MAX_ROWS_SHOWN = 60


@dataclass(frozen=True, repr=False)
class ResultTable:
    """A table of a run.

    Attributes
    ----------
    title : str
    columns : tuple of Column
    rows : sequence of records
    shown : tuple of str
        Names of the columns shown by default; empty for all.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    shown: tuple[str, ...] = ()

    @classmethod
    def from_run(cls, run: RunData, schema: StudySchema, name: str | None = None) -> ResultTable:
        """Return a table of a run.

        Parameters
        ----------
        run : RunData
            The run.
        schema : StudySchema
            Tables of its study.
        name : str, optional
            Name of the table; by default the main one.
        """
        known = {spec.name: spec for spec in schema.tables}
        if name is not None and name not in known:
            raise UnknownNameError("table", name, known, f"(tables of this run: {', '.join(known)})")
        spec = schema.tables[0] if name is None else known[name]
        return cls(spec.title, spec.get_columns(run), spec.get_rows(run), spec.default_columns)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns_by_name(self) -> dict[str, list[Any]]:
        """Values by column name."""
        return {column.name: [column.value(row) for row in self.rows] for column in self.columns}

    def to_tsv(self) -> str:
        """Return the table as tab-separated values."""
        return format_tsv(self.columns, self.rows)

    def __repr__(self) -> str:
        lines = [[column.name for column in self._default_columns], *self._cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self.rows) - _MAX_ROWS_SHOWN:,} more rows</p>" if len(self.rows) > _MAX_ROWS_SHOWN else ""
        return (
            render_html_table(self.title, {column.label: column.help for column in self._default_columns}, self._cells)
            + more
        )

    @property
    def _default_columns(self) -> list[Column]:
        """Columns shown by default."""
        return [column for column in self.columns if not self.shown or column.name in self.shown]

    @property
    def _cells(self) -> list[list[str]]:
        """Formatted cells of the first rows."""
        return [
            [format_value(c.format, c.value(row)) for c in self._default_columns] for row in self.rows[:_MAX_ROWS_SHOWN]
        ]


class Run(RunData):
    """Results of any study, and how they were made."""

    @classmethod
    def from_data(cls, data: RunData) -> Run:
        """Make a run from its data."""
        return cls(data.manifest, data.tables, data.arrays)

    @classmethod
    def load(cls, folder: PathLike) -> Run:
        """Read a run folder."""
        return cls.from_data(load_run_data(folder))

    @property
    def study(self) -> Study:
        """Study that measured the run."""
        return get_study(self.manifest.study)

    @property
    def results(self) -> tuple[Any, ...]:
        """Rows of the main table."""
        return tuple(self.study.schema.tables[0].get_rows(self))

    def __repr__(self) -> str:
        models = ", ".join(record_labels(self))
        return (
            f"Run({self.manifest.study} of {models}; {format_count(len(self.results), 'row')}, {self.manifest.status})"
        )

    def __getitem__(self, item: str) -> Run:
        """Return one part of the run: a model, test, group or measure. Corrections are those of the whole run."""
        if not isinstance(item, str):
            raise UsageError(f"select a part of a run by its name, such as run['weat6']; got {item!r}")
        keys = {key for key, label in model_labels(self).items() if item in (label, key[0])}
        is_model = keys or item in {record.name for record in self.manifest.models}
        part = self._select_models(keys) if is_model else self.study.select_item(self, item)
        manifest = dataclasses.replace(part.manifest, run_id=f"{self.manifest.run_id}/{item}")  # not a state of the run
        return Run(manifest, part.tables, part.arrays)

    def _select_models(self, keys: Collection[ModelKey]) -> RunData:
        tables = {name: tuple(row for row in rows if model_key(row) in keys) for name, rows in self.tables.items()}
        return dataclasses.replace(self, tables=tables)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def table(self, name: str | None = None) -> ResultTable:
        """Return a table of the run by name, by default the main one. It displays itself in notebooks."""
        return ResultTable.from_run(self, self.study.schema, name)

    def findings(self) -> Sequence[Finding]:
        """Return the findings of the run."""
        return self.study.findings(self)

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """Return a table as a data frame. Values that were not computed are ``pandas.NA``, not NaN."""
        return to_data_frame(self.table(name).columns_by_name)

    def to_json(self) -> str:
        """Return manifest, tables and findings as JSON."""
        return to_json({**to_json_data(self, self.study.schema), "findings": self.findings()})

    def save(self, folder: PathLike) -> Path:
        """Write the run to a folder, or update an earlier state of the same run."""
        write_run(Path(folder), self, self.study.schema)
        return Path(folder)

    def report(self, out: PathLike) -> Path:
        """Write the HTML report of the run."""
        from biassay.runs.compare import report

        return report(self, out)

    def compare(self, other: RunData | PathLike | None = None, *, baseline: str | None = None) -> Comparison:
        """Compare the models of this run, or of this and another run."""
        from biassay.runs.compare import compare

        return compare(*(self,) if other is None else (self, other), baseline=baseline)

    def figures(self) -> dict[str, Figure]:
        """Return the figures by name. They display themselves in notebooks and convert to Altair charts."""
        from biassay.runs.reports import make_figures

        return make_figures(self)

    def _repr_html_(self) -> str:
        from biassay.reporting.html import render_run

        return render_run(self, self.findings())


def load(folder: PathLike) -> Run:
    """Read a run folder of any study.

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
