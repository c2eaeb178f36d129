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
from biassay.studies.discovery.records import ModelRow, Task, ValidatedRow, WordRow
from biassay.studies.discovery.view import GroupView, groups_of, models_of

__all__ = [
    "MEANING",
    "RULES",
    "TERMS",
    "Table",
    "curve_table",
    "group_table",
    "headline",
    "lost_of",
    "most_against",
    "notes_about",
    "notes_of",
    "rated_table",
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
    """The rated words, and which of them are detected."""
    columns = pick(_VALIDATED.columns_of(run), "word", "of_group", "emergent_of_group", "detected", "detected_emergent")
    return columns, view.validated


def word_table(run: RunData, words: Sequence[WordRow]) -> Table:
    """Words with what decides."""

    def largest(word: WordRow) -> float | None:
        return max((score for score in word.constituents.values() if score is not None), default=None)

    columns = _WORDS.columns_of(run)
    return [
        *pick(columns, "word", "score"),
        Column("from", "against", "The group that the score comes from.", get=lambda word: most_against(run, word)),
        *pick(columns, "p_value", "q_value"),
        Column("categories", "categories", "The largest score of the group's categories.", "number", largest),
        *pick(columns, "eibd", "q_value_excess"),
    ], words


def score_table(run: RunData, words: Sequence[WordRow] | Sequence[ValidatedRow]) -> Table:
    """Words with their scores against every group and of every category."""
    return [*pick(_WORDS.columns_of(run), "word"), *filled(score_columns(run), words)], words


def most_against(run: RunData, word: WordRow) -> str:
    """The group that the score of a word comes from, in words; empty where there is none."""
    against = (group for group, score in word.scores.items() if score is not None and score == word.score)
    return next((run.manifest.inputs.labels[group] for group in against), "")


def notes_of(run: RunData, views: Sequence[GroupView]) -> list[str]:
    """What a reader should know beside the findings: rests on little, hangs on the seed, is not known to the model."""
    notes = [f"{view.title}: {note}" for view in views for note in notes_about(run, view)]
    return [*notes, *lost_of(run)]


def lost_of(run: RunData) -> list[str]:
    """The names and words that models do not know, and the names that they hardly tell apart."""
    notes = []
    for model in models_of(run):
        shown = f"{model.label}: " if len(run.manifest.models) > 1 else ""
        notes += [f"{shown}{line}" for row in model["models"] for line in _lost(run, row)]
    return notes


def notes_about(run: RunData, view: GroupView) -> Iterator[str]:
    """What keeps the words of one group from being misread."""
    row, settings = view.row, run.manifest.settings
    wanted = permutations_wanted(row, settings)
    if row.num_associated > _MANY * row.num_words:
        yield (
            f"so many words ({row.num_associated / row.num_words:.0%}) are hardly all stereotypes: these "
            "names differ from others in what the texts are about, or in how frequent they are."
        )
    for curve in view.curves:
        if view.num_rated(curve) < _ENOUGH:
            yield f"{RULES[curve.task]}: so few rated words say next to nothing about the threshold."
        elif curve.area < _CLEAR:
            yield f"{RULES[curve.task]}: detection is near guessing; take the threshold as arbitrary."
    if wanted is not None:
        yield (
            f"{settings.n_permutations:,} permutations may be too few: no word can be associated unless "
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
    for group, pairs in row.similar_names.items():
        listed = ", ".join(f"{one} and {other}" for one, other in pairs)
        yield (
            f"names of {inputs.labels[group]} that the model hardly tells apart: {listed}. They count as separate "
            "observations, so that p-values and q-values may be too small. If they are forms of one name, list them in "
            "`clusters` of the group."
        )
