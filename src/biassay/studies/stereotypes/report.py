"""Report and methods sentences of stereotypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup
from rich.console import Console, RenderableType

from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.profiles import draw_profile
from biassay.reporting.citations import CitationUse, cite_source
from biassay.reporting.comparison import lay_out_comparison, print_differences
from biassay.reporting.document import (
    Cell,
    ColumnSpan,
    PaperTable,
    Renderer,
    ReportPart,
    RowGroup,
    Section,
    Statement,
    TableRow,
)
from biassay.reporting.findings import draw_overview
from biassay.reporting.formats import MANY_MODELS, clean_line, format_count, format_interval, format_value
from biassay.reporting.html_figures import Bar, Panel, Panels, draw_panels
from biassay.reporting.methods import MethodsSentence, format_models, join_names, list_works, make_seed_sentence
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, get_version, make_card
from biassay.reporting.presenter import Presenter
from biassay.reporting.sentences import make_points, make_statements, summarize_findings
from biassay.reporting.terminal import PRINTED, cells_of, filled, print_run, printed, section_of
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Outcome, Result, join_decisions
from biassay.results.run_data import RunData
from biassay.results.tables import Column, drop_columns, select_columns
from biassay.results.views import RunGroup, RunSlice
from biassay.studies.stereotypes.compare import compare_stereotypes
from biassay.studies.stereotypes.findings import (
    Trait,
    center_scores,
    find_distinctive_traits,
    get_pair_sides,
    is_centred,
    make_findings,
    mean_scores,
    select_singles,
)
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.results import (
    ORDERS,
    TABLES,
    GroupAlignmentRow,
    MeasureRow,
    ProfileRow,
    StereotypeInputsRecord,
    by_group,
    closest,
    measure_name,
    measures_of,
    models_of,
    overall,
)

__all__ = [
    "AGREEMENT",
    "MEANING",
    "PAIRED",
    "TERMS",
    "ColumnTable",
    "StereotypePresenter",
    "agreement_table",
    "alignment_table",
    "figure_of",
    "headline",
    "leading_table",
    "methods_sentences",
    "notes_of",
    "people_notes",
    "profile_figures",
    "side_table",
    "stereotypes_part",
    "templates_text",
    "terms_of",
]


MEANING = (
    "Scores speak of the model, not of people; by which traits a group stands out is described, not tested. Agreement "
    "with people is no virtue: people's ratings are stereotypes too."
)
TERMS = {
    "score": "Of a pair of traits: how much more a group goes with the right trait than with the left one. By ILPS, "
    "ILPS* and SeT how much more it raises the trait in the model's sentences, compared with the same sentence about "
    "nobody in particular; by CEAT how much closer the model puts it to the trait, each in its own contexts from a "
    "corpus, in standard deviations of their cosines.",
    "stands out": "The score less the mean of all groups that were asked, pair by pair: what all groups share is no "
    "group's own. A group may stand out as cold and still be called warm, less than others are.",
}
_PEOPLE_TERMS = {
    "tau": "Compares the order of all scores with that of people's ratings: 0 is no agreement, 1 the same order (after "
    "Botsch 2011 the paper calls 0.1 weak, 0.2 moderate, 0.3 strong). Where templates were chosen on pilot groups, it "
    "is over the other groups, for on those it flatters. Its interval says nothing about other traits or templates.",
    "groups shuffled": "The tau of groups mistaken for each other: what all groups have in common. Only what goes "
    "beyond it says that the model knows one group from another.",
    "P@3": "Of the three pairs in which a group ranks highest and the three in which it ranks lowest, the share that "
    "people rate above and below 50.",
}
ColumnTable = tuple[Sequence[Column], Sequence[Any]]
PAIRED = ("orders", "dominance", "emergent", "rated")
"""The tables about paired groups."""
_ORDER = (
    Column("of", "a pair and", "What its order of traits is compared with."),
    Column("tau", "tau", "Mean of Kendall's tau.", "number"),
    Column("standard_error", "error", "Of the mean.", "number"),
    Column("n", "pairs", "Over how many pairs.", "count"),
)
AGREEMENT = (
    *("measure", "annotators", "n_annotators", "effect_size", "interval", "tau_shuffled", "p_value"),
    *("precision_effect_size", "with_pilot_effect_size", "templates"),
)
"""The columns of agreement for which a terminal has room."""

_AGREEMENT_COLUMNS = (
    *("annotators", "n_annotators", "n_groups", "n_domains", "n_cells", "effect_size", "interval", "tau_shuffled"),
    *("p_value", "p_adjusted", "evidence", "annotators_interval", "groups_interval", "cells_p_value"),
    *("precision_effect_size", "precision_annotators_interval", "precision_groups_interval", "precision_interval"),
    *("pilot_effect_size", "with_pilot_effect_size", "with_pilot_p_value", "precision_with_pilot_effect_size"),
)
_AGREEMENT_LABELS = {"effect_size": "tau", "p_value": "p, shuffled"}


def _make_interval_column(alternative: str, label: str, help: str) -> Column:
    """Return a column with both ends of the interval of the primary outcome or of an alternative."""

    def get(result: Result) -> tuple[float | None, float | None] | None:
        outcome = result.record.alternatives[alternative] if alternative else result.record.outcome
        return None if outcome.ci_low is None else (outcome.ci_low, outcome.ci_high)

    return Column(f"{alternative}_interval".strip("_"), label, help, "interval", get)


_INTERVALS = (
    _make_interval_column("", "95%, both", "With other groups and annotators; if the file holds means, groups only."),
    _make_interval_column("annotators", "95%, people", "With other annotators."),
    _make_interval_column("groups", "95%, groups", "With other groups."),
    _make_interval_column("precision_annotators", "P@3 95%, people", "With other annotators."),
    _make_interval_column("precision_groups", "P@3 95%, groups", "With other groups."),
    _make_interval_column("precision", "P@3 95%, both", "With others of both."),
)
_SPECS = {spec.name: spec for spec in TABLES}
_MAX_LEADING_TRAITS = 4


def terms_of(run: RunData) -> dict[str, str]:
    """Return the terms of a report with their meanings."""
    return {**TERMS, **(_PEOPLE_TERMS if run.tables.get("alignments") else {})}


def headline(run: RunData) -> str:
    """Describe what was measured."""
    inputs: StereotypeInputsRecord = run.manifest.inputs
    counts = f"{format_count(len(inputs.groups), 'group')}, {len(inputs.pairs)} pairs of traits"
    variant = ""
    if inputs.templates:
        counts, variant = (
            f"{counts}, {format_count(len(inputs.templates), 'template')}",
            f", variant {run.manifest.settings.variant}",
        )
    if inputs.contexts is not None:
        counts += f", {inputs.contexts.rows:,} contexts"
    return f"{counts}; {', '.join(map(measure_name, inputs.measures))}{variant}"


def side_table(run: RunData, name: str, of: RunSlice) -> ColumnTable:
    """Return a stored table without the columns that its rows share.

    Parameters
    ----------
    run : RunData
    name : str
        Name of the table.
    of : RunSlice
        Rows of one model or measure.
    """
    rows = of[name]
    if name == "orders":
        return _order_table(of)
    columns = drop_columns(_SPECS[name].columns_of(run), "model", "options", "measure", "annotators")
    return filled(_join_ends(columns), rows), rows


def _join_ends(columns: Sequence[Column]) -> list[Column]:
    """Replace the two ends of an interval by one column."""
    low = next((column for column in columns if column.name == "ci_low"), None)
    if low is None:
        return list(columns)

    def get(row: Any) -> tuple[float, float] | None:
        return None if row.ci_low is None else (row.ci_low, row.ci_high)

    help = low.help.removeprefix("Lower end ").removeprefix("of the interval ")
    interval = Column("interval", "95%", help[:1].upper() + help[1:], "interval", get)
    return [interval if column is low else column for column in columns if column.name != "ci_high"]


def _order_table(of: RunSlice) -> ColumnTable:
    """How a pair agrees with its groups and with the pair in the other order, line by line."""
    row = of.first("orders")
    lines = [
        SimpleNamespace(of=text, **{name: getattr(row, f"{name}_{end}") for name in ("tau", "standard_error", "n")})
        for end, text in ORDERS.items()
    ]
    return _ORDER, lines


def alignment_table(run: RunData, model: RunSlice, *names: str) -> ColumnTable:
    """Agreement with people, and over which templates; of some columns, or of all."""
    templates = {row.measure: templates_text(row, run.manifest.inputs) for row in model["measures"]}
    stored = {column.name: column for column in _SPECS["alignments"].columns_of(run)}
    stored |= {name: replace(stored[name], label=label) for name, label in _AGREEMENT_LABELS.items()}
    stored |= {column.name: column for column in _INTERVALS}
    columns = [
        Column("measure", "measure", "The measure.", get=lambda row: measure_name(row.measure)),
        *(stored[name] for name in _AGREEMENT_COLUMNS),
        Column("templates", "templates", "Over which scores are means.", get=lambda row: templates[row.measure]),
    ]
    rows = join_decisions(model["alignments"], run.tables.get("decisions", ()))
    return filled(select_columns(columns, *names) if names else columns, rows), rows


def leading_table(run: RunData, measure: RunSlice) -> ColumnTable:
    """Single groups: the traits by which they stand out, and how the group agrees with people."""
    rated = {row.group: row for row in by_group(measure)}
    rows = select_singles(measure)
    found = find_distinctive_traits(rows, run.manifest.inputs)
    own = _SPECS["group_alignments"].columns_of(run)

    def leading(profile: ProfileRow) -> str:
        return ", ".join(trait.name for trait in found[profile.group][:_MAX_LEADING_TRAITS])

    said = "Traits whose scores go most beyond the mean of all groups."
    columns = [
        Column("group", "group", "The social group."),
        Column("traits", "stands out as", said if is_centred(rows) else "Traits, strongest first.", get=leading),
        *(_rated(column, rated) for column in select_columns(own, "effect_size", "precision", "pilot")),
    ]
    return filled(columns, rows), rows


def _rated(column: Column, rated: Mapping[str, GroupAlignmentRow]) -> Column:
    return replace(column, get=lambda row: getattr(rated.get(row.group), column.name, None))


def templates_text(row: MeasureRow, inputs: StereotypeInputsRecord) -> str:
    """Over what a measure was taken: templates as sentences, [Group] are [trait], or contexts where it has none."""
    if not row.templates:
        return "contexts"
    if len(row.chosen) > 2:
        return f"all {len(row.chosen)} templates"
    texts = (inputs.templates[name].replace("{", "[").replace("}", "]") for name in row.chosen)
    return " and ".join(f'"{text}"' for text in texts)


def notes_of(run: RunData, models: Sequence[RunSlice]) -> list[str]:
    """Return notes on inputs and on out-of-vocabulary words."""
    lacking = (f"{model.label}: {note}" for model in models for note in _lacking(model))
    return [f"{note}." for note in (*run.manifest.inputs.notes, *lacking)]


def people_notes(run: RunData) -> list[str]:
    """How people agree with each other, and what there is to know about their judgements."""
    human, notes = run.manifest.inputs.human, []
    ceiling = None if human is None else human.ceiling
    if ceiling is not None and ceiling.tau is not None:
        span = "" if ceiling.interval is None else f" (95% {format_interval(*ceiling.interval)})"
        notes.append(f"People: the means of two random halves of them agree with tau {ceiling.tau:.2f}{span}.")
    if human is not None and human.notes:
        notes.append(f"{human.file}: {'; '.join(human.notes)}.")
    return notes


def _lacking(model: RunSlice) -> Iterator[str]:
    for row in model["models"]:
        for what, names in (
            ("cannot be asked where words follow the trait", row.skipped_templates),
            ("does not know all tokens of", row.unknown_adjectives),
            ("does not know all words of these groups, which are not measured", row.unknown_groups),
        ):
            if names:
                yield f"{what}: {', '.join(names)}"
    undefined = [f"{measure_name(row.measure)} {row.undefined:,}" for row in model["measures"] if row.undefined]
    if undefined:
        yield f"scores that are not defined and left out: {', '.join(undefined)}"
    for seen in model["contexts"]:
        of_groups, of_adjectives = (sum(counts.values()) for counts in (seen.groups, seen.adjectives))
        yield f"{of_groups:,} contexts of groups and {of_adjectives:,} of adjectives"
        for few, counts in ((seen.few_groups, seen.groups), (seen.few_adjectives, seen.adjectives)):
            if few:
                yield f"too few contexts: {', '.join(f'{word} {counts[word]}' for word in few)}"
        if seen.own_words:
            listed = "; ".join(f"{', '.join(words)} for {group}" for group, words in seen.own_words.items())
            yield f"adjectives left out, for they are words for the group itself: {listed}"


def agreement_table(run: RunData) -> PaperTable | None:
    """For a paper, as Cao et al. 2022, Table 6: measures across, models down; None without human judgements."""
    models = {model.label: {one.row.measure: overall(one) for one in measures_of(model)} for model in models_of(run)}
    measures = list(dict.fromkeys(name for own in models.values() for name, row in own.items() if row is not None))
    if not measures:
        return None
    groups = []
    for label, own in models.items():
        rows = [own.get(measure) for measure in measures]
        lines = {
            "Kendall's tau": [_cell(None if row is None else row.outcome) for row in rows],
            "precision at 3": [_cell(None if row is None else row.alternatives["precision"]) for row in rows],
            "tau, groups shuffled": [
                _cell(None if row is None else Outcome(effect_size=row.tau_shuffled)) for row in rows
            ],
        }
        groups.append(
            RowGroup(clean_line(label), tuple(TableRow((name,), tuple(cells)) for name, cells in lines.items()))
        )
    caption = (
        "Agreement of language models with human judgements over all pairs of traits and the groups on which templates "
        "were not chosen, with 95% intervals over people and groups. Groups shuffled: the tau if ratings are given at "
        "random to the groups, which is what all groups have in common. Agreement is no virtue: people's ratings are "
        "stereotypes too."
    )
    return PaperTable(clean_line(caption), ("",), tuple(ColumnSpan(measure_name(m)) for m in measures), tuple(groups))


def _cell(outcome: Outcome | None) -> Cell:
    text = format_value("number", None if outcome is None else outcome.effect_size)
    if outcome is not None and outcome.ci_low is not None:
        text += f" ({format_interval(outcome.ci_low, outcome.ci_high)})"
    return Cell(text.replace("-", "−"))  # inside a text a hyphen would stay one


_FEW = 12  # groups, of which more traits are shown
_TRAITS = (5, 3)
_AGREEMENT = "Do scores order traits and groups as people's ratings do? 0: not at all; 1: in the same order."
_CAPTION = (
    "A bar is the group's score less the mean of all {groups}: what all share is no group's own. A group that stands "
    "out as cold may still be called warm, less than others are; the score as measured is one tap away."
)
_ALONE = "There is one group, and none to compare it with: scores are as measured."


def figure_of(run: RunData, models: Sequence[RunSlice]) -> Markup | None:
    """Agreement first, where people were asked."""
    agreements = [one for one in make_findings(run) if one.unit == "tau"]
    figures = [figure for figure in (draw_overview(agreements, _AGREEMENT), _apart(run, models)) if figure]
    return Markup("").join(figures) if figures else None


def _apart(run: RunData, models: Sequence[RunSlice]) -> Markup | None:
    """Draw the traits by which every group stands out, by the measure of the findings."""
    known = [(model.label, one) for model in models if (one := closest(model)) is not None and one["profiles"]]
    best = known[:MANY_MODELS]
    profiles = [select_singles(one) for _, one in best]
    if not any(profiles):
        return None
    names = [measure_name(one.row.measure) for _, one in best]
    same = len(set(names)) == 1
    order = list(dict.fromkeys((row.domain, row.group) for rows in profiles for row in rows))
    most = _TRAITS[len(order) > _FEW]
    panels: dict[tuple[str, str], list[Panel]] = {place: [] for place in order}
    for model, rows in enumerate(profiles):
        for row, panel in _panels(run, rows, model, most, stretch=not same):
            panels[row.domain, row.group].append(panel)
    compared = any(map(is_centred, profiles))
    caption = _CAPTION.format(groups=format_count(len(order), "group")) if compared else _ALONE
    caption += "" if same else " Bars of every model reach to its largest."
    caption += "" if best == known else f" The first {len(best)} of {len(known)} models."
    return draw_panels(
        list(_by_domain(panels)),
        [label if same else f"{label} ({name})" for (label, _), name in zip(best, names, strict=True)],
        title=f"Traits by which groups stand out, by {' or '.join(dict.fromkeys(names))}.",
        caption=caption,
    )


def _panels(
    run: RunData, rows: Sequence[ProfileRow], model: int, most: int, *, stretch: bool
) -> Iterator[tuple[ProfileRow, Panel]]:
    traits = find_distinctive_traits(rows, run.manifest.inputs)
    largest = max((own[0].beyond for own in traits.values() if own), default=0.0) or 1.0
    of = sum(bool(own) for own in traits.values())
    for row in rows:
        bars = (_bar(row.group, trait, of, largest if stretch else 1.0) for trait in traits[row.group][:most])
        yield row, Panel(row.group, model, tuple(bars), "" if traits[row.group] else "not measured")


def _bar(group: str, trait: Trait, of: int, largest: float) -> Bar:
    beyond = f", {trait.beyond:.2f} beyond the mean of {format_count(of, 'group')}" if of > 1 else ""
    towards = trait.name if trait.score >= 0.0 else trait.opposite
    text = f"{group}: {trait.name} rather than {trait.opposite}{beyond}"
    text += f"\nas measured {abs(trait.score):.2f} towards {towards}"
    if trait.human is not None:
        text += f"\npeople rate it {trait.human:.0f} of 100 towards {trait.name}"
    return Bar(trait.name, trait.beyond / largest, f"{trait.beyond:.2f}", text)


def _by_domain(panels: dict[tuple[str, str], list[Panel]]) -> Iterator[Panels]:
    for domain in dict.fromkeys(domain for domain, _ in panels):
        own = [group for of, group in panels if of == domain]
        found = tuple(panel for group in own for panel in panels[domain, group])
        most = max((panel for panel in found if panel.bars), key=lambda panel: panel.bars[0].value, default=None)
        above = "" if most is None else f", above all {most.title}: {most.bars[0].label}"
        yield Panels(domain[:1].upper() + domain[1:], found, format_count(len(own), "group") + above)


_MOST_GROUPS = 60
_ACROSS = 7  # pairs
_TOLD = 5  # groups in words
_LEADING = 3
_PAGE_TITLES = {spec.name: spec.title for spec in TABLES}


def stereotypes_part(run: RunData, renderer: Renderer) -> ReportPart:
    """Everything about one run of stereotypes."""
    models, manifest = models_of(run), run.manifest
    made = {"manifest": manifest, "inputs": manifest.inputs, "settings": manifest.settings}
    return ReportPart(
        anchor=renderer.anchor,
        title=f"Stereotypes in {', '.join(model.label for model in models) or 'no model'}",
        headline=headline(run),
        summary=_said(run, models),
        meaning=MEANING,
        figure=figure_of(run, models),
        terms=terms_of(run),
        sections=[
            *renderer.notes([*notes_of(run, models), *people_notes(run)]),
            *(_model(place, model, run, renderer) for place, model in enumerate(models, start=1)),
            renderer.section("stereotypes_made", "How it was made", **made),
        ],
    )


def _said(run: RunData, models: Sequence[RunSlice]) -> list[Statement]:
    """Of every model how it agrees with people, and what sets its groups apart; of very many what they share."""
    findings = make_findings(run)
    if len(models) > MANY_MODELS:
        return make_statements(findings)
    summary = []
    for model in models:
        own = [one for one in findings if one.model == model.label]
        listed = make_points([one for one in own if one.unit == "tau"])
        agreements = tuple(f"{text}{name}" for text, name in listed)
        groups = tuple(_groups_said(run, model))
        text = f"{model.label}: {summarize_findings(own)}"
        summary.append(
            Statement(text, (*agreements, *groups), model.label, (*(name for _, name in listed), *[""] * len(groups)))
        )
    return summary


def _groups_said(run: RunData, model: RunSlice) -> Iterator[str]:
    """Yield the groups that stand out most, with their traits."""
    best = closest(model)
    profiles = [] if best is None else select_singles(best)
    found = [(group, own) for group, own in find_distinctive_traits(profiles, run.manifest.inputs).items() if own]
    verb = "stands out as" if is_centred(profiles) else "goes with"
    ordered = sorted(found, key=lambda one: -one[1][0].beyond)
    for group, own in ordered[:_TOLD]:
        yield f"{group} {verb} {', '.join(f'{trait.name} ({trait.beyond:.2f})' for trait in own[:_LEADING])}"
    if len(found) > _TOLD:
        yield f"{format_count(len(found) - _TOLD, 'more group')} in the figure"


def _model(place: int, model: RunSlice, run: RunData, renderer: Renderer) -> Section:
    best, inputs = closest(model), run.manifest.inputs
    figures = [] if best is None else profile_figures(run, place, best)[:_MOST_GROUPS]
    rated = {} if best is None else {row.group: row for row in by_group(best)}
    captions = [_caption(rated.get(row.group)) for row, _ in figures]
    drawn = renderer.figures([make for _, make in figures])

    def cells(title: str, table: ColumnTable, *, turned: bool = False) -> dict[str, Any]:
        return cells_of(f"{title}, {model.label}", *table, turned=turned)

    section = renderer.section(
        "model_stereotypes",
        model.label,
        model=model.label,
        agreement=cells("Agreement with people", alignment_table(run, model), turned=True)
        if model["alignments"]
        else None,
        dumbbells=list(zip(drawn, captions, strict=False)),
        compared=measure_name(best.row.measure) if best is not None and figures else None,
        dimensions=list(dict.fromkeys(inputs.dimensions.values())),
        measures=[_measure(measure, run, cells) for measure in measures_of(model)],
        asked=cells("What was asked", side_table(run, "models", model), turned=True),
    )
    return Section(f"{section.anchor}-{place}", section.title, section.body)


def _caption(rated: GroupAlignmentRow | None) -> str:
    tau = f"tau {format_value('number', None if rated is None else rated.effect_size)}"
    return f"{tau}, a pilot group" if rated is not None and rated.pilot else tau


def _measure(measure: RunSlice, run: RunData, cells: Any) -> dict[str, Any]:
    """Return the values of one measure for the template."""
    name = measure_name(measure.row.measure)
    profiles = select_singles(measure)
    rated = RunSlice("", None, {"group_alignments": tuple(by_group(measure))})
    apart = center_scores(profiles)
    return {
        "name": name,
        "over": templates_text(measure.row, run.manifest.inputs),
        "profiles": [(row, apart[row.group]) for row in profiles],
        "means": mean_scores(profiles) if is_centred(profiles) else None,
        "blocks": _blocks(run.manifest.inputs),
        # What sets a single group most apart, by which cells are shaded.
        "largest": max((abs(s) for own in apart.values() for s in own if s is not None), default=1.0) or 1.0,
        "groups": cells(f"Agreement by group, {name}", side_table(run, "group_alignments", rated)),
        "paired": {
            _PAGE_TITLES[table]: cells(f"{_PAGE_TITLES[table]}, {name}", side_table(run, table, measure))
            for table in PAIRED
            if measure[table]
        },
    }


def _blocks(inputs: StereotypeInputsRecord) -> list[tuple[str, list[tuple[int, str, str]]]]:
    """Return the pairs of every dimension with their indices, in blocks that fit a page."""
    blocks = []
    for name in dict.fromkeys(inputs.dimensions.get(pair, "") for pair in inputs.pairs):
        own = [
            (i, *get_pair_sides(p, inputs)) for i, p in enumerate(inputs.pairs) if inputs.dimensions.get(p, "") == name
        ]
        blocks += [(name, own[at : at + _ACROSS]) for at in range(0, len(own), _ACROSS)]
    return blocks


def profile_figures(run: RunData, place: int, measure: RunSlice) -> list[tuple[ProfileRow, Drawing]]:
    """Return one profile figure per group that people rated.

    Parameters
    ----------
    run : RunData
    place : int
        Number of the model.
    measure : RunSlice
    """
    rated = [row for row in measure["profiles"] if not row.parts and any(v is not None for v in row.human or ())]
    name = f"profile-{place}-{measure.row.measure}"
    return [(row, partial(_drawn, f"{name}-{row.group}", row, run)) for row in rated]


def _drawn(name: str, of: ProfileRow, run: RunData, style: Style) -> Figure:
    inputs = run.manifest.inputs
    return draw_profile(name, of.group, inputs.pairs, inputs.dimensions, of.scores, of.human, style)


_PRIORS = {"mask": "the same sentence with the group masked", "word": "the same sentence about people in general"}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Which groups and traits, by which measures, and how they were compared with people."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    own = [measure_name(name) for name in inputs.measures if name != CEAT]
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured how "
        f"{format_count(len(inputs.pairs), 'pair')} of opposite traits (the "
        f"ABC model) go with {format_count(len(inputs.groups), 'social group')} in {format_models(run)}",
        ("biassay", "cao2022", *sources),
    )
    if own:
        priors = dict.fromkeys(_PRIORS[row.prior] for row in run.tables.get("models", ()) if row.prior in _PRIORS)
        against = join_names(list(priors) or [_PRIORS[settings.prior]], "or")
        variant = "" if settings.variant == "paper" else f", in the variant {settings.variant}"
        yield MethodsSentence(
            f"By {join_names(own)} a score says how much more a group raises the right trait of a "
            f"pair than the left one, "
            f"compared with {against}{variant}",
            ("cao2022",),
        )
        yield from _templates(run)
    if inputs.contexts is not None:
        of = f" of {format_count(inputs.contexts.documents, 'document')}" if inputs.contexts.documents else ""
        yield MethodsSentence(
            f"By CEAT a score says how much closer a group is to the right trait, in {inputs.contexts.rows:,} contexts "
            f"from a corpus{of}, found with seed {inputs.contexts.seed}",
            ("guo2021",),
        )
    if inputs.human is not None:
        yield MethodsSentence(
            "Scores are compared with people's mean ratings by Kendall's tau and precision at 3, over the groups on "
            "which templates were not chosen. 95% intervals combine a bootstrap over people "
            f"({settings.n_bootstrap:,} samples) with a jackknife over the domains of groups",
            ("cao2022",),
        )
    paired = max((row.num_groups for row in run.tables.get("orders", ())), default=0)
    if paired:
        yield MethodsSentence(f"{paired:,} groups that combine two domains were also measured", ("cao2022",))
    if any(row.p_adjusted is not None for row in run.tables.get("emergent", ())):
        yield MethodsSentence(
            "p-values of traits that emerge in pairs of groups were corrected by the method of Benjamini and Hochberg",
            ("benjamini1995",),
        )
    yield make_seed_sentence([settings.seed])


def _templates(run: RunData) -> Iterator[MethodsSentence]:
    """Over which templates scores are means, and how these were chosen."""
    by_text: dict[tuple[str, str], list[str]] = {}
    models = models_of(run)
    for model in models:
        for row in model["measures"]:
            if row.templates:
                who = measure_name(row.measure) if len(models) == 1 else f"{measure_name(row.measure)} of {model.label}"
                by_text.setdefault((_used(row, run), _choice(row)), []).append(who)
    if not by_text:
        return
    alone = len(by_text) == 1
    parts = [used if alone else f"{used} ({', '.join(who)})" for (used, _), who in by_text.items()]
    choices = list(dict.fromkeys(choice for _, choice in by_text if choice))
    pilot = list(dict.fromkeys(row.group for row in run.tables.get("group_alignments", ()) if row.pilot))
    chosen = ""
    if choices:
        chosen = (
            f"; these were chosen from {join_names(choices, 'or')} as those that agree best with people's ratings of "
        )
        chosen += f"{format_count(len(pilot), 'pilot group')} ({', '.join(pilot)})" if pilot else "pilot groups"
    yield MethodsSentence(f"Scores are means over {join_names(parts)}{chosen}", ("cao2022",))


def _used(row: MeasureRow, run: RunData) -> str:
    text = templates_text(row, run.manifest.inputs)
    return f"the template {text}" if len(row.chosen) == 1 else text


def _choice(row: MeasureRow) -> str:
    return format_count(len(row.templates), "template") if len(row.chosen) < len(row.templates) else ""


_PAIRED_ROWS = 15
_TASKS = {"masked": "fill-mask", "causal": "text-generation"}
_TITLES = {spec.name: spec.title for spec in TABLES}


class StereotypePresenter(Presenter):
    """Report of stereotype runs."""

    package = "biassay.studies.stereotypes"

    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        """Return the part of the report."""
        return stereotypes_part(gathered.run, renderer)

    def print(self, gathered: RunGroup, console: Console, *, everything: bool = False, **_: Any) -> None:
        """Print the run."""
        run = gathered.run
        models = models_of(run)
        findings = make_findings(run)
        tables = [table for model in models for table in _printed(run, model, everything=everything)]
        notes = [*notes_of(run, models), *people_notes(run)]
        told = [f"{term}: {meaning}" for term, meaning in terms_of(run).items()] if everything else []
        print_run(console, headline(run), tables, make_statements(findings), notes, [*told, MEANING])

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, PaperTable]]:
        """Yield the tables of a paper."""
        table = agreement_table(gathered.run)
        if table is not None:
            yield "agreement-with-people", table

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield the figures."""
        for place, model in enumerate(models_of(gathered.run), start=1):
            for measure in measures_of(model):
                yield from (make for _, make in profile_figures(gathered.run, place, measure))

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        """Yield the sources of the data."""
        for run in runs:
            made = run.manifest.inputs
            yield from cite_source(made.citation, made.abc, f"groups and traits of {made.abc}")
            if run.tables.get("rated"):
                yield CitationUse("what people say of paired groups", "ghavami2013")

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
        own = [measure_name(name) for name in run.manifest.inputs.measures if name != "ceat"]
        yield CitationUse(f"the measures {', '.join(own)}" if own else "stereotypes in the ABC model", "cao2022")
        if "ceat" in run.manifest.inputs.measures:
            yield CitationUse("the method CEAT", "guo2021")
        if any(row.p_adjusted is not None for row in run.tables.get("emergent", ())):
            yield CitationUse("correction for the number of traits", "benjamini1995")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods section."""
        return methods_sentences(run, list_works(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        """Return the labels of the models."""
        return [model.label for model in models_of(run)]

    def card(self, run: RunData, label: str) -> ModelCard:
        """Return the model card of one model."""
        models = [model for model in models_of(run) if model.label == label]
        own = [one for one in make_findings(run) if one.model == label]
        entries = [entry for model in models for entry in _entries(model, run)]
        notes = [*notes_of(run, models), *([] if entries else ["No agreement with people was measured."])]
        limits = [MEANING, "A measure that finds no stereotype does not show that a model has none."]
        return make_card(run, own, headline(run), entries, limits, notes)

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare the models of several runs."""
        return compare_stereotypes(runs, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        """Return the part of the report that compares models."""
        rows = comparison.tables["agreements"]
        section = section_of("agreements", "Agreement with people", _DIFFERENCES, rows, renderer)
        return lay_out_comparison(comparison, (), [section])

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        """Print a comparison."""
        table = printed("Agreement with people", _DIFFERENCES, comparison.tables["agreements"])
        print_differences(comparison, console, (), before=[table])


_DIFFERENCES = (
    Column("measure", "measure", "The measure.", get=lambda row: measure_name(row.measure)),
    Column("model", "model", "The model that is compared."),
    Column("tau_baseline", "tau of the first", "How the first model agrees with people.", "number"),
    Column("tau_model", "tau of the model", "How the model does.", "number"),
    Column("difference", "difference", "The second less the first.", "number"),
    Column(
        "interval", "95%", "With other groups.", get=lambda row: format_interval(row.interval_low, row.interval_high)
    ),
    Column("tau_between", "tau between the two", "How the models agree with each other.", "number"),
    Column("num_groups", "groups", "Groups that are compared.", "count"),
    Column("num_cells", "cells", "Groups and pairs that are compared.", "count"),
)


def _printed(run: RunData, model: RunSlice, *, everything: bool) -> Iterator[RenderableType]:
    if model["alignments"]:
        yield printed(f"{model.label}: agreement with people", *alignment_table(run, model, *AGREEMENT))
    best = closest(model)  # one measure, for a table of all groups is long
    if best is not None:
        title = f"{model.label}: {measure_name(best.row.measure)}, {templates_text(best.row, run.manifest.inputs)}"
        yield printed(title, *leading_table(run, best), most=None if everything else PRINTED)
    for measure in measures_of(model):
        for name in PAIRED:
            if measure[name]:
                title = f"{model.label}: {measure_name(measure.row.measure)}, {_TITLES[name].lower()}"
                yield printed(title, *side_table(run, name, measure), most=None if everything else _PAIRED_ROWS)


def _entries(model: RunSlice, run: RunData) -> Iterator[IndexEntry]:
    """Of every measure its agreement with all people; that with some of them stays in the run."""
    for measure in measures_of(model):
        found, name = overall(measure), measure.row.measure
        if found is not None:
            yield IndexEntry(
                task=_TASKS.get(model["models"][0].kind, "feature-extraction"),
                task_name="Stereotypes of social groups",
                dataset=run.manifest.inputs.abc,
                dataset_name=f"Agreement with people's ratings: {measure_name(name)}",
                config=name,
                args={
                    "groups": str(found.outcome.n["groups"]),
                    "cells": str(found.outcome.n["cells"]),
                    "biassay": get_version(run),
                },
                metrics=(
                    CardMetric("kendall_tau", "Kendall's tau", found.outcome.effect_size),
                    CardMetric("precision_at_3", "Precision at 3", found.alternatives["precision"].effect_size),
                ),
            )
