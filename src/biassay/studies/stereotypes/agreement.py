"""Match human ratings to groups and measure how well a model agrees with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.abc_model import AbcStimuli, SocialGroup
from biassay.datasets.human_ratings import HumanRatings, read_human_ratings
from biassay.errors import StimulusError
from biassay.results.outcomes import Outcome
from biassay.results.run_data import none_if_nan
from biassay.stats.alignment import (
    alignment_intervals,
    kendall_alignment,
    noise_ceiling,
    permute_groups,
    precision_at,
)
from biassay.studies.stereotypes.results import (
    ALL_ANNOTATORS,
    AgreementResult,
    Ceiling,
    GroupAlignmentRow,
    format_measure,
)
from biassay.studies.study import Row, derive_seed

_PILOT_RATINGS = 5


@dataclass(frozen=True, eq=False)
class HumanJudgements:
    """Human judgements of groups.

    Attributes
    ----------
    ratings : HumanRatings
        Of these groups only, in their order.
    group_indices : (g,) int
        Indices of these groups among the chosen groups.
    pilot : (g,) bool
        Whether templates are chosen on the group.
    pilot_means : (pilot groups, pairs) float64
        Means of a few ratings of each, or of all where the file holds means only.
    subgroups : tuple of (label, HumanRatings)
        The same groups, rated by annotators of one kind.
    notes : tuple of str
        Notes on the file.
    """

    ratings: HumanRatings
    group_indices: NDArray[np.intp]
    pilot: NDArray[np.bool_]
    pilot_means: NDArray[np.float64]
    subgroups: tuple[tuple[str, HumanRatings], ...]
    notes: tuple[str, ...]

    @property
    def has_both(self) -> bool:
        """If True, some groups choose templates and others are compared with people."""
        return bool(self.pilot.any() and not self.pilot.all())


def match_judgements(
    abc: AbcStimuli, groups: Sequence[SocialGroup], path: Path, annotators: Sequence[tuple[str, str]], seed: int
) -> HumanJudgements:
    """Read a file of judgements and match it to the groups, without cells that are copies of others.

    Parameters
    ----------
    abc : AbcStimuli
    groups : sequence of SocialGroup
    path : Path
    annotators : sequence of (field, value)
        Kinds of annotators to compare with as well.
    seed : int
    """
    read = read_human_ratings(path, pairs=[(pair.left, pair.right) for pair in abc.pairs], aliases=abc.trait_aliases)
    read = read.drop_copies()
    known = abc.human_groups
    names = [group.name for group in groups]
    there = [name for name in read.groups if name in known and known[name].name in names]
    if not there:
        raise StimulusError(
            f"{path}: has ratings of none of the chosen groups; it has {', '.join(read.groups[:10])}. A group is "
            "matched by the names under 'human' in its data"
        )
    ratings = read.select_groups(there)
    pilot = np.array([known[name].pilot for name in there], dtype=bool)
    unmatched = [name for name in read.groups if name not in known]
    notes = [*read.notes, *([f"groups without a match here: {', '.join(unmatched)}"] if unmatched else [])]
    if not ratings.annotators:
        notes.append("the file holds means only: no intervals over annotators, no split halves")
    return HumanJudgements(
        ratings=ratings,
        group_indices=np.array([names.index(known[name].name) for name in there], dtype=np.intp),
        pilot=pilot,
        pilot_means=_draw_pilot_means(ratings, pilot, seed),
        subgroups=tuple((f"{field}={value}", ratings.subgroup(field, value)) for field, value in annotators),
        notes=tuple(notes),
    )


def nan_mean(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Compute the mean without NaN; NaN if nothing is left."""
    n = np.count_nonzero(~np.isnan(values), axis=axis)
    return np.where(n > 0, np.nansum(values, axis=axis) / np.maximum(n, 1), np.nan)


def _draw_pilot_means(ratings: HumanRatings, pilot: NDArray[np.bool_], seed: int) -> NDArray[np.float64]:
    """Compute the mean ratings of every pilot group by a few raters, drawn at random."""
    if not ratings.annotators:
        return ratings.means[pilot]
    rng = np.random.default_rng(derive_seed(seed, "pilot", "annotators"))
    rows = []
    for group in np.flatnonzero(pilot):
        raters = np.flatnonzero(~np.isnan(ratings.ratings[:, group]).all(axis=1))
        few = rng.choice(raters, size=min(_PILOT_RATINGS, len(raters)), replace=False)
        rows.append(nan_mean(ratings.ratings[few, group], axis=0))
    return np.array(rows).reshape(len(rows), ratings.means.shape[1])


_Floats = NDArray[np.float64]


