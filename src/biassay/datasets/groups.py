"""Intersectional groups, their names and validated words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from biassay.datasets.fields import FieldReader, describe_type
from biassay.datasets.schema import Concept, Source
from biassay.errors import StimulusError, UnknownNameError, UsageError

Clusters = tuple[tuple[str, ...], ...]
Words = str | tuple[str, ...]
"""The name of a concept, or the words themselves."""


@dataclass(frozen=True)
class Group:
    """People with one value in every category, represented by first names.

    Attributes
    ----------
    name, label : str
        Name for commands, and label for reports.
    names : tuple of str
        First names.
    belongs : mapping
        Values by category.
    biases : tuple of str
        Words validated as associated with the group; empty if not validated.
    emergent : tuple of str
        Those `biases` that are not associated with any category by itself.
    clusters : tuple of tuple of str
        Near-duplicate names, such as two spellings of one name, that count as one observation. Other names count
        separately.
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
        """Cluster of every name, named after the first name of the cluster."""
        shared = {name: cluster[0] for cluster in self.clusters for name in cluster}
        return tuple(shared.get(name, name) for name in self.names)


@dataclass(frozen=True)
class Constituent:
    """Groups with one value of a category against groups with another value."""

    label: str
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class Grouping:
    """Groups for every combination of the values of some categories.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    groups : tuple of Group
        All groups.
    others : tuple of str
        Validated words that belong to no group.
    against : str or None
        Default group to compare with.
    source : Source
        Origin of the grouping.
    """

    name: str
    title: str
    groups: tuple[Group, ...]
    others: tuple[str, ...]
    against: str | None
    source: Source

    def group(self, name: str) -> Group:
        """Return a group by its name."""
        groups = {group.name: group for group in self.groups}
        if name not in groups:
            raise UnknownNameError("group", name, groups, f"(groups: {', '.join(groups)})")
        return groups[name]

    def comparison_groups(self, target: Group) -> tuple[Group, ...]:
        """Return all groups but the target."""
        return tuple(group for group in self.groups if group.name != target.name)

    def constituents(self, target: Group) -> tuple[Constituent, ...]:
        """Compare each category value of the target with every other value of that category."""
        return tuple(
            Constituent(
                f"{category}: {value} / {other}", self._groups_with(category, value), self._groups_with(category, other)
            )
            for category, value in target.belongs.items()
            for other in self.values(category)
            if other != value
        )

    def values(self, category: str) -> tuple[str, ...]:
        """Return the values of a category."""
        return tuple(dict.fromkeys(group.belongs[category] for group in self.groups))

    def _groups_with(self, category: str, value: str) -> tuple[str, ...]:
        return tuple(group.name for group in self.groups if group.belongs[category] == value)

    @property
    def validation_words(self) -> tuple[str, ...]:
        """All validated words, including those that belong to no group."""
        lists = [words for group in self.groups for words in (group.biases, group.emergent)]
        return tuple(dict.fromkeys(word for words in (*lists, self.others) for word in words))

    @property
    def digest(self) -> str:
        """Short hash of everything that affects results."""
        content = [
            [g.name, g.names, list(g.belongs.items()), g.biases, g.emergent, *([g.clusters] if g.clusters else [])]
            for g in self.groups
        ]
        return hashlib.blake2b(json.dumps([content, self.others]).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class GroupingEntry:
    """Grouping in a file, before its groups and word sets are resolved."""

    where: str
    title: str
    groups: Mapping[str, Mapping[str, Any]]
    others: tuple[str, ...]
    against: str | None


def read_grouping(reader: FieldReader, root: Mapping[str, Any]) -> GroupingEntry | None:
    """Read the tables [grouping] and [groups.NAME] of a file, if it has them."""
    readers = {**dict.fromkeys(("title", "against"), reader.string), "others": reader.strings}
    fields = reader.record(root.get("grouping", {}), "grouping", readers)
    groups = reader.table(root.get("groups", {}), "groups")
    if not groups:
        if fields:
            reader.fail("grouping", "the file has no groups; expected at least two tables [groups.NAME]")
        return None
    entries = {name: _read_group(reader, value, f"groups.{name}") for name, value in groups.items()}
    where, title = f"{reader.path}: field groups", fields.get("title", reader.path.stem)
    return GroupingEntry(where, title, entries, fields.get("others", ()), fields.get("against"))


def _read_group(reader: FieldReader, value: Any, where: str) -> dict[str, Any]:
    def read_words(words: Any, location: str) -> Words:
        if not isinstance(words, str | list):
            reader.fail(location, f"expected the name of a concept or a list of words, got {describe_type(words)}")
        return reader.string(words, location) if isinstance(words, str) else reader.distinct_words(words, location)

    def read_clusters(clusters: Any, location: str) -> Clusters:
        return reader.items(clusters, location, reader.distinct_words, "lists of names")

    words = dict.fromkeys(("names", "biases", "emergent"), read_words)
    texts = {"label": reader.string, "belongs": reader.texts_by_name}
    fields = reader.record(value, where, {**texts, **words, "clusters": read_clusters})
    belongs = fields.get("belongs", ())
    if not belongs:
        example = 'belongs = { race = "...", gender = "..." }'
        reader.fail(f"{where}.belongs", f"a group needs at least one category; write {example}")
    if len(belongs) == 1 and "emergent" in fields:
        reader.fail(
            f"{where}.emergent",
            f"the group has one category only, {belongs[0][0]!r}, and emergent words need at least two; remove "
            "them, or add a second category",
        )
    return fields


def resolve_grouping(entry: GroupingEntry, concepts: Mapping[str, Concept], source: Source) -> Grouping:
    """Look up the word sets of a grouping and check that its groups can be compared.

    Parameters
    ----------
    entry : GroupingEntry
        Grouping as written.
    concepts : mapping
        Word sets by name.
    source : Source
        Origin of the grouping.
    """
    groups = tuple(_make_group(entry.where, name, fields, concepts) for name, fields in entry.groups.items())
    others = tuple(dict.fromkeys(word for name in entry.others for word in _look_up_words(entry.where, name, concepts)))
    _check_cells(entry.where, groups)
    _check_names(entry.where, groups)
    grouping = Grouping(source.name, entry.title, groups, others, entry.against, source)
    if entry.against is not None:
        try:
            grouping.group(entry.against)
        except UsageError as error:
            raise StimulusError(f"{entry.where}: against: {error}") from error
    return grouping


def _make_group(where: str, name: str, fields: Mapping[str, Any], concepts: Mapping[str, Concept]) -> Group:
    where, listed = f"{where}.{name}", fields.get("names", name)
    if listed == name and name not in concepts:
        raise StimulusError(f'{where}: the group has no names; write names = ["...", "..."], or the name of a concept')
    names = _look_up_words(where, listed, concepts)
    biases, emergent = (_look_up_words(where, fields.get(key, ()), concepts) for key in ("biases", "emergent"))
    stray = next((word for word in emergent if word not in biases), None)
    if stray is not None:
        raise StimulusError(f"{where}: the emergent word {stray!r} is not among the biases of the group")
    if len(names) < 2:
        raise StimulusError(f"{where}: a group needs at least two names, got only {names[0]!r}")
    concept = concepts[listed] if isinstance(listed, str) else Concept(name, name, names)
    clusters = fields.get("clusters", concept.clusters)
    for i, problem in find_invalid_clusters(clusters, names):
        raise StimulusError(f"{where}.clusters[{i}]: {problem}")
    group = Group(name, fields.get("label", concept.label), names, dict(fields["belongs"]), biases, emergent, clusters)
    if len(set(group.cluster_labels)) < 2:
        raise StimulusError(f"{where}.clusters: all names are in one cluster; a group needs at least two clusters")
    return group


def find_invalid_clusters(clusters: Clusters, words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the index and the problem of each invalid cluster."""
    known, owner = set(words), dict[str, int]()
    for i, cluster in enumerate(clusters):
        if len(cluster) < 2:
            yield i, f"a cluster needs at least two words, got only {cluster[0]!r}"
        for word in cluster:
            if word not in known:
                yield i, f"{word!r} is not one of the words"
            if owner.setdefault(word, i) != i:
                yield i, f"{word!r} is already in another cluster"


def _look_up_words(where: str, words: Words, concepts: Mapping[str, Concept]) -> tuple[str, ...]:
    if not isinstance(words, str):
        return words
    if words not in concepts:
        raise StimulusError(f"{where}: {UnknownNameError('concept', words, concepts)}")
    return concepts[words].words


def _check_cells(where: str, groups: Sequence[Group]) -> None:
    """Check that every combination of values has one group; otherwise the categories could not be separated."""
    categories = list(groups[0].belongs)
    for group in groups:
        if sorted(group.belongs) != sorted(categories):
            got, expected = ", ".join(group.belongs), ", ".join(categories)
            raise StimulusError(f"{where}.{group.name}: has the categories {got}, the first group has {expected}")
    cells: dict[tuple[str, ...], str] = {}
    for group in groups:
        cell = tuple(group.belongs[category] for category in categories)
        if cell in cells:
            raise StimulusError(f"{where}: {cells[cell]!r} and {group.name!r} are both {' and '.join(cell)}")
        cells[cell] = group.name
    values = {category: dict.fromkeys(group.belongs[category] for group in groups) for category in categories}
    for category, names in values.items():
        if len(names) < 2:
            raise StimulusError(f"{where}: all groups have the {category} {next(iter(names))!r}; expected at least two")
    missing = [cell for cell in product(*values.values()) if cell not in cells]
    if missing:
        known = "; ".join(f"{category}: {', '.join(names)}" for category, names in values.items())
        raise StimulusError(f"{where}: no group is {' and '.join(missing[0])}; every combination needs one ({known})")


def _check_names(where: str, groups: Sequence[Group]) -> None:
    """Check that no name is in two groups, ignoring case as some models do: it would be compared with itself."""
    owner: dict[str, str] = {}
    for group in groups:
        for name in group.names:
            if name.casefold() in owner:
                other = owner[name.casefold()]
                places = f"in {other!r} and in {group.name!r}" if other != group.name else f"twice in {group.name!r}"
                raise StimulusError(f"{where}: the name {name!r} appears {places}")
            owner[name.casefold()] = group.name
