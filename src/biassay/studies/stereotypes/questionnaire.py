"""What a language model associates with social groups along pairs of opposite traits: blanks made, answers scored.

Every prompt (a group in a template, or nobody in it: the prior) is one blank for all adjectives. No model is needed to
make blanks or scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import Filled
from biassay.stimuli.abc_model import Abc, SocialGroup, Template, TraitPair
from biassay.studies.stereotypes.settings import Prior
from biassay.studies.stereotypes.word_associations import Measure, Pieces, Variant, word_scores
from biassay.texts.prompts import ends_with_trait, prior_prompt, prompt_of
from biassay.texts.requests import Blank, Segments

__all__ = ["Item", "Questionnaire", "TraitScores", "pair_scores_of"]


@dataclass(frozen=True)
class Item:
    """An adjective on one side of a pair."""

    pair: int
    right: bool
    adjective: str


@dataclass(frozen=True)
class _Sheet:
    """The places of the blanks of one template in the list of all: of every group, and of the prior."""

    own: tuple[int, ...]
    prior: int


@dataclass(frozen=True, eq=False)
class TraitScores:
    """Scores (groups, templates, items) of one measure; NaN where there is none."""

    measure: Measure
    scores: NDArray[np.float64]


class Questionnaire:
    """All blanks about some groups.

    Attributes
    ----------
    items : tuple of Item
    templates : tuple of Template
        Those that fit the model.
    skipped : tuple of str
        Names of those that do not: a causal model cannot be asked for a trait with words behind it.
    blanks : tuple of Blank
        Each once.
    """

    def __init__(
        self,
        abc: Abc,
        groups: Sequence[SocialGroup],
        templates: Sequence[Template],
        *,
        kind: Literal["masked", "causal"],
        prior: Prior,
        all_adjectives: bool = False,
    ) -> None:
        self.items = _items(abc.pairs, all_adjectives=all_adjectives)
        self.groups = tuple(groups)
        fits = [kind == "masked" or ends_with_trait(prior_prompt(template, abc, prior)) for template in templates]
        self.templates = tuple(template for template, fit in zip(templates, fits, strict=True) if fit)
        self.skipped = tuple(template.name for template, fit in zip(templates, fits, strict=True) if not fit)
        words = tuple(dict.fromkeys(item.adjective for item in self.items))
        self._words = [words.index(item.adjective) for item in self.items]
        self._asked: dict[Blank, int] = {}
        self._sheets = [
            _Sheet(
                own=tuple(self._place(prompt_of(template, group), words) for group in self.groups),
                prior=self._place(prior_prompt(template, abc, prior), words),
            )
            for template in self.templates
        ]
        # What of the first sentence is unknown whoever it is about.
        self._plain = [
            self._place(prior_prompt(template, abc, "word"), words if prior == "word" else ())
            for template in self.templates[:1]
        ]
        self.blanks = tuple(self._asked)

    def _place(self, segments: Segments, words: tuple[str, ...]) -> int:
        return self._asked.setdefault(Blank(segments, words), len(self._asked))

    def unknown(self, answers: Sequence[Filled]) -> tuple[str, ...]:
        """Adjectives of which the model does not know all tokens."""
        lengths = [answers[sheet.prior].lengths[self._words] for sheet in self._sheets]
        lost = np.flatnonzero((np.array(lengths) == 0).any(axis=0))
        return tuple(sorted({self.items[i].adjective for i in lost.tolist()}))

    def unknown_groups(self, answers: Sequence[Filled]) -> tuple[str, ...]:
        """Groups of which the model does not know all tokens: they have no score."""
        lost = self._lost(answers)
        return tuple(group.name for group, is_lost in zip(self.groups, lost, strict=True) if is_lost)

    def _lost(self, answers: Sequence[Filled]) -> list[bool]:
        """Whether the words of each group, and not only those of the template, are unknown."""
        (plain,) = (answers[place].unknown for place in self._plain)
        return [answers[place].unknown > plain for place in self._sheets[0].own]

    def scores(self, answers: Sequence[Filled], measure: Measure, variant: Variant) -> TraitScores:
        """Scores of one measure from the answers to all blanks, in their order."""
        found = np.full((len(self.groups), len(self.templates), len(self.items)), np.nan)
        for at, sheet in enumerate(self._sheets):
            prior = _Neutral(self.items, self._words, answers[sheet.prior])
            for group, place in enumerate(sheet.own):
                found[group, at] = prior.scores(answers[place], measure, variant)
        found[self._lost(answers)] = np.nan
        return TraitScores(measure, found)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Items that are compared, and what of them is the same for all groups: ``rows`` are those of their pieces."""

    items: list[int]
    words: NDArray[np.intp]
    rows: NDArray[np.intp]
    prior: Pieces
    decisive: NDArray[np.bool_]


