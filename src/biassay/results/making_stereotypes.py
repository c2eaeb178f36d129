"""Records of stereotypes, made from what was asked and what was answered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.measures.agreement import Human
from biassay.measures.group_ceat import CEAT
from biassay.measures.seeds import seed_of
from biassay.measures.stereotypes import Questionnaire, pair_scores_of
from biassay.measures.word_associations import Measure, Variant
from biassay.results.stereotypes import (
    AlignmentRecord,
    CeilingRecord,
    DominanceRecord,
    EmergentRecord,
    GroupAlignment,
    IntersectionRecord,
    MeanRecord,
    MeasureRecord,
    ProfileRecord,
    RatedRecord,
)
from biassay.stats.alignment import (
    AlignmentIntervals,
    bootstrap_alignment,
    choose_templates,
    kendall_alignment,
    noise_ceiling,
    precision_at,
    shuffled_groups,
)
from biassay.stats.emergence import EmergentSide, emergence, precision_recall
from biassay.stats.intersection import Mean, Paired, dominance, order_effects
from biassay.stimuli.abc import Abc, SocialGroup
from biassay.stimuli.human import HumanRatings
from biassay.stimuli.rated_pairs import rated_pairs

__all__ = ["ceiling_of", "intersection_of", "measured", "measured_in_contexts"]

_Floats = NDArray[np.float64]
_TOP = 50


def measured(
    abc: Abc,
    sheet: Questionnaire,
    singles: int,
    groups: Sequence[SocialGroup],
    answers: NDArray[np.floating],
    measure: Measure,
    variant: Variant,
    human: Human | None,
    draws: int,
    seed: int,
) -> MeasureRecord:
    """One measure of one model: scores of all groups, profiles, and agreement with people."""
    by_item = sheet.scores(answers, measure, variant).scores
    scores = pair_scores_of(by_item, sheet.items, len(abc.pairs))
    names = [group.name for group in sheet.groups[:singles]]
    rows = [names.index(group.name) for group in groups]
    templates = tuple(template.name for template in sheet.templates)
    chosen, pilot_tau = _chosen(scores[rows], templates, human)
    profiles = _mean(scores[:, chosen], axis=1)
    shown = [*rows, *range(singles, len(sheet.groups))]
    return MeasureRecord(
        measure=measure,
        templates=templates,
        chosen=tuple(templates[i] for i in chosen),
        scores=tuple(tuple(tuple(map(_given, row)) for row in scores[i]) for i in shown),
        profiles=_profiles([sheet.groups[i] for i in shown], profiles[shown], human),
        alignments=_alignments(measure, groups, profiles[rows], human, pilot_tau, draws, seed),
        undefined=int(np.isnan(by_item).sum()),
    )


def measured_in_contexts(
    groups: Sequence[SocialGroup], scores: _Floats, human: Human | None, draws: int, seed: int
) -> MeasureRecord:
    """Group CEAT of one model, from its scores (groups, pairs): no templates, so none to choose on a pilot."""
    return MeasureRecord(
        measure=CEAT,
        templates=(),
        chosen=(),
        scores=((),) * len(groups),
        profiles=_profiles(groups, scores, human),
        alignments=_alignments(CEAT, groups, scores, human, None, draws, seed),
        undefined=int(np.isnan(scores).sum()),
    )


def _profiles(groups: Sequence[SocialGroup], scores: _Floats, human: Human | None) -> tuple[ProfileRecord, ...]:
    """Records of the groups' scores (groups, pairs), those that people may have judged first."""
    means = {} if human is None else dict(zip(human.places.tolist(), human.ratings.means, strict=True))
    return tuple(
        ProfileRecord(
            group=group.name,
            domain=group.domain,
            parts=group.parts,
            scores=tuple(map(_given, scores[place])),
            human=tuple(map(_given, means[place])) if place in means else None,
        )
        for place, group in enumerate(groups)
    )


def _alignments(
    measure: str,
    groups: Sequence[SocialGroup],
    scores: _Floats,
    human: Human | None,
    pilot_tau: float | None,
    draws: int,
    seed: int,
) -> tuple[AlignmentRecord, ...]:
    """With all people, and with those of one kind."""
    if human is None:
        return ()
    named = [groups[place].name for place in human.places]
    return tuple(
        _alignment(
            *(label, named, scores, ratings, human, pilot_tau, draws),
            np.random.default_rng(seed_of(seed, measure, label)),
        )
        for label, ratings in (("all", human.ratings), *human.subgroups)
    )


def _chosen(scores: _Floats, templates: Sequence[str], human: Human | None) -> tuple[list[int], float | None]:
    """The templates that agree best with a few people on the pilot groups, and how well.

    All of them, and None, where there is nothing to choose from, or no group beside the pilot to be compared then.
    """
    everything = list(range(len(templates)))
    if human is None or len(templates) < 2 or not human.has_both:
        return everything, None
    try:
        choice = choose_templates(scores[human.places[human.pilot]].transpose(1, 0, 2), human.pilot_means, templates)
    except UsageError:  # no template has all scores of the pilot, or none that differ
        return everything, None
    return list(choice.places), choice.tau


