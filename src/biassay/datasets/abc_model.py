"""Traits, social groups and templates of the ABC model: records, reader and selection."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from biassay.datasets.fields import DATA, FieldReader, Readers, parse_toml
from biassay.datasets.schema import Source, read_source
from biassay.datasets.stimulus_files import UNKNOWN_SOURCE
from biassay.errors import UnknownNameError
from biassay.grouping import group_pairs
from biassay.io import read_text

GrammaticalNumber = Literal["singular", "plural"]


@dataclass(frozen=True)
class TraitPair:
    """Two opposite traits. The score of a pair is that of the right trait minus that of the left one.

    The adjectives of a side are the words for a blank; the first one names the trait. Aliases are spellings of the
    trait in other files.
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
        """Names of the pair with other spellings of its traits."""
        sides = product((self.left, *self.left_aliases), (self.right, *self.right_aliases))
        return tuple(f"{left}-{right}" for left, right in sides)[1:]


@dataclass(frozen=True)
class SocialGroup:
    """Group of people and its forms in a sentence.

    Attributes
    ----------
    name, domain : str
        Name of the group, and of the domain it belongs to.
    singular, plural : str
        Nouns for one member and for several.
    modifier, suffix, suffix_plural : str or None
        Words before and after the noun of another group; None if the group cannot be combined this way.
    article : {"a", "an"} or None
        Article; None if the first letter decides.
    human : tuple of str
        Names of the group in human ratings.
    pilot : bool
        True for groups of the pilot study.
    parts : tuple of str
        Names of the two groups that a paired group combines, in order.
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

    def form(self, number: GrammaticalNumber) -> str:
        """Return the noun in the singular or plural."""
        return self.singular if number == "singular" else self.plural


@dataclass(frozen=True)
class Template:
    """Sentence with one slot for a group and one for a trait."""

    name: str
    text: str
    number: GrammaticalNumber
    kind: str


@dataclass(frozen=True)
class Exclusion:
    """Excluded pairs of groups. `groups` and `others` are names of groups or domains."""

    groups: tuple[str, ...]
    others: tuple[str, ...]
    reason: str
    in_order: bool = False
    """If True, exclude only pairs that start with one of `groups`."""

    def excludes(self, first: SocialGroup, second: SocialGroup) -> bool:
        """Return whether a pair is excluded."""
        if _has_name(first, self.groups) and _has_name(second, self.others):
            return True
        return not self.in_order and _has_name(second, self.groups) and _has_name(first, self.others)


@dataclass(frozen=True)
class AbcStimuli:
    """Traits, groups and templates of a study.

    Attributes
    ----------
    dimensions, domains : mapping
        Labels by name.
    pairs, groups, templates, exclusions : tuple
        Trait pairs, groups, templates and excluded pairs of groups.
    prior_singular, prior_plural : str
        Words for any person, which replace a group in the prior.
    sources : tuple of Source
        Origin of each file.
    """

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
        """Names of all sources."""
        return "+".join(source.name for source in self.sources)

    @property
    def source(self) -> Source:
        """Origin of the first file."""
        return self.sources[0]

    @property
    def human_groups(self) -> dict[str, SocialGroup]:
        """Groups by their names in human ratings."""
        return {name: group for group in self.groups for name in group.human}

    @property
    def trait_aliases(self) -> dict[str, str]:
        """Traits by their other spellings."""
        lefts = {alias: pair.left for pair in self.pairs for alias in pair.left_aliases}
        return lefts | {alias: pair.right for pair in self.pairs for alias in pair.right_aliases}

    def prior_word(self, number: GrammaticalNumber) -> str:
        """Return the word for any person."""
        return self.prior_singular if number == "singular" else self.prior_plural

    def pair(self, name: str) -> TraitPair:
        """Return a pair by its name or an alias, ignoring blanks around the hyphen."""
        known = {normalize_pair_name(known): pair for pair in self.pairs for known in (pair.name, *pair.aliases)}
        if normalize_pair_name(name) not in known:
            names = [pair.name for pair in self.pairs]
            raise UnknownNameError(
                "trait pair", name, known, f"(pairs: {', '.join(names)})", similar_to=normalize_pair_name(name)
            )
        return known[normalize_pair_name(name)]

    @property
    def digest(self) -> str:
        """Short hash of traits, groups, templates and exclusions, without labels, reasons and sources."""
        records = [
            [astuple(pair) for pair in self.pairs],
            [astuple(group) for group in self.groups],
            [astuple(template) for template in self.templates],
        ]
        rules = [[rule.groups, rule.others, rule.in_order] for rule in self.exclusions]
        content = [records, rules, self.prior_singular, self.prior_plural]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


def normalize_pair_name(name: str) -> str:
    """Normalize the name of a pair: 'cold - warm' and 'Cold ↔ warm' become 'cold-warm'."""
    return re.sub(r"\s+[-–]\s+|\s*↔\s*", "-", name.strip().casefold())


def list_paired_groups(abc: AbcStimuli) -> tuple[SocialGroup, ...]:
    """Combine groups of different domains, in either order that English allows, without excluded pairs.

    The name of a pair is its singular; its domain is that of its parts, joined by ``+``.
    """
    combined = (
        _combine_groups(first, second)
        for first in abc.groups
        for second in abc.groups
        if first.domain != second.domain and not any(rule.excludes(first, second) for rule in abc.exclusions)
    )
    return tuple(pair for pair in combined if pair is not None)


def _combine_groups(first: SocialGroup, second: SocialGroup) -> SocialGroup | None:
    """Return ``teenager with a disability`` if the second group has a suffix, or ``Asian teenager``, or None."""
    if second.suffix and not first.suffix:
        forms = (f"{first.singular} {second.suffix}", f"{first.plural} {second.suffix_plural or second.suffix}")
    elif first.modifier and not second.suffix:
        forms = (f"{first.modifier} {second.singular}", f"{first.modifier} {second.plural}")
    else:
        return None
    domain, parts = f"{first.domain}+{second.domain}", (first.name, second.name)
    return SocialGroup(forms[0], domain, *forms, article=first.article, parts=parts)


def _has_name(group: SocialGroup, names: tuple[str, ...]) -> bool:
    return group.name in names or group.domain in names


Item = TypeVar("Item", TraitPair, SocialGroup, Template)
RESERVED_GROUP_NAMES = ("human", "pilot")
"""Words that select groups by their properties and cannot be names."""

_EMPTY_STIMULI = AbcStimuli({}, {}, (), (), (), (), "", "", ())
_TABLES = {"source", "dimensions", "domains", "prior", "pairs", "groups", "templates", "exclude"}
_FORMS = ("singular", "plural", "modifier", "suffix", "suffix_plural")
_SLOT = re.compile(r"\{([^{}]*)\}")
_MANY_NAMES = 20
_GROUP_SLOTS = ("group", "Group", "a group", "A group")


def extend_abc(path: Path, base: AbcStimuli | None = None) -> AbcStimuli:
    """Add the content of a file to `base`. An entry replaces an earlier one with the same name."""
    text = read_text(path)
    return _AbcReader(path, text, base or _EMPTY_STIMULI).read(parse_toml(path, text))


class _AbcReader(FieldReader):
    """Read a file that extends `abc`."""

    def __init__(self, path: Path, text: str, abc: AbcStimuli) -> None:
        super().__init__(path, text)
        self.abc = abc

    def read(self, root: dict[str, Any]) -> AbcStimuli:
        self.table(root, "", _TABLES)
        if not root.keys() - {"source"}:
            self.fail("", f"the file defines nothing; tables: {', '.join(sorted(_TABLES - {'source'}))}")
        source = read_source(self, root["source"]) if "source" in root else UNKNOWN_SOURCE
        words = self.record(root.get("prior", {}), "prior", dict.fromkeys(("singular", "plural"), self.form))
        labels = {key: dict(self.texts_by_name(root.get(key, {}), key)) for key in ("dimensions", "domains")}
        self.abc = replace(
            self.abc,
            dimensions={**self.abc.dimensions, **labels["dimensions"]},
            domains={**self.abc.domains, **labels["domains"]},
            prior_singular=words.get("singular", self.abc.prior_singular),
            prior_plural=words.get("plural", self.abc.prior_plural),
            sources=(*self.abc.sources, source),
        )
        pairs = self.merge("pairs", self.abc.pairs, self.pair, root)
        names = ((normalize_pair_name(n), pair.name) for pair in pairs.values() for n in (pair.name, *pair.aliases))
        self.check_unique("name", names, "pairs")
        self.check_unique("trait", (spelling for pair in pairs.values() for spelling in _iter_spellings(pair)), "pairs")
        groups = self.merge("groups", self.abc.groups, self.group, root)
        families = dict.fromkeys((*self.abc.domains, *RESERVED_GROUP_NAMES), "selects several groups")
        self.check_names("groups", groups, families)
        self.check_unique("singular", ((group.singular, name) for name, group in groups.items()), "groups")
        human = ((human, name) for name, group in groups.items() for human in group.human)
        self.check_unique("human name", human, "groups")
        templates = self.merge("templates", self.abc.templates, self.template, root)
        kinds = {template.kind for template in templates.values()}
        self.check_names("templates", templates, dict.fromkeys(kinds, "is a kind of template"))
        self.check_unique("text", ((template.text, name) for name, template in templates.items()), "templates")
        self.abc = replace(self.abc, pairs=tuple(pairs.values()), groups=tuple(groups.values()))
        exclusions = self.items(root.get("exclude", []), "exclude", self.exclusion, "tables ([[exclude]])")
        return replace(self.abc, templates=tuple(templates.values()), exclusions=(*self.abc.exclusions, *exclusions))

    def merge(
        self, kind: str, earlier: Sequence[Item], read: Callable[[str, Any, str], Item], root: Mapping[str, Any]
    ) -> dict[str, Item]:
        """Return all entries by name. Entries of the file replace earlier ones of the same name."""
        tables = self.table(root.get(kind, {}), kind)
        return {item.name: item for item in earlier} | {
            name: read(name, value, f"{kind}.{name}") for name, value in tables.items()
        }

    def known(self, kind: str, names: Iterable[str]) -> Callable[[Any, str], str]:
        """Return a reader that accepts only the given names."""
        known = list(names)

        def read(value: Any, where: str) -> str:
            name = self.string(value, where)
            if name not in known:
                hint = f"({kind}s: {', '.join(known)})" if len(known) < _MANY_NAMES else ""
                self.fail(where, str(UnknownNameError(kind, name, known, hint)))
            return name

        return read

    def form(self, value: Any, where: str) -> str:
        """Read words for a sentence."""
        text = self.string(value, where)
        if text != " ".join(text.split()):
            self.fail(where, f"{text!r} begins or ends with a blank, or has two in a row")
        if set(text) & set("{}"):
            self.fail(where, f"{text!r} has a brace; braces are for the slots of templates")
        return text

    def check_unique(self, kind: str, keys: Iterable[tuple[str, str]], where: str) -> None:
        """Raise StimulusError if a key belongs to two names, ignoring case."""
        owners: dict[str, str] = {}
        for key, name in keys:
            owner = owners.setdefault(key.casefold(), name)
            if owner != name:
                self.fail(f"{where}.{name}", f"the {kind} {key!r} belongs to both {owner!r} and {name!r}")

    def check_names(self, where: str, names: Iterable[str], families: Mapping[str, str]) -> None:
        """Raise StimulusError if two names differ only in case or a name stands for several entries."""
        self.check_unique("name", ((name, name) for name in names), where)
        for name in names:
            if name in families:
                self.fail(f"{where}.{name}", f"{name!r} {families[name]} and cannot name a single one")

    def pair(self, name: str, value: Any, where: str) -> TraitPair:
        words = ("left_adjectives", "right_adjectives", "left_aliases", "right_aliases")
        readers: Readers = {
            "dimension": self.known("dimension", self.abc.dimensions),
            **dict.fromkeys(("left", "right"), self.form),
            **dict.fromkeys(words, self.words),
        }
        fields = self.record(value, where, readers, ("left", "right", "dimension"))
        left, right = fields["left"], fields["right"]
        if name != f"{left}-{right}":
            self.fail(
                where, f"the sides are {left!r} and {right!r}; name the pair '{left}-{right}', or change the sides"
            )
        pair = TraitPair(**{"name": name, "left_adjectives": (left,), "right_adjectives": (right,), **fields})
        for word in pair.left_adjectives:
            if word in pair.right_adjectives:
                self.fail(where, f"{word!r} is on both sides")
        return pair

    def words(self, value: Any, where: str) -> tuple[str, ...]:
        words = self.distinct_words(value, where)
        self.items(value, where, self.form, "texts")
        return words

    def group(self, name: str, value: Any, where: str) -> SocialGroup:
        readers: Readers = {
            "domain": self.known("domain", self.abc.domains),
            **dict.fromkeys((*_FORMS, "adjective"), self.form),
            "article": partial(self.choice, allowed=("a", "an")),
            "human": self.strings,
            "pilot": self.flag,
        }
        fields = self.record(value, where, readers, ["domain"])
        adjective = fields.pop("adjective", None)
        if adjective is not None:
            nouns = {number: f"{adjective} {self.abc.prior_word(number)}" for number in get_args(GrammaticalNumber)}
            fields = {**nouns, "modifier": adjective, **fields}
        for number in get_args(GrammaticalNumber):
            if number not in fields:
                hint = "templates need both numbers; for an adjective before a noun, write 'adjective'"
                self.fail(where, f"the field {number!r} is missing; {hint}")
        if "suffix_plural" in fields and "suffix" not in fields:
            self.fail(where, "the field 'suffix' is missing")
        return SocialGroup(name, **fields)

    def template(self, name: str, value: Any, where: str) -> Template:
        readers: Readers = {
            "text": self.string,
            "number": self.known("number", get_args(GrammaticalNumber)),
            "kind": self.string,
        }
        fields = self.record(value, where, readers, ("text", "number"))
        self.check_slots(fields["text"], fields["number"], f"{where}.text")
        return Template(**{"name": name, "kind": "own", **fields})

    def check_slots(self, text: str, number: str, where: str) -> None:
        slots = _SLOT.findall(text)
        for slot in slots:
            if slot not in (*_GROUP_SLOTS, "trait"):
                self.fail(
                    where, f"{text!r} has an unknown slot {{{slot}}}; slots: {_join_slots(*_GROUP_SLOTS, 'trait')}"
                )
        if set(_SLOT.sub("", text)) & set("{}"):
            self.fail(where, f"{text!r} has an unmatched brace")
        for kind, allowed in (("group", _GROUP_SLOTS), ("trait", ("trait",))):
            count = sum(slot in allowed for slot in slots)
            if count != 1:
                expected = f"expected one of {_join_slots(*allowed)}"
                self.fail(where, f"{text!r} has {count or 'no'} slots for the {kind}; {expected}")
        if number == "plural" and {"a group", "A group"} & set(slots):
            self.fail(where, f"{text!r} has an article, but its number is plural")

    def exclusion(self, value: Any, where: str) -> Exclusion:
        known = self.known("group or domain", [*(group.name for group in self.abc.groups), *self.abc.domains])
        read_names = partial(self.items, read=known, kind="names")
        readers: Readers = {"groups": read_names, "with": read_names, "reason": self.string, "in_order": self.flag}
        fields = self.record(value, where, readers, ("groups", "with", "reason"))
        return Exclusion(others=fields.pop("with"), **fields)


def _iter_spellings(pair: TraitPair) -> Iterator[tuple[str, str]]:
    for trait, aliases in ((pair.left, pair.left_aliases), (pair.right, pair.right_aliases)):
        yield from ((spelling, trait) for spelling in (trait, *aliases))


def _join_slots(*slots: str) -> str:
    return ", ".join(f"{{{slot}}}" for slot in slots)


def load_abc(paths: Sequence[Path] = ()) -> AbcStimuli:
    """Load the bundled traits, groups and templates, and extend them with a user's files in order."""
    abc = _load_bundled_abc()
    for path in paths:
        abc = extend_abc(path, abc)
    return abc


