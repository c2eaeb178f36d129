"""Tables and report of association tests. Numbers are formatted here; the page's script only sorts and filters."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from biassay.datasets.languages import PREFIX, load_languages
from biassay.datasets.schema import ROLES
from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.distribution import P_NAMES, draw_distribution
from biassay.reporting.charts.forest import ForestRow, draw_forest, make_distinct
from biassay.reporting.charts.matrix import CHECK_PASSED, MatrixCell, draw_matrix
from biassay.reporting.document import (
    Block,
    Bullets,
    Cell,
    ColumnSpan,
    Definitions,
    Drawings,
    Explorer,
    Heading,
    Report,
    RowGroup,
    Section,
    Statement,
    Table,
    TableRow,
    Text,
    get_shade,
    make_table,
    side_by_side,
)
from biassay.reporting.findings import format_title, make_statements, rank_evidence
from biassay.reporting.formats import (
    MANY_MODELS,
    clean_line,
    format_concept,
    format_count,
    format_decimal,
    format_examples,
    format_interval,
    format_p,
    format_percent,
    format_share_of_time,
    format_value,
    shorten,
)
from biassay.reporting.methods import CitationUse, MethodsSentence, list_provenance, list_works
from biassay.reporting.model_card import ModelCard, make_card
from biassay.reporting.presenter import Presenter
from biassay.results.comparison import Comparison, SeriesPoint, Verdict
from biassay.results.outcomes import Finding, Result
from biassay.results.run_data import ModelKey, RunData, RunGroup, belongs_to, model_key, model_labels
from biassay.results.tables import Column, format_tsv, make_columns
from biassay.stats.rank_correlation import RankCorrelation, correlate_ranks
from biassay.studies.associations.compare import (
    compare_associations,
    difference_figures,
    difference_table,
    draw_trends,
    group_association_runs,
    judge_associations,
    make_difference_report,
    measure_points,
)
from biassay.studies.associations.findings import (
    ABSENCE,
    FIXED_WORDS_P,
    NOT_MEASURED,
    SENTENCES_P,
    SIDES,
    UNREACHABLE,
    choose_test,
    compute_contributions,
    describe_equivalence,
    describe_run,
    describe_sides,
    describe_unfinished,
    explain_numbers,
    format_context_range,
    format_d_interval,
    format_dropped_words,
    format_fixed_words_p,
    format_headline,
    format_label,
    format_main_p,
    format_published_p,
    get_mark,
    get_sign,
    group_by_topic,
    list_assumptions,
    list_lost_words,
    list_without_baseline,
    make_findings,
    make_index_entry,
    make_legend,
    rank_topic,
)
from biassay.studies.associations.paper import comparison_sentences, methods_sentences
from biassay.studies.associations.results import (
    COLUMNS,
    CROSSED,
    FIXED_WORDS,
    PAPER_COLUMNS,
    SENTENCES,
    MeasureRecord,
    TopicRecord,
    get_samples,
)
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.settings import describe_settings

EFFECTS: Mapping[str | None, str] = {
    CROSSED: "d",
    FIXED_WORDS: "effect",
    SENTENCES: "sentence-level effect",
    None: "effect",
}
LEADING: Mapping[str | None, str] = {CROSSED: "p", FIXED_WORDS: FIXED_WORDS_P, SENTENCES: SENTENCES_P, None: "p"}
"""Labels of the primary effect size and p-value by test; None if not all results have the same test."""


def is_check(result: Result) -> bool:
    """Return whether a result is a sanity check."""
    return bool(result.about == "method")


OTHER = "†"
_NARROW_P = "p (these)"  # columns of a paper are narrow; the caption says which words


def _list_column_names(results: Sequence[Result]) -> tuple[str, ...]:
    """List the heads of the columns of one model."""
    lead = choose_test(results)
    effect = " or ".join(dict.fromkeys(result.scale for result in results)) or "d"
    if lead != CROSSED:
        return effect if lead == FIXED_WORDS else "sentence-level effect", LEADING[lead]
    return effect, f"{_format_confidence(results)} CI", "p", FIXED_WORDS_P


def _format_confidence(results: Sequence[Result]) -> str:
    return " or ".join(format_percent(1.0 - alpha) for alpha in sorted({result.alpha for result in results}) or [0.05])


def _make_result_cells(result: Result | None, lead: str, *, published: bool) -> tuple[Cell, ...]:
    """Make the cells of one result: blank if there is none, a dash where there is no number."""
    n_columns = 4 if lead == CROSSED else 2
    if result is None:
        return (Cell(""),) * n_columns
    if result.effect_size is None:
        return Cell("–" if published else result.status), *(Cell("–"),) * (n_columns - 1)
    sign = get_sign(result)
    effect = Cell(format_decimal(result.effect_size), "" if result.outcome.test == lead else OTHER)
    p = Cell(format_main_p(result).removesuffix(sign), sign)
    if lead != CROSSED:
        return effect, p
    interval = "–" if result.ci_low is None else format_d_interval(result)
    return effect, Cell(interval), p, Cell(format_fixed_words_p(result))


def _explain_other_tests(results: Sequence[Result]) -> Iterator[str]:
    """Explain the mark of results that the table reports with another test."""
    lead = choose_test(results)
    if any(r.status == "measured" and r.outcome.test != lead for r in results):
        yield f"{OTHER} {FIXED_WORDS_P} for a metric of all four sets, {SENTENCES_P} otherwise."


_LONG = 48  # characters; the table lists longer model names below it


def associations_table(run: RunData, *, published: bool = True) -> Table:
    """Make the table of all tests, one line each, by topic, with sanity checks last; models across.

    Parameters
    ----------
    run : RunData
    published : bool
        If True, a table under the papers' protocols shows effect sizes with stars and no p-values, as in the papers. If
        False, list skipped tests, and show claims in a separate column.
    """
    labels = model_labels(run)
    cells = _index_results(run)
    lead = choose_test(run.results)
    columns = ("",) if published and lead == SENTENCES else _list_column_names(run.results)
    if published:
        columns = tuple(_NARROW_P if name == FIXED_WORDS_P else name for name in columns)

    def make_row(test: Result) -> TableRow:
        results = [_make_result_cells(cells.get((test.test, key)), lead, published=published) for key in labels]
        if columns == ("",):  # the stars of the p-value are shown at the effect
            results = [(Cell(effect.text, p.mark),) for effect, p in results]
        names = clean_line(test.test), clean_line(format_label(test))
        return TableRow((": ".join(names),) if published else names, tuple(itertools.chain(*results)))

    groups = tuple(RowGroup(title, tuple(map(make_row, tests))) for title, tests in group_by_topic(run.results))
    caption = _make_table_caption(run, lead)
    return Table(
        caption=f"{caption} {ABSENCE}",
        stub=("Test",) if published else ("Test", "Claim"),
        models=_make_spans(run, labels, columns),
        groups=groups,
        signs=(*_explain_other_tests(run.results), *_list_small(run, labels), *_list_blanks(run, labels)),
        spare=(_NARROW_P if published else FIXED_WORDS_P,) if lead == CROSSED else (),
        brief=caption,
    )


def pooled_table(run: RunData) -> Table:
    """Make the table of the CEAT paper: pooled effect sizes, shaded by size, and their p-values."""
    if run.manifest.inputs.contexts is None:
        raise UsageError("this run is not over contexts: it has no pooled effects; use associations_table")
    labels, measured = model_labels(run), {row.test for row in run.results if row.effect_size is not None}
    cells = {}
    for row in run.results:
        if row.test in measured:
            pooled, item = row.pooled_effect_size, f"{row.test}: {format_label(row)}"
            effect = Cell(format_decimal(pooled), shade=get_shade(pooled))
            cells[item, labels[model_key(row)]] = effect, Cell(format_published_p(row))
    return side_by_side(_make_pooled_caption(run), "Test", cells, ("d", "p"))


def _index_results(run: RunData) -> dict[tuple[str, ModelKey], Result]:
    return {(result.test, model_key(result)): result for result in run.results}


def _make_spans(run: RunData, labels: Mapping[ModelKey, str], columns: tuple[str, ...]) -> tuple[ColumnSpan, ...]:
    """Make the columns of the models, with notes on long names and on tests that were not measured."""
    unmeasured = group_pairs((model_key(row), row.test) for row in run.results if row.effect_size is None)
    spans = []
    for number, (key, label) in enumerate(labels.items(), start=1):
        name = clean_line(label)
        title = name if len(name) <= _LONG else f"Model {number}"
        notes = [] if title == name else [f"{title}: {name}."]
        if key in unmeasured:
            notes.append(clean_line(f"– not measured on {title}: {', '.join(unmeasured[key])}."))
        spans.append(ColumnSpan(title, columns, tuple(notes)))
    return tuple(spans)


def _make_table_caption(run: RunData, lead: str) -> str:
    signs = f"{make_legend(run.results)}." if run.results else ""
    described = _describe_columns(run, lead)
    return _join_sentences("Effect sizes of association tests.", *described, signs, describe_unfinished(run))


def _describe_columns(run: RunData, lead: str) -> Iterable[str]:
    """Describe the columns and their sampling units."""
    protocols = " and ".join(dict.fromkeys(r.protocol for r in run.results))
    sides = " or ".join(dict.fromkeys(SIDES.get(r.alternative, r.alternative) for r in run.results))
    if lead == SENTENCES:
        yield "Effect sizes are in standard deviations; every text is an observation."
        yield f"Protocol {protocols}, {sides}; it assumes that texts of one word are independent, which they are not."
    if lead == CROSSED:
        yield "d: effect size in standard deviations, over words whose texts are averaged."
        yield "The interval and p (two-sided) treat target words and attribute words as samples."
    if lead == FIXED_WORDS:
        yield "Words are observations: the texts of a word are averaged."
    if lead in (CROSSED, FIXED_WORDS):
        yield f"{_NARROW_P}: p for these words only, by permutation of the target words, {sides}."


def _make_pooled_caption(run: RunData) -> str:
    over = run.manifest.settings
    drawn = "the same for all models" if over.mode == "fixed" else "drawn independently per model"
    what = f"Pooled effects over contexts (CEAT): {over.n_samples:,} samples of contexts, {drawn}."
    d = "d: pooled effect size, rounded to the nearest (the paper rounds down)."
    p = "p: two-sided, by the random-effects model over samples; it does not generalize to other words."
    return _join_sentences(what, d, p, describe_unfinished(run), ABSENCE)


def _join_sentences(*sentences: str) -> str:
    return clean_line(" ".join(sentence for sentence in sentences if sentence))


def _list_small(run: RunData, labels: Mapping[ModelKey, str]) -> Iterable[str]:
    """List the effects that are shown to be smaller than the margin."""
    for row in run.results:
        if row.p_equivalence is not None and row.p_equivalence <= row.alpha and (text := describe_equivalence(row)):
            yield clean_line(f"{row.test} on {labels[model_key(row)]}: {text}.")


def _list_blanks(run: RunData, labels: Mapping[ModelKey, str]) -> Iterable[str]:
    if len(_index_results(run)) < len(labels) * len({result.test for result in run.results}):
        yield "A blank cell: this test is not among the results of this model."


@dataclass(frozen=True)
class RunView:
    """Results of one or several runs, those over texts or those over contexts."""

    gathered: RunGroup

    @property
    def run(self) -> RunData:
        """The run."""
        return self.gathered.run

    @property
    def over_contexts(self) -> bool:
        """If True, the results are over contexts."""
        return self.run.manifest.inputs.contexts is not None

    @property
    def name(self) -> str:
        """Name for anchors and files."""
        return "contexts" if self.over_contexts else "texts"

    @cached_property
    def labels(self) -> Mapping[tuple[str, str, str | None], str]:
        """Labels of models."""
        return model_labels(self.run)

    @cached_property
    def models(self) -> list[str]:
        """Labels of models, in order."""
        return list(self.labels.values())

    @cached_property
    def results(self) -> list[Result]:
        """Results of the run by topic, sanity checks last."""
        return sorted(self.run.results, key=lambda row: (is_check(row), rank_topic(row.topic)))

    @cached_property
    def tests(self) -> list[Result]:
        """One result of every test, for its name and claim."""
        return list({r.test: r for r in reversed(self.results)}.values())[::-1]

    @cached_property
    def test(self) -> str | None:
        """The primary test, if it is the same for all results."""
        tests = {r.outcome.test for r in self.run.results if r.status == "measured"}
        return tests.pop() if len(tests) == 1 else None

    @property
    def confidence(self) -> str:
        """Confidence of the intervals."""
        return f"{100 * (1 - self.run.manifest.settings.alpha_or_default):g}%"

    @property
    def signs(self) -> str:
        """Explanation of the signs beside p-values, and of the direction of the tests."""
        return "; ".join(filter(None, [make_legend(self.results), describe_sides(self.results)]))

    @property
    def axis(self) -> str:
        """Title of the axis of effects."""
        effect = "effect size d" if self.test == CROSSED else EFFECTS[self.test]
        return f"{effect} ({self.confidence} CI)" if self.test == CROSSED else effect

    def label(self, result: Result) -> str:
        """Return the label of the model of a result."""
        return self.labels[model_key(result)]

    def interval(self, result: Result) -> str:
        """Format the interval of a result."""
        return "–" if result.ci_low is None else format_d_interval(result)

    def tip(self, result: Result) -> str:
        """Format the tooltip of a result."""
        name = f"{result.test} on {self.label(result)}"
        if result.status != "measured":
            return f"{name}: {result.status}. {result.reason or ''}".strip()
        test = result.outcome.test
        interval = "" if result.ci_low is None else f", {self.confidence} {self.interval(result)}"
        after = "" if result.p_adjusted is None else f" (after correction {format_p(result.p_adjusted)})"
        by_word = "" if test == FIXED_WORDS else f", {FIXED_WORDS_P} {format_fixed_words_p(result)}"
        reached = format_share_of_time(result.share_random or 0.0, result.random_sets)
        share = "" if result.share_random is None else f" Random word sets reach this effect {reached}."
        return (
            f"{name}. {format_label(result)}. {EFFECTS[test]} {format_decimal(result.effect_size)}{interval}; "
            f"{LEADING[test]} {format_main_p(result)}{after}{by_word}.{share}"
        )


_CI = "Confidence interval of d over other target and attribute words of the same kinds."
_P = {
    CROSSED: "Tests whether the association extends to other target and attribute words of the same kinds. Two-sided.",
    FIXED_WORDS: "Share of random splits of the target words with an effect at least as large.",
    SENTENCES: "P-value under the protocol of the run, with every text as an observation.",
}
_FOR_THESE = f"{_P[FIXED_WORDS]} It does not generalize to other attribute words."


def _make_column(label: str, help: str, get: Callable[[Result], str]) -> Column:
    return Column(label, label, help, "text", get)


def _get_column(name: str, label: str = "") -> Column:
    """Return a column of results.tsv, with a shorter label if one is given."""
    return replace(_COLUMNS[name], label=label or _COLUMNS[name].label)


_COLUMNS = {column.name: column for column in COLUMNS}
_OVER_CONTEXTS = (
    _get_column("pooled_effect_size"),
    _make_column(
        "new contexts",
        "Range of 95% of the effects of these words in new contexts from new documents. A dash if some word has "
        "contexts from one document only.",
        lambda row: format_interval(row.new_contexts_low, row.new_contexts_high),
    ),
    _make_column("pooled p", "P-value of the pooled effect. It shrinks as you draw more samples.", format_published_p),
    _get_column("share_significant", "samples significant"),
    _make_column("contexts per word", "Fewest, median and most contexts of a word.", format_context_range),
)


def _format_cell(column: Column, result: Result) -> str:
    return format_value(column.format, column.value(result))


def group_columns(view: RunView) -> dict[str, list[Column]]:
    """Group all columns that hold anything by the name under which they are shown."""
    measured = [r for r in view.run.results if r.status == "measured"]
    over_words = [_get_column("fixed_words_p_opposite"), _get_column("fixed_words_p_floor")]
    over_texts = [
        _get_column("sentences_effect_size"),
        _make_column("sentence-level p", _COLUMNS["sentences_p_value"].help, format_published_p),
    ]
    groups = {
        "main": _list_main_columns(view),
        "size and variance": _list_size_columns(view),
        "other p-values": [
            *over_words,
            *([] if view.over_contexts or view.test == SENTENCES else over_texts),
            _get_column("shared_templates", "shared templates"),
        ],
        "over contexts": list(_OVER_CONTEXTS) if view.over_contexts else [],
    }
    filled = {
        name: [column for column in group if any(_format_cell(column, r) not in ("–", "") for r in measured)]
        for name, group in groups.items()
    }
    return {name: group for name, group in filled.items() if group} or {"main": groups["main"][:1]}


def _list_main_columns(view: RunView) -> list[Column]:
    test = view.test
    effect = "Effect size, with every text as an observation." if test == SENTENCES else "Effect size d over words."
    first = _make_column(LEADING[test], _P[test or CROSSED], format_main_p)
    these_words = _make_column(FIXED_WORDS_P, _FOR_THESE, format_fixed_words_p)
    return [
        _make_column(EFFECTS[test], effect, lambda r: format_decimal(r.effect_size)),
        _make_column(f"{view.confidence} CI", _CI, view.interval),
        first,
        _make_column(
            f"{first.label}, corrected", "P-value after correction over its family.", lambda r: format_p(r.p_adjusted)
        ),
        *([] if test == FIXED_WORDS else [these_words]),
        replace(_COLUMNS["share_random"], format="text", get=_format_random_share),
    ]


def _list_size_columns(view: RunView) -> list[Column]:
    """List the columns of D and its variance; under the papers' protocols also those of d over words."""
    words = [
        _get_column("fixed_words_effect_size", "d"),
        _make_column(f"d, {view.confidence}", _CI, format_d_interval),
        _make_column("p (words as samples)", _P[CROSSED], lambda r: format_p(r.crossed_p_value)),
    ]
    return [
        *([] if view.test == CROSSED else words),
        _make_column("D", _COLUMNS["cosine_difference"].help, lambda r: _format_cosine(r.cosine_difference)),
        _make_column(
            f"D, {view.confidence}",
            "Confidence interval of D, with words as samples of their kinds.",
            _format_D_interval,
        ),
        _get_column("crossed_df", "df"),
        _get_column("share_targets", "target words"),
        _get_column("share_attributes", "attribute words"),
        _get_column("share_residual"),
        *([] if view.test == SENTENCES else [_get_column("power_80")]),
        _make_column("margin", _COLUMNS["margin"].help, lambda r: "–" if r.margin is None else f"{r.margin:g}"),
        _get_column("p_equivalence"),
    ]


