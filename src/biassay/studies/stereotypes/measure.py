"""Measure stereotypes by templates, in contexts and for paired groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.datasets.abc_model import AbcStimuli, SocialGroup
from biassay.datasets.human_ratings import load_rated_pairs
from biassay.errors import UsageError, format_examples
from biassay.models.base import BlankScores
from biassay.results.run_data import none_if_nan
from biassay.stats.alignment import choose_templates
from biassay.stats.intersections import (
    EmergentTraits,
    PairedGroups,
    PairMean,
    dominance,
    emergence,
    order_effects,
    precision_recall,
)
from biassay.studies.stereotypes.agreement import HumanJudgements, ProfileComparison, make_ends
from biassay.studies.stereotypes.cloze_items import ClozeItems, score_trait_pairs
from biassay.studies.stereotypes.group_ceat import GroupContexts, score_in_contexts
from biassay.studies.stereotypes.ilps import Measure
from biassay.studies.stereotypes.results import (
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


@dataclass(frozen=True, eq=False)
class IntersectionScores:
    """Scores of single and paired groups.

    Attributes
    ----------
    who : mapping
        Model, options and measure.
    singles : int
        Number of single groups; the groups that follow are pairs.
    scores : (groups, templates, items) float64
        Scores under the chosen templates.
    """

    who: Mapping[str, Any]
    abc: AbcStimuli
    sheet: ClozeItems
    singles: int
    scores: _Floats

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all tables about paired groups."""
        pairs = nan_mean(score_trait_pairs(self.scores, self.sheet.items, len(self.abc.pairs)), axis=1)
        of_pairs, of_traits = (self._paired(scores) for scores in (pairs, nan_mean(self.scores, axis=1)))
        order, found = order_effects(of_pairs), emergence(of_traits, top=_TOP)
        means = {"first": order.first, "second": order.second, "reversed": order.reverse, "closest": order.best}
        both = int((of_traits.reverse >= 0).sum()) // 2
        taus = {name: value for own, mean in means.items() for name, value in _make_mean_fields(own, mean).items()}
        yield Row("orders", OrderRow(**self.who, num_groups=self._pairs, num_both_orders=both, **taus))
        yield from self._dominance(of_pairs)
        sides = (("more", found.increase), ("less", found.decrease))
        emergent = [self._emergent(side, way, g, t) for way, side in sides for g, t in side.top.tolist()]
        yield from (Row("emergent", row) for row in sorted(emergent, key=lambda e: -e.effect_size)[:_TOP])
        yield from self._rated(found.increase)

    @property
    def _pairs(self) -> int:
        return len(self.sheet.groups) - self.singles

    def _paired(self, scores: _Floats) -> PairedGroups:
        groups, singles = self.sheet.groups, self.singles
        names = {group.name: index for index, group in enumerate(groups[:singles])}
        parts = [tuple(names[part] for part in group.parts) for group in groups[singles:]]
        indices = {pair: index for index, pair in enumerate(parts)}
        domains = list(self.abc.domains)
        first, second = np.array(parts, dtype=np.intp).reshape(-1, 2).T
        reverse = np.array([indices.get((second, first), -1) for first, second in parts], dtype=np.intp)
        by_group = np.array([domains.index(group.domain) for group in groups[:singles]], dtype=np.intp)
        return PairedGroups(scores[singles:], scores[:singles], first, second, reverse, by_group)

    def _dominance(self, paired: PairedGroups) -> Iterator[Row]:
        domains = list(self.abc.domains)
        found = dominance(paired)
        for row, (a, b) in enumerate(found.domains.tolist()):
            by_interval, by_margin = (
                domains[a] if table[a, b] else domains[b] if table[b, a] else None
                for table in (found.dominates, found.reaches_margin)
            )
            made = DominanceRow(
                **self.who,
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

    def _emergent(self, side: EmergentTraits, way: str, g: int, t: int) -> EmergentRow:
        group = self.sheet.groups[self.singles + g]
        return EmergentRow(
            **self.who,
            group=group.name,
            parts=group.parts,
            trait=self.sheet.items[t].adjective,
            direction=way,
            effect_size=float(side.excess[g, t]),
            bound=float(side.bound[g, t]),
            p_value=none_if_nan(side.p_value[g, t]),
            p_adjusted=none_if_nan(side.adjusted[g, t]),
            additive_p_value=none_if_nan(side.p_additive[g, t]),
        )

    def _rated(self, side: EmergentTraits) -> Iterator[Row]:
        """Compare emergent traits of groups of race and gender with those that people name."""
        known = load_rated_pairs()
        paired = self.sheet.groups[self.singles :]
        indices = [index for index, group in enumerate(paired) if frozenset(group.parts) in known.cells_by_groups]
        if not indices:
            return
        kinds = [(self.abc.pairs[item.pair].dimension, "high" if item.right else "low") for item in self.sheet.items]
        found = [
            [bool((side.excess[index, [k == cell for k in kinds]] > 0.0).any()) for cell in known.cells]
            for index in indices
        ]
        said = [known.cells_by_groups[frozenset(paired[index].parts)] for index in indices]
        fit = precision_recall(found, [[cell in cells for cell in known.cells] for cells in said])
        row = RatedRow(
            **self.who,
            source=known.source.name,
            num_groups=len(indices),
            precision=none_if_nan(fit.precision),
            recall=none_if_nan(fit.recall),
            chance_precision=none_if_nan(fit.chance_precision),
            chance_recall=none_if_nan(fit.chance_recall),
            p_value=none_if_nan(fit.p_value),
        )
        yield Row("rated", row)


def _make_mean_fields(name: str, mean: PairMean) -> dict[str, Any]:
    return {
        f"tau_{name}": none_if_nan(mean.value),
        f"standard_error_{name}": none_if_nan(mean.standard_error),
        f"n_{name}": mean.n,
    }


def nan_mean(values: _Floats, axis: int) -> _Floats:
    """Compute the mean without NaN; NaN if nothing is left."""
    n = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.where(n > 0, np.nansum(values, axis=axis) / np.maximum(n, 1), np.nan)


def measure_templates(inputs: StereotypeInputs, model: ModelOutputs) -> Iterator[Event]:
    """Measure a model by the traits that it fills into blanks."""
    sheet = inputs.sheet(model.capabilities)
    answers = model.blanks(sheet.blanks)
    if inputs.prior(model.capabilities) != inputs.settings.prior:
        yield StudyWarning("a causal model has no mask, so groups are compared with people in general")
    row = _make_model_row(inputs, model, sheet, answers)
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


def _make_model_row(
    inputs: StereotypeInputs, model: ModelOutputs, sheet: ClozeItems, answers: Sequence[BlankScores]
) -> StereotypeModelRow:
    unknown = sheet.unknown(answers)
    adjectives = sum(item.adjective not in unknown for item in sheet.items)
    return StereotypeModelRow(
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


def make_empty_model_row(model: ModelOutputs) -> StereotypeModelRow:
    """Return the row of a model without blanks: CEAT needs only an encoder of words."""
    return StereotypeModelRow(model.identity.name, model.identity.options, "encoder", "none", (), (), (), 0, 0, 0)


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
    yield from _make_profiles(who, [sheet.groups[i] for i in shown], profiles[shown], inputs.human)
    if inputs.human is not None:
        compared = ProfileComparison(
            who, row.groups, inputs.domains, profiles[rows], inputs.human, pilot_tau, model.identity.revision
        )
        yield from compared.rows(inputs.settings.n_bootstrap, inputs.settings.seed)
    if inputs.settings.intersections:
        yield from IntersectionScores(who, inputs.abc, sheet, singles, by_item[:, chosen]).rows()


def measure_contexts(inputs: StereotypeInputs, contexts: GroupContexts, model: ModelOutputs) -> Iterator[Event]:
    """Measure groups in contexts (CEAT), without templates.

    Parameters
    ----------
    inputs : StereotypeInputs
    contexts : GroupContexts
    model : ModelOutputs
    """
    found = score_in_contexts(contexts, model)
    who, names = _make_key_fields(model, CEAT), tuple(group.name for group in inputs.groups)
    undefined = int(np.isnan(found.scores).sum())
    yield Row("measures", MeasureRow(**who, groups=names, templates=(), chosen=(), undefined=undefined))
    yield Row("contexts", found.row)
    yield Array(f"{CEAT}/standard_errors", found.standard_errors)
    yield from _make_profiles(who, inputs.groups, found.scores, inputs.human)
    if inputs.human is not None:
        compared = ProfileComparison(
            who, names, inputs.domains, found.scores, inputs.human, None, model.identity.revision
        )
        yield from compared.rows(inputs.settings.n_bootstrap, inputs.settings.seed)


def _make_key_fields(model: ModelOutputs, measure: str) -> dict[str, str]:
    return {"model": model.identity.name, "options": model.identity.options, "measure": measure}


def _make_profiles(
    who: dict[str, str], groups: Sequence[SocialGroup], scores: _Floats, human: HumanJudgements | None
) -> Iterator[Row]:
    """Yield the profiles of groups, with people's mean ratings."""
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
