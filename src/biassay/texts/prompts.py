"""Sentences that ask a language model for a trait: a group in a template, the trait left open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from biassay.stimuli.abc_model import Abc, SocialGroup, Template

__all__ = ["Prompt", "ends_with_trait", "prior_prompt", "prompt_of"]

_SLOT = re.compile(r"\{(group|Group|a group|A group)\}")
_TRAIT_LAST = re.compile(r"\{trait\}\W*")
_VOWELS = tuple("aeiouAEIOU")


@dataclass(frozen=True)
class Prompt:
    """A sentence with ``{trait}`` where the trait goes and, if the group is masked, ``{mask}`` where it would be."""

    template: str
    group: str
    text: str


def prompt_of(template: Template, group: SocialGroup) -> Prompt:
    """A template with the form of the group that it asks for."""
    form = group.form(template.number)
    return Prompt(template.name, group.name, _filled(template.text, form, group.article or _article(form)))


def prior_prompt(template: Template, abc: Abc, prior: Literal["mask", "word"] = "mask") -> Prompt:
    """The same sentence about nobody in particular: with the group masked, or with the word for anybody."""
    form = "{mask}" if prior == "mask" else abc.prior_word(template.number)
    return Prompt(template.name, f"prior:{prior}", _filled(template.text, form, _article(form)))


def ends_with_trait(prompt: Prompt) -> bool:
    """Whether nothing but punctuation follows the trait, so that a model that reads from the left can be asked."""
    return _TRAIT_LAST.fullmatch(prompt.text, prompt.text.index("{trait}")) is not None


def _filled(text: str, form: str, article: str) -> str:
    with_article = f"{article} {form}"
    fillings = {"group": form, "Group": _capital(form), "a group": with_article, "A group": _capital(with_article)}
    return _capital(_SLOT.sub(lambda slot: fillings[slot[1]], text))


def _capital(text: str) -> str:
    """Only the first letter, and none of a slot: ``{mask}`` and ``{trait}`` stay as they are."""
    return text[0].upper() + text[1:]


def _article(form: str) -> str:
    return "an" if form.startswith(_VOWELS) else "a"
