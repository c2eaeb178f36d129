"""Descriptions of tests: both file formats keep them, and the digest of a test ignores them."""

from __future__ import annotations

import dataclasses
import tomllib
from collections import Counter
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from biassay.datasets.catalogue import load_catalogue, load_tests, select_tests
from biassay.datasets.schema import Test, describe_test, load_topics
from biassay.datasets.stimulus_files import read_document, to_sent_bias, to_toml
from biassay.errors import StimulusError
from biassay.prompts.sentences import get_given_texts, hash_texts

DATA = Path(str(resources.files("biassay.datasets") / "data"))
FORMS: dict[str, Callable[[Test], str]] = {
    "json": lambda test: to_sent_bias(test, get_given_texts(test)),
    "toml": lambda test: to_toml(test),
}
OWN = """
[concepts.cats]
words = ["cat", "lynx"]
[concepts.dogs]
words = ["dog", "wolf"]
[concepts.birds]
words = ["hawk", "dove"]
[sets.plain]
templates = ["I saw {a T}."]
[tests.pets]
X = "cats"
Y = "dogs"
A = "pleasant"
B = "unpleasant"
[tests.pets-seen]
of = "pets"
targets = "plain"
attributes = "bleached"
[tests.pets-seen-again]
of = "pets-seen"
targets = "bleached"
[pairs.groups]
cats = "cats"
dogs = "dogs"
birds = "birds"
[pairs.attributes]
attitude = ["pleasant", "unpleasant"]
"""


def written(folder: Path, content: str, name: str = "own.toml") -> Path:
    path = folder / name
    path.write_text(content)
    return path


# ---- what is shipped


def test_every_shipped_test_states_what_it_is_about() -> None:
    for file in sorted((DATA / "tests").glob("*.toml")):
        for entry in read_document(file).tests:
            if entry.roles:
                assert entry.description.get("about") is not None, entry.name
                assert entry.description.get("topic") not in (None, "other"), entry.name
            else:
                assert (entry.parent) in load_catalogue().tests, entry.name
    for file in (DATA / "templates").glob("*.toml"):
        for name, templates in tomllib.loads(file.read_text())["sets"].items():
            assert templates["kind"] in ("bleached", "unbleached"), name


def test_variants_are_of_word_tests_of_the_same_topic() -> None:
    tests = load_catalogue().tests
    for test in tests.values():
        assert (test.variant_of is None) == (test.template == "none") == (test.level == "word"), test.name
        same = tests[test.variant_of or test.alias_of or test.name]
        assert (same.about, same.topic, same.variant_of) == (test.about, test.topic, None), test.name
        assert (same.X, same.Y, same.A, same.B) == (test.X, test.Y, test.A, test.B), test.name
    assert Counter(test.template for test in tests.values()) == {"none": 103, "bleached": 19, "unbleached": 8}


def test_checks_of_the_method_are_those_of_the_papers() -> None:
    checks = {test.name for test in load_catalogue().tests.values() if test.about == "method"}
    assert checks == {"weat1", "sent-weat1", "C1", "weat2", "sent-weat2", "C2"}
    assert checks == {test.name for test in load_catalogue().tests.values() if test.topic == "things"}


def test_tests_are_chosen_by_topic_without_aliases_and_supplements() -> None:
    assert {t.name for t in select_tests("age")} == {"weat10", "sent-weat10"}
    chosen = [test for topic in load_topics() if topic in load_catalogue().topics for test in select_tests(topic)]
    assert sorted(t.name for t in chosen) == sorted(t.name for t in select_tests())


# ---- a user's own file


def test_a_file_that_says_nothing_is_about_people_and_anything(tmp_path: Path) -> None:
    found = {test.name: describe_test(test) for test in load_tests(written(tmp_path, OWN))}
    own: dict[str, Any] = {
        "about": "people",
        "topic": "other",
        "variant_of": None,
        "template": "none",
        "direction": None,
        "language": None,
    }
    assert found["pets"] == found["cats-dogs-attitude"] == own
    assert found["pets-seen"] == own | {"variant_of": "pets", "template": "other"}
    assert found["pets-seen-again"] == own | {"variant_of": "pets", "template": "bleached"}


