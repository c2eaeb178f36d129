"""Catalogue of bundled, plugin and user tests, and selection by name.

An entry point of another package is the path of a TOML file of tests, or of a folder of such files. Its collections
are always supplementary, so that installing a package does not change a default run.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from typing import Any, Protocol, TypeVar

from biassay.datasets.fields import DATA, attempt, collect_problems, describe_type, raise_problems
from biassay.datasets.groups import Grouping, resolve_grouping
from biassay.datasets.languages import PREFIX, SENTENCES, list_collections, match_language_tests
from biassay.datasets.schema import ROLES, Concept, GivenText, TemplateSet, Test, apply_description, load_topics
from biassay.datasets.stimulus_files import UNKNOWN_SOURCE, Document, TestEntry, read_document, read_test_mapping
from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.packages import load_plugins


class _Named(Protocol):
    @property
    def name(self) -> str: ...


NamedTest = TypeVar("NamedTest", bound=_Named)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Catalogue:
    """Tests, word sets, template sets and groupings by name."""

    tests: Mapping[str, Test]
    concepts: Mapping[str, Concept]
    template_sets: Mapping[str, TemplateSet]
    groupings: Mapping[str, Grouping]

    @property
    def collections(self) -> tuple[str, ...]:
        """Names of all collections of tests."""
        return tuple(dict.fromkeys(test.source.name for test in self.tests.values()))

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of all tests."""
        return tuple(dict.fromkeys(test.topic for test in self.tests.values()))

    @property
    def main_tests(self) -> tuple[Test, ...]:
        """Tests of a default run."""
        return tuple(t for t in self.tests.values() if t.alias_of is None and not t.source.supplementary)

    def tests_about(self, topic: str) -> tuple[Test, ...]:
        """Return the main tests of a topic, or those of supplementary collections if there are none."""
        tests = tuple(t for t in self.tests.values() if t.topic == topic and t.alias_of is None)
        return tuple(test for test in tests if not test.source.supplementary) or tests


def resolve_documents(documents: Sequence[Document], base: Catalogue) -> Catalogue:
    """Add the content of documents to a catalogue. They may refer to each other and to `base`."""
    concepts = dict(base.concepts)
    sets = dict(base.template_sets)
    for document in documents:
        concepts.update(document.concepts)
        sets.update(document.sets)
    tests = dict(base.tests)
    problems = [problem for document in documents for problem in document.problems]
    broken = {name for document in documents for name in document.broken}
    resolver = _Resolver(concepts, sets, tests, broken)
    waiting = [(document, entry) for document in documents for entry in document.tests]
    # A test may be derived from a later one or from one in another file: repeat until all are built.
    while waiting:
        unbuilt = {entry.name for _, entry in waiting}
        later = [(document, entry) for document, entry in waiting if entry.parent in unbuilt]
        for document, entry in waiting:
            if entry.parent in unbuilt:
                continue
            test = attempt(problems, None, resolver.build_test, document, entry)
            if test is None or entry.name in broken:
                broken.add(entry.name)
            else:
                tests[entry.name] = test
        if len(later) == len(waiting):
            raise StimulusError(f"{later[0][1].where}: the test is derived from itself")
        waiting = later
    groupings = {}
    for document in documents:
        if document.grouping is not None and not document.problems:
            with collect_problems(problems):
                groupings[document.source.name] = resolve_grouping(document.grouping, concepts, document.source)
    raise_problems(problems)
    return Catalogue(
        {name: tests[name] for name in _order_by_family(tests)}, concepts, sets, {**base.groupings, **groupings}
    )


def _look_up(where: object, kind: str, name: str, known: Mapping[str, Item]) -> Item:
    if name not in known:
        raise StimulusError(f"{where}: {UnknownNameError(kind, name, known)}")
    return known[name]


