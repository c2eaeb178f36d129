"""The records of a search for the words of groups. A number that was not computed is None."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from biassay.results.data import Record

__all__ = ["DUAL_USE", "CurveRow", "GroupRow", "InputsRecord", "ModelRow", "Source", "Task", "ValidatedRow", "WordRow"]

DUAL_USE = (
    "These words describe the model, not people: they show which associations it took from its texts. The same list "
    "can be misused, to write what stereotypes a group or to set people against each other; pass it on with care and "
    "with this note."
)
Source = Literal["validation", "given", "convention"]
Task = Literal["ibd", "eibd"]
Scores = dict[str, float | None]


@dataclass(frozen=True)
class InputsRecord:
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
class _OfGroup(Record):
    """Columns say what the numbers of rows are."""

    model: str
    options: str
    group: str


@dataclass(frozen=True)
class WordRow(_OfGroup):
    """A word of the vocabulary: ``scores`` by the other group, ``constituents`` by the pair of categories."""

    word: str
    score: float | None
    scores: Scores
    constituents: Scores
    p_value: float | None
    q_value: float | None
    p_value_excess: float | None
    q_value_excess: float | None
    associated: bool
    eibd: bool
    emergent: bool


@dataclass(frozen=True)
class GroupRow(_OfGroup):
    """What was found of one group in one model; counts are over the whole vocabulary.

    ``other_groups`` are those it is compared with; ``constituents`` are its categories, each against another value.
    """

    label: str
    belongs: dict[str, str]
    other_groups: tuple[str, ...]
    constituents: tuple[str, ...]
    threshold: float
    threshold_source: Source
    threshold_emergent: float
    threshold_emergent_source: Source
    num_words: int
    num_above: int
    num_associated: int
    num_every: int
    num_eibd: int
    num_emergent: int


@dataclass(frozen=True)
class ValidatedRow(_OfGroup):
    """A word of the validation: whether people associate it with the group, and whether the model does."""

    word: str
    of_group: bool
    emergent_of_group: bool
    scores: Scores
    constituents: Scores
    detected: bool
    detected_emergent: bool


@dataclass(frozen=True)
class CurveRow(_OfGroup):
    """How well the words of the validation are detected at the threshold in use; arrays hold the counts at all others.

    ``chance`` is the share of words that belong to the group; ``precision`` is None where none is detected.
    """

    task: Task
    area: float
    chance: float
    chosen: float
    accuracy: float
    precision: float | None
    recall: float
    false_positive_rate: float


@dataclass(frozen=True)
class ModelRow(Record):
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
