"""Report and methods sentences of word discovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from markupsafe import Markup

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
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData, RunGroup, record_labels, split_by_model
from biassay.results.tables import Column, drop_columns, select_columns
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
    list_group_views,
    make_finding,
    make_findings,
    score_columns,
)

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
    *("model", "title", "threshold", "threshold_source", "threshold_emergent", "threshold_emergent_source"),
    *("n_words", "n_above", "effect_size", "n_every", "eibd_effect_size", "emergent_effect_size", "evidence"),
)
_COUNTS: dict[str, Callable[[Any], int]] = {
    "effect_size": lambda row: row.n_associated,
    "eibd_effect_size": lambda row: row.n_eibd,
    "emergent_effect_size": lambda row: row.n_emergent,
}


def headline(run: RunData) -> str:
    """Describe the searched words and groups."""
    inputs, views = run.manifest.inputs, list_group_views(run)
    labels = ", ".join(dict.fromkeys(view.row.title for view in views)) or "no group"
    counts = " and ".join(dict.fromkeys(f"{view.row.n_words:,}" for view in views)) or "0"
    sources = ", ".join(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ())))
    return f"{labels} among {len(inputs.groups)} groups ({inputs.grouping_title}); {counts} words ({sources})"


def group_table(run: RunData, views: Sequence[GroupView]) -> ColumnsAndRows:
    """Return thresholds and counts of groups."""
    rows = [Result(replace(view.row, model=view.model), view.decision) for view in views]
    columns = select_columns(_GROUPS.get_columns(run), *_GROUP_COLUMNS)
    counts = [replace(c, format="count", get=_COUNTS[c.name]) if c.name in _COUNTS else c for c in columns]
    return [replace(c, label="associated") if c.name == "effect_size" else c for c in counts], rows


def curve_table(run: RunData, view: GroupView) -> ColumnsAndRows:
    """Return how well rated words are detected."""
    area, chosen, accuracy, precision, recall, chance = select_columns(
        _CURVES.get_columns(run), "effect_size", "chosen", "accuracy", "precision", "recall", "chance"
    )
    return [
        Column("task", "rule", "Which rule detects.", get=lambda row: RULES[row.task]),
        area,
        chosen,
        Column(
            "detected",
            "detected",
            "Detected words of the group out of all rated ones, and other detected words.",
            get=view.detected,
        ),
        accuracy,
        Column("naming_none", "naming none", "Accuracy of detecting nothing.", "share", lambda row: 1.0 - row.chance),
        precision,
        recall,
        chance,
    ], view.curves


def rated_table(run: RunData, view: GroupView) -> ColumnsAndRows:
    """Return the table of rated words and whether they are detected."""
    columns = select_columns(
        _VALIDATED.get_columns(run), "word", "of_group", "emergent_of_group", "detected", "detected_emergent"
    )
    return columns, view.validated


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
        if view.num_rated(curve) < _ENOUGH:
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


def make_report(run: RunData, *, top: int = _WORDS_PRINTED, only: Sequence[str] | None = None) -> Report:
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
    columns, rows = group_table(run, views)
    columns = [*select_columns(columns, "title"), *drop_columns(drop_empty_columns(columns, rows), "title")]
    detection = tuple(block for view in views for block in _list_detection(run, view))
    notes = list_notes(run, views)
    return Report(
        title=_format_title(views),
        subject=f"Words associated with groups in {', '.join(record_labels(run))}",
        headline=headline(run),
        sections=[
            *([Section("detection", "Detection of rated words", detection, collapsed=False)] if detection else []),
            Section("groups", "Groups", (make_table("", columns, rows),), printed=True),
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
        figure=Markup("").join((*_draw_detection(views), *_draw_words(run, views))) or None,
        terms=TERMS,
        tables=[table for view in views for table in _list_tables(run, view, top)],
    )


def _format_title(views: Sequence[GroupView]) -> str:
    """Format the finding: how many words are associated with the group, or with how many groups."""
    if not views:
        return "No group was searched"
    if len(views) == 1:
        row = views[0].row
        verb = "is" if row.n_associated == 1 else "are"
        count = f"{row.n_associated:,}" if row.n_associated else "none"
        return f"{views[0].model}: {count} of {row.n_words:,} words {verb} associated with {row.title}"
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
    for kind, total, emergent in (
        ("Associated words", view.row.n_associated, False),
        ("Emergent words", view.row.n_emergent, True),
    ):
        words = view.best_words(emergent=emergent, top=_SHOWN)
        yield Heading(kind)
        if not words:
            yield Text("None.")
            continue
        yield Text(f"{'All' if len(words) == total else f'The first {len(words)} of'} {total:,}, by score.")
        yield make_table("", *word_table(run, words))
        yield make_table("Scores against every group", *score_table(run, words))
    if view.curves:
        yield Heading("Rated words")
        yield make_table("", *rated_table(run, view))
        yield make_table("Scores against every group", *score_table(run, view.validated))


def _list_tables(run: RunData, view: GroupView, top: int) -> Iterator[Table]:
    """List the tables of one group for the terminal: its first associated and emergent words."""
    if view.curves:
        columns, curves = curve_table(run, view)
        brief = drop_columns(columns, "accuracy", "naming_none")
        yield make_table(f"{view.title}: detection of rated words", brief, curves)
    for emergent, total in ((False, view.row.n_associated), (True, view.row.n_emergent)):
        words = view.best_words(emergent=emergent, top=top)
        kind = "emergent" if emergent else "associated"
        if words:
            count = f"{total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"
            yield make_table(f"{view.title}: {kind} words ({count})", *word_table(run, words))


def _make_paper_table(run: RunData, view: GroupView, words: Sequence[WordRow]) -> Table:
    """Make the table of a paper: the words of a group, with what decides and the note to pass on."""
    total = view.row.n_associated
    first = f"all {total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"
    caption = (
        f"Words associated with the names of {view.title}, {first} by score. Against: group that the score compares "
        "with; q: p-value after correction over all words; categories: largest score of the group's categories. "
        f"{run.manifest.inputs.note}"
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
    vocabularies = ", ".join(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ())))
    digest = f" ({inputs.vocabulary_digest})" if inputs.vocabulary_digest else ""
    others = "at least one other group" if settings.compare == "any" else "every other group"
    rule = (
        "if no constituent score is above the threshold"
        if settings.rule == "any"
        else "unless all constituent scores are above the threshold"
    )
    sign = "positive thresholds only" if settings.positive_only else "thresholds of either sign"
    yield "Groups", f"{inputs.grouping} ({inputs.grouping_digest}): {inputs.grouping_title}"
    yield "Words", f"{vocabularies}{digest}"
    yield (
        "Rule",
        f"a word is associated if its score is above the threshold against {others}; EIBD detects it {rule}; it is "
        f"emergent if its excess is significant as well; {sign}",
    )
    yield (
        "p-values",
        f"at most {settings.n_permutations:,} permutations of names, seed {settings.seed}; Benjamini and Hochberg over "
        f"all words, alpha {settings.alpha}",
    )
    yield "Unknown names", f"a group is skipped if more than {settings.max_unknown:.0%} of its names are unknown"
    yield "Groups from", inputs.citation


def _make_statements(run: RunData, views: Sequence[GroupView]) -> list[Statement]:
    """Describe the words of every group in a sentence."""
    several = len(run.manifest.models) > 1
    statements = []
    for view in views:
        sentence = make_sentence(make_finding(view, run.manifest.settings))
        sentence = f"{sentence[:1].upper()}{sentence[1:]}"
        statements.append(Statement(f"{view.model}: {sentence}", about=view.model) if several else Statement(sentence))
    return statements


def _draw_detection(views: Sequence[GroupView]) -> Iterator[Markup]:
    """Draw how well rated words are detected, if there are some."""
    rated = [view for view in views if view.curves]
    models = list(dict.fromkeys(view.model for view in rated))
    panels = [Panel(view.row.title, models.index(view.model), tuple(_list_areas(view))) for view in rated]
    if panels:
        yield draw_panels(
            [Panels("", tuple(panels))],
            models,
            title="Detection of rated words: area under the ROC curve.",
            caption="The middle (0.5) is guessing, the right end (1) detection without errors. Tap a bar for counts.",
            middle=0.5,
            reach=0.5,
        )


def _list_areas(view: GroupView) -> Iterator[Bar]:
    for curve in view.curves:
        area = curve.outcome.effect_size
        if area is not None:
            text = f"{RULES[curve.task]}: area {area:.2f}; above {curve.chosen:.2f} it detects {view.detected(curve)}"
            yield Bar(RULES[curve.task], area, f"{area:.2f}", text)


def _draw_words(run: RunData, views: Sequence[GroupView]) -> Iterator[Markup]:
    """Draw the leading words of every group, with models side by side, if any word is associated."""
    models = list(dict.fromkeys(view.model for view in views))
    order = list(dict.fromkeys(view.row.group for view in views))
    panels = [
        Panel(
            view.row.title,
            models.index(view.model),
            tuple(_make_bar(run, word) for word in view.best_words(emergent=False, top=_LEADING)),
            _describe_counts(run, view),
        )
        for view in sorted(views, key=lambda view: order.index(view.row.group))
    ]
    bars = [bar for panel in panels for bar in panel.bars]
    if bars:
        yield draw_panels(
            [Panels("", tuple(panels))],
            models,
            title="Words most associated with the names of a group, by score.",
            caption="A score compares with the group that the word differs from most; tap a bar to see which.",
            marks=("associated", _EMERGENT) if any(bar.marked for bar in bars) else None,
        )


def _describe_counts(run: RunData, view: GroupView) -> str:
    """Count the words of a group, and name the group that most of those shown are against."""
    against = Counter(find_compared_group(run, word) for word in view.best_words(emergent=False, top=_LEADING))
    text = f"{view.row.n_associated:,} of {view.row.n_words:,} words, {view.row.n_emergent:,} of them emergent"
    for group, count in against.most_common(1):
        if 2 * count > against.total():
            text += f"; {count} of these {against.total()} against {group}"
    return text


def _make_bar(run: RunData, word: WordRow) -> Bar:
    emergent = f"\n{_EMERGENT}" if word.emergent else ""
    most, q = find_compared_group(run, word), format_p(word.p_adjusted)
    text = f"{word.word}: score {format_decimal(word.effect_size)} against {most}, q = {q}{emergent}"
    return Bar(word.word, word.effect_size or 0.0, format_decimal(word.effect_size), text, word.emergent)


def list_roc_figures(run: RunData) -> list[Drawing]:
    """List one figure per model and group with rated words, with all of its rules."""
    several = len(run.manifest.models) > 1
    return [
        partial(_draw_roc, f"roc-{view.row.group}" + (f"-{view.model}" if several else ""), view)
        for view in list_group_views(run)
        if view.curves
    ]


def _draw_roc(name: str, view: GroupView, style: Style) -> Figure:
    return draw_roc(name, view.title, {RULES[row.task]: make_curve(view, row) for row in view.curves}, style)


def make_curve(view: GroupView, row: CurveRow) -> RocCurve:
    """Return a curve with its arrays."""
    arrays: dict[str, Any] = {
        name: view.arrays[make_array_name(row.group, row.task, name)].tolist() for name in CURVE_ARRAYS
    }
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


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on groups and words, the rules, and the correction of p-values."""
    inputs, settings, views = run.manifest.inputs, run.manifest.settings, list_group_views(run)
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


