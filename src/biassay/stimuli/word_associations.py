"""Word association tests for chat or instruct models: words of two groups, and words of two poles to give to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError, UnknownNameError
from biassay.stats.crossed_answers import crossed_floor
from biassay.stats.permutation import smallest_p
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.document import UNKNOWN_SOURCE
from biassay.stimuli.model import About, Concept, Source, Test
from biassay.stimuli.word_association_reading import (
    AssociationEntry,
    Form,
    Wording,
    folded,
    holds_word_associations,
    is_association_mapping,
    read_association_mapping,
    read_word_associations,
)

__all__ = [
    "Form",
    "WordAssociationTest",
    "Wording",
    "association_test_of",
    "folded",
    "holds_word_associations",
    "load_word_associations",
    "published_word_associations",
    "select_word_associations",
    "select_wordings",
    "testable_word_associations",
]

PREFIX = "wat-"
ALL = "all"
ROLES = ("default", "stigmatised", "positive", "negative")


@dataclass(frozen=True)
class WordAssociationTest:
    """Attribute words of two poles, each of which is to be given to one of two group words.

    A stereotype gives ``negative`` words to ``stigmatised`` group words and ``positive`` ones to ``default`` ones.
    """

    name: str
    title: str
    default: Concept
    stigmatised: Concept
    positive: Concept
    negative: Concept
    source: Source
    topic: str = "other"
    about: About = "people"
    published_as: str = ""
    variant_of: str = ""

    @property
    def question(self) -> str:
        """The question that the test asks; another form of a test (other words, another name) asks the same one."""
        return self.variant_of or self.name

    @property
    def concepts(self) -> dict[str, Concept]:
        """The four sets of words by role."""
        return {role: getattr(self, role) for role in ROLES}

    @property
    def words(self) -> tuple[str, ...]:
        """The attribute words, those of the positive pole first."""
        return (*self.positive.words, *self.negative.words)

    @property
    def is_negative(self) -> tuple[bool, ...]:
        """Of every attribute word, whether it is of the negative pole."""
        return (False,) * len(self.positive.words) + (True,) * len(self.negative.words)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Group words that are asked about together, the default one first; no word is in two pairs."""
        return tuple(zip(self.default.words, self.stigmatised.words, strict=False))

    @property
    def unpaired(self) -> tuple[str, ...]:
        """Group words of the longer list that are in no pair."""
        n = len(self.pairs)
        return (*self.default.words[n:], *self.stigmatised.words[n:])

    @property
    def smallest_p_value(self) -> float:
        """The smallest p-value that the test can have, whatever a model answers.

        With several pairs of group words it holds for other pairs: flipping the signs of n pairs cannot give less than
        2^(1 - n). With one pair it holds for this pair, and the number of words decides.
        """
        n, m, pairs = len(self.negative.words), len(self.positive.words), len(self.pairs)
        return crossed_floor(n, m, pairs) if pairs > 1 else smallest_p(n, m, "two-sided")

    def is_descriptive(self, alpha: float = 0.05) -> bool:
        """Return whether no response could make the test significant at `alpha`."""
        return self.smallest_p_value > alpha

    @property
    def digest(self) -> str:
        """A short fingerprint of all words, by role."""
        content = [getattr(self, role).words for role in ROLES]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


def association_test_of(test: Test) -> WordAssociationTest:
    """An association test, to be answered: group words are those of X and Y, attribute words those of A and B.

    The expected answers give words of A to X and words of B to Y. A test that puts its words into sentences is none
    that can be answered: it would be the one of words.
    """
    if test.targets or test.attributes or test.variant_of:
        instead = f"name {test.variant_of!r}" if test.variant_of else "leave out its templates"
        raise StimulusError(f"the test {test.name!r} is one of sentences; models are asked about words: {instead}")
    if not test.tells_words:
        raise StimulusError(
            f"the test {test.name!r} has finished texts and does not say which words they were made from; "
            "choose a test of words, or state 'words' beside the texts"
        )
    roles = dict(zip(ROLES, (test.X, test.Y, test.A, test.B), strict=True))
    return _made(
        f"test {test.name!r}",
        test.name,
        test.title,
        roles,
        test.source,
        topic=test.topic,
        about=test.about,
        variant_of=test.alias_of or "",
    )


def load_word_associations(path: Path) -> tuple[dict[str, WordAssociationTest], dict[str, Wording]]:
    """Tests and wordings of a TOML file, by name."""
    found = read_word_associations(path)
    tests = {entry.name: _test_of(entry, found.source) for entry in found.tests}
    return tests, {wording.name: wording for wording in found.wordings}


def _test_of(entry: AssociationEntry, source: Source) -> WordAssociationTest:
    described = {
        "topic": entry.topic,
        "about": entry.about,
        "published_as": entry.published_as,
        "variant_of": entry.variant_of,
    }
    return _made(entry.where, entry.name, entry.title, entry.roles, source, **described)


