"""Records of stereotypes, made from what was asked and what was answered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Filled
from biassay.errors import UsageError
from biassay.measures.agreement import Human
from biassay.measures.group_ceat import CEAT
from biassay.measures.stereotypes import Questionnaire, pair_scores_of
from biassay.measures.word_associations import Measure, Variant
from biassay.results.making_agreement import alignments_of, given, interval
from biassay.results.stereotypes import (
    DominanceRecord,
    EmergentRecord,
    IntersectionRecord,
    MeanRecord,
    MeasureRecord,
    ProfileRecord,
    RatedRecord,
)
from biassay.stats.alignment import choose_templates
from biassay.stats.emergence import EmergentSide, emergence, precision_recall
from biassay.stats.intersection import Mean, Paired, dominance, order_effects
from biassay.stimuli.abc import Abc, SocialGroup
from biassay.stimuli.rated_pairs import rated_pairs
from biassay.studies.seeds import seed_of

__all__ = ["intersection_of", "measured", "measured_in_contexts"]

_Floats = NDArray[np.float64]
_TOP = 50


def measured(
    abc: Abc,
    sheet: Questionnaire,
    singles: int,
    groups: Sequence[SocialGroup],
    answers: Sequence[Filled],
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
        scores=tuple(tuple(tuple(map(given, row)) for row in scores[i]) for i in shown),
        profiles=_profiles([sheet.groups[i] for i in shown], profiles[shown], human),
        alignments=alignments_of(measure, groups, profiles[rows], human, pilot_tau, draws, seed),
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
        alignments=alignments_of(CEAT, groups, scores, human, None, draws, seed),
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
            scores=tuple(map(given, scores[place])),
            human=tuple(map(given, means[place])) if place in means else None,
        )
        for place, group in enumerate(groups)
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


def intersection_of(
    abc: Abc,
    sheet: Questionnaire,
    singles: int,
    answers: Sequence[Filled],
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
        num_emergent=None,
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
        precision=given(fit.precision),
        recall=given(fit.recall),
        chance_precision=given(fit.chance_precision),
        chance_recall=given(fit.chance_recall),
        p_value=given(fit.p_value),
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
                tau_a=given(found.tau[row, 0]),
                tau_b=given(found.tau[row, 1]),
                difference=given(found.difference[row]),
                interval=interval(found.interval_by_component[row]),
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
        p_value=given(side.p_value[g, t]),
        q_value=given(side.adjusted[g, t]),
        p_value_additive=given(side.p_additive[g, t]),
        q_value_additive=given(side.adjusted_additive[g, t]),
    )


def _mean_of(mean: Mean) -> MeanRecord:
    return MeanRecord(given(mean.value), given(mean.standard_error), mean.n)


def _mean(values: _Floats, axis: int) -> _Floats:
    """Over what is not NaN; NaN where nothing is left."""
    n = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.where(n > 0, np.nansum(values, axis=axis) / np.maximum(n, 1), np.nan)