_MAX_LISTED = 30


def _make_shared_columns(name: str, label: str, text: str) -> Iterator[Column]:
    """Yield a column with the number of words, and one with the first of them."""
    yield Column(f"num_{name}", label, f"Number of words that are associated with the group {text}.", "count",
                 lambda row: len(getattr(row, name)))  # fmt: skip
    yield Column(name, "words", "Examples of these words.", get=lambda row: getattr(row, name)[:_MAX_LISTED])


_SHARED = (
    Column("group", "group", "The group."),
    Column("model", "model", "The model that is compared."),
    *_make_shared_columns("both", "by both", "by both models"),
    *_make_shared_columns("only_baseline", "by the first only", "by the first model only"),
    *_make_shared_columns("only_model", "by the model only", "by the model only"),
)


class DiscoveryPresenter(Presenter):
    """Report of word discovery."""

    def anchor(self, gathered: RunGroup) -> str:  # noqa: ARG002
        """Return the anchor of the part."""
        return "words"

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report; options are the number of words in the terminal and the groups to show."""
        return make_report(gathered.run, **options)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the words of every group."""
        for view in list_group_views(gathered.run):
            if words := view.best_words(emergent=False, top=_PUBLISHED):
                yield f"words-{view.row.group}", _make_paper_table(gathered.run, view, words)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield the figures."""
        return iter(list_roc_figures(gathered.run))

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
        table = make_table("Words associated with groups", _SHARED, comparison.tables["words"])
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
