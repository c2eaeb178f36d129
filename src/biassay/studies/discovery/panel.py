"""The names of groups as one model knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.errors import RefusedError
from biassay.models.base import Encoded
from biassay.stats.association import unit_rows
from biassay.stats.detection import Sides, pair_scores
from biassay.stimuli.groups import Group, Grouping

__all__ = ["Panel", "known_rows", "make_panel"]


@dataclass(frozen=True, eq=False)
class Panel:
    """The names of all groups as one model knows them.

    Attributes
    ----------
    names : (m, d) float64
        Unit vectors of the names that the model knows, group by group.
    groups : (m,) int
        The place of every name's group.
    lost : group -> names
        The names that the model does not know.
    """

    grouping: Grouping
    names: NDArray[np.float64]
    groups: NDArray[np.intp]
    lost: Mapping[str, tuple[str, ...]]

    def scores(self, target: Group, cosines: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of words against every other group, and of every constituent pair, from their cosines (n, m)."""
        others = [self._sides((target.name,), (other.name,)) for other in self.grouping.compared_with(target)]
        pairs = [self._sides(pair.first, pair.second) for pair in self.grouping.constituents(target)]
        return pair_scores(cosines, others), pair_scores(cosines, pairs)

    def place(self, target: Group) -> int:
        return self.grouping.groups.index(target)

    @property
    def categories(self) -> NDArray[np.intp]:
        """(groups, c): the place of every group's value in every category."""
        categories = list(self.grouping.groups[0].belongs)
        values = [self.grouping.values(category) for category in categories]
        return np.array(
            [
                [of.index(group.belongs[category]) for category, of in zip(categories, values, strict=True)]
                for group in self.grouping.groups
            ],
            dtype=np.intp,
        )

    def _sides(self, first: tuple[str, ...], second: tuple[str, ...]) -> Sides:
        names = [group.name for group in self.grouping.groups]
        sides = ([names.index(name) for name in side] for side in (first, second))
        one, other = (np.flatnonzero(np.isin(self.groups, side)) for side in sides)
        return one, other


def known_rows(encoded: Encoded) -> NDArray[np.bool_]:
    """Which of some words, each a text of its own, the model knows and read to the end."""
    pairs = zip(encoded.unknown, encoded.cut, strict=True)
    return np.array([not unknown and cut is None for unknown, cut in pairs], dtype=bool)


def make_panel(grouping: Grouping, encoded: Encoded, max_lost: float, hint: str = "") -> Panel:
    """Take the names, encoded group by group; refuse if a group loses more than a share of them."""
    known, at = known_rows(encoded), 0
    lost, rows, places = {}, [], []
    for place, group in enumerate(grouping.groups):
        mask = known[at : at + len(group.names)]
        lost[group.name] = tuple(name for name, there in zip(group.names, mask, strict=True) if not there)
        _check_lost(group, lost[group.name], max_lost, hint)
        rows.append(unit_rows(encoded.vectors[at : at + len(mask)][mask], group.label))
        places.append(np.full(int(mask.sum()), place, dtype=np.intp))
        at += len(mask)
    return Panel(grouping, np.concatenate(rows), np.concatenate(places), lost)


def _check_lost(group: Group, lost: tuple[str, ...], max_lost: float, hint: str) -> None:
    left = len(group.names) - len(lost)
    if len(lost) <= max_lost * len(group.names) and left >= 2:
        return
    option = "`biassay discover --max-lost`"
    limit = f"the limit is {max_lost:.0%}, {option} changes it" if left >= 2 else "at least two must be left"
    reason = f"the model does not know {len(lost)} of {len(group.names)} names of {group.label} ({', '.join(lost)})"
    raise RefusedError(f"{reason}; {limit}{f'; {hint}' if hint else ''}")
