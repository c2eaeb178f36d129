"""Rows, columns and findings of word discovery."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError
from biassay.results.outcomes import (
    DECISIONS,
    Decision,
    Evidence,
    Finding,
    Outcome,
    Result,
    ResultRecord,
    get_decided,
    make_alternative_columns,
    make_outcome_finding,
    make_result_columns,
)
from biassay.results.run_data import ModelRow, RunData, copy_fields, model_key, split_by_model
from biassay.results.tables import (
    Column,
    TableSpec,
    column,
    keyword_row,
    make_columns,
    table_row,
)
from biassay.studies.discovery.settings import DiscoverySettings

DUAL_USE = (
    "These words describe the model, not people: they show which associations it learned from its texts. The list can "
    "be misused to stereotype a group or to turn people against each other. Keep this note with it."
)
Source = Literal["validation", "given", "convention"]
Task = Literal["ibd", "eibd"]
Scores = dict[str, float | None]


@dataclass(frozen=True)
class DiscoveryInputsRecord:
    """Inputs of a search.

    Attributes
    ----------
    groups : dict of str to tuple of str
        Names of all groups.
    vocabulary_digest : str or None
        Fingerprint of a given list of words.
    note : str
        Note to pass on with the words.
    clusters : dict
        Near-duplicate names of groups that have any; the names of a cluster count as one.
    language : str
        Language of the names, if stated.
    """

    grouping: str
    grouping_title: str
    grouping_digest: str
    citation: str
    licence: str
    groups: dict[str, tuple[str, ...]]
    labels: dict[str, str]
    vocabulary_digest: str | None = None
    note: str = DUAL_USE
    clusters: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    language: str = ""


@table_row
class _GroupRowBase(ModelRow):
    """Keys of all rows about a group."""

    group: str = column("group", "The name of the group.")


@table_row
class WordRow(_GroupRowBase):
    """A word of the vocabulary.

    Attributes
    ----------
    effect_size : float or None
        Largest score against another group, or the smallest if the word must differ from every group.
    p_value, p_adjusted : float or None
        P-value of the association, and after correction over the whole vocabulary (false discovery rate).
    excess_p_value, excess_p_adjusted : float or None
        P-values of the excess over what the categories of the group contribute together.
    associated, eibd, emergent : bool
        Whether IBD detects the word, EIBD does, and its excess is significant.
    scores, constituents : dict of str to float or None
        Scores by the other group, and by pair of categories.
    """

    word: str = column("word", "The word.")
    effect_size: float | None = column(
        "score", "Largest score against another group, or the smallest if it must exceed all."
    )
    scores: Scores
    constituents: Scores
    p_value: float | None = column(
        "p",
        "Share of random permutations of names with a score as high. By default names of all groups are permuted, "
        "so a small p does not single the group out: another unusual group may cause it. If a word must differ "
        "from every group, names of two groups are permuted, and the largest p counts.",
        "p",
    )
    p_adjusted: float | None = column(
        "q", "P-value after Benjamini and Hochberg's correction over the whole vocabulary.", "p"
    )
    excess_p_value: float | None = column(
        "p excess",
        "P-value of the excess over the sum of what the categories contribute. Residuals of that sum are permuted "
        "among the names of all groups, which assumes equal variances.",
        "p",
    )
    excess_p_adjusted: float | None = column(
        "q excess",
        "P-value of the excess after Benjamini and Hochberg's correction over the whole vocabulary, in which "
        "words that EIBD does not detect count as 1.",
        "p",
    )
    associated: bool = column("associated", "Detected by IBD (the score is above its threshold), and q up to alpha.")
    eibd: bool = column(
        "EIBD",
        "Detected by EIBD, the published rule (above its threshold, and the categories are not), and q up to alpha.",
    )
    emergent: bool = column("emergent", "Detected by EIBD, and exceeds its categories: q excess up to alpha.")


@keyword_row
class GroupResult(ResultRecord):
    """Counts of the words of one group in one model, over the whole vocabulary.

    The primary outcome is the number of associated words, with the smallest adjusted p-value of the kept words. The
    alternatives ``eibd`` and ``emergent`` are the numbers of words that EIBD detects and of emergent words.

    Attributes
    ----------
    group : str
    belongs : dict of str to str
        Value of the group in every category.
    other_groups, constituents : tuple of str
        Groups that it is compared with, and its categories, each against another value.
    threshold, threshold_emergent : float
        Thresholds of IBD and EIBD.
    threshold_source, threshold_emergent_source : Source
        How the thresholds were chosen.
    n_above : int
        Words above the threshold of IBD.
    n_every : int
        Associated words that are above the threshold against every other group.
    """

    group: str = column("group", "The name of the group.")
    belongs: dict[str, str] = column("belongs", "Value of the group in every category.")
    other_groups: tuple[str, ...]
    constituents: tuple[str, ...]
    threshold: float = column("threshold", "Threshold of IBD; scores above it count.")
    threshold_source: Source = column("from", "Chosen on rated words, given, or by convention.")
    threshold_emergent: float = column("threshold of EIBD", "Threshold of EIBD; scores above it count.")
    threshold_emergent_source: Source = column("from", "Chosen on rated words, given, or by convention.")
    n_above: int = column("above", "Number of words above the threshold of IBD.")
    n_every: int = column("against every", "Associated words above the threshold against every other group.")

    @property
    def item(self) -> str:
        """Name of the group."""
        return self.group

    @property
    def n_words(self) -> int:
        """Number of words searched."""
        return self.outcome.n["words"]

    @property
    def n_associated(self) -> int:
        """Number of associated words."""
        return int(self.outcome.effect_size or 0)

    @property
    def n_eibd(self) -> int:
        """Number of words that EIBD detects."""
        return int(self.alternatives["eibd"].effect_size or 0)

    @property
    def n_emergent(self) -> int:
        """Number of emergent words."""
        return int(self.alternatives["emergent"].effect_size or 0)


@table_row
class ValidatedRow(_GroupRowBase):
    """A rated word: whether people associate it with the group, and whether the model does."""

    word: str = column("word", "The word.")
    of_group: bool = column("rated", "Whether people rated the word as a trait of the group.")
    emergent_of_group: bool = column(
        "rated emergent", "Whether people rated it for the group, but for none of its categories."
    )
    scores: Scores
    constituents: Scores
    detected: bool = column("detected", "Whether IBD detects it at its threshold.")
    detected_emergent: bool = column("detected by EIBD", "Whether EIBD detects it at its threshold.")


@table_row
class CurveRow(_GroupRowBase):
    """Detection of rated words at the threshold in use; arrays hold the counts at all thresholds.

    Attributes
    ----------
    task : Task
        Rule that detects.
    outcome : Outcome
        Area under the ROC curve, and the number of rated words.
    chance : float
        Share of the rated words that belong to the group.
    chosen : float
        Threshold in use.
    accuracy, precision, recall, false_positive_rate : float
        Rates at this threshold. The precision is None if no word is detected.
    """

    task: Task = column("task", "Rule that detects: IBD or EIBD.")
    outcome: Outcome
    chance: float = column("chance", "Share of the rated words that belong to the group.", "share")
    chosen: float = column("threshold", "Threshold in use.")
    accuracy: float = column("accuracy", "At the threshold; optimistic if it was chosen on these words.", "share")
    precision: float | None = column("precision", "At the threshold; empty if no word is detected.", "share")
    recall: float = column("recall", "At the threshold.", "share")
    false_positive_rate: float = column("false positives", "False positive rate at the threshold.", "share")


@table_row
class DiscoveryModelRow(ModelRow):
    """Searched vocabulary and out-of-vocabulary words of a model.

    ``oov_names`` are by group; ``oov_validation`` are rated words, ``oov_words`` words of a user's list.
    ``similar_names`` are pairs of names, by group, with nearly the same vector and in no common cluster.
    """

    vocabulary: str = column("vocabulary", "Searched vocabulary.")
    oov_names: dict[str, tuple[str, ...]] = column("unknown names", "Out-of-vocabulary names, by group.")
    oov_validation: tuple[str, ...] = column("rated words out of vocabulary", "Out-of-vocabulary rated words.")
    oov_words: tuple[str, ...] = column("words out of vocabulary", "Out-of-vocabulary words of a given list.")
    similar_names: dict[str, tuple[tuple[str, str], ...]] = column(
        "similar names", "Names of different clusters with nearly the same vector.", default={}
    )


_OF_GROUP = make_result_columns(
    GroupResult,
    ("group",),
    *make_alternative_columns("eibd", effect_size=("EIBD", "Number of words detected by EIBD, with q up to alpha.")),
    *make_alternative_columns(
        "emergent",
        effect_size=("emergent", "Number of emergent words: detected by EIBD, with q excess up to alpha."),
        p_value=("q excess", "Smallest q excess of the kept words."),
    ),
    Column("n_words", "words", "Number of words searched.", "count"),
    effect_size="Number of associated words: above the threshold of IBD, with q up to alpha.",
    p_value="Smallest q of the kept words.",
    p_adjusted="Smallest q of the kept words; it is corrected over the whole vocabulary.",
    title="The group in words.",
)
_AREA = Column(
    "effect_size",
    "area",
    "Area under the curve of true against false positive rate: 0.5 is guessing.",
    "number",
    attrgetter("outcome.effect_size"),
)


def score_columns(run: RunData) -> list[Column]:
    """Return one column per group and per pair of categories."""
    pairs = dict.fromkeys(label for row in run.tables.get("groups", ()) for label in row.constituents)
    labels = ((group, run.manifest.inputs.labels[group]) for group in run.manifest.inputs.groups)
    return [
        *(
            _make_score_column(f"against {group}", f"against {label}", f"Score against {label}.", "scores", group)
            for group, label in labels
        ),
        *(
            _make_score_column(
                label, f"category {label}", "Score of the first category against the second.", "constituents", label
            )
            for label in pairs
        ),
    ]


def _make_score_column(name: str, label: str, about: str, scores: str, key: str) -> Column:
    return Column(name, label, about, "number", lambda row: getattr(row, scores).get(key))


TABLES = (
    TableSpec("results", "Words", WordRow, lambda run: (*make_columns(WordRow), *score_columns(run))),
    TableSpec("groups", "Groups", GroupResult, _OF_GROUP, rows=lambda run: get_decided(run, "groups"), key=("group",)),
    TableSpec("validated", "Rated words", ValidatedRow, lambda run: (*make_columns(ValidatedRow), *score_columns(run))),
    TableSpec("curves", "Detection of rated words", CurveRow, (*make_columns(CurveRow), _AREA)),
    TableSpec("models", "Vocabularies", DiscoveryModelRow),
    DECISIONS,
)


_MARKS = {"ibd": ("of_group", "detected"), "eibd": ("emergent_of_group", "detected_emergent")}
"""Fields of a rated word by rule: whether it belongs to the group, and whether it is detected."""


@dataclass(frozen=True, eq=False)
class GroupView:
    """A group in one model.

    Attributes
    ----------
    model, title : str
        Label of the model, and name of the group, followed by the model if there are several.
    row : Result
    words, validated, curves, arrays
        Rows and arrays of the group.
    """

    model: str
    title: str
    row: Result
    words: tuple[WordRow, ...]
    validated: tuple[ValidatedRow, ...]
    curves: tuple[CurveRow, ...]
    arrays: Mapping[str, NDArray[np.float64]]

    def best_words(self, top: int | None = None, *, emergent: bool = False) -> Sequence[WordRow]:
        """Return the words that rank highest among those associated, or emergent."""
        return [word for word in self.words if (word.emergent if emergent else word.associated)][:top]

    def count_rated(self, curve: CurveRow) -> tuple[int, int, int]:
        """Count the rated words of the group, those detected, and other detected words, by the rule of a curve."""
        rated, mark = _MARKS[curve.task]
        found = [getattr(word, rated) for word in self.validated if getattr(word, mark)]
        return sum(getattr(word, rated) for word in self.validated), sum(found), len(found) - sum(found)

    def describe_detected(self, curve: CurveRow) -> str:
        """Describe how many words of the group, and others, are detected at the threshold in use."""
        rated, found, others = self.count_rated(curve)
        return f"{found} of {rated}, and {others} others"


def list_group_views(run: RunData) -> list[GroupView]:
    """Return all groups of all models, in the order of the tables."""
    several = len(run.manifest.models) > 1
    decided = {(model_key(result), result.group): result for result in get_decided(run, "groups")}
    return [
        GroupView(
            model.label,
            f"{group.row.title} in {model.label}" if several else group.row.title,
            decided[model_key(group.row), group.row.group],
            group["results"],
            group["validated"],
            group["curves"],
            group.arrays,
        )
        for model in split_by_model(run)
        for group in model.each("groups", "group")
    ]


def get_group_view(run: RunData, group: str) -> GroupView:
    """Return a group of the first model."""
    known = {view.row.group: view for view in reversed(list_group_views(run))}
    if group not in known:
        raise UnknownNameError("group", group, known, f"(groups of this run: {', '.join(known)})")
    return known[group]


_WORDS = 5
_TOGETHER = 5  # words at the smallest p-value; if more are needed there, a few permutations decide
_CLEARED = 10  # times as many found: the last has a p-value of as many permutations, which hardly depends on the seed


def decide_group(record: GroupResult, settings: DiscoverySettings) -> Decision:
    """Decide about a group: it is significant if a word is associated with it.

    The false discovery rate is controlled over the words of a vocabulary, so groups are not corrected again.
    """
    needed = find_needed_permutations(record, settings)
    evidence: Evidence = "significant" if record.n_associated else "inconclusive" if needed is None else "not_testable"
    return Decision(
        **copy_fields(record, "model", "options", "model_revision", "item"),
        p_adjusted=record.outcome.p_value,
        evidence=evidence,
        significant=None if evidence == "not_testable" else evidence == "significant",
        family="words",
        family_size=record.n_words,
        reason=f"{settings.n_permutations:,} permutations are too few" if evidence == "not_testable" else None,
    )


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and group."""
    return [make_finding(view, run.manifest.settings) for view in list_group_views(run)]


