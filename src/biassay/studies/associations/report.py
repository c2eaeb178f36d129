"""Report of association tests.

Every number is written as it is to be shown; the script only sorts, filters and pages.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.distribution import P_NAMES, draw_distribution
from biassay.reporting.charts.forest import ForestRow, draw_forest, make_distinct
from biassay.reporting.charts.matrix import MatrixCell, draw_matrix
from biassay.reporting.citations import CitationUse, cite_tests
from biassay.reporting.document import Renderer, ReportPart, Section
from biassay.reporting.findings import draw_overview
from biassay.reporting.formats import (
    MANY_MODELS,
    format_concept,
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_share_of_time,
    format_value,
    shorten,
)
from biassay.reporting.presenter import Presenter
from biassay.reporting.sentences import make_statements
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData, belongs_to
from biassay.results.views import RunGroup, model_key, model_labels
from biassay.studies.associations.compare import group_association_runs, restrict_tests
from biassay.studies.associations.contributions import compute_contributions
from biassay.studies.associations.diagnostics import (
    count_contexts,
    format_context_range,
    list_assumptions,
    list_without_baseline,
)
from biassay.studies.associations.findings import (
    headline,
    make_findings,
    make_short_findings,
    meaning,
    topic_place,
    unfinished,
)
from biassay.studies.associations.results import COLUMNS, CROSSED, FIXED_WORDS, SENTENCES, get_samples
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.signs import (
    FIXED_WORDS_P,
    NOT_MEASURED,
    SENTENCES_P,
    UNREACHABLE,
    describe_sides,
    format_d_interval,
    format_fixed_words_p,
    format_main_p,
    format_published_p,
    get_mark,
    make_legend,
)

if TYPE_CHECKING:
    from rich.console import Console

    from biassay.reporting.document import PaperTable
    from biassay.reporting.methods import MethodsSentence
    from biassay.reporting.model_card import ModelCard
    from biassay.results.comparison import Comparison
    from biassay.results.differences import Verdict


__all__ = [
    "CROSSED_CITATIONS",
    "EFFECTS",
    "LEADING",
    "AssociationPresenter",
    "PageColumn",
    "RunView",
    "column_groups",
    "data_of",
    "distribution_figures",
    "figure_name",
    "forest_figures",
    "is_check",
    "only_these_words",
    "p_columns",
    "part_of",
    "random_share",
    "shown_groups",
    "shows_words",
]


EFFECTS: Mapping[str | None, str] = {
    CROSSED: "d",
    FIXED_WORDS: "effect",
    SENTENCES: "sentence-level effect",
    None: "effect",
}
LEADING: Mapping[str | None, str] = {CROSSED: "p", FIXED_WORDS: FIXED_WORDS_P, SENTENCES: SENTENCES_P, None: "p"}
"""Labels of the primary effect size and p-value by test; None if not all results have the same test."""


def is_check(result: Result) -> bool:
    """Is it a check of the method, and not about people?"""
    return bool(result.about == "method")


def random_share(result: Result) -> str:
    """How large an effect is, in words; nothing where it is not known."""
    if result.share_random is None:
        return ""
    return f"random word sets reach this effect {format_share_of_time(result.share_random, result.random_sets)}"


@dataclass(frozen=True)
class RunView:
    """Results of one or several runs, those over texts or those over contexts."""

    gathered: RunGroup

    @property
    def run(self) -> RunData:
        return self.gathered.run

    @property
    def over_contexts(self) -> bool:
        return self.run.manifest.inputs.contexts is not None

    @property
    def name(self) -> str:
        return "contexts" if self.over_contexts else "texts"

    @cached_property
    def labels(self) -> Mapping[tuple[str, str, str | None], str]:
        return model_labels(self.run)

    @cached_property
    def models(self) -> list[str]:
        return list(self.labels.values())

    @cached_property
    def results(self) -> list[Result]:
        """As in the run, with the checks of the method behind."""
        return sorted(self.run.results, key=is_check)

    @cached_property
    def tests(self) -> list[Result]:
        """One result of every test, for its name and title."""
        return list({r.test: r for r in reversed(self.results)}.values())[::-1]

    @cached_property
    def cells(self) -> Mapping[tuple[str, str], Result]:
        return {(r.test, self.label(r)): r for r in self.run.results}

    @cached_property
    def test(self) -> str | None:
        """The primary test, if it is the same for all results."""
        tests = {r.outcome.test for r in self.run.results if r.status == "measured"}
        return tests.pop() if len(tests) == 1 else None

    @property
    def of_papers(self) -> bool:
        """Whether all results are as the papers have them."""
        return all(r.protocol in PAPER_PROTOCOLS for r in self.run.results)

    @property
    def confidence(self) -> str:
        """Of the intervals."""
        return f"{100 * (1 - self.run.manifest.settings.alpha_or_default):g}%"

    @property
    def signs(self) -> str:
        """What the signs beside p-values mean, and in which direction these look."""
        return "; ".join(filter(None, [make_legend(self.results, "; "), describe_sides(self.results)]))

    def label(self, result: Result) -> str:
        return self.labels[model_key(result)]

    def of_model(self, label: str) -> Iterator[Result]:
        return (r for test in self.tests if (r := self.cells.get((test.test, label))) is not None)

    def interval(self, result: Result) -> str:
        return "–" if result.ci_low is None else format_d_interval(result)

    @staticmethod
    def p_crossed(result: Result) -> str:
        return format_p(result.crossed_p_value) + ("‡" if result.crossed_p_value is None else "")

    def tip(self, result: Result) -> str:
        """All about a cell, in a few words."""
        name = f"{result.test} on {self.label(result)}"
        if result.status != "measured":
            return f"{name}: {result.status}. {result.reason or ''}".strip()
        test = result.outcome.test
        interval = "" if result.ci_low is None else f", {self.confidence} {self.interval(result)}"
        after = "" if result.p_adjusted is None else f" (after correction {format_p(result.p_adjusted)})"
        by_word = "" if test == FIXED_WORDS else f", {FIXED_WORDS_P} {format_fixed_words_p(result)}"
        share = f" {said[0].upper()}{said[1:]}." if (said := random_share(result)) else ""
        targets = ", ".join(map(format_concept, (result.targ1, result.targ2)))
        attributes = ", ".join(map(format_concept, (result.attr1, result.attr2)))
        return (
            f"{name}. {result.title}. {EFFECTS[test]} {format_decimal(result.effect_size)}{interval}; {LEADING[test]} "
            f"{format_main_p(result)}{after}{by_word}.{share} {targets}; {attributes}."
        )


_COLUMNS = {column.name: column for column in COLUMNS}
_EFFECT = {
    SENTENCES: "Effect size, with every text as an observation.",
    CROSSED: "Effect size over words: texts or contexts of a word are averaged.",
}
_P = {
    CROSSED: "Would other words of the same kinds, targets and attributes, show it too? Two-sided.",
    FIXED_WORDS: "Would a random split of the same target words do as well?",
    SENTENCES: "Under the protocol of the run, with every text as an observation.",
}
_FOR_THESE = "Would a random split of the same target words do as well? It speaks of these attribute words only."
_NEW_CONTEXTS = (
    "Where 95% of effects of these words lie in new contexts, from new documents. A dash: some word has contexts from "
    "one document only."
)
_PAPERS_P = "P-value of the pooled effect. It shrinks with the number of samples, which is free to choose."


@dataclass(frozen=True)
class PageColumn:
    """What stands above a column, what it means, and what stands in it."""

    label: str
    help: str
    cell: Callable[[Result], str]


def p_columns(view: RunView) -> list[PageColumn]:
    """The p-value that leads, with its sign, and the one for these attribute words, where it is another."""
    test = view.test
    first = PageColumn(LEADING[test], _P[test or CROSSED], format_main_p)
    second = PageColumn(FIXED_WORDS_P, _FOR_THESE, format_fixed_words_p)
    return [first] if test == FIXED_WORDS or not _any(second, view.results) else [first, second]


def column_groups(view: RunView) -> dict[str, list[PageColumn]]:
    """All columns, those that are shown together under one name; a column that nothing stands in is left out."""
    measured = [r for r in view.run.results if r.status == "measured"]
    groups = {"main": _leading(view), "size and variance": _crossed(view), "other p-values": _others(view)}
    if view.over_contexts:
        groups["over contexts"] = _over_contexts()
    filled = {name: [one for one in group if _any(one, measured)] for name, group in groups.items()}
    return {name: group for name, group in filled.items() if group} or {"main": groups["main"][:1]}


def _any(column: PageColumn, results: Iterable[Result]) -> bool:
    return any(column.cell(r) not in ("–", "") for r in results)


def _leading(view: RunView) -> list[PageColumn]:
    test = view.test
    effect, interval = _EFFECT[SENTENCES if test == SENTENCES else CROSSED], f"{view.confidence} interval"
    first, *rest = p_columns(view)
    return [
        PageColumn(EFFECTS[test], effect, lambda r: format_decimal(r.effect_size)),
        PageColumn(interval, "Of d with other words of the same kinds, targets and attributes.", view.interval),
        first,
        PageColumn(f"{first.label}, corrected", "After correction over its family.", lambda r: format_p(r.p_adjusted)),
        *rest,
        _own("share_random", _random),
    ]


def _crossed(view: RunView) -> list[PageColumn]:
    """D and what its variance is made of; under the papers' protocols also what would lead otherwise."""
    confidence = view.confidence
    words = [
        _own("fixed_words_effect_size", label="d"),
        PageColumn(f"d, {confidence}", "Interval of d, by the crossed test.", format_d_interval),
        PageColumn(
            "p, crossed", "Crossed test: target and attribute words as samples.", lambda r: format_p(r.crossed_p_value)
        ),
    ]
    return [
        *([] if view.test == CROSSED else words),
        PageColumn("D", _COLUMNS["cosine_difference"].help, lambda r: _cosine(r.cosine_difference)),
        PageColumn(f"D, {confidence}", "Interval of D, by the crossed test.", _D_interval),
        _own("crossed_df", label="df"),
        _own("share_targets", label="target words"),
        _own("share_attributes", label="attribute words"),
        _own("share_residual"),
        *([] if view.test == SENTENCES else [_own("power_80")]),
        _own("margin", lambda r: "–" if r.margin is None else f"{r.margin:g}"),
        _own("p_equivalence"),
    ]


