"""The catalogue: every file is walked, and every published list is met."""

from __future__ import annotations

from pathlib import Path

import pytest

from biassay.datasets.catalogue import load_catalogue, load_tests, select_tests
from biassay.datasets.schema import ROLES
from biassay.errors import StimulusError, UnknownNameError
from biassay.prompts.sentences import hash_texts

from ..published import KEYS, digests, published_digests

CALISKAN = [f"weat{i}" for i in range(1, 11)]
SWAPPED = ["weat3b", "weat5b", "weat6b", "weat7b", "weat8b"]
ANGRY = ["angry_black_woman_stereotype", "angry_black_woman_stereotype_b"]
WORD_TESTS = [*CALISKAN, *SWAPPED, *ANGRY]
DOUBLE_BIND = [
    f"heilman_double_bind_{trait}_{form}"
    for trait in ("competent", "likable")
    for form in ("one_word", "one_sentence", "1", "1-", "1+3-")
]
PUBLISHED = [
    *WORD_TESTS,
    *(f"sent-{name}" for name in WORD_TESTS),
    *DOUBLE_BIND,
    "sent-heilman_double_bind_competent_one_word",
    "sent-heilman_double_bind_likable_one_word",
]


def test_the_46_published_tests_and_no_others() -> None:
    assert len(PUBLISHED) == 46
    found = [test.name for test in load_catalogue().tests.values() if test.source.name in ("caliskan2017", "may2019")]
    assert sorted(found) == sorted(PUBLISHED)


def test_ceat_tests_and_name_lists() -> None:
    tests, concepts = load_catalogue().tests, load_catalogue().concepts
    for number in range(1, 11):
        alias = tests[f"C{number}"]
        assert alias.alias_of == f"weat{number}"
        assert hash_texts(alias) == hash_texts(tests[f"weat{number}"])
    sizes = {name: tuple(len(tests[name].concept(role).words) for role in ROLES) for name in ("I1", "I2", "I3", "I4")}
    assert sizes == {"I1": (12, 12, 13, 13), "I2": (12, 12, 8, 8), "I3": (12, 12, 12, 12), "I4": (12, 12, 6, 6)}
    for race in ("african", "european", "mexican"):
        for gender in ("females", "males"):
            assert len(concepts[f"{race}-american-{gender}"].words) == 12


def test_every_data_file_says_where_it_comes_from() -> None:
    for test in load_catalogue().tests.values():
        for text in (test.source.name, test.source.citation, test.source.licence, test.source.version):
            assert len(text) > 0
            assert text != "not stated"
    for templates in load_catalogue().template_sets.values():
        assert len(templates.source.citation) > 20


def test_every_concept_is_clean() -> None:
    for concept in load_catalogue().concepts.values():
        assert len(set(concept.words)) == len(concept.words) >= 2
        assert all(word == " ".join(word.split()) for word in concept.words)


def test_word_lists_equal_the_published_ones(reference: Path) -> None:
    published = published_digests(reference)
    for name in [*WORD_TESTS, "heilman_double_bind_competent_one_word", "heilman_double_bind_likable_one_word"]:
        for role, key in KEYS.items():
            concept = load_catalogue().tests[name].concept(role)
            found = dict(zip(concept.words, digests(concept.words), strict=True))
            wrong = [word for word, digest in found.items() if digest not in published[name][key]["examples"]]
            assert wrong == [], (name, role)
            assert list(found.values()) == published[name][key]["examples"], (name, role)
            assert concept.label == published[name][key]["category"], (name, role)


def test_selection_by_name_pattern_collection_and_alias() -> None:
    assert [t.name for t in select_tests(["weat1", "weat1", "weat2"])] == ["weat1", "weat2"]
    assert {t.name for t in select_tests(["sent-*"])} == {n for n in PUBLISHED if n.startswith("sent-")}
    assert [t.name for t in select_tests(["caliskan2017"])] == CALISKAN
    assert [t.name for t in select_tests(["guo2021"])] == ["I1", "I2", "I3", "I4"]
    assert [t.name for t in select_tests(["C3"])] == ["C3"]
    assert select_tests("weat6") == select_tests(["weat6"])
    assert select_tests("sent-*") == select_tests(["sent-*"])
    assert sorted(t.name for t in select_tests()) == sorted([*PUBLISHED, "I1", "I2", "I3", "I4"])


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'sent-weat1'"):
        select_tests(["sent_weat1"])


