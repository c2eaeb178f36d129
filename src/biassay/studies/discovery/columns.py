"""The columns of a search for the words of groups."""

from __future__ import annotations

from collections.abc import Iterable

from biassay.results.data import RunData
from biassay.results.tables import Column, TableSpec
from biassay.studies.discovery.records import CurveRow, GroupRow, ModelRow, ValidatedRow, WordRow

__all__ = ["TABLES"]

_MODEL = (
    Column("model", "model", "The model's name."),
    Column("options", "options", "Its settings."),
)
_GROUP = (*_MODEL, Column("group", "group", "The name of the group."))
_WORD = (*_GROUP, Column("word", "word", "The word."))
_FOUND = (
    Column("score", "score", "Decides: the largest, or smallest, of the scores against the other groups.", "number"),
    Column("p_value", "p", "Of the association, by permutation of names.", "p"),
    Column("q_value", "q", "The same after correction over the whole vocabulary.", "p"),
    Column("p_value_excess", "p excess", "Of the excess over what the categories contribute together.", "p"),
    Column("q_value_excess", "q excess", "The same after correction over the whole vocabulary.", "p"),
    Column("associated", "associated", "Found by IBD, and q at or below alpha.", "flag"),
    Column("eibd", "EIBD", "Found by EIBD, the published rule, and q at or below alpha.", "flag"),
    Column("emergent", "emergent", "Of these, with q excess at or below alpha.", "flag"),
)
_RATED = (
    Column("of_group", "rated", "People rated it for the group.", "flag"),
    Column("emergent_of_group", "rated emergent", "And for none of its categories.", "flag"),
    Column("detected", "detected", "IBD detects it at the threshold.", "flag"),
    Column("detected_emergent", "detected by EIBD", "EIBD detects it at its threshold.", "flag"),
)
_OF_GROUP = (
    Column("label", "label", "The group in words."),
    Column("belongs", "belongs", "Its value in every category."),
    Column("threshold", "threshold", "Scores above it count, for IBD.", "number"),
    Column("threshold_source", "from", "Chosen on rated words, given, or by convention."),
    Column("threshold_emergent", "threshold of EIBD", "Scores above it count, for EIBD.", "number"),
    Column("threshold_emergent_source", "from", "Chosen on rated words, given, or by convention."),
    Column("num_words", "words", "Words searched.", "count"),
    Column("num_above", "above", "Words above IBD's threshold.", "count"),
    Column("num_associated", "associated", "Of these, with q at or below alpha.", "count"),
    Column("num_every", "against every", "Of these, above the threshold against every other group.", "count"),
    Column("num_eibd", "EIBD", "Words found by EIBD, with q at or below alpha.", "count"),
    Column("num_emergent", "emergent", "Of these, with q excess at or below alpha.", "count"),
)
_CURVE = (
    Column("task", "task", "Which rule detects: IBD or EIBD."),
    Column("area", "area", "Under the curve of true against false positive rate.", "number"),
    Column("chance", "chance", "Share of the rated words that belong to the group.", "share"),
    Column("chosen", "threshold", "The one in use.", "number"),
    Column("accuracy", "accuracy", "At the threshold.", "share"),
    Column("precision", "precision", "At the threshold; empty where no word is detected.", "share"),
    Column("recall", "recall", "At the threshold.", "share"),
    Column("false_positive_rate", "false positives", "Their rate at the threshold.", "share"),
)
_LOST = (
    Column("vocabulary", "vocabulary", "What was searched."),
    Column("names_lost", "names lost", "Names without a vector, by group."),
    Column("validation_lost", "rated words lost", "Rated words without a vector."),
    Column("words_lost", "words lost", "Words of a given list without a vector."),
)


def _against(name: str) -> Column:
    return Column(f"against {name}", f"against {name}", f"Score against {name}.", "number",
                  lambda row: row.scores.get(name))  # fmt: skip


def _pair(label: str) -> Column:
    return Column(label, label, "Score of the first category against the second.", "number",
                  lambda row: row.constituents.get(label))  # fmt: skip


def _scores(run: RunData) -> Iterable[Column]:
    """A column for every group, and for every pair of categories."""
    pairs = dict.fromkeys(label for row in run.tables.get("groups", ()) for label in row.constituents)
    return (*map(_against, run.manifest.inputs.groups), *map(_pair, pairs))


TABLES = (
    TableSpec("results", "Words", WordRow, lambda run: (*_WORD, *_FOUND, *_scores(run))),
    TableSpec("groups", "Groups", GroupRow, (*_GROUP, *_OF_GROUP)),
    TableSpec("validated", "Rated words", ValidatedRow, lambda run: (*_WORD, *_RATED, *_scores(run))),
    TableSpec("curves", "Detection of rated words", CurveRow, (*_GROUP, *_CURVE)),
    TableSpec("models", "What was searched", ModelRow, (*_MODEL, *_LOST)),
)