def _others(view: RunView) -> list[PageColumn]:
    by_word = [
        _own("fixed_words_p_opposite"),
        _own("fixed_words_p_floor"),
    ]
    if view.over_contexts:
        return by_word
    by_text = [
        _own("sentences_effect_size"),
        _own("sentences_p_value", format_published_p),
    ]
    return [*by_word, *([] if view.test == SENTENCES else by_text), _own("shared_templates", label="shared templates")]


def _over_contexts() -> list[PageColumn]:
    return [
        _own("pooled_effect_size"),
        PageColumn("new contexts", _NEW_CONTEXTS, _new_contexts),
        PageColumn("p, paper's", _PAPERS_P, format_published_p),
        _own("share_significant", label="samples significant"),
        PageColumn("contexts a word", "Fewest, median, most.", format_context_range),
    ]


def _own(name: str, cell: Callable[[Result], str] | None = None, label: str | None = None) -> PageColumn:
    """A column of results.tsv."""
    column = _COLUMNS[name]
    return PageColumn(
        label or column.label, column.help, cell or (lambda row: format_value(column.format, column.value(row)))
    )


def _cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:z.3f}"


def _D_interval(row: Result) -> str:
    return "–" if row.cosine_ci_low is None else f"{_cosine(row.cosine_ci_low)} to {_cosine(row.cosine_ci_high)}"