def make_finding(view: GroupView, settings: DiscoverySettings) -> Finding:
    """Return the finding about a group."""
    row, against = view.row, "another" if settings.compare == "any" else "every other"
    notes = [f"{_format_count(row.n_emergent)} of them emergent"]
    if settings.compare == "any":
        notes.insert(0, f"{_format_count(row.n_every)} of them more than with those of every other group")
    return make_outcome_finding(
        row,
        view.model,
        claim=row.title,
        direction=f"{describe_count(row)} the names of {row.title} more than with those of {against} group",
        p_values={"corrected": row.p_adjusted, "excess, corrected": row.alternatives["emergent"].p_value},
        words=tuple(word.word for word in view.best_words(_WORDS)),
        notes=tuple(notes) if row.n_associated else (),
    )


def describe_count(row: Result) -> str:
    """Describe how many words are associated with a group. The caller appends its name."""
    verb = "is" if row.n_associated == 1 else "are"
    return f"{_format_count(row.n_associated)} of {row.n_words:,} words {verb} associated with"


def _format_count(number: int) -> str:
    return f"{number:,}" if number else "none"


def count_needed_at_floor(row: GroupResult | Result, settings: DiscoverySettings) -> int:
    """Return how many words must share the smallest p-value before the correction lets any of them be found."""
    return math.ceil(row.n_words / ((settings.n_permutations + 1) * settings.alpha))


def find_needed_permutations(row: GroupResult | Result, settings: DiscoverySettings) -> int | None:
    """Return the number of permutations with which findings do not depend on the seed; None if there are enough."""
    together = count_needed_at_floor(row, settings)
    if together <= _TOGETHER or row.n_associated >= _CLEARED * together:
        return None
    return math.ceil(row.n_words / (_TOGETHER * settings.alpha)) - 1
