"""Rows, columns and findings of stereotypes, and scores centred on the mean of all groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from biassay.results.outcomes import (
    DECISIONS,
    Evidence,
    Finding,
    Outcome,
    Result,
    ResultRecord,
    get_decided,
    make_alternative_columns,
    make_outcome_columns,
    make_outcome_finding,
    make_result_columns,
)
from biassay.results.run_data import (
    BaseRecord,
    ModelRow,
    RunData,
    RunSlice,
    belongs_to,
    model_key,
    model_labels,
    none_if_nan,
)
from biassay.results.tables import (
    Column,
    TableSpec,
    column,
    keyword_row,
    make_columns,
    optional,
    table_row,
)
from biassay.studies.study import ContextsRecord

Interval = tuple[float, float] | None


@table_row
class _MeasureRowBase(ModelRow):
    measure: str = column("measure", "ilps, ilps-star, set or ceat.")


@table_row
class StereotypeModelRow(ModelRow):
    """Skipped templates and words of a model, and numbers of requests."""

    kind: str = column("kind", "masked, causal, or encoder without blanks.")
    prior: str = column("prior", "Prior that groups are compared with: mask or word.")
    skipped_templates: tuple[str, ...] = column("skipped", "Skipped templates.")
    unknown_adjectives: tuple[str, ...] = column("unknown adjectives", "Adjectives with out-of-vocabulary tokens.")
    unknown_groups: tuple[str, ...] = column("unknown groups", "Groups with out-of-vocabulary words.")
    num_questions: int = column("blanks", "Number of blanks.")
    num_passes: int = column("passes", "Number of passes through the model.")
    num_asked: int = column("sentences", "Sentences that one pass per trait would take.")


@table_row
class MeasureRow(_MeasureRowBase):
    """Groups and templates of one measure; over contexts (CEAT) it has no templates.

    Its array "MEASURE/scores" is of shape (groups, templates, pairs), in the order of ``groups`` and ``templates``.
    """

    groups: tuple[str, ...] = column("groups", "Groups that have scores, in the order of the array.")
    templates: tuple[str, ...] = column("templates", "Templates, in the order of the array.")
    chosen: tuple[str, ...] = column("chosen", "Templates over which profiles are means.")
    undefined: int = column("undefined", "Scores that are not defined.")


@table_row
class ProfileRow(_MeasureRowBase):
    """Scores of a group by pair, as means over the chosen templates, and people's mean ratings."""

    group: str = column("group", "The social group.")
    domain: str = column("domain", "The group's domain.")
    parts: tuple[str, ...] = column("parts", "The two groups of a paired group.")
    scores: tuple[float | None, ...] = column("scores", "Mean scores, pair by pair.", "number")
    human: tuple[float | None, ...] | None = column(
        "people", "Mean ratings of people, pair by pair, 0 (left) to 100 (right).", "number"
    )


ALL_ANNOTATORS = "all"
ALPHA = 0.05
"""Level of significance of agreement with people."""


@keyword_row
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
        Annotators whose ratings count: all, or a subgroup.
    tau_shuffled : float or None
        Mean tau if ratings are permuted among domains and groups.
    """

    measure: str = column("measure", "ilps, ilps-star, set or ceat.")
    annotators: str = column(
        "annotators", "Annotators whose ratings count: all, or a subgroup.", default=ALL_ANNOTATORS
    )
    tau_shuffled: float | None = optional(
        "groups shuffled", "Mean tau if ratings are permuted among domains and groups."
    )

    @property
    def item(self) -> str:
        """Name of the measure, with the annotators if they are not all."""
        return self.measure if self.annotators == ALL_ANNOTATORS else f"{self.measure}, {self.annotators}"


@keyword_row
class GroupTraits(ResultRecord):
    """Traits by which one group stands out: described, not tested.

    The outcome is the score of the first trait, minus the mean of all groups if there are several.

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

    group: str = column("group", "The social group.")
    by: str = column("measure", "Measure that agrees best with people, or the first.")
    traits: tuple[str, ...] = column("traits", "Traits by which the group stands out, strongest first.", default=())
    centred: bool = False

    @property
    def item(self) -> str:
        """Name of the group."""
        return self.group


