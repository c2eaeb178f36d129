"""Read human ratings of groups on trait pairs.

A JSON file has one of three forms, recognized by its depth: means (group -> pair -> number), ratings (annotator ->
group -> pair -> number), and ratings with an object ``demographics`` of texts beside an annotator's groups.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.fields import DATA, describe_type, parse_json
from biassay.datasets.schema import Source
from biassay.datasets.trait_pairs import Pair, TraitPairIndex
from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.io import read_text
from biassay.stats.alignment import human_means

Floats = NDArray[np.float64]
_MIN_COPYING_ANNOTATORS = 5  # equal numbers from fewer annotators may be chance


@dataclass(frozen=True)
class CopiedPairs:
    """Trait pairs of a group with the same ratings from every annotator."""

    group: str
    pairs: tuple[Pair, ...]
    annotators: int


@dataclass(frozen=True, eq=False)
class HumanRatings:
    """Ratings of groups on trait pairs.

    Attributes
    ----------
    path : Path
        File of the ratings.
    annotators : tuple of str
        Names of the annotators; empty if the file has means only.
    groups : tuple of str
        Groups as spelt in the file.
    pairs : tuple of (left, right)
        Trait pairs.
    spellings : tuple of str
        First spelling of each pair in the file; empty for pairs that it lacks.
    ratings : (annotators, groups, pairs) array of float
        Ratings from 0 to 100; NaN for missing ones.
    means : (groups, pairs) array of float
        Means over annotators.
    counts : (groups, pairs) array of int, or None
        Number of ratings of each mean; None if unknown.
    demographics : tuple of mappings
        Demographic fields of each annotator.
    reader_notes : tuple of str
        Notes on reading and selection; `notes` adds those on the numbers.
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
    reader_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user: reversed scales, missing ratings, copied pairs."""
        return (*self.reader_notes, *self._describe_missing(), *(_describe_copy(copy) for copy in self.copies))

    @property
    def copies(self) -> tuple[CopiedPairs, ...]:
        """Pairs of a group with the same ratings from all of at least five annotators, who do not all agree."""
        return tuple(copy for g in range(len(self.groups)) for copy in self._find_copies(g))

    def select_groups(self, groups: Sequence[str]) -> HumanRatings:
        """Return the ratings of some groups, in this order."""
        rows = [self._find_index("group", name, self.groups) for name in groups]
        counts = None if self.counts is None else self.counts[rows]
        return replace(self, groups=tuple(groups), ratings=self.ratings[:, rows], means=self.means[rows], counts=counts)

    def subgroup(self, field: str, value: str) -> HumanRatings:
        """Return the ratings of annotators with a demographic value, which may be one of several joined by commas."""
        fields = sorted({name for person in self.demographics for name in person})
        if not fields:
            raise UsageError(
                f"{self.path}: the file has no demographics, so annotators cannot be selected by {field!r}"
            )
        self._find_index("field of demographics", field, fields)
        values = [_split_values(person.get(field, "")) for person in self.demographics]
        selected = [index for index, known in enumerate(values) if value in known]
        if not selected:
            self._find_index(f"value of {field!r}", value, sorted(set().union(*values) - {""}))
        note = f"only annotators with {field} = {value}: {len(selected)} of {len(self.annotators)}"
        return replace(
            self._replace_ratings(self.ratings[selected]),
            annotators=tuple(self.annotators[index] for index in selected),
            demographics=tuple(self.demographics[index] for index in selected),
            reader_notes=(*self.reader_notes, note),
        )

    def drop_copies(self) -> HumanRatings:
        """Return the ratings without the cells of `copies`.

        The ratings do not show which of several equal cells is the original, so all are dropped.
        """
        ratings, dropped = self.ratings.copy(), []
        for copy in self.copies:
            g = self.groups.index(copy.group)
            for pair in copy.pairs:
                ratings[:, g, self.pairs.index(pair)] = np.nan
                dropped.append(f"{copy.group}: {' - '.join(pair)}: dropped as a copy of another pair")
        # A file with only means has no ratings to recompute them from.
        return replace(self._replace_ratings(ratings), reader_notes=(*self.reader_notes, *dropped)) if dropped else self

    @property
    def raters(self) -> tuple[int, ...]:
        """Number of annotators who rated each group."""
        return tuple(int(number) for number in (~np.isnan(self.ratings)).any(axis=2).sum(axis=0))

    def _replace_ratings(self, ratings: Floats) -> HumanRatings:
        return replace(self, ratings=ratings, means=human_means(ratings), counts=(~np.isnan(ratings)).sum(axis=0))

    def _find_index(self, kind: str, name: str, known: Sequence[str]) -> int:
        if name not in known:
            raise UnknownNameError(kind, name, known, f"(in {self.path}: {', '.join(known)})")
        return known.index(name)

    def _describe_missing(self) -> Iterator[str]:
        unrated = np.isnan(self.means)
        for g, group in enumerate(self.groups):
            if unrated[g].any():
                yield f"{group}: {_join_pairs(self.pairs, unrated[g])} without any rating"
        rated = ~np.isnan(self.ratings)
        for a, g in np.argwhere(rated.any(axis=2)):
            missing = ~rated[a, g] & ~unrated[g]
            if missing.any():
                yield f"{self.annotators[a]}: {self.groups[g]}: {_join_pairs(self.pairs, missing)} not rated"

    def _find_copies(self, g: int) -> Iterator[CopiedPairs]:
        columns: dict[bytes, list[int]] = {}
        for p, column in enumerate(self.ratings[:, g].T):
            present = column[~np.isnan(column)]
            if len(present) >= _MIN_COPYING_ANNOTATORS and (present != present[0]).any():
                columns.setdefault(np.nan_to_num(column, nan=-1.0).tobytes(), []).append(p)
        for equal in columns.values():
            if len(equal) > 1:
                n_annotators = int(np.count_nonzero(~np.isnan(self.ratings[:, g, equal[0]])))
                yield CopiedPairs(self.groups[g], tuple(self.pairs[p] for p in equal), n_annotators)


def _split_values(text: str) -> set[str]:
    return {text, *(part.strip() for part in text.split(","))}


def _join_pairs(pairs: Sequence[Pair], chosen: NDArray[np.bool_]) -> str:
    names = [" - ".join(pairs[p]) for p in np.flatnonzero(chosen).tolist()]
    return f"{len(names)} of {len(pairs)} pairs ({', '.join(names)})"


def _describe_copy(copy: CopiedPairs) -> str:
    names = ", ".join(" - ".join(pair) for pair in copy.pairs)
    return f"{copy.group}: equal ratings from all {copy.annotators} annotators for {names}: all but one are copies"


_DEMOGRAPHICS = "demographics"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def read_human_ratings(
    path: Path | str, *, pairs: Sequence[Pair] | None = None, aliases: Mapping[str, str] | None = None
) -> HumanRatings:
    """Read a file of human ratings.

    Parameters
    ----------
    path : Path
        JSON file in one of the three forms above. Numbers may be written as texts.
    pairs : sequence of (left, right), optional
        Allowed pairs in the order of the result. By default those of the file.
    aliases : mapping, optional
        Traits by other spellings, such as egotistic to egoistic. Case is ignored.

    Notes
    -----
    A pair is written ``left - right`` or ``left-right``. Ratings of a reversed pair become 100 - x.
    """
    path = Path(path)
    reader = _RatingsReader(path, TraitPairIndex(pairs, aliases or {}))
    root = reader.object(parse_json(path, read_text(path)), ())
    deep = any(
        isinstance(inner, dict) for value in root.values() if isinstance(value, dict) for inner in value.values()
    )
    return reader.ratings(root) if deep else reader.means(root)


class _RatingsReader:
    """Read ratings from parsed values. Errors name the file and the keys of the value."""

    def __init__(self, path: Path, names: TraitPairIndex) -> None:
        self.path, self.names = path, names

    def error(self, where: Sequence[str], problem: str) -> StimulusError:
        return StimulusError(": ".join([str(self.path), *where, problem]))

    def object(self, value: Any, where: Sequence[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, f"expected an object {{name: ...}}, got {describe_type(value)}")
        if not value:
            raise self.error(where, "the object is empty; expected ratings")
        return value

    def means(self, root: Mapping[str, Any]) -> HumanRatings:
        cells = {group: self.row(value, (f"group {group!r}",)) for group, value in root.items()}
        means = self.table(list(cells.values()))
        return self.result((), tuple(cells), np.empty((0, *means.shape)), (), means)

    def ratings(self, root: Mapping[str, Any]) -> HumanRatings:
        rows: dict[tuple[str, str], dict[int, float]] = {}
        demographics = []
        for annotator, value in root.items():
            where = (f"annotator {annotator!r}",)
            parts = dict(self.object(value, where))
            demographics.append(self.texts(parts.pop(_DEMOGRAPHICS, None), (*where, _DEMOGRAPHICS)))
            for group, row in parts.items():
                rows[annotator, group] = self.row(row, (*where, f"group {group!r}"))
        if not rows:
            raise self.error((), "no annotator rated a group")
        annotators, groups = tuple(root), tuple(dict.fromkeys(group for _, group in rows))
        ratings = np.full((len(annotators), len(groups), len(self.names.pairs)), np.nan)
        indices = [annotators.index(a) for a, _ in rows], [groups.index(g) for _, g in rows]
        ratings[indices] = self.table(list(rows.values()))
        return self.result(annotators, groups, ratings, tuple(demographics))

    def result(
        self,
        annotators: tuple[str, ...],
        groups: tuple[str, ...],
        ratings: Floats,
        demographics: tuple[Mapping[str, str], ...],
        means: Floats | None = None,
    ) -> HumanRatings:
        counts = None if means is not None else (~np.isnan(ratings)).sum(axis=0)
        means = human_means(ratings) if means is None else means
        if np.isnan(means).all():
            raise self.error((), "the file has no rating")
        notes = [f"{spelling!r}: reversed (100 - x), {n} values" for spelling, n in self.names.reversed.items() if n]
        notes += [f"{name}: no rating" for name, row in zip(annotators, ratings, strict=True) if np.isnan(row).all()]
        pairs = tuple(self.names.pairs)
        spellings = tuple(self.names.spellings.get(p, "") for p in range(len(pairs)))
        return HumanRatings(
            self.path, annotators, groups, pairs, spellings, ratings, means, counts, demographics, tuple(notes)
        )

    def row(self, value: Any, where: Sequence[str]) -> dict[int, float]:
        """Read the ratings of one group, by the index of the pair."""
        ratings: dict[int, float] = {}
        spellings: dict[int, str] = {}
        for spelling, cell in self.object(value, where).items():
            cell_location = (*where, f"pair {spelling!r}")
            try:
                index, is_reversed = self.names.find(spelling)
            except UsageError as error:
                raise self.error(cell_location, str(error)) from error
            if index in spellings:
                raise self.error(cell_location, f"the pair is repeated; it appears as {spellings[index]!r} too")
            spellings[index] = spelling
            rating = self.rating(cell, cell_location)
            ratings[index] = 100.0 - rating if is_reversed else rating
        return ratings

    def rating(self, value: Any, where: Sequence[str]) -> float:
        """Read a number from 0 to 100; null is a missing rating."""
        if value is None:
            return math.nan
        if isinstance(value, dict):
            raise self.error(where, "expected a number from 0 to 100, got an object: the file is nested too deeply")
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise self.error(where, f"expected a number from 0 to 100, got {describe_type(value)}")
        return float(value)

    def texts(self, value: Any, where: Sequence[str]) -> dict[str, str]:
        if value is None:
            return {}
        for field, text in self.object(value, where).items():
            if not isinstance(text, str):
                raise self.error((*where, f"field {field!r}"), f"expected a text, got {describe_type(text)}")
        return dict(value)

    def table(self, rows: Sequence[Mapping[int, float]]) -> Floats:
        """Make an array of all rows, once the number of pairs is known."""
        return np.array([[row.get(p, math.nan) for p in range(len(self.names.pairs))] for row in rows])


Cell = tuple[str, Literal["low", "high"]]
"""Dimension and side of it: the left traits of its pairs are low, the right ones high."""


@dataclass(frozen=True)
class RatedPairs:
    """Cells that people associate with pairs of groups, in either order."""

    source: Source
    cells: tuple[Cell, ...]
    cells_by_groups: dict[frozenset[str], frozenset[Cell]]


@cache
def load_rated_pairs() -> RatedPairs:
    """Load the bundled ratings of pairs of groups."""
    content = tomllib.loads((DATA / "abc" / "ghavami2013.toml").read_text("utf-8"))
    words: dict[Cell, set[str]] = {
        (dimension, side): set(listed)
        for dimension, sides in content["words"].items()
        for side, listed in sides.items()
    }
    concepts = load_catalogue().concepts
    cells_by_groups = {
        frozenset(entry["groups"]): frozenset(
            cell for cell, listed in words.items() if listed & set(concepts[entry["words"]].words)
        )
        for entry in content["pairs"]
    }
    return RatedPairs(Source(**content["source"]), tuple(words), cells_by_groups)