def _made(
    where: str, name: str, title: str, roles: Mapping[str, Concept], source: Source, **more: Any
) -> WordAssociationTest:
    """A test whose words can be told apart in an answer, whatever their case."""
    owners: dict[str, str] = {}
    for role in ROLES:
        for word in roles[role].words:
            owner = owners.setdefault(folded(word), role)
            if owner != role:
                raise StimulusError(
                    f"{where}: the word {word!r} is {owner} and {role}; in an answer it could not be told which"
                )
    default, stigmatised, positive, negative = (roles[role] for role in ROLES)
    return WordAssociationTest(name, title, default, stigmatised, positive, negative, source, **more)


@cache
def _shipped() -> tuple[dict[str, WordAssociationTest], dict[str, Wording]]:
    folder = Path(str(resources.files("biassay.stimuli") / "data" / "word_associations"))
    files = [load_word_associations(path) for path in sorted(folder.glob("*.toml"))]
    tests = {name: test for found, _ in files for name, test in found.items()}
    return tests, {name: wording for _, found in files for name, wording in found.items()}


def select_word_associations(
    patterns: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = (),
) -> tuple[WordAssociationTest, ...]:
    """Choose word association tests; all 21 published ones by default.

    Parameters
    ----------
    patterns : str, dict of words, or list of them
        ``all`` (the published ones), names (``wat-career``, or ``career``, as published), patterns (``wat-*``), topics
        (``gender``), the collection ``bai2025``, TOML files with tables [datasets.NAME], dicts with the words of
        ``default``, ``stigmatised``, ``positive`` and ``negative``, or what `select_tests` takes: any association test
        of words (``weat6``), with X and Y for the groups and A and B for the poles. A topic means the published tests
        of it where there are any. Of a topic, a collection or a pattern, tests in sentences are left out.

    Returns
    -------
    tuple of WordAssociationTest
    """
    patterns = (patterns,) if isinstance(patterns, str | Mapping) else tuple(patterns)
    if not patterns:
        return published_word_associations()
    chosen: dict[str, WordAssociationTest] = {}
    for pattern in patterns:
        for test in _matching(pattern):
            if chosen.setdefault(test.name, test) != test:
                of = f"in {pattern}" if isinstance(pattern, str) else "given as a dict"
                raise StimulusError(f"two tests of the name {test.name!r} are asked for; rename the one {of}")
    return tuple(chosen.values())


def testable_word_associations(alpha: float) -> tuple[WordAssociationTest, ...]:
    """Return the published tests that can be significant at `alpha`. The others are descriptive."""
    return tuple(test for test in published_word_associations() if not test.is_descriptive(alpha))


def published_word_associations(pattern: str = "*") -> tuple[WordAssociationTest, ...]:
    """Those of the published tests that a name, a topic, the collection or a pattern means; none: it means others."""
    tests = tuple(_shipped()[0].values())
    if pattern == ALL:
        return tests
    by_name = tuple(test for test in tests if pattern in (test.name, test.published_as))
    about = tuple(test for test in tests if pattern in (test.topic, test.source.name))
    short = tuple(test for test in tests if test.name == PREFIX + pattern)
    return by_name or about or short or tuple(test for test in tests if fnmatchcase(test.name, pattern))


def _matching(pattern: str | Mapping[str, Any]) -> tuple[WordAssociationTest, ...]:
    if isinstance(pattern, Mapping):
        if is_association_mapping(pattern):
            return tuple(_test_of(entry, UNKNOWN_SOURCE) for entry in read_association_mapping(pattern))
        return tuple(map(association_test_of, select_tests(pattern)))
    if isinstance(pattern, str) and (found := published_word_associations(pattern)):
        return found
    if isinstance(pattern, str) and pattern.lower().endswith(".toml") and holds_word_associations(Path(pattern)):
        own, _ = load_word_associations(Path(pattern))
        if not own:
            raise StimulusError(f"{pattern}: the file defines wordings and no tests; expected tables [datasets.NAME]")
        return tuple(own.values())
    try:
        tests = select_tests(pattern)
        of_words = [test for test in tests if test.level == "word"]
        return tuple(map(association_test_of, of_words or tests))
    except UnknownNameError as error:
        names = [*(test.name for test in published_word_associations()), *error.nearest]
        hint = "(the published ones begin with wat-; 'biassay tests list' shows the others)"
        raise UnknownNameError("word association test", pattern, names, hint) from error


def select_wordings(names: str | Iterable[str] = (), *, form: Form = "list") -> tuple[Wording, ...]:
    """Wordings of a form of prompt, by name; all of them by default, of lists the published one first."""
    names = (names,) if isinstance(names, str) else tuple(names)
    known = {name: wording for name, wording in _shipped()[1].items() if wording.form == form}
    for name in names:
        if name not in known:
            raise UnknownNameError("wording", name, known, f"(wordings: {', '.join(known)})")
    return tuple(known[name] for name in dict.fromkeys(names)) or tuple(known.values())