@dataclass(frozen=True)
class _Resolver:
    concepts: Mapping[str, Concept]
    template_sets: Mapping[str, TemplateSet]
    tests: Mapping[str, Test]
    broken: Set[str]

    def build_test(self, document: Document, entry: TestEntry) -> Test | None:
        """Build a test from its entry; return None if it refers to something that is reported as broken."""
        problems: list[str] = []
        targets, attributes = (
            attempt(problems, None, self.template_set, entry, name) for name in (entry.targets, entry.attributes)
        )
        concepts: dict[str, Concept] = {}
        for role in (role for role, name in entry.roles.items() if name not in self.broken):
            with collect_problems(problems):
                concepts[role] = self.concept(entry, role)
        raise_problems(problems)
        if self.broken & {entry.parent, entry.targets, entry.attributes}:
            return None
        if entry.parent:
            parent = _look_up(entry.where, "test", entry.parent, self.tests)
            title = entry.title or (f"{parent.title}, in sentences" if targets or attributes else parent.title)
            searched = (*document.source.searched_models, *parent.source.searched_models)
            fingerprints = (*document.source.fingerprints, *parent.source.fingerprints)
            source = replace(
                document.source,
                searched_models=tuple(dict.fromkeys(searched)),
                fingerprints=tuple(dict.fromkeys(fingerprints)),
            )
            test = replace(parent, name=entry.name, title=title, source=source, alias_of=entry.alias)
            if entry.alias is None:
                test = replace(test, targets=targets, attributes=attributes, variant_of=parent.question)
            return self.check(entry, test)
        if len(concepts) < len(ROLES):
            return None
        x, y, a, b = (concepts[role] for role in ROLES)
        title = entry.title or f"{x.label} or {y.label}, {a.label} or {b.label}"
        test = Test(entry.name, title, x, y, a, b, document.source, targets, attributes)
        return self.check(entry, apply_description(test, entry.description, entry.where))

    def concept(self, entry: TestEntry, role: str) -> Concept:
        concept = _look_up(f"{entry.where}: {role}", "concept", entry.roles[role], self.concepts)
        if entry.given_as_sentences and not concept.given:
            return replace(concept, given=tuple(map(GivenText, concept.words)))
        return concept

    def template_set(self, entry: TestEntry, name: str | None) -> TemplateSet | None:
        if name is None or name in self.broken:
            return None
        return _look_up(entry.where, "template set", name, self.template_sets)

    @staticmethod
    def check(entry: TestEntry, test: Test) -> Test:
        problems: list[str] = []
        pairs = dict.fromkeys((("X", "Y"), ("A", "B")), "a word can be in one set only")
        pairs |= dict.fromkeys(product("XY", "AB"), "a word cannot be both target and attribute")
        for (first, second), rule in pairs.items():
            words = set(test.concept(second).words)
            shared = [word for word in test.concept(first).words if word in words]
            if shared:
                problems.append(f"{entry.where}: {first} and {second} share {', '.join(map(repr, shared))}; {rule}")
        for role in ROLES:
            templates, concept = test.templates(role), test.concept(role)
            if templates is not None and concept.given:
                problems.append(
                    f"{entry.where}: the word set {concept.name!r} consists of finished texts, which do not fit into "
                    f"the templates {templates.name!r}; remove the templates, or list words"
                )
            if templates is not None and templates.uses_pronouns and concept.gender is None:
                reason = f"because its templates {templates.name!r} use pronouns"
                problems.append(f"{entry.where}: the word set {concept.name!r} needs a 'gender', {reason}")
        raise_problems(problems)
        return test


def _order_by_family(tests: Mapping[str, Test]) -> list[str]:
    """Return names in the order of definition, with derived tests directly after their parents."""
    concepts = {name: tuple(test.concept(role).name for role in ROLES) for name, test in tests.items()}
    order = {key: index for index, key in enumerate(dict.fromkeys(concepts.values()))}
    return sorted(tests, key=lambda name: order[concepts[name]])


ENTRY_POINT_GROUP = "biassay.tests"
_SELECTABLE = "test or collection"  # one name selects either, so they share no name


def add_plugin_tests(known: Catalogue) -> Catalogue:
    """Add the collections of other packages to a catalogue. Skip those that cannot be used."""
    builder = _CatalogueBuilder(known)
    load_plugins(ENTRY_POINT_GROUP, (), convert=builder.add)
    return builder.known


class _CatalogueBuilder:
    """Catalogue with the owner of each name."""

    def __init__(self, known: Catalogue) -> None:
        self.known = known
        selected = (*known.tests, *known.collections, *known.groupings, *load_topics())
        names = [(_SELECTABLE, selected), ("concept", known.concepts), ("template set", known.template_sets)]
        self.owners = {(kind, name): "biassay" for kind, known_names in names for name in known_names}

    def add(self, location: object) -> None:
        """Add the files of one entry point, all or none."""
        documents = [_read_plugin_document(file) for file in _find_toml_files(location)]
        collections = list(dict.fromkeys(document.source.name for document in documents))
        defined = [(_SELECTABLE, name) for name in collections]
        for document in documents:
            defined += ((_SELECTABLE, entry.name) for entry in document.tests)
            defined += (("concept", name) for name in document.concepts)
            defined += (("template set", name) for name in document.sets)
        for kind, name in defined:
            if (kind, name) in self.owners:
                raise UsageError(f"{self.owners[kind, name]} also defines the {kind} {name!r}; rename it")
            if defined.count((kind, name)) > 1:
                raise UsageError(f"it defines the {kind} {name!r} twice; rename one of them")
        self.known = resolve_documents(documents, self.known)
        self.owners |= dict.fromkeys(defined, f"the collection {collections[0]!r}")


