"""Report and methods sentences of word discovery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from markupsafe import Markup

from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.roc import RocCurve, draw_roc
from biassay.reporting.comparison import make_comparison_report
from biassay.reporting.document import (
    Block,
    Cell,
    ColumnSpan,
    Drawings,
    Heading,
    Report,
    RowGroup,
    Section,
    Statement,
    Table,
    TableRow,
    Text,
    drop_empty_columns,
    make_table,
)
from biassay.reporting.findings import make_sentence
from biassay.reporting.formats import clean_line, format_count, format_decimal, format_p, format_percent
from biassay.reporting.html import Bar, Panel, Panels, draw_panels
from biassay.reporting.methods import (
    CitationUse,
    MethodsSentence,
    cite_source,
    format_models,
    get_version,
    join_names,
    list_works,
    make_methods_section,
    make_seed_sentence,
)
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, make_card
from biassay.reporting.presenter import Presenter
from biassay.results.comparison import Comparison
from biassay.results.run_data import RunData, RunGroup, model_key, record_labels, split_by_model
from biassay.results.tables import Column, drop_columns, make_columns, select_columns
from biassay.studies.discovery.compare import SharedWords, compare_discoveries
from biassay.studies.discovery.measure import CURVE_ARRAYS
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
    describe_count,
    find_needed_permutations,
    list_group_views,
    make_finding,
    make_findings,
    score_columns,
)
from biassay.studies.settings import describe_settings

MEANING = (
    "An associated word is not necessarily a stereotype or an offence: names that are rare, old or foreign in the "
    "training texts are close to words that are too. A word that is not detected may still be associated."
)
TERMS = {
    "score": "How much closer a word is to the names of this group than to those of another, in standard deviations "
    "over the names of both. With groups of one size it stays below 2.",
    "associated": "The score is above its threshold against another group (against every group with --compare every) "
    "and significant after correction for the number of words.",
    "emergent": "More strongly associated with the group than its categories explain together: not with women or with "
    "a race, but with women of that race.",
    "q": "The p-value after correction. On average, at most a share alpha of the words with q at most alpha is false.",
}
"""Terms of the report and their meaning."""
RULES: dict[Task, str] = {"ibd": "associated (IBD)", "eibd": "EIBD"}
ColumnsAndRows = tuple[Sequence[Column], Sequence[Any]]

_WORDS, _GROUPS, _VALIDATED, _CURVES, *_ = TABLES
_ENOUGH = 5  # rated words of the group, below which the threshold is not reliable
_CLEAR = 0.6  # area under the curve, below which detection is close to guessing
_MANY = 0.1  # share of all words
_LISTED = 40
_GROUP_COLUMNS = (
    *("title", "threshold", "threshold_source", "threshold_emergent", "threshold_emergent_source"),
    *("n_words", "n_above", "effect_size", "n_every", "eibd_effect_size", "emergent_effect_size", "evidence"),
)


def headline(run: RunData) -> str:
    """Describe the searched words and groups."""
    inputs, views = run.manifest.inputs, list_group_views(run)
    labels = ", ".join(dict.fromkeys(view.row.title for view in views)) or "no group"
    counts = " and ".join(dict.fromkeys(f"{view.row.n_words:,}" for view in views)) or "0"
    return (
        f"{labels} among {len(inputs.groups)} groups ({inputs.grouping_title}); {counts} words ({_list_sources(run)})"
    )


def _list_sources(run: RunData) -> str:
    return ", ".join(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ()))) or "no words"


def _make_group_table(run: RunData, views: Sequence[GroupView]) -> Table:
    """Make the table of thresholds and word counts by group."""
    titles = {(model_key(view.row), view.row.group): view.title for view in views}
    changed: dict[str, dict[str, Any]] = {
        "title": {"get": lambda row: titles[model_key(row), row.group]},
        "effect_size": {"label": "associated", "format": "count", "get": lambda row: row.n_associated},
        "eibd_effect_size": {"format": "count", "get": lambda row: row.n_eibd},
        "emergent_effect_size": {"format": "count", "get": lambda row: row.n_emergent},
    }
    rows = [view.row for view in views]
    columns = select_columns(_GROUPS.get_columns(run), *_GROUP_COLUMNS)
    columns = [replace(column, **changed.get(column.name, {})) for column in columns]
    return make_table("", drop_empty_columns(columns, rows), rows)


def curve_table(run: RunData, view: GroupView) -> ColumnsAndRows:
    """Return how well rated words are detected."""
    area, chosen, accuracy, *rates = select_columns(
        _CURVES.get_columns(run), "effect_size", "chosen", "accuracy", "precision", "recall", "chance"
    )
    text = "Detected words of the group out of all rated ones, and other detected words."
    return [
        Column("task", "rule", "Which rule detects.", get=lambda row: RULES[row.task]),
        area,
        chosen,
        Column("detected", "detected", text, get=view.describe_detected),
        accuracy,
        Column("naming_none", "naming none", "Accuracy of detecting nothing.", "share", lambda row: 1.0 - row.chance),
        *rates,
    ], view.curves


def word_table(run: RunData, words: Sequence[WordRow]) -> ColumnsAndRows:
    """Return words with the numbers that decide."""
    columns = _WORDS.get_columns(run)
    return [
        *select_columns(columns, "word", "effect_size"),
        Column(
            "from", "against", "Group that the score compares with.", get=lambda word: find_compared_group(run, word)
        ),
        *select_columns(columns, "p_value", "p_adjusted"),
        Column("categories", "categories", "Largest score of the group's categories.", "number", _get_category_score),
        *select_columns(columns, "eibd", "excess_p_adjusted"),
    ], words


def _get_category_score(word: WordRow) -> float | None:
    return max((score for score in word.constituents.values() if score is not None), default=None)


def score_table(run: RunData, words: Sequence[WordRow] | Sequence[ValidatedRow]) -> ColumnsAndRows:
    """Return words with their scores against every group and for every category."""
    return [*select_columns(_WORDS.get_columns(run), "word"), *drop_empty_columns(score_columns(run), words)], words


def find_compared_group(run: RunData, word: WordRow) -> str:
    """Return the label of the group that the score of a word comes from, or an empty text."""
    against = (group for group, score in word.scores.items() if score is not None and score == word.effect_size)
    return next((run.manifest.inputs.labels[group] for group in against), "")


def list_notes(run: RunData, views: Sequence[GroupView]) -> list[str]:
    """List caveats about words, each once with its groups, then out-of-vocabulary names and words."""
    caveats: dict[str, list[str]] = {}
    for view in views:
        for caveat in _list_caveats(run, view):
            caveats.setdefault(caveat, []).append(view.title)
    notes = [f"{', '.join(titles)}: {caveat}" for caveat, titles in caveats.items()]
    for model in split_by_model(run):
        label = f"{model.label}: " if len(run.manifest.models) > 1 else ""
        notes += [f"{label}{line}" for row in model["models"] for line in _list_unknown(run, row)]
    return notes


def _list_caveats(run: RunData, view: GroupView) -> Iterator[str]:
    """Yield caveats about the words of one group, the most serious first."""
    row, settings = view.row, run.manifest.settings
    needed = find_needed_permutations(row, settings)
    if needed is not None:
        yield (
            f"{settings.n_permutations:,} permutations may be too few: a word can be significant only if "
            f"{count_needed_at_floor(row, settings):,} of {row.n_words:,} words have the smallest p-value, and another "
            f"seed may give other words. Use --n-permutations {needed} or more."
        )
    if row.n_associated > _MANY * row.n_words:
        yield (
            f"{row.n_associated / row.n_words:.0%} of the words are associated, too many to be stereotypes: these "
            "names occur in texts on other subjects, or are more or less frequent than others."
        )
    for curve in view.curves:
        if view.count_rated(curve)[0] < _ENOUGH:
            yield f"Too few words are rated to choose a threshold of {RULES[curve.task]}."
        elif (curve.outcome.effect_size or 0.0) < _CLEAR:
            yield f"The threshold of {RULES[curve.task]} is arbitrary, because detection is close to guessing."


def _list_unknown(run: RunData, row: DiscoveryModelRow) -> Iterator[str]:
    """Yield notes on out-of-vocabulary names and words, and on similar names."""
    inputs = run.manifest.inputs
    for words, source in (
        *((names, f"{len(inputs.groups[g])} names of {inputs.labels[g]}") for g, names in row.oov_names.items()),
        (row.oov_validation, "the rated words"),
        (row.oov_words, f"the words of {row.vocabulary}"),
    ):
        if words:
            more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
            yield f"{len(words)} of {source} are out of vocabulary: {', '.join(words[:_LISTED])}{more}."
    for group, pairs in row.similar_names.items():
        yield (
            f"Names of {inputs.labels[group]} with nearly the same vector: {', '.join(map(' and '.join, pairs))}. They "
            "count as separate observations, so p-values and q-values may be too small. If they are forms of one name, "
            "list them in `clusters` of the group."
        )


_SHOWN = 100
_LEADING = 15
_WORDS_PRINTED = 10
_PUBLISHED = 25  # words per group in a paper
_EMERGENT = "emergent: the categories of the group do not explain it"


def _make_report(run: RunData, *, top: int = _WORDS_PRINTED, only: Sequence[str] | None = None) -> Report:
    """Build the report of a search: detection of rated words first, then words by group.

    Parameters
    ----------
    run : RunData
    top : int
        Number of words per list in the terminal.
    only : sequence of str, optional
        Groups to show; by default all.
    """
    views = [view for view in list_group_views(run) if only is None or view.row.group in only]
    detection = tuple(block for view in views for block in _list_detection(run, view))
    notes = list_notes(run, views)
    return Report(
        title=_format_title(views),
        subject=f"Words associated with groups in {', '.join(record_labels(run))}",
        headline=headline(run),
        sections=[
            *([Section("detection", "Detection of rated words", detection, collapsed=False)] if detection else []),
            Section("groups", "Groups", (_make_group_table(run, views),), printed=True),
            *(
                Section(f"group-{number}", view.title, tuple(_list_words(run, view)), printed=True)
                for number, view in enumerate(views, start=1)
            ),
            make_methods_section(run.manifest, (*_list_settings(run), *(("Note", note) for note in notes)), MEANING),
        ],
        statements=_make_statements(run, views),
        meaning=MEANING,
        notes=[run.manifest.inputs.note, *notes[:1]],
        remarks=[TERMS["score"], *notes[1:]],
        figure=_draw_words(run, views),
        terms=TERMS,
        tables=[table for view in views for table in _list_tables(run, view, top)],
    )


def _format_title(views: Sequence[GroupView]) -> str:
    """Format the finding: how many words are associated with the group, or with how many groups."""
    if len(views) == 1:
        return f"{views[0].model}: {describe_count(views[0].row)} {views[0].row.title}"
    groups = sum(view.row.n_associated > 0 for view in views)
    return f"Words are associated with {groups:,} of {format_count(len(views), 'group')}"


def _list_detection(run: RunData, view: GroupView) -> Iterator[Block]:
    """List how well the method detects words that people rated for the group, if there are some."""
    if not view.curves:
        return
    yield Heading(view.title)
    yield Text("Words that people rated for some group, and words that belong to none.")
    yield make_table("", *curve_table(run, view))
    caption = "One point per threshold, joined in order; the ring is the threshold in use, the dotted line is chance."
    yield Drawings(((caption, partial(_draw_roc, "roc", view)),))


def _list_words(run: RunData, view: GroupView) -> Iterator[Block]:
    """List the words of one group with their scores, and the rated words."""
    for kind, emergent in (("Associated words", False), ("Emergent words", True)):
        words = view.best_words(_SHOWN, emergent=emergent)
        yield Heading(kind)
        if words:
            yield Text(f"{_format_part(view, words, emergent=emergent).capitalize()}, by score.")
            yield make_table("", *word_table(run, words))
            yield make_table("Scores against every group", *score_table(run, words))
        else:
            yield Text("None.")
    if view.curves:
        yield Heading("Rated words")
        names = ("word", "of_group", "emergent_of_group", "detected", "detected_emergent")
        yield make_table("", select_columns(_VALIDATED.get_columns(run), *names), view.validated)
        yield make_table("Scores against every group", *score_table(run, view.validated))


def _format_part(view: GroupView, words: Sequence[WordRow], *, emergent: bool = False) -> str:
    """Format how many of the associated, or emergent, words are shown."""
    total = view.row.n_emergent if emergent else view.row.n_associated
    return f"all {total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"


def _list_tables(run: RunData, view: GroupView, top: int) -> Iterator[Table]:
    """List the tables of one group for the terminal: its first associated and emergent words."""
    if view.curves:
        columns, curves = curve_table(run, view)
        brief = drop_columns(columns, "accuracy", "naming_none")
        yield make_table(f"{view.title}: detection of rated words", brief, curves)
    for kind, emergent in (("associated", False), ("emergent", True)):
        if words := view.best_words(top, emergent=emergent):
            part = _format_part(view, words, emergent=emergent)
            yield make_table(f"{view.title}: {kind} words ({part})", *word_table(run, words))


def _make_paper_table(run: RunData, view: GroupView, words: Sequence[WordRow]) -> Table:
    """Make the table of a paper: the words of a group, with what decides and the note to pass on."""
    caption = (
        f"Words associated with the names of {view.title}, {_format_part(view, words)} by score. Against: group that "
        "the score compares with; q: p-value after correction over all words; categories: largest score of the group's "
        f"categories. {run.manifest.inputs.note}"
    )
    rows = tuple(
        TableRow(
            (clean_line(word.word) + (" †" if word.emergent else ""), clean_line(find_compared_group(run, word))),
            (
                Cell(format_decimal(word.effect_size)),
                Cell(format_p(word.p_adjusted)),
                Cell(format_decimal(_get_category_score(word))),
            ),
        )
        for word in words
    )
    signs = (f"† {_EMERGENT}",) if any(word.emergent for word in words) else ()
    span = ColumnSpan("", ("score", "q", "categories"))
    return Table(clean_line(caption), ("word", "against"), (span,), (RowGroup("", rows),), signs, spare=("against",))


def _list_settings(run: RunData) -> Iterator[tuple[str, str]]:
    settings, inputs = run.manifest.settings, run.manifest.inputs
    yield "Groups", f"{inputs.grouping} ({inputs.grouping_digest}): {inputs.grouping_title}; {inputs.citation}"
    yield "Words", f"{_list_sources(run)}{f' ({inputs.vocabulary_digest})' if inputs.vocabulary_digest else ''}"
    yield from describe_settings(settings, leave_out=("own_words", "grouping"))


def _make_statements(run: RunData, views: Sequence[GroupView]) -> list[Statement]:
    """Describe the words of every group in a sentence."""
    several = len(run.manifest.models) > 1
    statements = []
    for view in views:
        sentence = make_sentence(make_finding(view, run.manifest.settings))
        sentence = f"{sentence[:1].upper()}{sentence[1:]}"
        statements.append(Statement(f"{view.model}: {sentence}", about=view.model) if several else Statement(sentence))
    return statements


def _draw_words(run: RunData, views: Sequence[GroupView]) -> Markup | None:
    """Draw the leading words of every group, with models side by side, if any word is associated."""
    models = list(dict.fromkeys(view.model for view in views))
    by_group = group_pairs((view.row.group, view) for view in views)
    panels = [
        Panel(
            view.row.title,
            models.index(view.model),
            tuple(_make_bar(run, word) for word in view.best_words(_LEADING)),
            f"{view.row.n_associated:,} of {view.row.n_words:,} words, {view.row.n_emergent:,} of them emergent",
        )
        for same in by_group.values()
        for view in same
    ]
    bars = [bar for panel in panels for bar in panel.bars]
    if not bars:
        return None
    return draw_panels(
        [Panels("", tuple(panels))],
        models,
        title="Words most associated with the names of a group, by score.",
        caption="A score compares with the group that the word differs from most; tap a bar to see which.",
        marks=("associated", _EMERGENT) if any(bar.marked for bar in bars) else None,
    )


def _make_bar(run: RunData, word: WordRow) -> Bar:
    emergent = f"\n{_EMERGENT}" if word.emergent else ""
    most, q = find_compared_group(run, word), format_p(word.p_adjusted)
    text = f"{word.word}: score {format_decimal(word.effect_size)} against {most}, q = {q}{emergent}"
    return Bar(word.word, word.effect_size or 0.0, format_decimal(word.effect_size), text, word.emergent)


def _draw_roc(name: str, view: GroupView, style: Style) -> Figure:
    return draw_roc(name, view.title, {RULES[row.task]: make_curve(view, row) for row in view.curves}, style)


def make_curve(view: GroupView, row: CurveRow) -> RocCurve:
    """Return a curve with its arrays."""
    arrays: dict[str, Any] = {name: view.arrays[f"{row.group}/{row.task}/{name}"].tolist() for name in CURVE_ARRAYS}
    return RocCurve(
        area=row.outcome.effect_size or 0.0,
        chosen=row.chosen,
        recall=row.recall,
        false_positive_rate=row.false_positive_rate,
        **arrays,
    )


_SOURCES: dict[Source, str] = {
    "validation": "the threshold that best fits words rated by people",
    "given": "a threshold that was given",
    "convention": "a threshold set by convention",
}


def _write_methods(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on groups and words, the rules, and the correction of p-values."""
    inputs, settings, views = run.manifest.inputs, run.manifest.settings, list_group_views(run)
    labels = list(dict.fromkeys(view.row.title for view in views)) or ["no group"]
    words = join_names([f"{n:,}" for n in dict.fromkeys(view.row.n_words for view in views)] or ["0"])
    yield MethodsSentence(
        f"With biassay {get_version(run)} we searched {words} words ({_list_sources(run)}) for those associated with "
        f"{join_names(labels)}, among {format_count(len(inputs.groups), 'group')} represented by names "
        f"({inputs.grouping_title}), in {format_models(run)}",
        ("biassay", *sources),
    )
    against = "any other group" if settings.compare == "any" else "every other group"
    thresholds = [f"{view.row.threshold:.2f} ({_SOURCES[view.row.threshold_source]})" for view in views]
    above = f" of {join_names(list(dict.fromkeys(thresholds)), 'or')}" if thresholds else ""
    yield MethodsSentence(
        "A word is associated with a group (IBD) if its standardized difference of mean cosines with the names of "
        f"the group and of {against} exceeds a threshold{above}",
        ("guo2021",),
    )
    yield MethodsSentence(
        f"It is emergent if EIBD (rule {settings.rule}) detects it and its excess over what the group's categories "
        "contribute together is significant",
        ("guo2021",),
    )
    yield MethodsSentence(
        f"P-values come from up to {settings.n_permutations:,} permutations of names between groups. We controlled the "
        f"false discovery rate over all words at {settings.alpha:g} by the method of Benjamini and Hochberg",
        ("benjamini1995",),
    )
    clusters = [cluster for own in inputs.clusters.values() for cluster in own]
    if clusters:
        yield MethodsSentence(
            f"Near-duplicate names ({'; '.join(', '.join(cluster) for cluster in clusters)}) count as one name each, "
            "with the mean of their cosines"
        )
    yield MethodsSentence(
        f"We skipped a group if more than {format_percent(settings.max_unknown)} of its names were out of vocabulary"
    )
    yield make_seed_sentence([settings.seed])


