"""Report, paper table and methods sentences of robustness."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.specification_curve import CurvePoint, draw_specification_curve
from biassay.reporting.citations import CitationUse, cite_tests
from biassay.reporting.default_report import DefaultPresenter
from biassay.reporting.document import Cell, ColumnSpan, PaperTable, Renderer, ReportPart, RowGroup, TableRow
from biassay.reporting.findings import draw_overview
from biassay.reporting.formats import clean_line, format_count, format_decimal, format_interval, format_p, format_value
from biassay.reporting.methods import MethodsSentence, format_models, join_names, list_works, make_seed_sentence
from biassay.reporting.model_card import get_version
from biassay.results.run_data import RunData
from biassay.results.views import RunGroup, model_key, model_labels
from biassay.studies.associations.methods import crossed_sentence, lost_sentence, tests_text
from biassay.studies.associations.report import CROSSED_CITATIONS
from biassay.studies.robustness.results import NUMBERS, SUMMARY, RobustnessResult, Specification, get_results

__all__ = ["RobustnessPresenter", "methods_sentences", "paper_table"]


_HEADS = {"n_same_sign": "same", "n_significant": "signif.", "joint_p_value": "joint p"}


def paper_table(run: RunData) -> PaperTable:
    """Return the table of a paper: how robust the tests are."""
    labels = model_labels(run)
    heads = tuple(_HEADS.get(column.name, column.label) for column in NUMBERS)
    found = {
        (row.test, labels[model_key(row)]): tuple(
            Cell(format_value(column.format, column.value(row))) for column in NUMBERS
        )
        for row in get_results(run)
    }
    names = list(dict.fromkeys(label for _, label in found))
    none = (Cell("–"),) * len(NUMBERS)
    rows = tuple(
        TableRow((clean_line(test),), tuple(cell for name in names for cell in found.get((test, name), none)))
        for test in dict.fromkeys(test for test, _ in found)
    )
    told = (f"{head}: {column.help}" for head, column in zip(heads, NUMBERS, strict=True))
    spans = tuple(ColumnSpan(clean_line(name), heads) for name in names)
    caption = clean_line(" ".join(["Robustness of the tests.", *told]))
    return PaperTable(caption, ("test",), spans, (RowGroup("", rows),), spare=("same", "signif.", "joint p"))


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on tests, models, specifications and the correction of p-values."""
    rows, settings = get_results(run), run.manifest.settings
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {tests_text(rows)} (WEAT) on {format_models(run)}",
        ("biassay", "caliskan2017", *sources),
    )
    yield crossed_sentence(sorted({row.alpha for row in rows}) or [settings.alpha])
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
        f"Each test was repeated in {spread} ways that use all its words: layers and poolings of the model, templates, "
        f"and similarities of vectors ({similarities}); the joint p-value is of the median effect over them, target "
        "words relabelled in all at once",
        ("simonsohn2020",),
    )
    yield MethodsSentence(
        "It was repeated without each of its words in turn"
        + (f" and on {format_count(settings.n_subsets, 'random half')}" if settings.n_subsets == 1 else "")
        + (f" and on {settings.n_subsets:,} random halves of them" if settings.n_subsets > 1 else "")
    )
    yield lost_sentence(run, rows)
    yield make_seed_sentence([settings.seed])


_MOST = 40
_MEANING = (
    "The p-value of the model as it is alone decides whether an association is significant. The other specifications "
    "show whether the finding depends on how it is measured."
)
_CAPTION = (
    "Effects of the model as it is. Right of zero: the first named go with the first. Other specifications are below."
)
_TERMS = {
    "d": "How much more the first targets go with the first attributes than the second targets do, in standard "
    "deviations over the target words. d, its interval and p are those of biassay run.",
    "specification": "A layer, a pooling, a similarity or a template, with all words of the test.",
    "p at most alpha": "Specifications with the sign of d and a p of at most alpha, not corrected.",
    "without a word": "Each word is left out in turn; the report names the one without which least of d is left.",
    "joint p": "How often the median over specifications would be as large if target words were assigned to X and Y at "
    "random. It is valid for these attribute words only.",
}
_KINDS = ("reading", "similarity", "template")


class RobustnessPresenter(DefaultPresenter):
    """Report of robustness runs, with specification curves."""

    package = "biassay.studies.robustness"

    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        """Return the part of the report."""
        part = super().part(gathered, renderer)
        made = [make for _, make in zip(range(_MOST), self.figures(gathered), strict=False)]
        section = renderer.section("curves", "Specification curves", figures=renderer.figures(made), shown=len(made))
        return dataclasses.replace(
            part,
            meaning=_MEANING,
            figure=draw_overview(self._findings(gathered.run), _CAPTION),
            terms=_TERMS,
            sections=[section, *part.sections],
        )

    def _headline(self, run: RunData) -> str:
        tests, ways = (
            len({row.test for row in run.tables.get("results", ())}),
            len(run.tables.get("specifications", ())),
        )
        return (
            f"{format_count(len(run.manifest.models), 'model')}, {format_count(tests, 'test')}; "
            f"{format_count(ways, 'measurement')}"
        )

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, PaperTable]]:
        """Yield the tables of a paper."""
        yield "robustness-results", paper_table(gathered.run)

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        """Yield further files of a published report."""
        return (file for file in super().files(gathered) if file[0] != f"robustness-{SUMMARY.name}")

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        """Yield the sources of the data."""
        return cite_tests(runs)

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
        for place, row in enumerate(run.tables.get("results", ())):
            points = _points([one for one in _of(run, row) if one.kind in ("model", "template")], row.alpha)
            if len(points) > 1:
                title = f"{row.test} on {labels[model_key(row)]}"
                yield partial(_drawn, f"curve-{place + 1}-{row.test}", title, points)


def _of(run: RunData, row: RobustnessResult) -> Iterator[Specification]:
    return (
        one
        for one in run.tables.get("specifications", ())
        if (model_key(one), one.test) == (model_key(row), row.test) and one.effect_size is not None
    )


def _points(found: Sequence[Specification], alpha: float) -> list[CurvePoint]:
    """Return the points of a curve; if templates vary, all of them together are a specification too."""
    varied = any(one.template for one in found)
    return [_point(one, one.template or ("all" if varied else ""), alpha) for one in found]


def _point(one: Specification, template: str, alpha: float) -> CurvePoint:
    values = (one.reading, one.similarity, template)
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


def _drawn(name: str, title: str, points: list[CurvePoint], style: Style) -> Figure:
    return draw_specification_curve(name, title, points, style, axis="d by word, with its interval")