def _random(row: Result) -> str:
    if row.share_random == 0.0 and row.random_sets:
        return f"<{100.0 / row.random_sets:.2g}%"
    return format_value("share", row.share_random)


def _new_contexts(row: Result) -> str:
    return format_interval(row.new_contexts_low, row.new_contexts_high)


_MOST_WITH_WORDS = 3000
_ROLES = ("X", "Y", "A", "B")


def data_of(view: RunView) -> dict[str, Any]:
    """Models, tests, and a row a result: model, test, mark, whether it holds for these words only, then its cells."""
    models = {label: place for place, label in enumerate(view.models)}
    tests = {test.test: place for place, test in enumerate(view.tests)}
    groups = shown_groups(view)
    columns = [column for group in groups.values() for column in group]
    data: dict[str, Any] = {
        "models": view.models,
        "tests": [[t.test, t.title, *map(format_concept, (t.targ1, t.targ2, t.attr1, t.attr2))] for t in view.tests],
        "columns": [[column.label, column.help] for column in columns],
        "groups": [[name, len(group)] for name, group in groups.items()],
        "rows": [
            [
                models[view.label(r)],
                tests[r.test],
                get_mark(r),
                int(only_these_words(r)),
                *([column.cell(r) for column in columns] if r.status == "measured" else [r.status]),
            ]
            for r in view.results
        ],
        "reasons": {str(i): r.reason for i, r in enumerate(view.results) if r.reason},
    }
    if shows_words(view):
        words, shares = _words_data(view)
        data |= {"words": words, "shares": shares}
    return data


