"""Rows, columns and findings of word discovery."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError
from biassay.results.findings import Evidence, Finding
from biassay.results.outcomes import (
    DECISIONS,
    Decision,
    Outcome,
    Result,
    ResultRecord,
    join_decisions,
    make_alternative_columns,
    make_outcome_columns,
)
from biassay.results.run_data import BaseRecord, RunData
from biassay.results.tables import MODEL_COLUMNS, REVISION_COLUMN, Column, TableSpec
from biassay.results.views import model_key
from biassay.results.views import split_by_model as models_of
from biassay.studies.discovery.settings import DiscoverySettings

__all__ = [
    "DUAL_USE",
    "TABLES",
    "CurveRow",
    "DiscoveryInputsRecord",
    "DiscoveryModelRow",
    "GroupResult",
    "GroupView",
    "Source",
    "Task",
    "ValidatedRow",
    "WordRow",
    "count_needed_at_floor",
    "decide_group",
    "find_needed_permutations",
    "get_groups",
    "group_of",
    "groups_of",
    "make_findings",
    "models_of",
    "score_columns",
]


DUAL_USE = (
    "These words describe the model, not people: they show which associations it took from its texts. The same list "
    "can be misused, to write what stereotypes a group or to set people against each other; pass it on with care and "
    "with this note."
)
Source = Literal["validation", "given", "convention"]
Task = Literal["ibd", "eibd"]
Scores = dict[str, float | None]


@dataclass(frozen=True)
class DiscoveryInputsRecord:
    """What was searched with: all groups with their names, a fingerprint of the words where a list was given.

    ``clusters`` are the near-duplicate names of groups that have any; the names of a cluster count as one.
    ``note`` is what whoever passes the words on should pass on with them. ``language`` is that of the names, if stated.
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


@dataclass(frozen=True)
class _GroupRowBase(BaseRecord):
    """Columns say what the numbers of rows are."""

    model: str
    options: str
    group: str


@dataclass(frozen=True)
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

    word: str
    effect_size: float | None
    scores: Scores
    constituents: Scores
    p_value: float | None
    p_adjusted: float | None
    excess_p_value: float | None
    excess_p_adjusted: float | None
    associated: bool
    eibd: bool
    emergent: bool


@dataclass(frozen=True, kw_only=True)
class GroupResult(ResultRecord):
    """The words of one group in one model; counts are over the whole vocabulary.

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

    group: str
    belongs: dict[str, str]
    other_groups: tuple[str, ...]
    constituents: tuple[str, ...]
    threshold: float
    threshold_source: Source
    threshold_emergent: float
    threshold_emergent_source: Source
    n_above: int
    n_every: int

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


@dataclass(frozen=True)
class ValidatedRow(_GroupRowBase):
    """A word of the validation: whether people associate it with the group, and whether the model does."""

    word: str
    of_group: bool
    emergent_of_group: bool
    scores: Scores
    constituents: Scores
    detected: bool
    detected_emergent: bool


@dataclass(frozen=True)
class CurveRow(_GroupRowBase):
    """How well rated words are detected at the threshold in use; arrays hold the counts at all others.

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

    task: Task
    outcome: Outcome
    chance: float
    chosen: float
    accuracy: float
    precision: float | None
    recall: float
    false_positive_rate: float


@dataclass(frozen=True)
class DiscoveryModelRow(BaseRecord):
    """What was searched of a model, and what it does not know.

    ``names_lost`` are by group; ``validation_lost`` are words of the validation, ``words_lost`` those of a user's list.
    ``similar_names`` are pairs of names, by group, that the model hardly tells apart and that are in no common cluster.
    """

    model: str
    options: str
    vocabulary: str
    names_lost: dict[str, tuple[str, ...]]
    validation_lost: tuple[str, ...]
    words_lost: tuple[str, ...]
    similar_names: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


