"""The tables of stereotypes. The main one has a row for every score, and follows from the others and the arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from biassay.results.data import RunData, is_of
from biassay.results.tables import MODEL, Column, TableSpec
from biassay.studies.stereotypes.records import (
    AlignmentRow,
    ContextsRow,
    DominanceRow,
    EmergentRow,
    GroupAlignmentRow,
    MeasureRow,
    ModelRow,
    OrderRow,
    ProfileRow,
    RatedRow,
)

__all__ = ["ORDERS", "TABLES", "Score", "scores_of"]


class Score(NamedTuple):
    """A score of one group on one pair under one template; a measure over contexts has no template."""

    model: str
    options: str
    measure: str
    template: str
    chosen: bool | None
    group: str
    pair: str
    score: float | None


def scores_of(run: RunData) -> Iterator[Score]:
    """All scores of a run, one a model, measure, group, template and pair."""
    for place, record in enumerate(run.manifest.models):
        for row in run.tables.get("measures", ()):
            if is_of(row, record):
                yield from _scores(run, row, place)


def _scores(run: RunData, row: MeasureRow, place: int) -> Iterator[Score]:
    key = (row.model, row.options, row.measure)
    own = [p for p in run.tables["profiles"] if (p.model, p.options, p.measure) == key]
    array = run.arrays.get(f"{place}/{row.measure}/scores")
    for profile in own:
        cells: list[tuple[str, bool | None, Any]] = [("", None, profile.scores)]
        if row.templates and array is not None:
            found = array[row.groups.index(profile.group)]
            cells = [(name, name in row.chosen, line) for name, line in zip(row.templates, found.tolist(), strict=True)]
        for template, chosen, scores in cells:
            for pair, score in zip(run.manifest.inputs.pairs, scores, strict=True):
                known = None if score is None or math.isnan(score) else score
                yield Score(*key, template, chosen, profile.group, pair, known)


_MEASURE = (*MODEL, Column("measure", "measure", "ilps, ilps-star, set or ceat."))
_GROUP = Column("group", "group", "The social group.")

_RESULTS = (
    *_MEASURE,
    Column("template", "template", "The name of the sentence; empty over contexts."),
    Column("chosen", "chosen", "Whether profiles are means over it among others.", "flag"),
    _GROUP,
    Column("pair", "pair", "Two opposite traits, the left one first."),
    Column("score", "score", "Positive: towards the right trait.", "number"),
)
_MODELS = (
    *MODEL,
    Column("kind", "kind", "masked, causal, or encoder if no blanks were asked."),
    Column("prior", "prior", "What groups were compared with: mask or word."),
    Column("skipped_templates", "skipped", "Templates that could not be asked."),
    Column("unknown_adjectives", "unknown adjectives", "Adjectives of which it does not know all tokens."),
    Column("unknown_groups", "unknown groups", "Groups of which it does not know all words."),
    Column("num_questions", "blanks", "Blanks that were asked.", "count"),
    Column("num_passes", "passes", "Passes through the model that they took.", "count"),
    Column("num_asked", "sentences", "Sentences with a trait that they stand for.", "count"),
)
_MEASURES = (
    *_MEASURE,
    Column("groups", "groups", "Groups that have scores, in the order of the array."),
    Column("templates", "templates", "Templates, in the order of the array."),
    Column("chosen", "chosen", "Templates over which profiles are means."),
    Column("undefined", "undefined", "Scores that are not defined.", "count"),
)
_PROFILES = (
    *_MEASURE,
    _GROUP,
    Column("domain", "domain", "The group's domain."),
    Column("parts", "parts", "Of a paired group: its two groups."),
    Column("scores", "scores", "Mean scores, pair by pair.", "number"),
    Column("human", "people", "Mean ratings of people, pair by pair, 0 (left) to 100 (right).", "number"),
)
_ALIGNMENTS = (
    *_MEASURE,
    Column("annotators", "annotators", "All, or those of one kind."),
    Column("num_annotators", "people", "How many they are.", "count"),
    Column("num_groups", "groups", "Groups that are compared: those on which templates were not chosen.", "count"),
    Column("num_domains", "domains", "Domains of these groups, the sampling unit of intervals.", "count"),
    Column("num_cells", "cells", "These groups by pairs.", "count"),
    Column("tau", "tau", "Kendall's tau over these cells.", "number"),
    Column("tau_both", "95%, both", "With other groups and annotators.", "interval"),
    Column("tau_shuffled", "groups shuffled", "Mean tau if ratings are permuted among domains and groups.", "number"),
    Column(
        "p_value_shuffled",
        "p, shuffled",
        "How often it is then as high: are groups told apart?",
        "p",
    ),
    Column("tau_annotators", "95%, people", "With other annotators.", "interval"),
    Column("tau_groups", "95%, groups", "With other groups.", "interval"),
    Column("p_value", "p, cells", "The paper's: were cells independent, which they are not. Nearly always small.", "p"),
    Column("precision", "P@3", "Precision at 3.", "number"),
    Column("precision_annotators", "P@3 95%, people", "With other annotators.", "interval"),
    Column("precision_groups", "P@3 95%, groups", "With other groups.", "interval"),
    Column("precision_both", "P@3 95%, both", "With others of both.", "interval"),
    Column("pilot_tau", "tau on the pilot", "Of the templates chosen, on the groups they were chosen on.", "number"),
    Column("tau_with_pilot", "tau with pilot", "Over all groups, the pilot's included.", "number"),
    Column("p_value_with_pilot", "p with pilot", "Of it, were cells independent and templates not chosen.", "p"),
    Column("precision_with_pilot", "P@3 with pilot", "Over all groups, the pilot's included.", "number"),
)
_GROUP_ALIGNMENTS = (
    *_MEASURE,
    Column("annotators", "annotators", "All, or those of one kind."),
    _GROUP,
    Column("human_group", "people's name", "The group in the judgements."),
    Column("tau", "tau", "Kendall's tau over the pairs; flattered where templates were chosen on the group.", "number"),
    Column("p_value", "p, pairs", "Were pairs independent, and nothing common to all groups.", "p"),
    Column("tau_interval", "95%", "With other annotators.", "interval"),
    Column("top", "P@3 top", "Of the three highest pairs, the share that people rate above 50.", "number"),
    Column("bottom", "P@3 bottom", "Of the three lowest, the share that they rate below 50.", "number"),
    Column("precision", "P@3", "The mean of both.", "number"),
    Column("pilot", "pilot", "Whether templates were chosen on it.", "flag"),
)
ORDERS = {
    "first": "the group named first",
    "second": "the group named second",
    "reversed": "the pair in the other order",
    "closest": "the closer of its groups",
}
"""What a pair is compared with, by the end of a column's name."""
_ORDERS = (
    *_MEASURE,
    Column("num_groups", "groups", "Paired groups.", "count"),
    Column("num_both_orders", "both orders", "Pairs that stand in both orders.", "count"),
    *(
        column
        for name, of in ORDERS.items()
        for column in (
            Column(f"tau_{name}", f"tau, {name}", f"Mean tau of a pair with {of}.", "number"),
            Column(f"standard_error_{name}", f"error, {name}", "Its standard error.", "number"),
            Column(f"n_{name}", f"n, {name}", "Pairs that it is over.", "count"),
        )
    ),
)
_DOMINANCE = (
    *_MEASURE,
    Column("domain_a", "domain A", "The first domain."),
    Column("domain_b", "domain B", "The second domain."),
    Column("num_pairs", "pairs", "Paired groups of both.", "count"),
    Column("tau_a", "tau with A", "Mean tau with the group of the first.", "number"),
    Column("tau_b", "tau with B", "Mean tau with the group of the second.", "number"),
    Column("difference", "difference", "The first less the second.", "number"),
    Column("interval", "95%", "With other groups of both domains; none if one of them has a single group.", "interval"),
    Column("dominates", "dominates", "The domain on whose side of 0 the interval lies, before correction."),
    Column("dominates_by_margin", "by 0.1", "The paper's rule: the domain whose tau is larger by 0.1 or more."),
)
_EMERGENT = (
    *_MEASURE,
    _GROUP,
    Column("parts", "parts", "Its two groups."),
    Column("trait", "trait", "The adjective."),
    Column("direction", "direction", "More or less than both groups."),
    Column("excess", "beyond both by", "By how much.", "number"),
    Column("bound", "of its groups", "The score that it goes beyond.", "number"),
    Column("p_value", "p", "Share of random pairs of the same domains that go as far: a rank, no test.", "p"),
    Column("q_value", "q", "The same, corrected for the number of traits.", "p"),
    Column(
        "p_value_additive",
        "p, additive",
        "Beyond what the two groups add to all their pairs, among the residuals of all: a rank, no test.",
        "p",
    ),
)
_RATED = (
    *_MEASURE,
    Column("source", "source", "Where what people say is from."),
    Column("num_groups", "groups", "Paired groups that people described.", "count"),
    Column("precision", "precision", "Of sides on which traits emerge, those that people name.", "number"),
    Column("recall", "recall", "Of sides that people name, those on which traits emerge.", "number"),
    Column("chance_precision", "precision of a coin", "By guessing.", "number"),
    Column("chance_recall", "recall of a coin", "By guessing.", "number"),
    Column("p_value", "p, cells", "How often as many random cells hit as many; were cells independent.", "p"),
)
_CONTEXTS = (
    *MODEL,
    Column("words_options", "options of words", "Settings of the encoder of words."),
    Column("groups", "groups", "Contexts of every group.", "count"),
    Column("adjectives", "adjectives", "Contexts of every adjective.", "count"),
    Column("few_groups", "rare groups", "Groups with too few."),
    Column("few_adjectives", "rare adjectives", "Adjectives with too few."),
    Column("own_words", "own words", "Adjectives left out, for they are words for the group."),
)

TABLES = (
    TableSpec("results", "Scores", None, _RESULTS, scores_of),
    TableSpec("models", "Models", ModelRow, _MODELS),
    TableSpec("measures", "Measures", MeasureRow, _MEASURES),
    TableSpec("profiles", "Profiles of groups", ProfileRow, _PROFILES),
    TableSpec("alignments", "Agreement with people", AlignmentRow, _ALIGNMENTS),
    TableSpec("group_alignments", "Agreement by group", GroupAlignmentRow, _GROUP_ALIGNMENTS),
    TableSpec("orders", "Paired groups and their order", OrderRow, _ORDERS),
    TableSpec("dominance", "Which domain a pair follows", DominanceRow, _DOMINANCE),
    TableSpec("emergent", "Traits that emerge", EmergentRow, _EMERGENT),
    TableSpec("rated", "What people say of paired groups", RatedRow, _RATED),
    TableSpec("contexts", "Contexts of groups and traits", ContextsRow, _CONTEXTS),
)