def only_these_words(result: Result) -> bool:
    """Return whether a result is significant for these words, or these texts, and not for the concepts."""
    narrow = result.published.p_value if result.outcome.test == SENTENCES else result.fixed_words_p_value
    if result.cosine_difference is None or narrow is None or narrow > result.alpha:
        return False
    return result.crossed_p_value is None or result.crossed_p_value > result.alpha


def shown_groups(view: RunView) -> dict[str, list[PageColumn]]:
    """The columns that the page has room for; of very many results only what leads."""
    groups = column_groups(view)
    return groups if _is_detailed(view) else dict(list(groups.items())[:1])


def _is_detailed(view: RunView) -> bool:
    return len(view.run.results) <= _MOST_WITH_WORDS


def shows_words(view: RunView) -> bool:
    """Are the words behind the results known, and few enough to be put on a page?"""
    return _is_detailed(view) and any(compute_contributions(r) is not None for r in view.run.results)


def _rounded(share: float) -> float | None:
    return round(share, 3) if math.isfinite(share) else None


def _words_data(view: RunView) -> tuple[list[list[list[str]]], list[list[list[float | None]] | None]]:
    """The words of every test by role, and for every result what they add, in the same order; None: not known."""
    of_test: dict[str, list[dict[str, None]]] = {test.test: [{} for _ in _ROLES] for test in view.tests}
    for r in view.results:
        for place, role in enumerate(_ROLES):
            of_test[r.test][place] |= dict.fromkeys(r.associations.get(role, {}))
    shares: list[list[list[float | None]] | None] = []
    for r in view.results:
        found = compute_contributions(r)
        if found is None:
            shares.append(None)
            continue
        known = {**found.targets, **found.attributes}
        shares.append(
            [
                [_rounded(known[role].get(word, math.nan)) for word in words]
                for role, words in zip(_ROLES, of_test[r.test], strict=True)
            ]
        )
    return [[list(words) for words in of_test[test.test]] for test in view.tests], shares


_CAPTION = (
    "Right of zero: the first named go with the first. “Male or female names, career or family” at +1.7 reads: male "
    "names go with career, female names with family."
)
_MOST_LINES = 200
_NAME, _CODE = 66, 20  # characters of a test in a figure, and of its code name
_MOST_DISTRIBUTIONS = 150
_MOST_ROWS = 16  # of words, that room is kept for


def part_of(view: RunView, renderer: Renderer) -> ReportPart:
    """Everything about the runs of a view."""
    renderer.environment.globals.update(
        decimals=format_decimal,
        format_published_p=format_published_p,
        format_fixed_words_p=format_fixed_words_p,
        random_share=random_share,
    )
    sections = [one(view, renderer) for one in (_CONTEXTS if view.over_contexts else _TEXTS)]
    findings = make_short_findings(view.run)
    models = ", ".join(view.models) if len(view.models) <= MANY_MODELS else format_count(len(view.models), "model")
    return ReportPart(
        anchor=renderer.anchor,
        title=f"{'Associations over contexts in' if view.over_contexts else 'Associations in'} {models or 'no model'}",
        headline=headline(view.run),
        summary=make_statements(findings),
        meaning=meaning(view.run),
        sections=[section for section in sections if section is not None],
        notes=_notes(view),
        figure=draw_overview(sorted(findings, key=lambda one: topic_place(one.topic)), _CAPTION),
        terms=_terms(view),
        data=data_of(view),
    )


def _notes(view: RunView) -> list[str]:
    """What must be known before anything is read: runs that are not finished, or not alike."""
    notes = [note for name, run in view.gathered.parts.items() if (note := unfinished(run, name))]
    if view.gathered.differences:
        notes.append("These runs are not alike: " + "; ".join(view.gathered.differences) + ".")
    return notes


