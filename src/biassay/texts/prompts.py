"""Sentences that ask a language model for a trait: a group in a template, the trait left open."""

from __future__ import annotations

import re
from typing import Literal

from biassay.stimuli.abc_model import Abc, SocialGroup, Template
from biassay.texts.requests import Segments, Slot

__all__ = ["ends_with_trait", "prior_prompt", "prompt_of"]

_SLOT = re.compile(r"(\{(?:group|Group|a group|A group|trait)\})")
_PUNCTUATION = re.compile(r"\W*")
_VOWELS = tuple("aeiouAEIOU")


def prompt_of(template: Template, group: SocialGroup) -> Segments:
    """A template with the form of the group that it asks for."""
    form = group.form(template.number)
    return _filled(template.text, form, group.article or _article(form))


def prior_prompt(template: Template, abc: Abc, prior: Literal["mask", "word"] = "mask") -> Segments:
    """The same sentence about nobody in particular: with the group masked, or with a word such as "person"."""
    form = Slot.MASKED if prior == "mask" else abc.prior_word(template.number)
    return _filled(template.text, form, _article(form))


def ends_with_trait(segments: Segments) -> bool:
    """Whether nothing but punctuation follows the trait, so that a model that reads from the left can be asked."""
    after = segments[segments.index(Slot.BLANK) + 1 :]
    return all(isinstance(part, str) and _PUNCTUATION.fullmatch(part) for part in after)


def _filled(text: str, form: str | Slot, article: str) -> Segments:
    with_article = (f"{article} ", form)
    fillings: dict[str, Segments] = {
        "{group}": (form,),
        "{Group}": _capital((form,)),
        "{a group}": with_article,
        "{A group}": _capital(with_article),
        "{trait}": (Slot.BLANK,),
    }
    parts = [one for part in _SLOT.split(text) for one in fillings.get(part, (part,)) if one != ""]
    return _capital(_merged(parts))


def _merged(parts: list[str | Slot]) -> Segments:
    """The same with neighbouring texts joined: one text is one request, whatever template it is made from."""
    merged: list[str | Slot] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)


def _capital(segments: Segments) -> Segments:
    """Only the first letter, and none of a slot."""
    first = segments[0]
    return (first[0].upper() + first[1:], *segments[1:]) if isinstance(first, str) else segments


def _article(form: str | Slot) -> str:
    return "an" if isinstance(form, str) and form.startswith(_VOWELS) else "a"