@table_row
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

    annotators: str = column("annotators", "Annotators whose ratings count: all, or a subgroup.")
    group: str = column("group", "The social group.")
    human_group: str = column("people's name", "Name of the group in the file of human ratings.")
    effect_size: float | None = column(
        "tau", "Kendall's tau over the pairs; optimistic if templates were chosen on the group."
    )
    ci_low: float | None = column("95%, low", "Lower end of the interval with other annotators.")
    ci_high: float | None = column("95%, high", "Upper end of the interval with other annotators.")
    p_value: float | None = column(
        "p, pairs", "P-value as if pairs were independent and nothing were common to all groups.", "p"
    )
    top: float | None = column("P@3 top", "Share of the three highest pairs that people rate above 50.")
    bottom: float | None = column("P@3 bottom", "Share of the three lowest pairs that people rate below 50.")
    precision: float | None = column("P@3", "Mean of both.")
    pilot: bool = column("pilot", "Whether templates were chosen on it.")


@table_row
class OrderRow(_MeasureRowBase):
    """Paired groups under one measure: mean tau of a pair with its groups and with the pair in the other order."""

    num_groups: int = column("groups", "Paired groups.")
    num_both_orders: int = column("both orders", "Pairs that were measured in both orders.")
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


@table_row
class DominanceRow(_MeasureRowBase):
    """Two domains: mean tau of their paired groups with the component of either.

    ``effect_size`` is the difference of both, and ``dominates`` follows its interval. ``dominates_by_margin`` is the
    rule of the paper, a difference of 0.1 or more.
    """

    domain_a: str = column("domain A", "The first domain.")
    domain_b: str = column("domain B", "The second domain.")
    tau_a: float | None = column("tau with A", "Mean tau with the group of the first domain.")
    tau_b: float | None = column("tau with B", "Mean tau with the group of the second domain.")
    effect_size: float | None = column("difference", "Mean tau with A minus mean tau with B.")
    ci_low: float | None = column("95%, low", "Lower end with other groups of both domains; empty for a single group.")
    ci_high: float | None = column("95%, high", "Upper end with other groups of both domains.")
    num_pairs: int = column("pairs", "Paired groups of both.")
    dominates: str | None = column("dominates", "The domain on whose side of 0 the interval lies, before correction.")
    dominates_by_margin: str | None = optional(
        "by 0.1", "The paper's rule: the domain whose tau is larger by 0.1 or more."
    )


@table_row
class EmergentRow(_MeasureRowBase):
    """A trait that is stronger, or weaker, in a paired group than in both of its groups: described, not tested."""

    group: str = column("group", "The social group.")
    parts: tuple[str, ...] = column("parts", "Its two groups.")
    trait: str = column("trait", "The adjective.")
    direction: str = column("direction", "More or less than both groups.")
    effect_size: float = column("beyond both by", "Excess over the groups.")
    bound: float = column("of its groups", "Score of the group that is closer to the pair.")
    p_value: float | None = column(
        "p", "Share of random pairs of the same domains with a residual as large; a rank, not a test.", "p"
    )
    p_adjusted: float | None = column("q", "This p, corrected for the number of traits.", "p")
    additive_p_value: float | None = column(
        "p, additive",
        "Rank of the residual after both groups' contributions to all their pairs are subtracted; not a test.",
        "p",
    )


@table_row
class RatedRow(_MeasureRowBase):
    """Fit of emergent traits with those that people name for men and women of three races, by dimension and side.

    A cell is a paired group, a dimension and a side; it counts if any adjective of it emerges.
    """

    source: str = column("source", "Source of the traits that people name.")
    num_groups: int = column("groups", "Paired groups that people described.")
    precision: float | None = column(
        "precision", "Precision: share of the sides with emergent traits that people also name."
    )
    recall: float | None = column("recall", "Recall: share of the sides named by people on which traits emerge.")
    chance_precision: float | None = column("precision of a coin", "Precision of a random guess.")
    chance_recall: float | None = column("recall of a coin", "Recall of a random guess.")
    p_value: float | None = column(
        "p, cells", "Share of random cells that match as well; treats cells as independent.", "p"
    )


