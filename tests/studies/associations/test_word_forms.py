"""Words that look like forms of one word and are not declared as a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import biassay
from biassay.results.outcomes import Result
from biassay.studies.associations.word_forms import find_undeclared_forms

WORDS = {
    "X": ["he", "him", "his", "brother", "brothers", "uncle", "king", "boy"],
    "Y": ["she", "her", "hers", "sister", "sisters", "aunt", "queen", "girl"],
    "A": "career",
    "B": "family",
}
CLUSTERS = {
    "X": [["he", "him", "his"], ["brother", "brothers"]],
    "Y": [["she", "her", "hers"], ["sister", "sisters"]],
}


def result(model: str, clusters: dict[str, list[list[str]]]) -> tuple[Result, tuple[str, ...]]:
    sets = {role: {"words": WORDS[role], "clusters": clusters.get(role, [])} for role in "XY"}
    run = biassay.run(model, tests={"name": "own", **WORDS, **sets})
    (finding,) = run.findings()
    return run.results[0], finding.notes


@pytest.mark.parametrize("model", ["glove", pytest.param("use", marks=pytest.mark.extras)])
def test_undeclared_forms_are_named_in_a_warning(model: str) -> None:
    row, notes = result(model, {})
    assert row.undeclared["X"] == ("he/him/his", "brother/brothers")
    assert any("he/him/his" in note and "declare them as a cluster" in note for note in notes)


def test_declared_forms_are_not() -> None:
    row, notes = result("glove", CLUSTERS)
    assert row.undeclared == {}
    assert not any("declare them" in note for note in notes)


def test_few_words_of_the_shipped_tests_look_like_undeclared_forms() -> None:
    run = biassay.run("glove", tests=["caliskan2017", "weat6b", "gate"])
    assert {group for row in run.results for of in row.undeclared.values() for group in of} == {"viola/violin"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("brother", "brothers", True),
        ("woman", "women", True),
        ("her", "hers", True),
        ("he", "his", True),
        ("peace", "peaceful", True),
        ("father", "grandfather", False),
        ("Lakisha", "Latisha", False),
        ("he", "her", False),
        ("bee", "beetle", False),
        ("poison", "prison", False),
    ],
)
def test_close_words_are_forms_of_one_word_if_they_are_spelled_alike(one: str, other: str, expected: bool) -> None:
    vectors = np.random.default_rng(0).normal(size=(8, 50))
    vectors[1] = vectors[0] + 0.01
    words = [one, other, *(f"{letter}{letter}" for letter in "klmnop")]
    for order in (words, [other, one, *words[2:]]):
        found = find_undeclared_forms({"X": vectors}, {"X": order}, {"X": {}})
        assert found == ({"X": (f"{order[0]}/{order[1]}",)} if expected else {})
