"""How a measure agrees with people, and people with people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.stats.alignment import kendall_alignment, precision_at, shuffled_groups
from biassay.stats.alignment_intervals import AlignmentIntervals, alignment_intervals, noise_ceiling
from biassay.stimuli.human_ratings import HumanRatings
from biassay.studies.seeds import seed_of
from biassay.studies.stereotypes.people import Human
from biassay.studies.stereotypes.records import AlignmentRow, Ceiling, GroupAlignmentRow
from biassay.studies.study import Row

__all__ = ["Compared", "ceiling_of", "given", "interval"]

_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Compared:
    """Profiles that are compared with people.

    Attributes
    ----------
    who : mapping
        Model, options and measure.
    groups : list of str
        Names of the groups, in the order of the profiles.
    domains : list of str
        Their domains. Groups of one domain may be alike, so that domains are the sampling units.
    profiles : (groups, pairs) float64
    human : Human
    pilot_tau : float or None
        How well the templates chosen fit on the pilot groups; None: none were chosen.
    """

    who: Mapping[str, str]
    groups: Sequence[str]
    domains: Sequence[str]
    profiles: _Floats
    human: Human
    pilot_tau: float | None

    def rows(self, n_bootstrap: int, seed: int) -> Iterator[Row]:
        """Agreement with all people, and with those of one kind."""
        for label, ratings in (("all", self.human.ratings), *self.human.subgroups):
            rng = np.random.default_rng(seed_of(seed, self.who["measure"], label))
            yield from self._agreement(label, ratings, n_bootstrap, rng)

    def _agreement(self, label: str, ratings: HumanRatings, n: int, rng: np.random.Generator) -> Iterator[Row]:
        """On the groups on which templates were not chosen; beside it with the pilot."""
        model, pilot = self.profiles[self.human.places], self.human.pilot & (self.pilot_tau is not None)
        held, people = ~pilot, bool(ratings.annotators)
        with_pilot = _agreement(model, ratings.means) if pilot.any() else (None, None, None)
        tau, p_value, precision = _agreement(model[held], ratings.means[held])
        rated = ratings.ratings[:, held] if people else ratings.means[None, held]
        domains = np.array(self.domains)[self.human.places][held]
        cells = ~np.isnan(model[held] + ratings.means[held])
        spans = alignment_intervals(model[held], rated, n=n, rng=rng, domains=domains)
        shuffled, p_shuffled = shuffled_groups(model[held], ratings.means[held], n=n, rng=rng, domains=domains)
        found = AlignmentRow(
            **self.who,
            annotators=label,
            num_annotators=int((~np.isnan(ratings.ratings[:, held])).any(axis=(1, 2)).sum()) or None,
            num_groups=int(cells.any(axis=1).sum()),
            num_domains=len(np.unique(domains[cells.any(axis=1)])),
            num_cells=int(cells.sum()),
            pilot_tau=self.pilot_tau,
            tau=tau,
            p_value=p_value,
            tau_shuffled=given(shuffled),
            p_value_shuffled=given(p_shuffled),
            tau_with_pilot=with_pilot[0],
            p_value_with_pilot=with_pilot[1],
            precision=precision,
            precision_with_pilot=with_pilot[2],
            tau_annotators=interval(spans.annotators.tau) if people else None,
            tau_groups=interval(spans.groups.tau),
            tau_both=interval(spans.both.tau) if people else None,
            precision_annotators=interval(spans.annotators.precision) if people else None,
            precision_groups=interval(spans.groups.precision),
            precision_both=interval(spans.both.precision) if people else None,
        )
        yield Row("alignments", found)
        yield from self._by_group(label, ratings, pilot, spans if people else None)

    def _by_group(
        self, label: str, ratings: HumanRatings, pilot: NDArray[np.bool_], spans: AlignmentIntervals | None
    ) -> Iterator[Row]:
        """Every group by itself. Those of the pilot have no p-value and no interval: templates were chosen on them."""
        model = self.profiles[self.human.places]
        found, precise = kendall_alignment(model, ratings.means), precision_at(model, ratings.means)
        intervals = {} if spans is None else dict(zip(np.flatnonzero(~pilot).tolist(), spans.group_tau, strict=True))
        for g, (place, name) in enumerate(zip(self.human.places, ratings.groups, strict=True)):
            row = GroupAlignmentRow(
                **self.who,
                annotators=label,
                group=self.groups[place],
                human_group=name,
                tau=given(found.group_tau[g]),
                p_value=None if pilot[g] else given(found.group_p[g]),
                tau_interval=interval(intervals[g]) if g in intervals else None,
                top=given(precise.top[g]),
                bottom=given(precise.bottom[g]),
                precision=given(precise.mean[g]),
                pilot=bool(pilot[g]),
            )
            yield Row("group_alignments", row)


def _agreement(model: _Floats, human: _Floats) -> tuple[float | None, float | None, float | None]:
    """Overall tau, its p-value, and precision."""
    found = kendall_alignment(model, human)
    return given(found.tau), given(found.p_value), given(precision_at(model, human).overall)


def ceiling_of(human: Human, n_bootstrap: int, seed: int) -> Ceiling | None:
    """How well people agree with people; None where no group was rated by two of them.

    Over all groups that were rated, the pilot's included: it is one for all measures, whatever their templates.
    """
    if max(human.ratings.raters, default=0) < 2:
        return None
    rng = np.random.default_rng(seed_of(seed, "ceiling", "halves"))
    found = noise_ceiling(human.ratings.ratings, n=n_bootstrap, rng=rng)
    return Ceiling(given(found.tau), interval(found.interval))


def given(value: float | np.floating) -> float | None:
    return None if np.isnan(value) else float(value)


def interval(pair: Sequence[float] | _Floats) -> tuple[float, float] | None:
    low, high = float(pair[0]), float(pair[1])
    return None if np.isnan(low) or np.isnan(high) else (low, high)
