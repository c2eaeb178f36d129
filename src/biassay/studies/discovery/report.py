"""Report and methods sentences of word discovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup
from rich.console import Console, RenderableType
from rich.text import Text

from biassay.io import make_printable
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.roc import draw_roc
from biassay.reporting.citations import CitationUse, cite_source
from biassay.reporting.comparison import lay_out_comparison, print_differences
from biassay.reporting.document import Renderer, ReportPart, Section, Statement
from biassay.reporting.formats import format_count, format_decimal, format_p, format_percent
from biassay.reporting.html_figures import Bar, Panel, Panels, draw_panels
from biassay.reporting.methods import MethodsSentence, format_models, join_names, list_works, make_seed_sentence
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, get_version, make_card
from biassay.reporting.presenter import Presenter
from biassay.reporting.sentences import make_sentence, make_statements
from biassay.reporting.terminal import cells_of, filled, print_run, printed, section_of
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.results.tables import Column, drop_columns, select_columns
from biassay.results.views import RunGroup
from biassay.studies.discovery.compare import compare_discoveries
from biassay.studies.discovery.measure import CURVE_ARRAYS, make_array_name
from biassay.studies.discovery.results import (
    TABLES,
    CurveRow,
    DiscoveryModelRow,
    GroupView,
    Source,
    Task,
    ValidatedRow,
    WordRow,
    count_needed_at_floor,
    find_needed_permutations,
    groups_of,
    make_findings,
    models_of,
    score_columns,
)

__all__ = [
    "MEANING",
    "RULES",
    "TERMS",
    "DiscoveryPresenter",
    "Table",
    "curve_of",
    "curve_table",
    "discovery_part",
    "group_table",
    "headline",
    "lost_of",
    "methods_sentences",
    "most_against",
    "notes_about",
    "notes_of",
    "rated_table",
    "roc_figures",
    "score_table",
    "word_table",
]


MEANING = (
    "A word that is associated need not be a stereotype, nor offend: names that are rare, or old, or foreign in the "
    "texts that the model was trained on are close to words that are so too. What is not detected is not absent."
)
TERMS = {
    "score": "How much closer a word is to the names of this group than to those of another, in standard deviations "
    "over the names of both. With groups of one size it stays below 2.",
    "associated": "The score is above its threshold against another group (or against every one, where that was "
    "asked), and the word still stands out after correction for the number of words searched.",
    "emergent": "It goes with the group more than the categories of the group explain together: not with women, nor "
    "with a race, but with women of that race.",
    "holds after correction": "Among all words so found the share that chance explains is expected to be at most "
    "alpha, 0.05 unless another was asked for.",
}
"""Words of the page, with what they mean."""
RULES: dict[Task, str] = {"ibd": "associated (IBD)", "eibd": "EIBD"}
Table = tuple[Sequence[Column], Sequence[Any]]

_WORDS, _GROUPS, _VALIDATED, _CURVES, *_ = TABLES
_ENOUGH = 5  # true words, below which a threshold rests on next to nothing
_CLEAR = 0.6  # area under the curve, below which it hardly differs from guessing
_MANY = 0.1  # share of all words
_LISTED = 40
_GROUP_COLUMNS = (
    *("model", "title", "threshold", "threshold_source", "threshold_emergent", "threshold_emergent_source"),
    *("n_words", "n_above", "effect_size", "n_every", "eibd_effect_size", "emergent_effect_size", "evidence"),
)
_COUNTS: dict[str, Callable[[Any], int]] = {
    "effect_size": lambda row: row.n_associated,
    "eibd_effect_size": lambda row: row.n_eibd,
    "emergent_effect_size": lambda row: row.n_emergent,
}


def headline(run: RunData) -> str:
    """Describe what was searched."""
    inputs, views = run.manifest.inputs, groups_of(run)
    labels = ", ".join(dict.fromkeys(view.row.title for view in views)) or "no group"
    counts = " and ".join(dict.fromkeys(f"{view.row.n_words:,}" for view in views)) or "0"
    sources = ", ".join(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ())))
    return f"{labels} among {len(inputs.groups)} groups ({inputs.grouping_title}); {counts} words ({sources})"


def group_table(run: RunData, views: Sequence[GroupView]) -> Table:
    """Thresholds and counts of groups; the model is named by its label."""
    rows = [Result(replace(view.row, model=view.model), view.decision) for view in views]
    columns = select_columns(_GROUPS.columns_of(run), *_GROUP_COLUMNS)
    counts = [replace(c, format="count", get=_COUNTS[c.name]) if c.name in _COUNTS else c for c in columns]
    return [replace(c, label="associated") if c.name == "effect_size" else c for c in counts], rows


def curve_table(run: RunData, view: GroupView) -> Table:
    """How well rated words are detected."""
    area, chosen, accuracy, precision, recall, chance = select_columns(
        _CURVES.columns_of(run), "effect_size", "chosen", "accuracy", "precision", "recall", "chance"
    )
    return [
        Column("task", "rule", "Which rule detects.", get=lambda row: RULES[row.task]),
        area,
        chosen,
        Column("detected", "detected", "Words of the group, of how many, and other words.", get=view.detected),
        accuracy,
        Column("naming_none", "naming none", "Accuracy of detecting nothing.", "share", lambda row: 1.0 - row.chance),
        precision,
        recall,
        chance,
    ], view.curves


def rated_table(run: RunData, view: GroupView) -> Table:
    """Return the table of rated words and whether they are detected."""
    columns = select_columns(
        _VALIDATED.columns_of(run), "word", "of_group", "emergent_of_group", "detected", "detected_emergent"
    )
    return columns, view.validated


def word_table(run: RunData, words: Sequence[WordRow]) -> Table:
    """Words with what decides."""

    def largest(word: WordRow) -> float | None:
        return max((score for score in word.constituents.values() if score is not None), default=None)

    columns = _WORDS.columns_of(run)
    return [
        *select_columns(columns, "word", "effect_size"),
        Column("from", "against", "The group that the score comes from.", get=lambda word: most_against(run, word)),
        *select_columns(columns, "p_value", "p_adjusted"),
        Column("categories", "categories", "The largest score of the group's categories.", "number", largest),
        *select_columns(columns, "eibd", "excess_p_adjusted"),
    ], words


def score_table(run: RunData, words: Sequence[WordRow] | Sequence[ValidatedRow]) -> Table:
    """Words with their scores against every group and of every category."""
    return [*select_columns(_WORDS.columns_of(run), "word"), *filled(score_columns(run), words)], words


def most_against(run: RunData, word: WordRow) -> str:
    """Return the label of the group that the score of a word comes from, or an empty text."""
    against = (group for group, score in word.scores.items() if score is not None and score == word.effect_size)
    return next((run.manifest.inputs.labels[group] for group in against), "")


def notes_of(run: RunData, views: Sequence[GroupView]) -> list[str]:
    """Return notes on words that depend on the seed, few rated words and out-of-vocabulary words."""
    notes = [f"{view.title}: {note}" for view in views for note in notes_about(run, view)]
    return [*notes, *lost_of(run)]


def lost_of(run: RunData) -> list[str]:
    """Return notes on out-of-vocabulary names and words, and on names that a model hardly tells apart."""
    notes = []
    for model in models_of(run):
        shown = f"{model.label}: " if len(run.manifest.models) > 1 else ""
        notes += [f"{shown}{line}" for row in model["models"] for line in _lost(run, row)]
    return notes


def notes_about(run: RunData, view: GroupView) -> Iterator[str]:
    """Yield caveats about the words of one group."""
    row, settings = view.row, run.manifest.settings
    wanted = find_needed_permutations(row, settings)
    if row.n_associated > _MANY * row.n_words:
        yield (
            f"so many words ({row.n_associated / row.n_words:.0%}) are hardly all stereotypes: these "
            "names differ from others in what the texts are about, or in how frequent they are."
        )
    for curve in view.curves:
        if view.num_rated(curve) < _ENOUGH:
            yield f"{RULES[curve.task]}: so few rated words say next to nothing about the threshold."
        elif (curve.outcome.effect_size or 0.0) < _CLEAR:
            yield f"{RULES[curve.task]}: detection is near guessing; take the threshold as arbitrary."
    if wanted is not None:
        yield (
            f"{settings.n_permutations:,} permutations may be too few: no word can be associated unless "
            f"{count_needed_at_floor(row, settings):,} of {row.n_words:,} have the smallest "
            f"p-value, and another seed may "
            f"give other words. Try --n-permutations {wanted} or more."
        )


def _lost(run: RunData, row: DiscoveryModelRow) -> Iterator[str]:
    inputs = run.manifest.inputs
    lost = [(names, f"{len(inputs.groups[g])} names of {inputs.labels[g]}") for g, names in row.names_lost.items()]
    for words, what in (
        *lost,
        (row.validation_lost, "the rated words"),
        (row.words_lost, f"the words of {row.vocabulary}"),
    ):
        if words:
            more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
            yield f"{len(words)} of {what} have no vector: {', '.join(words[:_LISTED])}{more}."
    for group, pairs in row.similar_names.items():
        listed = ", ".join(f"{one} and {other}" for one, other in pairs)
        yield (
            f"names of {inputs.labels[group]} that the model hardly tells apart: {listed}. They count as separate "
            "observations, so that p-values and q-values may be too small. If they are forms of one name, list them in "
            "`clusters` of the group."
        )


_SHOWN = 100
_LEADING = 15
_EMERGENT = "emergent: the categories of the group do not explain it"
_TURNED = 6  # groups, for which there is room across


def discovery_part(run: RunData, renderer: Renderer) -> ReportPart:
    """Everything about one search."""
    views, models = groups_of(run), run.tables.get("models", ())
    found, rows = group_table(run, views)
    others = drop_columns(filled(found, rows), "title", *(["model"] if len(run.manifest.models) == 1 else []))
    columns = [*select_columns(found, "title"), *others]
    vocabularies = ", ".join(dict.fromkeys(row.vocabulary for row in models))
    return ReportPart(
        anchor=renderer.anchor,
        title=f"Words associated with groups in {', '.join(model.label for model in models_of(run)) or 'no model'}",
        headline=headline(run),
        summary=_said(run, views),
        meaning=MEANING,
        notes=[run.manifest.inputs.note],
        figure=_figure(run, views),
        terms=TERMS,
        sections=[
            *renderer.notes(lost_of(run)),
            section_of("groups", "Groups", columns, rows, renderer, turned=len(rows) <= _TURNED),
            *(_group(place, run, view, renderer) for place, view in enumerate(views)),
            renderer.section("discovery_made", "How it was made", manifest=run.manifest, vocabularies=vocabularies),
        ],
    )


def _said(run: RunData, views: Sequence[GroupView]) -> list[Statement]:
    """Return one statement per group, with caveats."""
    several = len(run.manifest.models) > 1
    return [
        Statement(
            f"{one.model}: {make_sentence(one)}" if several else make_sentence(one),
            tuple(notes_about(run, view)),
            one.model if several else "",
        )
        for one, view in zip(make_findings(run), views, strict=True)
    ]


def _figure(run: RunData, views: Sequence[GroupView]) -> Markup | None:
    """Draw the leading words of every group, with models side by side."""
    if not views:
        return None
    models = list(dict.fromkeys(view.model for view in views))
    order = list(dict.fromkeys(view.row.group for view in views))
    panels = [
        Panel(
            view.row.title,
            models.index(view.model),
            tuple(_bar(run, word) for word in view.best_words(emergent=False, top=_LEADING)),
            _short(run, view),
        )
        for view in sorted(views, key=lambda view: order.index(view.row.group))
    ]
    return draw_panels(
        [Panels("", tuple(panels))],
        models,
        title="Words that go most with the names of a group, by score.",
        caption="A score is against the one group that the word differs from most: tap it to see which.",
        marks=("associated", _EMERGENT) if any(bar.marked for panel in panels for bar in panel.bars) else None,
    )


def _short(run: RunData, view: GroupView) -> str:
    """How many words, and the group that most of those shown are against."""
    against = Counter(most_against(run, word) for word in view.best_words(emergent=False, top=_LEADING))
    text = f"{view.row.n_associated:,} of {view.row.n_words:,} words, {view.row.n_emergent:,} of them emergent"
    for group, count in against.most_common(1):
        if 2 * count > against.total():
            text += f"; {count} of these {against.total()} against {group}"
    return text


def _bar(run: RunData, word: WordRow) -> Bar:
    emergent = f"\n{_EMERGENT}" if word.emergent else ""
    most, q = most_against(run, word), format_p(word.p_adjusted)
    text = f"{word.word}: score {format_decimal(word.effect_size)} against {most}, q = {q}{emergent}"
    return Bar(word.word, word.effect_size or 0.0, format_decimal(word.effect_size), text, word.emergent)


def roc_figures(run: RunData) -> list[Drawing]:
    """One a model and group with words of known truth, all of its tasks in it."""
    several = len(run.manifest.models) > 1
    return [
        partial(_drawn, f"roc-{view.row.group}" + (f"-{view.model}" if several else ""), view)
        for view in groups_of(run)
        if view.curves
    ]


def _drawn(name: str, view: GroupView, style: Style) -> Figure:
    return draw_roc(name, view.title, {RULES[row.task]: curve_of(view, row) for row in view.curves}, style)


def curve_of(view: GroupView, row: CurveRow) -> Any:
    """Return a curve with its arrays."""
    arrays = {name: view.arrays[make_array_name(row.group, row.task, name)].tolist() for name in CURVE_ARRAYS}
    return SimpleNamespace(**vars(row), area=row.outcome.effect_size, **arrays)


def _group(place: int, run: RunData, view: GroupView, renderer: Renderer) -> Section:
    figures = renderer.figures([partial(_drawn, "roc", view)]) if view.curves else []
    lists = [
        _list(run, view, "Associated words", view.row.n_associated, emergent=False),
        _list(run, view, "Emergent words", view.row.n_emergent, emergent=True),
    ]
    section = renderer.section(
        "group",
        view.title,
        figures=figures,
        curves=_cells("Detection of rated words", view, curve_table(run, view), turned=True) if view.curves else None,
        rated=_cells("Rated words", view, rated_table(run, view)),
        scores=_cells("Scores of rated words", view, score_table(run, view.validated)),
        lists=lists,
    )
    return Section(f"{section.anchor}-{place + 1}", section.title, section.body)


def _list(run: RunData, view: GroupView, kind: str, total: int, *, emergent: bool) -> tuple[Any, ...]:
    words = view.best_words(emergent=emergent, top=_SHOWN)
    scores = _cells(f"{kind} against every group", view, score_table(run, words))
    return kind, total, _cells(kind, view, word_table(run, words)), scores


def _cells(title: str, view: GroupView, table: Table, *, turned: bool = False) -> dict[str, Any]:
    return cells_of(f"{title}, {view.title}", *table, turned=turned)


_SOURCES: dict[Source, str] = {
    "validation": "the threshold that fits words rated by people best",
    "given": "a threshold that was given",
    "convention": "a threshold set by convention",
}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Which groups and words, how a word was found, and how its p-value was corrected."""
    inputs, settings, views = run.manifest.inputs, run.manifest.settings, groups_of(run)
    labels = list(dict.fromkeys(view.row.title for view in views))
    words = join_names([f"{n:,}" for n in dict.fromkeys(view.row.n_words for view in views)] or ["0"])
    searched = join_names(list(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ()))) or ["no words"])
    yield MethodsSentence(
        f"With biassay {get_version(run)} we searched {words} words ({searched}) for those associated with "
        f"{join_names(labels or ['no group'])}, among {format_count(len(inputs.groups), 'group')} represented by names "
        f"({inputs.grouping_title}), in {format_models(run)}",
        ("biassay", *sources),
    )
    against = "any other group" if settings.compare == "any" else "every other group"
    found = [f"{view.row.threshold:.2f} ({_SOURCES[view.row.threshold_source]})" for view in views]
    above = f" of {join_names(list(dict.fromkeys(found)), 'or')}" if found else ""
    yield MethodsSentence(
        "A word is associated with a group (IBD) where its standardised difference of mean cosines, the group's names "
        f"against those of {against}, exceeds a threshold{above}",
        ("guo2021",),
    )
    yield MethodsSentence(
        "It is emergent where it also exceeds, by a test, what the categories of the group explain (EIBD with the rule "
        f"{settings.rule!r})".replace("'", ""),
        ("guo2021",),
    )
    yield MethodsSentence(
        f"p-values come from up to {settings.n_permutations:,} permutations of names between groups, and the false "
        f"discovery rate over all words searched is held at {settings.alpha:g} by the method of Benjamini and Hochberg",
        ("benjamini1995",),
    )
    clusters = [cluster for own in inputs.clusters.values() for cluster in own]
    if clusters:
        yield MethodsSentence(
            f"Near-duplicate names ({'; '.join(', '.join(cluster) for cluster in clusters)}) count as one name each, "
            "with the mean of their cosines"
        )
    yield MethodsSentence(
        f"A group was left out where a model lacks more than {format_percent(settings.max_unknown)} of its names"
    )
    yield make_seed_sentence([settings.seed])


