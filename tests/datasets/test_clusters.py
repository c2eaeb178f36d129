"""Clusters of near-synonyms and expected directions, as data files state them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from biassay.datasets.catalogue import load_catalogue, load_tests, select_tests
from biassay.datasets.schema import Test
from biassay.datasets.stimulus_files import to_sent_bias, to_toml
from biassay.errors import StimulusError
from biassay.prompts.sentences import get_given_texts, hash_texts

FILE = """
[concepts.men]
words = ["he", "him", "his", "brother", "brothers", "uncle"]
clusters = [["he", "him", "his"], ["brother", "brothers"]]
[concepts.women]
words = ["she", "aunt"]
[concepts.work]
words = ["office", "salary"]
[concepts.home]
words = ["kitchen", "garden"]
[tests.own]
X = "men"
Y = "women"
A = "work"
B = "home"
direction = "positive"
"""
FORMS: dict[str, Callable[[Test], str]] = {
    "json": lambda test: to_sent_bias(test, get_given_texts(test)),
    "toml": lambda test: to_toml(test),
}


def load_one(folder: Path, text: str, suffix: str = "toml") -> Test:
    path = folder / f"own.{suffix}"
    path.write_text(text)
    (test,) = load_tests(path)
    return test


def test_clusters_change_the_digest(tmp_path: Path) -> None:
    without = FILE.replace('clusters = [["he", "him", "his"], ["brother", "brothers"]]\n', "")
    assert hash_texts(load_one(tmp_path, FILE)) != hash_texts(load_one(tmp_path, without))


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ('[["he"]]', "at least two words"),
        ('[["he", "she"]]', "'she' is not one of the words"),
        ('[["he", "him"], ["his", "he"]]', "'he' is already in another cluster"),
        ('"he him"', "expected a list of lists"),
    ],
)
def test_wrong_clusters_are_errors(tmp_path: Path, clusters: str, message: str) -> None:
    given = FILE.replace('[["he", "him", "his"], ["brother", "brothers"]]', clusters)
    with pytest.raises(StimulusError, match=message):
        load_one(tmp_path, given)


def _edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]


PRONOUNS = ({"he", "him", "his"}, {"she", "her", "hers"})
# Pairs that look alike within one shipped set but are different words or different names.
DIFFERENT_WORDS = {
    *("Aisha Keisha", "Aisha Lakisha", "Aisha Latisha", "Aisha Tanisha", "Lakisha Latisha", "Lakisha Tanisha"),
    *("Latisha Tanisha", "Latisha Lakisha", "Tanisha Lakisha", "Latonya Latoya", "Latoya Latanya", "Malik Malika"),
    *("Malika Tamika", "Darnell Wardell", "Torrance Terrence", "Carrie Laurie", "Karina Maria", "Diana Donna"),
    *("Maria Mayra", "viola violin", "banjo bongo", "pansy daisy", "poetry pottery", "biology geology"),
    *("terrible horrible", "poison prison", "Nigerian American Liberian American", "Lamont Lavon", "Tyree Tyrone"),
}


def test_forms_of_one_word_are_clustered_in_every_shipped_set() -> None:
    open_pairs = set()
    for concept in load_catalogue().concepts.values():
        if concept.name.startswith("gate-") and concept.name.endswith("-names"):
            continue  # chosen one by one; see the head of the file
        labels = concept.cluster_labels
        for one, other in combinations(concept.words, 2):
            alike = min(len(one), len(other)) >= 5 and _edit_distance(one.lower(), other.lower()) <= 2
            inflected = len(one) > 3 and any(other == one + ending for ending in ("s", "es", "ed", "ing", "ness"))
            pronouns = any({one, other} <= forms for forms in PRONOUNS)
            if (alike or inflected or pronouns) and labels[one] != labels[other]:
                open_pairs.add(f"{one} {other}")
    assert open_pairs - DIFFERENT_WORDS == set()


def test_every_main_test_states_its_expected_direction() -> None:
    assert {test.direction for test in select_tests()} == {"positive"}
    assert {test.direction for test in select_tests("guo2021-supplement")} == {None}
