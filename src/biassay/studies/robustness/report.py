"""Report robustness runs, for association tests and for prompts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from biassay.reporting.charts.base import Drawing, can_draw
from biassay.reporting.charts.specification_curve import CurvePoint, draw_specification_curve
from biassay.reporting.document import Cell, Drawings, Report, Section, Table, side_by_side
from biassay.reporting.findings import rank_evidence
from biassay.reporting.formats import (
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_value,
)
from biassay.reporting.methods import (
    CitationUse,
    MethodsSentence,
    format_models,
    get_version,
    join_names,
    list_works,
    make_seed_sentence,
)
from biassay.reporting.presenter import DefaultPresenter, make_record_table
from biassay.reporting.terminal import MAX_ROWS
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData, RunGroup, model_key, model_labels
from biassay.results.tables import TableSpec
from biassay.studies.associations.findings import format_label
from biassay.studies.associations.paper import count_tests, make_crossed_sentence, make_skipped_sentence
from biassay.studies.associations.report import CROSSED_CITATIONS
from biassay.studies.robustness.results import ALL_WORDS, NUMBERS, SUMMARY

Choices = tuple[tuple[str, str], ...]
_HEADS = {"n_same_sign": "same", "n_significant": "signif.", "joint_p_value": "p of median"}


def paper_table(run: RunData) -> Table:
    """Make the table of a paper, with the robustness of every test; models across."""
    labels = model_labels(run)
    heads = tuple(_HEADS.get(column.name, column.label) for column in NUMBERS)
    cells = {
        (f"{row.test}: {format_label(row)}", labels[model_key(row)]): tuple(
            Cell(format_value(column.format, column.value(row))) for column in NUMBERS
        )
        for row in run.results
    }
    definitions = (f"{head}: {column.help}" for head, column in zip(heads, NUMBERS, strict=True))
    table = side_by_side(" ".join(["Robustness of the tests.", *definitions]), "Test", cells, heads)
    return dataclasses.replace(table, spare=("same", "signif.", "p of median"))


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on tests, models, specifications and the correction of p-values."""
    rows, settings = run.results, run.manifest.settings
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {count_tests(rows)} (WEAT) on {format_models(run)}",
        ("biassay", "caliskan2017", *sources),
    )
    yield make_crossed_sentence(sorted({row.alpha for row in rows}) or [settings.alpha])
    sizes = sorted({row.family_size for row in rows if row.p_adjusted is not None})
    each = " of each model" if len(run.manifest.models) > 1 else ""
    if sizes:
        over = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
        yield MethodsSentence(
            f"At a level of {settings.alpha:g}, p-values were corrected by Holm's method over {over} "
            f"social-bias question{'' if sizes[-1] == 1 else 's'}{each}",
            ("holm1979",),
        )
    counts = sorted({row.n_specifications for row in rows if row.n_specifications})
    spread = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    similarities = join_names(list(dict.fromkeys(("cosine", *settings.similarities))))
    yield MethodsSentence(
        f"Each test was repeated under {spread} specifications with all its words: layers and poolings of the model, "
        f"templates, and similarities of vectors ({similarities}); the p-value of the median effect is from "
        "permutations of the target words in all specifications at once",
        ("simonsohn2020",),
    )
    yield MethodsSentence(
        "Each test was also repeated without each of its words in turn"
        + (f" and on {format_count(settings.n_subsets, 'random half')}" if settings.n_subsets == 1 else "")
        + (f" and on {settings.n_subsets:,} random halves of them" if settings.n_subsets > 1 else "")
    )
    yield make_skipped_sentence(run, rows)
    yield make_seed_sentence([settings.seed])


_MAX_CURVES = 40
_MAX_LEADING_CURVES = 3
_CURVE = "Each point is one specification, sorted by effect. The rows below show its choices."
_MEANING = (
    "Significance is decided by the p-value of the default specification alone. The other specifications show whether "
    "the finding depends on how it is measured."
)
_PROMPT_MEANING = (
    "Significance is decided by the default specification alone: all wordings and orders, with the model's own "
    "temperature and system message. The others show whether the finding depends on the prompts."
)
_CAPTION = "Effects under the default specification. The other specifications are below."
_TERMS = {
    "d": "How much more the first targets are associated with the first attributes than the second targets, in "
    "standard deviations over the target words. d, its interval and p are those of `biassay run`.",
    "specification": "A layer, a pooling, a similarity or a template, with all words of the test.",
    "p at most alpha": "Specifications with the sign of d and a p of at most alpha, not corrected.",
    "without a word": "Each word is left out in turn; the report names the one whose removal reduces d most.",
    "p of median": "How often the median over specifications would be as large if target words were "
    "assigned to X and Y at random. It does not generalize to other attribute words.",
}


