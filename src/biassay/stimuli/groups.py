"""Groups of people that stand in one category or in several, say race by gender, and what was validated of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.stimuli.fields import FieldReader, kind
from biassay.stimuli.model import Concept, Source

__all__ = ["Constituent", "Group", "Grouping", "GroupingEntry", "read_grouping", "resolve_grouping"]

_GROUP_KEYS = {"belongs", "names", "clusters", "label", "biases", "emergent"}
Clusters = tuple[tuple[str, ...], ...]
Words = str | tuple[str, ...]
"""The name of a concept, or the words themselves."""


@dataclass(frozen=True)
class Group:
    """People of one value in every category, known by their names.

    ``biases`` are the words that were validated as associated with the group, ``emergent`` those of them that are not
    associated with its categories one by one. Empty: not validated. ``clusters`` are near-duplicate names, such as two
    spellings of one name, that count as one observation; every other name is its own.
    """

    name: str
    label: str
    names: tuple[str, ...]
    belongs: Mapping[str, str]
    biases: tuple[str, ...] = ()
    emergent: tuple[str, ...] = ()
    clusters: Clusters = ()

    @property
    def cluster_labels(self) -> tuple[str, ...]:
        """The cluster of every name, named after the first name of the cluster."""
        shared = {name: cluster[0] for cluster in self.clusters for name in cluster}
        return tuple(shared.get(name, name) for name in self.names)


@dataclass(frozen=True)
class Constituent:
    """One category of a group against another value of it, over all groups that have them."""

    label: str
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class Grouping:
    """All groups that the values of some categories give, each once."""

    name: str
    title: str
    groups: tuple[Group, ...]
    others: tuple[str, ...]
    against: str | None
    source: Source

    def group(self, name: str) -> Group:
        """A group by its name."""
        found = next((group for group in self.groups if group.name == name), None)
        if found is None:
            names = [group.name for group in self.groups]
            raise UnknownNameError("group", name, names, f"(groups: {', '.join(names)})")
        return found

    def compared_with(self, target: Group) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.name != target.name)

    def constituents(self, target: Group) -> tuple[Constituent, ...]:
        """Each category of the target against every other value of that category."""
        return tuple(
            Constituent(f"{category}: {value} / {other}", self._of(category, value), self._of(category, other))
            for category, value in target.belongs.items()
            for other in self.values(category)
            if other != value
        )

    def values(self, category: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(group.belongs[category] for group in self.groups))

    def _of(self, category: str, value: str) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups if group.belongs[category] == value)

    @property
    def validation_words(self) -> tuple[str, ...]:
        """Every word that was validated for any group, and those that belong to none, each once."""
        lists = [words for group in self.groups for words in (group.biases, group.emergent)]
        return tuple(dict.fromkeys(word for words in (*lists, self.others) for word in words))

    @property
    def digest(self) -> str:
        """A short fingerprint of everything that decides what is found."""
        content = [
            [g.name, g.names, list(g.belongs.items()), g.biases, g.emergent, *([g.clusters] if g.clusters else [])]
            for g in self.groups
        ]
        return hashlib.blake2b(json.dumps([content, self.others]).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class _GroupEntry:
    name: str
    label: str | None
    names: Words
    belongs: tuple[tuple[str, str], ...]
    biases: Words
    emergent: Words
    clusters: Clusters | None


@dataclass(frozen=True)
class GroupingEntry:
    """A grouping as written: names of concepts, not yet looked up."""

    where: str
    title: str
    groups: tuple[_GroupEntry, ...]
    others: tuple[str, ...]
    against: str | None


def read_grouping(reader: FieldReader, root: Mapping[str, Any]) -> GroupingEntry | None:
    """The tables [grouping] and [groups.NAME] of a file, if it has them."""
    fields = reader.table(root.get("grouping", {}), "grouping", {"title", "against", "others"})
    groups = reader.table(root.get("groups", {}), "groups")
    if not groups:
        if fields:
            reader.fail("grouping", "the file has no groups; expected at least two tables [groups.NAME]")
        return None
    given = {key: reader.string(fields[key], f"grouping.{key}") for key in ("title", "against") if key in fields}
    entries = tuple(_read_group(reader, name, value) for name, value in groups.items())
    others = reader.strings(fields["others"], "grouping.others") if "others" in fields else ()
    where = f"{reader.path}: field groups"
    return GroupingEntry(where, given.get("title", reader.path.stem), entries, others, given.get("against"))


def _read_group(reader: FieldReader, name: str, value: Any) -> _GroupEntry:
    where = f"groups.{name}"
    fields = reader.table(value, where, _GROUP_KEYS)
    belongs = reader.texts_by_name(fields.get("belongs", {}), f"{where}.belongs")
    if not belongs:
        example = 'belongs = { race = "...", gender = "..." }'
        reader.fail(f"{where}.belongs", f"a group stands in at least one category, got none; write {example}")
    if len(belongs) == 1 and "emergent" in fields:
        reader.fail(
            f"{where}.emergent",
            f"the group stands in one category only, {belongs[0][0]!r}, and emergent words are those of no category by "
            "itself: leave them out, or name a second category",
        )
    label = reader.string(fields["label"], f"{where}.label") if "label" in fields else None
    lists = {
        key: _words(reader, fields[key], f"{where}.{key}") if key in fields else ()
        for key in ("names", "biases", "emergent")
    }
    clusters = _read_clusters(reader, fields["clusters"], f"{where}.clusters") if "clusters" in fields else None
    return _GroupEntry(name, label, lists["names"] or name, belongs, lists["biases"], lists["emergent"], clusters)


def _read_clusters(reader: FieldReader, value: Any, where: str) -> Clusters:
    if not isinstance(value, list):
        reader.fail(where, f"expected a list of lists of names, got {kind(value)}")
    return tuple(reader.distinct(cluster, f"{where}[{i}]") for i, cluster in enumerate(value))


def _words(reader: FieldReader, value: Any, where: str) -> Words:
    if not isinstance(value, str | list):
        reader.fail(where, f"expected the name of a concept or a list of words, got {kind(value)}")
    return reader.string(value, where) if isinstance(value, str) else reader.distinct(value, where)


def resolve_grouping(entry: GroupingEntry, concepts: Mapping[str, Concept], source: Source) -> Grouping:
    """Look up the concepts and check that the groups can be compared."""
    groups = tuple(_made_group(entry.where, group, concepts) for group in entry.groups)
    others = tuple(dict.fromkeys(word for name in entry.others for word in _looked_up(entry.where, name, concepts)))
    _check_cells(entry.where, groups)
    _check_names(entry.where, groups)
    made = Grouping(source.name, entry.title, groups, others, entry.against, source)
    if entry.against is not None:
        try:
            made.group(entry.against)
        except UsageError as error:
            raise StimulusError(f"{entry.where}: against: {error}") from error
    return made


def _made_group(where: str, entry: _GroupEntry, concepts: Mapping[str, Concept]) -> Group:
    where = f"{where}.{entry.name}"
    if entry.names == entry.name and entry.name not in concepts:
        raise StimulusError(f'{where}: the group has no names; write names = ["...", "..."], or the name of a concept')
    lists = {key: _looked_up(where, getattr(entry, key), concepts) for key in ("names", "biases", "emergent")}
    stray = next((word for word in lists["emergent"] if word not in lists["biases"]), None)
    if stray is not None:
        raise StimulusError(f"{where}: the emergent word {stray!r} is not among the biases of the group")
    if len(lists["names"]) < 2:
        raise StimulusError(f"{where}: a group needs at least two names, got only {lists['names'][0]!r}")
    concept = concepts.get(entry.names) if isinstance(entry.names, str) else None
    label = entry.label or (concept.label if concept is not None else entry.name)
    clusters = entry.clusters
    if clusters is None:
        clusters = () if concept is None else concept.clusters
    group = Group(entry.name, label, lists["names"], dict(entry.belongs), lists["biases"], lists["emergent"], clusters)
    _check_clusters(where, group)
    return group


def _check_clusters(where: str, group: Group) -> None:
    owner: dict[str, int] = {}
    for i, cluster in enumerate(group.clusters):
        if len(cluster) < 2:
            raise StimulusError(f"{where}.clusters[{i}]: a cluster needs at least two names, got {len(cluster)}")
        for name in cluster:
            if name not in group.names:
                raise StimulusError(f"{where}.clusters[{i}]: {name!r} is not one of the names")
            if owner.setdefault(name, i) != i:
                raise StimulusError(f"{where}.clusters[{i}]: {name!r} is in another cluster already")
    if len(set(group.cluster_labels)) < 2:
        raise StimulusError(f"{where}.clusters: all names are in one cluster; a group needs at least two clusters")


def _looked_up(where: str, words: Words, concepts: Mapping[str, Concept]) -> tuple[str, ...]:
    if not isinstance(words, str):
        return words
    if words not in concepts:
        raise StimulusError(f"{where}: {UnknownNameError('concept', words, concepts)}")
    return concepts[words].words


def _check_cells(where: str, groups: Sequence[Group]) -> None:
    """Every combination of values once: with one missing, the categories could not be separated."""
    categories = list(groups[0].belongs)
    for group in groups:
        if sorted(group.belongs) != sorted(categories):
            got, expected = ", ".join(group.belongs), ", ".join(categories)
            raise StimulusError(f"{where}.{group.name}: stands in {got}, the first group in {expected}")
    taken: dict[tuple[str, ...], str] = {}
    for group in groups:
        cell = tuple(group.belongs[category] for category in categories)
        if cell in taken:
            raise StimulusError(f"{where}: {taken[cell]!r} and {group.name!r} are both {' and '.join(cell)}")
        taken[cell] = group.name
    values = [dict.fromkeys(cell[place] for cell in taken) for place in range(len(categories))]
    for category, found in zip(categories, values, strict=True):
        if len(found) < 2:
            raise StimulusError(f"{where}: all groups have the {category} {next(iter(found))!r}; expected at least two")
    missing = [cell for cell in product(*values) if cell not in taken]
    if missing:
        seen = "; ".join(f"{c}: {', '.join(found)}" for c, found in zip(categories, values, strict=True))
        raise StimulusError(
            f"{where}: there is no group of {' and '.join(missing[0])}; every combination needs one ({seen})"
        )


def _check_names(where: str, groups: Sequence[Group]) -> None:
    """A name in two groups would be compared with itself. Case is ignored, as some models ignore it."""
    owner: dict[str, str] = {}
    for group in groups:
        for name in group.names:
            if name.casefold() in owner:
                other = owner[name.casefold()]
                places = f"in {other!r} and in {group.name!r}" if other != group.name else f"twice in {group.name!r}"
                raise StimulusError(f"{where}: the name {name!r} stands {places}")
            owner[name.casefold()] = group.name
