"""Report and methods sentences of stereotypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from markupsafe import Markup

from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.profiles import draw_profile
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
    join_intervals,
    make_table,
)
from biassay.reporting.findings import list_skipped, make_points, make_statements, summarize_findings
from biassay.reporting.formats import (
    MANY_MODELS,
    clean_line,
    format_count,
    format_decimal,
    format_interval,
    format_value,
)
from biassay.reporting.html import Bar, Panel, Panels, draw_overview, draw_panels
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
from biassay.reporting.presenter import Presenter, make_record_table
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Finding, Outcome, Result, join_decisions
from biassay.results.run_data import RunData, RunGroup, RunSlice, model_labels, split_by_model
from biassay.results.tables import Column, make_columns, select_columns
from biassay.studies.settings import describe_settings
from biassay.studies.stereotypes.compare import AgreementDifference, compare_stereotypes
from biassay.studies.stereotypes.results import (
    TABLES,
    AgreementResult,
    GroupTraits,
    MeasureRow,
    ProfileRow,
    StereotypeInputsRecord,
    Trait,
    center_scores,
    find_closest_measure,
    find_distinctive_traits,
    format_measure,
    get_agreement,
    is_centred,
    list_group_agreements,
    make_findings,
    mean_scores,
    select_singles,
    split_by_measure,
)
from biassay.studies.stereotypes.settings import CEAT

MEANING = (
    "Scores describe the model, not people. The traits by which a group stands out are described, not tested. "
    "Agreement with people is not a merit: people's ratings are stereotypes too."
)
TERMS = {
    "score": "How much more strongly the model associates a group with the right trait of a pair than with the left "
    "one. ILPS, ILPS* and SeT compare a sentence about the group with the same sentence about nobody in particular. "
    "CEAT compares cosines of the group and the traits, each in its own contexts from a corpus, in standard "
    "deviations.",
    "stands out": "The score minus the mean of all groups, pair by pair, which removes the part that all groups share. "
    "A group may stand out as cold and still have a score towards warm, only a lower one than others.",
}
_PEOPLE_TERMS = {
    "tau": "Kendall's tau between all scores and people's ratings: 0 is no agreement, 1 the same order (after Botsch "
    "2011, the paper calls 0.1 weak, 0.2 moderate, 0.3 strong). If templates were chosen on pilot groups, tau is over "
    "the other groups, because it is too high on the pilot. Its interval does not cover other traits or templates.",
    "groups shuffled": "Tau with people's ratings permuted among the groups, from ratings that all groups share. Only "
    "a larger tau shows that the model distinguishes between groups.",
    "P@3": "Share of a group's three highest pairs that people rate above 50 and of its three lowest pairs that they "
    "rate below 50.",
}
_BRIEF_AGREEMENT = (
    *("annotators", "n_annotators", "effect_size", "interval", "tau_shuffled", "p_value"),
    "precision_effect_size",
)
"""The columns of agreement for which a terminal has room."""
_AGREEMENT_COLUMNS = (
    *("annotators", "n_annotators", "n_groups", "n_domains", "n_cells", "effect_size", "interval", "tau_shuffled"),
    *("p_value", "p_adjusted", "evidence", "annotators_interval", "groups_interval", "cells_p_value"),
    *("precision_effect_size", "precision_annotators_interval", "precision_groups_interval", "precision_interval"),
    *("pilot_effect_size", "with_pilot_effect_size", "with_pilot_p_value", "precision_with_pilot_effect_size"),
)
_AGREEMENT_LABELS = {"effect_size": "tau", "p_value": "p, shuffled", "interval": "95%, both"}


_SPECS = {spec.name: spec for spec in TABLES}


def headline(run: RunData) -> str:
    """Describe the measurement."""
    inputs: StereotypeInputsRecord = run.manifest.inputs
    parts = [format_count(len(inputs.groups), "group"), f"{len(inputs.pairs)} pairs of traits"]
    variant = ""
    if inputs.templates:
        parts.append(format_count(len(inputs.templates), "template"))
        variant = f", variant {run.manifest.settings.variant}"
    if inputs.contexts is not None:
        parts.append(f"{inputs.contexts.rows:,} contexts")
    return f"{', '.join(parts)}; {', '.join(map(format_measure, inputs.measures))}{variant}"


def _make_agreement_table(run: RunData, model: RunSlice) -> Table:
    """Make the table of agreement with people, with one column per measure."""
    templates = {row.measure: describe_templates(row, run.manifest.inputs) for row in model["measures"]}
    text = "Templates that scores are means over."
    columns = [
        *_select_agreement_columns(run, *_AGREEMENT_COLUMNS),
        Column("templates", "templates", text, get=lambda row: templates[row.measure]),
    ]
    rows = _list_agreements(run, model)
    return _turn(drop_empty_columns(columns, rows), rows)


def _list_agreements(run: RunData, model: RunSlice) -> Sequence[Result]:
    return join_decisions(model["alignments"], run.tables.get("decisions", ()))


def _select_agreement_columns(run: RunData, *names: str) -> list[Column]:
    stored = {column.name: column for column in join_intervals(_SPECS["alignments"].get_columns(run))}
    stored |= {name: replace(stored[name], label=label) for name, label in _AGREEMENT_LABELS.items()}
    measure = Column("measure", "measure", "The measure.", get=lambda row: format_measure(row.measure))
    return [measure, *(stored[name] for name in names)]


def _turn(columns: Sequence[Column], rows: Sequence[Any]) -> Table:
    """Make a table of many columns and few rows, with the columns down and the rows across."""
    first, *others = columns
    spans = tuple(ColumnSpan(clean_line(format_value("text", first.value(row))), text=True) for row in rows)
    body = tuple(
        TableRow(
            (column.label,), tuple(Cell(clean_line(format_value(column.format, column.value(row)))) for row in rows)
        )
        for column in others
    )
    return Table(
        "", (first.label,), spans, (RowGroup("", body),), help={column.label: column.help for column in others}
    )


def _make_traits_table(run: RunData, model: RunSlice, measure: RunSlice) -> Table:
    """Make the table of single groups with the traits by which they stand out, and their agreement with people."""
    agreements = {row.group: row for row in list_group_agreements(measure)}

    def get_agreement_column(column: Column) -> Column:
        return replace(column, get=lambda row: getattr(agreements.get(row.group), column.name, None))

    names = ("effect_size", "precision", "pilot")
    columns = [
        Column("group", "group", "The social group."),
        Column("traits", "stands out as", "Traits by which the group stands out, strongest first."),
        *map(get_agreement_column, select_columns(_SPECS["group_alignments"].get_columns(run), *names)),
    ]
    return make_table("", drop_empty_columns(columns, model["groups"]), model["groups"])


def describe_templates(row: MeasureRow, inputs: StereotypeInputsRecord) -> str:
    """Describe the templates that scores are means over, as sentences: [Group] are [trait]; or contexts."""
    if not row.templates:
        return "contexts"
    if len(row.chosen) > 2:
        return f"all {len(row.chosen)} templates"
    texts = ['"{}"'.format(inputs.templates[name].replace("{", "[").replace("}", "]")) for name in row.chosen]
    return f"the template {texts[0]}" if len(texts) == 1 else " and ".join(texts)


def list_notes(run: RunData, models: Sequence[RunSlice]) -> list[str]:
    """List notes on inputs, on out-of-vocabulary words and on human judgements."""
    inputs: StereotypeInputsRecord = run.manifest.inputs
    notes = [f"{note[:1].upper()}{note[1:]}." for note in inputs.notes]
    notes += [f"{model.label}: {note}." for model in models for note in _list_missing(model)]
    human = inputs.human
    if human is not None and human.ceiling is not None and human.ceiling.tau is not None:
        interval = "" if human.ceiling.interval is None else f", 95% CI {format_interval(*human.ceiling.interval)}"
        notes.append(f"Mean ratings of two random halves of the annotators: tau = {human.ceiling.tau:.2f}{interval}.")
    if human is not None and human.notes:
        notes.append(f"{human.file}: {'; '.join(human.notes)}.")
    return notes


def _list_missing(model: RunSlice) -> Iterator[str]:
    """List unmeasured items of a model, and its numbers of contexts."""
    for row in model["models"]:
        for reason, names in (
            ("templates skipped because words follow the trait", row.skipped_templates),
            ("adjectives skipped because tokens are out of vocabulary", row.unknown_adjectives),
            ("groups skipped because words are out of vocabulary", row.unknown_groups),
        ):
            if names:
                yield f"{reason}: {', '.join(names)}"
    undefined = [f"{format_measure(row.measure)} {row.undefined:,}" for row in model["measures"] if row.undefined]
    if undefined:
        yield f"undefined scores, left out of means: {', '.join(undefined)}"
    for row in model["contexts"]:
        yield f"{sum(row.groups.values()):,} contexts of groups and {sum(row.adjectives.values()):,} of adjectives"
        for few, counts in ((row.few_groups, row.groups), (row.few_adjectives, row.adjectives)):
            if few:
                yield f"too few contexts: {', '.join(f'{word} {counts[word]}' for word in few)}"
        if row.own_words:
            words = "; ".join(f"{', '.join(words)} for {group}" for group, words in row.own_words.items())
            yield f"adjectives left out because they name the group itself: {words}"


def agreement_table(run: RunData) -> Table | None:
    """Make the table of a paper after Cao et al. 2022, Table 6: measures across, models down.

    Return None without human judgements.
    """
    models = {
        model.label: {measure.row.measure: get_agreement(measure) for measure in split_by_measure(model)}
        for model in split_by_model(run)
    }
    measures = list(dict.fromkeys(name for own in models.values() for name, row in own.items() if row is not None))
    if not measures:
        return None
    lines: dict[str, Callable[[AgreementResult], Outcome]] = {
        "Kendall's tau": lambda row: row.outcome,
        "precision at 3": lambda row: row.alternatives["precision"],
        "tau, groups shuffled": lambda row: Outcome(effect_size=row.tau_shuffled),
    }
    groups = tuple(
        RowGroup(
            clean_line(label),
            tuple(
                TableRow((name,), tuple(_make_cell(own.get(measure), get) for measure in measures))
                for name, get in lines.items()
            ),
        )
        for label, own in models.items()
    )
    caption = (
        "Agreement of language models with human judgements over all pairs of traits and the groups on which templates "
        "were not chosen, with 95% intervals over people and groups. Groups shuffled: tau with ratings permuted among "
        "the groups, from ratings that all groups share. Agreement is not a merit: people's ratings are "
        "stereotypes too."
    )
    return Table(clean_line(caption), ("",), tuple(ColumnSpan(format_measure(m)) for m in measures), groups)


def _make_cell(row: AgreementResult | None, get: Callable[[AgreementResult], Outcome]) -> Cell:
    outcome = Outcome() if row is None else get(row)
    interval = "" if outcome.ci_low is None else f" {format_interval(outcome.ci_low, outcome.ci_high)}"
    text = f"{format_value('number', outcome.effect_size)}{interval}"
    return Cell(text.replace("-", "−"))  # inside a text a hyphen would stay one


_MAX_FIGURES = 60  # groups
_MAX_GROUPS = 5  # groups per model in words; two if there are several models
_MAX_TRAITS = 3  # traits per group in words
_MAX_TITLE_MODELS = 3
_COLOURS = ("violet", "red", "green", "grey")  # of dimensions in a page, in the order of the page's style


def _make_report(run: RunData) -> Report:
    """Build the report of a run: the most distinctive groups first, then all groups and traits."""
    models = split_by_model(run)
    findings = make_findings(run)
    notes = list_notes(run, models)
    paired = tuple(_list_tables(run, *_PAIRED))
    brief = _select_agreement_columns(run, *_BRIEF_AGREEMENT)
    return Report(
        title=_format_title(models),
        subject=f"Stereotypes in {', '.join(model.label for model in models) or 'no model'}",
        headline=headline(run),
        sections=[
            Section(
                "groups",
                "All groups",
                (*_list_groups(run, models), *_list_tables(run, "group_alignments")),
                printed=True,
            ),
            Section("traits", "All traits", tuple(_list_profiles(run, models))),
            *([Section("paired", "Paired groups", (Text(_EMERGENCE), *paired), printed=True)] if paired else []),
            make_methods_section(run.manifest, _list_settings(run, models, notes), MEANING),
        ],
        statements=_make_statements(models, findings),
        meaning=MEANING,
        notes=list_skipped(findings),
        remarks=notes,
        figure=draw_figure(run, models, findings),
        terms={**TERMS, **(_PEOPLE_TERMS if run.tables.get("alignments") else {})},
        tables=[
            make_table(f"{model.label}: agreement with people", brief, _list_agreements(run, model))
            for model in models
            if model["alignments"]
        ],
    )


def _sort_groups(model: RunSlice) -> list[GroupTraits]:
    """Return the groups with traits, the most distinctive one first."""
    return sorted((row for row in model["groups"] if row.traits), key=lambda row: -(row.outcome.effect_size or 0.0))


def _format_title(models: Sequence[RunSlice]) -> str:
    """Format the finding: the most distinctive group of every model, with its first trait."""
    sentences = []
    for model in models:
        for row in _sort_groups(model)[:1]:
            claim = "stands out most, as" if row.centred else "is associated most with"
            sentences.append(
                f"{model.label}: {row.group} {claim} {row.traits[0]} (score {row.outcome.effect_size:.2f})"
            )
    if len(sentences) > _MAX_TITLE_MODELS:
        return f"Traits of groups in {len(sentences):,} models"
    return ". ".join(sentences) or "No group could be measured"


def _make_statements(models: Sequence[RunSlice], findings: Sequence[Finding]) -> list[Statement]:
    """Describe agreement with people and the most distinctive groups per model, or a summary of many models."""
    if len(models) > MANY_MODELS:
        return make_statements(findings)
    most = _MAX_GROUPS if len(models) == 1 else 2
    statements = []
    for model in models:
        own = [finding for finding in findings if finding.model == model.label]
        rows, points = _sort_groups(model), make_points([finding for finding in own if finding.unit == "tau"])
        for row in rows[:most]:
            verb = "stands out as" if row.centred else "is associated with"
            strongest = f"{row.traits[0]} ({row.outcome.effect_size:.2f})"
            points.append((f"{row.group} {verb} {', '.join((strongest, *row.traits[1:_MAX_TRAITS]))}", ""))
        if len(rows) > most:
            points.append((f"and {format_count(len(rows) - most, 'more group')}", ""))
        text = f"{model.label}: {summarize_findings(own)}"
        if all(finding.evidence in ("descriptive", "skipped") for finding in own):
            text = f"{model.label}: {format_count(len(rows), 'group')}, described and not tested."
        statements.append(
            Statement(text, tuple(f"{text}{name}" for text, name in points), model.label, tuple(n for _, n in points))
        )
    return statements


def _list_groups(run: RunData, models: Sequence[RunSlice]) -> Iterator[Block]:
    """List agreement with people, the traits of all groups and their figures, per model."""
    for index, model in enumerate(models, start=1):
        suffix = f", {model.label}" if len(models) > 1 else ""
        if model["alignments"]:
            yield Heading(f"Agreement with people{suffix}")
            yield Text("Groups used to choose templates are excluded, except in rows about the pilot.")
            yield _make_agreement_table(run, model)
        measure = find_closest_measure(model)
        if measure is None:
            continue
        name = format_measure(measure.row.measure)
        yield Heading(f"Traits by {name}{suffix}")
        yield Text(f"Means over {describe_templates(measure.row, run.manifest.inputs)}.")
        yield _make_traits_table(run, model, measure)
        if drawings := _list_drawings(run, index, measure):
            yield Heading(f"Groups and people, {name}{suffix}")
            yield Text(_explain_drawings(run.manifest.inputs))
            yield Drawings(drawings, small=True)


def _list_tables(run: RunData, *names: str) -> Iterator[Block]:
    """List stored tables that have rows."""
    for name in names:
        if run.tables.get(name):
            yield Heading(_SPECS[name].title)
            yield make_record_table(_SPECS[name], run)


def _list_drawings(run: RunData, index: int, measure: RunSlice) -> tuple[tuple[str, Drawing], ...]:
    """List the figures of groups, with their agreement with people as captions."""
    agreements = {row.group: row for row in list_group_agreements(measure)}
    drawings = []
    for profile, drawing in _draw_profiles(run, index, measure)[:_MAX_FIGURES]:
        row = agreements.get(profile.group)
        tau = format_value("number", None if row is None else row.effect_size)
        drawings.append((f"tau {tau}{', a pilot group' if row is not None and row.pilot else ''}", drawing))
    return tuple(drawings)


def _explain_drawings(inputs: StereotypeInputsRecord) -> str:
    dimensions = dict.fromkeys(inputs.dimensions.values())
    colours = [f"{_COLOURS[i % len(_COLOURS)]} {name}" for i, name in enumerate(dimensions)]
    return (
        "One figure per group: a circle is people's mean rating, a square the model's score, left trait to the left, "
        "right trait to the right. Both are scaled so that the largest reaches the edge: compare side and order, not "
        f"size. The line in the middle is neither trait. Colours: {', '.join(colours)}."
    )


def _list_profiles(run: RunData, models: Sequence[RunSlice]) -> Iterator[Block]:
    """List the scores of single groups, one table per dimension of every measure."""
    for model in models:
        suffix = f", {model.label}" if len(models) > 1 else ""
        for measure in split_by_measure(model):
            yield Heading(f"Profiles, {format_measure(measure.row.measure)}{suffix}")
            templates = describe_templates(measure.row, run.manifest.inputs)
            yield Text(
                f"Scores as measured, mean over {templates}: positive towards the right trait of a pair, negative "
                "towards the left one. Shades show the distance from the mean of all groups. Small print, where people "
                "rated a group: their mean ratings, 0 for the left trait to 100 for the right."
            )
            yield from _make_profile_tables(measure, run.manifest.inputs)


def _make_profile_tables(measure: RunSlice, inputs: StereotypeInputsRecord) -> Iterator[Table]:
    profiles = select_singles(measure)
    centred = center_scores(profiles)
    means = mean_scores(profiles) if is_centred(profiles) else None
    largest = max((abs(s) for own in centred.values() for s in own if s is not None), default=0.0) or 1.0

    def make_cell(row: ProfileRow, index: int) -> Cell:
        score, human = row.scores[index], None if row.human is None else row.human[index]
        if score is None:
            return Cell(format_decimal(score))
        tint = (centred[row.group][index] or 0.0) / largest
        return Cell(format_decimal(score), note="" if human is None else f"{human:.0f}", tint=tint)

    for dimension in dict.fromkeys(inputs.dimensions.get(pair, "") for pair in inputs.pairs):
        own = [(i, pair) for i, pair in enumerate(inputs.pairs) if inputs.dimensions.get(pair, "") == dimension]
        rows = [TableRow((row.group,), tuple(make_cell(row, i) for i, _ in own)) for row in profiles]
        if means is not None:
            rows.insert(0, TableRow(("Mean of all groups",), tuple(Cell(format_decimal(means[i])) for i, _ in own)))
        title = f"{dimension[:1].upper()}{dimension[1:]}" or "Traits"
        span = ColumnSpan(title, tuple(" – ".join(inputs.traits[pair]) for _, pair in own))
        yield Table("", ("Group",), (span,), (RowGroup("", tuple(rows)),))


_PAIRED = ("orders", "dominance", "emergent", "rated")
"""The tables about paired groups."""
_EMERGENCE = (
    "A trait emerges in a paired group if its score is above the larger, or below the smaller, of the scores of both "
    "groups. Such traits are described, not tested: both p-values rank them and are not corrected for the number of "
    "pairs and traits."
)


def _list_settings(run: RunData, models: Sequence[RunSlice], notes: Sequence[str]) -> Iterator[tuple[str, str]]:
    inputs: StereotypeInputsRecord = run.manifest.inputs
    counts = f"{len(inputs.groups)} groups, {len(inputs.pairs)} pairs, {len(inputs.templates)} templates"
    yield "Stimuli", f"{inputs.abc} ({inputs.abc_digest}): {counts}; {inputs.citation}"
    if (contexts := inputs.contexts) is not None:
        yield (
            "Contexts",
            f"{contexts.file} ({contexts.digest}), {contexts.rows:,} contexts from {contexts.documents:,} documents, "
            f"at most {contexts.per_stimulus} per word",
        )
    yield from describe_settings(run.manifest.settings, leave_out=() if inputs.contexts else ("contexts",))
    for model in models:
        for row in model["models"]:
            yield (
                f"Requests to {model.label}",
                f"{row.kind}, prior {row.prior}: {row.num_questions:,} blanks in {row.num_passes:,} passes through the "
                f"model, instead of {row.num_asked:,} sentences",
            )
    yield from (("Note", note) for note in notes)


_MANY_GROUPS = 12  # groups, beyond which fewer traits are drawn
_DRAWN_TRAITS = (5, 3)
_AGREEMENT = "Kendall's tau between scores and people's ratings: 0 is no agreement, 1 the same order."
_CAPTION = (
    "A bar is the group's score minus the mean of all groups, which removes the part that all groups share. A group "
    "that stands out as cold may still have a score towards warm, only a lower one than others. Tap a bar for the "
    "score as measured."
)
_ALONE = "There is only one group, so scores are shown as measured."


def draw_figure(run: RunData, models: Sequence[RunSlice], findings: Sequence[Finding]) -> Markup | None:
    """Draw the traits by which groups stand out, and agreement with people.

    Parameters
    ----------
    run : RunData
    models : sequence of RunSlice
    findings : sequence of Finding
    """
    agreement = draw_overview([finding for finding in findings if finding.unit == "tau"], _AGREEMENT)
    figures = [figure for figure in (_draw_traits(run, models), agreement) if figure]
    return Markup("").join(figures) if figures else None


def _draw_traits(run: RunData, models: Sequence[RunSlice]) -> Markup | None:
    """Draw the strongest traits of every group, the group that stands out most first."""
    closest = ((model.label, find_closest_measure(model)) for model in models)
    known = [(label, measure) for label, measure in closest if measure is not None]
    shown = known[:MANY_MODELS]
    profiles = [select_singles(measure) for _, measure in shown]
    if not any(profiles):
        return None
    names = [format_measure(measure.row.measure) for _, measure in shown]
    same = len(set(names)) == 1
    keys = list(dict.fromkeys((row.domain, row.group) for rows in profiles for row in rows))
    panels: dict[tuple[str, str], list[Panel]] = {key: [] for key in keys}
    for model_index, rows in enumerate(profiles):
        traits = find_distinctive_traits(rows, run.manifest.inputs)
        # Scores of different measures have different scales.
        largest = 1.0 if same else max((own[0].beyond for own in traits.values() if own), default=0.0) or 1.0
        n_groups = sum(bool(own) for own in traits.values())
        for row in rows:
            strongest = traits[row.group][: _DRAWN_TRAITS[len(keys) > _MANY_GROUPS]]
            bars = tuple(_make_bar(row.group, trait, n_groups, largest) for trait in strongest)
            panels[row.domain, row.group].append(Panel(row.group, model_index, bars, "" if bars else "not measured"))
    caption = _CAPTION if any(map(is_centred, profiles)) else _ALONE
    caption += "" if same else " Bars are scaled to the largest of each model."
    caption += "" if shown == known else f" The first {len(shown)} of {len(known)} models are shown."
    return draw_panels(
        _group_by_domain(panels),
        [f"{label} ({name})" for (label, _), name in zip(shown, names, strict=True)],
        title="Traits by which groups stand out.",
        caption=caption,
    )


def _make_bar(group: str, trait: Trait, n_groups: int, largest: float) -> Bar:
    beyond = f", {trait.beyond:.2f} above the mean of {format_count(n_groups, 'group')}" if n_groups > 1 else ""
    towards = trait.name if trait.score >= 0.0 else trait.opposite
    text = f"{group}: {trait.name} rather than {trait.opposite}{beyond}"
    text += f"\nas measured {abs(trait.score):.2f} towards {towards}"
    if trait.human is not None:
        text += f"\npeople's mean rating: {trait.human:.0f} of 100 towards {trait.name}"
    return Bar(trait.name, trait.beyond / largest, f"{trait.beyond:.2f}", text)


def _group_by_domain(panels: Mapping[tuple[str, str], Sequence[Panel]]) -> list[Panels]:
    """Group panels by domain; domains and groups with the strongest trait come first."""

    def get_strength(key: tuple[str, str]) -> float:
        return max((panel.bars[0].value for panel in panels[key] if panel.bars), default=0.0)

    by_domain = group_pairs((key[0], key) for key in sorted(panels, key=get_strength, reverse=True))
    grouped = []
    for domain, keys in by_domain.items():
        own = tuple(panel for key in keys for panel in panels[key])
        grouped.append(Panels(domain[:1].upper() + domain[1:], own, format_count(len(keys), "group")))
    return grouped


def _draw_profiles(run: RunData, index: int, measure: RunSlice) -> list[tuple[ProfileRow, Drawing]]:
    """Return one profile figure per rated group. `index` numbers the model in file names."""
    rated = [row for row in measure["profiles"] if not row.parts and any(v is not None for v in row.human or ())]
    name = f"profile-{index}-{measure.row.measure}"
    return [(row, partial(_draw_profile, f"{name}-{row.group}", row, run)) for row in rated]


def _draw_profile(name: str, row: ProfileRow, run: RunData, style: Style) -> Figure:
    inputs = run.manifest.inputs
    return draw_profile(name, row.group, inputs.pairs, inputs.dimensions, row.scores, row.human, style)


_PRIORS = {"mask": "the same sentence with the group masked", "word": "the same sentence about people in general"}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on groups, traits, measures, and the comparison with people."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    measures = [format_measure(name) for name in inputs.measures if name != CEAT]
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured the associations of "
        f"{format_count(len(inputs.groups), 'social group')} with {format_count(len(inputs.pairs), 'pair')} of "
        f"opposite traits (the ABC model) in {format_models(run)}",
        ("biassay", "cao2022", *sources),
    )
    if measures:
        priors = dict.fromkeys(_PRIORS[row.prior] for row in run.tables.get("models", ()) if row.prior in _PRIORS)
        against = join_names(list(priors) or [_PRIORS[settings.prior]], "or")
        variant = "" if settings.variant == "paper" else f", in the variant {settings.variant}"
        yield MethodsSentence(
            f"By {join_names(measures)}, a score is how much more a group raises the right trait of a pair than the "
            f"left one, compared with {against}{variant}",
            ("cao2022",),
        )
        yield from _describe_template_choice(run)
    if inputs.contexts is not None:
        corpus = f" of {format_count(inputs.contexts.documents, 'document')}" if inputs.contexts.documents else ""
        yield MethodsSentence(
            "By CEAT, a score is how much closer a group is to the right trait of a pair than to the left one, in "
            f"{inputs.contexts.rows:,} contexts from a corpus{corpus}, sampled with seed {inputs.contexts.seed}",
            ("guo2021",),
        )
    if inputs.human is not None:
        yield MethodsSentence(
            "We compared scores with people's mean ratings by Kendall's tau and precision at 3, over the groups on "
            "which templates were not chosen. 95% intervals combine a bootstrap over people "
            f"({settings.n_bootstrap:,} samples) with a jackknife over the domains of groups",
            ("cao2022",),
        )
    paired = max((row.num_groups for row in run.tables.get("orders", ())), default=0)
    if paired:
        yield MethodsSentence(f"We also measured {paired:,} groups that combine two domains", ("cao2022",))
    if any(row.p_adjusted is not None for row in run.tables.get("emergent", ())):
        yield MethodsSentence(
            "We corrected the p-values of traits that emerge in paired groups by the method of Benjamini and Hochberg",
            ("benjamini1995",),
        )
    yield make_seed_sentence([settings.seed])


def _describe_template_choice(run: RunData) -> Iterator[MethodsSentence]:
    """Describe the templates that scores are means over, and how they were chosen."""
    rows = [(model.label, row) for model in split_by_model(run) for row in model["measures"] if row.templates]
    if not rows:
        return
    by_text = group_pairs(
        (describe_templates(row, run.manifest.inputs), f"{format_measure(row.measure)} of {label}")
        for label, row in rows
    )
    text = join_names([used if len(by_text) == 1 else f"{used} ({', '.join(of)})" for used, of in by_text.items()])
    if any(len(row.chosen) < len(row.templates) for _, row in rows):
        pilot = dict.fromkeys(row.group for row in run.tables.get("group_alignments", ()) if row.pilot)
        names = ", ".join(pilot)
        text += (
            f"; we chose these from {format_count(max(len(row.templates) for _, row in rows), 'template')} as those "
            f"that agree best with people's ratings of pilot groups{f' ({names})' if names else ''}"
        )
    yield MethodsSentence(f"Scores are means over {text}", ("cao2022",))


_TASKS = {"masked": "fill-mask", "causal": "text-generation"}


class StereotypePresenter(Presenter):
    """Report of stereotype runs."""

    def report(self, gathered: RunGroup, **_: Any) -> Report:
        """Build the report of a run."""
        return _make_report(gathered.run)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the tables of a paper."""
        table = agreement_table(gathered.run)
        if table is not None:
            yield "agreement-with-people", table

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield the figures."""
        for index, model in enumerate(split_by_model(gathered.run), start=1):
            for measure in split_by_measure(model):
                yield from (drawing for _, drawing in _draw_profiles(gathered.run, index, measure))

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        """Yield the sources of the data."""
        for run in runs:
            inputs = run.manifest.inputs
            yield from cite_source(inputs.citation, inputs.abc, f"groups and traits of {inputs.abc}")
            if run.tables.get("rated"):
                yield CitationUse("traits that people name for paired groups", "ghavami2013")

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
        measures = [format_measure(name) for name in run.manifest.inputs.measures if name != CEAT]
        yield CitationUse(
            f"the measures {', '.join(measures)}" if measures else "stereotypes in the ABC model", "cao2022"
        )
        if CEAT in run.manifest.inputs.measures:
            yield CitationUse("the method CEAT", "guo2021")
        if any(row.p_adjusted is not None for row in run.tables.get("emergent", ())):
            yield CitationUse("correction for the number of traits", "benjamini1995")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods section."""
        return methods_sentences(run, list_works(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        """Return the labels of the models."""
        return list(model_labels(run).values())

    def card(self, run: RunData, label: str) -> ModelCard:
        """Return the model card of one model."""
        models = [model for model in split_by_model(run) if model.label == label]
        own = [finding for finding in make_findings(run) if finding.model == label]
        entries = [entry for model in models for entry in _list_entries(model, run)]
        notes = [*list_notes(run, models), *([] if entries else ["Agreement with people was not measured."])]
        limits = [MEANING, "A measure that finds no stereotype does not show that a model has none."]
        return make_card(run, own, headline(run), entries, limits, notes)

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        """Compare all models with the baseline; see `Presenter.compare`."""
        return compare_stereotypes(runs, baseline=baseline, mixed=mixed)

    def comparison_report(self, comparison: Comparison) -> Report:
        """Build the report of a comparison."""
        columns = make_columns(AgreementDifference)
        table = make_table("Agreement with people", columns, comparison.tables["agreements"])
        section = Section("agreements", "Agreement with people", (replace(table, caption=""),))
        return make_comparison_report(comparison, (), [section], tables=[table])


def _list_entries(model: RunSlice, run: RunData) -> Iterator[IndexEntry]:
    """List the agreement of every measure with all people."""
    for measure in split_by_measure(model):
        agreement, name = get_agreement(measure), measure.row.measure
        if agreement is not None:
            yield IndexEntry(
                task=_TASKS.get(model["models"][0].kind, "feature-extraction"),
                task_name="Stereotypes of social groups",
                dataset=run.manifest.inputs.abc,
                dataset_name=f"Agreement with people's ratings: {format_measure(name)}",
                config=name,
                args={
                    "groups": str(agreement.outcome.n["groups"]),
                    "cells": str(agreement.outcome.n["cells"]),
                    "biassay": get_version(run),
                },
                metrics=(
                    CardMetric("kendall_tau", "Kendall's tau", agreement.outcome.effect_size),
                    CardMetric("precision_at_3", "Precision at 3", agreement.alternatives["precision"].effect_size),
                ),
            )
