"""Report, paper table and methods sentences of robustness."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from biassay.reporting.charts.base import Drawing, can_draw
from biassay.reporting.charts.specification_curve import CurvePoint, draw_specification_curve
from biassay.reporting.document import (
    Cell,
    Drawings,
    Report,
    Section,
    Table,
    make_table,
    read_default_columns,
    side_by_side,
)
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
from biassay.reporting.presenter import DefaultPresenter
from biassay.reporting.terminal import MAX_ROWS
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData, RunGroup, model_key, model_labels
from biassay.results.tables import TableSpec
from biassay.studies.associations.findings import format_label
from biassay.studies.associations.paper import count_tests, make_crossed_sentence, make_skipped_sentence
from biassay.studies.associations.report import CROSSED_CITATIONS
from biassay.studies.robustness.results import (
    NUMBERS,
    SUMMARY,
    RobustnessResult,
    Specification,
    make_findings,
)

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
_MEANING = (
    "Significance is decided by the p-value of the default specification alone. The other specifications show whether "
    "the finding depends on how it is measured."
)
_MAX_LEADING_CURVES = 3
_CURVE = "Each point is one specification, sorted by effect. The rows below show its choices."
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
_KINDS = ("layer, pooling", "similarity", "template")


class RobustnessPresenter(DefaultPresenter):
    """Report of robustness runs, with specification curves."""

    def __init__(
        self, title: str, tables: Sequence[TableSpec], findings: Callable[[RunData], Sequence[Finding]]
    ) -> None:
        super().__init__(title, (SUMMARY, *tables), findings)

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report; it opens with the specification curves of the strongest findings."""
        report = super().report(gathered, **options)
        labels = model_labels(gathered.run)
        drawn = enumerate(islice(self.figures(gathered), _MAX_CURVES))
        curves = tuple(("" if index else _CURVE, make) for index, make in drawn)
        first, others = curves[:_MAX_LEADING_CURVES], curves[_MAX_LEADING_CURVES:]
        columns, rows = read_default_columns(SUMMARY, gathered.run)
        drawings = (Drawings(others),) if others else ()
        tests = Section("tests", "All tests", (*drawings, make_table("", columns, rows, MAX_ROWS)))
        return dataclasses.replace(
            report,
            title=_format_title(report.title, gathered.run),
            subject=f"Robustness in {', '.join(labels.values())}",
            caption=_CAPTION,
            terms=_TERMS,
            sections=[tests, *(section for section in report.sections if section.name != "results")],
            figure=Drawings(first) if first and can_draw() else None,
            tables=[make_table("Effects under all specifications", columns, rows, MAX_ROWS)],
        )

    def _get_meaning(self, run: RunData) -> str:  # noqa: ARG002
        return _MEANING

    def _headline(self, run: RunData) -> str:
        tests = {row.test for row in run.tables.get("results", ())}
        specifications = run.tables.get("specifications", ())
        whole = sum(spec.kind in _WHOLE for spec in specifications)
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

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield the figures."""
        run = gathered.run
        labels = model_labels(run)
        rows = list(enumerate(run.tables.get("results", ()), start=1))
        ranks = {(finding.model, finding.item): -rank_evidence(finding) for finding in make_findings(run)}
        for number, row in sorted(rows, key=lambda pair: ranks.get((labels[model_key(pair[1])], pair[1].test), 0)):
            points = _make_points(_select_specifications(run, row), row.alpha)
            if len(points) > 1:
                title = f"{format_label(row)} ({row.test}) on {labels[model_key(row)]}"
                yield partial(
                    draw_specification_curve, f"curve-{number}-{row.test}", title, points, axis="effect size d"
                )


_WHOLE = ("model", "template")
"""Kinds of specifications that use all words of a test."""


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


def _select_specifications(run: RunData, row: RobustnessResult) -> list[Specification]:
    """Select the specifications of a test that use all its words and have an effect."""
    return [
        spec
        for spec in run.tables.get("specifications", ())
        if (model_key(spec), spec.test) == (model_key(row), row.test)
        and spec.effect_size is not None
        and spec.kind in _WHOLE
    ]


def _make_points(specifications: Sequence[Specification], alpha: float) -> list[CurvePoint]:
    """Make the points of a curve; if templates vary, all of them together are a specification too."""
    default = "all" if any(spec.template for spec in specifications) else ""
    return [_make_point(spec, spec.template or default, alpha) for spec in specifications]


def _make_point(one: Specification, template: str, alpha: float) -> CurvePoint:
    values = (one.representation, one.similarity, template)
    choices = tuple((kind, value) for kind, value in zip(_KINDS, values, strict=True) if value)
    tip = (
        f"{', '.join(value for _, value in choices)}: d {format_decimal(one.effect_size)}, "
        f"{format_interval(one.ci_low, one.ci_high)}"
    )
    return CurvePoint(
        one.effect_size or 0.0,
        one.ci_low,
        one.ci_high,
        one.p_value is not None and one.p_value <= alpha,
        choices,
        f"{tip}, p {format_p(one.p_value)}",
    )