def _find_toml_files(location: object) -> list[Traversable]:
    path = Path(location) if isinstance(location, str) else location
    if not isinstance(path, Traversable) or (isinstance(path, Path) and not path.is_absolute()):
        raise UsageError(f"expected an absolute path or importlib.resources.files(...), got {describe_type(location)}")
    files = sorted(path.iterdir(), key=lambda file: file.name) if path.is_dir() else [path]
    toml_files = [file for file in files if file.name.lower().endswith(".toml")]
    if not toml_files:
        raise UsageError(f"{path}: expected a TOML file, or a folder with one")
    return toml_files


def _read_plugin_document(file: Traversable) -> Document:
    with resources.as_file(file) as path:
        document = read_document(path)
    if document.source == UNKNOWN_SOURCE:
        raise UsageError(f"{file}: the table [source] is missing; its field 'name' names the collection")
    return replace(document, source=replace(document.source, supplementary=True))


_NO_YEAR = "9999"  # files that are not named after a paper come last
_FILE_ENDINGS = (".json", ".jsonl", ".toml")


@cache
def load_catalogue() -> Catalogue:
    """Load the bundled tests and those of other packages."""
    files = [file for folder in ("concepts", "templates", "tests", "groups") for file in (DATA / folder).glob("*.toml")]
    by_year = sorted(files, key=lambda path: ("".join(filter(str.isdigit, path.stem)) or _NO_YEAR, path.stem))
    return add_plugin_tests(resolve_documents([read_document(path) for path in by_year], Catalogue({}, {}, {}, {})))


def load_file(path: Path) -> tuple[tuple[Test, ...], Grouping | None]:
    """Load the tests and groups of a user's file. They may refer to the catalogue."""
    document = read_document(path)
    catalogue = resolve_documents([document], load_catalogue())
    tests = tuple(catalogue.tests[entry.name] for entry in document.tests)
    return tests, None if document.grouping is None else catalogue.groupings[document.source.name]


def load_tests(path: Path) -> tuple[Test, ...]:
    """Load the tests of a user's file."""
    tests, grouping = load_file(path)
    if not tests:
        content = "groups but no tests" if grouping else "no tests"
        raise StimulusError(f"{path}: the file defines {content}; expected at least one table [tests.NAME]")
    return tests


def load_grouping(path: Path) -> Grouping:
    """Load the groups of a user's file."""
    _, grouping = load_file(path)
    if grouping is None:
        raise StimulusError(f"{path}: the file defines no groups; expected at least two tables [groups.NAME]")
    return grouping


def select_grouping(name: str) -> Grouping:
    """Return a grouping by the name of its collection or by its file."""
    known = load_catalogue().groupings
    if name in known:
        return known[name]
    if name.lower().endswith(".toml"):
        return load_grouping(Path(name))
    raise UnknownNameError("grouping", name, known, f"(groupings: {', '.join(known)}; a file ends in .toml)")


def parse_tests(content: Mapping[str, Any]) -> tuple[Test, ...]:
    """Make tests from a dict with the words of X, Y, A and B, or from a dict of such dicts by name.

    Each of the four is a list of words, a dict with ``words`` and ``label``, or the name of a bundled word set. The
    keys ``name``, ``title``, ``about``, ``topic``, ``direction``, ``language`` and ``templates`` (name of a template
    set) are optional. The sent-bias form, with targ1, targ2, attr1 and attr2, is accepted too.
    """
    tests = []
    for document in read_test_mapping(content):
        catalogue = resolve_documents([document], load_catalogue())
        tests += [catalogue.tests[entry.name] for entry in document.tests]
    return tuple(tests)


def select_tests(patterns: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = ()) -> tuple[Test, ...]:
    """Select association tests from the catalogue, from files, or from dicts of words.

    Parameters
    ----------
    patterns : str, dict of words, or list of them
        Names (``weat6``), patterns (``sent-*``), collections (``may2019``), topics (``gender``), files, or dicts with
        the words of X, Y, A and B. By default the main collections.

    Returns
    -------
    tuple of Test

    Notes
    -----
    Collections and topics skip aliases (C1 for weat1), so that no test runs twice. Supplementary collections and those
    of other packages run only when named, so that they change neither a default run nor its correction for multiple
    tests. A topic includes them only if the main collections have no test of it.

    Examples
    --------
    >>> import biassay
    >>> [test.title for test in biassay.select_tests("weat1")]
    ['Flowers or insects, pleasant or unpleasant']
    """
    known = load_catalogue()
    patterns = (patterns,) if isinstance(patterns, str | Mapping) else tuple(patterns)
    return collect_selected(patterns, lambda pattern: _match_tests(pattern, known)) if patterns else known.main_tests