@table_row
class ContextsRow(ModelRow):
    """Contexts of groups and adjectives of one model (CEAT).

    The array "ceat/standard_errors" (groups, pairs) holds the errors of the scores, with other contexts of the group.
    """

    words_options: str = column("options of words", "Settings of the encoder of words.")
    groups: dict[str, int] = column("groups", "Contexts of every group.", "count")
    adjectives: dict[str, int] = column("adjectives", "Contexts of every adjective.", "count")
    few_groups: tuple[str, ...] = column("rare groups", "Groups with too few contexts.")
    few_adjectives: tuple[str, ...] = column("rare adjectives", "Adjectives with too few contexts.")
    own_words: dict[str, tuple[str, ...]] = column(
        "own words", "Adjectives left out because they are words for the group.", default={}
    )


@dataclass(frozen=True)
class Ceiling(BaseRecord):
    """Agreement of two random halves of the annotators, over all rated groups, pilot groups included.

    It is not an upper bound, because both halves are noisier than all annotators.
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
class StereotypeInputsRecord:
    """Inputs of a run: names of groups and measures, traits and dimensions by pair, and texts of templates."""

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
    contexts: ContextsRecord | None = None


class ScoreRow(NamedTuple):
    """A score of one group on one pair under one template; a measure over contexts has no template.

    Scores are described, not tested, so only those over contexts have a standard error, and none has a p-value.
    """

    model: str
    options: str
    measure: str
    template: str
    chosen: bool | None
    group: str
    pair: str
    effect_size: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    standard_error: float | None = None
    scale: str = "score"
    p_value: float | None = None
    p_adjusted: float | None = None
    significant: bool | None = None
    evidence: Evidence = "descriptive"
    direction: str | None = None
    power_80: float | None = None


def iter_scores(run: RunData) -> Iterator[ScoreRow]:
    """Yield all scores of a run, one per model, measure, group, template and pair."""
    for index, record in enumerate(run.manifest.models):
        for row in run.tables.get("measures", ()):
            if belongs_to(row, record):
                yield from _iter_measure_scores(run, row, index)


def _iter_measure_scores(run: RunData, row: MeasureRow, index: int) -> Iterator[ScoreRow]:
    key = (row.model, row.options, row.measure)
    scores, errors = (run.arrays.get(f"{index}/{row.measure}/{name}") for name in ("scores", "standard_errors"))
    for profile in run.tables["profiles"]:
        if (profile.model, profile.options, profile.measure) != key:
            continue
        place = row.groups.index(profile.group) if profile.group in row.groups else -1
        cells: list[tuple[str, bool | None, Any]] = [("", None, profile.scores)]
        if row.templates and scores is not None:
            by_template = zip(row.templates, scores[place].tolist(), strict=True)
            cells = [(name, name in row.chosen, values) for name, values in by_template]
        pair_errors = [None] * len(profile.scores) if errors is None else errors[place].tolist()
        for template, chosen, values in cells:
            for pair, value, error in zip(run.manifest.inputs.pairs, values, pair_errors, strict=True):
                score = none_if_nan(value)
                yield ScoreRow(
                    *(*key, template, chosen, profile.group, pair, score),
                    standard_error=none_if_nan(error),
                    evidence="skipped" if score is None else "descriptive",
                )


_RESULTS = (
    *make_columns(_MeasureRowBase),
    Column("template", "template", "The name of the sentence; empty over contexts."),
    Column("chosen", "chosen", "Whether profiles are means over this template and others.", "flag"),
    Column("group", "group", "The social group."),
    Column("pair", "pair", "Two opposite traits, the left one first."),
    *(
        replace(column, get=None)
        for column in make_outcome_columns(
            effect_size="Score: positive towards the right trait, negative towards the left one.",
            standard_error="Standard error over other contexts of the group (CEAT only).",
        )
    ),
)


def _make_interval(label: str, help: str) -> dict[str, tuple[str, str]]:
    return {
        f"ci_{end}": (f"{label}, {end}", f"{help}: {side} end.") for end, side in (("low", "lower"), ("high", "upper"))
    }


_ALTERNATIVES: dict[str, dict[str, tuple[str, str]]] = {
    "annotators": _make_interval("95%, people", "95% interval with other annotators"),
    "groups": _make_interval("95%, groups", "95% interval with other groups"),
    "cells": {
        "p_value": ("p, cells", "The paper's p-value, which treats cells as independent and is nearly always small.")
    },
    "precision": {
        "effect_size": ("P@3", "Precision at 3."),
        **_make_interval("P@3 95%, both", "95% interval as of tau"),
    },
    "precision_annotators": _make_interval("P@3 95%, people", "95% interval with other annotators"),
    "precision_groups": _make_interval("P@3 95%, groups", "95% interval with other groups"),
    "pilot": {"effect_size": ("tau on the pilot", "Tau of the chosen templates on the groups they were chosen on.")},
    "with_pilot": {
        "effect_size": ("tau with pilot", "Tau over all groups, including the pilot's."),
        "p_value": ("p with pilot", "Its p-value, as if cells were independent and templates not chosen."),
    },
    "precision_with_pilot": {"effect_size": ("P@3 with pilot", "P@3 over all groups, including the pilot's.")},
}
_COUNTS = {
    "annotators": ("people", "Number of annotators."),
    "groups": ("groups", "Compared groups: those on which templates were not chosen."),
    "domains": ("domains", "Domains of these groups, the sampling unit of intervals."),
    "cells": ("cells", "These groups by pairs of traits."),
}


def _make_count_column(unit: str, label: str, help: str) -> Column:
    return Column(f"n_{unit}", label, help, "count", lambda result: result.record.outcome.n.get(unit))


_ALIGNMENTS = make_result_columns(
    AgreementResult,
    ("measure", "annotators"),
    *(column for name, fields in _ALTERNATIVES.items() for column in make_alternative_columns(name, **fields)),
    *(_make_count_column(unit, label, help) for unit, (label, help) in _COUNTS.items()),
    effect_size="Kendall's tau over the compared cells.",
    ci_low="Lower end of the 95% interval with other groups and annotators, or other groups only.",
    ci_high="Upper end of this interval.",
    p_value="Share of permutations of ratings among domains and groups whose tau is at least as high.",
    p_adjusted="P-value after Holm's correction over the measures of all models.",
    reason="Why tau is missing.",
)
_TRAITS = make_result_columns(
    GroupTraits,
    ("group",),
    effect_size="Score of the first trait, minus the mean of all groups if there are several.",
    p_value="Empty: traits are described, not tested.",
    p_adjusted="Empty: traits are described, not tested.",
    topic="Domain of the group.",
    reason="Why the group was not measured.",
)
ORDERS = {
    "first": "the group named first",
    "second": "the group named second",
    "reversed": "the pair in the other order",
    "closest": "the closer of its groups",
}
"""Comparisons of a pair, by the end of a column's name."""
_ORDER_COLUMNS = tuple(
    column
    for name, other in ORDERS.items()
    for column in (
        Column(f"tau_{name}", f"tau, {name}", f"Mean tau of a pair with {other}.", "number"),
        Column(f"standard_error_{name}", f"error, {name}", "Its standard error.", "number"),
        Column(f"n_{name}", f"n, {name}", "Number of pairs.", "count"),
    )
)


