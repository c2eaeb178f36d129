"""The ABC stereotype measures as data: what is shipped, what a user's files add to it, and choices from it by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from biassay.errors import UnknownNameError
from biassay.stimuli.abc_model import (
    Abc,
    Exclusion,
    Number,
    SocialGroup,
    Template,
    TraitPair,
    paired_groups,
)
from biassay.stimuli.abc_reading import extended

__all__ = [
    "Abc",
    "Exclusion",
    "Number",
    "SocialGroup",
    "Template",
    "TraitPair",
    "groups_named",
    "load_abc",
    "paired_among",
    "paired_groups",
    "pairs_named",
    "templates_named",
]

Item = TypeVar("Item", TraitPair, SocialGroup, Template)


def load_abc(paths: Sequence[Path] = ()) -> Abc:
    """The shipped traits, groups and templates, extended or overridden by a user's files, one after the other."""
    abc = _shipped()
    for path in paths:
        abc = extended(path, abc)
    return abc


@cache
def _shipped() -> Abc:
    return extended(Path(str(resources.files("biassay.stimuli") / "data" / "abc" / "cao2022.toml")))


def groups_named(
    abc: Abc, names: Iterable[str] = (), among: Sequence[SocialGroup] | None = None
) -> tuple[SocialGroup, ...]:
    """Groups by name, pattern (``* teenager``), domain, or ``human`` and ``pilot``; all of them by default.

    ``among`` are the groups to choose from, say ``paired_groups(abc)``; the domain of a pair is ``race+age``.
    """
    groups = abc.groups if among is None else among
    families: dict[str, list[SocialGroup]] = {}
    for group in groups:
        flags = {"human": bool(group.human), "pilot": group.pilot}
        for family in (group.domain, *(flag for flag, is_so in flags.items() if is_so)):
            families.setdefault(family, []).append(group)
    return _chosen("group", names, {group.name: group for group in groups}, families)


def paired_among(abc: Abc, groups: Sequence[SocialGroup]) -> tuple[SocialGroup, ...]:
    """Pair some groups with each other or, if they are all of one domain, with all groups of other domains."""
    names = {group.name for group in groups}
    fewest = 2 if len({group.domain for group in groups}) > 1 else 1
    return tuple(pair for pair in paired_groups(abc) if sum(part in names for part in pair.parts) >= fewest)


def templates_named(abc: Abc, names: Iterable[str] = ()) -> tuple[Template, ...]:
    """Templates by name, pattern (``everyone-*``) or kind (``adverbial``); all of them by default."""
    families: dict[str, list[Template]] = {}
    for template in abc.templates:
        families.setdefault(template.kind, []).append(template)
    return _chosen("template", names, {template.name: template for template in abc.templates}, families)


def pairs_named(abc: Abc, names: Iterable[str] = ()) -> tuple[TraitPair, ...]:
    """Trait pairs by name, alias, pattern (``*-warm``) or dimension; all of them by default."""
    families: dict[str, list[TraitPair]] = {}
    for pair in abc.pairs:
        for family in (pair.dimension, *pair.aliases):
            families.setdefault(family, []).append(pair)
    return _chosen("trait pair", names, {pair.name: pair for pair in abc.pairs}, families)


def _chosen(
    kind: str, names: Iterable[str], known: Mapping[str, Item], families: Mapping[str, Sequence[Item]]
) -> tuple[Item, ...]:
    names = tuple(names)
    chosen: dict[str, Item] = {}
    for name in names or ("*",):
        found = [known[name]] if name in known else families.get(name, [])
        found = found or [known[other] for other in known if fnmatchcase(other, name)]
        if not found:
            raise UnknownNameError(kind, name, [*known, *families], f"({', '.join(families)}, or a pattern with *)")
        chosen.update((item.name, item) for item in found)
    return tuple(chosen.values())
