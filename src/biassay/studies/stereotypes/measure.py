"""Measure stereotypes by templates, in contexts and for paired groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.datasets.abc_model import AbcStimuli, SocialGroup
from biassay.datasets.human_ratings import load_rated_pairs
from biassay.errors import UsageError, format_examples
from biassay.models.base import BlankScores
from biassay.results.run_data import copy_fields, none_if_nan
from biassay.stats.alignment import choose_templates
from biassay.stats.intersections import (
    PairedGroups,
    dominance,
    emergence,
    order_effects,
    precision_recall,
)
from biassay.studies.stereotypes.agreement import HumanJudgements, compare_profiles, make_ends, nan_mean
from biassay.studies.stereotypes.cloze_items import ClozeItems, score_trait_pairs
from biassay.studies.stereotypes.group_ceat import score_in_contexts
from biassay.studies.stereotypes.ilps import Measure
from biassay.studies.stereotypes.results import (
    ORDERS,
    DominanceRow,
    EmergentRow,
    MeasureRow,
    OrderRow,
    ProfileRow,
    RatedRow,
    StereotypeModelRow,
)
from biassay.studies.stereotypes.settings import CEAT
from biassay.studies.study import Array, Event, Progress, Row, StudyWarning, UnknownWords

if TYPE_CHECKING:
    from biassay.studies.stereotypes.study import StereotypeInputs

_Floats = NDArray[np.float64]
_TOP = 50


def _pair_groups(abc: AbcStimuli, groups: Sequence[SocialGroup], singles: int, scores: _Floats) -> PairedGroups:
    """Match the scores of paired groups with those of their parts. Single groups come first in `groups`."""
    names = {group.name: index for index, group in enumerate(groups[:singles])}
    parts = [tuple(names[part] for part in group.parts) for group in groups[singles:]]
    indices = {pair: index for index, pair in enumerate(parts)}
    domains = list(abc.domains)
    first, second = np.array(parts, dtype=np.intp).reshape(-1, 2).T
    reverse = np.array([indices.get((second, first), -1) for first, second in parts], dtype=np.intp)
    by_group = np.array([domains.index(group.domain) for group in groups[:singles]], dtype=np.intp)
    return PairedGroups(scores[singles:], scores[:singles], first, second, reverse, by_group)


def _measure_pairs(
    key: Mapping[str, Any], abc: AbcStimuli, sheet: ClozeItems, singles: int, scores: _Floats
) -> Iterator[Row]:
    """Yield the rows of all tables about paired groups. `scores` are (groups, templates, items)."""
    by_pair = nan_mean(score_trait_pairs(scores, sheet.items, len(abc.pairs)), axis=1)
    of_pairs = _pair_groups(abc, sheet.groups, singles, by_pair)
    of_traits = _pair_groups(abc, sheet.groups, singles, nan_mean(scores, axis=1))
    order, found = order_effects(of_pairs), emergence(of_traits, top=_TOP)
    taus: dict[str, Any] = {}
    for name, mean in zip(ORDERS, (order.first, order.second, order.reverse, order.best), strict=True):
        taus[f"tau_{name}"], taus[f"n_{name}"] = none_if_nan(mean.value), mean.n
        taus[f"standard_error_{name}"] = none_if_nan(mean.standard_error)
    both = int((of_traits.reverse >= 0).sum()) // 2
    paired = sheet.groups[singles:]
    yield Row("orders", OrderRow(**key, num_groups=len(paired), num_both_orders=both, **taus))
    yield from _measure_dominance(key, list(abc.domains), of_pairs)
    emergent = [
        EmergentRow(
            **key,
            group=paired[g].name,
            parts=paired[g].parts,
            trait=sheet.items[t].adjective,
            direction=direction,
            effect_size=float(side.excess[g, t]),
            bound=float(side.bound[g, t]),
            p_value=none_if_nan(side.p_value[g, t]),
            p_adjusted=none_if_nan(side.adjusted[g, t]),
            additive_p_value=none_if_nan(side.p_additive[g, t]),
        )
        for direction, side in (("more", found.increase), ("less", found.decrease))
        for g, t in side.top.tolist()
    ]
    yield from (Row("emergent", row) for row in sorted(emergent, key=lambda row: -row.effect_size)[:_TOP])
    kinds = [(abc.pairs[item.pair].dimension, "high" if item.right else "low") for item in sheet.items]
    yield from _compare_rated(key, paired, kinds, found.increase.excess)


def _measure_dominance(key: Mapping[str, Any], domains: Sequence[str], paired: PairedGroups) -> Iterator[Row]:
    found = dominance(paired)
    for row, (a, b) in enumerate(found.domains.tolist()):
        by_interval, by_margin = (
            domains[a] if table[a, b] else domains[b] if table[b, a] else None
            for table in (found.dominates, found.reaches_margin)
        )
        made = DominanceRow(
            **key,
            domain_a=domains[a],
            domain_b=domains[b],
            tau_a=none_if_nan(found.tau[row, 0]),
            tau_b=none_if_nan(found.tau[row, 1]),
            effect_size=none_if_nan(found.difference[row]),
            **make_ends(found.interval[row]),
            num_pairs=int(found.n[row]),
            dominates=by_interval,
            dominates_by_margin=by_margin,
        )
        yield Row("dominance", made)


def _compare_rated(
    key: Mapping[str, Any], paired: Sequence[SocialGroup], kinds: Sequence[tuple[str, str]], excess: _Floats
) -> Iterator[Row]:
    """Compare emergent traits of groups of race and gender with those that people name."""
    known = load_rated_pairs()
    cells = {i: known.cells_by_groups.get(frozenset(group.parts)) for i, group in enumerate(paired)}
    said = {index: own for index, own in cells.items() if own is not None}
    if not said:
        return
    found = [
        [bool((excess[index, [kind == cell for kind in kinds]] > 0.0).any()) for cell in known.cells] for index in said
    ]
    fit = precision_recall(found, [[cell in own for cell in known.cells] for own in said.values()])
    names = ("precision", "recall", "chance_precision", "chance_recall", "p_value")
    rates: dict[str, Any] = {name: none_if_nan(getattr(fit, name)) for name in names}
    yield Row("rated", RatedRow(**key, source=known.source.name, num_groups=len(said), **rates))


def measure_templates(inputs: StereotypeInputs, model: ModelOutputs) -> Iterator[Event]:
    """Measure a model by the traits that it fills into blanks. Without template measures, yield only the model."""
    if not inputs.settings.template_measures:
        who = model.identity.name, model.identity.options
        yield Row("models", StereotypeModelRow(*who, "encoder", "none", (), (), (), 0, 0, 0))
        return
    sheet = inputs.sheet(model.capabilities)
    answers = model.blanks(sheet.blanks)
    if inputs.prior(model.capabilities) != inputs.settings.prior:
        yield StudyWarning("a causal model has no mask, so groups are compared with people in general")
    unknown = sheet.unknown(answers)
    adjectives = sum(item.adjective not in unknown for item in sheet.items)
    row = StereotypeModelRow(
        model=model.identity.name,
        options=model.identity.options,
        kind=model.capabilities.kind or "masked",
        prior=inputs.prior(model.capabilities),
        skipped_templates=sheet.skipped,
        unknown_adjectives=unknown,
        unknown_groups=sheet.unknown_groups(answers),
        num_questions=len(sheet.blanks),
        num_passes=sum(scores.passes for scores in answers),
        num_asked=(len(sheet.groups) + 1) * len(sheet.templates) * adjectives,
    )
    yield Row("models", row)
    yield UnknownWords((*row.unknown_adjectives, *row.unknown_groups))
    if row.unknown_groups:
        yield StudyWarning(
            f"words of these groups are out of vocabulary, so they are skipped: {format_examples(row.unknown_groups)}"
        )
    measures = inputs.settings.template_measures
    for number, measure in enumerate(measures, start=1):
        yield from _measure_one(inputs, model, sheet, answers, measure)
        yield Progress("measures", number, len(measures))


def _measure_one(
    inputs: StereotypeInputs, model: ModelOutputs, sheet: ClozeItems, answers: Sequence[BlankScores], measure: Measure
) -> Iterator[Event]:
    """Yield scores and profiles of all groups, agreement with people, and paired groups by one measure."""
    by_item = sheet.scores(answers, measure, inputs.settings.variant)
    scores = score_trait_pairs(by_item, sheet.items, len(inputs.abc.pairs))
    names, singles = [group.name for group in sheet.groups], len(inputs.singles)
    rows = [names.index(group.name) for group in inputs.groups]
    templates = tuple(template.name for template in sheet.templates)
    chosen, pilot_tau = choose_best_templates(scores[rows], templates, inputs.human)
    profiles = nan_mean(scores[:, chosen], axis=1)
    shown = [*rows, *range(singles, len(sheet.groups))]
    who = _make_key_fields(model, measure)
    row = MeasureRow(
        **who,
        groups=tuple(names[i] for i in shown),
        templates=templates,
        chosen=tuple(templates[i] for i in chosen),
        undefined=int(np.isnan(by_item).sum()),
    )
    yield Row("measures", row)
    yield Array(f"{measure}/scores", scores[shown])
    yield from _make_profiles(inputs, model, who, [sheet.groups[i] for i in shown], profiles[shown], pilot_tau)
    if inputs.settings.intersections:
        yield from _measure_pairs(who, inputs.abc, sheet, singles, by_item[:, chosen])


def measure_contexts(inputs: StereotypeInputs, model: ModelOutputs) -> Iterator[Event]:
    """Measure groups in contexts (CEAT), without templates."""
    contexts = inputs.contexts
    if contexts is None:
        return
    scores, standard_errors, row = score_in_contexts(contexts, model)
    who, names = _make_key_fields(model, CEAT), tuple(group.name for group in inputs.groups)
    undefined = int(np.isnan(scores).sum())
    yield Row("measures", MeasureRow(**who, groups=names, templates=(), chosen=(), undefined=undefined))
    yield Row("contexts", row)
    yield Array(f"{CEAT}/standard_errors", standard_errors)
    yield from _make_profiles(inputs, model, who, inputs.groups, scores, None)


def _make_key_fields(model: ModelOutputs, measure: str) -> dict[str, str]:
    return {"model": model.identity.name, "options": model.identity.options, "measure": measure}


def _make_profiles(
    inputs: StereotypeInputs,
    model: ModelOutputs,
    who: dict[str, str],
    groups: Sequence[SocialGroup],
    scores: _Floats,
    pilot_tau: float | None,
) -> Iterator[Row]:
    """Yield the profiles of all groups, and the agreement of the run's own groups with people."""
    human = inputs.human
    means = {} if human is None else dict(zip(human.group_indices.tolist(), human.ratings.means, strict=True))
    for index, group in enumerate(groups):
        row = ProfileRow(
            **who,
            group=group.name,
            domain=group.domain,
            parts=group.parts,
            scores=tuple(map(none_if_nan, scores[index])),
            human=tuple(map(none_if_nan, means[index])) if index in means else None,
        )
        yield Row("profiles", row)
    if human is not None:
        given = copy_fields(inputs.settings, "n_bootstrap", "seed")
        own = scores[: len(inputs.groups)]
        yield from compare_profiles(
            who, inputs.groups, own, human, pilot_tau=pilot_tau, revision=model.identity.revision, **given
        )


def choose_best_templates(
    scores: _Floats, templates: Sequence[str], human: HumanJudgements | None
) -> tuple[list[int], float | None]:
    """Choose the templates that agree best with a few people on the pilot groups, and return their tau.

    Return all templates and None if there is nothing to choose from, or no group besides the pilot.

    Parameters
    ----------
    scores : (groups, templates, pairs) float64
    templates : sequence of str
    human : HumanJudgements or None
    """
    everything = list(range(len(templates)))
    if human is None or len(templates) < 2 or not human.has_both:
        return everything, None
    try:
        choice = choose_templates(
            scores[human.group_indices[human.pilot]].transpose(1, 0, 2), human.pilot_means, templates
        )
    except UsageError:  # no template has all scores of the pilot, or none that differ
        return everything, None
    return list(choice.indices), choice.tau