def _alignment(
    label: str,
    names: Sequence[str],
    profiles: _Floats,
    ratings: HumanRatings,
    human: Human,
    pilot_tau: float | None,
    draws: int,
    rng: np.random.Generator,
) -> AlignmentRecord:
    """On the groups on which templates were not chosen; beside it with the pilot."""
    model, pilot = profiles[human.places], human.pilot & (pilot_tau is not None)
    held, people = ~pilot, bool(ratings.annotators)
    with_pilot = _agreement(model, ratings.means) if pilot.any() else (None, None, None)
    tau, p_value, precision = _agreement(model[held], ratings.means[held])
    rated = ratings.ratings[:, held] if people else ratings.means[None, held]
    spans = bootstrap_alignment(model[held], rated, n=draws, rng=rng)
    shuffled, p_shuffled = shuffled_groups(model[held], ratings.means[held], n=draws, rng=rng)
    cells = ~np.isnan(model[held] + ratings.means[held])
    return AlignmentRecord(
        annotators=label,
        num_annotators=int((~np.isnan(ratings.ratings)).any(axis=(1, 2)).sum()) or None,
        num_groups=int(cells.any(axis=1).sum()),
        num_cells=int(cells.sum()),
        pilot_tau=pilot_tau,
        tau=tau,
        p_value=p_value,
        tau_shuffled=_given(shuffled),
        p_value_shuffled=_given(p_shuffled),
        tau_with_pilot=with_pilot[0],
        p_value_with_pilot=with_pilot[1],
        precision=precision,
        precision_with_pilot=with_pilot[2],
        tau_annotators=_interval(spans.annotators.tau) if people else None,
        tau_groups=_interval(spans.groups.tau),
        tau_both=_interval(spans.both.tau) if people else None,
        precision_annotators=_interval(spans.annotators.precision) if people else None,
        precision_groups=_interval(spans.groups.precision),
        precision_both=_interval(spans.both.precision) if people else None,
        groups=_by_group(names, model, ratings, pilot, spans if people else None),
    )


def _agreement(model: _Floats, human: _Floats) -> tuple[float | None, float | None, float | None]:
    """Overall tau, its p-value, and precision."""
    found = kendall_alignment(model, human)
    return _given(found.tau), _given(found.p_value), _given(precision_at(model, human).overall)


def _by_group(
    names: Sequence[str],
    model: _Floats,
    ratings: HumanRatings,
    pilot: NDArray[np.bool_],
    spans: AlignmentIntervals | None,
) -> tuple[GroupAlignment, ...]:
    """Every group by itself. Those of the pilot have no interval, which would not know of the choice of templates."""
    found, precise = kendall_alignment(model, ratings.means), precision_at(model, ratings.means)
    intervals = {} if spans is None else dict(zip(np.flatnonzero(~pilot).tolist(), spans.group_tau, strict=True))
    return tuple(
        GroupAlignment(
            group=names[g],
            human_group=name,
            tau=_given(found.group_tau[g]),
            p_value=_given(found.group_p[g]),
            tau_interval=_interval(intervals[g]) if g in intervals else None,
            top=_given(precise.top[g]),
            bottom=_given(precise.bottom[g]),
            precision=_given(precise.mean[g]),
            pilot=bool(pilot[g]),
        )
        for g, name in enumerate(ratings.groups)
    )


def ceiling_of(human: Human, draws: int, seed: int) -> CeilingRecord | None:
    """How well people agree with people; None where no group was rated by two of them."""
    if max(human.ratings.raters, default=0) < 2:
        return None
    found = noise_ceiling(human.ratings.ratings, n=draws, rng=np.random.default_rng(seed_of(seed, "ceiling", "halves")))
    return CeilingRecord(_given(found.tau), _interval(found.interval))