def test_variants_and_pairs_take_what_is_stated_once(tmp_path: Path) -> None:
    content = OWN.replace("[tests.pets]", '[tests.pets]\nabout = "method"\ntopic = "things"')
    pairs = '[pairs]\nabout = "method"\ntopic = "age"\n[pairs.topics]\nrace = ["cats-birds"]\n[pairs.groups]'
    tests = {t.name: t for t in load_tests(written(tmp_path, content.replace("[pairs.groups]", pairs)))}
    assert {(tests[name].about, tests[name].topic) for name in ("pets", "pets-seen")} == {("method", "things")}
    assert {name: tests[f"{name}-attitude"].topic for name in ("cats-dogs", "cats-birds", "dogs-birds")} == {
        "cats-dogs": "age", "cats-birds": "race", "dogs-birds": "age",
    }  # fmt: skip
    assert tests["cats-birds-attitude"].about == "method"


@pytest.mark.parametrize(
    ("change", "field", "got", "allowed"),
    [
        (("[tests.pets]", '[tests.pets]\nabout = "animals"'), "tests.pets.about", "animals", "people, method"),
        (("[tests.pets]", '[tests.pets]\ntopic = "sex"'), "tests.pets.topic", "sex", "gender, race"),
        (("[tests.pets]", '[tests.pets]\ntemplate = "plain"'), "tests.pets.template", "plain", "bleached, unbleached"),
        (("[tests.pets]", '[tests.pets]\ntemplate = "bleached"'), "template", "bleached", "none"),
        (("[tests.pets]", "[tests.pets]\nvariant_of = 3"), "tests.pets.variant_of", "3", "a text"),
        (('of = "pets"', 'of = "pets"\ntopic = "age"'), "tests.pets-seen.topic", "pets", "remove"),
        (("[sets.plain]", '[sets.plain]\nkind = "bleach"'), "sets.plain.kind", "bleach", "bleached, unbleached, other"),
        (("[pairs.groups]", '[pairs]\ntopic = "sex"\n[pairs.groups]'), "pairs.topic", "sex", "gender, race"),
        (("[pairs.groups]", '[pairs.topics]\nage = ["a-b"]\n[pairs.groups]'), "pairs.topics.age", "a-b", "cats-dogs"),
        (("[pairs.groups]", '[pairs.topics]\nsex = ["cats-dogs"]\n[pairs.groups]'), "pairs.topics.sex", "sex", "age"),
        (
            ("[pairs.groups]", '[pairs.topics]\nage = ["cats-dogs"]\nrace = ["cats-dogs"]\n[pairs.groups]'),
            *("pairs.topics.race", "cats-dogs", "age"),
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, change: tuple[str, str], field: str, got: str, allowed: str) -> None:
    path = written(tmp_path, OWN.replace(*change))
    with pytest.raises(StimulusError) as caught:
        load_tests(path)
    assert all(part in str(caught.value) for part in (str(path), field, got, allowed)), str(caught.value)


# ---- both forms


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["weat1", "sent-weat1", "weat9", "heilman_double_bind_likable_1-", "I1", "EM-EF-math"])
def test_both_forms_carry_what_a_test_is_about(tmp_path: Path, form: str, name: str) -> None:
    test = load_catalogue().tests[name]
    (back,) = load_tests(written(tmp_path, FORMS[form](test), f"{name}.{form}"))
    assert describe_test(back) == describe_test(test)
    again = load_tests(written(tmp_path, to_toml(back), "again.toml"))
    assert [describe_test(test) for test in again] == [describe_test(test)]


def test_the_kind_decides_what_a_sentence_is(tmp_path: Path) -> None:
    """Words that look like sentences, and sentences that look like words."""
    content = OWN.replace('["cat", "lynx"]', '["a cat.", "the lynx."]')
    words = load_tests(written(tmp_path, content))[0]
    only = OWN.partition("[tests.pets-seen]")[0] + "given_as_sentences = true\n"
    (given,) = load_tests(written(tmp_path, only))
    assert (words.level, given.level) == ("word", "sentence")
    for test in (words, given):
        (back,) = load_tests(written(tmp_path, FORMS["json"](test), "back.json"))
        assert (back.level, back.template, hash_texts(back)) == (test.level, test.template, hash_texts(test))


def test_the_digest_is_of_what_is_asked() -> None:
    test = load_catalogue().tests["sent-weat9"]
    other = dataclasses.replace(test, about="method", topic="other", variant_of="weat1", given_template="other")
    assert hash_texts(other) == hash_texts(test)
