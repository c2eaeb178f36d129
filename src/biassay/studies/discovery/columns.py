"""The columns of a search for the words of groups."""

from __future__ import annotations

from biassay.results.data import RunData
from biassay.results.tables import MODEL, Column, TableSpec
from biassay.studies.discovery.records import CurveRow, GroupRow, ModelRow, ValidatedRow, WordRow

__all__ = ["TABLES", "score_columns"]

_GROUP = (*MODEL, Column("group", "group", "The name of the group."))
_WORD = (*_GROUP, Column("word", "word", "The word."))
_FOUND = (
    Column("score", "score", "Decides: the largest, or smallest, of the scores against the other groups.", "number"),
    Column(
        "p_value",
        "p",
        "How often a random permutation of names scores as high: of the names of all groups, where a small p does not "
        "single the group out (where another group stands apart, all others score high against it); or, where a word "
        "must differ from every group, of the names of two, whichever has the largest p.",
        "p",
    ),
    Column(
        "q_value",
        "q",
        "The same after correction over the whole vocabulary: the share of chance among words up to it.",
        "p",
    ),
    Column(
        "p_value_excess",
        "p excess",
        "How often the excess over what the categories contribute together is as large by chance: residuals of their "
        "sum are permuted among the names of all groups, which assumes that these vary alike.",
        "p",
    ),
    Column(
        "q_value_excess",
        "q excess",
        "The same after correction over the whole vocabulary, in which words that EIBD does not detect count as 1: the "
        "share of chance among the words called emergent up to it.",
        "p",
    ),
    Column(
        "associated",
        "associated",
        "Detected by IBD (the score is above its threshold), and q up to alpha.",
        "flag",
    ),
    Column(
        "eibd",
        "EIBD",
        "Detected by EIBD, the published rule (above its threshold, and the categories are not), and q up to alpha.",
        "flag",
    ),
    Column("emergent", "emergent", "Detected by EIBD, and exceeds its categories: q excess up to alpha.", "flag"),
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
    Column("num_eibd", "EIBD", "Words detected by EIBD, with q at or below alpha.", "count"),
    Column("num_emergent", "emergent", "Of these, with q excess at or below alpha.", "count"),
)
_CURVE = (
    Column("task", "task", "Which rule detects: IBD or EIBD."),
    Column("area", "area", "Under the curve of true against false positive rate: 0.5 is guessing.", "number"),
    Column("chance", "chance", "Share of the rated words that belong to the group.", "share"),
    Column("chosen", "threshold", "The one in use.", "number"),
    Column("accuracy", "accuracy", "At the threshold; where it was chosen on these words, it flatters.", "share"),
    Column("precision", "precision", "At the threshold; empty where no word is detected.", "share"),
    Column("recall", "recall", "At the threshold.", "share"),
    Column("false_positive_rate", "false positives", "Their rate at the threshold.", "share"),
)
_LOST = (
    Column("vocabulary", "vocabulary", "What was searched."),
    Column("names_lost", "names lost", "Names without a vector, by group."),
    Column("validation_lost", "rated words lost", "Rated words without a vector."),
    Column("words_lost", "words lost", "Words of a given list without a vector."),
    Column("similar_names", "similar names", "Names of different clusters that the model hardly tells apart."),
)


def score_columns(run: RunData) -> list[Column]:
    """A column for every group, and for every pair of categories."""
    pairs = dict.fromkeys(label for row in run.tables.get("groups", ()) for label in row.constituents)
    labels = run.manifest.inputs.labels
    return [*(_against(name, labels[name]) for name in run.manifest.inputs.groups), *map(_pair, pairs)]


def _against(name: str, label: str) -> Column:
    get = lambda row: row.scores.get(name)  # noqa: E731
    return Column(f"against {name}", f"against {label}", f"Score against {label}.", "number", get)


def _pair(label: str) -> Column:
    get = lambda row: row.constituents.get(label)  # noqa: E731
    return Column(label, f"category {label}", "Score of the first category against the second.", "number", get)


TABLES = (
    TableSpec("results", "Words", WordRow, lambda run: (*_WORD, *_FOUND, *score_columns(run))),
    TableSpec("groups", "Groups", GroupRow, (*_GROUP, *_OF_GROUP)),
    TableSpec("validated", "Rated words", ValidatedRow, lambda run: (*_WORD, *_RATED, *score_columns(run))),
    TableSpec("curves", "Detection of rated words", CurveRow, (*_GROUP, *_CURVE)),
    TableSpec("models", "What was searched", ModelRow, (*MODEL, *_LOST)),
)
