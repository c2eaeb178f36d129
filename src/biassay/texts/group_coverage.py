"""Groups and traits as words to look for, and whether they have enough contexts: for the table and the measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from biassay.stimuli.abc_model import Abc, SocialGroup, TraitPair

__all__ = ["AbcCoverage", "PairCoverage", "abc_coverage", "abc_words", "adjectives_of", "forms_of"]

Counts = tuple[tuple[str, int], ...]


def forms_of(group: SocialGroup) -> tuple[str, ...]:
    """The words for a group: a context of any of them is a context of the group."""
    return tuple(dict.fromkeys((group.singular, group.plural)))


def adjectives_of(pair: TraitPair, *, all_adjectives: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The adjectives of the left and of the right side that are asked about: the first one, or all."""
    sides = pair.left_adjectives, pair.right_adjectives
    return sides if all_adjectives else (sides[0][:1], sides[1][:1])


def abc_words(abc: Abc, *, all_adjectives: bool = False) -> tuple[str, ...]:
    """Everything that is looked for, each once: forms of groups, then adjectives."""
    forms = [form for group in abc.groups for form in forms_of(group)]
    sides = [side for pair in abc.pairs for side in adjectives_of(pair, all_adjectives=all_adjectives)]
    return tuple(dict.fromkeys((*forms, *(word for side in sides for word in side))))


@dataclass(frozen=True)
class PairCoverage:
    """The contexts of the adjectives of one pair. It is measurable where either side has an adjective with enough."""

    pair: str
    left: Counts
    right: Counts
    least: int

    @property
    def measurable(self) -> bool:
        return all(any(count >= self.least for _, count in side) for side in (self.left, self.right))


@dataclass(frozen=True)
class AbcCoverage:
    """The contexts of all groups, in any of their forms, and of all pairs; ``least`` are needed of each word."""

    groups: Counts
    pairs: tuple[PairCoverage, ...]
    least: int

    @property
    def adjectives(self) -> dict[str, int]:
        return {word: count for pair in self.pairs for side in (pair.left, pair.right) for word, count in side}

    @property
    def few_groups(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.groups if count < self.least)

    @property
    def few_adjectives(self) -> tuple[str, ...]:
        return tuple(word for word, count in self.adjectives.items() if count < self.least)

    @property
    def measurable_groups(self) -> tuple[str, ...]:
        return tuple(name for name, count in self.groups if count >= self.least)

    @property
    def measurable_pairs(self) -> tuple[str, ...]:
        return tuple(pair.pair for pair in self.pairs if pair.measurable)


def abc_coverage(
    count: Callable[[str], int],
    groups: Sequence[SocialGroup],
    pairs: Sequence[TraitPair],
    least: int,
    *,
    all_adjectives: bool = False,
) -> AbcCoverage:
    """How many contexts groups and adjectives have, by what ``count`` says of a word."""
    found = []
    for pair in pairs:
        left, right = (
            tuple((word, count(word)) for word in side) for side in adjectives_of(pair, all_adjectives=all_adjectives)
        )
        found.append(PairCoverage(pair.name, left, right, least))
    return AbcCoverage(tuple((group.name, sum(map(count, forms_of(group)))) for group in groups), tuple(found), least)
