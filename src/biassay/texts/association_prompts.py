"""Prompts of a word association test, balanced over everything that must not decide the answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from biassay.errors import UsageError
from biassay.stimuli.word_associations import Form, WordAssociationTest, Wording, select_wordings

__all__ = [
    "ANSWERS",
    "AssociationPrompt",
    "OptionPrompt",
    "association_prompts",
    "check_answers",
    "check_form",
    "filled",
    "option_prompts",
    "shuffled",
]

ANSWERS = 50
_SALT = "word association prompts 1"
_SLOT = re.compile(r"\{(first|second|words|word|topic|other)\}")


@dataclass(frozen=True)
class AssociationPrompt:
    """A prompt that lists all attribute words, and what was chosen for it.

    Attributes
    ----------
    text : str
    pair : int
        Place of ``groups`` among the pairs of the test.
    groups : (str, str)
        The default group word and the stigmatised one, whatever their order in the text.
    stigmatised_first : bool
    words : tuple of str
        In the order of the text.
    wording : str
    block : int
        Two prompts that differ in the order of the group words alone have the same.
    repeat : int
        How many earlier prompts of the design have the same text.
    """

    text: str
    pair: int
    groups: tuple[str, str]
    stigmatised_first: bool
    words: tuple[str, ...]
    wording: str
    block: int
    repeat: int = 0


@dataclass(frozen=True)
class OptionPrompt:
    """A prompt about one attribute word, for models that give the probability of either group word.

    ``options`` are the default group word and the stigmatised one, written as in the text.
    """

    text: str
    pair: int
    groups: tuple[str, str]
    options: tuple[str, str]
    stigmatised_first: bool
    word: str
    wording: str


def association_prompts(
    test: WordAssociationTest, n: int = ANSWERS, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[AssociationPrompt, ...]:
    """The prompts of ``n`` answers; the same for the same words, wordings and seed, on any machine.

    Prompts come in blocks of two that differ in the order of the group words alone: an answer that follows from places
    in the text, not from words, gives nothing to either group within a block. Blocks are spread over pairs of group
    words and wordings as evenly as their number allows; every second block of a pair lists the words in the reverse
    order of the one before. With fewer blocks than pairs, pairs are drawn.
    """
    check_answers(n)
    used = tuple(wordings) or select_wordings()
    for wording in used:
        check_form(wording, "list")
    pairs = shuffled([json.dumps(pair) for pair in test.pairs], test, seed, "pairs")
    prompts: list[AssociationPrompt] = []
    seen: Counter[str] = Counter()
    for block in range(n // 2):
        turn, place = divmod(block, len(pairs))
        pair, wording = pairs[place], used[(turn + place) % len(used)]
        order = [test.words[i] for i in shuffled(test.words, test, seed, f"words {pair} {turn // 2}")]
        words = tuple(reversed(order)) if turn % 2 else tuple(order)
        groups = test.pairs[pair]
        for stigmatised_first in (False, True):
            text = filled(wording, groups, stigmatised_first, words=words)
            prompts.append(
                AssociationPrompt(text, pair, groups, stigmatised_first, words, wording.name, block, seen[text])
            )
            seen[text] += 1
    return tuple(prompts)


def option_prompts(
    test: WordAssociationTest, *, wordings: Sequence[Wording] = (), pairs: Sequence[int] | None = None
) -> tuple[OptionPrompt, ...]:
    """Every attribute word with every pair of group words in both orders: by pair, wording, order, then word.

    ``pairs`` are places of pairs, all of them by default.
    """
    used = tuple(wordings) or select_wordings(form="word")
    for wording in used:
        check_form(wording, "word")
    places = range(len(test.pairs)) if pairs is None else pairs
    return tuple(
        OptionPrompt(
            filled(wording, test.pairs[pair], stigmatised_first, word=[word]),
            pair,
            test.pairs[pair],
            cased_pair(wording, test.pairs[pair]),
            stigmatised_first,
            word,
            wording.name,
        )
        for pair, wording, stigmatised_first, word in product(places, used, (False, True), test.words)
    )


def check_form(wording: Wording, form: Form) -> None:
    """Refuse a wording for another kind of prompts."""
    if wording.form != form:
        raise UsageError(f"the wording {wording.name!r} is for prompts of the form {wording.form!r}, not {form!r}")


def check_answers(n: int) -> None:
    """Refuse a number of answers that cannot be balanced."""
    if n < 2 or n % 2:
        raise UsageError(
            f"the number of answers must be even and at least 2, got {n}: every prompt is asked with both orders of "
            "the group words"
        )


def filled(wording: Wording, groups: tuple[str, str], stigmatised_first: bool, **slots: Sequence[str]) -> str:
    """A wording with the group words in their order, and the attribute words of every other slot."""
    default, stigmatised = cased_pair(wording, groups)
    first, second = (stigmatised, default) if stigmatised_first else (default, stigmatised)
    filling = {"first": first, "second": second}
    for slot, words in slots.items():
        listed = [word.lower() for word in words] if wording.lower_case else list(words)
        filling[slot] = str(listed) if wording.quoted else ", ".join(listed)
    return _SLOT.sub(lambda slot: filling[slot[1]], wording.text)


def cased_pair(wording: Wording, groups: tuple[str, str]) -> tuple[str, str]:
    """Group words as the wording writes them."""
    return (groups[0].lower(), groups[1].lower()) if wording.lower_case else groups


def shuffled(items: Sequence[str], test: WordAssociationTest, seed: int, what: str) -> list[int]:
    """Places of the items in an order that depends on nothing but the contents and the seed."""

    def key(item: str) -> bytes:
        content = json.dumps([_SALT, seed, test.digest, what, item])
        return hashlib.blake2b(content.encode(), digest_size=16).digest()

    return sorted(range(len(items)), key=lambda i: key(items[i]))