def _format_cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:z.3f}"


def _format_D_interval(row: Result) -> str:
    if row.cosine_ci_low is None:
        return "–"
    return f"[{_format_cosine(row.cosine_ci_low)}, {_format_cosine(row.cosine_ci_high)}]"


def _format_random_share(row: Result) -> str:
    if row.share_random == 0.0 and row.random_sets:
        return f"<{100.0 / row.random_sets:.2g}%"
    return format_value("share", row.share_random)


_MOST_WITH_WORDS = 3000


def make_explorer_data(view: RunView) -> dict[str, Any]:
    """Make the data of the explorers: models, tests, and a row per result with model, test, mark and cells."""
    models = {label: index for index, label in enumerate(view.models)}
    tests = {test.test: index for index, test in enumerate(view.tests)}
    groups = choose_columns(view)
    columns = [column for group in groups.values() for column in group]
    data: dict[str, Any] = {
        "models": view.models,
        "tests": [
            [t.test, format_label(t), *map(format_concept, (t.targ1, t.targ2, t.attr1, t.attr2))] for t in view.tests
        ],
        "columns": [[column.label, column.help] for column in columns],
        "groups": [[name, len(group)] for name, group in groups.items()],
        "rows": [
            [
                models[view.label(r)],
                tests[r.test],
                get_mark(r),
                int(only_these_words(r)),
                *([_format_cell(column, r) for column in columns] if r.status == "measured" else [r.status]),
            ]
            for r in view.results
        ],
        "reasons": {str(i): r.reason for i, r in enumerate(view.results) if r.reason},
    }
    if can_show_words(view):
        words, shares = _make_words_data(view)
        data |= {"words": words, "shares": shares}
    return data


