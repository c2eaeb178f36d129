"""Interface of a study's report."""

# ruff: noqa: ARG002  (what hooks are given is for the studies that fill them in)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from biassay.errors import UsageError
from biassay.reporting.document import Renderer, ReportPart
from biassay.results.run_data import RunData
from biassay.results.views import RunGroup

if TYPE_CHECKING:  # what is only for papers and comparisons is imported by those who make them
    from rich.console import Console

    from biassay.reporting.charts.base import Drawing
    from biassay.reporting.citations import CitationUse
    from biassay.reporting.document import PaperTable
    from biassay.reporting.methods import MethodsSentence
    from biassay.reporting.model_card import ModelCard
    from biassay.results.comparison import Comparison
    from biassay.results.differences import Verdict

__all__ = ["Presenter", "Shown"]


class Presenter(ABC):
    """How the runs of one study are gathered, compared and shown. What a study leaves out is not there.

    ``package`` holds the templates of its sections, if any. ``joins_runs``: several runs are shown as one, before
    those of studies that show each by itself.
    """

    package: ClassVar[str | None] = None
    joins_runs: ClassVar[bool] = False

    def only(self, run: RunData, patterns: Sequence[str]) -> RunData:
        """The run with those of its tests that have a name or pattern given."""
        return run

    def gather(self, runs: Mapping[str, RunData], *, mixed: bool) -> list[RunGroup]:
        """What is shown of several runs."""
        return [RunGroup(run, {name: run}) for name, run in runs.items()]

    def anchor(self, gathered: RunGroup) -> str:
        """The name of the part in the addresses of a page."""
        return gathered.run.manifest.study

    @abstractmethod
    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        """The part of a page."""

    @abstractmethod
    def print(self, gathered: RunGroup, console: Console, **options: Any) -> None:
        """Tables and statements in the terminal."""

    def tables(self, gathered: RunGroup) -> Iterable[tuple[str, PaperTable]]:
        """Tables for a paper, by name."""
        return ()

    def files(self, gathered: Sequence[RunGroup]) -> Iterable[tuple[str, str, str]]:
        """Other files for a paper: name, ending and content."""
        return ()

    def figures(self, gathered: RunGroup) -> Iterable[Drawing]:
        """Figures for a paper."""
        return ()

    def sources(self, runs: Sequence[RunData]) -> Iterable[CitationUse]:
        """Works that stimuli are from."""
        return ()

    def methods(self, run: RunData) -> Iterable[CitationUse]:
        """Works that methods are from."""
        return ()

    def methods_paragraph(self, run: RunData) -> Iterable[MethodsSentence]:
        """How it was measured, for the section on methods of a paper; by default what the manifest tells."""
        from biassay.reporting.methods import make_default_methods

        return make_default_methods(run, [*self.sources([run]), *self.methods(run)])

    def labels(self, run: RunData) -> Sequence[str]:
        """The models of which there is something to say in a model card."""
        return ()

    def card(self, run: RunData, label: str) -> ModelCard:
        """What a model card says of one of the labels."""
        raise UsageError("this study says nothing of it")

    def card_name(self, label: str) -> str:
        """What the file of a model card is called."""
        return label

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """All models with one of them."""
        raise UsageError(f"{', '.join(runs)}: runs of this kind cannot be compared; `biassay report` shows them")

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        """Judge whether the other models are worse than the first, test by test; a margin of None is the default."""
        return ()

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        """The part of a page about a comparison."""
        raise UsageError("this study says nothing of it")

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        """A comparison in the terminal."""
        raise UsageError("this study says nothing of it")

    def comparison_methods(self, comparison: Comparison) -> Iterable[MethodsSentence]:
        """How models were compared, for the section on methods of a paper."""
        return ()

    def comparison_tables(self, comparison: Comparison) -> Iterable[tuple[str, PaperTable]]:
        """Tables of a comparison for a paper, by name."""
        return ()

    def comparison_figures(self, comparison: Comparison) -> Iterable[Drawing]:
        """Figures of a comparison for a paper."""
        return ()


Shown = tuple[Presenter, RunGroup]
"""What is shown, and who knows how."""
