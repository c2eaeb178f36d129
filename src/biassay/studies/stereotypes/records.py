"""The records of stereotypes. A number that was not computed is None; NaN is a number that was."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from biassay.results.data import Record

__all__ = [
    "AlignmentRow",
    "Ceiling",
    "ContextsRow",
    "ContextsSource",
    "DominanceRow",
    "EmergentRow",
    "GroupAlignmentRow",
    "HumanRecord",
    "InputsRecord",
    "MeasureRow",
    "ModelRow",
    "OrderRow",
    "ProfileRow",
    "RatedRow",
]

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class _Row(Record):
    """Columns say what the numbers of rows are."""

    model: str
    options: str


@dataclass(frozen=True)
class _OfMeasure(_Row):
    measure: str


@dataclass(frozen=True)
class ModelRow(_Row):
    """What a model could not be asked, and what asking it took."""

    kind: str
    prior: str
    skipped_templates: tuple[str, ...]
    unknown_adjectives: tuple[str, ...]
    unknown_groups: tuple[str, ...]
    num_questions: int
    num_passes: int
    num_asked: int


@dataclass(frozen=True)
class MeasureRow(_OfMeasure):
    """One measure; over contexts (CEAT) it has no templates.

    Its array "MEASURE/scores" is of shape (groups, templates, pairs), in the order of ``groups`` and ``templates``.
    """

    groups: tuple[str, ...]
    templates: tuple[str, ...]
    chosen: tuple[str, ...]
    undefined: int


@dataclass(frozen=True)
class ProfileRow(_OfMeasure):
    """A group's scores by pair, the mean over the templates chosen; people's mean ratings where there are any."""

    group: str
    domain: str
    parts: tuple[str, ...]
    scores: tuple[float | None, ...]
    human: tuple[float | None, ...] | None


@dataclass(frozen=True)
class AlignmentRow(_OfMeasure):
    """How a measure agrees with people, over the groups on which its templates were not chosen.

    ``..._with_pilot`` are over all groups, as the paper has them; None where none was left out.
    """

    annotators: str
    num_annotators: int | None
    num_groups: int
    num_cells: int
    pilot_tau: float | None
    tau: float | None
    p_value: float | None
    tau_shuffled: float | None
    p_value_shuffled: float | None
    tau_with_pilot: float | None
    p_value_with_pilot: float | None
    precision: float | None
    precision_with_pilot: float | None
    tau_annotators: Interval
    tau_groups: Interval
    tau_both: Interval
    precision_annotators: Interval
    precision_groups: Interval
    precision_both: Interval
    num_domains: int | None = None


@dataclass(frozen=True)
class GroupAlignmentRow(_OfMeasure):
    """How one group's profile agrees with people's; None: not defined, too few ratings, or templates chosen on it."""

    annotators: str
    group: str
    human_group: str
    tau: float | None
    p_value: float | None
    tau_interval: Interval
    top: float | None
    bottom: float | None
    precision: float | None
    pilot: bool


@dataclass(frozen=True)
class OrderRow(_OfMeasure):
    """Paired groups under one measure: mean tau of a pair with its groups and with the pair in the other order."""

    num_groups: int
    num_both_orders: int
    tau_first: float | None
    standard_error_first: float | None
    n_first: int
    tau_second: float | None
    standard_error_second: float | None
    n_second: int
    tau_reversed: float | None
    standard_error_reversed: float | None
    n_reversed: int
    tau_closest: float | None
    standard_error_closest: float | None
    n_closest: int


@dataclass(frozen=True)
class DominanceRow(_OfMeasure):
    """Two domains: mean tau of their paired groups with the component of either.

    ``dominates`` follows the interval; ``dominates_by_margin`` is the rule of the paper, a difference of 0.1 or more.
    """

    domain_a: str
    domain_b: str
    tau_a: float | None
    tau_b: float | None
    difference: float | None
    interval: Interval
    num_pairs: int
    dominates: str | None
    dominates_by_margin: str | None = None


@dataclass(frozen=True)
class EmergentRow(_OfMeasure):
    """A trait that a paired group has more, or less, than both of its groups: described, not tested."""

    group: str
    parts: tuple[str, ...]
    trait: str
    direction: str
    excess: float
    bound: float
    p_value: float | None
    q_value: float | None
    p_value_additive: float | None


@dataclass(frozen=True)
class RatedRow(_OfMeasure):
    """How well traits that emerge fit what people say of men and women of three races, by dimension and side.

    A cell is a paired group, a dimension and a side; it counts if any adjective of it emerges.
    """

    source: str
    num_groups: int
    precision: float | None
    recall: float | None
    chance_precision: float | None
    chance_recall: float | None
    p_value: float | None


@dataclass(frozen=True)
class ContextsRow(_Row):
    """What one model made of groups and adjectives in their contexts (CEAT).

    The array "ceat/standard_errors" (groups, pairs) holds the errors of the scores, with other contexts of the group.
    """

    words_options: str
    groups: dict[str, int]
    adjectives: dict[str, int]
    few_groups: tuple[str, ...]
    few_adjectives: tuple[str, ...]
    own_words: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Ceiling(Record):
    """How well one half of the people agrees with the other, over all groups that were rated, the pilot's included.

    No upper bound, for both halves are noisier than all.
    """

    tau: float | None
    interval: Interval


@dataclass(frozen=True)
class HumanRecord:
    """Human judgements of a run; ``digest`` is of the ratings, None in a run that did not keep it."""

    file: str
    digest: str | None = None
    notes: tuple[str, ...] = ()
    ceiling: Ceiling | None = None


@dataclass(frozen=True)
class ContextsSource:
    """The file of contexts of a run. ``corpus`` names the files that were read."""

    file: str
    digest: str
    rows: int
    per_stimulus: int
    seed: int
    documents: int
    corpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputsRecord:
    """What stereotypes were measured with.

    ``traits`` are the left and the right trait of a pair, ``dimensions`` its dimension, ``templates`` their texts.
    """

    abc: str
    abc_digest: str
    citation: str
    licence: str
    pairs: tuple[str, ...]
    traits: dict[str, tuple[str, str]]
    dimensions: dict[str, str]
    groups: tuple[str, ...]
    templates: dict[str, str]
    measures: tuple[str, ...]
    notes: tuple[str, ...] = ()
    human: HumanRecord | None = None
    contexts: ContextsSource | None = None