TABLES = (
    TableSpec("results", "Scores", None, _RESULTS, iter_scores),
    TableSpec("models", "Models", StereotypeModelRow),
    TableSpec("measures", "Measures", MeasureRow),
    TableSpec("profiles", "Profiles of groups", ProfileRow),
    TableSpec(
        "alignments",
        "Agreement with people",
        AgreementResult,
        _ALIGNMENTS,
        rows=lambda run: get_decided(run, "alignments"),
        key=("measure", "annotators"),
    ),
    TableSpec(
        "groups",
        "Traits of groups",
        GroupTraits,
        _TRAITS,
        rows=lambda run: get_decided(run, "groups"),
        key=("group",),
    ),
    TableSpec("group_alignments", "Agreement by group", GroupAlignmentRow),
    TableSpec("orders", "Paired groups and their order", OrderRow, (*make_columns(OrderRow), *_ORDER_COLUMNS)),
    TableSpec("dominance", "Which domain a pair follows", DominanceRow),
    TableSpec("emergent", "Traits that emerge", EmergentRow),
    TableSpec("rated", "Comparison with traits that people name", RatedRow),
    TableSpec("contexts", "Contexts of groups and traits", ContextsRow),
    DECISIONS,
)


_NAMES = {"ilps": "ILPS", "ilps-star": "ILPS*", "set": "SeT", "ceat": "CEAT"}


