"""Diagnostics of stimuli on real vectors, words that look like one word, and when they warn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.results.made_runs import altered, decided

import biassay
from biassay.errors import BiassayError
from biassay.runs.run import Run
from biassay.studies.associations.findings import list_warnings
from biassay.studies.associations.measure import find_undeclared_forms

WORDS = {"X": ["rose", "lily", "tulip"], "Y": ["ant", "fly", "wasp"], "A": ["joy", "love"], "B": ["hate", "war"]}


@pytest.fixture(scope="module")
def glove() -> Run:
    return biassay.run("glove", ["weat6", "weat3b", "sent-weat9"])


def test_tokens_frequency_and_the_word_an_effect_hangs_on(glove: Run) -> None:
    weat6, weat3b, _ = glove.tables["diagnostics"]
    assert (weat6.tokens, weat6.single) == (dict.fromkeys("XYAB", 1.0), dict.fromkeys("XYAB", 1.0))
    assert weat6.frequency["X"] < weat6.frequency["Y"]  # male names are more frequent
    assert (weat3b.single["X"], weat3b.frequency) == (0.0, None)  # "white people"
    test = biassay.select_tests("weat6")[0]
    words = {role: [w for w in test.concept(role).words if w != weat6.driver] for role in "XYAB"}
    without = biassay.run("glove", {"weat6": words}).results[0]
    assert (weat6.d_without, weat6.p_without) == pytest.approx((without.effect_size, without.p_value))


def test_only_what_changes_the_reading_is_said(glove: Run) -> None:
    row, found = glove.results[0], glove.tables["diagnostics"][0]

    def said(**given: object) -> int:
        return len(list(list_warnings(row, dataclasses.replace(found, **given))))

    assert said() == 0
    assert said(single={"X": 1.0, "Y": 0.2, "A": 1.0, "B": 1.0}) == 1
    assert said(frequency={"X": 100.0, "Y": 900.0, "A": 1.0, "B": 1.0}) == 1
    assert said(p_without=0.2, d_without=0.5) == 1
    assert said(p_without=0.06, d_without=0.5) == 0  # a p-value just below alpha easily crosses it
    assert said(p_skew=0.04) == 0
    assert said(p_skew=0.06) == 1
    weak = decided(altered(row, p_value=0.4))
    assert not list(list_warnings(weak, dataclasses.replace(found, p_without=0.9)))


def test_unequal_sizes_with_unequal_spreads_are_said(glove: Run) -> None:
    row = glove.results[0]
    x = {f"x{i}": 1.0 + 0.01 * i for i in range(4)}
    y = {f"y{i}": 0.1 * i for i in range(12)}
    unequal = decided(altered(row, associations={**row.associations, "X": x, "Y": y}))
    assert len(list(list_warnings(unequal, None))) == 1


@pytest.mark.parametrize(
    "change", [{"A": ["joy", "war"]}, {"X": ["rose", "rose", "lily"]}, {"X": ["rose", "ant", "lily"]}, {"A": ["joy"]}]
)
def test_sets_of_one_word_and_words_that_stand_twice_are_refused(change: dict[str, list[str]]) -> None:
    with pytest.raises(BiassayError):
        biassay.run("glove", {"own": WORDS | change})


PRONOUNS = {
    "X": ["he", "him", "his", "brother", "brothers", "uncle", "king", "boy"],
    "Y": ["she", "her", "hers", "sister", "sisters", "aunt", "queen", "girl"],
    "A": "career",
    "B": "family",
}


@pytest.mark.parametrize("model", ["glove", pytest.param("use", marks=pytest.mark.extras)])
def test_undeclared_forms_are_named_in_a_warning(model: str) -> None:
    run = biassay.run(model, tests={"name": "own", **PRONOUNS})
    (finding,) = run.findings()
    assert run.results[0].undeclared["X"] == ("he/him/his", "brother/brothers")
    assert any("he/him/his" in note and "declare them as a cluster" in note for note in finding.notes)


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
        (finding,) = biassay.run({"own": Model()}, {"name": "own", **sets, "X": x}, random_sets=0).findings()
        said = [note for note in finding.notes if "physician/doctor/medic" in note]
        assert bool(said) is warned
        assert all("near-synonyms" in note and "declare them as a cluster" in note for note in said)


def test_a_high_cosine_is_no_sign_of_near_synonyms_where_all_words_are_close() -> None:
    """All vectors of a model may point the same way: cosines of .97 are then ordinary."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(24, 300)) + 6.0 * rng.normal(size=300)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.median(unit @ unit.T) > 0.95
    names = [f"{chr(97 + i)}{chr(97 + i)}" for i in range(24)]
    assert find_undeclared_forms({"X": vectors}, {"X": names}, {"X": {}}) == {}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("brother", "brothers", True),
        ("woman", "women", True),
        ("he", "his", True),
        ("peace", "peaceful", True),
        ("father", "grandfather", False),
        ("he", "her", False),
        ("bee", "beetle", False),
    ],
)
def test_close_words_are_forms_of_one_word_if_they_are_spelled_alike(one: str, other: str, expected: bool) -> None:
    vectors = np.random.default_rng(0).normal(size=(8, 50))
    vectors[1] = vectors[0] + 0.7 * vectors[1]  # a cosine of about .8, too low for near-synonyms
    words = [one, other, *(f"{letter}{letter}" for letter in "klmnop")]
    for order in (words, [other, one, *words[2:]]):
        found = find_undeclared_forms({"X": vectors}, {"X": order}, {"X": {}})
        assert found == ({"X": (f"{order[0]}/{order[1]}",)} if expected else {})
