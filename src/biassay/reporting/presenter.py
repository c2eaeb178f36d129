"""Define the interface of reports, and the default report of a study."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from biassay.errors import UsageError
from biassay.reporting.comparison import (
    make_differences_report,
    methods_of_differences,
    paper_differences,
)
from biassay.reporting.document import Heading, Report, Section, Table, make_table, paper_table, read_default_columns
from biassay.reporting.findings import format_title, make_statements
from biassay.reporting.formats import format_count, format_value, unit_name
from biassay.reporting.methods import (
    CitationUse,
    MethodsSentence,
    cite_tests,
    get_version,
    make_default_methods,
    make_methods_section,
)
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, make_card
from biassay.reporting.terminal import MAX_ROWS
from biassay.results.comparison import Comparison, SeriesPoint, Verdict, find_setting_differences
from biassay.results.outcomes import DECISIONS, Finding, ResultRecord
from biassay.results.paired_comparison import PairedItem, compare_paired_items, judge_pairs, pair_outcomes
from biassay.results.run_data import RunData, RunGroup, group_each, model_labels, record_labels, select_tests_of_run
from biassay.results.tables import Column, TableSpec, format_tsv

if TYPE_CHECKING:
    from biassay.reporting.charts.base import Drawing

# ruff: noqa: ARG002  (hooks get arguments for the studies that override them)


class Presenter:
    """Builder of the reports of one study.

    Attributes
    ----------
    joins_runs : bool
        If True, several runs are shown as one, before those of studies that show each by itself.
    """

    joins_runs: ClassVar[bool] = False

    def __init__(
        self, title: str, tables: Sequence[TableSpec], findings: Callable[[RunData], Sequence[Finding]]
    ) -> None:
        self._title, self._tables, self._findings = title, tables, findings

    def only(self, run: RunData, patterns: Sequence[str]) -> RunData:
        """Select the tests of a run by names or patterns, if it has tests."""
        return select_tests_of_run(run, patterns) if patterns and hasattr(run.manifest.inputs, "tests") else run

    def gather(self, runs: Mapping[str, RunData], *, mixed: bool) -> list[RunGroup]:
        """Group runs for reports."""
        return list(group_each(runs))

    def anchor(self, gathered: RunGroup) -> str:
        """Return the name of the part in anchors."""
        return gathered.run.manifest.study

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report of a group of runs; `options` are those of the study's command."""
        raise NotImplementedError

    def tables(self, gathered: RunGroup) -> Iterable[tuple[str, Table]]:
        """Yield tables for a paper, by name."""
        return ()

    def files(self, gathered: Sequence[RunGroup]) -> Iterable[tuple[str, str, str]]:
        """Yield other files for a paper: name, ending and content."""
        return ()

    def figures(self, gathered: RunGroup) -> Iterable[Drawing]:
        """Yield figures for a paper."""
        return ()

    def sources(self, runs: Sequence[RunData]) -> Iterable[CitationUse]:
        """Yield the sources of the stimuli; by default, of the tests."""
        return cite_tests([run for run in runs if hasattr(run.manifest.inputs, "tests")])

    def methods(self, run: RunData) -> Iterable[CitationUse]:
        """Yield the sources of the methods."""
        return ()

    def methods_paragraph(self, run: RunData) -> Iterable[MethodsSentence]:
        """Yield the methods paragraph of a paper; by default from the manifest."""
        return make_default_methods(run, [*self.sources([run]), *self.methods(run)])

    def labels(self, run: RunData) -> Sequence[str]:
        """List the models that can have a model card."""
        return ()

    def card(self, run: RunData, label: str) -> ModelCard:
        """Make the model card of a label."""
        raise UsageError("this study has no model cards")

    def card_name(self, label: str) -> str:
        """Return the name of the file of a model card."""
        return label

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare all models with the baseline.

        Parameters
        ----------
        runs : dict of str to RunData
            Runs of this study by name.
        baseline : str or None
            Label of the baseline. If None, the first model.
        mixed : bool
            If True, compare runs with different settings; otherwise raise an error that lists the differences.

        Returns
        -------
        Comparison
        """
        raise UsageError(f"{', '.join(runs)}: runs of this kind cannot be compared; `biassay report` shows them")

    def compare_series(self, runs: Mapping[str, RunData], *, mixed: bool) -> Comparison:
        """Compare both ends of the trend over checkpoints, the models of all runs in order."""
        raise UsageError(f"{', '.join(runs)}: only association tests (`biassay run`) have series")

    def series_points(self, comparison: Comparison, alpha: float) -> tuple[SeriesPoint, ...]:
        """Measure every checkpoint of a series with verdicts, at a level shared by all points."""
        return ()

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        """Judge, test by test, whether models are more biased than the baseline.

        Parameters
        ----------
        comparison : Comparison
            Comparison made by `compare`.
        margin : float or None
            Smallest growth of an effect that matters, in its units. If None, the default of the study.
        alpha : float
            Level of the tests, shared by all tests of a model.

        Returns
        -------
        tuple of Verdict
            Empty if the study does not define verdicts.
        """
        return ()

    def comparison_report(self, comparison: Comparison) -> Report:
        """Build the report of a comparison."""
        raise UsageError(f"runs of the study {comparison.study} cannot be compared")

    def comparison_methods(self, comparison: Comparison) -> Iterable[MethodsSentence]:
        """Yield the methods sentences of a comparison."""
        return ()

    def comparison_tables(self, comparison: Comparison) -> Iterable[tuple[str, Table]]:
        """Yield tables of a comparison for a paper, by name."""
        return ()

    def comparison_figures(self, comparison: Comparison) -> Iterable[Drawing]:
        """Yield figures of a comparison for a paper."""
        return ()


_LONGEST = 80


def make_record_table(spec: TableSpec, run: RunData, title: str = "", most: int | None = None) -> Table:
    """Make the table of a report: the main columns in which a value was computed. Descriptive results have no p-value.

    Parameters
    ----------
    spec : TableSpec
    run : RunData
    title : str
    most : int, optional
        Largest number of rows.
    """
    columns, rows = read_default_columns(spec, run)
    tested = [row for row in rows if getattr(row, "evidence", "") != "descriptive"]
    if len(tested) < len(rows):
        columns = [_hide_descriptive_p_value(column) if column.format == "p" else column for column in columns]
    return make_table(title, columns if tested else [column for column in columns if column.format != "p"], rows, most)


def _hide_descriptive_p_value(column: Column) -> Column:
    def get_tested(row: Any) -> Any:
        return None if getattr(row, "evidence", "") == "descriptive" else column.value(row)

    return dataclasses.replace(column, get=get_tested)


def _describe_settings(run: RunData) -> dict[str, str]:
    """Describe the settings and inputs of a run by name."""
    values = _read_fields(run.manifest.settings) | _read_fields(run.manifest.inputs)
    return {name: _short(value) for name, value in values.items()}


def _read_fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _short(value: Any) -> str:
    """Format a setting; records by their names."""
    if isinstance(value, tuple):
        value = ", ".join(str(getattr(item, "name", item)) for item in value) or "none"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_MEANING = "Findings hold for these items and prompts only. Inconclusive does not mean unbiased."


class DefaultPresenter(Presenter):
    """Presenter that shows findings and tables.

    Models are compared by their outcomes, if the records of the first table are `ResultRecord`.
    """

    def report(self, gathered: RunGroup, **_: Any) -> Report:
        """Build the report from findings and tables."""
        run = gathered.run
        findings = self._findings(run)
        specs = [spec for spec in self._tables if spec is self._tables[0] or (spec.on_page and spec.get_rows(run))]
        specs = [spec for spec in specs if spec.name != DECISIONS.name]  # part of the results
        results = _list_table_blocks([spec for spec in specs if not spec.collapsed], run)
        details = _list_table_blocks([spec for spec in specs if spec.collapsed], run)
        values = _read_fields(run.manifest.settings).items()
        settings = [(name, format_value("text", value)) for name, value in values if value not in (None, (), "")]
        unknown = [
            (f"Out of vocabulary on {label}", ", ".join(record.oov_words))
            for label, record in zip(record_labels(run), run.manifest.models, strict=True)
            if record.oov_words
        ]
        study = (("Study", f"{run.manifest.study} ({run.manifest.package})"), *settings, *unknown)
        return Report(
            title=format_title(findings),
            subject=f"{self._title} in {', '.join(model_labels(run).values() or record_labels(run))}",
            headline=self._headline(run),
            findings=findings,
            sections=[
                Section("results", "All results", results, printed=True),
                *([Section("details", "Details", details)] if details else []),
                make_methods_section(run.manifest, study, self._get_meaning(run)),
            ],
            statements=make_statements(findings),
            meaning=self._get_meaning(run),
            tables=[] if findings else [make_record_table(spec, run, spec.title, MAX_ROWS) for spec in specs[:1]],
        )

    def _get_meaning(self, run: RunData) -> str:
        """Return how to read the numbers; presenters of studies override it."""
        return _MEANING

    def _headline(self, run: RunData) -> str:
        models, rows = len(run.manifest.models), len(self._tables[0].get_rows(run))
        return f"{format_count(models, 'model')}, {format_count(rows, 'row')}"

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the tables that are not collapsed."""
        for spec in self._tables:
            if not spec.collapsed and spec.get_rows(gathered.run):
                yield f"{gathered.run.manifest.study}-{spec.name}", paper_table(spec, gathered.run)

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        """Yield all tables as TSV."""
        for group in gathered:
            for spec in self._tables:
                written = format_tsv(spec.get_columns(group.run), spec.get_rows(group.run))
                yield f"{group.run.manifest.study}-{spec.name}", "tsv", written

    def labels(self, run: RunData) -> Sequence[str]:
        """List the models that have findings."""
        return list(dict.fromkeys(finding.model for finding in self._findings(run)))

    def card(self, run: RunData, label: str) -> ModelCard:
        """Make the model card of a label from its findings."""
        own = [finding for finding in self._findings(run) if finding.model == label]
        asked = f"{self._title.lower()} (study {run.manifest.study} of {run.manifest.package})"
        return make_card(run, own, asked, [self._entry(finding, run) for finding in own], [self._get_meaning(run)])

    def _entry(self, finding: Finding, run: RunData) -> IndexEntry:
        effect = CardMetric("effect", f"Effect ({unit_name(finding.unit)})", finding.effect)
        p_values = (
            CardMetric("_".join(["p_value", *name.replace(",", " ").split()]), f"p-value, {name}", value)
            for name, value in finding.p_values.items()
        )
        args = {"study": run.manifest.study, "package": run.manifest.package, "biassay": get_version(run)}
        return IndexEntry("other", self._title, finding.item, finding.title, "", args, (effect, *p_values))

    @property
    def _has_outcomes(self) -> bool:
        record = self._tables[0].record if self._tables else None
        return record is not None and issubclass(record, ResultRecord)

    def _pair_items(self, runs: Mapping[str, RunData], baseline: str) -> Sequence[PairedItem]:
        """Pair the items of every model with those of the baseline."""
        return pair_outcomes(runs, baseline)

    compared_items: ClassVar[str] = "item"
    """Noun for what models are compared by."""

    def _describe_compared(self, runs: Mapping[str, RunData]) -> Iterator[Mapping[str, Mapping[str, object]]]:
        """Yield what must be alike in a comparison, by the name of the run or the label of the model."""
        yield {name: _describe_settings(run) for name, run in runs.items()}

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare paired items; see `Presenter.compare`."""
        if not self._has_outcomes:
            return super().compare(runs, baseline=baseline, mixed=mixed)
        described = self._describe_compared(runs)
        notes = tuple(note for description in described for note in find_setting_differences(description, mixed=mixed))
        study = next(iter(runs.values())).manifest.study
        return compare_paired_items(
            study, runs, self._pair_items, baseline=baseline, notes=notes, what=self.compared_items
        )

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        """Judge paired items; empty if results have no outcomes; see `Presenter.verdicts`."""
        if not self._has_outcomes:
            return ()
        runs = {next(iter(group.parts)): group.run for group in comparison.gathered}
        return judge_pairs(self._pair_items(runs, comparison.baseline), margin=margin, alpha=alpha)

    def comparison_report(self, comparison: Comparison) -> Report:
        """Build the report of a comparison of paired items."""
        return make_differences_report(comparison)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        """Yield the methods sentences of a comparison of paired items."""
        yield from methods_of_differences(comparison, "item by item", ())

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, Table]]:
        """Yield the table of differences for a paper, by name."""
        yield f"{comparison.study}-differences", paper_differences(comparison)


def _list_table_blocks(specs: Sequence[TableSpec], run: RunData) -> tuple[Heading | Table, ...]:
    """List tables with their titles as headings."""
    return tuple(block for spec in specs for block in (Heading(spec.title), make_record_table(spec, run)))


Shown = tuple[Presenter, RunGroup]
"""A group of runs with the presenter of its study."""
