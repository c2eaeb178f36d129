"""Rows and columns of stereotypes, and access by measure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from biassay.results.outcomes import (
    DECISIONS,
    Result,
    ResultRecord,
    join_decisions,
    make_alternative_columns,
    make_outcome_columns,
)
from biassay.results.run_data import BaseRecord, RunData, belongs_to
from biassay.results.tables import MODEL_COLUMNS, REVISION_COLUMN, Column, TableSpec
from biassay.results.views import RunSlice
from biassay.results.views import split_by_model as models_of

__all__ = [
    "ALL_ANNOTATORS",
    "ALPHA",
    "ORDERS",
    "TABLES",
    "AgreementResult",
    "Ceiling",
    "ContextsRow",
    "ContextsSource",
    "DominanceRow",
    "EmergentRow",
    "GroupAlignmentRow",
    "GroupTraits",
    "HumanRecord",
    "MeasureRow",
    "OrderRow",
    "ProfileRow",
    "RatedRow",
    "ScoreRow",
    "StereotypeInputsRecord",
    "StereotypeModelRow",
    "by_group",
    "closest",
    "get_results",
    "iter_scores",
    "measure_name",
    "measures_of",
    "models_of",
    "overall",
    "pilot_of",
]


Interval = tuple[float, float] | None


@dataclass(frozen=True)
class _ModelRowBase(BaseRecord):
    """Columns say what the numbers of rows are."""

    model: str
    options: str


@dataclass(frozen=True)
class _MeasureRowBase(_ModelRowBase):
    measure: str


@dataclass(frozen=True)
class StereotypeModelRow(_ModelRowBase):
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
class MeasureRow(_MeasureRowBase):
    """One measure; over contexts (CEAT) it has no templates.

    Its array "MEASURE/scores" is of shape (groups, templates, pairs), in the order of ``groups`` and ``templates``.
    """

    groups: tuple[str, ...]
    templates: tuple[str, ...]
    chosen: tuple[str, ...]
    undefined: int


@dataclass(frozen=True)
class ProfileRow(_MeasureRowBase):
    """A group's scores by pair, the mean over the templates chosen; people's mean ratings where there are any."""

    group: str
    domain: str
    parts: tuple[str, ...]
    scores: tuple[float | None, ...]
    human: tuple[float | None, ...] | None


ALL_ANNOTATORS = "all"
ALPHA = 0.05
"""Level of significance of agreement with people."""


@dataclass(frozen=True, kw_only=True)
class AgreementResult(ResultRecord):
    """Agreement of one measure with people, over the groups on which its templates were not chosen.

    The primary outcome is Kendall's tau, its interval with other groups and annotators (or other groups only, if the
    file holds mean ratings), and the p-value of a permutation of ratings among domains and groups. Agreement with
    annotators of one kind is descriptive.

    Alternatives are ``annotators`` and ``groups``, with intervals over annotators or groups only; ``cells``, with the
    paper's p-value; ``pilot``, on the groups on which templates were chosen; ``with_pilot``, over all groups as in the
    paper; and ``precision``, ``precision_annotators``, ``precision_groups`` and ``precision_with_pilot``, the same for
    precision at 3.

    Attributes
    ----------
    measure : str
    annotators : str
        Annotators that are compared with: all, or those of one kind.
    tau_shuffled : float or None
        Mean tau if ratings are permuted among domains and groups.
    """

    measure: str
    annotators: str = ALL_ANNOTATORS
    tau_shuffled: float | None = None

    @property
    def item(self) -> str:
        """Name of the measure, with the annotators if they are not all."""
        return self.measure if self.annotators == ALL_ANNOTATORS else f"{self.measure}, {self.annotators}"


@dataclass(frozen=True, kw_only=True)
class GroupTraits(ResultRecord):
    """Traits by which one group stands out: described, not tested.

    The outcome is the score of the first trait, less the mean of all groups if there are several.

    Attributes
    ----------
    group : str
    by : str
        Measure: the one that agrees best with people, or the first.
    traits : tuple of str
        Traits by which the group stands out, strongest first.
    centred : bool
        If True, scores are compared with the mean of all groups.
    """

    group: str
    by: str
    traits: tuple[str, ...] = ()
    centred: bool = False

    @property
    def item(self) -> str:
        """Name of the group."""
        return self.group


@dataclass(frozen=True)
class GroupAlignmentRow(_MeasureRowBase):
    """Agreement of one group's profile with people's.

    Attributes
    ----------
    annotators : str
        Annotators that are compared with.
    group, human_group : str
        Group, and its name in the file of judgements.
    effect_size, ci_low, ci_high, p_value : float or None
        Kendall's tau, its interval with other annotators, and its p-value. None if tau is undefined, there are too few
        ratings, or templates were chosen on the group.
    top, bottom, precision : float or None
        Precision at 3 of the highest and of the lowest pairs, and their mean.
    pilot : bool
        Whether templates were chosen on the group.
    """

    annotators: str
    group: str
    human_group: str
    effect_size: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    top: float | None
    bottom: float | None
    precision: float | None
    pilot: bool


@dataclass(frozen=True)
class OrderRow(_MeasureRowBase):
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
class DominanceRow(_MeasureRowBase):
    """Two domains: mean tau of their paired groups with the component of either.

    ``effect_size`` is the difference of both, and ``dominates`` follows its interval. ``dominates_by_margin`` is the
    rule of the paper, a difference of 0.1 or more.
    """

    domain_a: str
    domain_b: str
    tau_a: float | None
    tau_b: float | None
    effect_size: float | None
    ci_low: float | None
    ci_high: float | None
    num_pairs: int
    dominates: str | None
    dominates_by_margin: str | None = None


@dataclass(frozen=True)
class EmergentRow(_MeasureRowBase):
    """A trait that a paired group has more, or less, than both of its groups: described, not tested."""

    group: str
    parts: tuple[str, ...]
    trait: str
    direction: str
    effect_size: float
    bound: float
    p_value: float | None
    p_adjusted: float | None
    additive_p_value: float | None


@dataclass(frozen=True)
class RatedRow(_MeasureRowBase):
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
class ContextsRow(_ModelRowBase):
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
class Ceiling(BaseRecord):
    """How well one half of the people agrees with the other, over all groups that were rated, the pilot's included.

    No upper bound, for both halves are noisier than all.
    """

    tau: float | None
    interval: Interval


@dataclass(frozen=True)
class HumanRecord:
    """Human judgements of a run; ``digest`` is of the ratings."""

    file: str
    digest: str
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
class StereotypeInputsRecord:
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


class ScoreRow(NamedTuple):
    """A score of one group on one pair under one template; a measure over contexts has no template."""

    model: str
    options: str
    measure: str
    template: str
    chosen: bool | None
    group: str
    pair: str
    score: float | None


def iter_scores(run: RunData) -> Iterator[ScoreRow]:
    """All scores of a run, one a model, measure, group, template and pair."""
    for place, record in enumerate(run.manifest.models):
        for row in run.tables.get("measures", ()):
            if belongs_to(row, record):
                yield from _iter_measure_scores(run, row, place)


def _iter_measure_scores(run: RunData, row: MeasureRow, place: int) -> Iterator[ScoreRow]:
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
                yield ScoreRow(*key, template, chosen, profile.group, pair, known)


_MEASURE = (*MODEL_COLUMNS, Column("measure", "measure", "ilps, ilps-star, set or ceat."))
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
    *MODEL_COLUMNS,
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


def _make_count_column(unit: str, label: str, help: str) -> Column:
    return Column(f"n_{unit}", label, help, "count", lambda result: result.record.outcome.n.get(unit))


def _make_interval(label: str, help: str) -> dict[str, tuple[str, str]]:
    return {
        f"ci_{end}": (f"{label}, {end}", f"{help}: {side} end.") for end, side in (("low", "lower"), ("high", "upper"))
    }


_ALIGNMENTS = (
    *_MEASURE,
    Column("annotators", "annotators", "Annotators: all, or those of one kind."),
    *make_outcome_columns(
        effect_size="Kendall's tau over the compared cells.",
        ci_low="Lower end of the 95% interval with other groups and annotators, or other groups only.",
        ci_high="Upper end of this interval.",
        p_value="How often tau is as high if ratings are permuted among domains and groups: are groups told apart?",
        p_adjusted="P-value after Holm's correction over the measures of all models.",
    ),
    Column("tau_shuffled", "groups shuffled", "Mean tau if ratings are permuted among domains and groups.", "number"),
    *make_alternative_columns("annotators", _make_interval("95%, people", "95% interval with other annotators")),
    *make_alternative_columns("groups", _make_interval("95%, groups", "95% interval with other groups")),
    *make_alternative_columns(
        "cells",
        {"p_value": ("p, cells", "The paper's p-value: it takes cells as independent and is nearly always small.")},
    ),
    *make_alternative_columns(
        "precision",
        {"effect_size": ("P@3", "Precision at 3."), **_make_interval("P@3 95%, both", "95% interval as of tau")},
    ),
    *make_alternative_columns(
        "precision_annotators", _make_interval("P@3 95%, people", "95% interval with other annotators")
    ),
    *make_alternative_columns("precision_groups", _make_interval("P@3 95%, groups", "95% interval with other groups")),
    *make_alternative_columns(
        "pilot", {"effect_size": ("tau on the pilot", "Tau of the chosen templates on the groups they were chosen on.")}
    ),
    *make_alternative_columns(
        "with_pilot",
        {
            "effect_size": ("tau with pilot", "Tau over all groups, the pilot's included."),
            "p_value": ("p with pilot", "Its p-value, as if cells were independent and templates not chosen."),
        },
    ),
    *make_alternative_columns(
        "precision_with_pilot", {"effect_size": ("P@3 with pilot", "P@3 over all groups, the pilot's included.")}
    ),
    _make_count_column("annotators", "people", "Number of annotators."),
    _make_count_column("groups", "groups", "Compared groups: those on which templates were not chosen."),
    _make_count_column("domains", "domains", "Domains of these groups, the sampling unit of intervals."),
    _make_count_column("cells", "cells", "These groups by pairs of traits."),
    Column("reason", "reason", "Why tau is missing."),
    REVISION_COLUMN,
)
_TRAITS = (
    *MODEL_COLUMNS,
    _GROUP,
    *make_outcome_columns(
        effect_size="Score of the first trait, less the mean of all groups if there are several.",
        p_value="Empty: traits are described, not tested.",
        p_adjusted="Empty: traits are described, not tested.",
    ),
    Column("by", "measure", "Measure that agrees best with people, or the first."),
    Column("topic", "domain", "Domain of the group."),
    Column("traits", "traits", "Traits by which the group stands out, strongest first."),
    Column("reason", "reason", "Why the group was not measured."),
    REVISION_COLUMN,
)
_GROUP_ALIGNMENTS = (
    *_MEASURE,
    Column("annotators", "annotators", "Annotators: all, or those of one kind."),
    _GROUP,
    Column("human_group", "people's name", "The group in the file of judgements."),
    Column(
        "effect_size",
        "tau",
        "Kendall's tau over the pairs; optimistic if templates were chosen on the group.",
        "number",
    ),
    Column("ci_low", "95%, low", "Lower end of the interval with other annotators.", "number"),
    Column("ci_high", "95%, high", "Upper end of the interval with other annotators.", "number"),
    Column("p_value", "p, pairs", "P-value as if pairs were independent and nothing were common to all groups.", "p"),
    Column("top", "P@3 top", "Share of the three highest pairs that people rate above 50.", "number"),
    Column("bottom", "P@3 bottom", "Share of the three lowest pairs that people rate below 50.", "number"),
    Column("precision", "P@3", "Mean of both.", "number"),
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
    Column("effect_size", "difference", "The first less the second.", "number"),
    Column("ci_low", "95%, low", "Lower end with other groups of both domains; empty for a single group.", "number"),
    Column("ci_high", "95%, high", "Upper end with other groups of both domains.", "number"),
    Column("dominates", "dominates", "The domain on whose side of 0 the interval lies, before correction."),
    Column("dominates_by_margin", "by 0.1", "The paper's rule: the domain whose tau is larger by 0.1 or more."),
)
_EMERGENT = (
    *_MEASURE,
    _GROUP,
    Column("parts", "parts", "Its two groups."),
    Column("trait", "trait", "The adjective."),
    Column("direction", "direction", "More or less than both groups."),
    Column("effect_size", "beyond both by", "Excess over the groups.", "number"),
    Column("bound", "of its groups", "The score that it goes beyond.", "number"),
    Column("p_value", "p", "Share of random pairs of the same domains that go as far: a rank, no test.", "p"),
    Column("p_adjusted", "q", "This p, corrected for the number of traits.", "p"),
    Column(
        "additive_p_value",
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
    *MODEL_COLUMNS,
    Column("words_options", "options of words", "Settings of the encoder of words."),
    Column("groups", "groups", "Contexts of every group.", "count"),
    Column("adjectives", "adjectives", "Contexts of every adjective.", "count"),
    Column("few_groups", "rare groups", "Groups with too few."),
    Column("few_adjectives", "rare adjectives", "Adjectives with too few."),
    Column("own_words", "own words", "Adjectives left out, for they are words for the group."),
)


def get_results(run: RunData, table: str) -> tuple[Result, ...]:
    """Return the records of a table, alignments or groups, with their decisions."""
    return join_decisions(run.tables.get(table, ()), run.tables.get("decisions", ()))


TABLES = (
    TableSpec("results", "Scores", None, _RESULTS, iter_scores),
    TableSpec("models", "Models", StereotypeModelRow, _MODELS),
    TableSpec("measures", "Measures", MeasureRow, _MEASURES),
    TableSpec("profiles", "Profiles of groups", ProfileRow, _PROFILES),
    TableSpec(
        "alignments",
        "Agreement with people",
        AgreementResult,
        _ALIGNMENTS,
        rows=lambda run: get_results(run, "alignments"),
        key=("measure", "annotators"),
    ),
    TableSpec(
        "groups",
        "Traits of groups",
        GroupTraits,
        _TRAITS,
        rows=lambda run: get_results(run, "groups"),
        key=("group",),
    ),
    TableSpec("group_alignments", "Agreement by group", GroupAlignmentRow, _GROUP_ALIGNMENTS),
    TableSpec("orders", "Paired groups and their order", OrderRow, _ORDERS),
    TableSpec("dominance", "Which domain a pair follows", DominanceRow, _DOMINANCE),
    TableSpec("emergent", "Traits that emerge", EmergentRow, _EMERGENT),
    TableSpec("rated", "What people say of paired groups", RatedRow, _RATED),
    TableSpec("contexts", "Contexts of groups and traits", ContextsRow, _CONTEXTS),
    DECISIONS,
)


_NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT", "ceat": "CEAT"}


def measure_name(measure: str) -> str:
    """Return the name of a measure as papers write it."""
    return _NAMES.get(measure, measure)


def measures_of(model: RunSlice) -> list[RunSlice]:
    """Return the rows of every measure."""
    return model.each("measures", "measure")


def overall(measure: RunSlice) -> AgreementResult | None:
    """Return the agreement with all people, which comes before that with some of them."""
    return measure.first("alignments")


def closest(model: RunSlice) -> RunSlice | None:
    """Return the measure that agrees best with people; the first one on ties or if none has a tau."""
    measures = measures_of(model)
    taus = [None if (found := overall(measure)) is None else found.outcome.effect_size for measure in measures]
    best = max((tau for tau in taus if tau is not None), default=None)
    return measures[taus.index(best)] if taus else None


def by_group(measure: RunSlice) -> list[GroupAlignmentRow]:
    """Return the agreement of every group with all people."""
    found = overall(measure)
    return [row for row in measure["group_alignments"] if found is not None and row.annotators == found.annotators]


def pilot_of(measure: RunSlice) -> frozenset[str]:
    """Return the groups on which templates were chosen."""
    return frozenset(row.group for row in measure["group_alignments"] if row.pilot)