def only_these_words(result: Result) -> bool:
    """Return whether a result is significant for these words, or these texts, and not for the concepts."""
    narrow = result.published.p_value if result.outcome.test == SENTENCES else result.fixed_words_p_value
    if result.cosine_difference is None or narrow is None or narrow > result.alpha:
        return False
    return result.crossed_p_value is None or result.crossed_p_value > result.alpha


def choose_columns(view: RunView) -> dict[str, list[Column]]:
    """Choose the columns that the report has room for; only the main ones of very many results."""
    groups = group_columns(view)
    return groups if _is_detailed(view) else dict(list(groups.items())[:1])


def _is_detailed(view: RunView) -> bool:
    return len(view.run.results) <= _MOST_WITH_WORDS


def can_show_words(view: RunView) -> bool:
    """Return whether the words behind the results are known, and few enough for a report."""
    return _is_detailed(view) and any(compute_contributions(r) is not None for r in view.run.results)


def _make_words_data(view: RunView) -> tuple[list[list[list[str]]], list[list[list[float | None]] | None]]:
    """List the words of every test by role, and their contributions to every result; None if unknown."""
    of_test: dict[str, list[dict[str, None]]] = {test.test: [{} for _ in ROLES] for test in view.tests}
    for r in view.results:
        for index, role in enumerate(ROLES):
            of_test[r.test][index] |= dict.fromkeys(r.associations.get(role, {}))
    shares: list[list[list[float | None]] | None] = []
    for r in view.results:
        found = compute_contributions(r)
        if found is None:
            shares.append(None)
            continue
        shares.append(
            [
                [round(share, 3) if math.isfinite(share := found[role].get(word, math.nan)) else None for word in words]
                for role, words in zip(ROLES, of_test[r.test], strict=True)
            ]
        )
    return [[list(words) for words in of_test[test.test]] for test in view.tests], shares


