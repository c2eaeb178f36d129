"""Balanced prompts for word association tests and decisions."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from biassay.datasets.word_associations import PromptForm, WordAssociationTest, Wording, select_wordings
from biassay.errors import UsageError
from biassay.studies.word_association.replies import ReplyKind, parse_reply

__all__ = [
    "DEFAULT_N_REPLIES",
    "AssociationPrompt",
    "DecisionPrompt",
    "OptionPrompt",
    "ParsedDecision",
    "check_n_replies",
    "check_wording_form",
    "fill_wording",
    "make_association_prompts",
    "make_decision_prompts",
    "make_option_prompts",
    "parse_decision",
    "shuffle_order",
]


DEFAULT_N_REPLIES = 50
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


def make_association_prompts(
    test: WordAssociationTest, n: int = DEFAULT_N_REPLIES, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[AssociationPrompt, ...]:
    """The prompts of ``n`` answers; the same for the same words, wordings and seed, on any machine.

    Prompts come in blocks of two that differ in the order of the group words alone: an answer that follows from places
    in the text, not from words, gives nothing to either group within a block. Blocks are spread over pairs of group
    words and wordings as evenly as their number allows; every second block of a pair lists the words in the reverse
    order of the one before. With fewer blocks than pairs, pairs are drawn.
    """
    check_n_replies(n)
    used = tuple(wordings) or select_wordings()
    for wording in used:
        check_wording_form(wording, "list")
    pairs = shuffle_order([json.dumps(pair) for pair in test.pairs], test, seed, "pairs")
    prompts: list[AssociationPrompt] = []
    seen: Counter[str] = Counter()
    for block in range(n // 2):
        turn, place = divmod(block, len(pairs))
        pair, wording = pairs[place], used[(turn + place) % len(used)]
        order = [test.words[i] for i in shuffle_order(test.words, test, seed, f"words {pair} {turn // 2}")]
        words = tuple(reversed(order)) if turn % 2 else tuple(order)
        groups = test.pairs[pair]
        for stigmatised_first in (False, True):
            text = fill_wording(wording, groups, stigmatised_first, words=words)
            prompts.append(
                AssociationPrompt(text, pair, groups, stigmatised_first, words, wording.name, block, seen[text])
            )
            seen[text] += 1
    return tuple(prompts)


def make_option_prompts(
    test: WordAssociationTest, *, wordings: Sequence[Wording] = (), pairs: Sequence[int] | None = None
) -> tuple[OptionPrompt, ...]:
    """Every attribute word with every pair of group words in both orders: by pair, wording, order, then word.

    ``pairs`` are places of pairs, all of them by default.
    """
    used = tuple(wordings) or select_wordings(form="word")
    for wording in used:
        check_wording_form(wording, "word")
    places = range(len(test.pairs)) if pairs is None else pairs
    return tuple(
        OptionPrompt(
            fill_wording(wording, test.pairs[pair], stigmatised_first, word=[word]),
            pair,
            test.pairs[pair],
            format_pair(wording, test.pairs[pair]),
            stigmatised_first,
            word,
            wording.name,
        )
        for pair, wording, stigmatised_first, word in product(places, used, (False, True), test.words)
    )


def check_wording_form(wording: Wording, form: PromptForm) -> None:
    """Refuse a wording for another kind of prompts."""
    if wording.form != form:
        raise UsageError(f"the wording {wording.name!r} is for prompts of the form {wording.form!r}, not {form!r}")


def check_n_replies(n: int) -> None:
    """Refuse a number of answers that cannot be balanced."""
    if n < 2 or n % 2:
        raise UsageError(
            f"the number of answers must be even and at least 2, got {n}: every prompt is asked with both orders of "
            "the group words"
        )


def fill_wording(wording: Wording, groups: tuple[str, str], stigmatised_first: bool, **slots: Sequence[str]) -> str:
    """A wording with the group words in their order, and the attribute words of every other slot."""
    default, stigmatised = format_pair(wording, groups)
    first, second = (stigmatised, default) if stigmatised_first else (default, stigmatised)
    filling = {"first": first, "second": second}
    for slot, words in slots.items():
        listed = [word.lower() for word in words] if wording.lower_case else list(words)
        filling[slot] = str(listed) if wording.quoted else ", ".join(listed)
    return _SLOT.sub(lambda slot: filling[slot[1]], wording.text)


def format_pair(wording: Wording, groups: tuple[str, str]) -> tuple[str, str]:
    """Group words as the wording writes them."""
    return (groups[0].lower(), groups[1].lower()) if wording.lower_case else groups


def shuffle_order(items: Sequence[str], test: WordAssociationTest, seed: int, what: str) -> list[int]:
    """Places of the items in an order that depends on nothing but the contents and the seed."""

    def key(item: str) -> bytes:
        content = json.dumps([_SALT, seed, test.digest, what, item])
        return hashlib.blake2b(content.encode(), digest_size=16).digest()

    return sorted(range(len(items)), key=lambda i: key(items[i]))


@dataclass(frozen=True)
class DecisionPrompt:
    """A prompt for one decision, and what was chosen for it.

    ``topics`` are the positive and the negative word, ``task`` the number of the two; ``groups`` are the default group
    word and the stigmatised one, ``pair`` their place in the test. The other fields are those of `AssociationPrompt`.
    """

    text: str
    pair: int
    groups: tuple[str, str]
    stigmatised_first: bool
    task: int
    topics: tuple[str, str]
    negative_first: bool
    wording: str
    block: int
    repeat: int = 0


@dataclass(frozen=True)
class ParsedDecision:
    """What was decided.

    ``kind`` is that of the reading, or "undecided" where one person got both topics. ``follows``: the negative topic
    went to the stigmatised group; None where nothing was decided.
    """

    kind: ReplyKind | Literal["undecided"]
    follows: bool | None
    left_out: int


def make_decision_prompts(
    test: WordAssociationTest, n: int = DEFAULT_N_REPLIES, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[DecisionPrompt, ...]:
    """The prompts of ``n`` decisions, the same for the same words, wordings and seed, on any machine.

    A task is a positive and a negative word, no word in two of them. Prompts come in blocks of two that differ in the
    order of the group words alone; blocks are spread over tasks, pairs of group words, wordings and orders of topics.
    """
    check_n_replies(n)
    used = tuple(wordings) or select_wordings(form="decision")
    for wording in used:
        check_wording_form(wording, "decision")
    poles = test.positive.words, test.negative.words
    tasks = list(zip(*([pole[i] for i in shuffle_order(pole, test, seed, "topics")] for pole in poles), strict=False))
    pairs = shuffle_order([json.dumps(pair) for pair in test.pairs], test, seed, "pairs")
    prompts: list[DecisionPrompt] = []
    seen: Counter[str] = Counter()
    for block in range(n // 2):
        turn, task = divmod(block, len(tasks))
        pair = pairs[_choose_balanced(block, len(tasks), len(pairs))]
        wording = used[_choose_balanced(block, len(tasks), len(used))]
        negative_first = (block // 2 + turn) % 2 == 1
        topics = tasks[task]
        topic, other = topics[::-1] if negative_first else topics
        groups = test.pairs[pair]
        for stigmatised_first in (False, True):
            text = fill_wording(wording, groups, stigmatised_first, topic=[topic], other=[other])
            prompts.append(
                DecisionPrompt(
                    *(text, pair, groups, stigmatised_first, task, topics, negative_first, wording.name, block),
                    repeat=seen[text],
                )
            )
            seen[text] += 1
    return tuple(prompts)


def _choose_balanced(block: int, tasks: int, choices: int) -> int:
    """The choice of a block: one after the other, and shifted whenever they would meet the same tasks again."""
    return (block + block // math.lcm(tasks, choices)) % choices


def parse_decision(text: str, topics: tuple[str, str], groups: tuple[str, str]) -> ParsedDecision:
    """Read a decision by the rules of `read_reply`; both topics must be given, to different people.

    ``topics`` are the positive and the negative one, ``groups`` the default and the stigmatised group word.
    """
    found = parse_reply(text, topics, groups)
    positive, negative = found.to_stigmatised
    if positive is None or negative is None:
        return ParsedDecision(found.kind, None, found.left_out)
    if positive == negative:
        return ParsedDecision("undecided", None, found.left_out)
    return ParsedDecision("complete", negative, found.left_out)
