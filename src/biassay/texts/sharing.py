"""Templates that the words of two sets share: on others a difference of grammar looks like one of meaning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from biassay.texts.sentences import Text

__all__ = ["Sharing", "sharing", "template_of"]

_SLOT = re.compile(r"\{(?:a T|Ts)\}|\ba \{T\}", re.IGNORECASE)
_PRONOUN = re.compile(r"\{(she|her)\}|\b(?:(s?he)|his|her|him)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Sharing:
    """How the texts of two sets of words are alike.

    Attributes
    ----------
    templates : frozenset of str, or None
        Those on which words are compared: those of all words, or else those of both sets. None: all of them, for
        nothing is shared or all is.
    share : float or None
        How much of their texts two sets have in common, word for word: 1 if every sentence without its word takes the
        same part of both. None: it is not known where the words stand.
    """

    templates: frozenset[str] | None
    share: float | None

    def keeps(self, text: Text) -> bool:
        return self.templates is None or template_of(text) in self.templates


def sharing(x: Sequence[Text], y: Sequence[Text]) -> Sharing:
    """Which templates the words of X and Y share.

    Nouns with an article would share nothing with nouns that take none, nor adjectives with nouns: for the comparison
    articles and number make no other template, and ``share`` says how much of a difference that leaves.
    """
    if not all(text.template for text in (*x, *y)):
        return Sharing(None, None)
    of_x, of_y = frozenset(map(template_of, x)), frozenset(map(template_of, y))
    shared = _of_all_words((*x, *y)) or of_x & of_y
    return Sharing(shared if shared and shared != of_x | of_y else None, _overlap(x, y))


def _overlap(x: Sequence[Text], y: Sequence[Text]) -> float:
    of_x, of_y = Counter(map(_around, x)), Counter(map(_around, y))
    return sum(min(of_x[one] / len(x), of_y[one] / len(y)) for one in of_x)


def _around(text: Text) -> str:
    """The sentence without its word; she or he go with the words."""
    ((start, end),) = text.spans[:1] or ((0, 0),)
    return _PRONOUN.sub(_pronoun, text.text[:start] + "{T}" + text.text[end:])


def _of_all_words(texts: Iterable[Text]) -> frozenset[str]:
    by_word: dict[str, set[str]] = {}
    for text in texts:
        by_word.setdefault(text.stimulus, set()).add(template_of(text))
    return frozenset(set.intersection(*by_word.values())) if by_word else frozenset()


def template_of(text: Text) -> str:
    """Its template; a or an, singular or plural, she or he make no other."""
    return _plain(text.template)


@lru_cache(maxsize=4096)
def _plain(template: str) -> str:
    return _PRONOUN.sub(_pronoun, _SLOT.sub("{T}", template))


def _pronoun(found: re.Match[str]) -> str:
    return "{she}" if found[2] or (found[1] or "").lower() == "she" else "{her}"