def collect_selected(patterns: Iterable[Any], match: Callable[[Any], Iterable[NamedTest]]) -> tuple[NamedTest, ...]:
    """Return the tests that patterns match, each once. Raise StimulusError if two different tests share a name."""
    selected: dict[str, NamedTest] = {}
    for pattern in patterns:
        for test in match(pattern):
            if selected.setdefault(test.name, test) != test:
                origin = f"in {pattern}" if isinstance(pattern, str) else "in the dict"
                raise StimulusError(f"two tests have the name {test.name!r}; rename the one {origin}")
    return tuple(selected.values())


def _match_tests(pattern: object, known: Catalogue) -> tuple[Test, ...]:
    if isinstance(pattern, Mapping):
        return parse_tests(pattern)
    if not isinstance(pattern, str):
        raise UsageError(f"expected a test name, a pattern, a file or a dict of words, got {describe_type(pattern)}")
    pattern = _correct_case(pattern, known)
    if pattern in known.tests:
        return (known.tests[pattern],)
    if pattern in known.collections:
        return tuple(t for t in known.tests.values() if t.source.name == pattern and t.alias_of is None)
    if pattern in known.topics:
        return known.tests_about(pattern)
    if pattern.casefold().removeprefix(SENTENCES).split("-")[0] == PREFIX:
        return match_language_tests(pattern, known.template_sets)
    if pattern.lower().endswith(_FILE_ENDINGS):
        if not Path(pattern).exists():
            raise StimulusError(f"{pattern}: cannot be read: No such file or directory")
        return load_tests(Path(pattern))
    tests = tuple(known.tests[name] for name in fnmatch.filter(known.tests, pattern))
    if not tests:
        raise _make_unknown_error(pattern, known)
    return tests


def _correct_case(pattern: str, known: Catalogue) -> str:
    """Return the only test, collection or topic whose name differs in case, or the pattern itself."""
    names = dict.fromkeys((*known.tests, *known.collections, *known.topics))
    same = [name for name in names if name.casefold() == pattern.casefold()]
    return same[0] if pattern not in names and len(same) == 1 else pattern


def _make_unknown_error(pattern: str, known: Catalogue) -> UnknownNameError:
    """Suggest a pattern if several tests start with the name, otherwise similar names and files."""
    longer = [name for name in known.tests if name.casefold().startswith(pattern.casefold())]
    if pattern and longer:
        suggestion = f"{longer[0][: len(pattern)]}*" if len(longer) > 1 else longer[0]
        hint = f"({len(longer)} tests start like this)" if len(longer) > 1 else ""
        return UnknownNameError("test", pattern, [suggestion], hint, similar_to=suggestion)
    if pattern.casefold().startswith("wat-"):
        hint = "(word association tests are for chat or instruct models: 'biassay ask MODEL --tests ...')"
        return UnknownNameError("test", pattern, (), hint)
    names = [*known.tests, *known.collections, *list_collections(), *known.topics, *_find_nearby_files(pattern)]
    hint = "(list all with 'biassay tests list'; a file ends in .json or .toml; models come before --tests)"
    return UnknownNameError("test", pattern, names, hint)


def _find_nearby_files(pattern: str) -> list[str]:
    """Return the test files in the folder of a pattern, as a user would type them."""
    folder = Path(pattern).parent
    try:
        files = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in _FILE_ENDINGS)
    except (OSError, ValueError):
        return []
    prefix = pattern[: len(pattern) - len(Path(pattern).name)]
    return [f"{prefix}{name}" for name in files]


@cache
def load_first_names() -> frozenset[str]:
    """Return first names in lower case. Some are ordinary words too, such as hope and mark."""
    text = (DATA / "first_names.txt").read_text("utf-8")
    listed = [line for line in text.splitlines() if not line.startswith("#")]
    name_lists = filter(_is_name_list, load_catalogue().concepts.values())
    stimuli = [word for concept in name_lists for word in concept.words]
    return frozenset(name.casefold() for name in (*listed, *stimuli))


def _is_name_list(concept: Concept) -> bool:
    """Return whether all words are single and capitalized, as only names are."""
    return all(word[:1].isupper() and " " not in word for word in concept.words)
