"""Find undeclared inflected forms of one word within a word set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.weat import mean_rows

__all__ = ["find_undeclared_forms"]

_PRONOUNS = (frozenset({"he", "him", "his", "himself"}), frozenset({"she", "her", "hers", "herself"}))
_STEM = 3  # letters that two forms share at least, at the beginning
_ENDING = 3  # letters by which either form may go on
_SHARE = 0.6  # of the letters of the longer form, that the stem has more than
_FAR_ABOVE = 1.0  # robust standard deviations above the median of all pairs within sets, on Fisher's scale
_SAMPLED = 500  # words per set that give the median of all pairs


def find_undeclared_forms(
    vectors: Mapping[str, NDArray[np.floating]],
    words: Mapping[str, Sequence[str]],
    clusters: Mapping[str, Mapping[str, str]],
) -> dict[str, tuple[str, ...]]:
    """Find words that are spelled like forms of one word and whose cosine is far above the rest.

    Spelling alone would take *bee* and *beetle* for forms of one word, and cosines alone *jail* and *prison*.

    Parameters
    ----------
    vectors : role -> (texts, d)
    words : role -> word of every text
    clusters : role -> word -> declared cluster

    Returns
    -------
    dict
        By role the groups of such words, joined: ``{"X": ("he/him/his",)}``.
    """
    units = {role: _mean_directions(vectors[role], of) for role, of in words.items()}
    every = np.concatenate([_sample_pairs(of) for of in units.values()])
    if not every.size:
        return {}
    center = float(np.median(every))
    limit = center + _FAR_ABOVE * 1.4826 * float(np.median(np.abs(every - center)))
    found: dict[str, tuple[str, ...]] = {}
    for role, of in words.items():
        names = list(dict.fromkeys(of))
        labels = [clusters[role].get(name, name) for name in names]
        group = _DisjointSets(len(names))
        for places in _group_by_spelling(names):
            for i, j in _close_pairs(units[role], places, limit):
                if labels[i] != labels[j]:
                    group.join(i, j)
        several = tuple("/".join(names[i] for i in members) for members in group.several())
        if several:
            found[role] = several
    return found


def _spelling_keys(word: str) -> set[str]:
    """Return keys of which two words share one exactly if they are spelled like forms of one word.

    Keys are the beginnings of a word that are long enough for a stem.
    """
    form = _singular(word.casefold())
    stems = {form[:size] for size in range(max(_STEM, len(form) - _ENDING), len(form) + 1) if size > _SHARE * len(form)}
    pronouns = {f"pronoun {number}" for number, group in enumerate(_PRONOUNS) if form in group}
    return stems | pronouns | {f"word {form}"}


def _group_by_spelling(names: Sequence[str]) -> Iterator[list[int]]:
    """Yield the places of words that share a key."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        for key in _spelling_keys(name):
            places.setdefault(key, []).append(place)
    return (own for own in places.values() if len(own) > 1)


def _close_pairs(units: NDArray[np.float64], places: list[int], limit: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of places whose cosine is above the limit."""
    own = units[places]
    for start, row in enumerate(places[:-1]):
        above = np.flatnonzero(_fisher(own[start + 1 :] @ own[start]) > limit)
        yield from ((row, places[start + 1 + step]) for step in above.tolist())


class _DisjointSets:
    """Places that are joined step by step."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def _root(self, place: int) -> int:
        while self._parent[place] != place:
            self._parent[place] = place = self._parent[self._parent[place]]
        return place

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parent[second] = first

    def several(self) -> list[list[int]]:
        """Return the groups of more than one place."""
        members: dict[int, list[int]] = {}
        for place in range(len(self._parent)):
            members.setdefault(self._root(place), []).append(place)
        return [own for own in members.values() if len(own) > 1]


def _singular(word: str) -> str:
    return f"{word.removesuffix('men')}man" if word.endswith("men") else word


def _mean_directions(vectors: NDArray[np.floating], words: Sequence[str]) -> NDArray[np.float64]:
    """Return the mean direction of every word, in the order of first appearance."""
    return unit_rows(mean_rows(unit_rows(vectors, "vectors"), words), "words")


def _sample_pairs(units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines of all pairs of words on Fisher's scale; large sets are thinned evenly to `_SAMPLED` words."""
    if len(units) > _SAMPLED:
        units = units[np.linspace(0, len(units) - 1, _SAMPLED).round().astype(np.intp)]
    return _fisher((units @ units.T)[np.triu_indices(len(units), 1)])


def _fisher(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cosines on Fisher's scale, where differences near 1 count more."""
    return np.asarray(np.arctanh(np.clip(cosines, -0.999, 0.999)))