def _terms(view: RunView) -> dict[str, str]:
    """The words and signs of the sentences."""
    crossed = {
        f"{view.confidence} interval": "Encloses, with this confidence, the d that other words of the same kinds would "
        "give, targets and attributes. It leaves out zero where p is small.",
        "p": "Would other words of the same kinds, targets and attributes, show it too? The smaller p, the less likely "
        "it comes from the choice of words alone.",
        FIXED_WORDS_P: "Would another split of the same target words do as well with these attribute words? It says "
        "nothing about other attribute words.",
        "random word sets": "How often words drawn at random, in place of the attributes, give a d as large.",
    }
    return {
        "d": "How much more the first targets go with the first attributes than the second targets do, in standard "
        "deviations over the target words. 0 is none, 2 about the most there can be.",
        **(crossed if view.test == CROSSED else {}),
        "* and **": view.signs,
    }


def _all_tests(view: RunView, renderer: Renderer) -> Section | None:
    """Every test beside every model; sanity checks at the end."""
    if len(view.models) > MANY_MODELS:
        return None
    parts = [[t for t in view.tests if not is_check(t)], [t for t in view.tests if is_check(t)]]
    return renderer.section(
        "all_tests",
        "All tests",
        view=view,
        parts=parts,
        effect=EFFECTS[view.test],
        columns=p_columns(view),
    )


def _matrix(view: RunView, renderer: Renderer) -> Section | None:
    """Which tests are significant on which models; the script fills it in."""
    if len(view.models) <= MANY_MODELS:
        return None
    longest = max(len(test.test) for test in view.tests)
    return renderer.section("matrix", "Significance at a glance", longest=longest, shown=min(len(view.models), 50))


def _by_test(view: RunView, renderer: Renderer) -> Section | None:
    """Every test over all models."""
    if len(view.models) < 4:
        return None
    by_test: dict[str, list[Result]] = {}
    for result in view.run.results:
        by_test.setdefault(result.test, []).append(result)
    rows = [_over_models(test, by_test[test.test]) for test in view.tests]
    return renderer.section("by_test", "Every test over all models", rows=rows, view=view)


def _over_models(test: Result, results: Sequence[Result]) -> dict[str, Any]:
    codes = [get_mark(r) for r in results]
    sizes = [size for r in results if (size := r.effect_size) is not None and math.isfinite(size)]
    return {
        "test": test,
        "measured": sum(r.status == "measured" for r in results),
        "significant": codes.count(2),
        "uncorrected": codes.count(1),
        "unreachable": codes.count(UNREACHABLE),
        "sizes": f"{min(sizes):.2f}, {statistics.median(sizes):.2f}, {max(sizes):.2f}" if sizes else "–",
    }


def forest_figures(view: RunView) -> list[tuple[str, Drawing]]:
    """One a model that has results."""
    made: list[tuple[str, Drawing]] = []
    axis = EFFECTS[view.test] if view.test == SENTENCES else f"{EFFECTS[view.test]}, {view.confidence} over words"
    for place, label in enumerate(view.models):
        rows = [row for r in view.of_model(label) if (row := _forest_row(view, r)) is not None]
        if rows:
            name = f"forest-{view.name}-{place + 1}"
            made.append((label, partial(_drawn_forest, name, label, rows, axis)))
    return made


def _drawn_forest(name: str, label: str, rows: Sequence[ForestRow], axis: str, style: Style) -> Figure:
    return draw_forest(name, label, rows, style, axis=axis)


def _forest_row(view: RunView, result: Result) -> ForestRow | None:
    if result.effect_size is None:
        return None
    mark = get_mark(result)
    return ForestRow(
        figure_name(result),
        result.effect_size,
        result.ci_low,
        result.ci_high,
        mark if mark <= 2 else 0,
        view.tip(result),
    )


def figure_name(result: Result) -> str:
    """A test in a figure: in words, and its code name in brackets; either is cut where it is long."""
    code = shorten(result.test, _CODE, middle=True)
    return f"{shorten(result.title, _NAME - len(code))} ({code}{', check' if is_check(result) else ''})"


def _only_these(view: RunView, renderer: Renderer) -> Section | None:
    """What holds for these words and not for the concepts."""
    rows = [r for r in view.results if only_these_words(r)]
    if not rows:
        return None
    return renderer.section(
        "only_these", "For these words, not for the concepts", view=view, rows=rows[:_MOST_LINES], total=len(rows)
    )