class PromptRobustnessPresenter(DefaultPresenter):
    """Report with specification curves, those of the strongest findings first."""

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        drawn = enumerate(islice(self.figures(gathered), _MAX_CURVES))
        curves = tuple(("" if index else _CURVE, make) for index, make in drawn)
        first, others = curves[:_MAX_LEADING_CURVES], curves[_MAX_LEADING_CURVES:]
        report = super().report(gathered, **options)
        more = [Section("curves", "More specification curves", (Drawings(others),))] if others else []
        return dataclasses.replace(
            report,
            sections=[*more, *(dataclasses.replace(section, printed=False) for section in report.sections)],
            figure=Drawings(first) if first and can_draw() else None,
            tables=[make_record_table(self._tables[0], gathered.run, "Effects under all specifications", MAX_ROWS)],
        )

    def _get_meaning(self, run: RunData) -> str:  # noqa: ARG002
        return _PROMPT_MEANING

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
        yield CitationUse("specification curves", "simonsohn2020")
        yield from super().methods(run)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield one specification curve per item."""
        run = gathered.run
        labels = model_labels(run)
        rows = list(enumerate(run.results, start=1))
        ranks = {(finding.model, finding.item): -rank_evidence(finding) for finding in self._findings(run)}
        for number, row in sorted(rows, key=lambda pair: ranks.get((labels[model_key(pair[1])], pair[1].test), 0)):
            own = [
                spec
                for spec in run.tables.get("specifications", ())
                if (model_key(spec), spec.test) == (model_key(row), row.test) and spec.effect_size is not None
            ]
            alpha = run.manifest.settings.alpha
            points = [_make_point(spec, choices, alpha) for spec, choices in self._list_choices(own)]
            if len(points) > 1:
                title = f"{self._name_item(row)} on {labels[model_key(row)]}"
                name = f"curve-{number}-{row.test}"
                yield partial(draw_specification_curve, name, title, points, axis=self._axis or row.scale)

    _axis: ClassVar[str] = ""
    """Title of the effect axis; if empty, the scale of the effect."""

    def _name_item(self, row: Any) -> str:
        return str(row.title)

    def _list_choices(self, specifications: Sequence[Any]) -> Iterator[tuple[Any, Choices]]:
        """Yield the specifications of a curve with their choices."""
        for spec in specifications:
            yield spec, ((spec.kind, spec.value or "all"),)


def _make_point(spec: Any, choices: Choices, alpha: float) -> CurvePoint:
    named = ", ".join(" ".join(choice) for choice in choices)
    interval = format_interval(spec.ci_low, spec.ci_high)
    return CurvePoint(
        spec.effect_size,
        spec.ci_low,
        spec.ci_high,
        spec.p_value is not None and spec.p_value <= alpha,
        choices,
        f"{named}: {format_decimal(spec.effect_size)}, {interval}, p {format_p(spec.p_value)}",
    )


class RobustnessPresenter(PromptRobustnessPresenter):
    """Report of association tests under many specifications."""

    _axis = "effect size d"

    def __init__(
        self, title: str, tables: Sequence[TableSpec], findings: Callable[[RunData], Sequence[Finding]]
    ) -> None:
        super().__init__(title, (SUMMARY, *tables), findings)

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        report = super().report(gathered, **options)
        title = _format_title(report.title, gathered.run)
        return dataclasses.replace(report, title=title, caption=_CAPTION, terms=_TERMS)

    def _get_meaning(self, run: RunData) -> str:  # noqa: ARG002
        return _MEANING

    def _headline(self, run: RunData) -> str:
        tests = {row.test for row in run.tables.get("results", ())}
        specifications = run.tables.get("specifications", ())
        whole = sum(spec.kind in ALL_WORDS for spec in specifications)
        return (
            f"{format_count(len(run.manifest.models), 'model')}, {format_count(len(tests), 'test')}, "
            f"{format_count(whole, 'specification')} with all words, {len(specifications) - whole:,} with some of them"
        )

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the tables of a paper."""
        yield "robustness-results", paper_table(gathered.run)

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        """Yield further files of a published report."""
        return (file for file in super().files(gathered) if file[0] != f"robustness-{SUMMARY.name}")

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
        yield CitationUse("the method WEAT", "caliskan2017")
        yield from CROSSED_CITATIONS
        yield CitationUse("specification curves", "simonsohn2020")
        if any(row.p_adjusted is not None for row in run.tables.get("decisions", ())):
            yield CitationUse("correction for the number of tests", "holm1979")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods section."""
        return methods_sentences(run, list_works(self.sources([run])))

    def _name_item(self, row: Any) -> str:
        return f"{format_label(row)} ({row.test})"

    def _list_choices(self, specifications: Sequence[Any]) -> Iterator[tuple[Any, Choices]]:
        """Yield the specifications with all words and their choices. If templates vary, "all" is one of them."""
        whole = [spec for spec in specifications if spec.kind in ALL_WORDS]
        default = "all" if any(spec.template for spec in whole) else ""
        for spec in whole:
            values = (spec.representation, spec.similarity, spec.template or default)
            kinds = ("layer, pooling", "similarity", "template")
            yield spec, tuple((kind, value) for kind, value in zip(kinds, values, strict=True) if value)


def _format_title(title: str, run: RunData) -> str:
    """Format the number of significant questions, and of specifications with p at most alpha."""
    rows = [row for row in run.results if row.evidence == "significant" and row.about == "people"]
    if not rows:
        return title
    if len(rows) == 1:
        (row,) = rows
        beyond = f"It has p at most {row.alpha:g} in {row.n_significant:,} of {row.n_specifications:,} specifications"
    else:
        stable = sum(row.n_significant == row.n_specifications for row in rows)
        beyond = f"{stable:,} of these {len(rows):,} have p at most {rows[0].alpha:g} in all specifications"
    return f"{title}. {beyond}"
