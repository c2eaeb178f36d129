"""Human judgements of groups on pairs of opposite traits: subgroups of annotators, missing cells and copied pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.stats.alignment import human_means
from biassay.stimuli.trait_pairs import Pair

__all__ = ["Copy", "HumanRatings"]

Floats = NDArray[np.float64]
_COPIED_BY = 5  # equal numbers from fewer annotators than that may be chance


@dataclass(frozen=True)
class Copy:
    """Pairs of a group that have the same numbers from every annotator."""

    group: str
    pairs: tuple[Pair, ...]
    annotators: int


@dataclass(frozen=True, eq=False)
class HumanRatings:
    """Judgements of groups on pairs.

    Attributes
    ----------
    path : Path
    annotators : tuple of str
        Empty if the file holds means only.
    groups : tuple of str
        As spelt in the file.
    pairs : tuple of (left, right)
    spellings : tuple of str
        Each pair as the file first spells it; empty text if it does not have it.
    ratings : (annotators, groups, pairs) float64
        NaN where there is none.
    means : (groups, pairs) float64
    counts : (groups, pairs) int64 or None
        Ratings behind each mean. None: the file does not say.
    demographics : tuple of mappings
        What is known of each annotator; empty mappings if nothing is.
    remarks : tuple of str
        What was done on reading and choosing; `notes` adds what the numbers show.
    """

    path: Path
    annotators: tuple[str, ...]
    groups: tuple[str, ...]
    pairs: tuple[Pair, ...]
    spellings: tuple[str, ...]
    ratings: Floats
    means: Floats
    counts: NDArray[np.int64] | None
    demographics: tuple[Mapping[str, str], ...]
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything a user should know of these numbers: scales turned, cells missing, pairs that are copies."""
        return (*self.remarks, *self._missing(), *(_copy_note(copy) for copy in self.copies))

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Pairs of a group with the same numbers from all its annotators, five or more, who do not all say the same."""
        return tuple(copy for g in range(len(self.groups)) for copy in self._copies_of(g))

    def of_groups(self, groups: Sequence[str]) -> HumanRatings:
        """These groups only, in this order."""
        at = [self._place("group", name, self.groups) for name in groups]
        counts = None if self.counts is None else self.counts[at]
        return replace(self, groups=tuple(groups), ratings=self.ratings[:, at], means=self.means[at], counts=counts)

    def subgroup(self, field: str, value: str) -> HumanRatings:
        """The annotators with this value in a field of their demographics, or with it among values joined by commas."""
        fields = sorted({name for known in self.demographics for name in known})
        if not fields:
            raise UsageError(
                f"{self.path}: the file says nothing about its annotators, so they cannot be chosen by {field!r}"
            )
        self._place("field of demographics", field, fields)
        chosen = [a for a, known in enumerate(self.demographics) if value in _values(known.get(field, ""))]
        if not chosen:
            values = sorted({v for known in self.demographics for v in _values(known.get(field, "")) if v})
            raise UnknownNameError(f"value of {field!r}", value, values, f"(in {self.path}: {', '.join(values)})")
        remark = f"only annotators with {field} = {value}: {len(chosen)} of {len(self.annotators)}"
        return replace(
            self._with(self.ratings[chosen]),
            annotators=tuple(self.annotators[a] for a in chosen),
            demographics=tuple(self.demographics[a] for a in chosen),
            remarks=(*self.remarks, remark),
        )

    def without_copies(self, means: HumanRatings | None = None) -> HumanRatings:
        """With the cells of `copies` made missing.

        Nothing in the ratings says which of several equal cells is the original: all go. With ``means``, the published
        means of the same data, a cell whose mean agrees with them stays.
        """
        ratings, dropped = self.ratings.copy(), []
        for copy in self.copies:
            g = self.groups.index(copy.group)
            for pair in copy.pairs:
                p = self.pairs.index(pair)
                if means is None or not means._agrees(copy.group, pair, float(self.means[g, p])):
                    ratings[:, g, p] = np.nan
                    dropped.append(f"{copy.group}: {' - '.join(pair)}: left out, being a copy of another pair")
        # Means without ratings, from a file that holds nothing else, cannot be made anew.
        return replace(self._with(ratings), remarks=(*self.remarks, *dropped)) if dropped else self

    def need_raters(self, least: int = 2) -> None:
        """Refuse ratings in which a group has fewer annotators than ``least``."""
        if not self.annotators:
            raise StimulusError(f"{self.path}: holds means only; expected the ratings of single annotators")
        for name, number in zip(self.groups, self.raters, strict=True):
            if number < least:
                raise StimulusError(f"{self.path}: group {name!r}: {number} annotators; at least {least} are needed")

    @property
    def raters(self) -> tuple[int, ...]:
        """How many annotators gave each group any rating."""
        return tuple(int(number) for number in (~np.isnan(self.ratings)).any(axis=2).sum(axis=0))

    def _with(self, ratings: Floats) -> HumanRatings:
        return replace(self, ratings=ratings, means=human_means(ratings), counts=(~np.isnan(ratings)).sum(axis=0))

    def _place(self, what: str, name: str, known: Sequence[str]) -> int:
        if name not in known:
            raise UnknownNameError(what, name, known, f"(in {self.path}: {', '.join(known)})")
        return known.index(name)

    def _agrees(self, group: str, pair: Pair, mean: float) -> bool:
        if group not in self.groups or pair not in self.pairs:
            return False
        return abs(float(self.means[self.groups.index(group), self.pairs.index(pair)]) - mean) < 1e-6

    def _missing(self) -> Iterator[str]:
        gone = np.isnan(self.means)
        for g, group in enumerate(self.groups):
            if gone[g].any():
                yield f"{group}: {_listed(self.pairs, gone[g])} without any rating"
        rated = ~np.isnan(self.ratings)
        for a, g in np.argwhere(rated.any(axis=2)):
            lost = ~rated[a, g] & ~gone[g]
            if lost.any():
                yield f"{self.annotators[a]}: {self.groups[g]}: {_listed(self.pairs, lost)} not rated"

    def _copies_of(self, g: int) -> Iterator[Copy]:
        columns: dict[bytes, list[int]] = {}
        for p, numbers in enumerate(self.ratings[:, g].T):
            given = numbers[~np.isnan(numbers)]
            if len(given) >= _COPIED_BY and (given != given[0]).any():
                columns.setdefault(np.nan_to_num(numbers, nan=-1.0).tobytes(), []).append(p)
        for same in columns.values():
            if len(same) > 1:
                number = int(np.count_nonzero(~np.isnan(self.ratings[:, g, same[0]])))
                yield Copy(self.groups[g], tuple(self.pairs[p] for p in same), number)


def _values(text: str) -> set[str]:
    return {text, *(part.strip() for part in text.split(","))}


def _listed(pairs: Sequence[Pair], chosen: NDArray[np.bool_]) -> str:
    names = [" - ".join(pairs[p]) for p in np.flatnonzero(chosen).tolist()]
    return f"{len(names)} of {len(pairs)} pairs ({', '.join(names)})"


def _copy_note(copy: Copy) -> str:
    names = ", ".join(" - ".join(pair) for pair in copy.pairs)
    return f"{copy.group}: the same numbers from all {copy.annotators} annotators for {names}: all but one are copies"