def intersection_of(
    abc: Abc,
    sheet: Questionnaire,
    singles: int,
    answers: NDArray[np.floating],
    record: MeasureRecord,
    variant: Variant,
    seed: int,
) -> IntersectionRecord:
    """Order, dominance and emergence of paired groups, under the templates that the measure chose."""
    measure: Measure = record.measure  # type: ignore[assignment]
    by_item = sheet.scores(answers, measure, variant).scores
    chosen = [record.templates.index(name) for name in record.chosen]
    traits = _mean(by_item[:, chosen], axis=1)
    pairs = _mean(pair_scores_of(by_item, sheet.items, len(abc.pairs))[:, chosen], axis=1)
    of_pairs, of_traits = (_paired(abc, sheet.groups, singles, scores) for scores in (pairs, traits))
    order = order_effects(of_pairs)
    found = emergence(of_traits, top=_TOP)
    sides = (("more", found.increase), ("less", found.decrease))
    emergent = [_emergent(sheet, singles, side, way, g, t) for way, side in sides for g, t in side.top.tolist()]
    once = of_traits.reverse < np.arange(len(of_traits.reverse))  # of a pair in both orders the second
    significant = sum(int((side.adjusted_additive[once] <= 0.05).sum()) for _, side in sides)
    return IntersectionRecord(
        measure=record.measure,
        num_groups=len(sheet.groups) - singles,
        tau_first=_mean_of(order.first),
        tau_second=_mean_of(order.second),
        tau_reversed=_mean_of(order.reverse),
        tau_closest=_mean_of(order.best),
        dominance=_dominance(abc, of_pairs, np.random.default_rng(seed_of(seed, measure, "dominance"))),
        emergent=tuple(sorted(emergent, key=lambda e: -e.excess)[:_TOP]),
        num_both_orders=int((of_traits.reverse >= 0).sum()) // 2,
        num_emergent=significant,
        rated=_rated(abc, sheet, singles, found.increase),
    )


def _rated(abc: Abc, sheet: Questionnaire, singles: int, side: EmergentSide) -> RatedRecord | None:
    """What emerges in groups of race and gender, against what people say of them."""
    known = rated_pairs()
    places = [place for place, group in enumerate(sheet.groups[singles:]) if frozenset(group.parts) in known.of]
    if not places:
        return None
    kinds = [(abc.pairs[item.pair].dimension, "high" if item.right else "low") for item in sheet.items]
    found = [
        [bool((side.excess[place, [k == cell for k in kinds]] > 0.0).any()) for cell in known.cells] for place in places
    ]
    said = [known.of[frozenset(sheet.groups[singles + place].parts)] for place in places]
    fit = precision_recall(found, [[cell in cells for cell in known.cells] for cells in said])
    return RatedRecord(
        source=known.source.name,
        num_groups=len(places),
        precision=_given(fit.precision),
        recall=_given(fit.recall),
        chance_precision=_given(fit.chance_precision),
        chance_recall=_given(fit.chance_recall),
        p_value=_given(fit.p_value),
    )


def _paired(abc: Abc, groups: Sequence[SocialGroup], singles: int, scores: _Floats) -> Paired:
    names = {group.name: place for place, group in enumerate(groups[:singles])}
    parts = [tuple(names[part] for part in group.parts) for group in groups[singles:]]
    places = {pair: place for place, pair in enumerate(parts)}
    domains = list(abc.domains)
    return Paired(
        scores[singles:],
        scores[:singles],
        [first for first, _ in parts],
        [second for _, second in parts],
        [places.get((second, first), -1) for first, second in parts],
        [domains.index(group.domain) for group in groups[:singles]],
    )


def _dominance(abc: Abc, paired: Paired, rng: np.random.Generator) -> tuple[DominanceRecord, ...]:
    domains = list(abc.domains)
    found = dominance(paired, n=1000, rng=rng)
    records = []
    for row, (a, b) in enumerate(found.domains.tolist()):
        stronger = domains[a] if found.dominates[a, b] else domains[b] if found.dominates[b, a] else None
        records.append(
            DominanceRecord(
                domain_a=domains[a],
                domain_b=domains[b],
                tau_a=_given(found.tau[row, 0]),
                tau_b=_given(found.tau[row, 1]),
                difference=_given(found.difference[row]),
                interval=_interval(found.interval_by_component[row]),
                num_pairs=int(found.n[row]),
                dominates=stronger,
            )
        )
    return tuple(records)


def _emergent(sheet: Questionnaire, singles: int, side: EmergentSide, way: str, g: int, t: int) -> EmergentRecord:
    group = sheet.groups[singles + g]
    return EmergentRecord(
        group=group.name,
        parts=group.parts,
        trait=sheet.items[t].adjective,
        direction=way,
        excess=float(side.excess[g, t]),
        bound=float(side.bound[g, t]),
        p_value=_given(side.p_value[g, t]),
        q_value=_given(side.adjusted[g, t]),
        p_value_additive=_given(side.p_additive[g, t]),
        q_value_additive=_given(side.adjusted_additive[g, t]),
    )


def _mean_of(mean: Mean) -> MeanRecord:
    return MeanRecord(_given(mean.value), _given(mean.standard_error), mean.n)


def _mean(values: _Floats, axis: int) -> _Floats:
    """Over what is not NaN; NaN where nothing is left."""
    n = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.where(n > 0, np.nansum(values, axis=axis) / np.maximum(n, 1), np.nan)


def _given(value: float | np.floating) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(pair: Sequence[float] | _Floats) -> tuple[float, float] | None:
    low, high = float(pair[0]), float(pair[1])
    return None if np.isnan(low) or np.isnan(high) else (low, high)
