"""Words that look like forms of one word and are not declared as a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import biassay
from biassay.results.outcomes import Result
from biassay.studies.associations.measure import find_undeclared_forms

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


def planted(cosine: float, words: list[str], others: int = 21) -> dict[str, tuple[str, ...]]:
    """Find words with this cosine with each other among others at random."""
    rng = np.random.default_rng(0)
    shared, *own = np.linalg.qr(rng.normal(size=(300, 1 + len(words))))[0].T
    near = [np.sqrt(cosine) * shared + np.sqrt(1.0 - cosine) * direction for direction in own]
    vectors = np.vstack([near, rng.normal(size=(others, 300))])
    names = [*words, *(f"{chr(97 + i)}{chr(97 + i)}" for i in range(others))]
    return find_undeclared_forms({"X": vectors}, {"X": names}, {"X": {}})


DOCTORS = ["physician", "doctor", "medic"]


@pytest.mark.parametrize(("cosine", "warned"), [(0.999, True), (0.95, True), (0.85, False), (0.3, False)])
def test_words_far_closer_than_the_rest_may_be_near_synonyms(cosine: float, warned: bool) -> None:
    assert planted(cosine, DOCTORS) == ({"X": ("physician/doctor/medic",)} if warned else {})


def test_a_high_cosine_is_no_sign_of_near_synonyms_where_all_words_are_close() -> None:
    """All vectors of a model may point the same way: cosines of .97 are then ordinary."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(24, 300)) + 6.0 * rng.normal(size=300)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.median(unit @ unit.T) > 0.95
    names = [f"{chr(97 + i)}{chr(97 + i)}" for i in range(24)]
    assert find_undeclared_forms({"X": vectors}, {"X": names}, {"X": {}}) == {}


def test_near_synonyms_are_named_in_a_warning_until_they_are_declared() -> None:
    rng = np.random.default_rng(1)
    sets = {"X": [*DOCTORS, *"abcde"], "Y": list("fghijklm"), "A": list("nopqrstu"), "B": list("vwxyz012")}
    vectors = {word: rng.normal(size=300) for words in sets.values() for word in words}
    vectors |= {word: vectors["doctor"] + 0.02 * rng.normal(size=300) for word in DOCTORS}

    class Model:
        def encode(self, texts: list[str]) -> np.ndarray:
            known = vectors | {text: rng.normal(size=300) for text in texts if text not in vectors}
            return np.stack([known[text] for text in texts])

    for x, warned in ((sets["X"], True), ({"words": sets["X"], "clusters": [DOCTORS]}, False)):
        run = biassay.run({"own": Model()}, tests={"name": "own", **sets, "X": x}, random_sets=0)
        (finding,) = run.findings()
        said = [note for note in finding.notes if "physician/doctor/medic" in note]
        assert bool(said) is warned
        assert all(
            "may be forms of one word or near-synonyms" in note and "declare them as a cluster" in note for note in said
        )


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
    vectors[1] = vectors[0] + 0.7 * vectors[1]  # a cosine of about .8, too low for near-synonyms
    words = [one, other, *(f"{letter}{letter}" for letter in "klmnop")]
    for order in (words, [other, one, *words[2:]]):
        found = find_undeclared_forms({"X": vectors}, {"X": order}, {"X": {}})
        assert found == ({"X": (f"{order[0]}/{order[1]}",)} if expected else {})