_WORDS_PRINTED = 20
_MAX_LISTED = 30


def _shared(name: str, label: str, text: str) -> Iterator[Column]:
    """How many words, and the first of them."""
    yield Column(f"num_{name}", label, f"How many words are associated with the group {text}.", "count",
                 lambda row: len(getattr(row, name)))  # fmt: skip
    yield Column(name, "words", "The first of them.", get=lambda row: getattr(row, name)[:_MAX_LISTED])


_SHARED = (
    Column("group", "group", "The group."),
    Column("model", "model", "The model that is compared."),
    *_shared("both", "by both", "by both models"),
    *_shared("only_baseline", "by the first only", "by the first model only"),
    *_shared("only_model", "by the model only", "by the model only"),
)


class DiscoveryPresenter(Presenter):
    """Report of word discovery."""

    package = "biassay.studies.discovery"

    def anchor(self, gathered: RunGroup) -> str:  # noqa: ARG002
        """Return the anchor of the part."""
        return "words"

    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        """Return the part of the report."""
        return discovery_part(gathered.run, renderer)

    def print(
        self,
        gathered: RunGroup,
        console: Console,
        *,
        top: int = _WORDS_PRINTED,
        only: Sequence[str] | None = None,
        everything: bool = False,
        **options: Any,  # noqa: ARG002
    ) -> None:
        """``top`` words of each list or all, of all groups or of some."""
        run = gathered.run
        views = [view for view in groups_of(run) if only is None or view.row.group in only]
        items = {(view.model, view.row.group) for view in views}
        findings = [one for one in make_findings(run) if (one.model, one.item) in items]
        explained = word_table(run, ())[0] if everything else ()
        meaning = [*(f"{column.label}: {column.help}" for column in explained), TERMS["score"], MEANING]
        tables = list(_printed(run, views, None if everything else top))
        notes = [*notes_of(run, views), run.manifest.inputs.note]
        print_run(console, headline(run), tables, make_statements(findings), notes, meaning)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield the figures."""
        return iter(roc_figures(gathered.run))

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        """Yield the sources of the data."""
        for inputs in (run.manifest.inputs for run in runs):
            yield from cite_source(inputs.citation, inputs.grouping, f"groups of {inputs.grouping}")

    def methods(self, run: RunData) -> Iterator[CitationUse]:  # noqa: ARG002
        """Yield the works that describe the methods."""
        yield CitationUse("the methods IBD and EIBD", "guo2021")
        yield CitationUse("correction for the number of words", "benjamini1995")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods section."""
        return methods_sentences(run, list_works(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        """Return the labels of the models."""
        return list(dict.fromkeys(view.model for view in groups_of(run)))

    def card(self, run: RunData, label: str) -> ModelCard:
        """Return the model card of one model."""
        views = [view for view in groups_of(run) if view.model == label]
        # A card goes further than a run does: it says how many words, and not which.
        own = [replace(one, words=()) for one in make_findings(run) if one.model == label]
        limits = [MEANING, run.manifest.inputs.note]
        entries = [_entry(run, view) for view in views]
        return make_card(run, own, headline(run), entries, limits, notes_of(run, views))

    def card_name(self, label: str) -> str:
        """Return the name of the file of a model card."""
        return f"words-{label}"

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare the models of several runs."""
        return compare_discoveries(runs, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        """Return the part of the report that compares models."""
        section = section_of("words", "Words associated with groups", _SHARED, comparison.tables["words"], renderer)
        return lay_out_comparison(comparison, (), [section])

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        """Print a comparison."""
        table = printed("Words associated with groups", _SHARED, comparison.tables["words"])
        print_differences(comparison, console, (), before=[table])


def _printed(run: RunData, views: Sequence[GroupView], top: int | None) -> Iterator[RenderableType]:
    columns, rows = group_table(run, views)
    yield printed("Groups", filled(columns, rows), rows)
    for view in views:
        if view.curves:
            yield printed(f"{view.title}: words with known truth", *curve_table(run, view))
        for emergent, total in ((False, view.row.n_associated), (True, view.row.n_emergent)):
            words = view.best_words(emergent=emergent, top=top)
            count = f"{total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"
            title = f"{view.title}: {'emergent' if emergent else 'associated'} words ({count})"
            yield printed(title, *word_table(run, words), most=top) if words else Text(make_printable(title))


def _entry(run: RunData, view: GroupView) -> IndexEntry:
    row, inputs = view.row, run.manifest.inputs
    metrics = [
        CardMetric("words_associated", "Words detected by IBD", row.n_associated),
        CardMetric("words_eibd", "Words detected by EIBD", row.n_eibd),
        CardMetric("words_emergent", "Words of these that exceed their categories, tested", row.n_emergent),
    ]
    areas = [curve.outcome.effect_size for curve in view.curves if curve.task == "ibd"]
    metrics += [CardMetric("roc_auc", "Area under the curve, words rated by people", area) for area in areas]
    args = {"words": str(row.n_words), "alpha": f"{run.manifest.settings.alpha:g}", "biassay": get_version(run)}
    name, task = f"{inputs.grouping_title}: {row.title}", "Words associated with a social group"
    return IndexEntry("feature-extraction", task, inputs.grouping, name, row.group, args, tuple(metrics))