_MOST_LINES = 200
_MOST_FOREST_MODELS = 6  # in one figure
_CODE = 60  # characters of a code name in a figure
_MOST_DISTRIBUTIONS = 150
_MOST_ROWS = 16  # words to reserve room for
_FALLBACK = "Enable JavaScript to see this; results.json and results.tsv hold the same numbers."
_WORDS = (
    "Each bar shows how much a word adds to the effect. Bars to the right make it larger. For attribute words, the bar "
    "shows how much closer the word is to the first targets than to the second, in standard deviations over targets."
)


def make_report(view: RunView) -> Report:
    """Build the report of the runs of a view."""
    findings = sorted(
        make_findings(view.run, brief=len(view.models) > MANY_MODELS), key=lambda finding: rank_topic(finding.topic)
    )
    models = ", ".join(view.models)
    if len(view.models) > MANY_MODELS:
        models = format_count(len(view.models), "model")
    over = "Associations over contexts in" if view.over_contexts else "Associations in"
    return Report(
        title=format_title(findings),
        subject=f"{over} {models or 'no model'}",
        headline=format_headline(view.run),
        findings=findings,
        sections=[
            Section("tests", "All tests", tuple(_list_test_blocks(view)), printed=True),
            *_make_words_section(view),
            *_make_measures_section(view),
            *_make_languages_section(view),
            *_make_distribution_section(view),
            Section("methods", "Methods and provenance", tuple(_list_method_blocks(view))),
        ],
        statements=make_statements(findings),
        meaning=explain_numbers(view.run),
        notes=_notes(view),
        remarks=_list_remarks(view),
        caption=_make_caption(findings),
        terms=_terms(view),
        data=make_explorer_data(view),
    )