class DiscoveryPresenter(Presenter):
    """Report of word discovery."""

    def anchor(self, gathered: RunGroup) -> str:  # noqa: ARG002
        """Return the anchor of the part."""
        return "words"

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report; options are the number of words in the terminal and the groups to show."""
        return _make_report(gathered.run, **options)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the words of every group."""
        for view in list_group_views(gathered.run):
            if words := view.best_words(_PUBLISHED):
                yield f"words-{view.row.group}", _make_paper_table(gathered.run, view, words)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield one figure per model and group with rated words, with all of its rules."""
        several = len(gathered.run.manifest.models) > 1
        for view in list_group_views(gathered.run):
            if view.curves:
                yield partial(_draw_roc, f"roc-{view.row.group}" + (f"-{view.model}" if several else ""), view)

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
        return _write_methods(run, list_works(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        """Return the labels of the models."""
        return list(dict.fromkeys(view.model for view in list_group_views(run)))

    def card(self, run: RunData, label: str) -> ModelCard:
        """Return the model card of one model."""
        views = [view for view in list_group_views(run) if view.model == label]
        # A card goes further than a run does: it says how many words, and not which.
        own = [replace(finding, words=()) for finding in make_findings(run) if finding.model == label]
        limits = [MEANING, run.manifest.inputs.note, *list_notes(run, views)]
        entries = [_entry(run, view) for view in views]
        return make_card(run, own, headline(run), entries, limits)

    def card_name(self, label: str) -> str:
        """Return the name of the file of a model card."""
        return f"words-{label}"

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare all models with the baseline; see `Presenter.compare`."""
        return compare_discoveries(runs, baseline=baseline, mixed=mixed)

    def comparison_report(self, comparison: Comparison) -> Report:
        """Build the report of a comparison."""
        table = make_table("Words associated with groups", make_columns(SharedWords), comparison.tables["words"])
        section = Section("words", "Words associated with groups", (replace(table, caption=""),))
        return make_comparison_report(comparison, (), [section], tables=[table])


def _entry(run: RunData, view: GroupView) -> IndexEntry:
    row, inputs = view.row, run.manifest.inputs
    metrics = [
        CardMetric("words_associated", "Words detected by IBD", row.n_associated),
        CardMetric("words_eibd", "Words detected by EIBD", row.n_eibd),
        CardMetric("words_emergent", "Number of these that exceed their categories, tested", row.n_emergent),
    ]
    areas = [curve.outcome.effect_size for curve in view.curves if curve.task == "ibd"]
    metrics += [CardMetric("roc_auc", "Area under the curve, words rated by people", area) for area in areas]
    args = {"words": str(row.n_words), "alpha": f"{run.manifest.settings.alpha:g}", "biassay": get_version(run)}
    name, task = f"{inputs.grouping_title}: {row.title}", "Words associated with a social group"
    return IndexEntry("feature-extraction", task, inputs.grouping, name, row.group, args, tuple(metrics))
