"""Human judgements matched to the groups that a model is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.errors import StimulusError
from biassay.stimuli.abc import Abc, SocialGroup
from biassay.stimuli.human import read_human
from biassay.stimuli.human_ratings import HumanRatings
from biassay.studies.seeds import seed_of

__all__ = ["Human", "human_of"]

_PILOT_RATINGS = 5


@dataclass(frozen=True, eq=False)
class Human:
    """Judgements of some of the groups.

    Attributes
    ----------
    ratings : HumanRatings
        Of these groups only, in their order.
    places : (g,) int
        The place of every one of them among the groups that were chosen.
    pilot : (g,) bool
        The groups on which templates are chosen.
    pilot_means : (pilot groups, pairs) float64
        Means of a few ratings of each, or of all where the file holds means only.
    subgroups : tuple of (label, HumanRatings)
        The same groups, rated by annotators of one kind.
    notes : tuple of str
        What there is to know about the file.
    """

    ratings: HumanRatings
    places: NDArray[np.intp]
    pilot: NDArray[np.bool_]
    pilot_means: NDArray[np.float64]
    subgroups: tuple[tuple[str, HumanRatings], ...]
    notes: tuple[str, ...]

    @property
    def has_both(self) -> bool:
        """Whether there are groups to choose templates on, and others to be compared with people."""
        return bool(self.pilot.any() and not self.pilot.all())


def human_of(
    abc: Abc, groups: Sequence[SocialGroup], path: Path, annotators: Sequence[tuple[str, str]], seed: int
) -> Human:
    """Read a file of judgements and match it to the groups; cells that are copies of others are left out."""
    read = read_human(path, pairs=[(pair.left, pair.right) for pair in abc.pairs], aliases=abc.trait_aliases)
    read = read.without_copies()
    known = abc.human_groups
    names = [group.name for group in groups]
    there = [name for name in read.groups if name in known and known[name].name in names]
    if not there:
        raise StimulusError(
            f"{path}: holds none of the groups that are asked about; it has {', '.join(read.groups[:10])}. A group is "
            "matched by the names under 'human' in its data"
        )
    ratings = read.of_groups(there)
    pilot = np.array([known[name].pilot for name in there], dtype=bool)
    unmatched = [name for name in read.groups if name not in known]
    notes = [*read.notes, *([f"groups without a match here: {', '.join(unmatched)}"] if unmatched else [])]
    if not ratings.annotators:
        notes.append("the file holds means only: no intervals over annotators, no split halves")
    return Human(
        ratings=ratings,
        places=np.array([names.index(known[name].name) for name in there], dtype=np.intp),
        pilot=pilot,
        pilot_means=_few(ratings, pilot, seed),
        subgroups=tuple((f"{field}={value}", ratings.subgroup(field, value)) for field, value in annotators),
        notes=tuple(notes),
    )


def _few(ratings: HumanRatings, pilot: NDArray[np.bool_], seed: int) -> NDArray[np.float64]:
    """Means of a few raters of every pilot group, drawn at random."""
    if not ratings.annotators:
        return ratings.means[pilot]
    rng = np.random.default_rng(seed_of(seed, "pilot", "annotators"))
    rows = []
    for group in np.flatnonzero(pilot):
        of_group = ratings.ratings[:, group]
        raters = np.flatnonzero(~np.isnan(of_group).all(axis=1))
        few = rng.choice(raters, size=min(_PILOT_RATINGS, len(raters)), replace=False)
        counts = np.count_nonzero(~np.isnan(of_group[few]), axis=0)
        with np.errstate(invalid="ignore"):
            rows.append(np.where(counts > 0, np.nansum(of_group[few], axis=0) / np.maximum(counts, 1), np.nan))
    return np.array(rows).reshape(len(rows), ratings.means.shape[1])