def _make_caption(findings: Sequence[Finding]) -> str:
    """Explain the direction of the axis with the largest effect of the run."""
    known = [
        finding
        for finding in findings
        if finding.about == "people" and finding.effect is not None and finding.direction
    ]
    if not known:
        return ""
    first = max(known, key=lambda finding: (rank_evidence(finding), abs(finding.effect or 0.0)))
    reads = f"{first.direction[0].lower()}{first.direction[1:]}"
    return f"An effect of {format_decimal(first.effect)} in {first.item} reads: {reads}."


def _notes(view: RunView) -> list[str]:
    """List warnings: incomplete runs, differences between runs, tests found by searching."""
    notes = [note for name, run in view.gathered.parts.items() if (note := describe_unfinished(run, name))]
    if view.gathered.differences:
        notes.append("These runs differ: " + "; ".join(view.gathered.differences) + ".")
    searched = group_pairs(((view.label(r), r.doubt), r.test) for r in view.run.results if r.searched)
    notes += [f"{label}, {', '.join(tests)}: {doubt}" for (label, doubt), tests in searched.items()]
    return notes


def _list_remarks(view: RunView) -> list[str]:
    """List reasons for skipped tests, each once, then assumptions and out-of-vocabulary words."""
    reasons = group_pairs(((view.label(r), f"{r.status}: {r.reason}"), r.test) for r in view.run.results if r.reason)
    remarks = [f"{label}, {', '.join(tests)}: {reason}" for (label, reason), tests in reasons.items()]
    run = view.run
    return [*remarks, *list_assumptions(run), *list_lost_words(run), *list_without_baseline(run)]


def _terms(view: RunView) -> dict[str, str]:
    """Explain the terms and signs of the report."""
    crossed = {
        f"{view.confidence} CI": "Range of d that is compatible with these words as samples of their kinds. It "
        "excludes zero exactly if p is at most alpha.",
        "p": "Tests whether the association extends to other target and attribute words of the same kinds. A small p "
        "means that the choice of words alone rarely produces such an effect.",
        FIXED_WORDS_P: _FOR_THESE,
        "random baseline": "How often random words, used as attributes, reach a d at least as large.",
    }
    return {
        "d": "How much more the first targets are associated with the first attributes than the second targets are, in "
        "standard deviations over the target words. 0 is none; about 2 is the largest possible value.",
        **(crossed if view.test == CROSSED else {}),
        "* and **": view.signs,
    }


def _list_test_blocks(view: RunView) -> Iterator[Block]:
    """List the blocks of the section on all tests: one table, then skipped tests and warnings."""
    if len(view.models) <= MANY_MODELS:
        yield _make_tests_table(view)
    else:
        longest = max(len(test.test) for test in view.tests)
        yield Text(
            "One cell per model and test: ** significant, * before correction only, ‡ too few words for a p-value, – "
            "not measured. Point at a cell, or move through them with the arrow keys, for its numbers."
        )
        yield Explorer("matrix", min(len(view.models), 50) * 1.6 + longest * 0.5 + 4, _FALLBACK)
    yield from _make_topic_blocks(view)
    if len(view.models) > 3:
        yield Heading("Every test over all models")
        yield _make_models_table(view)
    if remarks := _list_remarks(view):
        more = [f"and {len(remarks) - _MOST_LINES:,} more; see results.tsv"] if len(remarks) > _MOST_LINES else []
        yield Heading("Skipped tests and words")
        yield Bullets(tuple(map(Statement, [*remarks[:_MOST_LINES], *more])))
    if view.over_contexts:
        yield Heading("Contexts per word")
        yield _make_contexts_table(view)
    yield Heading("All numbers")
    yield Explorer("numbers", min(25, len(view.run.results)) * 2.1 + 8, _FALLBACK)
    yield Definitions(tuple((c.label, c.help) for group in choose_columns(view).values() for c in group))


def _make_tests_table(view: RunView) -> Table:
    """Make the table of all tests and models as for papers, with help texts instead of a caption."""
    table = associations_table(view.run, published=False)
    helps = {column.label: column.help for column in _list_main_columns(view)}
    spans = tuple(replace(span, notes=()) for span in table.models)
    return replace(table, caption="", models=spans, signs=(f"{view.signs}.", *table.signs), help=helps)


def _make_models_table(view: RunView) -> Table:
    """Make the table of every test over all models."""
    by_test = group_pairs((result.test, result) for result in view.run.results)
    names = ("measured", "significant", "before correction only", "too few words", "effect: smallest, median, largest")
    rows = [TableRow((test.test, format_label(test)), _make_models_cells(by_test[test.test])) for test in view.tests]
    return Table("", ("Test", "Claim"), tuple(map(ColumnSpan, names)), (RowGroup("", tuple(rows)),))


def _make_models_cells(results: Sequence[Result]) -> tuple[Cell, ...]:
    codes = [get_mark(r) for r in results]
    sizes = [size for r in results if (size := r.effect_size) is not None and math.isfinite(size)]
    spread = f"{min(sizes):.2f}, {statistics.median(sizes):.2f}, {max(sizes):.2f}" if sizes else "–"
    numbers = sum(r.status == "measured" for r in results), *(codes.count(code) for code in (2, 1, UNREACHABLE))
    return (*(Cell(f"{number:,}") for number in numbers), Cell(spread))


