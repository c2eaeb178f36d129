"""Human judgements of groups on pairs of opposite traits, from 0 (the left trait) to 100 (the right one).

Three forms of JSON are read, recognised by their depth: means (group -> pair -> number), ratings (annotator -> group ->
pair -> number), and ratings with an object ``demographics`` of texts beside an annotator's groups.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import StimulusError, UsageError
from biassay.files import read_text
from biassay.stats.alignment import human_means
from biassay.stimuli.fields import kind, parse_json
from biassay.stimuli.human_ratings import HumanRatings
from biassay.stimuli.trait_pairs import Pair, PairNames

__all__ = ["read_human"]

Floats = NDArray[np.float64]
_DEMOGRAPHICS = "demographics"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def read_human(
    path: Path | str, *, pairs: Sequence[Pair] | None = None, aliases: Mapping[str, str] | None = None
) -> HumanRatings:
    """Read a file of human judgements.

    Parameters
    ----------
    path : Path
        JSON, in one of the three forms above; numbers may be written as texts.
    pairs : sequence of (left, right), optional
        The pairs that are known, in the order wanted; any other is an error. Without it, those of the file.
    aliases : mapping, optional
        Other spellings of a trait to the one wanted, such as egotistic to egoistic. Capitals do not matter.

    A pair is written ``left - right`` or ``left-right``. One in the reverse order is turned: 100 - x.
    """
    path = Path(path)
    reader = _Reader(path, PairNames(pairs, aliases or {}))
    root = reader.object(parse_json(path, read_text(path), _object), ())
    deep = any(
        isinstance(inner, dict) for value in root.values() if isinstance(value, dict) for inner in value.values()
    )
    return reader.ratings(root) if deep else reader.means(root)


class _Object(dict[str, Any]):
    """A JSON object that knows whether a key stood twice in it."""

    repeated: str | None = None


def _object(items: list[tuple[str, Any]]) -> _Object:
    content = _Object(items)
    if len(content) < len(items):
        content.repeated = next(key for key, times in Counter(key for key, _ in items).items() if times > 1)
    return content


class _Reader:
    """Turns parsed values into ratings, knowing where each stands."""

    def __init__(self, path: Path, names: PairNames) -> None:
        self.path, self.names = path, names

    def error(self, where: Sequence[str], problem: str) -> StimulusError:
        return StimulusError(": ".join([str(self.path), *where, problem]))

    def object(self, value: Any, where: Sequence[str]) -> dict[str, Any]:
        if not isinstance(value, _Object):
            raise self.error(where, f"expected an object {{name: ...}}, got {kind(value)}")
        if value.repeated is not None:
            raise self.error(where, f"the key {value.repeated!r} stands twice")
        if not value:
            raise self.error(where, "empty; expected ratings")
        return value

    def means(self, root: Mapping[str, Any]) -> HumanRatings:
        cells = {group: self.row(value, (f"group {group!r}",)) for group, value in root.items()}
        means = self.table(list(cells.values()))
        ratings = np.empty((0, *means.shape))
        return self.result((), tuple(cells), ratings, means, None, ())

    def ratings(self, root: Mapping[str, Any]) -> HumanRatings:
        rows: dict[tuple[str, str], dict[int, float]] = {}
        demographics = []
        for annotator, value in root.items():
            where = (f"annotator {annotator!r}",)
            parts = dict(self.object(value, where))
            demographics.append(self.texts(parts.pop(_DEMOGRAPHICS, None), (*where, _DEMOGRAPHICS)))
            for group, given in parts.items():
                rows[annotator, group] = self.row(given, (*where, f"group {group!r}"))
        if not rows:
            raise self.error((), "no annotator rated a group")
        annotators, groups = (
            {name: i for i, name in enumerate(dict.fromkeys(n))} for n in (root, (g for _, g in rows))
        )
        ratings = np.full((len(annotators), len(groups), len(self.names.pairs)), np.nan)
        ratings[[annotators[a] for a, _ in rows], [groups[g] for _, g in rows]] = self.table(list(rows.values()))
        counts = (~np.isnan(ratings)).sum(axis=0)
        return self.result(tuple(annotators), tuple(groups), ratings, human_means(ratings), counts, tuple(demographics))

    def result(
        self,
        annotators: tuple[str, ...],
        groups: tuple[str, ...],
        ratings: Floats,
        means: Floats,
        counts: NDArray[np.int64] | None,
        demographics: tuple[Mapping[str, str], ...],
    ) -> HumanRatings:
        if np.isnan(means).all():
            raise self.error((), "holds no rating")
        remarks = [f"{spelt!r}: turned (100 - x), {n} values" for spelt, n in self.names.turned.items() if n]
        remarks += [f"{name}: no rating" for name, own in zip(annotators, ratings, strict=True) if np.isnan(own).all()]
        pairs = tuple(self.names.pairs)
        spellings = tuple(self.names.spellings.get(p, "") for p in range(len(pairs)))
        return HumanRatings(
            self.path, annotators, groups, pairs, spellings, ratings, means, counts, demographics, tuple(remarks)
        )

    def row(self, value: Any, where: Sequence[str]) -> dict[int, float]:
        """The ratings of one group, by the place of the pair."""
        found: dict[int, float] = {}
        spelt_as: dict[int, str] = {}
        for spelt, given in self.object(value, where).items():
            at = (*where, f"pair {spelt!r}")
            try:
                place, turned = self.names.find(spelt)
            except UsageError as error:
                raise self.error(at, str(error)) from error
            if place in spelt_as:
                raise self.error(at, f"the same pair stands there as {spelt_as[place]!r}")
            spelt_as[place] = spelt
            rating = self.rating(given, at)
            found[place] = 100.0 - rating if turned else rating
        return found

    def rating(self, value: Any, where: Sequence[str]) -> float:
        """A number from 0 to 100; nothing (null) is a rating that was not given."""
        if value is None:
            return math.nan
        if isinstance(value, dict):
            raise self.error(where, "expected a number from 0 to 100, got an object: the file is nested too deep")
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise self.error(where, f"expected a number from 0 to 100, got {kind(value)}")
        return float(value)

    def texts(self, value: Any, where: Sequence[str]) -> dict[str, str]:
        if value is None:
            return {}
        for field, text in self.object(value, where).items():
            if not isinstance(text, str):
                raise self.error((*where, f"field {field!r}"), f"expected a text, got {kind(text)}")
        return dict(value)

    def table(self, rows: Sequence[Mapping[int, float]]) -> Floats:
        """Only when all rows are read is it known how many pairs there are."""
        return np.array([[row.get(p, math.nan) for p in range(len(self.names.pairs))] for row in rows])