def compare_profiles(
    key: Mapping[str, Any],
    groups: Sequence[SocialGroup],
    profiles: _Floats,
    human: HumanJudgements,
    *,
    pilot_tau: float | None = None,
    revision: str | None = None,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> Iterator[Row]:
    """Yield the agreement of profiles with human ratings, over all groups and by group.

    Ratings are of all people, and of people of one kind. The primary outcome leaves out groups on which templates were
    chosen. Domains are the sampling units, because groups of one domain may be alike.

    Parameters
    ----------
    key : dict
        Model, options and measure.
    groups : sequence of SocialGroup
        Groups of the profiles, in order.
    profiles : (groups, pairs) float64
    human : HumanJudgements
    pilot_tau : float, optional
        Tau of the chosen templates on the pilot groups. None if no templates were chosen.
    revision : str, optional
        Fingerprint of the model.
    n_bootstrap, seed : int
    """
    model, pilot = profiles[human.group_indices], human.pilot & (pilot_tau is not None)
    held, names = ~pilot, [groups[index].name for index in human.group_indices]
    domains = np.array([groups[index].domain for index in human.group_indices])[held]
    for label, ratings in ((ALL_ANNOTATORS, human.ratings), *human.subgroups):
        rng = np.random.default_rng(derive_seed(seed, key["measure"], label))
        has_people = bool(ratings.annotators)
        with_pilot = _compute_agreement(model, ratings.means) if pilot.any() else (None, None, None)
        tau, p_cells, precision = _compute_agreement(model[held], ratings.means[held])
        rated = ratings.ratings[:, held] if has_people else ratings.means[None, held]
        cells = ~np.isnan(model[held] + ratings.means[held])
        spans = alignment_intervals(model[held], rated, n=n_bootstrap, rng=rng, domains=domains)
        shuffled, p_shuffled = permute_groups(model[held], ratings.means[held], n=n_bootstrap, rng=rng, domains=domains)
        n_annotators = int((~np.isnan(ratings.ratings[:, held])).any(axis=(1, 2)).sum())
        n = {
            **({"annotators": n_annotators} if n_annotators else {}),
            "groups": int(cells.any(axis=1).sum()),
            "domains": len(np.unique(domains[cells.any(axis=1)])),
            "cells": int(cells.sum()),
        }
        p_value = none_if_nan(p_shuffled)
        both, by_people = (spans.both, spans.annotators) if has_people else (spans.groups, None)
        alternatives = {
            "annotators": _make_outcome(tau, None if by_people is None else by_people.tau),
            "groups": _make_outcome(tau, spans.groups.tau),
            "cells": _make_outcome(tau, p_value=p_cells),
            "pilot": _make_outcome(pilot_tau),
            "with_pilot": _make_outcome(with_pilot[0], p_value=with_pilot[1]),
            "precision": _make_outcome(precision, both.precision, scale="P@3"),
            "precision_annotators": _make_outcome(
                precision, None if by_people is None else by_people.precision, scale="P@3"
            ),
            "precision_groups": _make_outcome(precision, spans.groups.precision, scale="P@3"),
            "precision_with_pilot": _make_outcome(with_pilot[2], scale="P@3"),
        }
        row = AgreementResult(
            **key,
            model_revision=revision,
            title=f"{format_measure(key['measure'])}: agreement with people's ratings of groups",
            topic="people's ratings",
            annotators=label,
            claim="tested" if p_value is not None and label == ALL_ANNOTATORS else "descriptive",
            reason="agreement with people is not defined" if tau is None else None,
            outcome=_make_outcome(tau, both.tau, p_value=p_value, test="permutation, domains and groups", n=n),
            alternatives=alternatives,
            tau_shuffled=none_if_nan(shuffled),
        )
        yield Row("alignments", row)
        intervals = dict(zip(np.flatnonzero(held).tolist(), spans.group_tau, strict=True)) if has_people else {}
        for g, fields in enumerate(_compare_groups(model, ratings)):
            alignment = GroupAlignmentRow(
                **key, annotators=label, group=names[g], pilot=bool(pilot[g]), **make_ends(intervals.get(g)), **fields
            )
            # Templates were chosen on pilot groups, so these have no p-value and no interval.
            yield Row("group_alignments", replace(alignment, p_value=None) if pilot[g] else alignment)


def _compare_groups(model: _Floats, ratings: HumanRatings) -> Iterator[dict[str, Any]]:
    """Yield the agreement of every group, as fields of its row."""
    found, precise = kendall_alignment(model, ratings.means), precision_at(model, ratings.means)
    for g, name in enumerate(ratings.groups):
        yield {
            "human_group": name,
            "effect_size": none_if_nan(found.group_tau[g]),
            "p_value": none_if_nan(found.group_p[g]),
            "top": none_if_nan(precise.top[g]),
            "bottom": none_if_nan(precise.bottom[g]),
            "precision": none_if_nan(precise.mean[g]),
        }


def make_ends(pair: Sequence[float] | _Floats | None) -> dict[str, Any]:
    """Return the ends of an interval as fields of a record; both are None if there is none."""
    low, high = (None if pair is None else to_interval(pair)) or (None, None)
    return {"ci_low": low, "ci_high": high}


def _make_outcome(
    effect_size: float | None, interval: Sequence[float] | _Floats | None = None, *, scale: str = "tau", **fields: Any
) -> Outcome:
    return Outcome(effect_size=effect_size, **make_ends(interval), scale=scale, **fields)


def _compute_agreement(model: _Floats, human: _Floats) -> tuple[float | None, float | None, float | None]:
    """Return the overall tau, its p-value, and precision at 3."""
    found = kendall_alignment(model, human)
    return none_if_nan(found.tau), none_if_nan(found.p_value), none_if_nan(precision_at(model, human).overall)


def compute_ceiling(human: HumanJudgements, n_bootstrap: int, seed: int) -> Ceiling | None:
    """Compute how well people agree with people; None if no group was rated by two of them.

    It is over all rated groups, pilot groups included, and so the same for all measures.

    Parameters
    ----------
    human : HumanJudgements
    n_bootstrap : int
        Number of random halves.
    seed : int
    """
    if max(human.ratings.raters, default=0) < 2:
        return None
    rng = np.random.default_rng(derive_seed(seed, "ceiling", "halves"))
    found = noise_ceiling(human.ratings.ratings, n=n_bootstrap, rng=rng)
    return Ceiling(none_if_nan(found.tau), to_interval(found.interval))


def to_interval(pair: Sequence[float] | _Floats) -> tuple[float, float] | None:
    """Return the ends of an interval; None if one is NaN."""
    low, high = float(pair[0]), float(pair[1])
    return None if np.isnan(low) or np.isnan(high) else (low, high)