def _list_forests(view: RunView) -> Iterator[Drawing]:
    """Yield one forest plot per model with results."""
    for number, label in enumerate(view.models, start=1):
        rows = [_make_forest_row(view, r) for r in view.results if view.label(r) == label and r.effect_size is not None]
        if rows:
            yield partial(draw_forest, f"forest-{view.name}-{number}", label, rows, axis=view.axis)


def _draw_models_forest(view: RunView) -> Drawing:
    """Return the forest plot of all models; sanity checks come last."""
    by_test = group_pairs((r.test, r) for r in view.results if r.effect_size is not None)
    rows = [
        replace(_make_forest_row(view, result), model=view.label(result))
        for results in by_test.values()
        for result in sorted(results, key=lambda result: view.models.index(view.label(result)))
    ]
    title = ", ".join(view.models)
    return partial(draw_forest, f"forest-{view.name}", title, rows, axis=view.axis)


def _make_forest_row(view: RunView, result: Result) -> ForestRow:
    mark = get_mark(result)
    return ForestRow(
        figure_name(result),
        result.effect_size,
        result.ci_low,
        result.ci_high,
        3 if is_check(result) else mark if mark <= 2 else 0,
        view.tip(result),
    )


def figure_name(result: Result) -> str:
    """Name a test in a figure: its claim, and its code name in brackets, which is cut if it is long."""
    code = shorten(result.test, _CODE, middle=True)
    return f"{format_label(result)} ({code}{', sanity check' if is_check(result) else ''})"


def _make_words_section(view: RunView) -> list[Section]:
    """Make the section on words; the script shows one test on one model at a time, the strongest finding first."""
    if not can_show_words(view):
        return []
    first = next(r for r in view.results if r.associations)
    rows = min(_MOST_ROWS, max(map(len, first.associations.values())))
    return [Section("words", "Words", (Text(_WORDS), Explorer("words", rows * 1.5 + 9, _FALLBACK)))]


def _make_distribution_section(view: RunView) -> list[Section]:
    made = list(distribution_figures(view))
    if not made:
        return []
    shown = sorted(made, key=lambda drawing: -abs(drawing[1].pooled_effect_size or 0.0))[:_MOST_DISTRIBUTIONS]
    drawings = tuple((f"{format_label(drawing[1])} ({drawing[0]})", drawing[2]) for drawing in made if drawing in shown)
    omitted = f" The {len(made) - len(drawings):,} smallest effects are not shown." if len(made) > len(drawings) else ""
    text = (
        f"Each figure shows the effect sizes of {view.run.manifest.settings.n_samples:,} samples of one test, with one "
        f"context per word in each sample. The colour of a bar is the mean one-sided p-value of its samples, from dark "
        f"to light: {', '.join(P_NAMES)}. The solid line is the pooled effect, the dashed line is zero.{omitted}"
    )
    return [Section("distributions", "Variation over contexts", (Text(text), Drawings(drawings, small=True)))]


def distribution_figures(view: RunView) -> Iterable[tuple[str, Result, Drawing]]:
    """Yield one figure per test and model whose samples were kept."""
    for index, record in enumerate(view.run.manifest.models):
        for result in view.run.results:
            samples = get_samples(view.run, index, result.test)
            if samples is not None and result.pooled_effect_size is not None and belongs_to(result, record):
                name = f"distribution-{index + 1}-{result.test}"
                yield (
                    view.label(result),
                    result,
                    partial(_draw_distribution_figure, name, result.test, samples, result.pooled_effect_size),
                )


def _draw_distribution_figure(name: str, title: str, samples: Any, pooled: float, style: Style) -> Figure:
    return draw_distribution(name, title, samples, pooled, style, legend=style.background is not None)


def _make_contexts_table(view: RunView) -> Table:
    def count_words(row: Result) -> str:
        kept = sum(row.num_words.values())
        return f"{kept} of {kept + sum(map(len, row.oov_words.values()))}"

    columns = (
        Column("test", "Test", "Name of the test."),
        Column("model", "Model", "Model.", get=view.label),
        _make_column("words with contexts", "Words of the test with enough contexts.", count_words),
        _make_column("contexts per word: fewest, median, most", "Contexts of a word.", format_context_range),
        _make_column("dropped words with their contexts", "Words with too few contexts.", format_dropped_words),
    )
    return make_table("", columns, view.run.results, _MOST_LINES * 5)


def _list_method_blocks(view: RunView) -> Iterator[Block]:
    """List how the numbers were made: signs, sources, then settings and models of every run."""
    sources = dict.fromkeys(test.citation for test in view.run.manifest.inputs.tests)
    yield Text(explain_numbers(view.run))
    yield Definitions((("Signs", view.signs), ("Tests from", "; ".join(sources))))
    for name, run in view.gathered.parts.items():
        if len(view.gathered.parts) > 1:
            yield Heading(name)
        yield Definitions((*_list_settings(run), *list_provenance(run.manifest)))


def _list_settings(run: RunData) -> Iterator[tuple[str, str]]:
    """Yield the settings that have a value, and describe the contexts."""
    contexts = run.manifest.inputs.contexts
    left_out = ("tests",) if contexts else ("tests", "contexts", "n_samples")
    yield from describe_settings(run.manifest.settings, leave_out=left_out)
    if contexts:
        yield (
            "Contexts",
            f"{contexts.rows:,} in {contexts.file} ({contexts.digest[:12]}), at most {contexts.per_stimulus:,} per "
            f"word, from {contexts.documents:,} documents ({contexts.bytes / 1e6:.1f} MB), seed {contexts.seed}",
        )
        found_with = "".join(f"; {name} {value}" for name, value in contexts.found_with.items())
        yield "Corpus", f"{format_examples(contexts.corpus, 20) or 'unknown'}{found_with}"