OWN = """
[source]
name = "mine"
citation = "A list of my own"
licence = "CC0"
version = "3"

[concepts.cats]
words = ["cat", "lynx", "puma"]

[concepts.dogs]
words = ["dog", "wolf"]

[sets.plain]
templates = ["I saw {a T}.", "{Ts} are near."]

[tests.pets]
X = "cats"
Y = "dogs"
A = "pleasant"
B = "unpleasant"

[tests.pets-in-sentences]
of = "pets"
targets = "plain"
attributes = "bleached"
"""
TEMPLATES = 'templates = ["I saw {a T}.", "{Ts} are near."]'
CLASSES = 'classes = [{ name = "c", rule = "rest", templates = ["{T}."] }]'


def test_own_format_may_use_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "pets.toml"
    path.write_text(OWN)
    words, sentences = load_tests(path)
    path.write_text(OWN.replace(TEMPLATES, CLASSES))
    assert len(load_tests(path)) == 2
    assert (words.name, words.level, sentences.level) == ("pets", "word", "sentence")
    assert load_catalogue().concepts["pleasant"] == words.A
    assert words.source.version == "3"
    assert sentences.X.words == ("cat", "lynx", "puma")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('words = ["dog", "wolf"]', 'words = ["dog"]'), r"field concepts\.dogs\.words: .*at least two words.*'dog'"),
        (('words = ["dog", "wolf"]', "words = []"), r"concepts\.dogs\.words: the list is empty"),
        (('words = ["dog", "wolf"]', 'words = ["dog", "dog"]'), r"'dog' appears twice"),
        (('words = ["dog", "wolf"]', 'words = ["dog", " wolf"]'), r"' wolf' begins or ends with a blank"),
        (('words = ["dog", "wolf"]', 'words = ["dog", 3]'), r"concepts\.dogs\.words\[1\]: expected a text"),
        (('words = ["dog", "wolf"]', 'words = ["dog", "cat"]'), r"X and Y share 'cat'"),
        (('Y = "dogs"', 'Y = "dgos"'), r"unknown concept 'dgos'; did you mean 'dogs'"),
        (('Y = "dogs"', ""), r"field tests\.pets: .*Y missing"),
        (('targets = "plain"', 'targets = "plane"'), r"unknown template set 'plane'"),
        (('of = "pets"', 'of = "pests"'), r"unknown test 'pests'"),
        (('of = "pets"', 'of = "pets-in-sentences"'), r"derived from itself"),
        (('"I saw {a T}."', '"I saw it."'), r"no slot for the word"),
        (('"I saw {a T}."', '"I saw {a B}."'), r"unknown slot \{a B\}"),
        (('licence = "CC0"', 'license = "CC0"'), r"field source\.license: unknown field; did you mean 'licence'"),
        (('version = "3"', ""), r"field source: the field 'version' is missing"),
        (("[concepts.cats]", "[concept.cats]"), r"field concept: unknown field; did you mean 'concepts'"),
        (('name = "mine"', 'name = "mine'), r"not valid TOML: .*line 3"),
        (('targets = "plain"', 'target = "plain"'), r"sentences\.target: unknown field; did you mean 'targets'"),
        (('words = ["dog", "wolf"]', ""), r"line 11: field concepts\.dogs: .*'words' is missing"),
        (
            ('words = ["dog", "wolf"]', 'words = ["dog", "wolf"]\ngender = "f"'),
            r"concepts\.dogs\.gender: .*male, female",
        ),
        ((TEMPLATES, "classes = 3"), r"sets\.plain\.classes: .*int 3"),
        ((TEMPLATES, CLASSES.replace("rest", "reste")), r"classes\[0\]\.rule: .*'reste'"),
        ((TEMPLATES, CLASSES.replace("rest", "listed")), r"classes\[0\].*words"),
        ((TEMPLATES, CLASSES.replace("name =", "except_ending = 3, name =")), r"classes\[0\]\.except_ending: .*int 3"),
        (("[sets.plain]", "[sets.plain]\nplurals = { dog = 1 }"), r"sets\.plain\.plurals.*int 1"),
        (("[sets.plain]", "[sets.plain]\narticles = 5"), r"sets\.plain\.articles.*int 5"),
    ],
)
def test_faults_of_own_files_are_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "faulty.toml"
    assert change[0] in OWN
    path.write_text(OWN.replace(*change))
    with pytest.raises(StimulusError, match=message) as caught:
        load_tests(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["own.json", "own.toml"])