def format_measure(measure: str) -> str:
    """Return the name of a measure as papers write it."""
    return _NAMES.get(measure, measure)


def split_by_measure(model: RunSlice) -> list[RunSlice]:
    """Return the rows of every measure."""
    return model.each("measures", "measure")


def get_agreement(measure: RunSlice) -> AgreementResult | None:
    """Return the agreement with all people, which comes before that with some of them."""
    return measure.first("alignments")


def find_closest_measure(model: RunSlice) -> RunSlice | None:
    """Return the measure that agrees best with people; the first one on ties or if none has a tau."""
    measures = split_by_measure(model)
    agreements = map(get_agreement, measures)
    taus = [None if agreement is None else agreement.outcome.effect_size for agreement in agreements]
    best = max((tau for tau in taus if tau is not None), default=None)
    return measures[taus.index(best)] if taus else None


def list_group_agreements(measure: RunSlice) -> list[GroupAlignmentRow]:
    """Return the agreement of every group with all people."""
    agreement = get_agreement(measure)
    annotators = None if agreement is None else agreement.annotators
    return [row for row in measure["group_alignments"] if row.annotators == annotators]


def get_pilot_groups(measure: RunSlice) -> frozenset[str]:
    """Return the groups on which templates were chosen."""
    return frozenset(row.group for row in measure["group_alignments"] if row.pilot)


Scores = tuple[float | None, ...]


@dataclass(frozen=True)
class Trait:
    """A trait by which a group stands out.

    Attributes
    ----------
    name, opposite : str
    beyond : float
        Distance of the score from the mean of all groups; never negative.
    score : float
        Score as measured, positive towards `name`.
    human : float or None
        People's rating towards `name`, from 0 to 100.
    """

    name: str
    opposite: str
    beyond: float
    score: float
    human: float | None


def select_singles(measure: RunSlice) -> list[ProfileRow]:
    """Return the profiles of groups that are not paired."""
    return [row for row in measure["profiles"] if not row.parts]


def is_centred(profiles: Sequence[ProfileRow]) -> bool:
    """Return whether several groups have scores, so that they can be compared with each other."""
    return sum(any(_none_if_infinite(score) is not None for score in row.scores) for row in profiles) > 1


def mean_scores(profiles: Sequence[ProfileRow]) -> Scores:
    """Return the mean over groups for every pair; None if no group has a score."""
    by_pair = zip(*(row.scores for row in profiles), strict=True)
    known = [[score for score in map(_none_if_infinite, scores) if score is not None] for scores in by_pair]
    return tuple(math.fsum(scores) / len(scores) if scores else None for scores in known)


def center_scores(profiles: Sequence[ProfileRow]) -> dict[str, Scores]:
    """Subtract the means over groups from the scores of every group, unless there is only one."""
    if not is_centred(profiles):
        return {row.group: tuple(map(_none_if_infinite, row.scores)) for row in profiles}
    means = mean_scores(profiles)
    return {row.group: tuple(map(_subtract, row.scores, means)) for row in profiles}


def _subtract(score: float | None, mean: float | None) -> float | None:
    finite = _none_if_infinite(score)
    return None if finite is None or mean is None else finite - mean


