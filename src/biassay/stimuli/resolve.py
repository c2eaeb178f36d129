"""Names in data files looked up: concepts, templates and tests become the tests they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from biassay.errors import StimulusError, UnknownNameError
from biassay.stimuli.description import described
from biassay.stimuli.document import Document, TestEntry
from biassay.stimuli.fields import raise_problems
from biassay.stimuli.groups import Grouping, resolve_grouping
from biassay.stimuli.model import ROLES, Concept, GivenText, TemplateSet, Test

__all__ = ["Catalogue", "resolve"]


@dataclass(frozen=True)
class Catalogue:
    """Tests, concepts, templates and groupings by name."""

    tests: Mapping[str, Test]
    concepts: Mapping[str, Concept]
    sets: Mapping[str, TemplateSet]
    groupings: Mapping[str, Grouping]

    @property
    def collections(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(test.source.name for test in self.tests.values()))

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(test.topic for test in self.tests.values()))

    @property
    def main(self) -> tuple[Test, ...]:
        """The tests of a default run."""
        return tuple(t for t in self.tests.values() if t.alias_of is None and not t.source.supplementary)

    def about(self, topic: str) -> tuple[Test, ...]:
        """The main tests of a topic, or where there are none, those of supplementary collections."""
        found = tuple(t for t in self.tests.values() if t.topic == topic and t.alias_of is None)
        return tuple(test for test in found if not test.source.supplementary) or found


def resolve(documents: Sequence[Document], base: Catalogue) -> Catalogue:
    """What the documents define, added to ``base``; they may refer to each other and to it."""
    concepts = dict(base.concepts)
    sets = dict(base.sets)
    for document in documents:
        concepts.update(document.concepts)
        sets.update(document.sets)
    tests = dict(base.tests)
    resolver = _Resolver(concepts, sets, tests)
    problems = [problem for document in documents for problem in document.problems]
    broken = {name for document in documents for name in document.broken}
    waiting = [(document, entry) for document in documents for entry in document.tests]
    own = {entry.name for _, entry in waiting}
    # A test may be made from one that stands later or in another file: go round until all are made.
    while waiting:
        later = [(d, e) for d, e in waiting if (e.of or e.alias) in own]
        for document, entry in waiting:
            if (entry.of or entry.alias) in own:
                continue
            if broken & {entry.of, entry.alias, entry.targets, entry.attributes, *entry.roles.values()}:
                broken.add(entry.name)
                continue
            try:
                tests[entry.name] = resolver.build(document, entry)
            except StimulusError as error:
                problems.append(str(error))
                broken.add(entry.name)
        own = {entry.name for _, entry in later}
        if len(later) == len(waiting):
            raise StimulusError(f"{later[0][1].where}: the test is made from itself")
        waiting = later
    groupings = {}
    for document in documents:
        if document.grouping is not None and not document.problems:
            try:
                groupings[document.source.name] = resolve_grouping(document.grouping, concepts, document.source)
            except StimulusError as error:
                problems.append(str(error))
    raise_problems(problems)
    return Catalogue({name: tests[name] for name in _families(tests)}, concepts, sets, {**base.groupings, **groupings})


@dataclass(frozen=True)
class _Resolver:
    concepts: Mapping[str, Concept]
    sets: Mapping[str, TemplateSet]
    tests: Mapping[str, Test]

    def build(self, document: Document, entry: TestEntry) -> Test:
        targets = self.template_set(entry, entry.targets)
        attributes = self.template_set(entry, entry.attributes)
        if entry.of or entry.alias:
            parent = self.tests.get(entry.of or entry.alias or "")
            if parent is None:
                raise StimulusError(
                    f"{entry.where}: {UnknownNameError('test', entry.of or entry.alias or '', self.tests)}"
                )
            title = entry.title or (f"{parent.title}, in sentences" if targets or attributes else parent.title)
            searched = (*document.source.searched_models, *parent.source.searched_models)
            source = replace(document.source, searched_models=tuple(dict.fromkeys(searched)))
            made = replace(parent, name=entry.name, title=title, source=source, alias_of=entry.alias)
            if entry.alias is None:
                words = parent.variant_of or parent.name
                made = replace(made, targets=targets, attributes=attributes, variant_of=words)
            return self.checked(entry, made)
        x, y, a, b = (self.concept(entry, role) for role in ROLES)
        title = entry.title or f"{x.label} or {y.label}, {a.label} or {b.label}"
        made = Test(entry.name, title, x, y, a, b, document.source, targets, attributes)
        return self.checked(entry, described(made, entry.description, entry.where))

    def concept(self, entry: TestEntry, role: str) -> Concept:
        name = entry.roles[role]
        if name not in self.concepts:
            raise StimulusError(f"{entry.where}: {role}: {UnknownNameError('concept', name, self.concepts)}")
        found = self.concepts[name]
        if entry.given_as_sentences and not found.given:
            return replace(found, given=tuple(map(GivenText, found.words)))
        return found

    def template_set(self, entry: TestEntry, name: str | None) -> TemplateSet | None:
        if name is None:
            return None
        if name not in self.sets:
            raise StimulusError(f"{entry.where}: {UnknownNameError('template set', name, self.sets)}")
        return self.sets[name]

    @staticmethod
    def checked(entry: TestEntry, test: Test) -> Test:
        for one, other in (("X", "Y"), ("A", "B")):
            others = set(test.concept(other).words)
            shared = [word for word in test.concept(one).words if word in others]
            if shared:
                words = ", ".join(map(repr, shared))
                raise StimulusError(
                    f"{entry.where}: {one} and {other} share {words}; a word can stand on one side only"
                )
        for target, attribute in product("XY", "AB"):
            attributes = set(test.concept(attribute).words)
            shared = [word for word in test.concept(target).words if word in attributes]
            if shared:
                words = ", ".join(map(repr, shared))
                raise StimulusError(
                    f"{entry.where}: {target} and {attribute} share {words}; a word cannot be both target and attribute"
                )
        for role in ROLES:
            templates, concept = test.templates(role), test.concept(role)
            if templates is not None and concept.given:
                raise StimulusError(
                    f"{entry.where}: the concept {concept.name!r} holds finished texts, which cannot be put into the "
                    f"templates {templates.name!r}; leave the templates out, or give words"
                )
            if templates is not None and templates.uses_pronouns and concept.gender is None:
                slots = f"its templates {templates.name!r} use pronouns"
                raise StimulusError(f"{entry.where}: the concept {concept.name!r} needs a 'gender', for {slots}")
        return test


def _families(tests: Mapping[str, Test]) -> list[str]:
    """Names in the order of definition, but a test made from another right behind it."""
    first: dict[tuple[str, ...], int] = {}
    for test in tests.values():
        first.setdefault(tuple(test.concept(role).name for role in ROLES), len(first))
    return sorted(tests, key=lambda name: first[tuple(tests[name].concept(role).name for role in ROLES)])
