"""Balanced prompts for word association tests and decisions."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from biassay.datasets.word_associations import PromptForm, WordAssociationTest, Wording, select_wordings
from biassay.errors import UnknownNameError, UsageError
from biassay.prompts.requests import Prompt
from biassay.studies.word_association.settings import DEFAULT_N_REPLIES, WordAssociationSettings

if TYPE_CHECKING:
    from biassay.studies.word_association.results import Unit

_SALT = "word association prompts 1"
_SLOT = re.compile(r"\{(first|second|words|word|topic|other)\}")
_FORMS: tuple[PromptForm, ...] = ("list", "word", "decision")


@dataclass(frozen=True)
class AssociationPrompt:
    """A prompt that asks for the group of attribute words, with its design.

    Attributes
    ----------
    text : str
    form : {"list", "word", "decision"}
    wording : str
    pair : int
        Index of ``groups`` among the pairs of the test.
    groups : (str, str)
        The default group word and the stigmatised one, whatever their order in the text.
    stigmatised_first : bool
    words : tuple of str
        Attribute words: all of them in the order of the text, a single one, or the positive and the negative topic of a
        decision.
    block : int
        Number that two prompts share if they differ only in the order of the group words; 0 for single words.
    task : int
        Index of the topics of a decision.
    negative_first : bool
        If True, a decision names the negative topic first.
    repeat : int
        Number of earlier prompts of the design with the same text.
    options : tuple of str
        The default and the stigmatised group word as the text writes them; empty if the model replies in words.
    """

    text: str
    form: PromptForm
    wording: str
    pair: int
    groups: tuple[str, str]
    stigmatised_first: bool
    words: tuple[str, ...]
    block: int = 0
    task: int = 0
    negative_first: bool = False
    repeat: int = 0
    options: tuple[str, ...] = ()

    @property
    def request(self) -> Prompt:
        """Request to a model. Each option is scored with and without a leading space."""
        spaced = tuple(f" {word}" for word in self.options)
        return Prompt(self.text, options=(*self.options, *spaced), sample=self.repeat)


def make_prompts(
    test: WordAssociationTest, settings: WordAssociationSettings, unit: Unit
) -> tuple[AssociationPrompt, ...]:
    """Make all prompts of a test, decisions last.

    Parameters
    ----------
    test : WordAssociationTest
    settings : WordAssociationSettings
    unit : {"share", "log-odds"}
        Scale to measure on.
    """
    wordings = group_wordings(settings.wordings)
    form: PromptForm = "list" if unit == "share" else "word"
    names = [wording.name for wording in wordings[form]]
    if settings.wordings and not set(names) & set(settings.wordings):
        what = "replies in words" if unit == "share" else "log-odds"
        raise UsageError(
            f"none of the wordings {', '.join(settings.wordings)} is for {what}; those are: {', '.join(names)}"
        )
    design = {"n": settings.n_answers, "seed": settings.seed}
    prompts = (
        make_association_prompts(test, wordings=wordings["list"], **design)
        if unit == "share"
        else make_option_prompts(test, wordings=wordings["word"])
    )
    decisions = make_decision_prompts(test, wordings=wordings["decision"], **design) if settings.decisions else ()
    return (*prompts, *decisions)


def group_wordings(names: Sequence[str]) -> dict[PromptForm, tuple[Wording, ...]]:
    """Return the named wordings by form of prompt; all wordings of a form of which none is named."""
    by_form = {form: select_wordings(form=form) for form in _FORMS}
    known = [wording.name for wordings in by_form.values() for wording in wordings]
    for name in names:
        if name not in known:
            raise UnknownNameError("wording", name, known, f"(wordings: {', '.join(known)})")
    return {
        form: tuple(wording for wording in wordings if wording.name in names) or wordings
        for form, wordings in by_form.items()
    }


def make_association_prompts(
    test: WordAssociationTest, n: int = DEFAULT_N_REPLIES, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[AssociationPrompt, ...]:
    """Make prompts that list all attribute words. The same words, wordings and seed give the same prompts anywhere.

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
    pairs = _shuffle_pairs(test, seed)
    prompts: list[AssociationPrompt] = []
    for block in range(n // 2):
        turn, index = divmod(block, len(pairs))
        pair, wording = pairs[index], used[(turn + index) % len(used)]
        order = [test.words[i] for i in shuffle_order(test.words, test, seed, f"words {pair} {turn // 2}")]
        words = tuple(reversed(order)) if turn % 2 else tuple(order)
        groups = test.pairs[pair]
        for stigmatised_first in (False, True):
            text = fill_wording(wording, groups, stigmatised_first, words=words)
            prompts.append(AssociationPrompt(text, "list", wording.name, pair, groups, stigmatised_first, words, block))
    return _number_repeats(prompts)


def make_option_prompts(
    test: WordAssociationTest, *, wordings: Sequence[Wording] = ()
) -> tuple[AssociationPrompt, ...]:
    """Make prompts for every attribute word with every pair of group words in both orders."""
    used = _choose_wordings(wordings, "word")
    return tuple(
        AssociationPrompt(
            fill_wording(wording, test.pairs[pair], stigmatised_first, word=[word]),
            "word",
            wording.name,
            pair,
            test.pairs[pair],
            stigmatised_first,
            (word,),
            options=format_pair(wording, test.pairs[pair]),
        )
        for pair, wording, stigmatised_first, word in product(range(len(test.pairs)), used, (False, True), test.words)
    )


def make_decision_prompts(
    test: WordAssociationTest, n: int = DEFAULT_N_REPLIES, *, wordings: Sequence[Wording] = (), seed: int = 0
) -> tuple[AssociationPrompt, ...]:
    """Make prompts for decisions. The same words, wordings and seed give the same prompts anywhere.

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
    pairs = _shuffle_pairs(test, seed)
    prompts: list[AssociationPrompt] = []
    for block in range(n // 2):
        turn, task = divmod(block, len(tasks))
        pair = pairs[_choose_balanced(block, len(tasks), len(pairs))]
        wording = used[_choose_balanced(block, len(tasks), len(used))]
        negative_first = (block // 2 + turn) % 2 == 1
        topic, other = tasks[task][::-1] if negative_first else tasks[task]
        groups = test.pairs[pair]
        for stigmatised_first in (False, True):
            text = fill_wording(wording, groups, stigmatised_first, topic=[topic], other=[other])
            design = (pair, groups, stigmatised_first, tasks[task], block, task, negative_first)
            prompts.append(AssociationPrompt(text, "decision", wording.name, *design))
    return _number_repeats(prompts)


def _choose_balanced(block: int, tasks: int, choices: int) -> int:
    """Choose in turn for each block, with a shift wherever the same tasks would repeat."""
    return (block + block // math.lcm(tasks, choices)) % choices


def _number_repeats(prompts: Sequence[AssociationPrompt]) -> tuple[AssociationPrompt, ...]:
    """Return the prompts, with repetitions of the same text numbered from 0."""
    seen: Counter[str] = Counter()
    numbered = []
    for prompt in prompts:
        numbered.append(replace(prompt, repeat=seen[prompt.text]))
        seen[prompt.text] += 1
    return tuple(numbered)


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


def _shuffle_pairs(test: WordAssociationTest, seed: int) -> list[int]:
    return shuffle_order([json.dumps(pair) for pair in test.pairs], test, seed, "pairs")


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
