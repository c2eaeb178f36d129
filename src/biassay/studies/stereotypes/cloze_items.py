"""Make cloze items from groups, templates and traits, and score the responses.

Every prompt (a group in a template, or nobody in it: the prior) is one blank for all adjectives. No model is needed to
make blanks or scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.abc_model import AbcStimuli, SocialGroup, Template, TraitPair
from biassay.models.base import BlankScores
from biassay.prompts.requests import Blank, Segments, Slot
from biassay.studies.stereotypes.ilps import Measure, Variant, WordPieces, score_words
from biassay.studies.stereotypes.settings import Prior

_SLOT = re.compile(r"(\{(?:group|Group|a group|A group|trait)\})")
_PUNCTUATION = re.compile(r"\W*")
_VOWELS = tuple("aeiouAEIOU")


def make_cloze(template: Template, group: SocialGroup) -> Segments:
    """Fill a template with the form of the group that it asks for."""
    form = group.form(template.number)
    return _fill_form(template.text, form, group.article or _choose_article(form))


def make_prior_cloze(template: Template, abc: AbcStimuli, prior: Literal["mask", "word"] = "mask") -> Segments:
    """Return a template's sentence about nobody in particular.

    Parameters
    ----------
    template : Template
        Sentence with slots for a group and a trait.
    abc : AbcStimuli
        Stimuli with the words that replace a group.
    prior : {"mask", "word"}
        Replacement for the group: a mask, or a word such as "person".

    Returns
    -------
    Segments
    """
    form = Slot.MASKED if prior == "mask" else abc.prior_word(template.number)
    return _fill_form(template.text, form, _choose_article(form))


def ends_with_trait(segments: Segments) -> bool:
    """Return whether only punctuation follows the trait, as a model that reads from the left requires."""
    after = segments[segments.index(Slot.BLANK) + 1 :]
    return all(isinstance(part, str) and _PUNCTUATION.fullmatch(part) for part in after)


def _fill_form(text: str, form: str | Slot, article: str) -> Segments:
    """Fill the slots of a template; neighbouring texts are joined, so that one text is one request."""
    with_article = (f"{article} ", form)
    fillings: dict[str, Segments] = {
        "{group}": (form,),
        "{Group}": _capitalize((form,)),
        "{a group}": with_article,
        "{A group}": _capitalize(with_article),
        "{trait}": (Slot.BLANK,),
    }
    merged: list[str | Slot] = []
    for term in (term for part in _SLOT.split(text) for term in fillings.get(part, (part,)) if term != ""):
        if isinstance(term, str) and merged and isinstance(merged[-1], str):
            merged[-1] += term
        else:
            merged.append(term)
    return _capitalize(tuple(merged))


def _capitalize(segments: Segments) -> Segments:
    """Capitalize the first letter, unless a slot comes first."""
    first = segments[0]
    return (first[0].upper() + first[1:], *segments[1:]) if isinstance(first, str) else segments


def _choose_article(form: str | Slot) -> str:
    return "an" if isinstance(form, str) and form.startswith(_VOWELS) else "a"


@dataclass(frozen=True)
class TraitItem:
    """An adjective on one side of a pair."""

    pair: int
    right: bool
    adjective: str


class ClozeItems:
    """Blanks about some groups.

    Attributes
    ----------
    items : tuple of Item
    templates : tuple of Template
        Templates that fit the model.
    skipped : tuple of str
        Names of templates that do not fit: a causal model needs the trait at the end.
    blanks : tuple of Blank
        Distinct blanks.
    """

    def __init__(
        self,
        abc: AbcStimuli,
        groups: Sequence[SocialGroup],
        templates: Sequence[Template],
        *,
        kind: Literal["masked", "causal"],
        prior: Prior,
        all_adjectives: bool = False,
    ) -> None:
        self.items = _list_items(abc.pairs, all_adjectives=all_adjectives)
        self.groups = tuple(groups)
        fits = [kind == "masked" or ends_with_trait(make_prior_cloze(template, abc, prior)) for template in templates]
        self.templates = tuple(template for template, fit in zip(templates, fits, strict=True) if fit)
        self.skipped = tuple(template.name for template, fit in zip(templates, fits, strict=True) if not fit)
        words = tuple(dict.fromkeys(item.adjective for item in self.items))
        self._words = [words.index(item.adjective) for item in self.items]
        self._asked: dict[Blank, int] = {}
        # By template: indices of the blanks of the groups, and of that of the prior.
        self._sheets = [
            (
                tuple(self._place(make_cloze(template, group), words) for group in self.groups),
                self._place(make_prior_cloze(template, abc, prior), words),
            )
            for template in self.templates
        ]
        # Out-of-vocabulary parts that the first sentence has for every group.
        self._plain = [
            self._place(make_prior_cloze(template, abc, "word"), words if prior == "word" else ())
            for template in self.templates[:1]
        ]
        self.blanks = tuple(self._asked)

    def _place(self, segments: Segments, words: tuple[str, ...]) -> int:
        return self._asked.setdefault(Blank(segments, words), len(self._asked))

    def unknown(self, answers: Sequence[BlankScores]) -> tuple[str, ...]:
        """Return the adjectives with out-of-vocabulary tokens."""
        lengths = [answers[prior].lengths[self._words] for _, prior in self._sheets]
        lost = np.flatnonzero((np.array(lengths) == 0).any(axis=0))
        return tuple(sorted({self.items[i].adjective for i in lost.tolist()}))

    def unknown_groups(self, answers: Sequence[BlankScores]) -> tuple[str, ...]:
        """Return the groups with out-of-vocabulary tokens, which have no score."""
        lost = self._lost(answers)
        return tuple(group.name for group, is_lost in zip(self.groups, lost, strict=True) if is_lost)

    def _lost(self, answers: Sequence[BlankScores]) -> list[bool]:
        """Find the groups whose own words, not only those of the template, are out of vocabulary."""
        (plain,) = (answers[index].unknown for index in self._plain)
        return [answers[index].unknown > plain for index in self._sheets[0][0]]

    def scores(self, answers: Sequence[BlankScores], measure: Measure, variant: Variant) -> NDArray[np.float64]:
        """Compute the scores (groups, templates, items) of one measure; NaN where there is none.

        Parameters
        ----------
        answers : sequence of BlankScores
            Outputs of the model for `blanks`, in their order.
        measure : {"ilps", "ilps-star", "set"}
            Measure to compute.
        variant : {"paper", "cao2022-code"}
            Definition of the measure.

        Returns
        -------
        TraitScores
            NaN for groups with out-of-vocabulary tokens.
        """
        found = np.full((len(self.groups), len(self.templates), len(self.items)), np.nan)
        for at, (blanks, prior_blank) in enumerate(self._sheets):
            prior = _PriorComparison(self.items, self._words, answers[prior_blank])
            for group, index in enumerate(blanks):
                found[group, at] = prior.scores(answers[index], measure, variant)
        found[self._lost(answers)] = np.nan
        return found


class _PriorComparison:
    """Compare adjectives in the sentence about a group with those in the sentence of the prior."""

    def __init__(self, items: Sequence[TraitItem], words: Sequence[int], prior: BlankScores) -> None:
        self._words, self._prior, self._pieces = np.array(words, dtype=np.intp), prior, prior.words
        known = {i: pieces for i, word in enumerate(words) if (pieces := self._pieces[word]) is not None}
        self._known, self._decisive = list(known), _find_decisive_pieces(items, known)

    def scores(self, own: BlankScores, measure: Measure, variant: Variant) -> NDArray[np.float64]:
        """Compute the scores (items,) of one group; NaN for adjectives with other pieces than in the prior."""
        found = np.full(len(self._words), np.nan)
        items = self._known
        if not (np.array_equal(own.lengths, self._prior.lengths) and np.array_equal(own.pieces, self._prior.pieces)):
            pieces = own.words
            items = [i for i in items if pieces[self._words[i]] == self._pieces[self._words[i]]]
        if items:
            words = self._words[items]
            lengths = self._prior.lengths[words]
            starts = np.cumsum(lengths, dtype=np.intp) - lengths
            group_pieces, prior_pieces = (
                WordPieces.from_columns(filled.columns[_find_piece_rows(filled, words)], starts)
                for filled in (own, self._prior)
            )
            decisive = np.concatenate([self._decisive[i] for i in items])
            found[items] = score_words(group_pieces, prior_pieces, measure, variant, decisive)
        return found


def _find_piece_rows(filled: BlankScores, words: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of the pieces of some words, word by word."""
    lengths = filled.lengths[words]
    ends = np.cumsum(lengths, dtype=np.intp)
    return np.arange(ends[-1]) + np.repeat(filled.starts[words] - ends + lengths, lengths)