def _words(view: RunView, renderer: Renderer) -> Section | None:
    """What single words add; the script shows one test on one model at a time."""
    if not shows_words(view):
        return None
    first = next(r for r in view.results if r.associations)
    rows = min(_MOST_ROWS, max(map(len, first.associations.values())))
    return renderer.section("words", "Which words an effect comes from", rows=rows)


def _numbers(view: RunView, renderer: Renderer) -> Section:
    columns = [column for group in shown_groups(view).values() for column in group]
    return renderer.section("numbers", "All numbers", columns=columns, rows=min(25, len(view.run.results)))


def _lost(view: RunView, renderer: Renderer) -> Section | None:
    lossy = [r for r in view.run.results if any(r.lost.values())]
    if not lossy:
        return None
    return renderer.section(
        "lost", "Words a model does not know", view=view, rows=lossy[:_MOST_LINES], total=len(lossy)
    )


def _refused(view: RunView, renderer: Renderer) -> Section | None:
    refused = [r for r in view.run.results if r.reason]
    if not refused:
        return None
    return renderer.section("refused", "Not measured", view=view, rows=refused[:_MOST_LINES], total=len(refused))


def _distributions(view: RunView, renderer: Renderer) -> Section | None:
    made = list(distribution_figures(view))
    if not made:
        return None
    shown = sorted(made, key=lambda one: -abs(one[1].pooled_effect_size or 0.0))[:_MOST_DISTRIBUTIONS]
    kept = [one for one in made if one in shown]
    drawn = renderer.figures([make for _, _, make in kept])
    models: dict[str, list[tuple[Result, Any]]] = {}
    for (label, result, _), svg in zip(kept, drawn, strict=False):
        models.setdefault(label, []).append((result, svg))
    return renderer.section(
        "distributions",
        "How the effect varies over contexts",
        view=view,
        models=models,
        drawn=len(kept),
        p_names=P_NAMES,
        left_out=len(made) - len(kept),
    )


def distribution_figures(view: RunView) -> Iterable[tuple[str, Result, Drawing]]:
    """One a test and model whose samples were kept."""
    for place, record in enumerate(view.run.manifest.models):
        for result in view.run.results:
            samples = get_samples(view.run, place, result.test)
            if samples is not None and result.pooled_effect_size is not None and belongs_to(result, record):
                name = f"distribution-{place + 1}-{result.test}"
                yield (
                    view.label(result),
                    result,
                    partial(_drawn_distribution, name, result.test, samples, result.pooled_effect_size),
                )


def _drawn_distribution(name: str, title: str, samples: Any, pooled: float, style: Style) -> Figure:
    return draw_distribution(name, title, samples, pooled, style, legend=style.background is not None)


def _contexts_found(view: RunView, renderer: Renderer) -> Section:
    rows = count_contexts(view.run, view.labels)
    return renderer.section(
        "contexts_found", "Contexts found", rows=rows[: _MOST_LINES * 5], left_out=max(0, len(rows) - _MOST_LINES * 5)
    )


def _made(view: RunView, renderer: Renderer) -> Section:
    assumed = {name: [*list_assumptions(run), *list_without_baseline(run)] for name, run in view.gathered.parts.items()}
    return renderer.section("made", "How it was made", view=view, parts=view.gathered.parts, assumed=assumed)


_TEXTS = (_all_tests, _only_these, _matrix, _by_test, _words, _numbers, _lost, _refused, _made)
_CONTEXTS = (
    *(_all_tests, _only_these, _matrix, _by_test, _words, _numbers),
    *(_distributions, _contexts_found, _refused, _made),
)


CROSSED_CITATIONS = (
    CitationUse("words as samples of what they stand for (p)", "clark1973"),
    CitationUse("target words and attribute words as crossed samples (p)", "judd2012"),
    CitationUse("degrees of freedom of the crossed test", "satterthwaite1946"),
    CitationUse("the interval of d", "fieller1954"),
)
"""What the crossed test rests on."""


