"""What a language model ties to social groups along pairs of opposite traits: questions made, answers scored.

Every prompt (a group in a template, or nobody in it: the prior) is asked for every adjective, piece by piece. Prompts,
adjectives and measures share questions wherever they can; a question is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.lm import Question
from biassay.measures.word_associations import Measure, Pieces, Variant, word_scores
from biassay.stimuli.abc_model import Abc, SocialGroup, Template, TraitPair
from biassay.texts.prompts import Prompt, ends_with_trait, prior_prompt, prompt_of

__all__ = ["Asked", "Item", "Prior", "Questionnaire", "TraitScores", "pair_scores_of"]

Prior = Literal["mask", "word"]


class Asked(Protocol):
    """A language model, as far as making questions needs it."""

    @property
    def kind(self) -> Literal["masked", "causal"]: ...

    def pieces(self, text: str, word: str) -> tuple[int, ...] | None: ...

    def questions(self, text: str, pieces: Sequence[int], word: str) -> tuple[Question, ...]: ...

    def unknown_tokens(self, text: str) -> int: ...


@dataclass(frozen=True)
class Item:
    """An adjective on one side of a pair."""

    pair: int
    right: bool
    adjective: str


@dataclass(frozen=True, eq=False)
class _Sheet:
    """The questions of one template: places in the list of all questions, of every group and of the prior."""

    template: Template
    items: tuple[int, ...]
    starts: NDArray[np.intp]
    decisive: NDArray[np.bool_]
    own: NDArray[np.intp]
    prior: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TraitScores:
    """Scores (groups, templates, items) of one measure; NaN where there is none."""

    measure: Measure
    scores: NDArray[np.float64]


class Questionnaire:
    """All questions about some groups.

    Attributes
    ----------
    items : tuple of Item
    templates : tuple of Template
        Those that fit the model.
    skipped : tuple of str
        Names of those that do not: a causal model cannot be asked for a trait with words behind it.
    unknown, unknown_groups : tuple of str
        Adjectives and groups of which the model does not know all tokens. Such groups are asked about and get no score.
    questions : tuple of Question
        Each once.
    """

    def __init__(
        self,
        model: Asked,
        abc: Abc,
        groups: Sequence[SocialGroup],
        templates: Sequence[Template],
        *,
        prior: Prior,
        all_adjectives: bool = False,
    ) -> None:
        self.items = _items(abc.pairs, all_adjectives=all_adjectives)
        self.groups, self._model = tuple(groups), model
        self._places: dict[Question, int] = {}
        fitting, skipped, sheets, unknown = [], [], [], set()
        for template in templates:
            nobody = prior_prompt(template, abc, prior)
            if model.kind == "causal" and not ends_with_trait(nobody):
                skipped.append(template.name)
                continue
            plain = prior_prompt(template, abc, "word").text
            pieces = [model.pieces(plain, item.adjective) for item in self.items]
            unknown |= {item.adjective for item, found in zip(self.items, pieces, strict=True) if found is None}
            fitting.append(template)
            sheets.append(self._sheet(template, nobody, pieces))
        self.templates, self.skipped, self._sheets = tuple(fitting), tuple(skipped), sheets
        self.unknown = tuple(sorted(unknown))
        self._lost = [self._is_unknown(group, abc) for group in self.groups]
        self.unknown_groups = tuple(g.name for g, lost in zip(self.groups, self._lost, strict=True) if lost)
        self.questions = tuple(self._places)

    def _is_unknown(self, group: SocialGroup, abc: Abc) -> bool:
        """Whether the words of a group, and not only those of the template, are unknown."""
        for template in self.templates[:1]:
            texts = prompt_of(template, group).text, prior_prompt(template, abc, "word").text
            own, nobody = map(self._model.unknown_tokens, texts)
            if own > nobody:
                return True
        return False

    def _sheet(self, template: Template, nobody: Prompt, pieces: Sequence[tuple[int, ...] | None]) -> _Sheet:
        known = [(i, found) for i, found in enumerate(pieces) if found is not None]
        lengths = [len(found) for _, found in known]
        own = [self._asked(prompt_of(template, group), known) for group in self.groups]
        return _Sheet(
            template=template,
            items=tuple(i for i, _ in known),
            starts=np.cumsum([0, *lengths[:-1]]).astype(np.intp) if known else np.empty(0, dtype=np.intp),
            decisive=_decisive(self.items, dict(known)),
            own=np.array(own, dtype=np.intp).reshape(len(own), sum(lengths)),
            prior=np.array(self._asked(nobody, known), dtype=np.intp),
        )

    def _asked(self, prompt: Prompt, known: Sequence[tuple[int, tuple[int, ...]]]) -> list[int]:
        return [
            self._places.setdefault(question, len(self._places))
            for i, pieces in known
            for question in self._model.questions(prompt.text, pieces, self.items[i].adjective)
        ]

    def scores(self, answers: NDArray[np.floating], measure: Measure, variant: Variant) -> TraitScores:
        """Scores of one measure from the answers (questions, 4) to all questions, in their order."""
        found = np.full((len(self.groups), len(self.templates), len(self.items)), np.nan)
        for at, sheet in enumerate(self._sheets):
            if not sheet.items:
                continue
            prior = Pieces.of(answers[sheet.prior], sheet.starts)
            for group, places in enumerate(sheet.own):
                own = Pieces.of(answers[places], sheet.starts)
                found[group, at, list(sheet.items)] = word_scores(own, prior, measure, variant, sheet.decisive)
        found[self._lost] = np.nan
        return TraitScores(measure, found)


def _items(pairs: Sequence[TraitPair], *, all_adjectives: bool) -> tuple[Item, ...]:
    return tuple(
        Item(place, right, adjective)
        for place, pair in enumerate(pairs)
        for right, adjectives in ((False, pair.left_adjectives), (True, pair.right_adjectives))
        for adjective in (adjectives if all_adjectives else adjectives[:1])
    )


def _decisive(items: Sequence[Item], known: Mapping[int, tuple[int, ...]]) -> NDArray[np.bool_]:
    """Pieces by which an adjective differs from those on the other side of its pair; all, where none differs."""
    marks: list[bool] = []
    for i, pieces in known.items():
        others = [known[j] for j, other in enumerate(items) if j in known and _opposite(items[i], other)]
        shared = max((_common(pieces, other) for other in others), default=0)
        marks += [shared == len(pieces) or place >= shared for place in range(len(pieces))]
    return np.array(marks, dtype=bool)


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
