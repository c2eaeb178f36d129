"""Word association tests as data: the published stimuli, tests of the catalogue, one's own files, and their faults."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import load_topics
from biassay.datasets.word_associations import (
    convert_association_test,
    fold_word,
    load_word_associations,
    select_word_associations,
    select_wordings,
)
from biassay.errors import StimulusError

REFERENCE = Path(__file__).parents[1] / "reference" / "wat"
OWN = """
[datasets.pets]
default = { words = ["cat"] }
stigmatised = { words = ["dog"] }
positive = { words = ["clean", "quiet"] }
negative = { words = ["dirty", "loud"] }
"""


def test_words_are_those_of_the_published_stimuli() -> None:
    """Order included: A and B by row, and the first half of C is positive."""
    published: dict[str, dict[str, list[str]]] = {}
    with (REFERENCE / "stimuli.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            lists = published.setdefault(row["dataset"], {"A": [], "B": [], "C": []})
            for key, words in lists.items():
                words += [row[key]] if row[key] else []
    shipped = {test.published_as or test.name.removeprefix("wat-"): test for test in select_word_associations()}
    assert list(shipped) == list(published)
    for name, lists in published.items():
        test = shipped[name]
        assert (list(test.default.words), list(test.stigmatised.words)) == (lists["A"], lists["B"])
        assert list(test.words) == lists["C"]
        assert sum(test.is_negative) * 2 == len(lists["C"])
        assert len(test.pairs) == len(lists["A"]) == len(lists["B"])


def test_every_test_has_a_source_a_title_and_a_topic_of_its_own() -> None:
    tests = select_word_associations()
    assert len({test.title for test in tests}) == len({test.digest for test in tests}) == 21
    assert {test.topic for test in tests} <= set(load_topics()) - {"other"}
    assert {test.source.licence.split()[0] for test in tests} == {"MIT"}
    assert not {test.name for test in tests} & {*load_catalogue().tests, *load_catalogue().collections, *load_topics()}


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("wat-career", ["wat-career"]),
        ("arab/muslim", ["wat-arab-muslim"]),
        ("career", ["wat-career"]),
        ("gender", ["wat-career", "wat-power", "wat-science"]),
        ("wat-*ism", ["wat-racism", "wat-judaism", "wat-buddhism"]),
        ("weat6", ["weat6"]),
        (["weat6", "wat-age"], ["weat6", "wat-age"]),
    ],
)
def test_tests_by_name(asked: str | list[str], names: list[str]) -> None:
    assert [test.name for test in select_word_associations(asked)] == names


def test_every_test_of_words_in_the_catalogue_can_be_asked_or_says_why_not() -> None:
    refused, of_words = [], [test for test in load_catalogue().tests.values() if test.level == "word"]
    assert len(of_words) > 80
    for test in of_words:
        try:
            made = convert_association_test(test)
        except StimulusError as error:
            refused.append((test.name, str(error)))
        else:
            keys = [fold_word(word) for word in (*made.words, *made.default.words, *made.stigmatised.words)]
            assert len(set(keys)) == len(keys), test.name
    assert refused == []


def test_the_published_wording_comes_first() -> None:
    first, *others = select_wordings()
    assert (first.name, first.lower_case, first.quoted) == ("bai2025", True, True)
    assert others
    assert all("{words}" in wording.text for wording in (first, *others))
    assert all("{word}" in wording.text for wording in select_wordings(form="word"))


def test_own_file(tmp_path: Path) -> None:
    path = tmp_path / "pets.toml"
    path.write_text(OWN)
    (test,) = select_word_associations(str(path))
    assert (test.pairs, test.words) == ((("cat", "dog"),), ("clean", "quiet", "dirty", "loud"))
    assert load_word_associations(path)[0] == {"pets": test}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('positive = { words = ["clean", "quiet"] }', ""), "'positive' is missing"),
        (('["dog"]', '["Cat"]'), "'Cat' is both default and stigmatised"),
        (('"loud"]', '"CLEAN"]'), "'CLEAN' is both positive and negative"),
        (('"loud"]', '"Dirty"]'), "'dirty' and 'Dirty' are spellings"),
        (('["clean", "quiet"]', '["clean"]'), "at least two words"),
        (('["dog"]', "[]"), "the list is empty"),
        (("[datasets.pets]", "[datasets.pets]\ntopik = 'age'"), "did you mean 'topic'"),
        (("[datasets.pets]", "[wordings.w]\ntext = '{first} {words}'\n[datasets.pets]"), "{second} is missing"),
        (("[datasets.pets]", "[wordings.w]\ntext = '{first} {second}'\n[datasets.pets]"), "the slot {words}"),
        (("[datasets.pets]", "[wordings.w]\ntext = '{first} {third}'\n[datasets.pets]"), "unknown slot {third}"),
        ((OWN, "[source]\nname = 'a'\ncitation = 'a'\nlicence = 'a'\nversion = '1'"), "defines nothing"),
    ],
)
def test_faults_are_named(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    path = tmp_path / "pets.toml"
    path.write_text(OWN.replace(*change))
    with pytest.raises(StimulusError) as raised:
        load_word_associations(path)
    assert str(path) in str(raised.value)
    assert told in str(raised.value)
