"""What finished texts are about, where nobody says it: what varies between them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

__all__ = ["what_varies"]

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
Span = tuple[int, int]
Frame = tuple[tuple[str, ...], tuple[str, ...]]


def what_varies(sets: Sequence[Sequence[str]]) -> list[list[tuple[Span, ...]]]:
    """For every text of every set the places of the words that it is taken to be about.

    Words that stand in one set only are candidates. Of those in a text, the one with most alternatives is taken: other
    candidates that stand in its place in texts that are otherwise the same. Several are taken where they have equally
    many, and a text without a candidate is about all of its words.
    """
    spans = [[[match.span() for match in _WORD.finditer(text)] for text in texts] for texts in sets]
    words = [
        [[text[a:b].casefold() for a, b in places] for text, places in zip(texts, of_set, strict=True)]
        for texts, of_set in zip(sets, spans, strict=True)
    ]
    own = _of_one_set(words)
    alternatives: dict[Frame, set[str]] = defaultdict(set)
    for text in (text for texts in words for text in texts):
        for i, word in enumerate(text):
            if word in own:
                alternatives[_frame(text, i)].add(word)
    return [
        [
            tuple(places[i] for i in _most_varied(text, own, alternatives)) or ((0, len(whole)),)
            for whole, text, places in zip(*of_set, strict=True)
        ]
        for of_set in zip(sets, words, spans, strict=True)
    ]


def _of_one_set(words: list[list[list[str]]]) -> set[str]:
    found = [{word for text in texts for word in text} for texts in words]
    return {word for of_set in found for word in of_set if sum(word in other for other in found) == 1}


def _frame(text: list[str], i: int) -> Frame:
    return tuple(text[:i]), tuple(text[i + 1 :])


def _most_varied(text: list[str], own: set[str], alternatives: dict[Frame, set[str]]) -> list[int]:
    counts = {i: len(alternatives[_frame(text, i)]) for i, word in enumerate(text) if word in own}
    most = max(counts.values(), default=0)
    return [i for i, count in counts.items() if count == most] or list(range(len(text)))
