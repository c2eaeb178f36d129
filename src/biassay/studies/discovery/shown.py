"""What is shown of a run of discovery beside its findings, on a page and in the terminal: tables and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from biassay.pages.plain_tables import filled
from biassay.results.data import RunData
from biassay.results.tables import Column, leave_out, pick
from biassay.studies.discovery.columns import TABLES, score_columns
from biassay.studies.discovery.findings import at_the_floor, permutations_wanted
from biassay.studies.discovery.records import ModelRow, Task, WordRow
from biassay.studies.discovery.settings import Settings
from biassay.studies.discovery.view import GroupView, groups_of, models_of

__all__ = [
    "MEANING",
    "RULES",
    "Table",
    "curve_table",
    "group_table",
    "headline",
    "notes_of",
    "rated_table",
    "word_table",
]

MEANING = (
    "A score says how much closer a word is to the names of this group than to those of another, in standard "
    "deviations over the names of both (with groups of one size it stays below 2). A word that is associated need not "
    "be a stereotype, nor offend: names that are rare, or old, or foreign in the texts that the model was trained on "
    "are close to words that are so too. What is not detected is not absent."
)
RULES: dict[Task, str] = {"ibd": "associated (IBD)", "eibd": "EIBD"}
Table = tuple[Sequence[Column], Sequence[Any]]

_WORDS, _GROUPS, _VALIDATED, _CURVES, _ = TABLES
_ENOUGH = 5  # true words, below which a threshold rests on next to nothing
_CLEAR = 0.6  # area under the curve, below which it hardly differs from guessing
_MANY = 0.1  # share of all words
_LISTED = 40


def headline(run: RunData) -> str:
    """What was searched."""
    inputs, views = run.manifest.inputs, groups_of(run)
    labels = ", ".join(dict.fromkeys(view.row.label for view in views)) or "no group"
    counts = " and ".join(dict.fromkeys(f"{view.row.num_words:,}" for view in views)) or "0"
    sources = ", ".join(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ())))
    return f"{labels} among {len(inputs.groups)} groups ({inputs.grouping_title}); {counts} words ({sources})"


def group_table(run: RunData, views: Sequence[GroupView]) -> Table:
    """Thresholds and counts of groups; the model is named by its label."""
    rows = [replace(view.row, model=view.model) for view in views]
    return leave_out(_GROUPS.columns_of(run), "options", "group", "belongs"), rows


def curve_table(run: RunData, view: GroupView) -> Table:
    """How well rated words are detected."""
    area, chosen, accuracy, precision, recall, chance = pick(
        _CURVES.columns_of(run), "area", "chosen", "accuracy", "precision", "recall", "chance"
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
    """The rated words with their scores."""
    columns = leave_out(_VALIDATED.columns_of(run), "model", "options", "group")
    return filled(columns, view.validated), view.validated


def word_table(run: RunData, words: Sequence[WordRow], *, scores: bool = True) -> Table:
    """Words; the scores against every group and of every category take room."""
    labels = run.manifest.inputs.labels

    def most(word: WordRow) -> str:
        against = (group for group, score in word.scores.items() if score is not None and score == word.score)
        return next((labels[group] for group in against), "")

    def largest(word: WordRow) -> float | None:
        return max((score for score in word.constituents.values() if score is not None), default=None)

    columns = _WORDS.columns_of(run)
    first = [
        *pick(columns, "word", "score"),
        Column("from", "against", "The group that the score comes from.", get=most),
        *pick(columns, "p_value", "q_value"),
        Column("categories", "categories", "The largest score of the group's categories.", "number", largest),
        *pick(columns, "eibd", "q_value_excess"),
    ]
    return [*first, *(filled(score_columns(run), words) if scores else ())], words


def notes_of(run: RunData, views: Sequence[GroupView]) -> list[str]:
    """What a reader should know beside the findings: rests on little, hangs on the seed, is not known to the model."""
    notes = [note for view in views for note in _about(view, run.manifest.settings)]
    for model in models_of(run):
        shown = f"{model.label}: " if len(run.manifest.models) > 1 else ""
        notes += [f"{shown}{line}" for row in model["models"] for line in _lost(run, row)]
    return notes


def _about(view: GroupView, settings: Settings) -> Iterator[str]:
    row, wanted = view.row, permutations_wanted(view.row, settings)
    if row.num_associated > _MANY * row.num_words:
        yield (
            f"{view.title}: so many words ({row.num_associated / row.num_words:.0%}) are hardly all stereotypes: these "
            "names differ from others in what the texts are about, or in how frequent they are."
        )
    for curve in view.curves:
        if view.num_rated(curve) < _ENOUGH:
            yield f"{view.title}, {RULES[curve.task]}: so few rated words say next to nothing about the threshold."
        elif curve.area < _CLEAR:
            yield f"{view.title}, {RULES[curve.task]}: detection is near guessing; take the threshold as arbitrary."
    if wanted is not None:
        yield (
            f"{view.title}: {settings.n_permutations:,} permutations may be too few: no word can be associated unless "
            f"{at_the_floor(row, settings):,} of {row.num_words:,} have the smallest p-value, and another seed may "
            f"give other words. Try --n-permutations {wanted} or more."
        )


def _lost(run: RunData, row: ModelRow) -> Iterator[str]:
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
