"""Concepts to erase: the bundled ones, and mistakes in files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from biassay.datasets.catalogue import load_catalogue, select_tests
from biassay.datasets.concepts import concept_names, load_concept
from biassay.datasets.linter import list_forms
from biassay.datasets.names import load_names
from biassay.datasets.schema import ROLES
from biassay.errors import StimulusError, UnknownNameError

FILE = """
title = "Size"
weakness = "Few words."
tests = ["weat6"]
pairs = [["giant", "dwarf"]]
[words]
large = ["huge"]
small = ["tiny"]
[held_out]
large = ["big"]
small = ["little"]
[source]
name = "own"
citation = "none"
licence = "CC0"
version = "1"
"""


def collect_forms(words: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*map(list_forms, words))


@pytest.mark.parametrize("name", concept_names())
def test_no_bundled_concept_is_fitted_on_words_of_its_tests(name: str) -> None:
    concept = load_concept(name)
    fitted = collect_forms(word for word, _ in concept.fitting_words)
    for test in select_tests(concept.tests):
        assert not fitted & collect_forms(word for role in ROLES for word in test.concept(role).words)
    held_out = collect_forms(word for words in concept.held_out for word in words)
    assert not fitted & held_out
    assert len({len(words) for words in concept.held_out}) == 1


def test_the_gender_concept_shares_no_word_with_tests_outside_the_gate() -> None:
    fitted = collect_forms(word for word, _ in load_concept("gender").fitting_words)
    tests = [test for test in load_catalogue().tests.values() if not test.name.startswith("gate-")]
    assert len(tests) > 100
    for test in tests:
        shared = fitted & collect_forms(word for role in ROLES for word in test.concept(role).words)
        assert shared <= {"nephew", "niece", "husband", "wife"} if test.name == "garage-kitchen" else not shared


def test_names_of_gender_and_race_have_the_class_that_the_census_gives_them() -> None:
    listed = {entry.name: entry.values for entry in load_names("census2020").names}
    for name, column in (("gender", "sex"), ("race", "race")):
        concept = load_concept(name)
        for label, words, held_out in zip(concept.classes, concept.words, concept.held_out, strict=True):
            names = [word for word in (*words, *held_out) if word in listed]
            assert len(names) >= 60
            assert {listed[word][column] for word in names} == {label}


def test_a_file_of_the_user_is_a_concept(tmp_path: Path) -> None:
    path = tmp_path / "size.toml"
    path.write_text(FILE)
    concept = load_concept(str(path))
    assert (concept.name, concept.classes) == ("size", ("large", "small"))
    assert concept.fitting_words == (("giant", 0), ("dwarf", 1), ("huge", 0), ("tiny", 1))
    path.write_text(FILE.replace('"huge"', '"vast"'))
    assert load_concept(str(path)).digest != concept.digest


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"big"', '"huge"', "'huge' appears twice"),
        ('"big"', '"Giants"', "the held-out word 'Giants' is a form of the fitted word 'giant'"),
        ('["giant", "dwarf"]', '["giant"]', "one word of each class (large, small)"),
        ('small = ["tiny"]', 'tiny = ["tiny"]', "expected the classes of [held_out] (large, small), got large, tiny"),
        ('small = ["little"]', "", "two or more classes"),
        ("tests =", "test =", "did you mean 'tests'?"),
        ("title =", "titel =", "did you mean 'title'?"),
    ],
)
def test_a_mistake_names_file_and_field(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "size.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(StimulusError) as refused:
        load_concept(str(path))
    assert said in str(refused.value)
    assert "size.toml" in str(refused.value)


def test_an_unknown_concept_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gender'"):
        load_concept("gendre")
