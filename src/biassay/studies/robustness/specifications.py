"""All specifications of one test on one model, each with its cosines of words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.errors import DegenerateError
from biassay.stats.matching import matched
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.averaging import mean_rows
from biassay.studies.robustness.records import Kind
from biassay.texts.sentences import Text
from biassay.texts.sharing import template_of

__all__ = ["FREQUENCY", "TOKENS", "Material", "Measured", "of_reading", "of_words"]

TOKENS, FREQUENCY = "equal tokens", "equal frequency"
_FACTOR = 2.0  # between ranks of about equal frequency
_SAME = 1e-6  # difference of cosines
_FEWEST = 4  # words in a set of a subset or of matched words
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """A specification and its cosines of words, rows X and Y, columns A and B; NaN of what has no direction."""

    kind: Kind
    reading: str
    similarity: str
    template: str
    words: str
    cosines: Floats
    sizes: tuple[int, int, int, int]

    @property
    def is_known(self) -> bool:
        return bool(np.isfinite(self.cosines).all())

    def repeats(self, other: Measured) -> bool:
        """Does it give the same cosines of words?"""
        return np.allclose(self.cosines, other.cosines, rtol=0.0, atol=_SAME)

    @property
    def scores(self) -> Floats:
        """Associations of the target words."""
        k = self.sizes[2]
        return np.asarray(self.cosines[:, :k].mean(axis=1) - self.cosines[:, k:].mean(axis=1))


@dataclass(frozen=True, eq=False)
class Material:
    """What a test is measured with: its texts, and what is known of its words.

    Attributes
    ----------
    texts : role -> texts
        Those that the model knows, in templates that the target words share.
    tokens, ranks : callable from words to numbers, or None
        How many tokens the model makes of them, and their places in order of frequency.
    """

    test: Test
    texts: Mapping[str, Sequence[Text]]
    tokens: Callable[[Sequence[str]], NDArray[np.int64] | None]
    ranks: Callable[[Sequence[str]], NDArray[np.float64] | None]

    def clusters(self, role: str) -> dict[str, list[str]]:
        """Return the words of every cluster, by the name of the cluster: he/him/his."""
        labels = self.test.concept(role).cluster_labels
        joined: dict[str, list[str]] = {}
        for word in dict.fromkeys(text.stimulus for text in self.texts[role]):
            joined.setdefault(labels.get(word, word), []).append(word)
        return {"/".join(words): words for words in joined.values()}


def of_reading(
    material: Material, reading: str, similarity: str, units: Mapping[str, Floats], *, first: bool
) -> Iterator[Measured]:
    """One reading by one similarity, ``units`` by role; the first of all also with each template by itself."""
    found = Measured("model", reading, similarity, "", "", *_of_words(material, units, material.texts))
    if first and not found.is_known:
        raise DegenerateError("some vectors have no direction")
    yield found
    if first:
        yield from _templates(material, units, found)


def of_words(material: Material, first: Measured, n_subsets: int, rng: np.random.Generator) -> Iterator[Measured]:
    """The first specification with other words: each left out, random halves, words that are alike."""
    yield from _left_out(material, first)
    yield from _subsets(first, n_subsets, rng)
    yield from _alike(material, first)


def _of_words(
    material: Material, units: Mapping[str, Floats], texts: Mapping[str, Sequence[Text]]
) -> tuple[Floats, tuple[int, int, int, int]]:
    """Average the texts of a word, then the words of a cluster."""
    means = []
    for role in ROLES:
        words = [text.stimulus for text in texts[role]]
        labels = material.test.concept(role).cluster_labels
        clusters = [labels.get(word, word) for word in dict.fromkeys(words)]
        means.append(mean_rows(mean_rows(units[role], words), clusters))
    x, y, a, b = means
    return np.concatenate([x, y]) @ np.concatenate([a, b]).T, (len(x), len(y), len(a), len(b))


def _templates(material: Material, units: Mapping[str, Floats], first: Measured) -> Iterator[Measured]:
    """Each template by itself, of those that all target words have."""
    keys = {role: [template_of(text) for text in material.texts[role]] for role in "XY"}
    names = dict.fromkeys(key for of in keys.values() for key in of)
    for name in names if len(names) > 1 else ():
        kept = {role: [i for i, key in enumerate(keys[role]) if key == name] for role in "XY"}
        texts = {
            role: [material.texts[role][i] for i in kept[role]] if role in kept else material.texts[role]
            for role in ROLES
        }
        rows = {role: units[role][kept[role]] if role in kept else units[role] for role in ROLES}
        if any(
            len({t.stimulus for t in texts[role]}) < len({t.stimulus for t in material.texts[role]}) for role in "XY"
        ):
            continue
        yield Measured("template", first.reading, first.similarity, name, "", *_of_words(material, rows, texts))


def _left_out(material: Material, first: Measured) -> Iterator[Measured]:
    words = [(role, word) for role in ROLES for word in material.clusters(role)]
    starts = dict(zip(ROLES, np.cumsum([0, *first.sizes[:3]]).tolist(), strict=True))
    for place, (role, word) in enumerate(words):
        if first.sizes[ROLES.index(role)] > 2:
            kept = {r: [i for i in range(n) if starts[r] + i != place] for r, n in zip(ROLES, first.sizes, strict=True)}
            yield _part(first, kept, "word", f"without {word}")


def _subsets(first: Measured, n_subsets: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Random halves of all four sets, where these are large enough."""
    halves = [math.ceil(size / 2) for size in first.sizes]
    for number in range(n_subsets if min(halves) >= _FEWEST else 0):
        pairs = zip(ROLES, first.sizes, halves, strict=True)
        kept = {role: sorted(rng.choice(size, half, replace=False).tolist()) for role, size, half in pairs}
        yield _part(first, kept, "subset", f"random half {number + 1}")


def _alike(material: Material, first: Measured) -> Iterator[Measured]:
    """Target words that are alike in what may be taken for meaning; none where all words are alike already."""
    x, y = (list(material.clusters(role).values()) for role in "XY")
    every = [word for cluster in (*x, *y) for word in cluster]
    for name, known, factor in ((TOKENS, material.tokens, 1.0), (FREQUENCY, material.ranks, _FACTOR)):
        values = known(every)
        if values is None:
            continue
        of_word = dict(zip(every, values.tolist(), strict=True))
        means = [[float(np.mean([of_word[word] for word in cluster])) for cluster in of] for of in (x, y)]
        of_x, of_y = matched(means[0], means[1], factor)
        if min(len(of_x), len(of_y)) >= _FEWEST and len(of_x) + len(of_y) < len(x) + len(y):
            kept = {"X": of_x, "Y": of_y, "A": list(range(first.sizes[2])), "B": list(range(first.sizes[3]))}
            yield _part(first, kept, "matched", name)


def _part(first: Measured, kept: Mapping[str, Sequence[int]], kind: Kind, words: str) -> Measured:
    n, _, k, _ = first.sizes
    rows = [*kept["X"], *(n + i for i in kept["Y"])]
    columns = [*kept["A"], *(k + i for i in kept["B"])]
    x, y, a, b = (len(kept[role]) for role in ROLES)
    part = first.cosines[np.ix_(rows, columns)]
    return Measured(kind, first.reading, first.similarity, "", words, part, (x, y, a, b))
