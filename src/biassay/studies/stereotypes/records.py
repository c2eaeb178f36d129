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
class ModelRow(Record):
    """What a model could not be asked, and what asking it took; ``kind`` is "encoder" if it was asked no blanks."""

    model: str
    options: str
    kind: str
    prior: str
    skipped_templates: tuple[str, ...]
    unknown_adjectives: tuple[str, ...]
    unknown_groups: tuple[str, ...]
    num_questions: int
    num_passes: int
    num_asked: int


@dataclass(frozen=True)
class MeasureRow(Record):
    """One measure of one model; a measure over contexts (CEAT) has no templates.

    Its array "MEASURE/scores" is of shape (groups, templates, pairs), in the order of ``groups`` and ``templates``.
    ``undefined`` counts scores that are not defined.
    """

    model: str
    options: str
    measure: str
    groups: tuple[str, ...]
    templates: tuple[str, ...]
    chosen: tuple[str, ...]
    undefined: int


@dataclass(frozen=True)
class ProfileRow(Record):
    """A group's scores by pair, the mean over the templates chosen; people's mean ratings where there are any."""

    model: str
    options: str
    measure: str
    group: str
    domain: str
    parts: tuple[str, ...]
    scores: tuple[float | None, ...]
    human: tuple[float | None, ...] | None


@dataclass(frozen=True)
class AlignmentRow(Record):
    """How a measure agrees with people.

    All numbers are over the groups on which its templates were not chosen: where they were chosen on the pilot groups
    (``pilot_tau`` is how well these fit), all others. ``..._with_pilot`` are over all groups, the pilot's included, as
    the paper has them; None where none was left out. Intervals: other annotators, other groups, both. ``tau_shuffled``
    is the mean tau if ratings are given at random to the groups, ``p_value_shuffled`` how often it is then as high.
    """

    model: str
    options: str
    measure: str
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


@dataclass(frozen=True)
class GroupAlignmentRow(Record):
    """How one group's profile agrees with people's; None: not defined, or too few ratings.

    ``pilot``: templates were chosen on this group, among others.
    """

    model: str
    options: str
    measure: str
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
class OrderRow(Record):
    """Paired groups under one measure: mean tau of a pair with the group named first, with the second, with the pair in
    the other order, and with the closer of its groups; each with its standard error and the number of pairs.

    ``num_both_orders``: how many pairs stand in both orders.
    """

    model: str
    options: str
    measure: str
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
class DominanceRow(Record):
    """Two domains: mean tau of their paired groups with the component of either."""

    model: str
    options: str
    measure: str
    domain_a: str
    domain_b: str
    tau_a: float | None
    tau_b: float | None
    difference: float | None
    interval: Interval
    num_pairs: int
    dominates: str | None


@dataclass(frozen=True)
class EmergentRow(Record):
    """A trait that a paired group has more, or less, than both of its components: described, not tested.

    Both p-values rank (see `biassay.stats.emergence`).
    """

    model: str
    options: str
    measure: str
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
class RatedRow(Record):
    """How well traits that emerge fit what people say of men and women of three races, by dimension and side.

    A cell is a paired group, a dimension and a side; it is found if any adjective of it emerges. ``chance_...`` are
    those of guessing with a coin.
    """

    model: str
    options: str
    measure: str
    source: str
    num_groups: int
    precision: float | None
    recall: float | None
    chance_precision: float | None
    chance_recall: float | None
    p_value: float | None


@dataclass(frozen=True)
class ContextsRow(Record):
    """What one model made of groups and adjectives in their contexts (CEAT).

    ``groups`` and ``adjectives`` hold how many contexts each had of which the model gave a vector, ``few_groups`` and
    ``few_adjectives`` which had too few. ``own_words`` are adjectives left out for a group, because they are words for
    the group itself. ``words_options`` are the settings of the encoder of words. The array "ceat/standard_errors"
    (groups, pairs) holds the errors of the scores, with other contexts of the group.
    """

    model: str
    options: str
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
    """Human judgements of a run: where they came from, what there is to know about them, and how people agree.

    ``digest`` is of the ratings that were compared; None: an older run did not keep it.
    """

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
