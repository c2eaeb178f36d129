"""One file of traits, groups and templates, read on top of those known before it, and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from biassay.errors import UnknownNameError
from biassay.files import read_text
from biassay.stimuli.abc_model import Abc, Exclusion, Number, SocialGroup, Template, TraitPair, pair_key
from biassay.stimuli.document import UNKNOWN_SOURCE
from biassay.stimuli.fields import FieldReader, kind, parse_toml
from biassay.stimuli.model import Source

__all__ = ["RESERVED", "extended"]

RESERVED = ("human", "pilot")
"""Words that choose groups by what is known of them, and so are no names."""

_EMPTY = Abc({}, {}, (), (), (), (), "", "", ())
_TABLES = {"source", "dimensions", "domains", "prior", "pairs", "groups", "templates", "exclude"}
_SOURCE_KEYS = {"name", "citation", "licence", "version", "doi", "note"}
_PAIR_KEYS = {"dimension", "left", "right", "left_adjectives", "right_adjectives", "left_aliases", "right_aliases"}
_FORMS = ("singular", "plural", "modifier", "suffix", "suffix_plural")
_GROUP_KEYS = {"domain", "adjective", "article", "human", "pilot", *_FORMS}
_SLOT = re.compile(r"\{([^{}]*)\}")
_GROUP_SLOTS = ("group", "Group", "a group", "A group")


def extended(path: Path, base: Abc | None = None) -> Abc:
    """What a file defines, added to ``base``; an entry of the same name takes the place of the former one."""
    text = read_text(path)
    return _Reader(path, text, base or _EMPTY).read(parse_toml(path, text))


class _Reader(FieldReader):
    """Turns parsed values into records. ``abc`` is all that is known so far."""

    def __init__(self, path: Path, text: str, abc: Abc) -> None:
        super().__init__(path, text)
        self.abc = abc

    def read(self, root: dict[str, Any]) -> Abc:
        self.table(root, "", _TABLES)
        if not root.keys() - {"source"}:
            self.fail("", f"the file defines nothing; tables: {', '.join(sorted(_TABLES - {'source'}))}")
        source = self.source(root["source"]) if "source" in root else UNKNOWN_SOURCE
        prior = self.table(root.get("prior", {}), "prior", {"singular", "plural"})
        words = {key: self.form(text, f"prior.{key}") for key, text in prior.items()}
        self.abc = replace(
            self.abc,
            dimensions={**self.abc.dimensions, **dict(self.texts_by_name(root.get("dimensions", {}), "dimensions"))},
            domains={**self.abc.domains, **dict(self.texts_by_name(root.get("domains", {}), "domains"))},
            prior_singular=words.get("singular", self.abc.prior_singular),
            prior_plural=words.get("plural", self.abc.prior_plural),
            sources=(*self.abc.sources, source),
        )
        self.pairs(self.table(root.get("pairs", {}), "pairs"))
        self.groups(self.table(root.get("groups", {}), "groups"))
        self.templates(self.table(root.get("templates", {}), "templates"))
        self.exclusions(root.get("exclude", []))
        return self.abc

    def source(self, value: Any) -> Source:
        fields = self.table(value, "source", _SOURCE_KEYS)
        self.needs(fields, "source", "name", "citation", "licence", "version")
        given = {key: self.string(text, f"source.{key}") for key, text in fields.items()}
        return Source(**given, supplementary=False, searched_models=(), fingerprints=())

    def needs(self, fields: Mapping[str, Any], where: str, *names: str, why: str = "") -> None:
        for name in names:
            if name not in fields:
                self.fail(where, f"the field {name!r} is missing{why}")

    def known(self, what: str, value: Any, names: Iterable[str], where: str) -> str:
        name, names = self.string(value, where), list(names)
        if name not in names:
            self.fail(where, str(UnknownNameError(what, name, names, f"({what}s: {', '.join(names)})")))
        return name

    def form(self, value: Any, where: str) -> str:
        """Words as they stand in a sentence."""
        text = self.string(value, where)
        if text != " ".join(text.split()):
            self.fail(where, f"{text!r} begins or ends with a blank, or has two in a row")
        if set(text) & set("{}"):
            self.fail(where, f"{text!r} has a brace; braces are for the slots of templates")
        return text

    def once(self, what: str, keys: Iterable[tuple[str, str]], where: str) -> None:
        """Fail if a key belongs to two names; case is ignored."""
        owners: dict[str, str] = {}
        for key, name in keys:
            owner = owners.setdefault(key.casefold(), name)
            if owner != name:
                self.fail(f"{where}.{name}", f"the {what} {key!r} stands for {owner!r} and for {name!r}")

    def pairs(self, tables: dict[str, Any]) -> None:
        read = {name: self.pair(name, value) for name, value in tables.items()}
        pairs = {**{pair.name: pair for pair in self.abc.pairs}, **read}
        self.once("name", ((pair_key(n), pair.name) for pair in pairs.values() for n in _names(pair)), "pairs")
        self.once("trait", (spelling for pair in pairs.values() for spelling in _spellings(pair)), "pairs")
        self.abc = replace(self.abc, pairs=tuple(pairs.values()))

    def pair(self, name: str, value: Any) -> TraitPair:
        where = f"pairs.{name}"
        fields = self.table(value, where, _PAIR_KEYS)
        self.needs(fields, where, "left", "right", "dimension")
        left, right = (self.form(fields[side], f"{where}.{side}") for side in ("left", "right"))
        if name != f"{left}-{right}":
            self.fail(
                where, f"the sides are {left!r} and {right!r}; name the pair '{left}-{right}', or change the sides"
            )
        dimension = self.known("dimension", fields["dimension"], self.abc.dimensions, f"{where}.dimension")
        lefts = self.words(fields, "left_adjectives", where) or (left,)
        rights = self.words(fields, "right_adjectives", where) or (right,)
        shared = [word for word in lefts if word in rights]
        if shared:
            self.fail(where, f"{shared[0]!r} stands on both sides")
        aliases = self.words(fields, "left_aliases", where), self.words(fields, "right_aliases", where)
        return TraitPair(name, left, right, dimension, lefts, rights, *aliases)

    def words(self, fields: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
        if key not in fields:
            return ()
        words = self.strings(fields[key], f"{where}.{key}")
        for i, word in enumerate(words):
            if self.form(word, f"{where}.{key}[{i}]") in words[:i]:
                self.fail(f"{where}.{key}", f"the word {word!r} appears twice")
        return words

    def groups(self, tables: dict[str, Any]) -> None:
        read = {name: self.group(name, value) for name, value in tables.items()}
        groups = {**{group.name: group for group in self.abc.groups}, **read}
        for name in groups:
            if name in (*self.abc.domains, *RESERVED):
                self.fail(f"groups.{name}", f"{name!r} chooses several groups, so that no group can have this name")
        self.once("name", ((name, name) for name in groups), "groups")
        self.once("singular", ((group.singular, name) for name, group in groups.items()), "groups")
        self.once("human name", ((human, name) for name, group in groups.items() for human in group.human), "groups")
        self.abc = replace(self.abc, groups=tuple(groups.values()))

    def group(self, name: str, value: Any) -> SocialGroup:
        where = f"groups.{name}"
        fields = self.table(value, where, _GROUP_KEYS)
        self.needs(fields, where, "domain")
        domain = self.known("domain", fields["domain"], self.abc.domains, f"{where}.domain")
        forms = self.forms(fields, where)
        article = fields.get("article")
        if article not in (None, "a", "an"):
            self.fail(f"{where}.article", f"expected 'a' or 'an', got {kind(article)}")
        human = self.strings(fields["human"], f"{where}.human") if "human" in fields else ()
        pilot = self.flag(fields.get("pilot", False), f"{where}.pilot")
        modifier, suffix, suffix_plural = (forms.get(key) for key in ("modifier", "suffix", "suffix_plural"))
        nouns = forms["singular"], forms["plural"]
        return SocialGroup(name, domain, *nouns, modifier, suffix, suffix_plural, article, human, pilot)

    def forms(self, fields: Mapping[str, Any], where: str) -> dict[str, str]:
        forms = {key: self.form(fields[key], f"{where}.{key}") for key in _FORMS if key in fields}
        if "adjective" in fields:
            adjective = self.form(fields["adjective"], f"{where}.adjective")
            nouns = {number: f"{adjective} {self.abc.prior_word(number)}" for number in get_args(Number)}
            forms = {**nouns, "modifier": adjective, **forms}
        why = "; templates ask for both numbers, or write 'adjective' for an adjective before a noun"
        self.needs(forms, where, "singular", "plural", why=why)
        if "suffix_plural" in forms:
            self.needs(forms, where, "suffix")
        return forms

    def templates(self, tables: dict[str, Any]) -> None:
        read = {name: self.template(name, value) for name, value in tables.items()}
        templates = {**{template.name: template for template in self.abc.templates}, **read}
        self.once("name", ((name, name) for name in templates), "templates")
        self.once("text", ((template.text, name) for name, template in templates.items()), "templates")
        kinds = {template.kind for template in templates.values()}
        for name in templates:
            if name in kinds:
                self.fail(f"templates.{name}", f"{name!r} is a kind of templates; no template can have this name")
        self.abc = replace(self.abc, templates=tuple(templates.values()))

    def template(self, name: str, value: Any) -> Template:
        where = f"templates.{name}"
        fields = self.table(value, where, {"text", "number", "kind"})
        self.needs(fields, where, "text", "number")
        number = self.known("number", fields["number"], get_args(Number), f"{where}.number")
        text = self.string(fields["text"], f"{where}.text")
        self.slots(text, number, f"{where}.text")
        return Template(name, text, cast("Number", number), self.string(fields.get("kind", "own"), f"{where}.kind"))

    def slots(self, text: str, number: str, where: str) -> None:
        slots = _SLOT.findall(text)
        for slot in slots:
            if slot not in (*_GROUP_SLOTS, "trait"):
                self.fail(where, f"{text!r} has an unknown slot {{{slot}}}; slots: {_listed(*_GROUP_SLOTS, 'trait')}")
        if set(_SLOT.sub("", text)) & set("{}"):
            self.fail(where, f"{text!r} has a brace without its other half")
        for what, allowed in (("group", _GROUP_SLOTS), ("trait", ("trait",))):
            count = sum(slot in allowed for slot in slots)
            if count != 1:
                expected = f"expected one of {_listed(*allowed)}"
                self.fail(where, f"{text!r} has {count or 'no'} slots for the {what}; {expected}")
        if number == "plural" and {"a group", "A group"} & set(slots):
            self.fail(where, f"{text!r} has an article, and its number is plural")

    def exclusions(self, tables: Any) -> None:
        if not isinstance(tables, list):
            self.fail("exclude", f"expected a list of tables ([[exclude]]), got {kind(tables)}")
        read = tuple(self.exclusion(value, f"exclude[{i}]") for i, value in enumerate(tables))
        self.abc = replace(self.abc, exclusions=(*self.abc.exclusions, *read))

    def exclusion(self, value: Any, where: str) -> Exclusion:
        fields = self.table(value, where, {"groups", "with", "reason", "in_order"})
        self.needs(fields, where, "groups", "with", "reason")
        known = [*(group.name for group in self.abc.groups), *self.abc.domains]
        lists = {key: self.strings(fields[key], f"{where}.{key}") for key in ("groups", "with")}
        for key, names in lists.items():
            for name in names:
                if name not in known:
                    self.fail(f"{where}.{key}", str(UnknownNameError("group or domain", name, known)))
        in_order = self.flag(fields.get("in_order", False), f"{where}.in_order")
        return Exclusion(lists["groups"], lists["with"], self.string(fields["reason"], f"{where}.reason"), in_order)


def _names(pair: TraitPair) -> tuple[str, ...]:
    return (pair.name, *pair.aliases)


def _spellings(pair: TraitPair) -> Iterator[tuple[str, str]]:
    for trait, aliases in ((pair.left, pair.left_aliases), (pair.right, pair.right_aliases)):
        yield from ((spelling, trait) for spelling in (trait, *aliases))


def _listed(*slots: str) -> str:
    return ", ".join(f"{{{slot}}}" for slot in slots)
