"""Words of one set that look like forms of one word and were not declared as a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, takewhile

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.averaging import mean_rows

__all__ = ["looks_inflected", "undeclared_forms"]

_PRONOUNS = (frozenset({"he", "him", "his", "himself"}), frozenset({"she", "her", "hers", "herself"}))
_STEM = 3  # letters that two forms share at least, at the beginning
_ENDING = 3  # letters by which either form may go on
_SHARE = 0.6  # of the letters of the longer form, that the stem has more than
_FAR_ABOVE = 1.0  # robust standard deviations above the median of all pairs within sets, on Fisher's scale


def undeclared_forms(
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
    names = {role: list(dict.fromkeys(of)) for role, of in words.items()}
    cosines = {role: _cosines(vectors[role], words[role]) for role in words}
    every = np.concatenate([of[np.triu_indices(len(of), 1)] for of in cosines.values()])
    if not every.size:
        return {}
    center = float(np.median(every))
    spread = 1.4826 * float(np.median(np.abs(every - center)))
    found: dict[str, tuple[str, ...]] = {}
    for role, of in names.items():
        group = dict(zip(of, of, strict=True))
        for (i, one), (j, other) in combinations(enumerate(of), 2):
            declared = clusters[role].get(one, one) == clusters[role].get(other, other)
            if not declared and looks_inflected(one, other) and cosines[role][i, j] > center + _FAR_ABOVE * spread:
                group = {word: group[one] if label == group[other] else label for word, label in group.items()}
        joined: dict[str, list[str]] = {}
        for word, label in group.items():
            joined.setdefault(label, []).append(word)
        several = tuple("/".join(members) for members in joined.values() if len(members) > 1)
        if several:
            found[role] = several
    return found


def looks_inflected(one: str, other: str) -> bool:
    """Are the words spelled like forms of one word (brother, brothers), or pronouns of one person?"""
    one, other = (_singular(word.casefold()) for word in (one, other))
    if one == other or any({one, other} <= group for group in _PRONOUNS):
        return True
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    longer = max(len(one), len(other))
    return stem >= _STEM and longer - stem <= _ENDING and stem > _SHARE * longer


def _singular(word: str) -> str:
    return f"{word.removesuffix('men')}man" if word.endswith("men") else word


def _cosines(vectors: NDArray[np.floating], words: Sequence[str]) -> NDArray[np.float64]:
    """Return cosines between words on Fisher's scale, where differences near 1 count more."""
    units = unit_rows(mean_rows(unit_rows(vectors, "vectors"), words), "words")
    return np.asarray(np.arctanh(np.clip(units @ units.T, -0.999, 0.999)))
