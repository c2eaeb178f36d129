"""Interface of a study's report."""

# ruff: noqa: ARG002  (hooks get arguments for the studies that override them)

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from biassay.errors import UsageError
from biassay.reporting.document import Report
from biassay.results.findings import Finding
from biassay.results.run_data import RunData
from biassay.results.tables import TableSpec
from biassay.results.views import RunGroup, group_each, select_tests_of_run

if TYPE_CHECKING:  # modules for papers and comparisons are imported when needed
    from biassay.reporting.charts.base import Drawing
    from biassay.reporting.citations import CitationUse
    from biassay.reporting.document import Table
    from biassay.reporting.methods import MethodsSentence
    from biassay.reporting.model_card import ModelCard
    from biassay.results.comparison import Comparison, SeriesPoint, Verdict


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
        from biassay.reporting.citations import cite_tests

        return cite_tests([run for run in runs if hasattr(run.manifest.inputs, "tests")])

    def methods(self, run: RunData) -> Iterable[CitationUse]:
        """Yield the sources of the methods."""
        return ()

    def methods_paragraph(self, run: RunData) -> Iterable[MethodsSentence]:
        """Yield the methods paragraph of a paper; by default from the manifest."""
        from biassay.reporting.methods import make_default_methods

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


Shown = tuple[Presenter, RunGroup]
"""A group of runs with the presenter of its study."""
