"""Records of how a measure agrees with people, and people with people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.measures.agreement import Human
from biassay.results.stereotypes import AlignmentRecord, CeilingRecord, GroupAlignment
from biassay.stats.alignment import (
    AlignmentIntervals,
    bootstrap_alignment,
    kendall_alignment,
    noise_ceiling,
    precision_at,
    shuffled_groups,
)
from biassay.stimuli.abc import SocialGroup
from biassay.stimuli.human import HumanRatings
from biassay.studies.seeds import seed_of

__all__ = ["alignments_of", "ceiling_of", "given", "interval"]

_Floats = NDArray[np.float64]


def alignments_of(
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
        num_annotators=int((~np.isnan(ratings.ratings[:, held])).any(axis=(1, 2)).sum()) or None,
        num_groups=int(cells.any(axis=1).sum()),
        num_cells=int(cells.sum()),
        pilot_tau=pilot_tau,
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
        groups=_by_group(names, model, ratings, pilot, spans if people else None),
    )


def _agreement(model: _Floats, human: _Floats) -> tuple[float | None, float | None, float | None]:
    """Overall tau, its p-value, and precision."""
    found = kendall_alignment(model, human)
    return given(found.tau), given(found.p_value), given(precision_at(model, human).overall)


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
            tau=given(found.group_tau[g]),
            p_value=given(found.group_p[g]),
            tau_interval=interval(intervals[g]) if g in intervals else None,
            top=given(precise.top[g]),
            bottom=given(precise.bottom[g]),
            precision=given(precise.mean[g]),
            pilot=bool(pilot[g]),
        )
        for g, name in enumerate(ratings.groups)
    )


def ceiling_of(human: Human, draws: int, seed: int) -> CeilingRecord | None:
    """How well people agree with people; None where no group was rated by two of them.

    Over all groups that were rated, the pilot's included: it is one for all measures, whatever their templates.
    """
    if max(human.ratings.raters, default=0) < 2:
        return None
    found = noise_ceiling(human.ratings.ratings, n=draws, rng=np.random.default_rng(seed_of(seed, "ceiling", "halves")))
    return CeilingRecord(given(found.tau), interval(found.interval))


def given(value: float | np.floating) -> float | None:
    return None if np.isnan(value) else float(value)


def interval(pair: Sequence[float] | _Floats) -> tuple[float, float] | None:
    low, high = float(pair[0]), float(pair[1])
    return None if np.isnan(low) or np.isnan(high) else (low, high)