@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000], ids=["brackets", "digits"])
def test_values_that_cannot_be_taken_in_name_the_file(tmp_path: Path, name: str, value: str) -> None:
    path = tmp_path / name
    path.write_text(f"a = {value}" if name.endswith("toml") else f'{{"a": {value}}}')
    with pytest.raises(StimulusError, match="not valid") as caught:
        select_tests([str(path)])
    assert str(caught.value).startswith(f"{path}: ")


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        """
[concepts.cats]
words = ["cat", 3, "lynx", ""]
[concepts.dogs]
wrods = ["dog", "wolf"]
[concepts.birds]
words = ["hawk", "dove"]
[concepts.fish]
words = ["dove", "trout", "trout", " eel"]
clusters = [["dove"], ["crow", "dove"]]
[concepts.trees]
words = ["oak", "elm", "dove"]
label = ""
gender = "both"
[concepts.stones]
words = ["flint", "slate", "dove"]
[tests.pets]
X = "cats"
Y = "dogs"
A = "birds"
B = "fish"
[tests.animals]
X = "birds"
Y = "stones"
A = "pleasant"
B = "unpleasant"
topic = "colour"
direction = "up"
given_as_sentences = "no"
[tests.colours]
X = "birds"
Y = "reds"
A = "blues"
B = "fish"
targets = "bleeched"
direktion = "positive"
[tests.part]
X = "birds"
A = "greens"
title = 5
"""
    )
    with pytest.raises(StimulusError) as caught:
        load_tests(path)
    expected = [
        "field concepts.cats.words[1]: expected a text",
        "field concepts.cats.words[3]: expected a text",
        "did you mean 'words'?",
        "field concepts.fish.words[3]: the word ' eel' begins",
        "field concepts.fish.words: the word 'trout' appears twice",
        "field concepts.trees.label: expected a text",
        "field concepts.trees.gender: expected one of male, female",
        "field tests.animals.topic: expected one of",
        "field tests.animals.direction: expected one of",
        "field tests.animals.given_as_sentences: expected true or false",
        "field tests.colours.direktion: unknown field; did you mean 'direction'",
        "field tests.part.title: expected a text",
        "field tests.part: a test needs the concepts X, Y, A and B, or another test as 'of' (Y, B missing)",
        "field tests.animals: X and Y share 'dove'",
        "field tests.colours: unknown template set 'bleeched'",
        "field tests.colours: Y: unknown concept 'reds'",
        "field tests.colours: A: unknown concept 'blues'",
        "field tests.part: A: unknown concept 'greens'",
    ]
    lines = str(caught.value).splitlines()
    assert len(lines) == len(expected)
    assert all(part in line for part, line in zip(expected, lines, strict=True))


def test_a_file_without_tests_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("[concepts.cats]\nwords = ['cat', 'lynx']\n")
    with pytest.raises(StimulusError, match="defines no tests"):
        load_tests(path)


def test_a_pronoun_needs_a_gender(tmp_path: Path) -> None:
    path = tmp_path / "pronoun.toml"
    path.write_text(OWN.replace("{Ts} are near.", "{T} is near. {She} waits."))
    with pytest.raises(StimulusError, match="'cats' needs a 'gender'"):
        load_tests(path)