class _Neutral:
    """The adjectives in the sentence of the prior, with which those in the sentence of a group are compared."""

    def __init__(self, items: Sequence[Item], words: Sequence[int], prior: Filled) -> None:
        self._words, self._prior, self._pieces = np.array(words, dtype=np.intp), prior, prior.words
        known = {i: pieces for i, word in enumerate(words) if (pieces := self._pieces[word]) is not None}
        self._known, self._decisive = list(known), _decisive(items, known)

    def scores(self, own: Filled, measure: Measure, variant: Variant) -> NDArray[np.float64]:
        """Scores (items,) of one group; NaN where an adjective is unknown, or has other pieces than for the prior."""
        found = np.full(len(self._words), np.nan)
        if np.array_equal(own.lengths, self._prior.lengths) and np.array_equal(own.pieces, self._prior.pieces):
            compared, moved = self._all, False
        else:
            compared, moved = self._compared(self._comparable(own)), True
        if compared is not None:
            rows = _rows(own, compared.words) if moved else compared.rows
            of_group = Pieces.of(own.columns[rows], compared.prior.starts)
            found[compared.items] = word_scores(of_group, compared.prior, measure, variant, compared.decisive)
        return found

    def _comparable(self, own: Filled) -> list[int]:
        """The known items whose pieces are the same in both sentences: others cannot be compared piece by piece."""
        pieces = own.words
        return [i for i in self._known if pieces[self._words[i]] == self._pieces[self._words[i]]]

    @cached_property
    def _all(self) -> _Compared | None:
        return self._compared(self._known)

    def _compared(self, items: list[int]) -> _Compared | None:
        if not items:
            return None
        words = self._words[items]
        rows, lengths = _rows(self._prior, words), self._prior.lengths[words]
        prior = Pieces.of(self._prior.columns[rows], np.cumsum(lengths, dtype=np.intp) - lengths)
        return _Compared(items, words, rows, prior, np.concatenate([self._decisive[i] for i in items]))


def _rows(filled: Filled, words: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows of the pieces of some words, one word behind the other."""
    lengths = filled.lengths[words]
    ends = np.cumsum(lengths, dtype=np.intp)
    return np.arange(ends[-1]) + np.repeat(filled.starts[words] - ends + lengths, lengths)


def _items(pairs: Sequence[TraitPair], *, all_adjectives: bool) -> tuple[Item, ...]:
    return tuple(
        Item(place, right, adjective)
        for place, pair in enumerate(pairs)
        for right, adjectives in ((False, pair.left_adjectives), (True, pair.right_adjectives))
        for adjective in (adjectives if all_adjectives else adjectives[:1])
    )


def _decisive(items: Sequence[Item], known: Mapping[int, tuple[int, ...]]) -> dict[int, list[bool]]:
    """Pieces by which an adjective differs from those on the other side of its pair; all, where none differs."""
    marks = {}
    for i, pieces in known.items():
        others = [known[j] for j, other in enumerate(items) if j in known and _opposite(items[i], other)]
        shared = max((_common(pieces, other) for other in others), default=0)
        marks[i] = [shared == len(pieces) or place >= shared for place in range(len(pieces))]
    return marks


def _opposite(one: Item, other: Item) -> bool:
    return one.pair == other.pair and one.right != other.right


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many pieces two words begin with in common."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def pair_scores_of(scores: NDArray[np.float64], items: Sequence[Item], pairs: int) -> NDArray[np.float64]:
    """Right less left, each the median over its adjectives that have a score: (groups, templates, pairs)."""
    found = np.full((*scores.shape[:2], pairs), np.nan)
    for pair in range(pairs):
        sides = [
            _median(scores[:, :, [i for i, it in enumerate(items) if it.pair == pair and it.right == right]])
            for right in (False, True)
        ]
        found[:, :, pair] = sides[1] - sides[0]
    return found


def _median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the last axis, of what is not NaN; NaN where nothing is left."""
    ordered = np.sort(values, axis=-1)  # NaN last
    n = np.count_nonzero(~np.isnan(values), axis=-1)
    low, high = (np.clip(place, 0, values.shape[-1] - 1)[..., None] for place in ((n - 1) // 2, n // 2))
    middle = (np.take_along_axis(ordered, low, -1) + np.take_along_axis(ordered, high, -1)) / 2.0
    return np.where(n > 0, middle[..., 0], np.nan)