@cache
def _load_bundled_abc() -> AbcStimuli:
    return extend_abc(DATA / "abc" / "cao2022.toml")


def select_groups(abc: AbcStimuli, names: Iterable[str] = ()) -> tuple[SocialGroup, ...]:
    """Select groups by name, pattern (``*class``), domain, ``human`` or ``pilot``; all of them by default."""
    families = group_pairs(
        (family, group)
        for group in abc.groups
        for family in (group.domain, "human" if group.human else "", "pilot" if group.pilot else "")
        if family
    )
    return _select_items("group", names, {group.name: group for group in abc.groups}, families)


def pair_groups(abc: AbcStimuli, groups: Sequence[SocialGroup]) -> tuple[SocialGroup, ...]:
    """Pair some groups with each other or, if they share one domain, with all groups of other domains."""
    names = {group.name for group in groups}
    fewest = 2 if len({group.domain for group in groups}) > 1 else 1
    return tuple(pair for pair in list_paired_groups(abc) if sum(part in names for part in pair.parts) >= fewest)


def select_templates(abc: AbcStimuli, names: Iterable[str] = ()) -> tuple[Template, ...]:
    """Select templates by name, pattern (``everyone-*``) or kind (``adverbial``); all of them by default."""
    families = group_pairs((template.kind, template) for template in abc.templates)
    return _select_items("template", names, {template.name: template for template in abc.templates}, families)


def _select_items(
    kind: str, names: Iterable[str], known: Mapping[str, Item], families: Mapping[str, Sequence[Item]]
) -> tuple[Item, ...]:
    selected: dict[str, Item] = {}
    for name in tuple(names) or ("*",):
        items = [known[name]] if name in known else families.get(name, [])
        items = items or [known[other] for other in known if fnmatchcase(other, name)]
        if not items:
            raise UnknownNameError(kind, name, [*known, *families], f"({', '.join(families)}, or a pattern with *)")
        selected.update((item.name, item) for item in items)
    return tuple(selected.values())