def find_distinctive_traits(profiles: Sequence[ProfileRow], inputs: StereotypeInputsRecord) -> dict[str, list[Trait]]:
    """Find the traits by which every group stands out, strongest first, one per pair."""
    centred = center_scores(profiles)
    return {row.group: _find_traits(row, centred[row.group], inputs) for row in profiles}


def _find_traits(row: ProfileRow, centred: Scores, inputs: StereotypeInputsRecord) -> list[Trait]:
    people = row.human or (None,) * len(centred)
    traits = []
    for pair, beyond, score, human in zip(inputs.pairs, centred, row.scores, people, strict=True):
        if beyond is None or score is None:
            continue
        left, right = inputs.traits[pair]
        rated = None if human is None else 100.0 - human
        traits.append(
            Trait(right, left, beyond, score, human) if beyond >= 0.0 else Trait(left, right, -beyond, -score, rated)
        )
    return sorted(traits, key=lambda trait: -trait.beyond)


def _none_if_infinite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


_MAX_TRAITS = 5


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model for every measure compared with all people, and one for every single group."""
    agreements, groups = (get_decided(run, table) for table in ("alignments", "groups"))
    labels = model_labels(run)
    return [
        *(
            _make_agreement_finding(labels[model_key(result)], result)
            for result in agreements
            if result.annotators == ALL_ANNOTATORS
        ),
        *(_make_group_finding(labels[model_key(result)], result) for result in groups),
    ]


def _make_agreement_finding(label: str, result: Result) -> Finding:
    name = format_measure(result.measure)
    is_tested = None not in (result.effect_size, result.tau_shuffled, result.p_adjusted)
    return make_outcome_finding(
        result,
        label,
        direction=f"{name} agrees better with people's ratings of the same group than of others" if is_tested else "",
        p_values={"groups shuffled": result.p_value, "groups shuffled, corrected": result.p_adjusted},
        notes=(f"tau = {result.tau_shuffled:z.2f} with groups shuffled",) if is_tested else (),
    )


def _make_group_finding(label: str, result: Result) -> Finding:
    return make_outcome_finding(
        result,
        label,
        direction=_describe_traits(result.group, centred=result.centred) if result.traits else "",
        p_values={},
        words=result.traits,
    )


def _describe_traits(group: str, *, centred: bool) -> str:
    return f"traits by which {group} stands out" if centred else f"strongest traits of {group}"


def describe_groups(
    model: RunSlice, inputs: StereotypeInputsRecord, revision: str | None = None
) -> Iterator[GroupTraits]:
    """Yield the traits of every single group, by the measure that agrees best with people or comes first.

    Parameters
    ----------
    model : RunSlice
        Measures, profiles and alignments of one model.
    inputs : StereotypeInputsRecord
    revision : str, optional
        Fingerprint of the model.
    """
    best = find_closest_measure(model)
    profiles = [] if best is None else select_singles(best)
    traits, centred = find_distinctive_traits(profiles, inputs), is_centred(profiles)
    for profile in profiles:
        strongest = traits[profile.group][:_MAX_TRAITS]
        title = f"{_describe_traits(profile.group, centred=centred)}, by {format_measure(profile.measure)}"
        yield GroupTraits(
            model=profile.model,
            options=profile.options,
            model_revision=revision,
            title=title,
            topic=profile.domain,
            claim="descriptive",
            status="measured" if strongest else "skipped",
            reason=None if strongest else _explain_missing(model, profile.group),
            outcome=Outcome(effect_size=strongest[0].beyond if strongest else None, scale="score"),
            group=profile.group,
            by=profile.measure,
            traits=tuple(trait.name for trait in strongest),
            centred=centred,
        )


def _explain_missing(model: RunSlice, group: str) -> str:
    if any(group in row.unknown_groups for row in model["models"]):
        return "words of the group are out of vocabulary"
    if any(group in row.few_groups for row in model["contexts"]):
        return "the group has too few contexts"
    return "no score is defined"