_GROUP = (*MODEL_COLUMNS, Column("group", "group", "The name of the group."))
_WORD = (*_GROUP, Column("word", "word", "The word."))
_FOUND = (
    Column(
        "effect_size", "score", "Largest score against another group, or the smallest if it must exceed all.", "number"
    ),
    Column(
        "p_value",
        "p",
        "How often a random permutation of names scores as high: of the names of all groups, where a small p does not "
        "single the group out (if another group differs from all, all others score high against it); or, if a word "
        "must differ from every group, of the names of two, whichever has the largest p.",
        "p",
    ),
    Column(
        "p_adjusted",
        "q",
        "P-value after correction over the whole vocabulary: the expected share of false findings among words up to "
        "it.",
        "p",
    ),
    Column(
        "excess_p_value",
        "p excess",
        "How often the excess over what the categories contribute together is as large by chance: residuals of their "
        "sum are permuted among the names of all groups, which assumes that these vary alike.",
        "p",
    ),
    Column(
        "excess_p_adjusted",
        "q excess",
        "P-value of the excess after correction over the whole vocabulary, in which words that EIBD does not detect "
        "count as 1: the expected share of false findings among emergent words up to it.",
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
_RATED_COLUMNS = (
    Column("of_group", "rated", "People rated it for the group.", "flag"),
    Column("emergent_of_group", "rated emergent", "And for none of its categories.", "flag"),
    Column("detected", "detected", "IBD detects it at the threshold.", "flag"),
    Column("detected_emergent", "detected by EIBD", "EIBD detects it at its threshold.", "flag"),
)
_OF_GROUP = (
    *make_outcome_columns(
        effect_size="Number of associated words: above the threshold of IBD, with q up to alpha.",
        p_value="Smallest q of the kept words.",
        p_adjusted="Smallest q of the kept words; it is corrected over the whole vocabulary.",
    ),
    *make_alternative_columns(
        "eibd", {"effect_size": ("EIBD", "Number of words detected by EIBD, with q up to alpha.")}
    ),
    *make_alternative_columns(
        "emergent",
        {
            "effect_size": ("emergent", "Number of these with q excess up to alpha."),
            "p_value": ("q excess", "Smallest q excess of the kept words."),
        },
    ),
    Column("title", "title", "The group in words."),
    Column("belongs", "belongs", "Value of the group in every category."),
    Column("threshold", "threshold", "Threshold of IBD; scores above it count.", "number"),
    Column("threshold_source", "from", "Chosen on rated words, given, or by convention."),
    Column("threshold_emergent", "threshold of EIBD", "Threshold of EIBD; scores above it count.", "number"),
    Column("threshold_emergent_source", "from", "Chosen on rated words, given, or by convention."),
    Column("n_words", "words", "Number of words searched.", "count"),
    Column("n_above", "above", "Number of words above the threshold of IBD.", "count"),
    Column("n_every", "against every", "Associated words above the threshold against every other group.", "count"),
    REVISION_COLUMN,
)
_CURVE = (
    Column("task", "task", "Rule that detects: IBD or EIBD."),
    Column(
        "effect_size",
        "area",
        "Area under the curve of true against false positive rate: 0.5 is guessing.",
        "number",
        lambda row: row.outcome.effect_size,
    ),
    Column("chance", "chance", "Share of the rated words that belong to the group.", "share"),
    Column("chosen", "threshold", "Threshold in use.", "number"),
    Column("accuracy", "accuracy", "At the threshold; optimistic if it was chosen on these words.", "share"),
    Column("precision", "precision", "At the threshold; empty if no word is detected.", "share"),
    Column("recall", "recall", "At the threshold.", "share"),
    Column("false_positive_rate", "false positives", "False positive rate at the threshold.", "share"),
)
_LOST = (
    Column("vocabulary", "vocabulary", "What was searched."),
    Column("names_lost", "names lost", "Names without a vector, by group."),
    Column("validation_lost", "rated words lost", "Rated words without a vector."),
    Column("words_lost", "words lost", "Words of a given list without a vector."),
    Column("similar_names", "similar names", "Names of different clusters that the model hardly tells apart."),
)


def score_columns(run: RunData) -> list[Column]:
    """Return one column per group and per pair of categories."""
    pairs = dict.fromkeys(label for row in run.tables.get("groups", ()) for label in row.constituents)
    labels = run.manifest.inputs.labels
    return [*(_against(name, labels[name]) for name in run.manifest.inputs.groups), *map(_pair, pairs)]


def _against(name: str, label: str) -> Column:
    get = lambda row: row.scores.get(name)  # noqa: E731
    return Column(f"against {name}", f"against {label}", f"Score against {label}.", "number", get)


def _pair(label: str) -> Column:
    get = lambda row: row.constituents.get(label)  # noqa: E731
    return Column(label, f"category {label}", "Score of the first category against the second.", "number", get)


def get_groups(run: RunData) -> tuple[Result, ...]:
    """Return the groups of a run with their decisions."""
    return join_decisions(run.tables.get("groups", ()), run.tables.get("decisions", ()))


TABLES = (
    TableSpec("results", "Words", WordRow, lambda run: (*_WORD, *_FOUND, *score_columns(run))),
    TableSpec("groups", "Groups", GroupResult, (*_GROUP, *_OF_GROUP), rows=get_groups, key=("group",)),
    TableSpec("validated", "Rated words", ValidatedRow, lambda run: (*_WORD, *_RATED_COLUMNS, *score_columns(run))),
    TableSpec("curves", "Detection of rated words", CurveRow, (*_GROUP, *_CURVE)),
    TableSpec("models", "What was searched", DiscoveryModelRow, (*MODEL_COLUMNS, *_LOST)),
    DECISIONS,
)


_RATED = {"ibd": "of_group", "eibd": "emergent_of_group"}
_DETECTED = {"ibd": "detected", "eibd": "detected_emergent"}


@dataclass(frozen=True, eq=False)
class GroupView:
    """A group in one model.

    Attributes
    ----------
    model, title : str
        Label of the model, and the group in words, with the model if there are several.
    row : GroupResult
    decision : Decision
    words, validated, curves, arrays
        Rows and arrays of the group.
    """

    model: str
    title: str
    row: GroupResult
    decision: Decision
    words: tuple[WordRow, ...]
    validated: tuple[ValidatedRow, ...]
    curves: tuple[CurveRow, ...]
    arrays: Mapping[str, NDArray[np.float64]]

    def best_words(self, *, emergent: bool, top: int | None) -> Sequence[WordRow]:
        """Return the words that rank highest among those associated, or emergent."""
        return [word for word in self.words if (word.emergent if emergent else word.associated)][:top]

    def num_rated(self, curve: CurveRow) -> int:
        """Rated words that belong to the group, by the rule of a curve."""
        return sum(getattr(word, _RATED[curve.task]) for word in self.validated)

    def detected(self, curve: CurveRow) -> str:
        """Rated words of the group, and others, that are detected at the threshold in use."""
        rated, mark = _RATED[curve.task], _DETECTED[curve.task]
        found = [getattr(word, rated) for word in self.validated if getattr(word, mark)]
        return f"{sum(found)} of {self.num_rated(curve)}, and {len(found) - sum(found)} others"


def groups_of(run: RunData) -> list[GroupView]:
    """Return all groups of all models, in the order of the tables."""
    several = len(run.manifest.models) > 1
    decisions = {(model_key(result), result.group): result.decision for result in get_groups(run)}
    return [
        GroupView(
            model.label,
            f"{group.row.title} in {model.label}" if several else group.row.title,
            group.row,
            decisions[model_key(group.row), group.row.group],
            group["results"],
            group["validated"],
            group["curves"],
            group.arrays,
        )
        for model in models_of(run)
        for group in model.each("groups", "group")
    ]


def group_of(run: RunData, group: str, model: str | None = None) -> GroupView:
    """Return one group of the first model, or of the model with a label.

    Parameters
    ----------
    run : RunData
    group : str
    model : str, optional
        Label of the model; the first one by default.
    """
    known = {view.row.group: view for view in reversed(groups_of(run)) if model in (None, view.model)}
    if group not in known:
        raise UnknownNameError("group", group, known, f"(groups that were looked at: {', '.join(known)})")
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
        model=record.model,
        options=record.options,
        model_revision=record.model_revision,
        item=record.item,
        p_adjusted=record.outcome.p_value,
        evidence=evidence,
        significant=None if evidence == "not_testable" else evidence == "significant",
        family="words",
        family_size=record.n_words,
        reason=f"{settings.n_permutations:,} permutations are too few" if evidence == "not_testable" else None,
    )


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and group."""
    return [_make_finding(view, run.manifest.settings) for view in groups_of(run)]


def _make_finding(view: GroupView, settings: DiscoverySettings) -> Finding:
    row = view.row
    best = view.best_words(emergent=False, top=_WORDS)
    return Finding(
        model=view.model,
        item=row.group,
        title=row.title,
        topic=row.topic,
        about="people",
        evidence=view.decision.evidence,
        direction=_describe_direction(row, settings),
        effect=row.outcome.effect_size,
        unit=row.outcome.scale,
        p_values={
            "corrected": view.decision.p_adjusted,
            "excess, corrected": row.alternatives["emergent"].p_value,
        },
        words=tuple(word.word for word in best),
        notes=tuple(_describe_details(row, settings)),
    )


def _describe_direction(row: GroupResult, settings: DiscoverySettings) -> str:
    """Describe how many words go with the names of the group more than with those of another, or of every other."""
    goes = "goes" if row.n_associated <= 1 else "go"
    of = f"{_format_count(row.n_associated)} of {row.n_words:,} words {goes} with the names of {row.title}"
    return f"{of} more than with those of {'another' if settings.compare == 'any' else 'every other'} group"


def _describe_details(row: GroupResult, settings: DiscoverySettings) -> Iterator[str]:
    """Yield how many of them differ from every group, and how many are emergent."""
    if row.n_associated:
        if settings.compare == "any":
            yield f"{_format_count(row.n_every)} of them more than with those of every other group"
        yield f"{_format_count(row.n_emergent)} of them emergent"


def _format_count(number: int) -> str:
    return f"{number:,}" if number else "none"


def count_needed_at_floor(row: GroupResult, settings: DiscoverySettings) -> int:
    """Return how many words must share the smallest p-value before the correction lets any of them be found."""
    return math.ceil(row.n_words / ((settings.n_permutations + 1) * settings.alpha))


def find_needed_permutations(row: GroupResult, settings: DiscoverySettings) -> int | None:
    """Return the number of permutations with which findings do not depend on the seed; None if there are enough."""
    together = count_needed_at_floor(row, settings)
    if together <= _TOGETHER or row.n_associated >= _CLEARED * together:
        return None
    return math.ceil(row.n_words / (_TOGETHER * settings.alpha)) - 1
