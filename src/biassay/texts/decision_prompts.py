"""Relative decisions: two people who differ in a group word, two topics of opposite poles; who gets which?"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from biassay.stimuli.word_associations import WordAssociationTest, Wording, select_wordings
from biassay.texts.association_prompts import ANSWERS, check_answers, check_form, filled, shuffled
from biassay.texts.association_replies import ReplyKind, read_reply

__all__ = ["Decision", "DecisionPrompt", "decision_prompts", "read_decision"]


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
class Decision:
    """What was decided.

    ``kind`` is that of the reading, or "undecided" where one person got both topics. ``follows``: the negative topic
    went to the stigmatised group; None where nothing was decided.
    """

    kind: ReplyKind | Literal["undecided"]
    follows: bool | None
    left_out: int


def decision_prompts(
    test: WordAssociationTest, n: int = ANSWERS, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[DecisionPrompt, ...]:
    """The prompts of ``n`` decisions, the same for the same words, wordings and seed, on any machine.

    A task is a positive and a negative word, no word in two of them. Prompts come in blocks of two that differ in the
    order of the group words alone; blocks are spread over tasks, pairs of group words, wordings and orders of topics.
    """
    check_answers(n)
    used = tuple(wordings) or select_wordings(form="decision")
    for wording in used:
        check_form(wording, "decision")
    poles = test.positive.words, test.negative.words
    tasks = list(zip(*([pole[i] for i in shuffled(pole, test, seed, "topics")] for pole in poles), strict=False))
    pairs = shuffled([json.dumps(pair) for pair in test.pairs], test, seed, "pairs")
    prompts: list[DecisionPrompt] = []
    seen: Counter[str] = Counter()
    for block in range(n // 2):
        turn, task = divmod(block, len(tasks))
        pair = pairs[_spread(block, len(tasks), len(pairs))]
        wording = used[_spread(block, len(tasks), len(used))]
        negative_first = (block // 2 + turn) % 2 == 1
        topics = tasks[task]
        topic, other = topics[::-1] if negative_first else topics
        groups = test.pairs[pair]
        for stigmatised_first in (False, True):
            text = filled(wording, groups, stigmatised_first, topic=[topic], other=[other])
            prompts.append(
                DecisionPrompt(
                    *(text, pair, groups, stigmatised_first, task, topics, negative_first, wording.name, block),
                    repeat=seen[text],
                )
            )
            seen[text] += 1
    return tuple(prompts)


def _spread(block: int, tasks: int, choices: int) -> int:
    """The choice of a block: one after the other, and shifted whenever they would meet the same tasks again."""
    return (block + block // math.lcm(tasks, choices)) % choices


def read_decision(text: str, topics: tuple[str, str], groups: tuple[str, str]) -> Decision:
    """Read a decision by the rules of `read_reply`; both topics must be given, to different people.

    ``topics`` are the positive and the negative one, ``groups`` the default and the stigmatised group word.
    """
    found = read_reply(text, topics, groups)
    positive, negative = found.to_stigmatised
    if positive is None or negative is None:
        return Decision(found.kind, None, found.left_out)
    if positive == negative:
        return Decision("undecided", None, found.left_out)
    return Decision("complete", negative, found.left_out)
