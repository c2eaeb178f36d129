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

DEFAULT_N_REPLIES = 50
_SALT = "word association prompts 1"
_SLOT = re.compile(r"\{(first|second|words|word|topic|other)\}")


@dataclass(frozen=True)
class AssociationPrompt:
    """A prompt that lists all attribute words, with its design.

    Attributes
    ----------
    text : str
    pair : int
        Index of ``groups`` among the pairs of the test.
    groups : (str, str)
        The default group word and the stigmatised one, whatever their order in the text.
    stigmatised_first : bool
    words : tuple of str
        In the order of the text.
    wording : str
    block : int
        Number shared by two prompts that differ only in the order of the group words.
    repeat : int
        Number of earlier prompts of the design with the same text.
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
    """Make the prompts of a test. The same words, wordings and seed give the same prompts on any machine.

    Prompts come in blocks of two that differ only in the order of the group words, so that a model that chooses by
    position favours neither group within a block. Blocks are spread over pairs of group words and wordings as evenly as
    their number allows. Every second block of a pair reverses the word order of the block before. With fewer blocks
    than pairs, pairs are sampled.

    Parameters
    ----------
    test : WordAssociationTest
    n : int
        Number of prompts, which must be even.
    wordings : sequence of Wording
        Wordings of the form "list"; by default all.
    seed : int
    """
    check_n_replies(n)
    used = _choose_wordings(wordings, "list")
    pairs = shuffle_order([json.dumps(pair) for pair in test.pairs], test, seed, "pairs")
    prompts: list[AssociationPrompt] = []
    seen: Counter[str] = Counter()
    for block in range(n // 2):
        turn, index = divmod(block, len(pairs))
        pair, wording = pairs[index], used[(turn + index) % len(used)]
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
    """Make prompts for every attribute word with every pair of group words in both orders.

    Parameters
    ----------
    test : WordAssociationTest
    wordings : sequence of Wording
        Wordings of the form "word"; by default all.
    pairs : sequence of int, optional
        Indices of pairs of group words; by default all.
    """
    used = _choose_wordings(wordings, "word")
    indices = range(len(test.pairs)) if pairs is None else pairs
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
        for pair, wording, stigmatised_first, word in product(indices, used, (False, True), test.words)
    )


def _choose_wordings(wordings: Sequence[Wording], form: PromptForm) -> tuple[Wording, ...]:
    """Return the wordings, by default all of a form. Raise UsageError if one is for another form of prompts."""
    for wording in wordings:
        if wording.form != form:
            raise UsageError(f"the wording {wording.name!r} is for prompts of the form {wording.form!r}, not {form!r}")
    return tuple(wordings) or select_wordings(form=form)


def check_n_replies(n: int) -> None:
    """Raise UsageError if a number of responses cannot be balanced."""
    if n < 2 or n % 2:
        raise UsageError(
            f"the number of answers must be even and at least 2, got {n}, because every prompt is used with both "
            "orders of the group words"
        )


def fill_wording(wording: Wording, groups: tuple[str, str], stigmatised_first: bool, **slots: Sequence[str]) -> str:
    """Fill a wording with the group words in their order, and with the attribute words of the other slots.

    Parameters
    ----------
    wording : Wording
    groups : (str, str)
        The default group word and the stigmatised one.
    stigmatised_first : bool
    **slots : sequence of str
        Words by slot.
    """
    default, stigmatised = format_pair(wording, groups)
    first, second = (stigmatised, default) if stigmatised_first else (default, stigmatised)
    filling = {"first": first, "second": second}
    for slot, words in slots.items():
        listed = [word.lower() for word in words] if wording.lower_case else list(words)
        filling[slot] = str(listed) if wording.quoted else ", ".join(listed)
    return _SLOT.sub(lambda slot: filling[slot[1]], wording.text)


def format_pair(wording: Wording, groups: tuple[str, str]) -> tuple[str, str]:
    """Return group words as the wording writes them."""
    return (groups[0].lower(), groups[1].lower()) if wording.lower_case else groups


def shuffle_order(items: Sequence[str], test: WordAssociationTest, seed: int, what: str) -> list[int]:
    """Return indices of the items in an order that depends only on the contents and the seed.

    Parameters
    ----------
    items : sequence of str
    test : WordAssociationTest
    seed : int
    what : str
        Purpose of the order.
    """

    def key(item: str) -> bytes:
        content = json.dumps([_SALT, seed, test.digest, what, item])
        return hashlib.blake2b(content.encode(), digest_size=16).digest()

    return sorted(range(len(items)), key=lambda i: key(items[i]))


@dataclass(frozen=True)
class DecisionPrompt:
    """A prompt for one decision, with its design.

    ``topics`` are the positive and the negative word, and ``task`` is their index. ``groups`` are the default group
    word and the stigmatised one, and ``pair`` is their index. The other fields are those of `AssociationPrompt`.
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
    """A parsed decision.

    ``kind`` is the kind of the reply, or "undecided" if one person gets both topics. If ``follows`` is True, the
    negative topic goes to the stigmatised group; it is None if no decision was read.
    """

    kind: ReplyKind | Literal["undecided"]
    follows: bool | None
    left_out: int


def make_decision_prompts(
    test: WordAssociationTest, n: int = DEFAULT_N_REPLIES, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[DecisionPrompt, ...]:
    """Make prompts for decisions. The same words, wordings and seed give the same prompts on any machine.

    A task is a positive and a negative word; no word is in two tasks. Prompts come in blocks of two that differ only in
    the order of the group words. Blocks are spread over tasks, pairs of group words, wordings and orders of topics.

    Parameters
    ----------
    test : WordAssociationTest
    n : int
        Number of prompts, which must be even.
    wordings : sequence of Wording
        Wordings of the form "decision"; by default all.
    seed : int
    """
    check_n_replies(n)
    used = _choose_wordings(wordings, "decision")
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
    """Choose in turn for each block, with a shift wherever the same tasks would repeat."""
    return (block + block // math.lcm(tasks, choices)) % choices


def parse_decision(text: str, topics: tuple[str, str], groups: tuple[str, str]) -> ParsedDecision:
    """Parse a decision by the rules of `parse_reply`. It must assign the topics to different people.

    Parameters
    ----------
    text : str
    topics : (str, str)
        The positive and the negative topic.
    groups : (str, str)
        The default and the stigmatised group word.
    """
    parsed = parse_reply(text, topics, groups)
    positive, negative = parsed.to_stigmatised
    if positive is None or negative is None:
        return ParsedDecision(parsed.kind, None, parsed.left_out)
    if positive == negative:
        return ParsedDecision("undecided", None, parsed.left_out)
    return ParsedDecision("complete", negative, parsed.left_out)