_TOPICS = (
    "Mean of the calibrated differences of a topic's questions, in the direction of the stereotype, for other tests of "
    "the same kind. The tests share words, and the interval accounts for it. Only tests with an expected direction "
    "count."
)


def _make_topic_blocks(view: RunView) -> Iterator[Block]:
    """Yield the table of topic effects; nothing if no topic has enough tests."""
    rows: Sequence[TopicRecord] = view.run.tables.get("topics", ())
    if not rows:
        return
    columns = {column.name: column for column in make_columns(TopicRecord)}
    interval = "Interval for other tests of the same kind."
    yield Heading("Topic effects")
    yield Text(_TOPICS)
    yield make_table(
        "Topic effects",
        (
            columns["topic"],
            Column("model", "model", "Model.", get=view.label),
            Column("tests", "questions", columns["tests"].help, "count", lambda row: len(row.tests)),
            columns["topic_effect"],
            Column("interval", "95% CI", interval, "interval", lambda row: (row.topic_ci_low, row.topic_ci_high)),
            columns["topic_p_value"],
            columns["between_sd"],
        ),
        rows,
    )


_STARRED = 0.05
_FEWEST_TESTS = 6
_MEASURES = (
    "Each row is a social-bias test of words. d is WEAT's effect size; the other columns are published measures of the "
    "same vectors. A star marks a p-value (these words only) below .05, not corrected. RIPA, SAME and RND are "
    "positive where X rather than Y is associated with A. 1 - ECT, MAC, DirectBias and RNSB have no direction, and the "
    "last three have no p-value."
)
_AGREEMENT = (
    "Spearman's correlation with d over these tests, with a 95% interval; for measures without a direction, with the "
    "size of d. An interval that contains 0 does not show that a measure agrees with d."
)


def _make_measures_section(view: RunView) -> list[Section]:
    """Return the section on other measures: one table per model, and agreement with d; empty if none were computed."""
    blocks: list[Block] = [Text(_MEASURES)]
    agreement: list[TableRow] = []
    titles: tuple[str, ...] = ()
    for model in view.run.manifest.models:
        people = [r for r in view.run.results if belongs_to(r, model) and r.about == "people" and r.level == "word"]
        results = [r for r in people if r.effect_size is not None]
        tests = {r.test for r in results}
        records = [r for r in view.run.tables.get("measures", ()) if belongs_to(r, model) and r.test in tests]
        if not records:
            continue
        label, by_measure = view.label(records[0]), group_pairs((r.measure_title, (r.test, r)) for r in records)
        measures, titles = [dict(own) for own in by_measure.values()], tuple(by_measure)
        rows = [
            TableRow((r.test,), tuple(_make_score_cells(r, [own.get(r.test) for own in measures]))) for r in results
        ]
        blocks.append(Table(label, ("test",), tuple(map(ColumnSpan, ("d", *titles))), (RowGroup("", tuple(rows)),)))
        found = [_correlate_with_effects(results, own) for own in measures if len(own) >= _FEWEST_TESTS]
        cells = [Cell(f"{format_decimal(one.correlation)} {format_interval(one.low, one.high)}") for one in found]
        agreement += [TableRow((label,), tuple(cells))] if len(found) == len(measures) else []
    if agreement:
        blocks.append(Text(_AGREEMENT))
        group = RowGroup("", tuple(agreement))
        blocks.append(Table("Agreement with d", ("model",), tuple(map(ColumnSpan, titles)), (group,)))
    return [Section("measures", "Other measures", tuple(blocks))] if titles else []


def _make_score_cells(result: Result, records: Sequence[MeasureRecord | None]) -> Iterator[Cell]:
    """Yield cells for d and the other measures, tinted by sign and starred if p is small."""
    scores = [(r.score, r.score_p_value, r.signed) if r else (None, None, False) for r in records]
    for score, p, signed in ((result.effect_size, result.fixed_words_p_value, True), *scores):
        reached = p is not None and p <= _STARRED
        tint = math.copysign(0.8 if reached else 0.2, score or 0.0) if signed else None
        yield Cell("–") if score is None else Cell(f"{score:z.3f}", mark="*" if reached else "", tint=tint)


def _correlate_with_effects(results: Sequence[Result], records: Mapping[str, MeasureRecord]) -> RankCorrelation:
    """Correlate the scores of one measure with d, or with the size of d if the measure has no direction."""
    pairs = [(r.effect_size or 0.0, records[r.test]) for r in results if r.test in records]
    effects = np.array([effect if record.signed else abs(effect) for effect, record in pairs])
    return correlate_ranks(effects, np.array([record.score for _, record in pairs]))


_LANGUAGE_CONFIDENCE = 0.95
_LANGUAGES = (
    "Calibrated differences of the same tests in several languages: D divided by the standard deviation of cosines "
    "between frequent English words. The intervals are simultaneous: with 95% confidence, all of them are correct "
    "over the tests and languages of a model. Word lists are translations, so languages may differ because "
    "their lists do."
)
_LANGUAGE_EVIDENCE = ("interval contains 0", "", "interval excludes 0")


def _make_languages_section(view: RunView) -> list[Section]:
    """Return the section on languages; empty if fewer than two languages share a test."""
    blocks: list[Block] = []
    drawings: list[tuple[str, Drawing]] = []
    for model in view.run.manifest.models:
        results = [
            r
            for r in view.run.results
            if belongs_to(r, model) and r.test.startswith(f"{PREFIX}-")
            if None not in (r.calibrated_difference, r.cosine_standard_error, r.df)
        ]
        if len({r.language for r in results}) < 2:
            continue
        label = view.label(results[0])
        rows = [_make_language_row(r, len(results)) for r in results]
        axis = "calibrated difference, simultaneous 95% intervals"
        draw = partial(draw_forest, f"languages-{label}", label, rows, axis=axis, names=_LANGUAGE_EVIDENCE)
        drawings.append((label, draw))
        columns = (
            Column("label", "test, language", "Number of the test, and its language."),
            Column("effect_size", "calibrated difference", "D divided by the cosine SD.", "number"),
            Column("interval", "simultaneous 95% CI", "Interval.", "interval", lambda row: (row.low, row.high)),
        )
        blocks.append(make_table(label, columns, rows))
    if not blocks:
        return []
    return [Section("languages", "Languages", (Text(_LANGUAGES), Drawings(tuple(drawings)), *blocks))]