class AssociationPresenter(Presenter):
    package = "biassay.studies.associations"
    joins_runs = True

    def only(self, run: RunData, patterns: Sequence[str]) -> RunData:
        return restrict_tests(run, patterns)

    def gather(self, runs: Mapping[str, RunData], *, mixed: bool) -> list[RunGroup]:
        return group_association_runs(runs, mixed=mixed)

    def anchor(self, gathered: RunGroup) -> str:
        return RunView(gathered).name

    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        return part_of(RunView(gathered), renderer)

    def print(self, gathered: RunGroup, console: Console, *, everything: bool = False, **_: Any) -> None:
        from biassay.studies.associations.terminal import print_associations

        print_associations(gathered.run, console, everything=everything)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, PaperTable]]:
        from biassay.studies.associations.tables import associations_table, pooled_table

        run = gathered.run
        if run.manifest.inputs.contexts is not None:
            yield "associations-over-contexts", associations_table(run)
            yield "pooled-effects", pooled_table(run)
        else:
            by_text = bool(run.results) and RunView(gathered).of_papers
            yield "associations-by-text" if by_text else "associations", associations_table(run)

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        from biassay.studies.associations.tables import nine_columns

        for one in gathered:
            which = f"-{RunView(one).name}" if len(gathered) > 1 else ""
            yield f"results-as-published{which}", "tsv", nine_columns(one.run)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        view = RunView(gathered)
        yield from (make for _, make in forest_figures(view))
        yield _matrix_drawing(view)
        yield from (make for _, _, make in distribution_figures(view))

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        return cite_tests(runs)

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        yield CitationUse("the method WEAT", "caliskan2017")
        if any(result.level == "sentence" for result in run.results):
            yield CitationUse("the method SEAT", "may2019")
        if run.manifest.inputs.contexts is not None:
            yield CitationUse("the method CEAT", "guo2021")
        for protocol in dict.fromkeys(row.protocol for row in run.results if row.protocol in PAPER_PROTOCOLS):
            yield CitationUse(f"the permutation test of protocol {protocol}", protocol)
        tests = {row.outcome.test for row in run.results if row.p_value is not None}
        if CROSSED in tests:
            yield from CROSSED_CITATIONS
        if any(row.p_adjusted is not None and row.family in ("run", "rows") for row in run.results):
            yield CitationUse("correction for the number of questions", "holm1979")
        if any(row.form_of for row in run.results):
            yield CitationUse("correction of the forms of a question", "goeman2010")
        if FIXED_WORDS in tests and any(row.p_adjusted is not None for row in run.results):
            yield CitationUse("correction of p (these words only)", "tarone1990")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        from biassay.reporting.methods import list_works
        from biassay.studies.associations.methods import methods_sentences

        return methods_sentences(run, list_works(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        return list(model_labels(run).values())

    def card(self, run: RunData, label: str) -> ModelCard:
        from biassay.reporting.model_card import make_card
        from biassay.studies.associations.findings import describe_run, make_index_entry

        labels = model_labels(run)
        own = [result for result in run.results if labels[model_key(result)] == label]
        findings = make_findings(run, label)
        return make_card(
            run, findings, describe_run(run, own), [make_index_entry(result, run) for result in own], [meaning(run)]
        )

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        from biassay.studies.associations.compare import compare_associations

        return compare_associations(runs, baseline=baseline, mixed=mixed)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        from biassay.studies.associations.compare import judge_associations

        return judge_associations(comparison, margin=margin, alpha=alpha)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        from biassay.studies.associations.difference_report import differences_part

        return differences_part(comparison, renderer)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        from biassay.studies.associations.difference_report import print_association_differences

        print_association_differences(comparison, console)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        from biassay.studies.associations.methods import comparison_sentences

        return comparison_sentences(comparison)

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, PaperTable]]:
        from biassay.studies.associations.difference_report import difference_table

        yield "differences", difference_table(comparison)

    def comparison_figures(self, comparison: Comparison) -> Iterator[Drawing]:
        from biassay.studies.associations.difference_report import difference_figures

        return (make for _, make in difference_figures(comparison))


def _matrix_drawing(view: RunView) -> Drawing:
    tests = make_distinct([figure_name(test) for test in view.tests])
    names = {test.test: name for test, name in zip(view.tests, tests, strict=True)}
    cells = [
        MatrixCell(
            view.label(r),
            names[r.test],
            None if (code := get_mark(r)) == NOT_MEASURED else code,
            "" if r.effect_size is None else format_decimal(r.effect_size),
            view.tip(r),
        )
        for r in view.run.results
    ]
    title = "Significant associations"
    return lambda style: draw_matrix(f"matrix-{view.name}", title, cells, tests, view.models, style)
