"""What is shown of a run of stereotypes beside its findings, on a page and in the terminal: tables and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from biassay.pages.formats import clean, counted, interval_text, shown
from biassay.pages.plain_tables import filled
from biassay.pages.publish.layout import Cell, Group, Row, Span
from biassay.pages.publish.layout import Table as PaperTable
from biassay.results.data import RunData
from biassay.results.slices import Slice
from biassay.results.tables import Column, leave_out, pick
from biassay.studies.stereotypes.centring import is_centred, singles, traits_of
from biassay.studies.stereotypes.columns import ORDERS, TABLES
from biassay.studies.stereotypes.records import AlignmentRow, GroupAlignmentRow, InputsRecord, MeasureRow, ProfileRow
from biassay.studies.stereotypes.view import by_group, measure_name, measures_of, models_of, overall

__all__ = [
    "AGREEMENT",
    "MEANING",
    "PAIRED",
    "TERMS",
    "Table",
    "agreement_table",
    "alignment_table",
    "headline",
    "leading_table",
    "notes_of",
    "people_notes",
    "side_table",
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
Table = tuple[Sequence[Column], Sequence[Any]]
PAIRED = ("orders", "dominance", "emergent", "rated")
"""The tables about paired groups."""
_ORDER = (
    Column("of", "a pair and", "What its order of traits is compared with."),
    Column("tau", "tau", "Mean of Kendall's tau.", "number"),
    Column("standard_error", "error", "Of the mean.", "number"),
    Column("n", "pairs", "Over how many pairs.", "count"),
)
AGREEMENT = (
    *("measure", "annotators", "num_annotators", "tau", "tau_both", "tau_shuffled", "p_value_shuffled"),
    *("precision", "tau_with_pilot", "templates"),
)
"""The columns of agreement for which a terminal has room."""

_SPECS = {spec.name: spec for spec in TABLES}
_LEADING = 4


def terms_of(run: RunData) -> dict[str, str]:
    """The words of a page or a terminal, with what they mean."""
    return {**TERMS, **(_PEOPLE_TERMS if run.tables.get("alignments") else {})}


def headline(run: RunData) -> str:
    """What was asked."""
    inputs: InputsRecord = run.manifest.inputs
    counts = f"{counted(len(inputs.groups), 'group')}, {len(inputs.pairs)} pairs of traits"
    variant = ""
    if inputs.templates:
        counts, variant = (
            f"{counts}, {counted(len(inputs.templates), 'template')}",
            f", variant {run.manifest.settings.variant}",
        )
    if inputs.contexts is not None:
        counts += f", {inputs.contexts.rows:,} contexts"
    return f"{counts}; {', '.join(map(measure_name, inputs.measures))}{variant}"


def side_table(run: RunData, name: str, of: Slice) -> Table:
    """A table as it is stored, without what its rows have in common."""
    rows = of[name]
    if name == "orders":
        return _order_table(of)
    return filled(leave_out(_SPECS[name].columns_of(run), "model", "options", "measure", "annotators"), rows), rows


def _order_table(of: Slice) -> Table:
    """How a pair agrees with its groups and with the pair in the other order, line by line."""
    row = of.first("orders")
    lines = [
        SimpleNamespace(of=text, **{name: getattr(row, f"{name}_{end}") for name in ("tau", "standard_error", "n")})
        for end, text in ORDERS.items()
    ]
    return _ORDER, lines


def alignment_table(run: RunData, model: Slice, *names: str) -> Table:
    """Agreement with people, and over which templates; of some columns, or of all."""
    templates = {row.measure: templates_text(row, run.manifest.inputs) for row in model["measures"]}
    columns = [
        Column("measure", "measure", "The measure.", get=lambda row: measure_name(row.measure)),
        *leave_out(_SPECS["alignments"].columns_of(run), "model", "options", "measure"),
        Column("templates", "templates", "Over which scores are means.", get=lambda row: templates[row.measure]),
    ]
    return filled(pick(columns, *names) if names else columns, model["alignments"]), model["alignments"]


def leading_table(run: RunData, measure: Slice) -> Table:
    """Single groups: the traits by which they stand out, and how the group agrees with people."""
    rated = {row.group: row for row in by_group(measure)}
    rows = singles(measure)
    found = traits_of(rows, run.manifest.inputs)
    own = _SPECS["group_alignments"].columns_of(run)

    def leading(profile: ProfileRow) -> str:
        return ", ".join(trait.name for trait in found[profile.group][:_LEADING])

    said = "Traits whose scores go most beyond the mean of all groups."
    columns = [
        Column("group", "group", "The social group."),
        Column("traits", "stands out as", said if is_centred(rows) else "Traits, strongest first.", get=leading),
        *(_rated(column, rated) for column in pick(own, "tau", "precision", "pilot")),
    ]
    return filled(columns, rows), rows


def _rated(column: Column, rated: Mapping[str, GroupAlignmentRow]) -> Column:
    return replace(column, get=lambda row: getattr(rated.get(row.group), column.name, None))


def templates_text(row: MeasureRow, inputs: InputsRecord) -> str:
    """Over what a measure was taken: templates as sentences, [Group] are [trait], or contexts where it has none."""
    if not row.templates:
        return "contexts"
    if len(row.chosen) > 2:
        return f"all {len(row.chosen)} templates"
    texts = (inputs.templates[name].replace("{", "[").replace("}", "]") for name in row.chosen)
    return " and ".join(f'"{text}"' for text in texts)


def notes_of(run: RunData, models: Sequence[Slice]) -> list[str]:
    """What a reader should know beside the findings, about what was asked and about what models lack."""
    lacking = (f"{model.label}: {note}" for model in models for note in _lacking(model))
    return [f"{note}." for note in (*run.manifest.inputs.notes, *lacking)]


def people_notes(run: RunData) -> list[str]:
    """How people agree with each other, and what there is to know about their judgements."""
    human, notes = run.manifest.inputs.human, []
    ceiling = None if human is None else human.ceiling
    if ceiling is not None and ceiling.tau is not None:
        span = "" if ceiling.interval is None else f" (95% {interval_text(*ceiling.interval)})"
        notes.append(f"People: the means of two random halves of them agree with tau {ceiling.tau:.2f}{span}.")
    if human is not None and human.notes:
        notes.append(f"{human.file}: {'; '.join(human.notes)}.")
    return notes


def _lacking(model: Slice) -> Iterator[str]:
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
            "Kendall's tau": [_cell(row, "tau", "tau_both") for row in rows],
            "precision at 3": [_cell(row, "precision", "precision_both") for row in rows],
            "tau, groups shuffled": [_cell(row, "tau_shuffled") for row in rows],
        }
        groups.append(Group(clean(label), tuple(Row((name,), tuple(cells)) for name, cells in lines.items())))
    caption = (
        "Agreement of language models with human judgements over all pairs of traits and the groups on which templates "
        "were not chosen, with 95% intervals over people and groups. Groups shuffled: the tau if ratings are given at "
        "random to the groups, which is what all groups have in common. Agreement is no virtue: people's ratings are "
        "stereotypes too."
    )
    return PaperTable(clean(caption), ("",), tuple(Span(measure_name(m)) for m in measures), tuple(groups))


def _cell(row: AlignmentRow | None, name: str, interval: str | None = None) -> Cell:
    span = None if row is None or interval is None else getattr(row, interval)
    text = shown("number", getattr(row, name, None)) + ("" if span is None else f" ({interval_text(*span)})")
    return Cell(text.replace("-", "−"))  # inside a text a hyphen would stay one