def _make_language_row(result: Result, n_results: int) -> ForestRow:
    """Make the row of a test, with a simultaneous interval over all tests of the model (Bonferroni)."""
    quantile = float(scipy.special.stdtrit(result.df, 1.0 - (1.0 - _LANGUAGE_CONFIDENCE) / (2.0 * n_results)))
    half = quantile * result.cosine_standard_error / result.cosine_sd
    low, high = result.calibrated_difference - half, result.calibrated_difference + half
    number = str(result.test.split("-", 2)[2])  # the part of the name that languages share: weat6 of weathub-de-weat6
    tip = f"{result.title}: {format_decimal(result.calibrated_difference)}, {format_interval(low, high)}"
    label = f"{number}, {load_languages()[result.language]}"
    return ForestRow(label, result.calibrated_difference, low, high, 0 if low <= 0.0 <= high else 2, tip)


CROSSED_CITATIONS = (
    CitationUse("words as a random factor (p)", "clark1973"),
    CitationUse("target words and attribute words as crossed random factors (p)", "judd2012"),
    CitationUse("degrees of freedom (p)", "satterthwaite1946"),
    CitationUse("the interval of d", "fieller1954"),
)
"""Works on which p and the interval of d are based."""


class AssociationPresenter(Presenter):
    """Presenter of association tests."""

    joins_runs = True

    def gather(self, runs: Mapping[str, RunData], *, mixed: bool) -> list[RunGroup]:
        """Merge runs over texts, and runs over contexts."""
        return group_association_runs(runs, mixed=mixed) if len(runs) > 1 else super().gather(runs, mixed=mixed)

    def anchor(self, gathered: RunGroup) -> str:
        """Return the anchor of the part in the report."""
        return RunView(gathered).name

    def report(self, gathered: RunGroup, **_: Any) -> Report:
        """Build the report."""
        return make_report(RunView(gathered))

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the tables of a paper."""
        run = gathered.run
        if run.manifest.inputs.contexts is not None:
            yield "associations-over-contexts", associations_table(run)
            yield "pooled-effects", pooled_table(run)
        else:
            is_by_text = bool(run.results) and all(row.protocol in PAPER_PROTOCOLS for row in run.results)
            yield "associations-by-text" if is_by_text else "associations", associations_table(run)

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        """Yield the nine columns of the papers."""
        for group in gathered:
            which = f"-{RunView(group).name}" if len(gathered) > 1 else ""
            yield f"results-as-published{which}", "tsv", format_tsv(PAPER_COLUMNS, group.run.results)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield the figures."""
        view = RunView(gathered)
        if 1 < len(view.models) <= _MOST_FOREST_MODELS:
            yield _draw_models_forest(view)
        yield from _list_forests(view)
        yield _make_matrix(view)
        yield from (make for _, _, make in distribution_figures(view))

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
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
        """Yield the sentences of the methods section."""
        return methods_sentences(run, list_works(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        """Return the labels of the models."""
        return list(model_labels(run).values())

    def card(self, run: RunData, label: str) -> ModelCard:
        """Make the model card of one model."""
        labels = model_labels(run)
        own = [result for result in run.results if labels[model_key(result)] == label]
        findings = make_findings(run, label)
        return make_card(
            run,
            findings,
            describe_run(run, own),
            [make_index_entry(result, run) for result in own],
            [explain_numbers(run)],
        )

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare all models with the baseline; see `Presenter.compare`."""
        return compare_associations(runs, baseline=baseline, mixed=mixed)

    def compare_series(self, runs: Mapping[str, RunData], *, mixed: bool) -> Comparison:
        """Compare both ends of the trend over checkpoints."""
        return compare_associations(runs, baseline=None, mixed=mixed, series=True)

    def series_points(self, comparison: Comparison, alpha: float) -> tuple[SeriesPoint, ...]:
        """Measure the growth at every checkpoint of a series."""
        return measure_points(comparison, alpha)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        """Judge the social-bias tests; see `Presenter.verdicts`."""
        return judge_associations(comparison, margin=margin, alpha=alpha)

    def comparison_report(self, comparison: Comparison) -> Report:
        """Build the report of a comparison."""
        return make_difference_report(comparison)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        """Yield the methods sentences of a comparison."""
        return comparison_sentences(comparison)

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, Table]]:
        """Yield the tables of a comparison."""
        yield "differences", difference_table(comparison)

    def comparison_figures(self, comparison: Comparison) -> Iterator[Drawing]:
        """Yield the figures of a comparison."""
        return (make for _, make in (*draw_trends(comparison), *difference_figures(comparison)))


def _get_matrix_mark(result: Result) -> int | None:
    mark = get_mark(result)
    if is_check(result) and mark in (1, 2):
        return 0 if result.opposite else CHECK_PASSED
    return None if mark == NOT_MEASURED else mark


def _make_matrix(view: RunView) -> Drawing:
    tests = make_distinct([figure_name(test) for test in view.tests])
    names = {test.test: name for test, name in zip(view.tests, tests, strict=True)}
    cells = [
        MatrixCell(
            view.label(r),
            names[r.test],
            _get_matrix_mark(r),
            "" if r.effect_size is None else format_decimal(r.effect_size),
            view.tip(r),
        )
        for r in view.results
    ]
    title = "Significant associations"
    return lambda style: draw_matrix(f"matrix-{view.name}", title, cells, tests, view.models, style)
