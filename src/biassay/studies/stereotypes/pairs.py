"""Paired groups under one measure: order (Q1), dominance (Q2), emergence (Q3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.stats.emergence import EmergentSide, emergence, precision_recall
from biassay.stats.intersection import Mean, Paired, dominance, order_effects
from biassay.stimuli.abc import Abc
from biassay.stimuli.rated_pairs import rated_pairs
from biassay.studies.stereotypes.aligning import given, interval
from biassay.studies.stereotypes.questionnaire import Questionnaire, pair_scores_of
from biassay.studies.stereotypes.records import DominanceRow, EmergentRow, OrderRow, RatedRow
from biassay.studies.study import Row

__all__ = ["Crossed", "mean_over"]

_Floats = NDArray[np.float64]
_TOP = 50


@dataclass(frozen=True, eq=False)
class Crossed:
    """Scores of single and paired groups.

    Attributes
    ----------
    who : mapping
        Model, options and measure.
    singles : int
        How many groups of the questionnaire are single; those that follow are pairs.
    scores : (groups, templates, items) float64
        Under the templates that the measure chose.
    """

    who: Mapping[str, str]
    abc: Abc
    sheet: Questionnaire
    singles: int
    scores: _Floats

    def rows(self) -> Iterator[Row]:
        """Rows of all tables about paired groups."""
        pairs = mean_over(pair_scores_of(self.scores, self.sheet.items, len(self.abc.pairs)), axis=1)
        of_pairs, of_traits = (self._paired(scores) for scores in (pairs, mean_over(self.scores, axis=1)))
        order, found = order_effects(of_pairs), emergence(of_traits, top=_TOP)
        means = {"first": order.first, "second": order.second, "reversed": order.reverse, "closest": order.best}
        both = int((of_traits.reverse >= 0).sum()) // 2
        taus = {name: value for own, mean in means.items() for name, value in _mean(own, mean).items()}
        yield Row("orders", OrderRow(**self.who, num_groups=self._pairs, num_both_orders=both, **taus))  # type: ignore[arg-type]
        yield from self._dominance(of_pairs)
        sides = (("more", found.increase), ("less", found.decrease))
        emergent = [self._emergent(side, way, g, t) for way, side in sides for g, t in side.top.tolist()]
        yield from (Row("emergent", row) for row in sorted(emergent, key=lambda e: -e.excess)[:_TOP])
        yield from self._rated(found.increase)

    @property
    def _pairs(self) -> int:
        return len(self.sheet.groups) - self.singles

    def _paired(self, scores: _Floats) -> Paired:
        groups, singles = self.sheet.groups, self.singles
        names = {group.name: place for place, group in enumerate(groups[:singles])}
        parts = [tuple(names[part] for part in group.parts) for group in groups[singles:]]
        places = {pair: place for place, pair in enumerate(parts)}
        domains = list(self.abc.domains)
        return Paired(
            scores[singles:],
            scores[:singles],
            [first for first, _ in parts],
            [second for _, second in parts],
            [places.get((second, first), -1) for first, second in parts],
            [domains.index(group.domain) for group in groups[:singles]],
        )

    def _dominance(self, paired: Paired) -> Iterator[Row]:
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
                tau_a=given(found.tau[row, 0]),
                tau_b=given(found.tau[row, 1]),
                difference=given(found.difference[row]),
                interval=interval(found.interval[row]),
                num_pairs=int(found.n[row]),
                dominates=by_interval,
                dominates_by_margin=by_margin,
            )
            yield Row("dominance", made)

    def _emergent(self, side: EmergentSide, way: str, g: int, t: int) -> EmergentRow:
        group = self.sheet.groups[self.singles + g]
        return EmergentRow(
            **self.who,
            group=group.name,
            parts=group.parts,
            trait=self.sheet.items[t].adjective,
            direction=way,
            excess=float(side.excess[g, t]),
            bound=float(side.bound[g, t]),
            p_value=given(side.p_value[g, t]),
            q_value=given(side.adjusted[g, t]),
            p_value_additive=given(side.p_additive[g, t]),
        )

    def _rated(self, side: EmergentSide) -> Iterator[Row]:
        """What emerges in groups of race and gender, against what people say of them."""
        known = rated_pairs()
        paired = self.sheet.groups[self.singles :]
        places = [place for place, group in enumerate(paired) if frozenset(group.parts) in known.of]
        if not places:
            return
        kinds = [(self.abc.pairs[item.pair].dimension, "high" if item.right else "low") for item in self.sheet.items]
        found = [
            [bool((side.excess[place, [k == cell for k in kinds]] > 0.0).any()) for cell in known.cells]
            for place in places
        ]
        said = [known.of[frozenset(paired[place].parts)] for place in places]
        fit = precision_recall(found, [[cell in cells for cell in known.cells] for cells in said])
        row = RatedRow(
            **self.who,
            source=known.source.name,
            num_groups=len(places),
            precision=given(fit.precision),
            recall=given(fit.recall),
            chance_precision=given(fit.chance_precision),
            chance_recall=given(fit.chance_recall),
            p_value=given(fit.p_value),
        )
        yield Row("rated", row)


def _mean(name: str, mean: Mean) -> dict[str, Any]:
    return {f"tau_{name}": given(mean.value), f"standard_error_{name}": given(mean.standard_error), f"n_{name}": mean.n}


def mean_over(values: _Floats, axis: int) -> _Floats:
    """Over what is not NaN; NaN where nothing is left."""
    n = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.where(n > 0, np.nansum(values, axis=axis) / np.maximum(n, 1), np.nan)
