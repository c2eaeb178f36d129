"""Traits, social groups and templates of the ABC stereotype measures, and the groups that two groups make."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from itertools import product
from typing import Literal

from biassay.errors import UnknownNameError
from biassay.stimuli.model import Source

__all__ = ["Abc", "Exclusion", "Number", "SocialGroup", "Template", "TraitPair", "pair_key", "paired_groups"]

Number = Literal["singular", "plural"]


@dataclass(frozen=True)
class TraitPair:
    """Two opposite traits. A score of the pair is that of the right trait less that of the left one.

    The adjectives are what a model is asked for, the first of them the trait's own. Aliases are other spellings of the
    trait in files of others.
    """

    name: str
    left: str
    right: str
    dimension: str
    left_adjectives: tuple[str, ...]
    right_adjectives: tuple[str, ...]
    left_aliases: tuple[str, ...] = ()
    right_aliases: tuple[str, ...] = ()

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names that the pair has when its traits are spelt otherwise."""
        sides = product((self.left, *self.left_aliases), (self.right, *self.right_aliases))
        return tuple(f"{left}-{right}" for left, right in sides)[1:]


@dataclass(frozen=True)
class SocialGroup:
    """A group of people and its forms in a sentence.

    ``modifier`` stands before another group's noun, ``suffix`` behind it; None: it cannot. ``article`` is None where
    the first letter decides. ``human`` are the names of the group in human judgements, ``parts`` the names of the two
    groups that it is made of, in the order in which they are read.
    """

    name: str
    domain: str
    singular: str
    plural: str
    modifier: str | None = None
    suffix: str | None = None
    suffix_plural: str | None = None
    article: Literal["a", "an"] | None = None
    human: tuple[str, ...] = ()
    pilot: bool = False
    parts: tuple[str, ...] = ()

    def form(self, number: Number) -> str:
        return self.singular if number == "singular" else self.plural


@dataclass(frozen=True)
class Template:
    """A sentence with one slot for a group and one for a trait."""

    name: str
    text: str
    number: Number
    kind: str


@dataclass(frozen=True)
class Exclusion:
    """Pairs of groups that are left out. ``groups`` and ``others`` are names of groups or of domains."""

    groups: tuple[str, ...]
    others: tuple[str, ...]
    reason: str
    in_order: bool = False
    """Whether only pairs with one of ``groups`` first are left out."""

    def rejects(self, first: SocialGroup, second: SocialGroup) -> bool:
        if _named(first, self.groups) and _named(second, self.others):
            return True
        return not self.in_order and _named(second, self.groups) and _named(first, self.others)


@dataclass(frozen=True)
class Abc:
    """All that is asked. Dimensions and domains are names with their labels; the prior words stand for anybody."""

    dimensions: Mapping[str, str]
    domains: Mapping[str, str]
    pairs: tuple[TraitPair, ...]
    groups: tuple[SocialGroup, ...]
    templates: tuple[Template, ...]
    exclusions: tuple[Exclusion, ...]
    prior_singular: str
    prior_plural: str
    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        return "+".join(source.name for source in self.sources)

    @property
    def source(self) -> Source:
        """Where the first of the files comes from."""
        return self.sources[0]

    @property
    def human_groups(self) -> dict[str, SocialGroup]:
        """The groups by their names in human judgements."""
        return {name: group for group in self.groups for name in group.human}

    @property
    def trait_aliases(self) -> dict[str, str]:
        """The names of traits by their other spellings."""
        lefts = {alias: pair.left for pair in self.pairs for alias in pair.left_aliases}
        return lefts | {alias: pair.right for pair in self.pairs for alias in pair.right_aliases}

    def prior_word(self, number: Number) -> str:
        return self.prior_singular if number == "singular" else self.prior_plural

    def pair(self, name: str) -> TraitPair:
        """A pair by its name or an alias; blanks around the hyphen between the traits do not count."""
        known = {pair_key(known): pair for pair in self.pairs for known in (pair.name, *pair.aliases)}
        if pair_key(name) not in known:
            names = [pair.name for pair in self.pairs]
            raise UnknownNameError("trait pair", name, known, f"(pairs: {', '.join(names)})", like=pair_key(name))
        return known[pair_key(name)]

    @property
    def digest(self) -> str:
        """A short fingerprint of traits, groups, templates and rules; labels, reasons and sources do not count."""
        records = [
            [astuple(pair) for pair in self.pairs],
            [astuple(group) for group in self.groups],
            [astuple(template) for template in self.templates],
        ]
        rules = [[rule.groups, rule.others, rule.in_order] for rule in self.exclusions]
        content = [records, rules, self.prior_singular, self.prior_plural]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


def pair_key(name: str) -> str:
    """The name of a pair, freed of what spellings differ in: 'cold - warm' and 'Cold ↔ warm' are 'cold-warm'."""
    return re.sub(r"\s+[-–]\s+|\s*↔\s*", "-", name.strip().casefold())


def paired_groups(abc: Abc) -> tuple[SocialGroup, ...]:
    """Groups of two domains at once, in either order that English has, less the excluded ones.

    A pair is named by its singular; its domain is those of its parts, joined by ``+``.
    """
    made = (
        _paired(first, second)
        for first in abc.groups
        for second in abc.groups
        if first.domain != second.domain and not any(rule.rejects(first, second) for rule in abc.exclusions)
    )
    return tuple(pair for pair in made if pair is not None)


def _paired(first: SocialGroup, second: SocialGroup) -> SocialGroup | None:
    """``teenager with a disability`` where the second has a suffix, else ``Asian teenager``; None: neither can be."""
    if second.suffix and not first.suffix:
        forms = (f"{first.singular} {second.suffix}", f"{first.plural} {second.suffix_plural or second.suffix}")
    elif first.modifier and not second.suffix:
        forms = (f"{first.modifier} {second.singular}", f"{first.modifier} {second.plural}")
    else:
        return None
    domain, parts = f"{first.domain}+{second.domain}", (first.name, second.name)
    return SocialGroup(forms[0], domain, *forms, article=first.article, parts=parts)


def _named(group: SocialGroup, names: tuple[str, ...]) -> bool:
    return group.name in names or group.domain in names
