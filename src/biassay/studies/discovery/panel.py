"""The names of groups as one model knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from biassay.errors import RefusedError
from biassay.models.base import Encoded
from biassay.stats.association import unit_rows
from biassay.stats.detection import Sides, pair_scores
from biassay.stimuli.groups import Group, Grouping

__all__ = ["Panel", "known_rows", "make_panel"]

_NEAR = 0.35  # of the median distance within groups, below which two names are reported as near-duplicates


@dataclass(frozen=True, eq=False)
class Panel:
    """The names of all groups as one model knows them.

    Attributes
    ----------
    names : (k, d) float64
        Unit vectors of the names that the model knows, group by group.
    clusters : (k,) int
        The cluster of every name, from 0. A name without near-duplicates is a cluster of its own.
    groups : (m,) int
        The place of every cluster's group.
    lost : group -> names
        The names that the model does not know.
    similar : group -> pairs of names
        Names of different clusters that the model hardly tells apart.
    """

    grouping: Grouping
    names: NDArray[np.float64]
    clusters: NDArray[np.intp]
    groups: NDArray[np.intp]
    lost: Mapping[str, tuple[str, ...]]
    similar: Mapping[str, tuple[tuple[str, str], ...]]

    def cosines(self, vectors: NDArray[np.floating], what: str, words: Sequence[str]) -> NDArray[np.float64]:
        """Cosines (n, k) of words with every name."""
        return np.asarray(unit_rows(vectors, what, words) @ self.names.T)

    def average(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average cosines (n, k) with names over the names of every cluster, (n, m)."""
        if len(self.groups) == len(self.names):
            return cosines
        member = self.clusters[:, None] == np.arange(len(self.groups))
        return np.asarray(cosines @ (member / member.sum(axis=0)))

    def scores(self, target: Group, cosines: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of words against every other group, and of every constituent pair.

        ``cosines`` (n, m) are averages over the names of a cluster.
        """
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
    lost, rows, labels, left = {}, [], [], {}
    for place, group in enumerate(grouping.groups):
        mask = known[at : at + len(group.names)]
        lost[group.name] = tuple(name for name, there in zip(group.names, mask, strict=True) if not there)
        kept = [label for label, there in zip(group.cluster_labels, mask, strict=True) if there]
        _check_lost(group, lost[group.name], len(set(kept)), max_lost, hint)
        rows.append(unit_rows(encoded.vectors[at : at + len(mask)][mask], group.label))
        labels += [(place, label) for label in kept]
        left[group.name] = [name for name, there in zip(group.names, mask, strict=True) if there]
        at += len(mask)
    order = {cluster: i for i, cluster in enumerate(dict.fromkeys(labels))}
    return Panel(
        grouping=grouping,
        names=np.concatenate(rows),
        clusters=np.array([order[cluster] for cluster in labels], dtype=np.intp),
        groups=np.array([place for place, _ in order], dtype=np.intp),
        lost=lost,
        similar=_find_similar(left, rows, labels),
    )


def _find_similar(
    names: Mapping[str, Sequence[str]], rows: Sequence[NDArray[np.float64]], labels: Sequence[tuple[int, str]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Find pairs of names, by group, that lie far closer together than two names of one group usually do."""
    distances, pairs = [], []
    for place, (group, own) in enumerate(names.items()):
        clusters = [label for of, label in labels if of == place]
        for i, j in combinations(range(len(own)), 2):
            if clusters[i] != clusters[j]:
                distances.append(1.0 - float(rows[place][i] @ rows[place][j]))
                pairs.append((group, own[i], own[j]))
    near = np.array(distances) < _NEAR * np.median(distances)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for (group, one, other), is_near in zip(pairs, near.tolist(), strict=True):
        if is_near:
            found[group] = (*found.get(group, ()), (one, other))
    return found


def _check_lost(group: Group, lost: tuple[str, ...], clusters: int, max_lost: float, hint: str) -> None:
    if len(lost) <= max_lost * len(group.names) and clusters >= 2:
        return
    option = "`biassay discover --max-lost`"
    limit = f"the limit is {max_lost:.0%}, {option} changes it"
    if clusters < 2:
        limit = f"at least two{' clusters of names' if group.clusters else ''} must be left"
    reason = f"the model does not know {len(lost)} of {len(group.names)} names of {group.label} ({', '.join(lost)})"
    raise RefusedError(f"{reason}; {limit}{f'; {hint}' if hint else ''}")