def _list_items(pairs: Sequence[TraitPair], *, all_adjectives: bool) -> tuple[TraitItem, ...]:
    return tuple(
        TraitItem(index, right, adjective)
        for index, pair in enumerate(pairs)
        for right, adjectives in ((False, pair.left_adjectives), (True, pair.right_adjectives))
        for adjective in (adjectives if all_adjectives else adjectives[:1])
    )


def _find_decisive_pieces(items: Sequence[TraitItem], known: Mapping[int, tuple[int, ...]]) -> dict[int, list[bool]]:
    """Mark the pieces by which an adjective differs from those on the other side of its pair; all if none differs."""
    marks = {}
    for i, pieces in known.items():
        opposite = (items[i].pair, not items[i].right)
        others = [other for j, other in known.items() if (items[j].pair, items[j].right) == opposite]
        shared = max((_count_common(pieces, other) for other in others), default=0)
        marks[i] = [shared == len(pieces) or index >= shared for index in range(len(pieces))]
    return marks


def _count_common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Count the leading pieces that two words share."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def score_trait_pairs(scores: NDArray[np.float64], items: Sequence[TraitItem], pairs: int) -> NDArray[np.float64]:
    """Subtract the left from the right median score of the adjectives of every trait pair.

    Parameters
    ----------
    scores : (groups, templates, items) float64
        Scores of adjectives; NaN is ignored.
    items : (items,) sequence of TraitItem
        Trait pair and side of every adjective.
    pairs : int
        Number of trait pairs.

    Returns
    -------
    (groups, templates, pairs) float64
    """
    found = np.full((*scores.shape[:2], pairs), np.nan)
    for pair in range(pairs):
        left, right = (
            scores[:, :, [i for i, item in enumerate(items) if (item.pair, item.right) == (pair, side)]]
            for side in (False, True)
        )
        known = ~(np.isnan(left).all(axis=2) | np.isnan(right).all(axis=2))
        found[known, pair] = np.nanmedian(right[known], axis=-1) - np.nanmedian(left[known], axis=-1)
    return found
